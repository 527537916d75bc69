/* The table of metrics: what each one sums over rows, and its value from the sums. Sums of parts add up to those of
 * the whole. */
#include <math.h>
#include <string.h>

#include "nn/metrics/metric_impl.h"
#include "tensor/kernel.h"

/* ---- means: acc = sum of w * value, sum of w ---- */

typedef double row_value_fn(const struct model_metric *m, const struct metric_batch *b, size_t row);

static size_t two(UNUSED const struct model_metric *m)
{
    return 2;
}

static void add_rows(const struct model_metric *m, double *acc, const struct metric_batch *b, row_value_fn *value)
{
    for (size_t i = 0; i < b->rows; i++) {
        acc[0] += metric_weight(b, i) * value(m, b, i);
        acc[1] += metric_weight(b, i);
    }
}

static double mean_result(UNUSED const struct model_metric *m, const double *acc)
{
    return ratio(acc[0], acc[1]);
}

static double root_mean_result(UNUSED const struct model_metric *m, const double *acc)
{
    return sqrt(ratio(acc[0], acc[1]));
}

static double negative_mean_result(UNUSED const struct model_metric *m, const double *acc)
{
    return -ratio(acc[0], acc[1]);
}

static void add_loss(const struct model_metric *m, double *acc, const struct metric_batch *b)
{
    const struct loss_batch rows = { .y_true = b->label != NULL ? (const void *)b->label : b->t,
                                     .weight = b->w,
                                     .mask = b->mask,
                                     .rows = b->rows,
                                     .cols = b->cols };
    double count;
    acc[0] += loss_sum(m->loss, &rows, b->p, &count);
    acc[1] += count;
}

static double binary_hit(const struct model_metric *m, const struct metric_batch *b, size_t row)
{
    const float *t = b->t + row * b->cols, *p = b->p + row * b->cols;
    const float threshold = (float)metric_arg(m, "threshold", 0.5);
    size_t hits = 0;
    for (size_t i = 0; i < b->cols; i++)
        hits += (p[i] > threshold ? 1.0F : 0.0F) == t[i];
    return (double)hits / (double)b->cols;
}

static double categorical_hit(UNUSED const struct model_metric *m, const struct metric_batch *b, size_t row)
{
    return kernel_argmax(b->t + row * b->cols, b->cols) == kernel_argmax(b->p + row * b->cols, b->cols);
}

static double sparse_hit(UNUSED const struct model_metric *m, const struct metric_batch *b, size_t row)
{
    return (int64_t)kernel_argmax(b->p + row * b->cols, b->cols) == b->label[row];
}

/* TensorFlow's in_top_k: fewer than k predictions are greater than the right one, which must be finite. */
static double in_top_k(const struct model_metric *m, const float *p, size_t cols, int64_t right)
{
    size_t greater = 0;
    if (right < 0 || right >= (int64_t)cols || !isfinite(p[right]))
        return 0;
    for (size_t i = 0; i < cols; i++)
        greater += p[i] > p[right];
    return (double)greater < metric_arg(m, "k", 5);
}

static double top_k_hit(const struct model_metric *m, const struct metric_batch *b, size_t row)
{
    const float *t = b->t + row * b->cols;
    return in_top_k(m, b->p + row * b->cols, b->cols, (int64_t)kernel_argmax(t, b->cols));
}

static double sparse_top_k_hit(const struct model_metric *m, const struct metric_batch *b, size_t row)
{
    return in_top_k(m, b->p + row * b->cols, b->cols, b->label[row]);
}

#define ADD_ROWS(name)                                                                                                 \
    static void add_##name(const struct model_metric *m, double *acc, const struct metric_batch *b)                    \
    {                                                                                                                  \
        add_rows(m, acc, b, name);                                                                                     \
    }
ADD_ROWS(binary_hit)
ADD_ROWS(categorical_hit)
ADD_ROWS(sparse_hit)
ADD_ROWS(top_k_hit)
ADD_ROWS(sparse_top_k_hit)

/* ---- confusion counts at one threshold ---- */

enum { TRUE_POSITIVES, FALSE_POSITIVES, TRUE_NEGATIVES, FALSE_NEGATIVES, CONFUSION };

static size_t confusion_width(UNUSED const struct model_metric *m)
{
    return CONFUSION;
}

static void add_confusion(const struct model_metric *m, double *acc, const struct metric_batch *b)
{
    const float threshold = (float)metric_arg(m, "thresholds", 0.5);
    for (size_t i = 0; i < b->rows; i++) {
        for (size_t j = 0; j < b->cols; j++) {
            const bool is = b->t[i * b->cols + j] != 0, said = b->p[i * b->cols + j] > threshold;
            acc[said ? (is ? TRUE_POSITIVES : FALSE_POSITIVES) : (is ? FALSE_NEGATIVES : TRUE_NEGATIVES)] +=
                metric_weight(b, i);
        }
    }
}

#define COUNT_RESULT(name, cell)                                                                                       \
    static double name(UNUSED const struct model_metric *m, const double *acc)                                         \
    {                                                                                                                  \
        return acc[cell];                                                                                              \
    }
COUNT_RESULT(true_positives, TRUE_POSITIVES)
COUNT_RESULT(false_positives, FALSE_POSITIVES)
COUNT_RESULT(true_negatives, TRUE_NEGATIVES)
COUNT_RESULT(false_negatives, FALSE_NEGATIVES)

static double precision(UNUSED const struct model_metric *m, const double *acc)
{
    return ratio(acc[TRUE_POSITIVES], acc[TRUE_POSITIVES] + acc[FALSE_POSITIVES]);
}

static double recall(UNUSED const struct model_metric *m, const double *acc)
{
    return ratio(acc[TRUE_POSITIVES], acc[TRUE_POSITIVES] + acc[FALSE_NEGATIVES]);
}

/* ---- R2Score: per output w, then sums of w t, w t^2, w (t - p)^2 ---- */

static size_t r2_width(const struct model_metric *m)
{
    return 1 + 3 * m->cols;
}

static void add_r2(UNUSED const struct model_metric *m, double *acc, const struct metric_batch *b)
{
    for (size_t i = 0; i < b->rows; i++) {
        const double w = metric_weight(b, i);
        acc[0] += w;
        for (size_t j = 0; j < b->cols; j++) {
            const double t = (double)b->t[i * b->cols + j], miss = t - (double)b->p[i * b->cols + j];
            acc[1 + 3 * j] += w * t;
            acc[2 + 3 * j] += w * t * t;
            acc[3 + 3 * j] += w * miss * miss;
        }
    }
}

static double r2_result(const struct model_metric *m, const double *acc)
{
    double sum = 0;
    for (size_t j = 0; j < m->cols; j++) {
        const double *s = acc + 1 + 3 * j, total = s[1] - ratio(s[0] * s[0], acc[0]);
        const double score = 1 - s[2] / total;
        sum += isinf(score) ? 0 : score;
    }
    return ratio(sum, (double)m->cols);
}

/* ---- the table ---- */

static const char *const CURVES[] = { "ROC", "PR", NULL };
static const char *const METHODS[] = { "interpolation", "minoring", "majoring", NULL };
static const char *const AGGREGATIONS[] = { "uniform_average", NULL };
#define THRESHOLD(name) ARG_OF(name, ARG_NUMBER, 0.5, ARG_UNIT)
#define FROM_LOGITS     ARG_OF("from_logits", ARG_FLAG, 0, ARG_ANY)
#define AXIS            ARG_OF("axis", ARG_INTEGER, -1, ARG_ANY)
static const struct arg BINARY_ARGS[] = { THRESHOLD("threshold") };
static const struct arg TOP_K_ARGS[] = { ARG_OF("k", ARG_INTEGER, 5, ARG_POSITIVE) };
static const struct arg CONFUSION_ARGS[] = { THRESHOLD("thresholds") };
static const struct arg PRECISION_ARGS[] = { THRESHOLD("thresholds"), ARG_REFUSE("top_k"), ARG_REFUSE("class_id") };
static const struct arg AUC_ARGS[] = {
    ARG_OF("num_thresholds", ARG_INTEGER, 200, ARG_AT_LEAST_TWO),
    ARG_ONE_OF("curve", CURVES),
    ARG_ONE_OF("summation_method", METHODS),
    ARG_REFUSE("thresholds"),
    ARG_REFUSE_BUT("multi_label", "False"),
    ARG_REFUSE("num_labels"),
    ARG_REFUSE("label_weights"),
    FROM_LOGITS,
};
static const struct arg R2_ARGS[] = { ARG_ONE_OF("class_aggregation", AGGREGATIONS),
                                      ARG_REFUSE_BUT("num_regressors", "0") };
static const struct arg ENTROPY_ARGS[] = { FROM_LOGITS, ARG_OF("label_smoothing", ARG_NUMBER, 0, ARG_UNIT), AXIS };
static const struct arg SPARSE_ARGS[] = { ARG_OF("ignore_class", ARG_INTEGER, ARG_NONE, ARG_ANY), FROM_LOGITS, AXIS };
static const struct arg COSINE_ARGS[] = { AXIS };

#define PLAIN(about, ...)       .k = { { __VA_ARGS__ }, NULL, 0, about }
#define KIND(table, about, ...) .k = { { __VA_ARGS__ }, table, COUNT_OF(table), about }
#define MEAN_OF(fn)             .width = two, .add = fn, .result = mean_result
#define SHARE_OF(fn)            .better = BETTER_UP, .masked = true, MEAN_OF(fn)
#define LOSS(name)              .better = BETTER_DOWN, .masked = true, .loss = name, MEAN_OF(add_loss)
#define CONFUSION_OF(fn)        .width = confusion_width, .add = add_confusion, .result = fn
static const struct metric_row ROWS[] = {
    { KIND(BINARY_ARGS, "share of p > threshold that equal t", "BinaryAccuracy", "binary_accuracy"),
      SHARE_OF(add_binary_hit) },
    { PLAIN("share of rows where the largest p is the largest t", "CategoricalAccuracy", "categorical_accuracy"),
      SHARE_OF(add_categorical_hit), .classes = true },
    { PLAIN("share of rows where the largest p is class t", "SparseCategoricalAccuracy", "sparse_categorical_accuracy"),
      SHARE_OF(add_sparse_hit), .labels = LABELS_SPARSE, .classes = true },
    { KIND(TOP_K_ARGS, "share of rows where the right class is among the k largest p", "TopKCategoricalAccuracy",
           "top_k_categorical_accuracy"),
      SHARE_OF(add_top_k_hit), .classes = true },
    { KIND(TOP_K_ARGS, "the same for class numbers", "SparseTopKCategoricalAccuracy",
           "sparse_top_k_categorical_accuracy"),
      SHARE_OF(add_sparse_top_k_hit), .labels = LABELS_SPARSE, .classes = true },
    { PLAIN("mean (t - p)^2", "MeanSquaredError", "mean_squared_error", "mse", "MSE"), LOSS("MeanSquaredError") },
    { PLAIN("sqrt of mean (t - p)^2", "RootMeanSquaredError", "root_mean_squared_error", "rmse", "RMSE"),
      .better = BETTER_DOWN, .loss = "MeanSquaredError", .width = two, .add = add_loss, .result = root_mean_result },
    { PLAIN("mean abs(t - p)", "MeanAbsoluteError", "mean_absolute_error", "mae", "MAE"), LOSS("MeanAbsoluteError") },
    { PLAIN("100 mean abs((t - p) / t)", "MeanAbsolutePercentageError", "mean_absolute_percentage_error", "mape",
            "MAPE"),
      LOSS("MeanAbsolutePercentageError") },
    { PLAIN("mean (log(1 + t) - log(1 + p))^2", "MeanSquaredLogarithmicError", "mean_squared_logarithmic_error", "msle",
            "MSLE"),
      LOSS("MeanSquaredLogarithmicError") },
    { PLAIN("mean log(cosh(p - t))", "LogCoshError", "logcosh", "log_cosh_error", "log_cosh"), LOSS("LogCosh") },
    { KIND(COSINE_ARGS, "cos(t, p), the loss with the other sign", "CosineSimilarity", "cosine_similarity", "cosine"),
      .better = BETTER_UP, .masked = true, .loss = "CosineSimilarity", .width = two, .add = add_loss,
      .result = negative_mean_result },
    { KIND(R2_ARGS, "1 - sum (t - p)^2 / sum (t - mean t)^2, mean over outputs", "R2Score", "r2_score"),
      .better = BETTER_UP, .width = r2_width, .add = add_r2, .result = r2_result },
    { KIND(AUC_ARGS, "area under the ROC or precision-recall curve from num_thresholds buckets", "AUC", "auc"),
      .better = BETTER_UP, .width = auc_width, .add = add_auc, .result = auc_result },
    { KIND(PRECISION_ARGS, "TP / (TP + FP)", "Precision", "precision"), .better = BETTER_UP, CONFUSION_OF(precision) },
    { KIND(PRECISION_ARGS, "TP / (TP + FN)", "Recall", "recall"), .better = BETTER_UP, CONFUSION_OF(recall) },
    { KIND(CONFUSION_ARGS, "count of p > thresholds with t 1", "TruePositives", "true_positives"),
      CONFUSION_OF(true_positives) },
    { KIND(CONFUSION_ARGS, "count of p > thresholds with t 0", "FalsePositives", "false_positives"),
      CONFUSION_OF(false_positives) },
    { KIND(CONFUSION_ARGS, "count of p <= thresholds with t 0", "TrueNegatives", "true_negatives"),
      CONFUSION_OF(true_negatives) },
    { KIND(CONFUSION_ARGS, "count of p <= thresholds with t 1", "FalseNegatives", "false_negatives"),
      CONFUSION_OF(false_negatives) },
    { KIND(ENTROPY_ARGS, "-mean t log p + (1 - t) log(1 - p)", "BinaryCrossentropy", "binary_crossentropy", "bce",
           "BCE"),
      LOSS("BinaryCrossentropy") },
    { KIND(ENTROPY_ARGS, "-sum t log p, t one-hot or probabilities", "CategoricalCrossentropy",
           "categorical_crossentropy"),
      LOSS("CategoricalCrossentropy"), .classes = true },
    { KIND(SPARSE_ARGS, "-log p[t], t a class number", "SparseCategoricalCrossentropy",
           "sparse_categorical_crossentropy"),
      LOSS("SparseCategoricalCrossentropy"), .labels = LABELS_SPARSE, .classes = true },
    { PLAIN("sum t log(t / p)", "KLDivergence", "kl_divergence", "kld", "KLD"), LOSS("KLDivergence") },
    { PLAIN("mean p - t log p", "Poisson", "poisson"), LOSS("Poisson") },
    { PLAIN("mean max(1 - t p, 0)", "Hinge", "hinge"), LOSS("Hinge") },
    { PLAIN("mean max(1 - t p, 0)^2", "SquaredHinge", "squared_hinge"), LOSS("SquaredHinge") },
    { PLAIN("max(max((1 - t) p) - sum t p + 1, 0)", "CategoricalHinge", "categorical_hinge"), LOSS("CategoricalHinge"),
      .classes = true },
};
static const char *const LATER[] = { "F1Score",
                                     "FBetaScore",
                                     "IoU",
                                     "MeanIoU",
                                     "BinaryIoU",
                                     "OneHotIoU",
                                     "OneHotMeanIoU",
                                     "SensitivityAtSpecificity",
                                     "SpecificityAtSensitivity",
                                     "PrecisionAtRecall",
                                     "RecallAtPrecision",
                                     "PearsonCorrelation",
                                     "ConcordanceCorrelation",
                                     "Mean",
                                     "Sum",
                                     "MeanMetricWrapper",
                                     "MeanTensor",
                                     NULL };
static const char *const ALSO[] = { "accuracy", "acc", "crossentropy", "ce", NULL }; /* metric_list.c resolves them */
const struct catalog METRICS = {
    .what = "metric", .plural = "Metrics", CATALOG_ROWS(ROWS), .later = LATER, .also = ALSO
};

double metric_arg(const struct model_metric *m, const char *name, double fallback)
{
    for (size_t i = 0; i < m->row->k.nargs; i++)
        if (strcmp(m->row->k.args[i].name, name) == 0)
            return m->arg[i];
    return fallback;
}
