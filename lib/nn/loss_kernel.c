#include "nn/loss_kernel.h"

#include "base/mem.h"
#include "nn/row.h"

static const float EPSILON = 1e-7F; /* keras.config.epsilon() */
enum { BLOCK = 4096 };              /* sums: float lanes within a block, blocks in double */

#define LOSS_ROW(name)                                                                             \
    double name(UNUSED const struct loss_coef *k, UNUSED const float *labels, UNUSED int32_t label, const float *pred, \
                size_t cols, float scale, UNUSED float *probs, float *d)

static inline float sign(float x)
{
    return x > 0 ? 1.0F : x < 0 ? -1.0F : x;
}

static inline float clip(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static inline bool clipped(float p, float high)
{
    return p < EPSILON || p > high;
}

/* ---- losses that are a sum or mean of f(t, p) over the last axis ----
 * Defines name_row from the functions f and slope, each (k, t, p) -> float. `share` is 1 for a sum,
 * 1 / cols for a mean. */
#define ELEMENT_LOSS(name, share)                                                                  \
    KERNEL LOSS_ROW(name##_row)                                                                    \
    {                                                                                              \
        const struct loss_coef c = *k;                                                             \
        double total = 0;                                                                          \
        for (size_t at = 0; at < cols; at += BLOCK) {                                              \
            const size_t end = MIN(cols, at + BLOCK);                                              \
            float lane[KERNEL_LANES] = { 0 };                                                      \
            size_t i = at;                                                                         \
            for (; i + KERNEL_LANES <= end; i += KERNEL_LANES)                                     \
                for (size_t j = 0; j < KERNEL_LANES; j++)                                          \
                    lane[j] += name##_value(&c, labels[i + j], pred[i + j]);                       \
            for (; i < end; i++)                                                                   \
                lane[i % KERNEL_LANES] += name##_value(&c, labels[i], pred[i]);                    \
            for (size_t j = 0; j < KERNEL_LANES; j++)                                              \
                total += (double)lane[j];                                                          \
        }                                                                                          \
        const float factor = (float)(share) * scale;                                               \
        for (size_t i = 0; d != NULL && i < cols; i++)                                             \
            d[i] = factor * name##_slope(&c, labels[i], pred[i]);                                  \
        return total * (share);                                                                    \
    }
#define ELEMENT(name) static inline float name(UNUSED const struct loss_coef *k, UNUSED float t, UNUSED float p)
#define MEAN (1.0 / (double)cols)
#define SUM 1.0

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
    return 100 * fabsf(p - t) / fmaxf(fabsf(t), EPSILON);
}

ELEMENT(mape_slope)
{
    return 100 * sign(p - t) / fmaxf(fabsf(t), EPSILON);
}
ELEMENT_LOSS(mape, MEAN)

ELEMENT(msle_value)
{
    float diff = log32((p > EPSILON || p != p ? p : EPSILON) + 1) - log32((t > EPSILON ? t : EPSILON) + 1);
    return diff * diff;
}

ELEMENT(msle_slope)
{
    float diff = log32((p > EPSILON || p != p ? p : EPSILON) + 1) - log32((t > EPSILON ? t : EPSILON) + 1);
    return p < EPSILON ? 0.0F : 2 * diff / (p + 1);
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
    return p - t * log32(p + EPSILON);
}

ELEMENT(poisson_slope)
{
    return 1 - t / (p + EPSILON);
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
    float ct = clip(t, EPSILON, 1), cp = clip(p, EPSILON, 1);
    return ct * log32(ct / cp);
}

ELEMENT(kl_slope)
{
    return clipped(p, 1) ? 0.0F : -clip(t, EPSILON, 1) / p;
}
ELEMENT_LOSS(kl, SUM)

static inline float smooth_binary(const struct loss_coef *k, float t)
{
    return t * (1 - k->smoothing) + 0.5F * k->smoothing;
}

static inline float bce_of(float t, float p)
{
    float q = clip(p, EPSILON, 1 - EPSILON);
    return -(t * log32(q) + (1 - t) * log32(1 - q));
}

static inline float bce_slope_of(float t, float p)
{
    return clipped(p, 1 - EPSILON) ? 0.0F : (p - t) / (p * (1 - p));
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

/* ---- losses of a whole row ---- */

/* -cos(t, p); norms are at least epsilon */
LOSS_ROW(cosine_row)
{
    double tt = 0, pp = 0, tp = 0;
    for (size_t i = 0; i < cols; i++) {
        tt += (double)labels[i] * (double)labels[i];
        pp += (double)pred[i] * (double)pred[i];
        tp += (double)labels[i] * (double)pred[i];
    }
    const bool tiny = sqrt(pp) < (double)EPSILON;
    const double nt = fmax(sqrt(tt), (double)EPSILON), np = tiny ? (double)EPSILON : sqrt(pp);
    const double cosine = tp / (nt * np);
    for (size_t i = 0; d != NULL && i < cols; i++)
        d[i] = (float)(-(double)scale * ((double)labels[i] / nt - (tiny ? 0 : cosine * (double)pred[i] / np)) / np);
    return -cosine;
}

/* max(max((1 - t) p) - sum(t p) + 1, 0); ties of the inner maximum share its gradient, as in TensorFlow */
LOSS_ROW(categorical_hinge_row)
{
    float most = -HUGE_VALF;
    double right = 0;
    size_t ties = 0;
    for (size_t i = 0; i < cols; i++) {
        const float wrong = (1 - labels[i]) * pred[i];
        right += (double)(labels[i] * pred[i]);
        ties = wrong > most ? 1 : ties + (wrong == most);
        most = wrong > most || wrong != wrong ? wrong : most;
    }
    const double margin = (double)most - right + 1;
    for (size_t i = 0; d != NULL && i < cols; i++) {
        const bool top = (1 - labels[i]) * pred[i] == most;
        d[i] = margin < 0 ? 0.0F : scale * ((top ? (1 - labels[i]) / (float)ties : 0) - labels[i]);
    }
    return margin < 0 ? 0 : margin;
}

static inline float smooth_class(const struct loss_coef *k, float t, size_t cols)
{
    return t * (1 - k->smoothing) + k->smoothing / (float)cols;
}

/* Shared by cce and its focal form: q = p / sum(p), each term f(t, q); the gradient goes back through the
 * division: d_i = (f'_i - sum_j f'_j q_j) / sum(p). */
typedef float class_fn(const struct loss_coef *k, float t, float q);

static inline double normalised_row(const struct loss_coef *k, const float *labels, const float *pred, size_t cols,
                                    float scale, float *d, class_fn *value, class_fn *slope)
{
    const float sum = row_sum(pred, cols);
    double total = 0, dot = 0;
    for (size_t i = 0; i < cols; i++) {
        const float q = pred[i] / sum, t = smooth_class(k, labels[i], cols);
        total += (double)value(k, t, q);
        dot += (double)(slope(k, t, q) * q);
    }
    for (size_t i = 0; d != NULL && i < cols; i++) {
        const float q = pred[i] / sum, t = smooth_class(k, labels[i], cols);
        d[i] = scale * (slope(k, t, q) - (float)dot) / sum;
    }
    return total;
}

ELEMENT(cce_value)
{
    return -t * log32(clip(p, EPSILON, 1 - EPSILON));
}

ELEMENT(cce_slope)
{
    return clipped(p, 1 - EPSILON) ? 0.0F : -t / p;
}

LOSS_ROW(cce_row)
{
    return normalised_row(k, labels, pred, cols, scale, d, cce_value, cce_slope);
}

ELEMENT(categorical_focal_value)
{
    float q = clip(p, EPSILON, 1 - EPSILON);
    return -k->alpha * powf(1 - q, k->gamma) * t * log32(q);
}

ELEMENT(categorical_focal_slope)
{
    if (clipped(p, 1 - EPSILON))
        return 0;
    float weaker = k->gamma == 0 ? 0.0F : k->gamma * powf(1 - p, k->gamma - 1) * log32(p);
    return k->alpha * t * (weaker - powf(1 - p, k->gamma) / p);
}

LOSS_ROW(categorical_focal_row)
{
    return normalised_row(k, labels, pred, cols, scale, d, categorical_focal_value, categorical_focal_slope);
}

/* out (unless NULL) = e^(x - most); returns the sum. out may equal x. */
static inline float exponentials(const float *x, size_t cols, float most, float *out)
{
    if (out == NULL)
        return row_sum_exp(x, cols, most);
    IN_PLACE for (size_t i = 0; i < cols; i++)
        out[i] = exp32(x[i] - most);
    return row_sum(out, cols);
}

LOSS_ROW(categorical_focal_logits_row)
{
    const float most = row_max(pred, cols), sum = exponentials(pred, cols, most, NULL);
    double total = 0, dot = 0;
    for (size_t i = 0; i < cols; i++) {
        const float q = exp32(pred[i] - most) / sum, t = smooth_class(k, labels[i], cols);
        total += (double)categorical_focal_value(k, t, q);
        dot += (double)(categorical_focal_slope(k, t, q) * q);
    }
    for (size_t i = 0; d != NULL && i < cols; i++) {
        const float q = exp32(pred[i] - most) / sum, t = smooth_class(k, labels[i], cols);
        d[i] = scale * q * (categorical_focal_slope(k, t, q) - (float)dot);
    }
    return total;
}

/* -sum t log softmax(x) = sum t (log sum e^x - x); gradient sum(t) softmax(x) - t */
KERNEL LOSS_ROW(cce_logits_row)
{
    float *out = probs != NULL ? probs : d;
    const float most = row_max(pred, cols);
    double weight = 0, dot = 0;
    for (size_t i = 0; i < cols; i++) {
        const float t = smooth_class(k, labels[i], cols);
        weight += (double)t;
        dot += (double)t * (double)(pred[i] - most);
    }
    const float sum = exponentials(pred, cols, most, out);
    for (size_t i = 0; out != NULL && i < cols; i++)
        out[i] /= sum;
    for (size_t i = 0; d != NULL && i < cols; i++)
        d[i] = scale * ((float)weight * out[i] - smooth_class(k, labels[i], cols));
    return weight * (double)log32(sum) - dot;
}

static double bad_label(size_t cols, float *d)
{
    for (size_t i = 0; d != NULL && i < cols; i++)
        d[i] = NAN;
    return (double)NAN;
}

KERNEL LOSS_ROW(scce_logits_row)
{
    float *out = probs != NULL ? probs : d;
    const bool known = label >= 0 && (size_t)label < cols;
    const float most = row_max(pred, cols), right = known ? pred[label] - most : 0;
    const float sum = exponentials(pred, cols, most, out);
    for (size_t i = 0; out != NULL && i < cols; i++)
        out[i] /= sum;
    if (!known)
        return bad_label(cols, d);
    for (size_t i = 0; d != NULL && i < cols; i++)
        d[i] = scale * out[i];
    if (d != NULL)
        d[label] -= scale;
    return (double)(log32(sum) - right);
}

/* TensorFlow takes log(clip(p)) for logits: -log(q_label / sum q), q = clip(p) */
LOSS_ROW(scce_row)
{
    if (label < 0 || (size_t)label >= cols)
        return bad_label(cols, d);
    float sum = 0, right = clip(pred[label], EPSILON, 1 - EPSILON);
    for (size_t i = 0; i < cols; i++)
        sum += clip(pred[i], EPSILON, 1 - EPSILON);
    for (size_t i = 0; d != NULL && i < cols; i++) {
        const float g = 1 / sum - (i == (size_t)label ? 1 / right : 0.0F);
        d[i] = clipped(pred[i], 1 - EPSILON) ? 0.0F : scale * g;
    }
    return (double)(log32(sum) - log32(right));
}
