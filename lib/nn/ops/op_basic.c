/* Ops without variables: views, activations, Dropout, Rescaling. */
#include "base/rng.h"
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"
#include "tensor/philox.h"

bool op_always_view(const struct layer *l UNUSED, bool training UNUSED)
{
    return true;
}

/* ---- activations ---- */

bool op_activation_view(const struct layer *l, bool training UNUSED)
{
    return l->activation.kind == ACT_LINEAR;
}

void op_activation_forward(const struct op_ctx *c)
{
    if (!c->logits)
        activation_forward(&c->l->activation, c->x[0], c->y, op_rows_of(c), op_channels(c));
}

void op_activation_backward(const struct op_ctx *c)
{
    if (!c->logits)
        activation_backward(&c->l->activation, c->x[0], c->y, c->dy, c->dx[0], op_rows_of(c), op_channels(c));
}

/* ---- Dropout: kept values are scaled by 1 / (1 - rate), so that inference needs nothing ---- */

bool op_dropout_view(const struct layer *l, bool training)
{
    return !training || l->arg[DROPOUT_RATE] == 0;
}

size_t op_dropout_scratch(const struct layer *l, size_t max_n, bool training)
{
    return op_dropout_view(l, training) ? 0 : max_n * shape_elements(&l->in[0]);
}

/* An example's mask is named by (seed, epoch, position of the example, node), whatever batch it is in.
 * 24 bits of epoch and 40 of position share the rng's first name. */
static void make_mask(const struct op_ctx *c)
{
    const double rate = c->l->arg[DROPOUT_RATE], given = c->l->arg[DROPOUT_SEED];
    uint64_t seed = isnan(given) ? c->seed : (uint64_t)(int64_t)given;
    size_t each = shape_elements(&c->l->in[0]);

    for (size_t i = 0; i < c->n; i++) {
        uint64_t example = (uint64_t)c->epoch << 40 ^ ((uint64_t)c->position + i);
        struct rng r = rng_at(seed, RNG_DROPOUT, example, c->node);
        philox_mask(&r, rate, (float)(1 / (1 - rate)), c->scratch + i * each, each);
    }
}

void op_dropout_forward(const struct op_ctx *c)
{
    make_mask(c);
    kernel_mul(c->x[0], c->scratch, c->y, op_elements(c));
}

void op_dropout_backward(const struct op_ctx *c)
{
    if (c->dx[0] != NULL)
        kernel_mul(c->dy, c->scratch, c->dx[0], op_elements(c));
}

/* ---- Rescaling: y = x * scale + offset ---- */

size_t op_rescaling_scratch(const struct layer *l, size_t max_n UNUSED, bool training UNUSED)
{
    return rescaling_is_plain(l) ? 0 : 2 * (size_t)layer_channels(l);
}

/* One scale and offset for each channel. */
static void rescale_rows(const struct op_ctx *c, const float *x, const struct values *offset, float *y)
{
    size_t channels = op_channels(c);
    float *a = c->scratch, *b = c->scratch + channels;
    for (size_t i = 0; i < channels; i++) {
        a[i] = values_at(&rescaling_of(c->l)->scale, i);
        b[i] = offset != NULL ? values_at(offset, i) : 0;
    }
    kernel_affine_rows(x, a, b, y, op_rows_of(c), channels);
}

void op_rescaling_forward(const struct op_ctx *c)
{
    const struct rescaling *own = rescaling_of(c->l);
    if (rescaling_is_plain(c->l))
        kernel_affine(c->x[0], values_at(&own->scale, 0), values_at(&own->offset, 0), c->y, op_elements(c));
    else
        rescale_rows(c, c->x[0], &own->offset, c->y);
}

void op_rescaling_backward(const struct op_ctx *c)
{
    if (c->dx[0] == NULL)
        return;
    if (rescaling_is_plain(c->l))
        kernel_affine(c->dy, values_at(&rescaling_of(c->l)->scale, 0), 0.0F, c->dx[0], op_elements(c));
    else
        rescale_rows(c, c->dy, NULL, c->dx[0]);
}
