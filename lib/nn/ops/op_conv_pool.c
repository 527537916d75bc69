/* Parts of a batch: convolution, then bias, relu and maximum in one pass; and back. */
#include "nn/ops/op_conv_pool.h"

#include <string.h>

#include "nn/layers/layer_rows.h"
#include "nn/ops/bias.h"
#include "nn/ops/conv_kernel.h"
#include "nn/ops/row.h"

enum { KERNEL_VAR, BIAS_VAR };
enum { PART_FLOATS = 64 << 10 }; /* of the convolution's output: with the rest of a part it stays in the L2 cache */
enum { SHUT = 4 };               /* the byte of a window whose values are all 0 after relu */

struct conv_pool {
    struct conv_call conv;          /* of the positions that windows cover */
    size_t height, width, channels; /* of the pooled output */
    size_t x_each, each, part;      /* floats of an input and of a pooled output; examples of a part */
    size_t y_floats, kernel_floats; /* of scratch */
    float *y;                       /* the convolution's output, or its gradient, of a part */
    uint8_t *which;                 /* of all examples: the position that a pooled value came from, or SHUT */
};

/* ---- what fits ---- */

static bool conv_pool_halves(const struct window_axis *a)
{
    return a->size == 2 && a->stride == 2 && a->dilation == 1 && a->before == 0 && 2 * a->out <= a->in;
}

bool op_conv_pool_fits(const struct layer *conv, const struct layer *pool)
{
    if (conv->id != LAYER_CONV_2D || conv->nvars <= BIAS_VAR || !bias_is_plain_relu(&conv->activation) ||
        pool->id != LAYER_MAX_POOLING_2D)
        return false;
    const struct window_layout windows = window_layout_of(pool);
    return conv_pool_halves(&windows.axis[WINDOW_HEIGHT]) && conv_pool_halves(&windows.axis[WINDOW_WIDTH]);
}

/* The parts do not depend on the number of examples, so that every batch adds up gradients in the same order. */
static struct conv_pool conv_pool_sizes(const struct layer *conv, const struct layer *pool)
{
    struct conv_pool p = { .conv.at = window_layout_of(conv) };
    struct window_axis *h = &p.conv.at.axis[WINDOW_HEIGHT], *w = &p.conv.at.axis[WINDOW_WIDTH];
    const struct window_layout windows = window_layout_of(pool);
    p.height = windows.axis[WINDOW_HEIGHT].out;
    p.width = windows.axis[WINDOW_WIDTH].out;
    p.channels = windows.channels;
    h->out = 2 * p.height;
    w->out = 2 * p.width;
    p.conv.kernel = conv_kernel_for(&p.conv.at);
    p.x_each = h->in * w->in * p.conv.at.channels;
    p.each = p.height * p.width * p.channels;
    p.part = MAX(PART_FLOATS / (4 * p.each), 1);
    p.y_floats = p.part * 4 * p.each;
    p.kernel_floats = p.conv.kernel->scratch(&p.conv.at, p.part);
    return p;
}

static struct conv_pool conv_pool_of(const struct op_ctx *conv, const struct op_ctx *pool)
{
    struct conv_pool p = conv_pool_sizes(conv->l, pool->l);
    p.y = conv->scratch;
    p.conv.scratch = p.y + p.y_floats;
    p.which = (uint8_t *)(p.conv.scratch + p.kernel_floats);
    return p;
}

size_t op_conv_pool_scratch(const struct layer *conv, const struct layer *pool, size_t max_n, bool training)
{
    const struct conv_pool p = conv_pool_sizes(conv, pool);
    return p.y_floats + p.kernel_floats + (training ? divide_up(max_n * p.each, sizeof(float)) : 0);
}

/* ---- bias, relu and maximum ---- */

/* Outputs of a row of windows. Floats. */
struct pooled_row {
    float *x;    /* two rows of the convolution's output, or of its gradient */
    size_t line; /* from the first to the second */
    const float *bias;
    float *y;        /* the pooled row */
    const float *dy; /* or its gradient */
    uint8_t *which;
    float *sums; /* of the bias's gradient */
    size_t n, channels;
};

/* Of one window and all channels. */
static inline void conv_pool_take_one(const float *restrict x, const float *restrict low, const float *restrict bias,
                                      float *restrict y, size_t c)
{
    for (size_t i = 0; i < c; i++) {
        const float b = bias[i], v0 = x[i] + b, v1 = x[c + i] + b, v2 = low[i] + b, v3 = low[c + i] + b;
        const float most = greater(greater(v0, v1), greater(v2, v3));
        y[i] = most < 0.0F ? 0.0F : most; /* a NaN passes */
    }
}

KERNEL static void conv_pool_take(const struct pooled_row *r)
{
    for (size_t o = 0; o < r->n; o++) {
        const float *x = r->x + 2 * o * r->channels;
        conv_pool_take_one(x, x + r->line, r->bias, r->y + o * r->channels, r->channels);
    }
}

/* Of the greatest values the first one counts. */
KERNEL static void conv_pool_find(const struct pooled_row *r)
{
    size_t c = r->channels;
    for (size_t o = 0; o < r->n; o++) {
        const float *restrict x = r->x + 2 * o * c, *restrict low = x + r->line, *restrict bias = r->bias;
        const float *restrict y = r->y + o * c;
        uint8_t *restrict which = r->which + o * c;
        for (size_t i = 0; i < c; i++) {
            int32_t from = low[i] + bias[i] == y[i] ? 2 : 3;
            from = x[c + i] + bias[i] == y[i] ? 1 : from;
            from = x[i] + bias[i] == y[i] ? 0 : from;
            which[i] = (uint8_t)(y[i] > 0.0F ? from : SHUT);
        }
    }
}

typedef uint32_t float_bits __attribute__((may_alias));

/* All bits of dy, or none: with a selection of floats the compiler makes masked stores, which are slow. */
static inline void conv_pool_give_one(const float_bits *restrict dy, const uint8_t *restrict which,
                                      float_bits *restrict dx, float_bits *restrict low, size_t c)
{
    for (size_t i = 0; i < c; i++) {
        const uint32_t all = dy[i], from = which[i];
        dx[i] = all & -(uint32_t)(from == 0);
        dx[c + i] = all & -(uint32_t)(from == 1);
        low[i] = all & -(uint32_t)(from == 2);
        low[c + i] = all & -(uint32_t)(from == 3);
    }
}

KERNEL static void conv_pool_give(const struct pooled_row *r)
{
    size_t c = r->channels;
    for (size_t o = 0; o < r->n; o++) {
        float_bits *dx = (float_bits *)(r->x + 2 * o * c);
        conv_pool_give_one((const float_bits *)(r->dy + o * c), r->which + o * c, dx, dx + r->line, c);
    }
}

KERNEL static void conv_pool_sum(const struct pooled_row *r)
{
    for (size_t o = 0; o < r->n; o++) {
        const float *restrict dy = r->dy + o * r->channels;
        const uint8_t *restrict which = r->which + o * r->channels;
        float *restrict sums = r->sums;
        for (size_t i = 0; i < r->channels; i++)
            sums[i] += which[i] == SHUT ? 0.0F : dy[i];
    }
}

/* ---- passes ---- */

/* Row `row` of the windows of example i of a part. */
static struct pooled_row conv_pool_row(const struct conv_pool *p, size_t i, size_t row)
{
    size_t line = 2 * p->width * p->channels;
    return (struct pooled_row){
        .x = p->y + (i * p->height + row) * 2 * line, .line = line, .n = p->width, .channels = p->channels
    };
}

void op_conv_pool_forward(const struct op_ctx *conv, const struct op_ctx *pool)
{
    const struct conv_pool p = conv_pool_of(conv, pool);
    conv_begin_forward(&p.conv, conv->w[KERNEL_VAR]);
    for (size_t first = 0; first < conv->n; first += p.part) {
        size_t n = MIN(p.part, conv->n - first);
        p.conv.kernel->forward(&p.conv.at, n, conv->x[0] + first * p.x_each, conv->w[KERNEL_VAR], p.y, p.conv.scratch);
        for (size_t i = 0; i < n * p.height; i++) {
            struct pooled_row r = conv_pool_row(&p, i / p.height, i % p.height);
            size_t at = first * p.each + i * p.width * p.channels;
            r.bias = conv->w[BIAS_VAR];
            r.y = pool->y + at;
            r.which = p.which + at;
            conv_pool_take(&r);
            if (conv->training)
                conv_pool_find(&r);
        }
    }
}

void op_conv_pool_backward(const struct op_ctx *conv, const struct op_ctx *pool)
{
    const struct conv_pool p = conv_pool_of(conv, pool);
    struct conv_grads g = { .dy = p.y, .dw = conv->g[KERNEL_VAR], .dx = conv->dx[0] };
    float *sums = conv->g[BIAS_VAR];
    if (sums != NULL)
        memset(sums, 0, p.channels * sizeof(*sums));
    p.conv.kernel->begin_backward(&p.conv.at, conv->w[KERNEL_VAR], &g, p.conv.scratch);
    for (size_t first = 0; first < conv->n; first += p.part) {
        size_t n = MIN(p.part, conv->n - first);
        for (size_t i = 0; i < n * p.height; i++) {
            struct pooled_row r = conv_pool_row(&p, i / p.height, i % p.height);
            size_t at = first * p.each + i * p.width * p.channels;
            r.dy = conv->dy + at;
            r.which = p.which + at;
            r.sums = sums;
            conv_pool_give(&r);
            if (sums != NULL)
                conv_pool_sum(&r);
        }
        g.dx = conv->dx[0] != NULL ? conv->dx[0] + first * p.x_each : NULL;
        p.conv.kernel->backward(&p.conv.at, n, conv->x[0] + first * p.x_each, conv->w[KERNEL_VAR], &g, p.conv.scratch);
    }
    conv_end_backward(&p.conv, &g);
}
