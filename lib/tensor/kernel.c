/* Vectorised loops over floats, compiled for several instruction sets. */
#include "tensor/kernel.h"

KERNEL void kernel_affine(const float *x, float a, float b, float *y, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        y[i] = a * x[i] + b;
}

KERNEL void kernel_axpy(float a, const float *restrict x, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

KERNEL void kernel_mul(const float *x1, const float *x2, float *y, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        y[i] = x1[i] * x2[i];
}

KERNEL void kernel_add(const float *x, float *y, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

KERNEL void kernel_add_row(const float *restrict b, float *restrict y, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++, y += cols) {
        for (size_t c = 0; c < cols; c++)
            y[c] += b[c];
    }
}

KERNEL void kernel_add_row_relu(const float *restrict b, float *restrict y, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++, y += cols) {
        for (size_t c = 0; c < cols; c++) {
            float v = y[c] + b[c];
            y[c] = v < 0.0F ? 0.0F : v; /* a NaN passes, so that divergence is seen */
        }
    }
}

KERNEL void kernel_affine_rows(const float *x, const float *restrict a, const float *restrict b, float *y, size_t rows,
                               size_t cols)
{
    for (size_t r = 0; r < rows; r++, x += cols, y += cols) {
        KERNEL_LOOP
        for (size_t c = 0; c < cols; c++)
            y[c] = a[c] * x[c] + b[c];
    }
}

KERNEL void kernel_sum_rows(const float *restrict x, float *restrict y, size_t rows, size_t cols)
{
    for (size_t c = 0; c < cols; c++)
        y[c] = 0.0F;
    for (size_t r = 0; r < rows; r++, x += cols) {
        for (size_t c = 0; c < cols; c++)
            y[c] += x[c];
    }
}

KERNEL void kernel_sum_square_differences(const float *restrict x, const float *restrict mean, float *restrict y,
                                          size_t rows, size_t cols)
{
    for (size_t c = 0; c < cols; c++)
        y[c] = 0.0F;
    for (size_t r = 0; r < rows; r++, x += cols) {
        for (size_t c = 0; c < cols; c++)
            y[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
    }
}

KERNEL void kernel_relu_backward_sum(const float *restrict y, const float *dy, float *dx, float *restrict sums,
                                     size_t rows, size_t cols)
{
    for (size_t c = 0; c < cols; c++)
        sums[c] = 0.0F;
    for (size_t r = 0; r < rows; r++, y += cols, dy += cols, dx += cols) {
        KERNEL_LOOP
        for (size_t c = 0; c < cols; c++) {
            float v = y[c] > 0.0F ? dy[c] : 0.0F;
            dx[c] = v;
            sums[c] += v;
        }
    }
}

KERNEL void kernel_relu_backward(const float *restrict y, const float *dy, float *dx, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        dx[i] = y[i] > 0.0F ? dy[i] : 0.0F;
}

KERNEL void kernel_from_u8(const uint8_t *restrict x, float a, float b, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a * (float)x[i] + b;
}

/* ---- reductions: KERNEL_LANES partial sums, folded in a fixed order ---- */

enum { BLOCK = 4096 };

static inline double fold(const float lane[KERNEL_LANES])
{
    double total = 0;
    for (int i = 0; i < KERNEL_LANES; i++)
        total += (double)lane[i];
    return total;
}

/* Sums f(x[i]) of at most BLOCK elements. */
#define BLOCK_SUM(name, f)                                                                                             \
    static KERNEL double name(const float *restrict x, size_t n)                                                       \
    {                                                                                                                  \
        float lane[KERNEL_LANES] = { 0 };                                                                              \
        size_t i = 0;                                                                                                  \
        for (; i + KERNEL_LANES <= n; i += KERNEL_LANES) {                                                             \
            for (size_t k = 0; k < KERNEL_LANES; k++)                                                                  \
                lane[k] += f(x[i + k]);                                                                                \
        }                                                                                                              \
        for (size_t k = 0; i + k < n; k++)                                                                             \
            lane[k] += f(x[i + k]);                                                                                    \
        return fold(lane);                                                                                             \
    }

static inline float square(float v)
{
    return v * v;
}
BLOCK_SUM(block_sum_abs, fabsf)
BLOCK_SUM(block_sum_squares, square)

static double sum_blocks(const float *x, size_t n, double (*block)(const float *x, size_t n))
{
    double total = 0;
    for (size_t i = 0; i < n; i += BLOCK)
        total += block(x + i, n - i < BLOCK ? n - i : BLOCK);
    return total;
}

double kernel_sum_abs(const float *x, size_t n)
{
    return sum_blocks(x, n, block_sum_abs);
}

double kernel_sum_squares(const float *x, size_t n)
{
    return sum_blocks(x, n, block_sum_squares);
}

/* Without the sign, the bits of floats are in the order of their values; those of Inf and NaN are the highest. */
enum { BITS_INFINITY = 0x7F800000, BITS_2_64 = 0x5F800000 };

static KERNEL uint32_t count_from(const unsigned char *restrict x, size_t n, uint32_t least)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i * sizeof(bits), sizeof(bits));
        count += (bits & 0x7FFFFFFFU) >= least;
    }
    return count;
}

size_t kernel_argmax(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

static bool all_below(const void *x, size_t n, uint32_t bits)
{
    const unsigned char *bytes = x;
    for (size_t i = 0; i < n; i += BLOCK)
        if (count_from(bytes + i * sizeof(float), n - i < BLOCK ? n - i : BLOCK, bits) > 0)
            return false;
    return true;
}

bool kernel_all_finite(const void *x, size_t n)
{
    return all_below(x, n, BITS_INFINITY);
}

bool kernel_all_squares_finite(const void *x, size_t n)
{
    return all_below(x, n, BITS_2_64);
}
