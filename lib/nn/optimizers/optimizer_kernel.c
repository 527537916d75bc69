/* The update rules, element by element: the result does not depend on how a vector is cut. */
#include "nn/optimizers/optimizer_kernel.h"

#include "tensor/kernel.h"

#define OPT_KERNEL(name)                                                                                               \
    KERNEL void name(UNUSED const struct opt_coef *c, UNUSED const struct opt_step *step, float *restrict w,           \
                     UNUSED float *restrict s0, UNUSED float *restrict s1, UNUSED float *restrict s2,                  \
                     UNUSED const wire_float *restrict g, size_t n)

OPT_KERNEL(opt_count)
{
    for (size_t i = 0; i < n; i++)
        w[i] += step->ordinals;
}

OPT_KERNEL(opt_sgd)
{
    const float lr = step->lr;
    for (size_t i = 0; i < n; i++)
        w[i] -= lr * g[i];
}

/* m = mu m - lr g; w += m */
OPT_KERNEL(opt_momentum)
{
    const float lr = step->lr, mu = c->momentum;
    for (size_t i = 0; i < n; i++) {
        float m = mu * s0[i] - lr * g[i];
        s0[i] = m;
        w[i] += m;
    }
}

OPT_KERNEL(opt_nesterov)
{
    const float lr = step->lr, mu = c->momentum;
    for (size_t i = 0; i < n; i++) {
        float move = lr * g[i], m = mu * s0[i] - move;
        s0[i] = m;
        w[i] += mu * m - move;
    }
}

/* a = lr sqrt(1 - b2^t) / (1 - b1^t); w -= a m / (sqrt(v) + eps) */
OPT_KERNEL(opt_adam)
{
    const float alpha = step->a, keep_1 = c->keep_1, keep_2 = c->keep_2, epsilon = c->epsilon;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], m = s0[i] + (gi - s0[i]) * keep_1, v = s1[i] + (gi * gi - s1[i]) * keep_2;
        s0[i] = m;
        s1[i] = v;
        w[i] -= m * alpha / (sqrtf(v) + epsilon);
    }
}

OPT_KERNEL(opt_amsgrad)
{
    const float alpha = step->a, keep_1 = c->keep_1, keep_2 = c->keep_2, epsilon = c->epsilon;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], m = s0[i] + (gi - s0[i]) * keep_1, v = s1[i] + (gi * gi - s1[i]) * keep_2;
        float hat = v > s2[i] || v != v ? v : s2[i];
        s0[i] = m;
        s1[i] = v;
        s2[i] = hat;
        w[i] -= m * alpha / (sqrtf(hat) + epsilon);
    }
}

/* a = u' / (1 - prod u'), b = (1 - u) / (1 - prod), c = 1 - b2^t, of nadam_begin() */
OPT_KERNEL(opt_nadam)
{
    const float lr = step->lr, a = step->a, b = step->b, correction = step->c;
    const float keep_1 = c->keep_1, keep_2 = c->keep_2, epsilon = c->epsilon;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], m = s0[i] + (gi - s0[i]) * keep_1, v = s1[i] + (gi * gi - s1[i]) * keep_2;
        s0[i] = m;
        s1[i] = v;
        w[i] -= (a * m + b * gi) * lr / (sqrtf(v / correction) + epsilon);
    }
}

/* a = lr / (1 - b1^t) */
OPT_KERNEL(opt_adamax)
{
    const float a = step->a, keep_1 = c->keep_1, beta_2 = c->beta_2, epsilon = c->epsilon;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], m = s0[i] + (gi - s0[i]) * keep_1;
        float old = beta_2 * s1[i], size = fabsf(gi), u = old >= size ? old : size; /* NaN gradient: NaN */
        s0[i] = m;
        s1[i] = u;
        w[i] -= a * m / (u + epsilon);
    }
}

OPT_KERNEL(opt_lion)
{
    const float lr = step->lr, beta_1 = c->beta_1, keep_1 = c->keep_1, beta_2 = c->beta_2, keep_2 = c->keep_2;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], d = s0[i] * beta_1 + gi * keep_1;
        float sign = d > 0 ? 1.0F : d < 0 ? -1.0F : d; /* 0 and NaN as they are */
        s0[i] = s0[i] * beta_2 + gi * keep_2;
        w[i] -= lr * sign;
    }
}

/* v = rho v + (1 - rho) g^2; w -= lr g / sqrt(v + eps) */
OPT_KERNEL(opt_rmsprop)
{
    const float lr = step->lr, rho = c->rho, keep = c->keep_rho, epsilon = c->epsilon;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], v = rho * s0[i] + keep * (gi * gi);
        s0[i] = v;
        w[i] -= lr * gi / sqrtf(v + epsilon);
    }
}

OPT_KERNEL(opt_rmsprop_momentum)
{
    const float lr = step->lr, rho = c->rho, keep = c->keep_rho, epsilon = c->epsilon, mu = c->momentum;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], v = rho * s0[i] + keep * (gi * gi);
        float m = mu * s1[i] + lr * gi / sqrtf(v + epsilon);
        s0[i] = v;
        s1[i] = m;
        w[i] -= m;
    }
}

/* centered: the variance, v - (average gradient)^2, in the root. A steady gradient makes it 0, and rounding
 * a little less, of which Keras's root is NaN. */
static inline float centered_root(float v, float mean, float epsilon)
{
    float variance = v - mean * mean;
    return sqrtf((variance < 0 ? 0.0F : variance) + epsilon);
}

OPT_KERNEL(opt_rmsprop_centered)
{
    const float lr = step->lr, rho = c->rho, keep = c->keep_rho, epsilon = c->epsilon;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], v = rho * s0[i] + keep * (gi * gi), mean = rho * s1[i] + keep * gi;
        s0[i] = v;
        s1[i] = mean;
        w[i] -= lr * gi / centered_root(v, mean, epsilon);
    }
}

OPT_KERNEL(opt_rmsprop_centered_momentum)
{
    const float lr = step->lr, rho = c->rho, keep = c->keep_rho, epsilon = c->epsilon, mu = c->momentum;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], v = rho * s0[i] + keep * (gi * gi), mean = rho * s1[i] + keep * gi;
        float m = mu * s2[i] + lr * gi / centered_root(v, mean, epsilon);
        s0[i] = v;
        s1[i] = mean;
        s2[i] = m;
        w[i] -= m;
    }
}

OPT_KERNEL(opt_adagrad)
{
    const float lr = step->lr, epsilon = c->epsilon;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], a = s0[i] + gi * gi;
        s0[i] = a;
        w[i] -= lr * gi / sqrtf(a + epsilon);
    }
}

/* s0: accumulated g^2, s1: accumulated move^2 */
OPT_KERNEL(opt_adadelta)
{
    const float lr = step->lr, rho = c->rho, keep = c->keep_rho, epsilon = c->epsilon;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], a = rho * s0[i] + keep * (gi * gi);
        float move = -(sqrtf(s1[i] + epsilon) * gi / sqrtf(a + epsilon));
        s0[i] = a;
        s1[i] = rho * s1[i] + keep * (move * move);
        w[i] += lr * move;
    }
}

/* FTRL-proximal (McMahan'13) as Keras writes it; a and b are n^(-power) before and after, step->a = 1 / lr,
 * step->b = 2 (l2 + beta / (2 lr)). s0: n, s1: z. */
static inline float ftrl_weight(const struct opt_coef *c, const struct opt_step *step, float *z, float w, float g,
                                float a, float b)
{
    float sum = *z + (g + 2 * c->shrinkage * w) - (b - a) * step->a * w;
    float clipped = sum > c->l1 ? c->l1 : sum < -c->l1 ? -c->l1 : sum;
    *z = sum;
    return (clipped - sum) / (b * step->a + step->b);
}

OPT_KERNEL(opt_ftrl) /* power -0.5, the default */
{
    const struct opt_coef coef = *c;
    const struct opt_step st = *step;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], total = s0[i] + gi * gi;
        w[i] = ftrl_weight(&coef, &st, &s1[i], w[i], gi, sqrtf(s0[i]), sqrtf(total));
        s0[i] = total;
    }
}

void opt_ftrl_power(const struct opt_coef *c, const struct opt_step *step, float *restrict w, float *restrict s0,
                    float *restrict s1, UNUSED float *restrict s2, const wire_float *restrict g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float gi = g[i], total = s0[i] + gi * gi;
        w[i] = ftrl_weight(c, step, &s1[i], w[i], gi, powf(s0[i], -c->power), powf(total, -c->power));
        s0[i] = total;
    }
}

KERNEL void opt_decay(float *w, float rate, size_t n)
{
    for (size_t i = 0; i < n; i++)
        w[i] -= w[i] * rate;
}

KERNEL void opt_clip_value(float *g, float limit, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g[i] = g[i] > limit ? limit : g[i] < -limit ? -limit : g[i];
}
