/* Pooling: the positions that have the same place in their windows, for all outputs of a line, make one loop. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/op_conv_pool.h"
#include "nn/ops/ops.h"
#include "nn/ops/row.h"
#include "nn/ops/window_runs.h"

/* Outputs side by side, and the position of each that has one place in its window. Floats. */
struct pool_run {
    const float *x;
    float *y, *dy, *dx;
    size_t n, channels, step; /* from the position of one output to that of the next */
};

/* ---- one place in the windows ---- */

KERNEL static void pool_take_greater(const struct pool_run *r)
{
    for (size_t o = 0; o < r->n; o++) {
        const float *restrict x = r->x + o * r->step;
        float *restrict y = r->y + o * r->channels;
        for (size_t i = 0; i < r->channels; i++)
            y[i] = greater(y[i], x[i]);
    }
}

/* The first position that has the largest value gets the gradient: dy is what no position has got yet. */
KERNEL static void pool_give_to_largest(const struct pool_run *r)
{
    for (size_t o = 0; o < r->n; o++) {
        const float *restrict x = r->x + o * r->step, *restrict y = r->y + o * r->channels;
        float *restrict dy = r->dy + o * r->channels, *restrict dx = r->dx + o * r->step;
        for (size_t i = 0; i < r->channels; i++) {
            bool largest = x[i] == y[i];
            dx[i] += largest ? dy[i] : 0.0F;
            dy[i] = largest ? 0.0F : dy[i];
        }
    }
}

/* Adds n positions, from_step and to_step floats apart. */
KERNEL static void pool_add_positions(const float *from, size_t from_step, float *to, size_t to_step, size_t n,
                                      size_t channels)
{
    for (size_t o = 0; o < n; o++) {
        const float *restrict x = from + o * from_step;
        float *restrict y = to + o * to_step;
        for (size_t i = 0; i < channels; i++)
            y[i] += x[i];
    }
}

static void pool_add(const struct pool_run *r)
{
    pool_add_positions(r->x, r->step, r->y, r->channels, r->n, r->channels);
}

static void pool_give_to_all(const struct pool_run *r)
{
    pool_add_positions(r->dy, r->channels, r->dx, r->step, r->n, r->channels);
}

/* GlobalMaxPooling is a maximum along axes: all positions that have it share the gradient. */
KERNEL static void pool_count_largest(const float *restrict x, const float *restrict y, float *restrict count, size_t n)
{
    for (size_t i = 0; i < n; i++)
        count[i] += x[i] == y[i] ? 1.0F : 0.0F;
}

KERNEL static void pool_share_among_largest(const float *restrict x, const float *restrict y, const float *restrict dy,
                                            const float *restrict count, float *restrict dx, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dx[i] = x[i] == y[i] ? dy[i] / count[i] : 0.0F;
}

/* ---- the windows of a layer ---- */

/* All positions of an image, as one window. */
static struct window_layout pool_whole(const struct layer *l)
{
    size_t width = (size_t)l->in[0].dim[l->in[0].rank - 2], channels = (size_t)layer_channels(l);
    size_t height = shape_elements(&l->in[0]) / width / channels;
    return (struct window_layout){ .axis = { { .in = height, .out = 1, .size = height, .stride = 1, .dilation = 1 },
                                             { .in = width, .out = 1, .size = width, .stride = 1, .dilation = 1 } },
                                   .channels = channels,
                                   .out_channels = channels };
}

static struct window_layout pool_layout(const struct layer *l)
{
    return l->own != NULL ? window_layout_of(l) : pool_whole(l);
}

static bool pool_takes_global_max(const struct layer *l)
{
    return l->id == LAYER_GLOBAL_MAX_POOLING_1D || l->id == LAYER_GLOBAL_MAX_POOLING_2D;
}

static bool pool_takes_max(const struct layer *l)
{
    return l->id == LAYER_MAX_POOLING_1D || l->id == LAYER_MAX_POOLING_2D || pool_takes_global_max(l);
}

typedef void pool_fn(const struct pool_run *r);

struct pool_pass {
    const struct op_ctx *c;
    size_t channels;
    pool_fn *fn;
};

static void pool_place(const struct window_run *run, void *user)
{
    const struct pool_pass *pass = user;
    const struct op_ctx *c = pass->c;
    size_t x = run->x * pass->channels, y = run->y * pass->channels;
    pass->fn(&(struct pool_run){ .x = c->x[0] + x,
                                 .y = c->y + y,
                                 .dy = c->dy != NULL ? c->dy + y : NULL,
                                 .dx = c->dx[0] != NULL ? c->dx[0] + x : NULL,
                                 .n = run->n,
                                 .channels = pass->channels,
                                 .step = run->step * pass->channels });
}

static void pool_each_place(const struct op_ctx *c, const struct window_layout *at, pool_fn *fn)
{
    struct pool_pass pass = { .c = c, .channels = at->channels, .fn = fn };
    window_runs(at, c->n, pool_place, &pass);
}

/* v (outputs, channels) is divided by the number of positions in each window that are not padding. */
static void pool_divide(const struct op_ctx *c, const struct window_layout *at, float *v)
{
    const struct window_axis *h = &at->axis[WINDOW_HEIGHT], *w = &at->axis[WINDOW_WIDTH];
    for (size_t o = 0; o < c->n * h->out * w->out; o++, v += at->channels) {
        size_t top, bottom, left, right;
        window_inside(h, o / w->out % h->out, &top, &bottom);
        window_inside(w, o % w->out, &left, &right);
        kernel_affine(v, 1.0F / (float)((bottom - top) * (right - left)), 0.0F, v, at->channels);
    }
}

/* ---- passes ---- */

static void pool_global_max_backward(const struct op_ctx *c)
{
    size_t channels = op_channels(c), each = shape_elements(&c->l->in[0]) / channels;
    for (size_t image = 0; image < c->n; image++) {
        const float *x = c->x[0] + image * each * channels, *y = c->y + image * channels;
        memset(c->scratch, 0, channels * sizeof(*c->scratch));
        for (size_t i = 0; i < each; i++)
            pool_count_largest(x + i * channels, y, c->scratch, channels);
        for (size_t i = 0; i < each; i++)
            pool_share_among_largest(x + i * channels, y, c->dy + image * channels, c->scratch,
                                     c->dx[0] + (image * each + i) * channels, channels);
    }
}

void op_pool_forward(const struct op_ctx *c)
{
    if (c->joined != NULL) {
        op_conv_pool_forward(c->joined, c);
        return;
    }
    const struct window_layout at = pool_layout(c->l);
    size_t n = c->n * shape_elements(&c->l->out);
    bool max = pool_takes_max(c->l);
    for (size_t i = 0; i < n; i++)
        c->y[i] = max ? -HUGE_VALF : 0.0F;
    pool_each_place(c, &at, max ? pool_take_greater : pool_add);
    if (!max)
        pool_divide(c, &at, c->y);
}

size_t op_pool_scratch(const struct layer *l, size_t max_n UNUSED, bool training)
{
    return training && pool_takes_global_max(l) ? (size_t)layer_channels(l) : 0;
}

void op_pool_backward(const struct op_ctx *c)
{
    const struct window_layout at = pool_layout(c->l);
    if (c->dx[0] == NULL)
        return;
    if (pool_takes_global_max(c->l)) {
        pool_global_max_backward(c);
        return;
    }
    memset(c->dx[0], 0, op_elements(c) * sizeof(float));
    if (!pool_takes_max(c->l))
        pool_divide(c, &at, c->dy);
    pool_each_place(c, &at, pool_takes_max(c->l) ? pool_give_to_largest : pool_give_to_all);
}

/* ---- without padding ---- */

/* The weight of a step that is not padding in the mean of its example. */
static float pool_share(const float *mask, size_t steps)
{
    size_t n = 0;
    for (size_t i = 0; i < steps; i++)
        n += mask[i] != 0 ? 1 : 0;
    return 1.0F / (float)MAX(n, (size_t)1);
}

/* The mask is input 1: 0 where a step is padding. An example of padding alone gives zeros. */
static void pool_average_masked(const struct op_ctx *c)
{
    size_t channels = op_channels(c), steps = shape_elements(&c->l->in[0]) / channels;
    memset(c->y, 0, c->n * channels * sizeof(*c->y));
    for (size_t e = 0; e < c->n; e++) {
        const float *x = c->x[0] + e * steps * channels, *mask = c->x[1] + e * steps;
        float *y = c->y + e * channels;
        for (size_t i = 0; i < steps; i++)
            if (mask[i] != 0)
                kernel_add(x + i * channels, y, channels);
        kernel_affine(y, pool_share(mask, steps), 0.0F, y, channels);
    }
}

static void pool_average_masked_backward(const struct op_ctx *c)
{
    size_t channels = op_channels(c), steps = shape_elements(&c->l->in[0]) / channels;
    if (c->dx[1] != NULL)
        memset(c->dx[1], 0, c->n * steps * sizeof(float));
    if (c->dx[0] == NULL)
        return;
    memset(c->dx[0], 0, c->n * steps * channels * sizeof(float));
    for (size_t e = 0; e < c->n; e++) {
        const float *mask = c->x[1] + e * steps, *dy = c->dy + e * channels;
        float share = pool_share(mask, steps);
        for (size_t i = 0; i < steps; i++)
            if (mask[i] != 0)
                kernel_affine(dy, share, 0.0F, c->dx[0] + (e * steps + i) * channels, channels);
    }
}

void op_global_average_1d_forward(const struct op_ctx *c)
{
    if (c->x[1] != NULL)
        pool_average_masked(c);
    else
        op_pool_forward(c);
}

void op_global_average_1d_backward(const struct op_ctx *c)
{
    if (c->x[1] != NULL)
        pool_average_masked_backward(c);
    else
        op_pool_backward(c);
}
