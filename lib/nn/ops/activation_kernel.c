/* Vectorised kernels of the activations, forward and backward. */
#include "nn/ops/activation_kernel.h"

#include "base/mem.h"
#include "nn/ops/row.h"

/* Defines name_forward and name_backward from f(a, x) and its derivative slope(a, x, y). */
#define ELEMENTWISE(name, f, slope)                                                                                    \
    KERNEL void name##_forward(UNUSED const struct activation *a, const float *in, float *out, size_t rows,            \
                               size_t cols)                                                                            \
    {                                                                                                                  \
        const struct activation p UNUSED = *a;                                                                         \
        const size_t n = rows * cols;                                                                                  \
        IN_PLACE for (size_t i = 0; i < n; i++)                                                                        \
        {                                                                                                              \
            const float x = in[i];                                                                                     \
            out[i] = (f);                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    KERNEL void name##_backward(UNUSED const struct activation *a, const float *in, const float *out, const float *dy, \
                                float *dx, size_t rows, size_t cols)                                                   \
    {                                                                                                                  \
        const struct activation p UNUSED = *a;                                                                         \
        const size_t n = rows * cols;                                                                                  \
        IN_PLACE for (size_t i = 0; i < n; i++)                                                                        \
        {                                                                                                              \
            const float x UNUSED = in[i], y UNUSED = out[i];                                                           \
            dx[i] = dy[i] * (slope);                                                                                   \
        }                                                                                                              \
    }

static const float SELU_SCALE = 1.05070098735548049342F, SELU_ALPHA = 1.67326324235437728481F;

static inline float between(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x; /* NaN stays */
}

/* keras/src/activations/activations.py: max_value above, x from the threshold on, slope * (x - threshold) below */
static inline float relu_of(const struct activation *p, float x)
{
    float y = x < p->threshold ? p->negative_slope * (x - p->threshold) : x;
    return y > p->max_value ? p->max_value : y;
}

static inline float relu_slope(const struct activation *p, float x)
{
    return x >= p->max_value ? 0.0F : x > p->threshold ? 1.0F : p->negative_slope;
}

static inline float gelu_erf_slope(float x)
{
    return 0.5F * (1 + erf32(x * 0.70710678118F)) + x * 0.3989422804F * exp32(-0.5F * x * x);
}

/* tanh(sqrt(2 / pi) (x + 0.044715 x^3)) */
static inline float gelu_tanh_of(float x)
{
    return tanh32(0.7978845608F * (x + 0.044715F * x * x * x));
}

static inline float gelu_tanh_slope(float x)
{
    float t = gelu_tanh_of(x);
    return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * 0.7978845608F * (1 + 3 * 0.044715F * x * x);
}

static inline float silu_slope(float x)
{
    float s = sigmoid32(x);
    return s * (1 + x * (1 - s));
}

static inline float mish_slope(float x)
{
    float t = tanh32(softplus32(x));
    return t + x * (1 - t * t) * sigmoid32(x);
}

static inline float hard_silu_slope(float x)
{
    return x <= -3 ? 0.0F : x >= 3 ? 1.0F : x / 3 + 0.5F;
}

ELEMENTWISE(relu, relu_of(&p, x), relu_slope(&p, x))
ELEMENTWISE(relu6, between(x, 0, 6), y > 0 && y < 6 ? 1.0F : 0.0F)
ELEMENTWISE(leaky_relu, x<0 ? p.negative_slope * x : x, y> 0 ? 1.0F : p.negative_slope)
ELEMENTWISE(elu, x < 0 ? p.negative_slope * expm1_32(x) : x, y < 0 ? y + p.negative_slope : 1.0F)
ELEMENTWISE(selu, SELU_SCALE *(x < 0 ? SELU_ALPHA * expm1_32(x) : x), y < 0 ? y + SELU_SCALE * SELU_ALPHA : SELU_SCALE)
ELEMENTWISE(celu, x < 0 ? p.negative_slope * expm1_32(x / p.negative_slope) : x,
            y < 0 ? y / p.negative_slope + 1 : 1.0F)
ELEMENTWISE(gelu_erf, 0.5F * x * (1 + erf32(x * 0.70710678118F)), gelu_erf_slope(x))
ELEMENTWISE(gelu_tanh, 0.5F * x * (1 + gelu_tanh_of(x)), gelu_tanh_slope(x))
ELEMENTWISE(silu, x *sigmoid32(x), silu_slope(x))
ELEMENTWISE(mish, x *tanh32(softplus32(x)), mish_slope(x))
ELEMENTWISE(sigmoid, sigmoid32(x), y *(1 - y))
ELEMENTWISE(hard_sigmoid, between(x + 3, 0, 6) / 6, y > 0 && y < 1 ? 1.0F / 6 : 0.0F)
ELEMENTWISE(hard_silu, x *(between(x + 3, 0, 6) / 6), hard_silu_slope(x))
ELEMENTWISE(hard_tanh, between(x, -1, 1), y > -1 && y < 1 ? 1.0F : 0.0F)
ELEMENTWISE(log_sigmoid, -softplus32(-x), -expm1_32(y))
ELEMENTWISE(tanh, tanh32(x), 1 - y * y)
ELEMENTWISE(tanh_shrink, x - tanh32(x), tanh32(x) * tanh32(x))
ELEMENTWISE(softplus, softplus32(x), -expm1_32(-y))
ELEMENTWISE(softsign, x / (1 + fabsf(x)), (1 - fabsf(y)) * (1 - fabsf(y)))
ELEMENTWISE(exponential, exp32(x), y)

void gelu_forward(const struct activation *a, const float *x, float *y, size_t rows, size_t cols)
{
    (a->approximate ? gelu_tanh_forward : gelu_erf_forward)(a, x, y, rows, cols);
}

void gelu_backward(const struct activation *a, const float *x, const float *y, const float *dy, float *dx, size_t rows,
                   size_t cols)
{
    (a->approximate ? gelu_tanh_backward : gelu_erf_backward)(a, x, y, dy, dx, rows, cols);
}

void linear_forward(UNUSED const struct activation *a, const float *x, float *y, size_t rows, size_t cols)
{
    if (x != y)
        memmove(y, x, rows * cols * sizeof(*y));
}

void linear_backward(UNUSED const struct activation *a, UNUSED const float *x, UNUSED const float *y, const float *dy,
                     float *dx, size_t rows, size_t cols)
{
    if (dx != dy)
        memmove(dx, dy, rows * cols * sizeof(*dx));
}

KERNEL void softmax_forward(UNUSED const struct activation *a, const float *x, float *y, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++, x += cols, y += cols) {
        const float most = row_max(x, cols);
        IN_PLACE for (size_t j = 0; j < cols; j++) y[j] = exp32(x[j] - most);
        const float sum = row_sum(y, cols);
        for (size_t j = 0; j < cols; j++)
            y[j] /= sum;
    }
}

/* dx = y * (dy - sum(y * dy)) */
KERNEL void softmax_backward(UNUSED const struct activation *a, UNUSED const float *x, const float *y, const float *dy,
                             float *dx, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++, y += cols, dy += cols, dx += cols) {
        float dot = 0;
        for (size_t j = 0; j < cols; j++)
            dot += y[j] * dy[j];
        IN_PLACE for (size_t j = 0; j < cols; j++) dx[j] = y[j] * (dy[j] - dot);
    }
}

KERNEL void log_softmax_forward(UNUSED const struct activation *a, const float *x, float *y, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++, x += cols, y += cols) {
        const float most = row_max(x, cols), shift = most + log32(row_sum_exp(x, cols, most));
        IN_PLACE for (size_t j = 0; j < cols; j++) y[j] = x[j] - shift;
    }
}

/* dx = dy - e^y * sum(dy) */
KERNEL void log_softmax_backward(UNUSED const struct activation *a, UNUSED const float *x, const float *y,
                                 const float *dy, float *dx, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++, y += cols, dy += cols, dx += cols) {
        const float sum = row_sum(dy, cols);
        IN_PLACE for (size_t j = 0; j < cols; j++) dx[j] = dy[j] - exp32(y[j]) * sum;
    }
}
