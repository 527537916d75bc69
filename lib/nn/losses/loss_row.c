/* Losses of a whole row: classes and angles. Those that are sums over elements are in loss_kernel.c. */
#include "base/mem.h"
#include "nn/losses/loss_kernel.h"

/* -cos(t, p); norms are at least epsilon */
LOSS_ROW(cosine_row)
{
    double tt = 0, pp = 0, tp = 0;
    for (size_t i = 0; i < cols; i++) {
        tt += (double)labels[i] * (double)labels[i];
        pp += (double)pred[i] * (double)pred[i];
        tp += (double)labels[i] * (double)pred[i];
    }
    const bool tiny = sqrt(pp) < (double)LOSS_EPSILON;
    const double nt = fmax(sqrt(tt), (double)LOSS_EPSILON), np = tiny ? (double)LOSS_EPSILON : sqrt(pp);
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
    return -t * log32(clip(p, LOSS_EPSILON, 1 - LOSS_EPSILON));
}

ELEMENT(cce_slope)
{
    return clipped(p, 1 - LOSS_EPSILON) ? 0.0F : -t / p;
}

LOSS_ROW(cce_row)
{
    return normalised_row(k, labels, pred, cols, scale, d, cce_value, cce_slope);
}

ELEMENT(categorical_focal_value)
{
    float q = clip(p, LOSS_EPSILON, 1 - LOSS_EPSILON);
    return -k->alpha * powf(1 - q, k->gamma) * t * log32(q);
}

ELEMENT(categorical_focal_slope)
{
    if (clipped(p, 1 - LOSS_EPSILON))
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
    IN_PLACE for (size_t i = 0; i < cols; i++) out[i] = exp32(x[i] - most);
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
    float sum = 0, right = clip(pred[label], LOSS_EPSILON, 1 - LOSS_EPSILON);
    for (size_t i = 0; i < cols; i++)
        sum += clip(pred[i], LOSS_EPSILON, 1 - LOSS_EPSILON);
    for (size_t i = 0; d != NULL && i < cols; i++) {
        const float g = 1 / sum - (i == (size_t)label ? 1 / right : 0.0F);
        d[i] = clipped(pred[i], 1 - LOSS_EPSILON) ? 0.0F : scale * g;
    }
    return (double)(log32(sum) - log32(right));
}
