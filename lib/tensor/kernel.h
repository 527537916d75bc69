/* kernel - inner loops that vectorise, and the macros that other folders need to write their own.
 *
 * KERNEL before a function makes gcc compile it three times (AVX-512, AVX2, baseline) and pick one at load time. Write
 * plain loops over `float *restrict` with sizes last; the compiler vectorises them (-O3, no errno, no traps;
 * -ffp-contract=off, so an element-wise kernel gives the same bits on every x86-64). It never reorders a sum:
 * reductions here keep KERNEL_LANES partial sums in a fixed order, which both vectorises and gives the same bits
 * everywhere. static inline helpers called by a KERNEL function are inlined into each version. Pointers need no
 * alignment. Sizes are elements. y may equal x where stated. All functions are pure, thread-safe and never allocate.
 */
#ifndef TRAINYARD_TENSOR_KERNEL_H
#define TRAINYARD_TENSOR_KERNEL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sanitizers run before the loader's resolvers can; clang 14 does not clone static functions reliably. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TRAINYARD_SANITIZED)
#define KERNEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KERNEL
#endif

/* Before a loop whose y may be x itself (never a shifted overlap): no run-time check for aliases. */
#ifdef __clang__
#define KERNEL_LOOP
#else
#define KERNEL_LOOP _Pragma("GCC ivdep")
#endif

enum { KERNEL_LANES = 16 };

/* Gradients are read directly from received bytes, at any address. */
typedef float wire_float __attribute__((aligned(1), may_alias));

/* y = a*x + b; y may equal x */
void kernel_affine(const float *x, float a, float b, float *y, size_t n);
/* y += a*x */
void kernel_axpy(float a, const float *x, float *y, size_t n);
/* y = x1 * x2; y may equal either */
void kernel_mul(const float *x1, const float *x2, float *y, size_t n);
/* y += x */
void kernel_add(const float *x, float *y, size_t n);
/* y (rows, cols) += b (cols) */
void kernel_add_row(const float *b, float *y, size_t rows, size_t cols);
/* y (rows, cols) = max(y + b, 0): bias and relu in one pass */
void kernel_add_row_relu(const float *b, float *y, size_t rows, size_t cols);
/* y (rows, cols) = a (cols) * x + b (cols); y may equal x */
void kernel_affine_rows(const float *x, const float *a, const float *b, float *y, size_t rows, size_t cols);
/* y = a*x + b of bytes: pixels to floats */
void kernel_from_u8(const uint8_t *x, float a, float b, float *y, size_t n);
/* y (cols) = sum over rows of x (rows, cols) */
void kernel_sum_rows(const float *x, float *y, size_t rows, size_t cols);
/* y (cols) = sum over rows of (x - mean)^2; mean (cols) */
void kernel_sum_square_differences(const float *x, const float *mean, float *y, size_t rows, size_t cols);
/* dx = y > 0 ? dy : 0; dx may equal dy */
void kernel_relu_backward(const float *y, const float *dy, float *dx, size_t n);
/* kernel_relu_backward, and sums (cols) = the sum over rows of dx (rows, cols), as of kernel_sum_rows */
void kernel_relu_backward_sum(const float *y, const float *dy, float *dx, float *sums, size_t rows, size_t cols);
/* Sums in float lanes of blocks of 4096, blocks in double. */
double kernel_sum_abs(const float *x, size_t n);
double kernel_sum_squares(const float *x, size_t n);
/* No NaN and no Inf among n floats, at any address; true for n 0. */
bool kernel_all_finite(const void *x, size_t n);
bool kernel_all_squares_finite(const void *x, size_t n); /* nor among their squares: all are below 2^64 */
size_t kernel_argmax(const float *x, size_t n);          /* of equal ones the first; n >= 1 */

/* ---- functions of one float that vectorise inside a KERNEL loop (about 2 ulp) ----
 * Argument reduction x = k ln2 + r, |r| <= ln2/2, then the Taylor series of e^r - 1, whose 8th term is
 * below 6e-9. exp32 underflows and overflows where expf does; NaN stays NaN. */
static inline float exp32_reduce_(float x, float *ret_r)
{
    float k = nearbyintf(x * 1.442695041F);
    *ret_r = (x - k * 0.693359375F) - k * -2.12194440e-4F; /* ln2 in two parts: the first product is exact */
    return k;
}

static inline float exp32_series_(float r) /* e^r - 1 */
{
    float p = 1.0F / 5040;
    p = p * r + 1.0F / 720;
    p = p * r + 1.0F / 120;
    p = p * r + 1.0F / 24;
    p = p * r + 1.0F / 6;
    p = p * r + 0.5F;
    return (p * r) * r + r;
}

static inline float exp32_power_(float k) /* 2^k, k whole in [-126, 127] */
{
    union {
        int32_t i;
        float f;
    } u = { .i = ((int32_t)k + 127) * (1 << 23) };
    return u.f;
}

static inline float exp32(float x)
{
    float clamped = x < -104.0F ? -104.0F : x > 89.0F ? 89.0F : x;
    float in = clamped == clamped ? clamped : 0.0F; /* a NaN must not reach the conversion to int */
    float r, k = exp32_reduce_(in, &r);
    float half = nearbyintf(0.5F * k); /* 2^k in two factors: k may be 128, or below -126 */
    float y = exp32_power_(half) * (1.0F + exp32_series_(r)) * exp32_power_(k - half);
    return x == x ? y : x;
}

/* e^x - 1 without cancellation near 0; Inf above 88. */
static inline float expm1_32(float x)
{
    float clamped = x < -30.0F ? -30.0F : x > 88.0F ? 88.0F : x;
    float in = clamped == clamped ? clamped : 0.0F;
    float r, k = exp32_reduce_(in, &r);
    float scale = exp32_power_(k);
    float y = scale * exp32_series_(r) + (scale - 1.0F);
    y = x > 88.0F ? HUGE_VALF : y;
    return x == x ? y : x;
}

static inline float tanh32(float x)
{
    float two = x + x;
    float t = expm1_32(two > 40.0F ? 40.0F : two);
    return t / (t + 2.0F);
}

static inline float sigmoid32(float x)
{
    return 1.0F / (1.0F + exp32(-x));
}

/* Natural logarithm: x = 2^k m with m in [sqrt(1/2), sqrt(2)), log m = 2 atanh((m-1)/(m+1)).
 * log32(0) is -Inf, of a negative NaN; subnormals count as 0. */
static inline float log32(float x)
{
    union {
        float f;
        uint32_t i;
    } u = { .f = x };
    uint32_t shifted = u.i + (0x3F800000U - 0x3F3504F3U); /* sqrt(1/2) becomes 1 */
    float k = (float)((int32_t)(shifted >> 23) - 127);
    u.i = (shifted & 0x007FFFFFU) + 0x3F3504F3U;
    float s = (u.f - 1.0F) / (u.f + 1.0F), z = s * s;
    float p = 2.0F / 9;
    p = p * z + 2.0F / 7;
    p = p * z + 2.0F / 5;
    p = p * z + 2.0F / 3;
    float y = k * 0.693359375F + (k * -2.12194440e-4F + (p * z * s + 2.0F * s));
    y = x < 1.17549435e-38F ? -HUGE_VALF : y;
    y = x < 0.0F ? NAN : y;
    return x > 3.4e38F || x != x ? x : y;
}

#endif
