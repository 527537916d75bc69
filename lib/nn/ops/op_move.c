/* Permute and RepeatVector. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"

/* ---- Permute ---- */

struct axis_move { /* an axis of the output: its size, and the steps to its next element in the input and the output */
    size_t n, in, out;
};

enum { TILE = 16 };

/* Two axes, in tiles that stay in the cache. */
static void transpose(const float *x, const struct axis_move *row, const struct axis_move *column, float *y)
{
    for (size_t r = 0; r < row->n; r += TILE)
        for (size_t c = 0; c < column->n; c += TILE)
            for (size_t i = r; i < MIN(r + TILE, row->n); i++)
                for (size_t k = c; k < MIN(c + TILE, column->n); k++)
                    y[i * row->out + k * column->out] = x[i * row->in + k * column->in];
}

/* One example: axis i of y is axis[i] of x. Calls transpose() for the last axis of both, at all places of the others.
 */
static void permute(const float *x, const struct shape *from, const struct shape *to, const int *axis, float *y)
{
    const struct axis_move none = { .n = 1 };
    struct axis_move moves[SHAPE_MAX_RANK] = { 0 }, row = none;
    size_t step[SHAPE_MAX_RANK] = { 0 }, at[SHAPE_MAX_RANK] = { 0 }, in = 1, out = 1;
    const int last = to->rank - 1;
    for (int i = last; i >= 0; i--) {
        step[i] = in;
        in *= (size_t)from->dim[i];
    }
    for (int i = last; i >= 0; i--) {
        moves[i] = (struct axis_move){ .n = (size_t)to->dim[i], .in = step[axis[i]], .out = out };
        out *= moves[i].n;
    }
    for (int i = 0; i < last; i++)
        if (axis[i] == last) {
            row = moves[i];
            moves[i] = none;
        }
    for (int i = 0; i >= 0;) {
        size_t origin = 0, place = 0;
        for (int k = 0; k < last; k++) {
            origin += at[k] * moves[k].in;
            place += at[k] * moves[k].out;
        }
        transpose(x + origin, &row, &moves[last], y + place);
        for (i = last - 1; i >= 0 && ++at[i] == moves[i].n; i--)
            at[i] = 0;
    }
}

void op_permute_forward(const struct op_ctx *c)
{
    const struct permute *own = c->l->own;
    size_t each = shape_elements(&c->l->out);
    for (size_t i = 0; i < c->n; i++)
        permute(c->x[0] + i * each, &c->l->in[0], &c->l->out, own->axis, c->y + i * each);
}

void op_permute_backward(const struct op_ctx *c)
{
    const struct permute *own = c->l->own;
    size_t each = shape_elements(&c->l->out);
    int back[SHAPE_MAX_RANK];
    for (int i = 0; i < own->rank; i++)
        back[own->axis[i]] = i;
    for (size_t i = 0; i < c->n && c->dx[0] != NULL; i++)
        permute(c->dy + i * each, &c->l->out, &c->l->in[0], back, c->dx[0] + i * each);
}

/* ---- RepeatVector ---- */

void op_repeat_vector_forward(const struct op_ctx *c)
{
    size_t each = op_channels(c), times = (size_t)c->l->arg[REPEAT_VECTOR_N];
    for (size_t i = 0; i < c->n * times; i++)
        memcpy(c->y + i * each, c->x[0] + i / times * each, each * sizeof(float));
}

void op_repeat_vector_backward(const struct op_ctx *c)
{
    size_t each = op_channels(c), times = (size_t)c->l->arg[REPEAT_VECTOR_N];
    for (size_t i = 0; i < c->n && c->dx[0] != NULL; i++)
        kernel_sum_rows(c->dy + i * times * each, c->dx[0] + i * each, times, each);
}
