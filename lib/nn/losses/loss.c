/* Names, arguments and the table of losses; the arithmetic is in loss_kernel.c. */
#include "nn/losses/loss.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "nn/catalog.h"
#include "nn/losses/loss_kernel.h"
#include "nn/metrics/metric_impl.h"

struct loss_row {
    struct kind k;
    loss_row_fn *row, *logits; /* logits: with from_logits; NULL where Keras has none */
    enum activation_kind last; /* the activation that Keras skips to use its logits; ACT_LINEAR: none */
    bool classes;              /* the last axis is classes: at least two */
    bool sparse, hinge;
    bool unit; /* labels are from 0 to 1: beyond, the loss has no lower bound */
};

struct loss {
    const struct loss_row *row;
    double arg[KIND_ARGS_MAX];
    struct loss_coef coef;
    bool from_logits, ignores;
    int32_t ignored;
};

static const char *const REDUCTIONS[] = { "sum_over_batch_size", "mean", "auto", NULL };
#define COMMON_ARGS ARG_ONE_OF("reduction", REDUCTIONS), ARG_SKIP("fn")
#define FROM_LOGITS ARG_OF("from_logits", ARG_FLAG, 0, ARG_ANY)
#define SMOOTHING   ARG_OF("label_smoothing", ARG_NUMBER, 0, ARG_UNIT)
#define AXIS        ARG_OF("axis", ARG_INTEGER, -1, ARG_ANY)
#define FOCUS       ARG_OF("alpha", ARG_NUMBER, 0.25, ARG_UNIT), ARG_OF("gamma", ARG_NUMBER, 2, ARG_NOT_NEGATIVE)

static const struct arg PLAIN_ARGS[] = { COMMON_ARGS };
static const struct arg HUBER_ARGS[] = { ARG_OF("delta", ARG_NUMBER, 1, ARG_POSITIVE), COMMON_ARGS };
static const struct arg COSINE_ARGS[] = { AXIS, COMMON_ARGS };
static const struct arg ENTROPY_ARGS[] = { FROM_LOGITS, SMOOTHING, AXIS, COMMON_ARGS };
static const struct arg SPARSE_ARGS[] = { ARG_OF("ignore_class", ARG_INTEGER, ARG_NONE, ARG_ANY), FROM_LOGITS, AXIS,
                                          COMMON_ARGS };
static const struct arg BINARY_FOCAL_ARGS[] = {
    ARG_OF("apply_class_balancing", ARG_FLAG, 0, ARG_ANY), FOCUS, FROM_LOGITS, SMOOTHING, AXIS, COMMON_ARGS
};
static const struct arg FOCAL_ARGS[] = { FOCUS, FROM_LOGITS, SMOOTHING, AXIS, COMMON_ARGS };

#define KIND(table, about, ...)                                                                                        \
    {                                                                                                                  \
        { __VA_ARGS__ }, table, COUNT_OF(table), about                                                                 \
    }
static const struct loss_row ROWS[] = {
    { .k = KIND(PLAIN_ARGS, "mean (t - p)^2", "MeanSquaredError", "mean_squared_error", "mse", "MSE"), .row = mse_row },
    { .k = KIND(PLAIN_ARGS, "mean abs(t - p)", "MeanAbsoluteError", "mean_absolute_error", "mae", "MAE"),
      .row = mae_row },
    { .k = KIND(PLAIN_ARGS, "100 mean abs((t - p) / t)", "MeanAbsolutePercentageError",
                "mean_absolute_percentage_error", "mape", "MAPE"),
      .row = mape_row },
    { .k = KIND(PLAIN_ARGS, "mean (log(1 + t) - log(1 + p))^2", "MeanSquaredLogarithmicError",
                "mean_squared_logarithmic_error", "msle", "MSLE"),
      .row = msle_row },
    { .k = KIND(HUBER_ARGS, "mean of (t - p)^2 / 2 within delta, a line beyond", "Huber", "huber", "huber_loss"),
      .row = huber_row },
    { .k = KIND(PLAIN_ARGS, "mean log(cosh(p - t))", "LogCosh", "log_cosh", "logcosh"), .row = log_cosh_row },
    { .k = KIND(PLAIN_ARGS, "mean p - t log p", "Poisson", "poisson"), .row = poisson_row },
    { .k = KIND(PLAIN_ARGS, "sum t log(t / p)", "KLDivergence", "kl_divergence", "kld", "KLD",
                "kullback_leibler_divergence"),
      .row = kl_row },
    { .k = KIND(COSINE_ARGS, "-cos(t, p)", "CosineSimilarity", "cosine_similarity"), .row = cosine_row },
    { .k = KIND(PLAIN_ARGS, "mean max(1 - t p, 0), t in -1, 1 (0, 1 are read as such)", "Hinge", "hinge"),
      .row = hinge_row,
      .hinge = true },
    { .k = KIND(PLAIN_ARGS, "mean max(1 - t p, 0)^2", "SquaredHinge", "squared_hinge"),
      .row = squared_hinge_row,
      .hinge = true },
    { .k = KIND(PLAIN_ARGS, "max(max((1 - t) p) - sum t p + 1, 0)", "CategoricalHinge", "categorical_hinge"),
      .row = categorical_hinge_row,
      .classes = true },
    { .k = KIND(ENTROPY_ARGS, "-mean t log p + (1 - t) log(1 - p)", "BinaryCrossentropy", "binary_crossentropy", "bce",
                "BCE"),
      .row = bce_row,
      .logits = bce_logits_row,
      .last = ACT_SIGMOID,
      .unit = true },
    { .k = KIND(BINARY_FOCAL_ARGS, "binary_crossentropy times (1 - p_t)^gamma", "BinaryFocalCrossentropy",
                "binary_focal_crossentropy"),
      .row = focal_row,
      .logits = focal_logits_row,
      .unit = true },
    { .k = KIND(ENTROPY_ARGS, "-sum t log p, t one-hot or probabilities", "CategoricalCrossentropy",
                "categorical_crossentropy"),
      .row = cce_row,
      .logits = cce_logits_row,
      .last = ACT_SOFTMAX,
      .classes = true },
    { .k = KIND(FOCAL_ARGS, "-sum alpha (1 - p)^gamma t log p", "CategoricalFocalCrossentropy",
                "categorical_focal_crossentropy"),
      .row = categorical_focal_row,
      .logits = categorical_focal_logits_row,
      .classes = true },
    { .k = KIND(SPARSE_ARGS, "-log p[t], t a class number", "SparseCategoricalCrossentropy",
                "sparse_categorical_crossentropy"),
      .row = scce_row,
      .logits = scce_logits_row,
      .last = ACT_SOFTMAX,
      .classes = true,
      .sparse = true },
};
static const char *const LATER[] = { "CTC", "ctc", "Dice", "dice", "Tversky", "tversky", "Circle", "circle", NULL };
const struct catalog LOSSES = { .what = "loss", .plural = "Losses", CATALOG_ROWS(ROWS), .later = LATER };

static double value(const struct loss *l, const char *name, double fallback)
{
    for (size_t i = 0; i < l->row->k.nargs; i++)
        if (strcmp(l->row->k.args[i].name, name) == 0 && !isnan(l->arg[i]))
            return l->arg[i];
    return fallback;
}

static int finish(const struct kind *k, const double *values, const struct node *n, struct loss **ret, struct err *e)
{
    AUTO(loss) *l = xcalloc(1, sizeof(*l));
    l->row = (const struct loss_row *)(const void *)k;
    memcpy(l->arg, values, k->nargs * sizeof(*values));
    if (value(l, "axis", -1) != -1)
        return node_error(n, e, "only axis -1, the last one, is supported");
    l->coef = (struct loss_coef){
        .smoothing = (float)value(l, "label_smoothing", 0),
        .delta = (float)value(l, "delta", 1),
        .alpha = (float)value(l, "alpha", 0),
        .gamma = (float)value(l, "gamma", 0),
        .balancing = value(l, "apply_class_balancing", 0) != 0,
    };
    l->from_logits = value(l, "from_logits", 0) != 0;
    double ignored = value(l, "ignore_class", HUGE_VAL);
    l->ignores = fabs(ignored) <= INT32_MAX;
    l->ignored = l->ignores ? (int32_t)ignored : 0;
    *ret = TAKE(l);
    return 0;
}

int loss_parse(const struct node *n, struct loss **ret, struct err *e)
{
    const struct kind *k = NULL;
    double values[KIND_ARGS_MAX];
    if (catalog_parse(&LOSSES, n, &k, values, NULL, e) < 0)
        return -1;
    return finish(k, values, n, ret, e);
}

int loss_of(const char *name, const struct node *config, struct loss **ret, struct err *e)
{
    const struct kind *k = NULL;
    double values[KIND_ARGS_MAX];
    if (catalog_find(&LOSSES, config, name, &k, e) < 0 || args_parse(k, config, values, e) < 0)
        return -1;
    return finish(k, values, config, ret, e);
}

void loss_free(struct loss *l)
{
    free(l);
}

const char *loss_name(const struct loss *l)
{
    return l->row->k.names[1];
}

bool loss_sparse(const struct loss *l)
{
    return l->row->sparse;
}

bool loss_has_classes(const struct loss *l)
{
    return l->row->classes;
}

enum class_output loss_class_output(const struct loss *l, const struct shape *output, bool *ret_logits)
{
    bool crossentropy = l->row->logits != NULL;
    *ret_logits = l->from_logits;
    if (!crossentropy || output->rank > 1)
        return CLASS_NONE;
    if (l->row->classes)
        return CLASS_EACH;
    return shape_elements(output) == 1 ? CLASS_BINARY : CLASS_NONE;
}

struct label_range label_range_any(void)
{
    return (struct label_range){ .min = -(double)FLT_MAX, .max = (double)FLT_MAX };
}

struct label_range loss_label_range(const struct loss *l, int64_t classes)
{
    struct label_range range = label_range_any();
    range.loss = loss_name(l);
    if (l->row->unit) {
        range.min = 0;
        range.max = 1;
    }
    if (l->row->sparse) {
        range.min = 0;
        range.max = (double)(classes - 1);
        range.classes = true;
        range.ignores = l->ignores;
        range.ignored = l->ignored;
    }
    return range;
}

json_t *loss_json(const struct loss *l)
{
    json_t *config = args_config(&l->row->k, l->arg);
    json_object_set_new(config, "name", json_string(loss_name(l)));
    json_object_set_new(config, "reduction", json_string("sum_over_batch_size"));
    return kind_serialized("keras.losses", l->row->k.names[0], config);
}

int loss_check(const struct loss *l, const struct shape *output, struct err *e)
{
    char text[128];
    int64_t last = output->rank > 0 ? output->dim[output->rank - 1] : 1;
    if (l->row->classes && last < 2)
        return err_set(e, ERR_INPUT, "%s needs an output of at least 2 classes, not shape %s; did you mean '%s'?",
                       loss_name(l), shape_text(output, text), "binary_crossentropy");
    return 0;
}

/* Keras reads labels of hinge losses as 0 and 1 when the whole batch holds nothing else. */
static bool only_binary(const float *t, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t[i] != 0 && t[i] != 1)
            return false;
    return true;
}

static const int32_t *class_numbers(const struct loss *l, const struct loss_batch *b)
{
    return l->row->sparse ? b->y_true : NULL;
}

static bool counts(const struct loss *l, const struct loss_batch *b, size_t row)
{
    bool padding = b->mask != NULL && b->mask[row] == 0;
    return !padding && !(l->ignores && class_numbers(l, b)[row] == l->ignored);
}

/* Keras takes the mean over the rows that count; the caller here divides by all of them. */
static float counting_share(const struct loss *l, const struct loss_batch *b)
{
    size_t counting = 0;
    if (!l->ignores && b->mask == NULL)
        return 1;
    for (size_t i = 0; i < b->rows; i++)
        counting += counts(l, b, i);
    return counting == 0 ? 0.0F : (float)b->rows / (float)counting;
}

/* Also computes `probs` of rows that do not count. */
static double eval(const struct loss *l, loss_row_fn *row, const struct loss_batch *b, const float *pred, float share,
                   float scale, float *probs, float *d)
{
    struct loss_coef k = l->coef;
    const int32_t *label = class_numbers(l, b);
    const float *t = l->row->sparse ? NULL : b->y_true;
    const size_t cols = b->cols;
    double sum = 0;
    k.binary_labels = l->row->hinge && only_binary(t, b->rows * cols);
    for (size_t i = 0; i < b->rows; i++) {
        float w = share * (b->weight != NULL ? b->weight[i] : 1);
        bool counted = counts(l, b, i);
        double v = row(&k, t != NULL ? t + i * cols : NULL, label != NULL && counted ? label[i] : 0, pred + i * cols,
                       cols, scale * w, probs != NULL ? probs + i * cols : NULL, d != NULL ? d + i * cols : NULL);
        if (!counted && d != NULL)
            memset(d + i * cols, 0, cols * sizeof(*d));
        sum += counted ? (double)w * v : 0;
    }
    return sum;
}

static loss_row_fn *own_row(const struct loss *l)
{
    return l->from_logits ? l->row->logits : l->row->row;
}

double loss_eval(const struct loss *l, const struct loss_batch *b, const float *y_pred, float scale, float *d_pred)
{
    return eval(l, own_row(l), b, y_pred, counting_share(l, b), scale, NULL, d_pred);
}

double loss_sum(const struct loss *l, const struct loss_batch *b, const float *y_pred, double *ret_count)
{
    bool all = b->mask == NULL && b->weight == NULL;
    *ret_count = 0;
    for (size_t i = 0; i < b->rows; i++)
        if (all || counts(l, b, i))
            *ret_count += b->weight != NULL ? (double)b->weight[i] : 1;
    return eval(l, own_row(l), b, y_pred, 1, 1, NULL, NULL);
}

bool loss_fuses(const struct loss *l, const struct activation *last)
{
    return l->row->last != ACT_LINEAR && l->row->last == last->kind;
}

double loss_eval_fused(const struct loss *l, UNUSED const struct activation *last, const struct loss_batch *b,
                       const float *logits, float *y_pred, float scale, float *d_logits)
{
    return eval(l, l->row->logits, b, logits, counting_share(l, b), scale, y_pred, d_logits);
}
