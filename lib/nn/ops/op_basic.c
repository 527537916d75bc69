/* Ops without variables: views, activations, Rescaling. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"

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
