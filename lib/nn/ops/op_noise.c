/* Dropout, SpatialDropout and GaussianNoise: random numbers while training, nothing otherwise. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/example_rng.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"
#include "tensor/philox.h"

static struct rng noise_of_example(const struct op_ctx *c, size_t i)
{
    return rng_of_example(c, RNG_DROPOUT, c->l->arg[NOISE_SEED], i);
}

bool op_noise_view(const struct layer *l, bool training)
{
    return !training || l->arg[NOISE_RATE] == 0;
}

/* ---- Dropout: kept values are scaled by 1 / (1 - rate), so that inference needs nothing ---- */

/* Of SpatialDropout a mask has one value for each channel. */
static size_t mask_floats(const struct layer *l)
{
    return l->id == LAYER_DROPOUT ? shape_elements(&l->in[0]) : (size_t)layer_channels(l);
}

size_t op_dropout_scratch(const struct layer *l, size_t max_n, bool training)
{
    return op_noise_view(l, training) ? 0 : max_n * mask_floats(l);
}

static void make_mask(const struct op_ctx *c)
{
    const double rate = c->l->arg[NOISE_RATE];
    size_t each = mask_floats(c->l);
    for (size_t i = 0; i < c->n; i++) {
        struct rng r = noise_of_example(c, i);
        philox_mask(&r, rate, (float)(1 / (1 - rate)), c->scratch + i * each, each);
    }
}

static void mask(const struct op_ctx *c, const float *x, float *y)
{
    size_t each = mask_floats(c->l), example = shape_elements(&c->l->in[0]);
    for (size_t at = 0; at < c->n * example; at += each)
        kernel_mul(x + at, c->scratch + at / example * each, y + at, each);
}

void op_dropout_forward(const struct op_ctx *c)
{
    make_mask(c);
    mask(c, c->x[0], c->y);
}

void op_dropout_backward(const struct op_ctx *c)
{
    if (c->dx[0] != NULL)
        mask(c, c->dy, c->dx[0]);
}

/* ---- GaussianNoise ---- */

void op_gaussian_noise_forward(const struct op_ctx *c)
{
    size_t each = shape_elements(&c->l->in[0]);
    const double deviation = c->l->arg[NOISE_RATE];
    for (size_t i = 0; i < c->n; i++) {
        struct rng r = noise_of_example(c, i);
        const float *x = c->x[0] + i * each;
        float *y = c->y + i * each;
        for (size_t k = 0; k < each; k++)
            y[k] = x[k] + (float)(deviation * rng_normal(&r));
    }
}

void op_gaussian_noise_backward(const struct op_ctx *c)
{
    if (c->dx[0] != NULL && c->dx[0] != c->dy)
        memcpy(c->dx[0], c->dy, op_elements(c) * sizeof(float));
}
