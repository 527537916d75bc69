/* Concatenate: an example is rows of the axes from the joined one on, one part from each input. */
#include <string.h>

#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"

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
