/* Formats single elements of a tensor, and converts them to double for statistics. Covers every type that a TensorFlow
 * checkpoint may have. */
#include "tensor_element.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/str.h"

/* Binary16 (IEEE 754): 1 sign, 5 exponent, 10 fraction bits. */
static double half(uint16_t h)
{
    int exponent = (h >> 10) & 31, fraction = h & 1023;
    double v = exponent == 31  ? (fraction != 0 ? (double)NAN : (double)INFINITY)
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, exponent - 25);
    return (h & 0x8000) != 0 ? -v : v;
}

/* bfloat16 is the upper half of a float32. */
static double bfloat(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof(f));
    return (double)f;
}

#define AT(type)                                                                                                       \
    (__extension__({                                                                                                   \
        type v_;                                                                                                       \
        memcpy(&v_, (const char *)data + i * sizeof(v_), sizeof(v_));                                                  \
        v_;                                                                                                            \
    }))

double tensor_element_number(enum dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case DT_FLOAT:
        return (double)AT(float);
    case DT_DOUBLE:
        return AT(double);
    case DT_INT8:
        return AT(int8_t);
    case DT_INT16:
        return AT(int16_t);
    case DT_INT32:
        return AT(int32_t);
    case DT_INT64:
        return (double)AT(int64_t);
    case DT_UINT8:
    case DT_BOOL:
        return AT(uint8_t);
    case DT_UINT16:
        return AT(uint16_t);
    case DT_UINT32:
        return AT(uint32_t);
    case DT_UINT64:
        return (double)AT(uint64_t);
    case DT_HALF:
        return half(AT(uint16_t));
    case DT_BFLOAT16:
        return bfloat(AT(uint16_t));
    case DT_COMPLEX64:
        i *= 2;
        return (double)AT(float);
    case DT_COMPLEX128:
        i *= 2;
        return AT(double);
    case DT_STRING:
    default:
        return (double)NAN;
    }
}

void tensor_element_text(enum dtype dtype, const void *data, size_t i, struct buf *out)
{
    char number[32];
    switch (dtype) {
    case DT_INT64:
        buf_printf(out, "%" PRId64, AT(int64_t));
        break;
    case DT_UINT64:
        buf_printf(out, "%" PRIu64, AT(uint64_t));
        break;
    case DT_BOOL:
        buf_str(out, AT(uint8_t) != 0 ? "true" : "false");
        break;
    case DT_DOUBLE:
        buf_str(out, str_double(AT(double), number));
        break;
    case DT_COMPLEX64:
        buf_printf(out, "(%.9g%+.9gj)", tensor_element_number(DT_FLOAT, data, 2 * i),
                   tensor_element_number(DT_FLOAT, data, 2 * i + 1));
        break;
    case DT_COMPLEX128:
        buf_printf(out, "(%.17g%+.17gj)", tensor_element_number(DT_DOUBLE, data, 2 * i),
                   tensor_element_number(DT_DOUBLE, data, 2 * i + 1));
        break;
    case DT_HALF:
    case DT_BFLOAT16:
        buf_printf(out, "%.5g", tensor_element_number(dtype, data, i));
        break;
    case DT_FLOAT:
        buf_str(out, str_float(AT(float), number));
        break;
    case DT_INT8:
    case DT_INT16:
    case DT_INT32:
    case DT_UINT8:
    case DT_UINT16:
    case DT_UINT32:
        buf_printf(out, "%.0f", tensor_element_number(dtype, data, i));
        break;
    case DT_STRING:
    default:
        buf_str(out, "?");
        break;
    }
}

void tensor_element_string(const char *bytes, size_t n, size_t limit, struct buf *out)
{
    buf_char(out, '"');
    for (size_t i = 0; i < MIN(n, limit); i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c >= 0x20 && c < 0x7f)
            buf_char(out, (char)c);
        else
            buf_printf(out, "\\x%02x", c);
    }
    buf_str(out, "\"");
    if (n > limit)
        buf_printf(out, "... (%zu bytes)", n);
}
