/* Losses that are a mean over the elements of a row: value and gradient in one vectorised pass. */
#include "nn/losses/loss_kernel.h"

#include "base/mem.h"

enum { BLOCK = 4096 }; /* sums: float lanes within a block, blocks in double */

static inline float sign(float x)
{
    return x > 0 ? 1.0F : x < 0 ? -1.0F : x;
}

/* ---- losses that are a sum or mean of f(t, p) over the last axis ----
 * Defines name_row from the functions f and slope, each (k, t, p) -> float. `share` is 1 for a sum,
 * 1 / cols for a mean. */
#define ELEMENT_LOSS(name, share)                                                                                      \
    KERNEL LOSS_ROW(name##_row)                                                                                        \
    {                                                                                                                  \
        const struct loss_coef c = *k;                                                                                 \
        double total = 0;                                                                                              \
        for (size_t at = 0; at < cols; at += BLOCK) {                                                                  \
            const size_t end = MIN(cols, at + BLOCK);                                                                  \
            float lane[KERNEL_LANES] = { 0 };                                                                          \
            size_t i = at;                                                                                             \
            for (; i + KERNEL_LANES <= end; i += KERNEL_LANES)                                                         \
                for (size_t j = 0; j < KERNEL_LANES; j++)                                                              \
                    lane[j] += name##_value(&c, labels[i + j], pred[i + j]);                                           \
            for (; i < end; i++)                                                                                       \
                lane[i % KERNEL_LANES] += name##_value(&c, labels[i], pred[i]);                                        \
            for (size_t j = 0; j < KERNEL_LANES; j++)                                                                  \
                total += (double)lane[j];                                                                              \
        }                                                                                                              \
        const float factor = (float)(share)*scale;                                                                     \
        for (size_t i = 0; d != NULL && i < cols; i++)                                                                 \
            d[i] = factor * name##_slope(&c, labels[i], pred[i]);                                                      \
        return total * (share);                                                                                        \
    }
#define MEAN (1.0 / (double)cols)
#define SUM  1.0

ELEMENT(mse_value)
{
    return (p - t) * (p - t);
}

ELEMENT(mse_slope)
{
    return 2 * (p - t);
}
ELEMENT_LOSS(mse, MEAN)

ELEMENT(mae_value)
{
    return fabsf(p - t);
}

ELEMENT(mae_slope)
{
    return sign(p - t);
}
ELEMENT_LOSS(mae, MEAN)

ELEMENT(mape_value)
{
    return 100 * fabsf(p - t) / fmaxf(fabsf(t), LOSS_EPSILON);
}

ELEMENT(mape_slope)
{
    return 100 * sign(p - t) / fmaxf(fabsf(t), LOSS_EPSILON);
}
ELEMENT_LOSS(mape, MEAN)

ELEMENT(msle_value)
{
    float diff =
        log32((p > LOSS_EPSILON || p != p ? p : LOSS_EPSILON) + 1) - log32((t > LOSS_EPSILON ? t : LOSS_EPSILON) + 1);
    return diff * diff;
}

ELEMENT(msle_slope)
{
    float diff =
        log32((p > LOSS_EPSILON || p != p ? p : LOSS_EPSILON) + 1) - log32((t > LOSS_EPSILON ? t : LOSS_EPSILON) + 1);
    return p < LOSS_EPSILON ? 0.0F : 2 * diff / (p + 1);
}
ELEMENT_LOSS(msle, MEAN)

ELEMENT(huber_value)
{
    float size = fabsf(p - t);
    return size <= k->delta ? 0.5F * size * size : k->delta * size - 0.5F * k->delta * k->delta;
}

ELEMENT(huber_slope)
{
    return fabsf(p - t) <= k->delta ? p - t : k->delta * sign(p - t);
}
ELEMENT_LOSS(huber, MEAN)

ELEMENT(log_cosh_value)
{
    return fabsf(p - t) + log1p_exp32(2 * (p - t)) - 0.69314718056F;
}

ELEMENT(log_cosh_slope)
{
    return tanh32(p - t);
}
ELEMENT_LOSS(log_cosh, MEAN)

ELEMENT(poisson_value)
{
    return p - t * log32(p + LOSS_EPSILON);
}

ELEMENT(poisson_slope)
{
    return 1 - t / (p + LOSS_EPSILON);
}
ELEMENT_LOSS(poisson, MEAN)

/* 1 - t p */
static inline float hinge_margin(const struct loss_coef *k, float t, float p)
{
    return 1 - (k->binary_labels ? 2 * t - 1 : t) * p;
}

ELEMENT(hinge_value)
{
    float margin = hinge_margin(k, t, p);
    return margin < 0 ? 0.0F : margin;
}

ELEMENT(hinge_slope)
{
    return hinge_margin(k, t, p) < 0 ? 0.0F : -(k->binary_labels ? 2 * t - 1 : t);
}
ELEMENT_LOSS(hinge, MEAN)

ELEMENT(squared_hinge_value)
{
    float margin = hinge_value(k, t, p);
    return margin * margin;
}

ELEMENT(squared_hinge_slope)
{
    return 2 * hinge_value(k, t, p) * hinge_slope(k, t, p);
}
ELEMENT_LOSS(squared_hinge, MEAN)

ELEMENT(kl_value)
{
    float ct = clip(t, LOSS_EPSILON, 1), cp = clip(p, LOSS_EPSILON, 1);
    return ct * log32(ct / cp);
}

ELEMENT(kl_slope)
{
    return clipped(p, 1) ? 0.0F : -clip(t, LOSS_EPSILON, 1) / p;
}
ELEMENT_LOSS(kl, SUM)

static inline float smooth_binary(const struct loss_coef *k, float t)
{
    return t * (1 - k->smoothing) + 0.5F * k->smoothing;
}

static inline float bce_of(float t, float p)
{
    float q = clip(p, LOSS_EPSILON, 1 - LOSS_EPSILON);
    return -(t * log32(q) + (1 - t) * log32(1 - q));
}

static inline float bce_slope_of(float t, float p)
{
    return clipped(p, 1 - LOSS_EPSILON) ? 0.0F : (p - t) / (p * (1 - p));
}

ELEMENT(bce_value)
{
    return bce_of(smooth_binary(k, t), p);
}

ELEMENT(bce_slope)
{
    return bce_slope_of(smooth_binary(k, t), p);
}
ELEMENT_LOSS(bce, MEAN)

/* Focal loss (Lin'17): (1 - p_t)^gamma times the cross-entropy, p_t = t p + (1 - t)(1 - p) */
static inline float focal_weight(const struct loss_coef *k, float t)
{
    return k->balancing ? t * k->alpha + (1 - t) * (1 - k->alpha) : 1.0F;
}

ELEMENT(focal_value)
{
    float ts = smooth_binary(k, t), miss = 1 - (ts * p + (1 - ts) * (1 - p));
    return focal_weight(k, ts) * powf(miss, k->gamma) * bce_of(ts, p);
}

ELEMENT(focal_slope)
{
    float ts = smooth_binary(k, t), miss = 1 - (ts * p + (1 - ts) * (1 - p));
    float weaker = k->gamma == 0 ? 0.0F : -k->gamma * powf(miss, k->gamma - 1) * (2 * ts - 1);
    return focal_weight(k, ts) * (weaker * bce_of(ts, p) + powf(miss, k->gamma) * bce_slope_of(ts, p));
}
ELEMENT_LOSS(focal, MEAN)

LOSS_ROW(focal_logits_row)
{
    double total = 0;
    for (size_t i = 0; i < cols; i++) {
        const float p = sigmoid32(pred[i]), t = labels[i];
        total += (double)focal_value(k, t, p);
        if (d != NULL)
            d[i] = scale / (float)cols * focal_slope(k, t, p) * p * (1 - p);
    }
    return total / (double)cols;
}

/* max(x, 0) - x t + log(1 + e^-|x|) */
KERNEL LOSS_ROW(bce_logits_row)
{
    const struct loss_coef c = *k;
    const float factor = scale / (float)cols;
    double total = 0;
    for (size_t at = 0; at < cols; at += KERNEL_LANES) {
        float lane[KERNEL_LANES] = { 0 };
        const size_t n = MIN(cols - at, KERNEL_LANES);
        for (size_t j = 0; j < n; j++) {
            const float x = pred[at + j], t = smooth_binary(&c, labels[at + j]), y = sigmoid32(x);
            lane[j] = (x < 0 ? 0.0F : x) - x * t + log1p_exp32(x);
            if (probs != NULL)
                probs[at + j] = y;
            if (d != NULL)
                d[at + j] = factor * (y - t);
        }
        for (size_t j = 0; j < n; j++)
            total += (double)lane[j];
    }
    return total / (double)cols;
}
