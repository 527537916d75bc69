/* PReLU: y = x where x > 0, alpha x where it is less. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"

enum { ALPHA_VAR };

/* Alpha as long as an example, and its gradient likewise. */
size_t op_prelu_scratch(const struct layer *l, size_t max_n UNUSED, bool training)
{
    return (training ? 2 : 1) * shape_elements(&l->in[0]);
}

/* The value of alpha that counts for an element of an example: shared axes have size 1. */
static size_t alpha_of(const struct layer *l, size_t element)
{
    const struct prelu *own = l->own;
    size_t at = 0, step = 1;
    for (int i = l->in[0].rank - 1; i >= 0; i--) {
        size_t n = (size_t)l->in[0].dim[i], alphas = (size_t)own->alpha.dim[i];
        at += element % n % alphas * step;
        step *= alphas;
        element /= n;
    }
    return at;
}

KERNEL static void prelu(const float *restrict x, const float *restrict alpha, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] > 0 ? x[i] : alpha[i] * x[i];
}

void op_prelu_forward(const struct op_ctx *c)
{
    size_t each = shape_elements(&c->l->in[0]);
    for (size_t i = 0; i < each; i++)
        c->scratch[i] = c->w[ALPHA_VAR][alpha_of(c->l, i)];
    for (size_t i = 0; i < c->n; i++)
        prelu(c->x[0] + i * each, c->scratch, c->y + i * each, each);
}

/* At 0 neither side counts, as in Keras. */
KERNEL static void prelu_input_gradient(const float *restrict x, const float *restrict alpha, const float *dy,
                                        float *dx, size_t n)
{
    KERNEL_LOOP
    for (size_t i = 0; i < n; i++)
        dx[i] = dy[i] * (x[i] > 0 ? 1.0F : x[i] < 0 ? alpha[i] : 0.0F);
}

KERNEL static void prelu_alpha_gradient(const float *restrict x, const float *restrict dy, float *restrict dalpha,
                                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        dalpha[i] += x[i] < 0 ? dy[i] * x[i] : 0.0F;
}

void op_prelu_backward(const struct op_ctx *c)
{
    size_t each = shape_elements(&c->l->in[0]);
    float *dalpha = c->scratch + each;
    if (c->g[ALPHA_VAR] != NULL) {
        const struct prelu *own = c->l->own;
        memset(dalpha, 0, each * sizeof(*dalpha));
        memset(c->g[ALPHA_VAR], 0, shape_elements(&own->alpha) * sizeof(float));
        for (size_t i = 0; i < c->n; i++)
            prelu_alpha_gradient(c->x[0] + i * each, c->dy + i * each, dalpha, each);
        for (size_t i = 0; i < each; i++)
            c->g[ALPHA_VAR][alpha_of(c->l, i)] += dalpha[i];
    }
    for (size_t i = 0; i < c->n && c->dx[0] != NULL; i++)
        prelu_input_gradient(c->x[0] + i * each, c->scratch, c->dy + i * each, c->dx[0] + i * each, each);
}
