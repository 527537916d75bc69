/* Normalization and BatchNormalization over the last axis: data is (rows, channels). */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"

/* ---- Normalization: y = (x - mean) / max(sqrt(variance), 1e-7); invert: y = x * that + mean ---- */

enum { MEAN = NORMALIZATION_MEAN, VARIANCE = NORMALIZATION_VARIANCE };
static const float SMALLEST_DEVIATION = 1e-7F; /* keras.backend.epsilon() */

size_t op_normalization_scratch(const struct layer *l, size_t max_n UNUSED, bool training UNUSED)
{
    return 2 * normalization_channels(l);
}

/* y = a x + b for each channel; a and b in scratch. */
static void normalization_line(const struct op_ctx *c, size_t channels, float *a, float *b)
{
    const struct values *given = normalization_given(c->l);
    bool invert = c->l->arg[NORMALIZATION_INVERT] != 0;

    for (size_t i = 0; i < channels; i++) {
        float mean = given[MEAN].n > 0 ? values_at(&given[MEAN], i) : c->w[MEAN][i];
        float variance = given[VARIANCE].n > 0 ? values_at(&given[VARIANCE], i) : c->w[VARIANCE][i];
        float deviation = fmaxf(sqrtf(variance), SMALLEST_DEVIATION);
        a[i] = invert ? deviation : 1.0F / deviation;
        b[i] = invert ? mean : -mean;
    }
}

static KERNEL void normalize(const float *x, const float *restrict a, const float *restrict b, float *y, size_t rows,
                             size_t channels)
{
    for (size_t r = 0; r < rows; r++, x += channels, y += channels) {
        KERNEL_LOOP
        for (size_t i = 0; i < channels; i++)
            y[i] = (x[i] + b[i]) * a[i]; /* the difference first: no cancellation when the mean is large */
    }
}

void op_normalization_forward(const struct op_ctx *c)
{
    size_t channels = normalization_channels(c->l), rows = op_elements(c) / channels;
    float *a = c->scratch, *b = c->scratch + channels;

    normalization_line(c, channels, a, b);
    if (c->l->arg[NORMALIZATION_INVERT] != 0)
        kernel_affine_rows(c->x[0], a, b, c->y, rows, channels);
    else
        normalize(c->x[0], a, b, c->y, rows, channels);
}

static KERNEL void scale_rows(const float *x, const float *restrict a, float *y, size_t rows, size_t channels)
{
    for (size_t r = 0; r < rows; r++, x += channels, y += channels) {
        KERNEL_LOOP
        for (size_t i = 0; i < channels; i++)
            y[i] = a[i] * x[i];
    }
}

void op_normalization_backward(const struct op_ctx *c)
{
    size_t channels = normalization_channels(c->l);
    if (c->dx[0] != NULL)
        scale_rows(c->dy, c->scratch, c->dx[0], op_elements(c) / channels, channels);
}

/* ---- BatchNormalization ----
 * training:  mean, variance (population) of the batch;  inference: the moving ones
 *   xhat = (x - mean) / sqrt(variance + epsilon);  y = gamma xhat + beta
 * backward in training, N rows, inv = 1/sqrt(variance + epsilon):
 *   dbeta = sum dy;  dgamma = sum dy xhat;  dx = gamma inv (dy - dbeta/N - xhat dgamma/N)
 * otherwise mean and inv are constants: dx = gamma inv dy.
 *
 * With a mask, input 1, mean and variance are those of the N rows whose mask is not 0. All rows are normalised by them,
 * so that dbeta and dgamma are sums of all rows; dx of the rows without weight is gamma inv dy. Without any row mean
 * and variance are 0.
 *
 * synchronized: mean, variance, and the means dbeta/N and dgamma/N of dx are those of all batches of a group. A loss is
 * the mean of its batch, so that the group's gradient dy has the batch's dy times its part of the rows: sums of dy are
 * weighted by rows, and dx is that of the batch again. dbeta and dgamma as gradients are the batch's own. */

enum { ROWS_A_BLOCK = 256, MASK_INPUT = 1 };
enum { S_MEAN, S_INV, S_A, S_B, S_SUM, S_DBETA, S_DGAMMA, SCRATCH_ROWS };

struct batchnorm { /* places of this layer's variables; NULL where it has none */
    const float *gamma, *beta, *moving_mean, *moving_variance;
    float *dgamma, *dbeta, *batch_mean, *batch_variance;
    bool batch; /* normalise by the batch: training, and not frozen */
};

static struct batchnorm batchnorm_parts(const struct op_ctx *c)
{
    struct batchnorm p = { .batch = c->training && c->l->trainable };
    int i = 0;
    if (c->l->arg[BATCHNORM_SCALE] != 0) {
        p.gamma = c->w[i];
        p.dgamma = c->g[i++];
    }
    if (c->l->arg[BATCHNORM_CENTER] != 0) {
        p.beta = c->w[i];
        p.dbeta = c->g[i++];
    }
    p.moving_mean = c->w[i];
    p.batch_mean = c->g[i++];
    p.moving_variance = c->w[i];
    p.batch_variance = c->g[i];
    return p;
}

size_t op_batch_normalization_scratch(const struct layer *l, size_t max_n UNUSED, bool training UNUSED)
{
    return (SCRATCH_ROWS + 2) * (size_t)layer_channels(l) + 1; /* floats, then doubles of column_means */
}

static float *scratch_row(const struct op_ctx *c, int which)
{
    return c->scratch + (size_t)which * op_channels(c);
}

/* Sums of f over rows: in float over blocks of rows, the blocks in double. The sums in double are after the float
 * parts of the scratch. */
static double *wide_sums(const struct op_ctx *c)
{
    uintptr_t at = (uintptr_t)(c->scratch + (SCRATCH_ROWS * op_channels(c)));
    return (double *)((at + sizeof(double) - 1) & ~(uintptr_t)(sizeof(double) - 1));
}

/* The rows that make mean and variance. */
static size_t counted_rows(const struct op_ctx *c)
{
    size_t rows = op_rows_of(c), n = 0;
    const float *mask = c->x[MASK_INPUT];
    if (mask == NULL)
        return rows;
    for (size_t r = 0; r < rows; r++)
        n += mask[r] != 0 ? 1 : 0;
    return n;
}

/* y (channels) = sums over the rows with a mask of x, or of (x - mean)^2 when mean is given. */
static KERNEL void sum_masked_rows(const float *restrict x, const float *restrict mask, const float *restrict mean,
                                   float *restrict y, size_t rows, size_t channels)
{
    memset(y, 0, channels * sizeof(*y));
    for (size_t r = 0; r < rows; r++, x += channels) {
        for (size_t i = 0; i < channels && mask[r] != 0; i++)
            y[i] += mean == NULL ? x[i] : (x[i] - mean[i]) * (x[i] - mean[i]);
    }
}

/* out[i] = mean over rows of x, or of (x - mean)^2 when mean is given. */
static void column_means(const struct op_ctx *c, const float *mean, float *out)
{
    size_t rows = op_rows_of(c), channels = op_channels(c);
    double *total = wide_sums(c), counted = (double)MAX(counted_rows(c), (size_t)1);
    float *block = scratch_row(c, S_SUM);
    const float *mask = c->x[MASK_INPUT];

    for (size_t i = 0; i < channels; i++)
        total[i] = 0;
    for (size_t r = 0; r < rows; r += ROWS_A_BLOCK) {
        const float *x = c->x[0] + r * channels;
        size_t here = MIN(rows - r, (size_t)ROWS_A_BLOCK);
        if (mask != NULL)
            sum_masked_rows(x, mask + r, mean, block, here, channels);
        else if (mean == NULL)
            kernel_sum_rows(x, block, here, channels);
        else
            kernel_sum_square_differences(x, mean, block, here, channels);
        for (size_t i = 0; i < channels; i++)
            total[i] += (double)block[i];
    }
    for (size_t i = 0; i < channels; i++)
        out[i] = (float)(total[i] / counted);
}

size_t op_batch_normalization_sums(const struct layer *l)
{
    return layer_synchronized(l) ? 1 + 2 * (size_t)layer_channels(l) : 0;
}

static void batch_statistics(const struct op_ctx *c, float *mean, float *variance)
{
    column_means(c, NULL, mean);
    column_means(c, mean, variance);
}

/* rows; of each channel the sum of x, then of x^2: made from mean and variance, so that nothing cancels in float. */
size_t op_batch_normalization_sum_forward(const struct op_ctx *c)
{
    size_t channels = op_channels(c);
    float *mean = scratch_row(c, S_MEAN), *variance = scratch_row(c, S_INV);
    double rows = (double)counted_rows(c), *sum = c->sums + 1, *squares = sum + channels;

    batch_statistics(c, mean, variance);
    c->sums[0] = rows;
    for (size_t i = 0; i < channels; i++) {
        sum[i] = rows * (double)mean[i];
        squares[i] = rows * ((double)variance[i] + (double)mean[i] * (double)mean[i]);
    }
    return 1 + 2 * channels;
}

/* The rows of the group are kept for backward, in the place of sums that are not needed any more. */
static void group_statistics(const struct op_ctx *c, float *mean, float *variance)
{
    size_t channels = op_channels(c);
    double rows = fmax(c->sums[0], 1), *sum = c->sums + 1, *squares = sum + channels; /* 0: all is padding */

    wide_sums(c)[0] = rows;
    for (size_t i = 0; i < channels; i++) {
        double middle = sum[i] / rows, spread = squares[i] / rows - middle * middle;
        mean[i] = (float)middle;
        variance[i] = (float)(spread < 0 ? 0 : spread);
    }
}

void op_batch_normalization_forward(const struct op_ctx *c)
{
    struct batchnorm p = batchnorm_parts(c);
    size_t channels = op_channels(c);
    float *mean = scratch_row(c, S_MEAN), *inv = scratch_row(c, S_INV), *a = scratch_row(c, S_A),
          *b = scratch_row(c, S_B);
    float epsilon = (float)c->l->arg[BATCHNORM_EPSILON];

    if (p.batch) {
        (c->sums != NULL ? group_statistics : batch_statistics)(c, mean, inv); /* inv: the variance, for now */
        if (p.batch_mean != NULL)
            memcpy(p.batch_mean, mean, channels * sizeof(*mean));
        if (p.batch_variance != NULL)
            memcpy(p.batch_variance, inv, channels * sizeof(*inv));
    } else {
        memcpy(mean, p.moving_mean, channels * sizeof(*mean));
        memcpy(inv, p.moving_variance, channels * sizeof(*inv));
    }
    for (size_t i = 0; i < channels; i++) {
        inv[i] = 1.0F / sqrtf(inv[i] + epsilon);
        a[i] = inv[i] * (p.gamma != NULL ? p.gamma[i] : 1.0F);
        b[i] = (p.beta != NULL ? p.beta[i] : 0.0F) - mean[i] * a[i];
    }
    kernel_affine_rows(c->x[0], a, b, c->y, op_rows_of(c), channels);
}

/* dbeta = sum dy, dgamma = sum dy xhat, over rows */
static KERNEL void sum_gradients(const float *restrict x, const float *restrict dy, const float *restrict mean,
                                 const float *restrict inv, float *restrict dbeta, float *restrict dgamma, size_t rows,
                                 size_t channels)
{
    for (size_t i = 0; i < channels; i++)
        dbeta[i] = dgamma[i] = 0.0F;
    for (size_t r = 0; r < rows; r++, x += channels, dy += channels) {
        for (size_t i = 0; i < channels; i++) {
            dbeta[i] += dy[i];
            dgamma[i] += dy[i] * ((x[i] - mean[i]) * inv[i]);
        }
    }
}

/* dx = a (dy - mean_dy - xhat mean_dy_xhat); means are sums times `each` */
static KERNEL void input_gradient(const struct op_ctx *c, const float *restrict mean, const float *restrict inv,
                                  const float *restrict a, const float *restrict dbeta, const float *restrict dgamma,
                                  float each, size_t rows, size_t channels)
{
    const float *x = c->x[0], *dy = c->dy;
    float *dx = c->dx[0];

    for (size_t r = 0; r < rows; r++, x += channels, dy += channels, dx += channels) {
        KERNEL_LOOP
        for (size_t i = 0; i < channels; i++)
            dx[i] = a[i] * (dy[i] - each * dbeta[i] - (x[i] - mean[i]) * inv[i] * (each * dgamma[i]));
    }
}

static KERNEL void masked_input_gradient(const struct op_ctx *c, const float *restrict mean, const float *restrict inv,
                                         const float *restrict a, const float *restrict dbeta,
                                         const float *restrict dgamma, float each, size_t rows, size_t channels)
{
    const float *x = c->x[0], *mask = c->x[MASK_INPUT], *dy = c->dy;
    float *dx = c->dx[0];

    for (size_t r = 0; r < rows; r++, x += channels, dy += channels, dx += channels) {
        float own = mask[r] != 0 ? each : 0.0F;
        KERNEL_LOOP
        for (size_t i = 0; i < channels; i++)
            dx[i] = a[i] * (dy[i] - own * dbeta[i] - (x[i] - mean[i]) * inv[i] * (own * dgamma[i]));
    }
}

/* The sums of a group are divided by its counted rows, and weighted by all rows of a batch, as its loss is. */
static void batch_input_gradient(const struct op_ctx *c, const float *dbeta, const float *dgamma)
{
    size_t rows = op_rows_of(c), by = c->sums != NULL ? rows : MAX(counted_rows(c), (size_t)1);
    (c->x[MASK_INPUT] != NULL ? masked_input_gradient
                              : input_gradient)(c, scratch_row(c, S_MEAN), scratch_row(c, S_INV), scratch_row(c, S_A),
                                                dbeta, dgamma, 1.0F / (float)by, rows, op_channels(c));
}

static void sum_own_gradients(const struct op_ctx *c)
{
    sum_gradients(c->x[0], c->dy, scratch_row(c, S_MEAN), scratch_row(c, S_INV), scratch_row(c, S_DBETA),
                  scratch_row(c, S_DGAMMA), op_rows_of(c), op_channels(c));
}

size_t op_batch_normalization_sum_backward(const struct op_ctx *c)
{
    const float *dbeta = scratch_row(c, S_DBETA), *dgamma = scratch_row(c, S_DGAMMA);
    size_t channels = op_channels(c);
    double rows = (double)op_rows_of(c);

    sum_own_gradients(c);
    for (size_t i = 0; i < channels; i++) {
        c->sums[i] = rows * (double)dbeta[i];
        c->sums[channels + i] = rows * (double)dgamma[i];
    }
    return c->dx[0] != NULL ? 2 * channels : 0; /* only dx needs those of the group */
}

static void group_gradients(const struct op_ctx *c, float *dbeta, float *dgamma)
{
    size_t channels = op_channels(c);
    double rows = wide_sums(c)[0];
    for (size_t i = 0; i < channels; i++) {
        dbeta[i] = (float)(c->sums[i] / rows);
        dgamma[i] = (float)(c->sums[channels + i] / rows);
    }
}

void op_batch_normalization_backward(const struct op_ctx *c)
{
    struct batchnorm p = batchnorm_parts(c);
    size_t rows = op_rows_of(c), channels = op_channels(c);
    float *dbeta = scratch_row(c, S_DBETA), *dgamma = scratch_row(c, S_DGAMMA);

    if (c->sums == NULL)
        sum_own_gradients(c);
    if (p.dgamma != NULL)
        memcpy(p.dgamma, dgamma, channels * sizeof(*dgamma));
    if (p.dbeta != NULL)
        memcpy(p.dbeta, dbeta, channels * sizeof(*dbeta));
    if (c->dx[MASK_INPUT] != NULL)
        memset(c->dx[MASK_INPUT], 0, rows * sizeof(float));
    if (c->dx[0] == NULL)
        return;
    if (c->sums != NULL)
        group_gradients(c, dbeta, dgamma);
    if (p.batch)
        batch_input_gradient(c, dbeta, dgamma);
    else
        scale_rows(c->dy, scratch_row(c, S_A), c->dx[0], rows, channels);
}
