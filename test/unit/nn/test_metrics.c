#include "../one_output.h"
#include "check_main.h"
#include "nn/metrics/metrics.h"

#include "base/rng.h"
#include "nn/metrics/metric_impl.h"
#include "nn/named.h"

/* ---- golden values, through the list of metrics, including weighted ones ---- */

static const struct {
    const char *name, *metric, *loss;
} GOLDEN[] = {
    { "binary_accuracy", "\"binary_accuracy\"", "bce" },
    { "binary_accuracy_t.3", "{\"BinaryAccuracy\": {\"threshold\": 0.3}}", "bce" },
    { "categorical_accuracy", "\"categorical_accuracy\"", "categorical_crossentropy" },
    { "sparse_categorical_accuracy", "\"SparseCategoricalAccuracy\"", "sparse_categorical_crossentropy" },
    { "sparse_top2", "{\"SparseTopKCategoricalAccuracy\": {\"k\": 2}}", "sparse_categorical_crossentropy" },
    { "top2", "{\"TopKCategoricalAccuracy\": {\"k\": 2}}", "categorical_crossentropy" },
    { "auc_roc", "\"AUC\"", "bce" },
    { "auc_pr", "{\"AUC\": {\"curve\": \"PR\"}}", "bce" },
    { "auc_roc_5", "{\"AUC\": {\"num_thresholds\": 5}}", "bce" },
    { "precision", "\"Precision\"", "bce" },
    { "recall", "\"Recall\"", "bce" },
    { "true_positives", "\"TruePositives\"", "bce" },
    { "false_positives", "\"FalsePositives\"", "bce" },
    { "mse", "\"mse\"", "mse" },
    { "mae", "\"mae\"", "mse" },
    { "rmse", "\"RootMeanSquaredError\"", "mse" },
    { "r2", "\"R2Score\"", "mse" },
    { "cosine", "\"CosineSimilarity\"", "mse" },
    { "binary_crossentropy", "\"BinaryCrossentropy\"", "bce" },
    { "sparse_categorical_crossentropy", "{\"SparseCategoricalCrossentropy\": {\"from_logits\": true}}",
      "sparse_categorical_crossentropy" },
};

/* The case's name without "_weighted". */
static size_t find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(GOLDEN); i++) {
        size_t n = strlen(GOLDEN[i].name);
        if (strncmp(name, GOLDEN[i].name, n) == 0 && (name[n] == '\0' || strcmp(name + n, "_weighted") == 0))
            return i;
    }
    return SIZE_MAX;
}

static struct loss *loss_named(const char *name)
{
    struct err e = { 0 };
    struct loss *l = NULL;
    json_auto_t *v = json_string(name);
    struct node n = named_node(v);
    ck_ok_e(loss_parse(&n, &l, &e));
    return l;
}

static void run_case(const json_t *c, size_t which)
{
    struct err e = { 0 };
    AUTO(loss) *loss = loss_named(GOLDEN[which].loss);
    AUTO(metric_list) *l = NULL;
    json_auto_t *v = named_json(GOLDEN[which].metric);
    struct node n = named_node(v);
    const json_t *pred = json_object_get(c, "y_pred"), *truth = json_object_get(c, "y_true");
    const struct shape shape = golden_shape(pred, 0), output = golden_shape(pred, 1);
    const size_t rows = (size_t)shape.dim[0], cols = shape.rank > 1 ? (size_t)shape.dim[1] : 1;
    const bool weighted = json_object_get(c, "sample_weight") != NULL;
    const struct node none = { .v = NULL };
    ck_ok_e(metric_list_parse(weighted ? &none : &n, loss, &output, &l, &e));
    ck_ok_e(metric_list_add_weighted(l, weighted ? &n : &none, loss, &output, &e));
    auto_free float *p = golden_floats(pred), *t = golden_floats(truth);
    auto_free float *w = golden_floats(json_object_get(c, "sample_weight"));
    auto_free int32_t *label = named_ints(truth);
    auto_free double *acc = xcalloc(l->width, sizeof(*acc));
    for (size_t half = 0; half < 2; half++) {
        const size_t at = half * rows / 2;
        struct metric_batch b = { .p = p + at * cols, .rows = rows / 2, .cols = cols };
        b.label = loss_sparse(loss) ? label + at : NULL;
        b.t = loss_sparse(loss) ? NULL : t + at * cols;
        b.w = weighted ? w + at : NULL;
        double result = 0;
        metric_list_add(l, acc, &b);
        metric_list_result(l, acc, &result);
        golden_near(c, "result", (double)golden_at(json_object_get(c, "results"), half), result);
    }
}

START_TEST(every_golden_metric_is_keras)
{
    json_auto_t *file = golden_read("test/data/nn/metrics.json");
    size_t i, ran = 0;
    const json_t *c;
    json_array_foreach(json_object_get(file, "cases"), i, c)
    {
        size_t which = find(named_case(c));
        if (which != SIZE_MAX) {
            run_case(c, which);
            ran++;
        } else { /* Mean and Sum of plain values are not valid in compile.metrics */
            ck_assert(strncmp(named_case(c), "mean", 4) == 0 || strncmp(named_case(c), "sum", 3) == 0);
        }
    }
    ck_assert_uint_eq(ran, 39);
}
END_TEST

/* ---- names ---- */

static int parse_list(const char *text, const char *loss_text, int64_t classes, struct metric_list **ret, struct err *e)
{
    AUTO(loss) *loss = loss_named(loss_text);
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    const struct shape output = shape_of(1, (int64_t[]){ classes });
    return metric_list_parse(&n, loss, &output, ret, e);
}

START_TEST(accuracy_is_what_loss_and_output_make_of_it)
{
    static const struct {
        const char *text, *loss, *row, *name;
        int64_t classes;
    } CASES[] = {
        { "[\"accuracy\"]", "sparse_categorical_crossentropy", "SparseCategoricalAccuracy", "accuracy", 10 },
        { "\"acc\"", "categorical_crossentropy", "CategoricalAccuracy", "acc", 10 },
        { "[\"accuracy\"]", "binary_crossentropy", "BinaryAccuracy", "accuracy", 1 },
        { "[\"accuracy\"]", "binary_crossentropy", "CategoricalAccuracy", "accuracy", 3 },
        { "[\"crossentropy\"]", "sparse_categorical_crossentropy", "SparseCategoricalCrossentropy", "crossentropy",
          10 },
        { "[\"mse\"]", "mse", "MeanSquaredError", "mse", 1 },
        { "[\"MeanSquaredError\"]", "mse", "MeanSquaredError", "MeanSquaredError", 1 },
        { "[{\"MeanSquaredError\": {}}]", "mse", "MeanSquaredError", "mean_squared_error", 1 },
        { "[{\"AUC\": {\"name\": \"area\"}}]", "bce", "AUC", "area", 1 },
        { "[{\"class_name\": \"AUC\", \"config\": {\"name\": \"area\"}}]", "bce", "AUC", "area", 1 },
        { "[{\"name\": \"AUC\", \"curve\": \"PR\"}]", "bce", "AUC", "auc", 1 },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct err e = { 0 };
        AUTO(metric_list) *l = NULL;
        ck_ok_e(parse_list(CASES[i].text, CASES[i].loss, CASES[i].classes, &l, &e));
        ck_assert_uint_eq(metric_list_size(l), 1);
        ck_assert_str_eq(l->items[0].row->k.names[0], CASES[i].row);
        ck_assert_str_eq(metric_list_name(l, 0), CASES[i].name);
        json_auto_t *config = metric_list_json(l, false);
        auto_free char *text = json_dumps(config, 0);
        AUTO(metric_list) *again = NULL;
        ck_ok_e(parse_list(text, CASES[i].loss, CASES[i].classes, &again, &e));
        ck_assert_str_eq(metric_list_name(again, 0), CASES[i].name);
    }
}
END_TEST

/* metrics, weighted metrics -> the names of all, or the error */
START_TEST(a_weighted_metric_gives_way_to_a_name_that_is_taken)
{
    static const struct {
        const char *plain, *weighted, *names, *error;
    } CASES[] = {
        { "[\"acc\", \"mse\"]", "[\"acc\", \"mae\"]", "acc mse weighted_acc mae", NULL },
        { "[\"acc\"]", "null", "acc", NULL },
        { "null", "\"acc\"", "acc", NULL },
        { "[\"mse\"]", "[{\"MeanSquaredError\": {\"name\": \"w\"}}]", "mse w", NULL },
        { "[\"mse\"]", "[\"mse\", \"mse\"]", NULL, "there is a metric named 'weighted_mse' already" },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct err e = { 0 };
        AUTO(metric_list) *l = NULL;
        AUTO(loss) *loss = loss_named("categorical_crossentropy");
        AUTO_FINI(buf) names = BUF_INIT;
        json_auto_t *v = named_json(CASES[i].weighted);
        struct node n = named_node(v);
        const struct shape output = shape_of(1, (int64_t[]){ 3 });
        ck_ok_e(parse_list(CASES[i].plain, "categorical_crossentropy", 3, &l, &e));
        int rc = metric_list_add_weighted(l, &n, loss, &output, &e);
        ck_assert_int_eq(rc, CASES[i].error != NULL ? -1 : 0);
        if (CASES[i].error != NULL) {
            ck_assert_msg(strstr(e.msg, CASES[i].error) != NULL, "%s", e.msg);
            continue;
        }
        for (size_t k = 0; k < metric_list_size(l); k++)
            buf_printf(&names, "%s%s", k > 0 ? " " : "", metric_list_name(l, k));
        ck_assert_str_eq(names.data, CASES[i].names);
    }
}
END_TEST

START_TEST(weighted_metrics_are_weighted_in_the_config)
{
    struct err e = { 0 };
    AUTO(metric_list) *l = NULL;
    AUTO(loss) *loss = loss_named("categorical_crossentropy");
    json_auto_t *v = named_json("[\"acc\", {\"AUC\": {}}]");
    struct node n = named_node(v);
    const struct shape output = shape_of(1, (int64_t[]){ 3 });
    ck_ok_e(parse_list("[\"acc\"]", "categorical_crossentropy", 3, &l, &e));
    json_auto_t *none = metric_list_json(l, true);
    ck_assert(json_is_null(none));
    ck_ok_e(metric_list_add_weighted(l, &n, loss, &output, &e));
    json_auto_t *plain = metric_list_json(l, false), *weighted = metric_list_json(l, true);
    ck_assert_uint_eq(json_array_size(plain), 1);
    ck_assert_str_eq(json_string_value(json_array_get(weighted, 0)), "acc"); /* Keras adds the prefix again */
    ck_assert_str_eq(json_string_value(json_at(weighted, "1.config.name")), "auc");
}
END_TEST

START_TEST(bad_input_names_the_fault)
{
    static const struct {
        const char *text, *loss;
        int64_t classes;
        const char *message;
    } CASES[] = {
        { "[\"acuracy\"]", "mse", 1, "metric 'acuracy' is not known; did you mean 'accuracy'?" },
        { "[\"mse\", \"mean_squared_errror\"]", "mse", 1, "[1]: metric 'mean_squared_errror'" },
        { "[\"mse\", \"mse\"]", "mse", 1, "a metric named 'mse' already" },
        { "[{\"AUC\": {\"curve\": \"RC\"}}]", "bce", 1, "curve" },
        { "[{\"AUC\": {\"num_thresholds\": 1}}]", "bce", 1, "2 or greater" },
        { "[{\"AUC\": {\"num_thresholds\": 100000000}}]", "bce", 1, "at most 10000" },
        { "[{\"Precision\": {\"class_id\": 3}}]", "bce", 1, "'class_id' is not supported yet" },
        { "[\"categorical_accuracy\"]", "sparse_categorical_crossentropy", 10, "takes class numbers" },
        { "[\"sparse_categorical_accuracy\"]", "categorical_crossentropy", 10, "needs class numbers for labels" },
        { "[\"categorical_accuracy\"]", "bce", 1, "at least 2 classes" },
        { "[\"F1Score\"]", "bce", 1, "metric 'F1Score' is not supported yet" },
        { "[7]", "bce", 1, "" },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct err e = { 0 };
        AUTO(metric_list) *l = NULL;
        ck_assert_msg(parse_list(CASES[i].text, CASES[i].loss, CASES[i].classes, &l, &e) < 0, "%s", CASES[i].text);
        ck_message_has(e, CASES[i].message);
    }
}
END_TEST

/* ---- the accumulator of a model ---- */

static struct model *model_of(const char *units, const char *compile_text)
{
    struct err e = { 0 };
    struct model *m = NULL;
    auto_free char *text = xasprintf("{\"inputShape\": [2], \"layers\": [{\"Dense\": {\"units\": %s}}]}", units);
    json_auto_t *v = named_json(text), *c = named_json(compile_text);
    struct node model = named_node(v), compile = named_node(c);
    ck_ok_e(model_build(&model, &compile, ".", &m, &e));
    return m;
}

START_TEST(batches_add_up_in_any_order_and_cut)
{
    enum { N = 64, C = 3 };
    AUTO(model) *m = model_of("3", "{\"optimizer\": \"sgd\", \"loss\": \"sparse_categorical_crossentropy\","
                                   " \"metrics\": [\"accuracy\", {\"SparseTopKCategoricalAccuracy\": {\"k\": 2}}]}");
    struct rng r = rng_at(5, RNG_TEST, 0, 0);
    float p[N * C];
    int32_t label[N];
    for (size_t i = 0; i < N * C; i++)
        p[i] = rng_uniform(&r);
    for (size_t i = 0; i < N; i++)
        label[i] = (int32_t)rng_below(&r, C);
    double whole[16] = { 0 }, cut[16] = { 0 }, a[3], b[3];
    ck_assert_uint_le(metrics_width(m), 16);
    struct tensor y = { .dtype = DT_INT32, .shape = shape_of(1, (int64_t[]){ N }), .data = label };
    add_one_output(m, whole, 2.5 * N, &y, p, N);
    for (size_t at = N; at > 0; at -= 16) {
        double part[16] = { 0 };
        y.data = label + at - 16;
        add_one_output(m, part, 2.5 * 16, &y, p + (at - 16) * C, 16);
        metrics_merge(m, cut, part);
    }
    ck_near(cut[1], N, 0);
    metrics_result(m, whole, a);
    metrics_result(m, cut, b);
    ck_assert_mem_eq(a, b, sizeof(a));
    ck_near(a[0], 2.5, 0);
    ck_assert(a[1] > 0.1 && a[1] < 0.6 && a[2] > a[1]);
}
END_TEST

/* Keras's MeanMetricWrapper leaves padding out, and other metrics count it. */
START_TEST(padding_is_left_out_of_means)
{
    AUTO(model) *m = model_of("1", "{\"optimizer\": \"sgd\", \"loss\": \"mse\", \"metrics\": [\"mae\", "
                                   "\"BinaryAccuracy\", \"RootMeanSquaredError\", \"Precision\"],"
                                   " \"weightedMetrics\": [\"mae\"]}");
    float p[4] = { 1, 0, 1, 1 }, t[4] = { 1, 4, 0, 3 }, mask[4] = { 2, 0, 1, 0 }, weight[4] = { 1, 5, 3, 7 };
    auto_free double *acc = xcalloc(metrics_width(m), sizeof(*acc));
    double result[6];
    struct tensor y = { .dtype = DT_FLOAT, .shape = shape_of(2, (int64_t[]){ 4, 1 }), .data = t };
    const struct output_values v = { .y_true = &y, .y_pred = p, .weight = weight, .mask = mask, .n = 4 };
    metrics_add_loss(acc, 0, 4);
    metrics_add_output(m, acc, 0, &v);
    metrics_result(m, acc, result);
    ck_near(result[1], 0.5, 0);
    ck_near(result[2], 0.5, 0);
    ck_near(result[3], sqrt((16 + 1 + 4) / 4.0), 1e-6);
    ck_near(result[4], 2.0 / 3, 1e-6);
    ck_near(result[5], 3.0 / 4, 1e-6);
}
END_TEST

START_TEST(no_examples_no_numbers)
{
    AUTO(model) *m = model_of("1", "{\"optimizer\": \"sgd\", \"loss\": \"mse\", \"metrics\": [\"mae\", \"R2Score\"]}");
    double acc[16] = { 0 }, result[3];
    metrics_result(m, acc, result);
    ck_assert(isnan(result[0]) && isnan(result[1]) && isnan(result[2]));
}
END_TEST

START_TEST(a_diverged_model_does_not_break_the_counts)
{
    AUTO(model) *m = model_of("1", "{\"optimizer\": \"sgd\", \"loss\": \"bce\","
                                   " \"metrics\": [\"AUC\", \"Precision\", \"accuracy\", \"bce\"]}");
    float p[4] = { NAN, HUGE_VALF, -HUGE_VALF, 1e30F }, t[4] = { 0, 1, 0, 1 };
    auto_free double *acc = xcalloc(metrics_width(m), sizeof(*acc));
    double result[5];
    struct tensor y = { .dtype = DT_FLOAT, .shape = shape_of(2, (int64_t[]){ 4, 1 }), .data = t };
    add_one_output(m, acc, (double)NAN, &y, p, 4);
    metrics_result(m, acc, result);
    ck_assert(isnan(result[0]) && isnan(result[4]));
    ck_near(result[2], 1, 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/metrics");
    TCase *t = tcase_create("metrics");
    tcase_add_test(t, every_golden_metric_is_keras);
    tcase_add_test(t, accuracy_is_what_loss_and_output_make_of_it);
    tcase_add_test(t, bad_input_names_the_fault);
    tcase_add_test(t, a_weighted_metric_gives_way_to_a_name_that_is_taken);
    tcase_add_test(t, weighted_metrics_are_weighted_in_the_config);
    tcase_add_test(t, batches_add_up_in_any_order_and_cut);
    tcase_add_test(t, padding_is_left_out_of_means);
    tcase_add_test(t, no_examples_no_numbers);
    tcase_add_test(t, a_diverged_model_does_not_break_the_counts);
    suite_add_tcase(s, t);
    return s;
}
