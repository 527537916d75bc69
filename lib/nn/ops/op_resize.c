/* ZeroPadding, Cropping, UpSampling: rows of positions are copied, or added up. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"

/* Heights, widths and channels of both sides; a sequence has height 1. */
struct sizes {
    size_t in[WINDOW_AXES], out[WINDOW_AXES], channels;
};

static struct sizes sizes_of(const struct layer *l)
{
    bool image = l->in[0].rank == 3;
    int width = l->in[0].rank - 2;
    return (struct sizes){ .in = { image ? (size_t)l->in[0].dim[0] : 1, (size_t)l->in[0].dim[width] },
                           .out = { image ? (size_t)l->out.dim[0] : 1, (size_t)l->out.dim[width] },
                           .channels = (size_t)layer_channels(l) };
}

/* ---- ZeroPadding, Cropping: one image lies within the other ---- */

/* Copies the smaller image from or to its place in the larger one. */
static void copy_inner(const struct op_ctx *c, bool crops, const float *from, float *to, bool into_larger)
{
    const struct margins *m = c->l->own;
    const struct sizes s = sizes_of(c->l);
    const size_t *small = crops ? s.out : s.in, *large = crops ? s.in : s.out;
    size_t run = small[WINDOW_WIDTH] * s.channels;
    for (size_t i = 0; i < c->n * small[WINDOW_HEIGHT]; i++) {
        size_t image = i / small[WINDOW_HEIGHT], row = i % small[WINDOW_HEIGHT] + (size_t)m->at[WINDOW_HEIGHT][0];
        size_t outer =
            ((image * large[WINDOW_HEIGHT] + row) * large[WINDOW_WIDTH] + (size_t)m->at[WINDOW_WIDTH][0]) * s.channels;
        memcpy(to + (into_larger ? outer : i * run), from + (into_larger ? i * run : outer), run * sizeof(*to));
    }
}

void op_zero_padding_forward(const struct op_ctx *c)
{
    memset(c->y, 0, c->n * shape_elements(&c->l->out) * sizeof(float));
    copy_inner(c, false, c->x[0], c->y, true);
}

void op_zero_padding_backward(const struct op_ctx *c)
{
    if (c->dx[0] != NULL)
        copy_inner(c, false, c->dy, c->dx[0], false);
}

void op_cropping_forward(const struct op_ctx *c)
{
    copy_inner(c, true, c->x[0], c->y, false);
}

void op_cropping_backward(const struct op_ctx *c)
{
    if (c->dx[0] == NULL)
        return;
    memset(c->dx[0], 0, op_elements(c) * sizeof(float));
    copy_inner(c, true, c->dy, c->dx[0], true);
}

/* ---- UpSampling ---- */

/* The position of the input that output position i, of all examples, repeats. */
static size_t source_of(const struct layer *l, const struct sizes *s, size_t i)
{
    const struct scales *own = l->own;
    size_t column = i % s->out[WINDOW_WIDTH] / (size_t)own->by[WINDOW_WIDTH], line = i / s->out[WINDOW_WIDTH];
    size_t row = line % s->out[WINDOW_HEIGHT] / (size_t)own->by[WINDOW_HEIGHT], image = line / s->out[WINDOW_HEIGHT];
    return (image * s->in[WINDOW_HEIGHT] + row) * s->in[WINDOW_WIDTH] + column;
}

void op_up_sampling_forward(const struct op_ctx *c)
{
    const struct sizes s = sizes_of(c->l);
    size_t n = c->n * s.out[WINDOW_HEIGHT] * s.out[WINDOW_WIDTH];
    for (size_t i = 0; i < n; i++)
        memcpy(c->y + i * s.channels, c->x[0] + source_of(c->l, &s, i) * s.channels, s.channels * sizeof(float));
}

void op_up_sampling_backward(const struct op_ctx *c)
{
    const struct sizes s = sizes_of(c->l);
    size_t n = c->n * s.out[WINDOW_HEIGHT] * s.out[WINDOW_WIDTH];
    if (c->dx[0] == NULL)
        return;
    memset(c->dx[0], 0, op_elements(c) * sizeof(float));
    for (size_t i = 0; i < n; i++)
        kernel_add(c->dy + i * s.channels, c->dx[0] + source_of(c->l, &s, i) * s.channels, s.channels);
}
