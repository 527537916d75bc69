/* Conversions of elements from files to float and to int64, one function for each type and byte order. The loops
 * vectorise; the file is compiled with the flags of kernels. */
#include "data/dtype_convert.h"

#include <string.h>

#include "tensor/kernel.h"

/* Bits of IEEE 754 half precision to float: shift into place, then scale by 2^112 (exact, also for subnormals);
 * Inf and NaN keep their exponent of all ones. */
static inline float half_bits(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } v = { .u = (uint32_t)(h & 0x7FFF) << 13 }, scale = { .u = 0x77800000 }; /* 2^112 */
    v.f *= scale.f;
    if ((h & 0x7C00) == 0x7C00)
        v.u = 0x7F800000 | (uint32_t)(h & 0x03FF) << 13;
    v.u |= (uint32_t)(h & 0x8000) << 16;
    return v.f;
}

static inline float float_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline float bfloat_bits(uint16_t b)
{
    return float_bits((uint32_t)b << 16);
}

static inline float double_bits(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof(d));
    return (float)d;
}

#define AS_IS(v) (v)
/* name, unsigned type of the same size, byte order, what the bits mean */
#define CONVERT(name, bits, order, meaning)                                                                            \
    KERNEL static void name(const unsigned char *restrict src, float *restrict dst, size_t n)                          \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            bits v;                                                                                                    \
            memcpy(&v, src + i * sizeof(v), sizeof(v));                                                                \
            dst[i] = (float)meaning(order(v));                                                                         \
        }                                                                                                              \
    }
CONVERT(from_u8, uint8_t, AS_IS, AS_IS)
CONVERT(from_i8, uint8_t, AS_IS, (int8_t))
CONVERT(from_u16, uint16_t, AS_IS, AS_IS)
CONVERT(from_u16_swap, uint16_t, __builtin_bswap16, AS_IS)
CONVERT(from_i16, uint16_t, AS_IS, (int16_t))
CONVERT(from_i16_swap, uint16_t, __builtin_bswap16, (int16_t))
CONVERT(from_u32, uint32_t, AS_IS, AS_IS)
CONVERT(from_u32_swap, uint32_t, __builtin_bswap32, AS_IS)
CONVERT(from_i32, uint32_t, AS_IS, (int32_t))
CONVERT(from_i32_swap, uint32_t, __builtin_bswap32, (int32_t))
CONVERT(from_u64, uint64_t, AS_IS, AS_IS)
CONVERT(from_u64_swap, uint64_t, __builtin_bswap64, AS_IS)
CONVERT(from_i64, uint64_t, AS_IS, (int64_t))
CONVERT(from_i64_swap, uint64_t, __builtin_bswap64, (int64_t))
CONVERT(from_half, uint16_t, AS_IS, half_bits)
CONVERT(from_half_swap, uint16_t, __builtin_bswap16, half_bits)
CONVERT(from_bfloat, uint16_t, AS_IS, bfloat_bits)
CONVERT(from_bfloat_swap, uint16_t, __builtin_bswap16, bfloat_bits)
CONVERT(from_float_swap, uint32_t, __builtin_bswap32, float_bits)
CONVERT(from_double, uint64_t, AS_IS, double_bits)
CONVERT(from_double_swap, uint64_t, __builtin_bswap64, double_bits)

static void from_float(const unsigned char *src, float *dst, size_t n)
{
    memcpy(dst, src, n * sizeof(*dst));
}

/* By dtype (TensorFlow's numbers): as it is, swapped. */
static const struct {
    dtype_to_floats *plain, *swap;
} FLOATS[] = {
    [DT_UINT8] = { from_u8, from_u8 },
    [DT_BOOL] = { from_u8, from_u8 },
    [DT_INT8] = { from_i8, from_i8 },
    [DT_UINT16] = { from_u16, from_u16_swap },
    [DT_INT16] = { from_i16, from_i16_swap },
    [DT_UINT32] = { from_u32, from_u32_swap },
    [DT_INT32] = { from_i32, from_i32_swap },
    [DT_UINT64] = { from_u64, from_u64_swap },
    [DT_INT64] = { from_i64, from_i64_swap },
    [DT_HALF] = { from_half, from_half_swap },
    [DT_BFLOAT16] = { from_bfloat, from_bfloat_swap },
    [DT_FLOAT] = { from_float, from_float_swap },
    [DT_DOUBLE] = { from_double, from_double_swap },
};

dtype_to_floats *dtype_float_converter(enum dtype dtype, bool swap)
{
    if ((size_t)dtype >= COUNT_OF(FLOATS))
        return NULL;
    return swap ? FLOATS[dtype].swap : FLOATS[dtype].plain;
}

/* Bytes of an element, and whether its highest bit is a sign; 0 bytes: not an integer. */
static const struct {
    uint8_t bytes;
    bool is_signed;
} INTS[] = {
    [DT_UINT8] = { 1, false },  [DT_BOOL] = { 1, false },   [DT_INT8] = { 1, true },
    [DT_UINT16] = { 2, false }, [DT_INT16] = { 2, true },   [DT_UINT32] = { 4, false },
    [DT_INT32] = { 4, true },   [DT_UINT64] = { 8, false }, [DT_INT64] = { 8, true },
};

bool dtype_is_integer(enum dtype dtype)
{
    return (size_t)dtype < COUNT_OF(INTS) && INTS[dtype].bytes > 0;
}

int64_t dtype_to_int(enum dtype dtype, bool swap, const unsigned char *src)
{
    unsigned bytes = INTS[dtype].bytes, shift = 64 - 8 * bytes;
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)src[swap ? bytes - 1 - i : i] << (8 * i);
    if (INTS[dtype].is_signed)
        return (int64_t)(v << shift) >> shift; /* the sign fills the upper bits */
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}
