/* Dot: products of two tensors along one axis of each. An example of input k is seen as (rows, depth), depth being that
 * axis; the output is (rows of the first, rows of the second).
 *
 * Where the axis is not the last one, or rows are normalised, that view is a copy in scratch: values, with normalize
 * the inverse lengths of the rows, in training the gradient of the values.
 */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "nn/ops/row.h"
#include "tensor/gemm.h"

/* Keras's epsilon: rows shorter than it are not made longer than 1e7 times. */
static const float INVERSE_MAX = 1e7F;

struct dot_side {
    size_t rows, depth, after; /* the input is (n, rows / after, depth, after) */
    bool copied, normalized;
    const float *seen; /* (n, rows, depth) */
    float *values, *inverse, *gradient;
};

static struct dot_side dot_side_of(const struct layer *l, size_t k)
{
    const struct shape *s = &l->in[k];
    int axis = dot_axis(l, k);
    struct dot_side d = { .depth = (size_t)s->dim[axis], .after = 1, .normalized = l->arg[DOT_NORMALIZE] != 0 };
    for (int i = axis + 1; i < s->rank; i++)
        d.after *= (size_t)s->dim[i];
    d.rows = shape_elements(s) / d.depth;
    d.copied = d.normalized || d.after > 1;
    return d;
}

/* Of one example, at most: values and gradient, inverse. */
static size_t dot_floats(const struct dot_side *d)
{
    return d->copied ? 2 * d->rows * d->depth + d->rows : 0;
}

size_t op_dot_scratch(const struct layer *l, size_t max_n, bool training UNUSED)
{
    struct dot_side a = dot_side_of(l, 0), b = dot_side_of(l, 1);
    size_t floats;
    return __builtin_mul_overflow(dot_floats(&a) + dot_floats(&b), max_n, &floats) ? SIZE_MAX : floats;
}

static void dot_sides(const struct op_ctx *c, struct dot_side side[2])
{
    float *at = c->scratch;
    for (size_t k = 0; k < 2; k++) {
        struct dot_side *d = &side[k];
        *d = dot_side_of(c->l, k);
        d->seen = d->copied ? at : c->x[k];
        d->values = at;
        d->gradient = at + c->n * d->rows * d->depth;
        d->inverse = d->gradient + c->n * d->rows * d->depth;
        at += c->n * dot_floats(d);
    }
}

/* ---- the view ---- */

/* (n, depth, after) to (n, after, depth), or back */
static void dot_turn(const float *from, float *to, size_t n, size_t depth, size_t after)
{
    for (size_t i = 0; i < n; i++, from += depth * after, to += depth * after)
        for (size_t r = 0; r < after; r++)
            for (size_t d = 0; d < depth; d++)
                to[r * depth + d] = from[d * after + r];
}

static inline float row_dot(const float *a, const float *b, size_t n)
{
    float sum = 0;
    size_t i = 0;
    if (n >= KERNEL_LANES) {
        float lane[KERNEL_LANES] = { 0 };
        for (; i + KERNEL_LANES <= n; i += KERNEL_LANES)
            for (size_t j = 0; j < KERNEL_LANES; j++)
                lane[j] += a[i + j] * b[i + j];
        for (size_t j = 0; j < KERNEL_LANES; j++)
            sum += lane[j];
    }
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static KERNEL void dot_normalize(float *x, float *inverse, size_t rows, size_t depth)
{
    for (size_t r = 0; r < rows; r++, x += depth) {
        float scale = 1.0F / sqrtf(row_dot(x, x, depth));
        inverse[r] = scale < INVERSE_MAX ? scale : INVERSE_MAX;
        for (size_t i = 0; i < depth; i++)
            x[i] *= inverse[r];
    }
}

/* dx = (dx - x (x dx)) inverse, x normalised; the length of a row that is too short is a constant */
static KERNEL void dot_normalize_gradient(const float *restrict x, const float *inverse, float *restrict dx,
                                          size_t rows, size_t depth)
{
    for (size_t r = 0; r < rows; r++, x += depth, dx += depth) {
        float along = inverse[r] < INVERSE_MAX ? row_dot(x, dx, depth) : 0.0F;
        for (size_t i = 0; i < depth; i++)
            dx[i] = (dx[i] - x[i] * along) * inverse[r];
    }
}

static void dot_copy(const struct op_ctx *c, struct dot_side *d, const float *x)
{
    dot_turn(x, d->values, c->n * d->rows / d->after, d->depth, d->after);
    if (d->normalized)
        dot_normalize(d->values, d->inverse, c->n * d->rows, d->depth);
}

/* Back to the input. */
static void dot_copy_gradient(const struct op_ctx *c, const struct dot_side *d, float *dx)
{
    if (d->normalized)
        dot_normalize_gradient(d->values, d->inverse, d->gradient, c->n * d->rows, d->depth);
    dot_turn(d->gradient, dx, c->n * d->rows / d->after, d->after, d->depth);
}

/* ---- products ---- */

static KERNEL void dot_vectors(const float *a, const float *b, float *y, size_t n, size_t depth)
{
    for (size_t i = 0; i < n; i++)
        y[i] = row_dot(a + i * depth, b + i * depth, depth);
}

void op_dot_forward(const struct op_ctx *c)
{
    struct dot_side side[2], *a = &side[0], *b = &side[1];
    dot_sides(c, side);
    for (size_t k = 0; k < 2; k++)
        if (side[k].copied)
            dot_copy(c, &side[k], c->x[k]);
    if (a->rows == 1 && b->rows == 1) {
        dot_vectors(a->seen, b->seen, c->y, c->n, a->depth);
        return;
    }
    for (size_t i = 0; i < c->n; i++)
        gemm_nt(a->seen + i * a->rows * a->depth, b->seen + i * b->rows * b->depth, 0.0F, c->y + i * a->rows * b->rows,
                a->rows, b->rows, a->depth);
}

/* Row i of dx is row i of x times dy[i]. */
static KERNEL void dot_scale(const float *dy, const float *restrict x, float *restrict dx, size_t n, size_t depth)
{
    for (size_t i = 0; i < n; i++, x += depth, dx += depth)
        for (size_t d = 0; d < depth; d++)
            dx[d] = dy[i] * x[d];
}

static void dot_vectors_gradient(const struct op_ctx *c, const struct dot_side side[2], float *const dx[2])
{
    for (size_t k = 0; k < 2; k++)
        if (c->dx[k] != NULL)
            dot_scale(c->dy, side[1 - k].seen, dx[k], c->n, side[k].depth);
}

/* da = dy b, db = dy^T a */
static void dot_rows_gradient(const struct op_ctx *c, const struct dot_side side[2], float *const dx[2])
{
    const struct dot_side *a = &side[0], *b = &side[1];
    for (size_t i = 0; i < c->n; i++) {
        const float *dy = c->dy + i * a->rows * b->rows;
        size_t at = i * a->rows * a->depth, bt = i * b->rows * b->depth;
        if (c->dx[0] != NULL)
            gemm_nn(dy, b->seen + bt, 0.0F, dx[0] + at, a->rows, a->depth, b->rows);
        if (c->dx[1] != NULL)
            gemm_tn(dy, a->seen + at, 0.0F, dx[1] + bt, b->rows, b->depth, a->rows);
    }
}

void op_dot_backward(const struct op_ctx *c)
{
    struct dot_side side[2], *a = &side[0], *b = &side[1];
    dot_sides(c, side);
    float *const dx[2] = { a->copied ? a->gradient : c->dx[0], b->copied ? b->gradient : c->dx[1] };
    (a->rows == 1 && b->rows == 1 ? dot_vectors_gradient : dot_rows_gradient)(c, side, dx);
    for (size_t k = 0; k < 2; k++)
        if (side[k].copied && c->dx[k] != NULL)
            dot_copy_gradient(c, &side[k], c->dx[k]);
}
