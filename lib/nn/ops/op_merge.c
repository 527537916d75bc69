/* Add, Subtract, Multiply, Average, Maximum, Minimum: element by element, from the first input to the last.
 *
 * Inputs of another shape than the output are repeated to its shape first: scratch has a part of the output's size for
 * each of them, and in training one more, for a gradient before it is summed to the input's shape.
 *
 * Multiply, Maximum and Minimum may have a mask after their inputs: 0 where the position is padding. There Multiply
 * gives 0, and Maximum and Minimum the first input. With a mask for each input they join those that are not padding.
 */
#include "nn/layers/layer_rows.h"
#include "nn/ops/broadcast.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"

struct merge { /* one node in one pass; all in the shape of the output */
    const float *x[LAYER_INPUTS_MAX];
    size_t nin, elements;
    float *spare;              /* the part for a gradient */
    const float *mask;         /* of each row; NULL: none */
    const float *const *masks; /* of each input, in place of `mask`; NULL: none */
};

struct merge_row {
    void (*join)(const float *x, float *y, size_t n); /* y = y with x */
    void (*finish)(float *y, size_t n, size_t nin);   /* may be NULL */
    /* Of input k; dx holds the gradient of the output before. NULL: that is it. */
    void (*gradient)(const struct merge *m, size_t k, float *dx);
};

/* ---- Subtract, Multiply, Average ---- */

static void merge_subtract(const float *x, float *y, size_t n)
{
    kernel_axpy(-1, x, y, n);
}

static void merge_subtract_gradient(const struct merge *m, size_t k, float *dx)
{
    if (k > 0)
        kernel_affine(dx, -1, 0, dx, m->elements);
}

static void merge_multiply(const float *x, float *y, size_t n)
{
    kernel_mul(x, y, y, n);
}

/* Of the others: no division, as an input may be 0. */
static void merge_multiply_gradient(const struct merge *m, size_t k, float *dx)
{
    for (size_t i = 0; i < m->nin; i++)
        if (i != k)
            kernel_mul(m->x[i], dx, dx, m->elements);
}

static KERNEL void merge_divide(float *y, size_t n, size_t nin)
{
    float by = (float)nin;
    for (size_t i = 0; i < n; i++)
        y[i] /= by;
}

static void merge_average_gradient(const struct merge *m, size_t k UNUSED, float *dx)
{
    merge_divide(dx, m->elements, m->nin);
}

/* ---- Maximum, Minimum: sign 1 or -1 ---- */

/* A NaN wins, so that a bad number is not lost. */
static KERNEL void merge_best(float sign, const float *restrict x, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = sign * y[i] >= sign * x[i] || y[i] != y[i] ? y[i] : x[i];
}

static void merge_maximum(const float *x, float *y, size_t n)
{
    merge_best(1, x, y, n);
}

static void merge_minimum(const float *x, float *y, size_t n)
{
    merge_best(-1, x, y, n);
}

/* dx = 0 where another input has the better element */
static KERNEL void merge_lose(float sign, const float *restrict x, const float *restrict other, float *restrict dx,
                              size_t n)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = sign * other[i] > sign * x[i] ? 0.0F : dx[i];
}

/* ... or an equal one */
static KERNEL void merge_lose_ties(float sign, const float *restrict x, const float *restrict other, float *restrict dx,
                                   size_t n)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = sign * other[i] >= sign * x[i] ? 0.0F : dx[i];
}

/* Of equal elements the first has the gradient. */
static void merge_extreme_gradient(const struct merge *m, size_t k, float sign, float *dx)
{
    for (size_t i = 0; i < m->nin; i++) {
        if (i < k)
            merge_lose_ties(sign, m->x[k], m->x[i], dx, m->elements);
        else if (i > k)
            merge_lose(sign, m->x[k], m->x[i], dx, m->elements);
    }
}

static void merge_maximum_gradient(const struct merge *m, size_t k, float *dx)
{
    merge_extreme_gradient(m, k, 1, dx);
}

static void merge_minimum_gradient(const struct merge *m, size_t k, float *dx)
{
    merge_extreme_gradient(m, k, -1, dx);
}

/* ---- all of them ---- */

static const struct merge_row merge_rows[LAYER_COUNT] = {
    [LAYER_ADD] = { kernel_add, NULL, NULL },
    [LAYER_SUBTRACT] = { merge_subtract, NULL, merge_subtract_gradient },
    [LAYER_MULTIPLY] = { merge_multiply, NULL, merge_multiply_gradient },
    [LAYER_AVERAGE] = { kernel_add, merge_divide, merge_average_gradient },
    [LAYER_MAXIMUM] = { merge_maximum, NULL, merge_maximum_gradient },
    [LAYER_MINIMUM] = { merge_minimum, NULL, merge_minimum_gradient },
};

static bool merge_repeats(const struct layer *l, size_t k)
{
    return !shape_eq(&l->in[k], &l->out);
}

size_t op_merge_scratch(const struct layer *l, size_t max_n, bool training)
{
    size_t parts = 0, floats = 0;
    for (size_t k = 0; k < l->nin; k++)
        parts += merge_repeats(l, k);
    parts += training && parts > 0;
    return __builtin_mul_overflow(parts * max_n, shape_elements(&l->out), &floats) ? SIZE_MAX : floats;
}

static size_t merge_channels(const struct layer *l)
{
    return (size_t)l->out.dim[l->out.rank - 1];
}

static const float *const *merge_masks(const struct op_ctx *c)
{
    const size_t nin = c->l->nin;
    return 2 * nin <= LAYER_INPUTS_MAX && nin > 1 && c->x[nin + 1] != NULL ? c->x + nin : NULL;
}

static const float *merge_mask(const struct op_ctx *c)
{
    return c->l->nin < LAYER_INPUTS_MAX && merge_masks(c) == NULL ? c->x[c->l->nin] : NULL;
}

/* Forward repeats the inputs, backward finds them as it left them. */
static struct merge merge_of(const struct op_ctx *c, bool forward)
{
    struct merge m = {
        .nin = c->l->nin, .mask = merge_mask(c), .elements = c->n * shape_elements(&c->l->out), .spare = c->scratch
    };
    m.masks = merge_masks(c);
    for (size_t k = 0; k < m.nin; k++) {
        m.x[k] = c->x[k];
        if (!merge_repeats(c->l, k))
            continue;
        if (forward)
            broadcast_repeat(&c->l->in[k], &c->l->out, c->n, c->x[k], m.spare);
        m.x[k] = m.spare;
        m.spare += m.elements;
    }
    return m;
}

/* Rows of padding in y; first is the first input. */
static void merge_pad(const struct op_ctx *c, const float *first, float *y)
{
    const float *mask = merge_mask(c);
    size_t channels = merge_channels(c->l), rows = c->n * shape_elements(&c->l->out) / channels,
           bytes = channels * sizeof(*y);
    for (size_t r = 0; r < rows; r++, first += channels, y += channels) {
        if (mask[r] != 0)
            continue;
        if (c->l->id == LAYER_MULTIPLY)
            memset(y, 0, bytes);
        else
            memcpy(y, first, bytes);
    }
}

/* The inputs of a row that are not padding there, of Maximum and Minimum else the first. *ret_k: the place of input k
 * among them, SIZE_MAX: it is not. */
static struct merge merge_part(const struct op_ctx *c, const struct merge *m, size_t r, size_t k, size_t *ret_k)
{
    size_t channels = merge_channels(c->l);
    struct merge part = { .elements = channels };
    *ret_k = SIZE_MAX;
    for (size_t i = 0; i < m->nin; i++) {
        if (m->masks[i][r] == 0)
            continue;
        *ret_k = i == k ? part.nin : *ret_k;
        part.x[part.nin++] = m->x[i] + r * channels;
    }
    if (part.nin == 0 && c->l->id != LAYER_MULTIPLY) {
        *ret_k = k == 0 ? 0 : SIZE_MAX;
        part.x[part.nin++] = m->x[0] + r * channels;
    }
    return part;
}

static void merge_parts(const struct op_ctx *c, const struct merge *m)
{
    size_t channels = merge_channels(c->l), rows = m->elements / channels, ignored;
    for (size_t r = 0; r < rows; r++) {
        struct merge part = merge_part(c, m, r, 0, &ignored);
        float *y = c->y + r * channels;
        if (part.nin == 0)
            memset(y, 0, channels * sizeof(*y));
        else
            memcpy(y, part.x[0], channels * sizeof(*y));
        for (size_t k = 1; k < part.nin; k++)
            merge_rows[c->l->id].join(part.x[k], y, channels);
    }
}

/* dx holds the gradient of the output. */
static void merge_parts_gradient(const struct op_ctx *c, const struct merge *m, size_t k, float *dx)
{
    size_t channels = merge_channels(c->l), rows = m->elements / channels, at;
    for (size_t r = 0; r < rows; r++, dx += channels) {
        struct merge part = merge_part(c, m, r, k, &at);
        if (at == SIZE_MAX)
            memset(dx, 0, channels * sizeof(*dx));
        else
            merge_rows[c->l->id].gradient(&part, at, dx);
    }
}

void op_merge_forward(const struct op_ctx *c)
{
    const struct merge_row *row = &merge_rows[c->l->id];
    struct merge m = merge_of(c, true);
    if (m.masks != NULL) {
        merge_parts(c, &m);
        return;
    }
    memcpy(c->y, m.x[0], m.elements * sizeof(*c->y));
    for (size_t k = 1; k < m.nin; k++)
        row->join(m.x[k], c->y, m.elements);
    if (row->finish != NULL)
        row->finish(c->y, m.elements, m.nin);
    if (m.mask != NULL)
        merge_pad(c, m.x[0], c->y);
}

/* The gradient of input k; dx holds that of the output. Rows of padding are left out. */
static void merge_masked_gradient(const struct op_ctx *c, const struct merge *m, size_t k, float *dx)
{
    size_t channels = merge_channels(c->l), rows = m->elements / channels, next;
    for (size_t r = 0; r < rows; r = next) {
        struct merge part = *m;
        for (next = r + 1; next < rows && (m->mask[next] != 0) == (m->mask[r] != 0);)
            next++;
        part.elements = (next - r) * channels;
        for (size_t i = 0; i < m->nin; i++)
            part.x[i] += r * channels;
        if (m->mask[r] != 0)
            merge_rows[c->l->id].gradient(&part, k, dx + r * channels);
        else if (k > 0 || c->l->id == LAYER_MULTIPLY)
            memset(dx + r * channels, 0, part.elements * sizeof(*dx));
    }
}

/* The first input's gradient is the last: it may be in the place of dy. */
void op_merge_backward(const struct op_ctx *c)
{
    const struct merge_row *row = &merge_rows[c->l->id];
    struct merge m = merge_of(c, false);
    for (size_t k = m.nin; k < (m.masks != NULL ? 2 * m.nin : m.nin + (m.mask != NULL)); k++)
        if (c->dx[k] != NULL) /* of the numbers that are a mask */
            memset(c->dx[k], 0, m.elements / merge_channels(c->l) * sizeof(float));
    for (size_t k = m.nin; k-- > 0;) {
        bool repeats = merge_repeats(c->l, k);
        float *dx = repeats ? m.spare : c->dx[k];
        if (c->dx[k] == NULL)
            continue;
        if (dx != c->dy)
            memcpy(dx, c->dy, m.elements * sizeof(*dx));
        if (m.masks != NULL)
            merge_parts_gradient(c, &m, k, dx);
        else if (m.mask != NULL)
            merge_masked_gradient(c, &m, k, dx);
        else if (row->gradient != NULL)
            row->gradient(&m, k, dx);
        if (repeats)
            broadcast_sum(&c->l->in[k], &c->l->out, c->n, dx, c->dx[k]);
    }
}
