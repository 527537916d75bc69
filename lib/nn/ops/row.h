/* row - arithmetic that activations and losses share: reductions of one row, and functions of one float that
 * vectorise inside a KERNEL (tensor/kernel.h). Private to lib/nn. */
#ifndef TRAINYARD_NN_OPS_ROW_H
#define TRAINYARD_NN_OPS_ROW_H

#include "tensor/kernel.h"

/* Element i of the output depends on element i of the inputs only, so the loops may vectorise even when
 * they run in place. */
#if defined(__GNUC__) && !defined(__clang__)
#define IN_PLACE _Pragma("GCC ivdep")
#else
#define IN_PLACE
#endif

/* The greater one; a NaN always wins, so that a bad number is not lost. Several of them vectorise. */
static inline float greater(float a, float b)
{
    float most = b > a ? b : a;
    return b == b ? most : b;
}

/* Largest of a row, n > 0. */
static inline float row_max(const float *x, size_t n)
{
    float most = x[0];
    size_t i = 1;
    if (n >= 2 * KERNEL_LANES) {
        float lane[KERNEL_LANES];
        memcpy(lane, x, sizeof(lane));
        for (i = KERNEL_LANES; i + KERNEL_LANES <= n; i += KERNEL_LANES)
            for (size_t j = 0; j < KERNEL_LANES; j++)
                lane[j] = greater(lane[j], x[i + j]);
        for (size_t j = 0; j < KERNEL_LANES; j++)
            most = greater(most, lane[j]);
    }
    for (; i < n; i++)
        most = greater(most, x[i]);
    return most;
}

static inline float row_sum(const float *x, size_t n)
{
    float sum = 0;
    size_t i = 0;
    if (n >= 2 * KERNEL_LANES) {
        float lane[KERNEL_LANES] = { 0 };
        for (; i + KERNEL_LANES <= n; i += KERNEL_LANES)
            for (size_t j = 0; j < KERNEL_LANES; j++)
                lane[j] += x[i + j];
        for (size_t j = 0; j < KERNEL_LANES; j++)
            sum += lane[j];
    }
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

/* sum of e^(x - most) */
static inline float row_sum_exp(const float *x, size_t n, float most)
{
    float sum = 0;
    size_t i = 0;
    if (n >= 2 * KERNEL_LANES) {
        float lane[KERNEL_LANES] = { 0 };
        for (; i + KERNEL_LANES <= n; i += KERNEL_LANES)
            for (size_t j = 0; j < KERNEL_LANES; j++)
                lane[j] += exp32(x[i + j] - most);
        for (size_t j = 0; j < KERNEL_LANES; j++)
            sum += lane[j];
    }
    for (; i < n; i++)
        sum += exp32(x[i] - most);
    return sum;
}

/* log(1 + e^-|x|); the quotient corrects the rounding of 1 + u (Kahan) */
static inline float log1p_exp32(float x)
{
    float u = exp32(-fabsf(x)), w = 1.0F + u;
    float y = log32(w) * (u / (w - 1.0F));
    return w == 1.0F ? u : y;
}

static inline float softplus32(float x)
{
    return (x < 0 ? 0.0F : x) + log1p_exp32(x);
}

/* Error function, absolute error below 2e-7 (Abramowitz & Stegun 7.1.26). */
static inline float erf32(float x)
{
    float size = fabsf(x), t = 1.0F / (1.0F + 0.3275911F * size);
    float p = t * (0.254829592F + t * (-0.284496736F + t * (1.421413741F + t * (-1.453152027F + t * 1.061405429F))));
    float y = 1.0F - p * exp32(-size * size);
    return x < 0 ? -y : y;
}

#endif
