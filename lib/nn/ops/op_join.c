/* Add and Concatenate: several inputs, one output. */
#include <string.h>

#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"

/* ---- Add: from the first input to the last ---- */

void op_add_forward(const struct op_ctx *c)
{
    memcpy(c->y, c->x[0], op_elements(c) * sizeof(*c->y));
    for (size_t k = 1; k < c->l->nin; k++)
        kernel_add(c->x[k], c->y, op_elements(c));
}

/* Each input's gradient is dy; the first may be in its place. */
void op_add_backward(const struct op_ctx *c)
{
    for (size_t k = 0; k < c->l->nin; k++)
        if (c->dx[k] != NULL && c->dx[k] != c->dy)
            memcpy(c->dx[k], c->dy, op_elements(c) * sizeof(*c->dy));
}

/* ---- Concatenate: an example is rows of the axes from the joined one on, one part from each input ---- */

static size_t part_floats(const struct shape *s, int axis)
{
    size_t n = 1;
    for (int i = axis; i < s->rank; i++)
        n *= (size_t)s->dim[i];
    return n;
}

/* Copies input k to its parts of the output, or back. */
static void copy_parts(const struct op_ctx *c, size_t k, size_t before, const float *from, float *to, bool joins)
{
    int axis = concatenate_axis(c->l);
    size_t part = part_floats(&c->l->in[k], axis), whole = part_floats(&c->l->out, axis);
    size_t rows = c->n * shape_elements(&c->l->out) / whole;
    for (size_t r = 0; r < rows; r++)
        memcpy(to + (joins ? r * whole + before : r * part), from + (joins ? r * part : r * whole + before),
               part * sizeof(*to));
}

void op_concatenate_forward(const struct op_ctx *c)
{
    size_t before = 0;
    for (size_t k = 0; k < c->l->nin; k++) {
        copy_parts(c, k, before, c->x[k], c->y, true);
        before += part_floats(&c->l->in[k], concatenate_axis(c->l));
    }
}

void op_concatenate_backward(const struct op_ctx *c)
{
    size_t before = 0;
    for (size_t k = 0; k < c->l->nin; k++) {
        if (c->dx[k] != NULL)
            copy_parts(c, k, before, c->dy, c->dx[k], false);
        before += part_floats(&c->l->in[k], concatenate_axis(c->l));
    }
}
