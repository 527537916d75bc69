/* LayerNormalization and GroupNormalization: each set of values is normalised by its own mean and variance. For
 * LayerNormalization a set is the channels of a position, for GroupNormalization those of a group at all positions of
 * an example.
 *
 * xhat = (x - mean) / sqrt(variance + epsilon);  y = gamma xhat + beta
 * backward, N values in a set, inv = 1/sqrt(variance + epsilon), d = gamma dy:
 *   dbeta = sum dy;  dgamma = sum dy xhat;  dx = inv (d - sum(d)/N - xhat sum(d xhat)/N) */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "nn/ops/row.h"

enum { STATISTICS = 2 }; /* mean and inv of each set, in scratch */

struct affine {
    const float *gamma, *beta; /* NULL: none */
    float *dgamma, *dbeta;     /* NULL: not needed */
};

static struct affine affine_of(const struct op_ctx *c)
{
    struct affine a = { 0 };
    int i = 0;
    if (c->l->arg[GROUPNORM_SCALE] != 0) {
        a.gamma = c->w[i];
        a.dgamma = c->g[i++];
    }
    if (c->l->arg[GROUPNORM_CENTER] != 0) {
        a.beta = c->w[i];
        a.dbeta = c->g[i];
    }
    return a;
}

/* ==== LayerNormalization ==== */

struct layer_norm { /* of one position */
    const float *x, *dy;
    const float *gamma, *beta; /* NULL: none */
    float *y, *dx, *dgamma;    /* NULL: not needed */
    float mean, inv;
    size_t n;
};

static inline float layer_norm_xhat(const struct layer_norm *r, size_t i)
{
    return (r->x[i] - r->mean) * r->inv;
}

/* d */
static inline float layer_norm_gradient(const struct layer_norm *r, size_t i)
{
    return r->gamma != NULL ? r->gamma[i] * r->dy[i] : r->dy[i];
}

/* ---- one position; sums are of KERNEL_LANES partial sums ---- */

KERNEL static void layer_norm_measure(struct layer_norm *r, float epsilon)
{
    float lane[KERNEL_LANES] = { 0 }, sum = 0;
    size_t whole = r->n - r->n % KERNEL_LANES;
    r->mean = row_sum(r->x, r->n) / (float)r->n;
    for (size_t i = 0; i < whole; i += KERNEL_LANES)
        for (size_t j = 0; j < KERNEL_LANES; j++)
            lane[j] += (r->x[i + j] - r->mean) * (r->x[i + j] - r->mean);
    for (size_t i = whole; i < r->n; i++)
        lane[i - whole] += (r->x[i] - r->mean) * (r->x[i] - r->mean);
    for (size_t j = 0; j < KERNEL_LANES; j++)
        sum += lane[j];
    r->inv = 1.0F / sqrtf(sum / (float)r->n + epsilon);
}

KERNEL static void layer_norm_row(const struct layer_norm *r)
{
    float *restrict y = r->y;
    for (size_t i = 0; i < r->n; i++)
        y[i] = layer_norm_xhat(r, i) * (r->gamma != NULL ? r->gamma[i] : 1.0F) + (r->beta != NULL ? r->beta[i] : 0.0F);
}

KERNEL static void layer_norm_gamma_gradient(const struct layer_norm *r)
{
    float *restrict dgamma = r->dgamma;
    for (size_t i = 0; i < r->n; i++)
        dgamma[i] += r->dy[i] * layer_norm_xhat(r, i);
}

KERNEL static void layer_norm_input_gradient(const struct layer_norm *r)
{
    float d[KERNEL_LANES] = { 0 }, d_xhat[KERNEL_LANES] = { 0 }, sum_d = 0, sum_d_xhat = 0;
    float *restrict dx = r->dx;
    size_t whole = r->n - r->n % KERNEL_LANES;
    for (size_t i = 0; i < whole; i += KERNEL_LANES)
        for (size_t j = 0; j < KERNEL_LANES; j++) {
            d[j] += layer_norm_gradient(r, i + j);
            d_xhat[j] += layer_norm_gradient(r, i + j) * layer_norm_xhat(r, i + j);
        }
    for (size_t i = whole; i < r->n; i++) {
        d[i - whole] += layer_norm_gradient(r, i);
        d_xhat[i - whole] += layer_norm_gradient(r, i) * layer_norm_xhat(r, i);
    }
    for (size_t j = 0; j < KERNEL_LANES; j++) {
        sum_d += d[j];
        sum_d_xhat += d_xhat[j];
    }
    const float mean_d = sum_d / (float)r->n, mean_d_xhat = sum_d_xhat / (float)r->n;
    for (size_t i = 0; i < r->n; i++)
        dx[i] = r->inv * (layer_norm_gradient(r, i) - mean_d - layer_norm_xhat(r, i) * mean_d_xhat);
}

/* ---- all positions ---- */

size_t op_layer_normalization_scratch(const struct layer *l, size_t max_n, bool training UNUSED)
{
    return STATISTICS * max_n * shape_elements(&l->in[0]) / (size_t)layer_channels(l);
}

static struct layer_norm layer_norm_at(const struct op_ctx *c, const struct affine *a, size_t position)
{
    size_t channels = op_channels(c), at = position * channels;
    return (struct layer_norm){ .x = c->x[0] + at,
                                .dy = c->dy != NULL ? c->dy + at : NULL,
                                .gamma = a->gamma,
                                .beta = a->beta,
                                .y = c->y + at,
                                .dx = c->dx[0] != NULL ? c->dx[0] + at : NULL,
                                .dgamma = a->dgamma,
                                .mean = c->scratch[STATISTICS * position],
                                .inv = c->scratch[STATISTICS * position + 1],
                                .n = channels };
}

void op_layer_normalization_forward(const struct op_ctx *c)
{
    const struct affine a = affine_of(c);
    size_t rows = op_rows_of(c);
    for (size_t position = 0; position < rows; position++) {
        struct layer_norm r = layer_norm_at(c, &a, position);
        layer_norm_measure(&r, (float)c->l->arg[GROUPNORM_EPSILON]);
        layer_norm_row(&r);
        c->scratch[STATISTICS * position] = r.mean;
        c->scratch[STATISTICS * position + 1] = r.inv;
    }
}

void op_layer_normalization_backward(const struct op_ctx *c)
{
    const struct affine a = affine_of(c);
    size_t rows = op_rows_of(c);
    if (a.dbeta != NULL)
        kernel_sum_rows(c->dy, a.dbeta, rows, op_channels(c));
    if (a.dgamma != NULL)
        memset(a.dgamma, 0, op_channels(c) * sizeof(float));
    for (size_t position = 0; position < rows; position++) {
        const struct layer_norm r = layer_norm_at(c, &a, position);
        if (r.dgamma != NULL)
            layer_norm_gamma_gradient(&r);
        if (r.dx != NULL)
            layer_norm_input_gradient(&r);
    }
}

/* ==== GroupNormalization: sums over the positions of an example are of each channel, in blocks ==== */

enum { ROWS_A_BLOCK = 256 };
enum {
    CHANNEL_MEAN,
    CHANNEL_SCALE,
    CHANNEL_SHIFT,
    CHANNEL_SLOPE,
    CHANNEL_SUM,
    CHANNEL_SUM_X,
    CHANNEL_BLOCK,
    CHANNEL_ROWS
};

static size_t groups_of(const struct layer *l)
{
    return l->arg[GROUPNORM_GROUPS] < 0 ? (size_t)layer_channels(l) : (size_t)l->arg[GROUPNORM_GROUPS];
}

/* Mean and inv of each set, then the rows of one value for each channel. */
size_t op_group_normalization_scratch(const struct layer *l, size_t max_n, bool training UNUSED)
{
    return STATISTICS * max_n * groups_of(l) + CHANNEL_ROWS * (size_t)layer_channels(l);
}

struct group_norm { /* of one example */
    const float *x, *dy;
    float *y, *dx, *statistics, *row[CHANNEL_ROWS];
    struct affine affine;
    size_t positions, channels, groups, width; /* width: channels of a group */
};

static struct group_norm group_norm_of(const struct op_ctx *c, size_t example)
{
    size_t each = shape_elements(&c->l->in[0]), at = example * each;
    struct group_norm g = { .x = c->x[0] + at,
                            .dy = c->dy != NULL ? c->dy + at : NULL,
                            .y = c->y + at,
                            .dx = c->dx[0] != NULL ? c->dx[0] + at : NULL,
                            .affine = affine_of(c),
                            .channels = op_channels(c),
                            .groups = groups_of(c->l) };
    g.positions = each / g.channels;
    g.width = g.channels / g.groups;
    g.statistics = c->scratch + example * STATISTICS * g.groups;
    for (size_t i = 0; i < CHANNEL_ROWS; i++)
        g.row[i] = c->scratch + c->n * STATISTICS * g.groups + i * g.channels;
    return g;
}

static float group_norm_gamma(const struct group_norm *g, size_t channel)
{
    return g->affine.gamma != NULL ? g->affine.gamma[channel] : 1.0F;
}

/* y (cols) = sum over rows of dy (x - mean) */
KERNEL static void sum_products(const struct group_norm *g, size_t first, size_t rows, float *restrict y)
{
    const float *restrict mean = g->row[CHANNEL_MEAN];
    const float *restrict x = g->x + first * g->channels, *restrict dy = g->dy + first * g->channels;
    for (size_t i = 0; i < g->channels; i++)
        y[i] = 0.0F;
    for (size_t r = 0; r < rows; r++, x += g->channels, dy += g->channels)
        for (size_t i = 0; i < g->channels; i++)
            y[i] += dy[i] * (x[i] - mean[i]);
}

static void sum_x(const struct group_norm *g, size_t first, size_t rows, float *y)
{
    kernel_sum_rows(g->x + first * g->channels, y, rows, g->channels);
}

static void sum_squares(const struct group_norm *g, size_t first, size_t rows, float *y)
{
    kernel_sum_square_differences(g->x + first * g->channels, g->row[CHANNEL_MEAN], y, rows, g->channels);
}

static void sum_dy(const struct group_norm *g, size_t first, size_t rows, float *y)
{
    kernel_sum_rows(g->dy + first * g->channels, y, rows, g->channels);
}

typedef void sum_rows_fn(const struct group_norm *g, size_t first, size_t rows, float *y);

static void sum_positions(const struct group_norm *g, sum_rows_fn *fn, float *ret)
{
    memset(ret, 0, g->channels * sizeof(*ret));
    for (size_t first = 0; first < g->positions; first += ROWS_A_BLOCK) {
        fn(g, first, MIN(ROWS_A_BLOCK, g->positions - first), g->row[CHANNEL_BLOCK]);
        kernel_add(g->row[CHANNEL_BLOCK], ret, g->channels);
    }
}

/* The mean over a group of sums over positions. */
static double group_mean(const struct group_norm *g, size_t group, const float *sums)
{
    double sum = 0;
    for (size_t i = 0; i < g->width; i++)
        sum += (double)sums[group * g->width + i];
    return sum / (double)(g->width * g->positions);
}

static void fill_mean(const struct group_norm *g)
{
    for (size_t i = 0; i < g->channels; i++)
        g->row[CHANNEL_MEAN][i] = g->statistics[STATISTICS * (i / g->width)];
}

/* y = (x - mean) scale + shift of each channel */
KERNEL static void group_norm_rows(const struct group_norm *g)
{
    const float *restrict mean = g->row[CHANNEL_MEAN], *restrict scale = g->row[CHANNEL_SCALE];
    const float *restrict shift = g->row[CHANNEL_SHIFT], *restrict x = g->x;
    float *restrict y = g->y;
    for (size_t r = 0; r < g->positions; r++, x += g->channels, y += g->channels)
        for (size_t i = 0; i < g->channels; i++)
            y[i] = (x[i] - mean[i]) * scale[i] + shift[i];
}

/* dx = scale dy - shift - slope (x - mean) of each channel */
KERNEL static void group_norm_input_gradient(const struct group_norm *g)
{
    const float *restrict mean = g->row[CHANNEL_MEAN], *restrict scale = g->row[CHANNEL_SCALE];
    const float *restrict shift = g->row[CHANNEL_SHIFT], *restrict slope = g->row[CHANNEL_SLOPE];
    const float *restrict x = g->x, *restrict dy = g->dy;
    float *restrict dx = g->dx;
    for (size_t r = 0; r < g->positions; r++, x += g->channels, dy += g->channels, dx += g->channels)
        for (size_t i = 0; i < g->channels; i++)
            dx[i] = scale[i] * dy[i] - shift[i] - slope[i] * (x[i] - mean[i]);
}

void op_group_normalization_forward(const struct op_ctx *c)
{
    const float epsilon = (float)c->l->arg[GROUPNORM_EPSILON];
    for (size_t example = 0; example < c->n; example++) {
        const struct group_norm g = group_norm_of(c, example);
        sum_positions(&g, sum_x, g.row[CHANNEL_SUM]);
        for (size_t group = 0; group < g.groups; group++)
            g.statistics[STATISTICS * group] = (float)group_mean(&g, group, g.row[CHANNEL_SUM]);
        fill_mean(&g);
        sum_positions(&g, sum_squares, g.row[CHANNEL_SUM]);
        for (size_t group = 0; group < g.groups; group++)
            g.statistics[STATISTICS * group + 1] =
                1.0F / sqrtf((float)group_mean(&g, group, g.row[CHANNEL_SUM]) + epsilon);
        for (size_t i = 0; i < g.channels; i++) {
            g.row[CHANNEL_SCALE][i] = group_norm_gamma(&g, i) * g.statistics[STATISTICS * (i / g.width) + 1];
            g.row[CHANNEL_SHIFT][i] = g.affine.beta != NULL ? g.affine.beta[i] : 0.0F;
        }
        group_norm_rows(&g);
    }
}

/* The sums of dy and of dy xhat over the positions; their part of the gradients of beta and gamma. */
static void group_norm_sums(const struct group_norm *g)
{
    float *sum = g->row[CHANNEL_SUM], *sum_x_hat = g->row[CHANNEL_SUM_X];
    sum_positions(g, sum_dy, sum);
    sum_positions(g, sum_products, sum_x_hat);
    for (size_t i = 0; i < g->channels; i++)
        sum_x_hat[i] *= g->statistics[STATISTICS * (i / g->width) + 1];
    if (g->affine.dbeta != NULL)
        kernel_add(sum, g->affine.dbeta, g->channels);
    if (g->affine.dgamma != NULL)
        kernel_add(sum_x_hat, g->affine.dgamma, g->channels);
}

static void group_norm_fill_gradient(const struct group_norm *g)
{
    for (size_t i = 0; i < g->channels; i++) { /* of d and d xhat from here on */
        g->row[CHANNEL_SUM][i] *= group_norm_gamma(g, i);
        g->row[CHANNEL_SUM_X][i] *= group_norm_gamma(g, i);
    }
    for (size_t group = 0; group < g->groups; group++) {
        const float inv = g->statistics[STATISTICS * group + 1];
        const float shift = inv * (float)group_mean(g, group, g->row[CHANNEL_SUM]);
        const float slope = inv * inv * (float)group_mean(g, group, g->row[CHANNEL_SUM_X]);
        for (size_t i = group * g->width; i < (group + 1) * g->width; i++) {
            g->row[CHANNEL_SCALE][i] = inv * group_norm_gamma(g, i);
            g->row[CHANNEL_SHIFT][i] = shift;
            g->row[CHANNEL_SLOPE][i] = slope;
        }
    }
}

void op_group_normalization_backward(const struct op_ctx *c)
{
    const struct affine a = affine_of(c);
    if (a.dbeta != NULL)
        memset(a.dbeta, 0, op_channels(c) * sizeof(float));
    if (a.dgamma != NULL)
        memset(a.dgamma, 0, op_channels(c) * sizeof(float));
    for (size_t example = 0; example < c->n; example++) {
        const struct group_norm g = group_norm_of(c, example);
        fill_mean(&g);
        group_norm_sums(&g);
        if (g.dx == NULL)
            continue;
        group_norm_fill_gradient(&g);
        group_norm_input_gradient(&g);
    }
}
