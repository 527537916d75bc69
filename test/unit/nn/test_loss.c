#include "check_main.h"
#include "nn/losses/loss.h"

#include "base/rng.h"
#include "nn/catalog.h"
#include "nn/named.h"

enum { ROWS = 6, COLS = 5, CELLS = ROWS * COLS };

static struct loss_batch rows_of(const void *y_true, const float *weight, size_t rows, size_t cols)
{
    return (struct loss_batch){ .y_true = y_true, .weight = weight, .rows = rows, .cols = cols };
}
#define ROWS_OF(...) (&(struct loss_batch[]){ rows_of(__VA_ARGS__) }[0])

static struct loss *parse_json(const json_t *v)
{
    struct err e = { 0 };
    struct loss *l = NULL;
    struct node n = named_node(v);
    ck_ok_e(loss_parse(&n, &l, &e));
    return l;
}

static struct loss *parse(const char *text)
{
    json_auto_t *v = named_json(text);
    return parse_json(v);
}

static void refused(const char *text, const char *message)
{
    struct err e = { 0 };
    struct loss *l = NULL;
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    ck_assert_msg(loss_parse(&n, &l, &e) < 0, "%s was taken", text);
    ck_message_has(e, message);
    ck_assert_int_eq(e.code, ERR_INPUT);
}

static void run_case(const json_t *c)
{
    json_auto_t *object = named_object(json_object_get(c, "config"));
    AUTO(loss) *l = parse_json(object);
    const json_t *pred = json_object_get(c, "y_pred"), *truth = json_object_get(c, "y_true");
    const size_t rows = (size_t)golden_shape(pred, 0).dim[0], cols = (size_t)golden_shape(pred, 0).dim[1];
    auto_free float *p = golden_floats(pred), *t = golden_floats(truth), *d = golden_floats(pred);
    auto_free float *w = golden_floats(json_object_get(c, "sample_weight"));
    auto_free int32_t *label = named_ints(truth);
    const void *y = loss_sparse(l) ? (const void *)label : t;
    const float *weight = json_object_get(c, "sample_weight") != NULL ? w : NULL;

    double loss = loss_eval(l, ROWS_OF(y, weight, rows, cols), p, 1 / (float)rows, d);
    golden_near(c, "loss", (double)golden_at(json_object_get(c, "loss"), 0), loss / (double)rows);
    golden_check(c, "gradient", json_object_get(c, "grad_y_pred"), d);
    for (size_t i = 0; i < rows; i++) {
        const void *yi = loss_sparse(l) ? (const void *)(label + i) : t + i * cols;
        double one = loss_eval(l, ROWS_OF(yi, NULL, 1, cols), p + i * cols, 1, NULL);
        golden_near(c, "per sample", (double)golden_at(json_object_get(c, "per_sample"), i),
                    (weight != NULL ? (double)weight[i] : 1) * one);
    }
}

START_TEST(every_golden_loss_and_gradient_is_keras)
{
    json_auto_t *file = golden_read("test/data/nn/losses.json");
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(file, "cases"), i, c) run_case(c);
    ck_assert_uint_eq(i, 48);
}
END_TEST

/* ---- gradients against differences, for every row of the table and its forms ---- */

struct data {
    float t[CELLS], p[CELLS], w[ROWS];
    int32_t label[ROWS];
};

static bool of_logits(const struct loss *l)
{
    json_auto_t *json = loss_json(l);
    return json_is_true(json_object_get(json_object_get(json, "config"), "from_logits"));
}

/* Predictions away from kinks; probabilities where the loss needs them. */
static void fill(struct data *d, const struct loss *l)
{
    struct rng r = rng_at(3, RNG_TEST, 0, 0);
    const bool number = strstr("mean_squared_error mean_absolute_error mean_absolute_percentage_error huber log_cosh "
                               "cosine_similarity hinge squared_hinge categorical_hinge",
                               loss_name(l)) != NULL;
    const bool logits = number || of_logits(l);
    const bool signs = strstr(loss_name(l), "hinge") != NULL && strcmp(loss_name(l), "categorical_hinge") != 0;
    for (size_t i = 0; i < ROWS; i++) {
        float sum = 0;
        d->label[i] = (int32_t)rng_below(&r, COLS);
        d->w[i] = 0.5F + rng_uniform(&r);
        for (size_t j = i * COLS; j < (i + 1) * COLS; j++) {
            d->p[j] = logits ? 4 * rng_uniform(&r) - 2 : 0.05F + 0.9F * rng_uniform(&r);
            d->t[j] = 0.05F + rng_uniform(&r);
            sum += d->t[j];
        }
        for (size_t j = 0; j < COLS; j++)
            d->t[i * COLS + j] = signs ? (j % 2 ? 1 : -1) : d->t[i * COLS + j] / sum;
    }
}

static double total(const struct loss *l, const struct data *d, const float *p)
{
    return loss_eval(l, ROWS_OF(loss_sparse(l) ? (const void *)d->label : d->t, d->w, ROWS, COLS), p, 0.25F, NULL) *
           0.25;
}

static void check_gradient(const struct loss *l)
{
    struct data d;
    float g[CELLS], moved[CELLS];
    fill(&d, l);
    loss_eval(l, ROWS_OF(loss_sparse(l) ? (const void *)d.label : d.t, d.w, ROWS, COLS), d.p, 0.25F, g);
    memcpy(moved, d.p, sizeof(moved));
    for (size_t i = 0; i < CELLS; i++) {
        const float h = 1e-2F;
        double slope[2];
        for (int k = 0; k < 2; k++) { /* two step sizes: Richardson extrapolation removes the error of h^2 */
            const float step = k == 0 ? h : h / 2;
            moved[i] = d.p[i] + step;
            double up = total(l, &d, moved);
            moved[i] = d.p[i] - step;
            slope[k] = (up - total(l, &d, moved)) / (2 * (double)step);
        }
        moved[i] = d.p[i];
        const double want = (4 * slope[1] - slope[0]) / 3, allowed = 4e-3 * fmax(1, fabs(want));
        ck_assert_msg(fabs(want - (double)g[i]) <= allowed || fabs(slope[0] - slope[1]) > allowed,
                      "%s%s: d[%zu] is %.6g, differences say %.6g", loss_name(l), of_logits(l) ? " of logits" : "", i,
                      (double)g[i], want);
    }
}

static bool has_arg(const struct kind *k, const char *name)
{
    for (size_t i = 0; i < k->nargs; i++)
        if (strcmp(k->args[i].name, name) == 0)
            return true;
    return false;
}

START_TEST(gradients_are_the_slopes_of_the_values)
{
    for (size_t i = 0; i < LOSSES.count; i++) {
        const struct kind *k = catalog_row(&LOSSES, i);
        for (int form = 0; form < 4; form++) {
            const bool logits = (form & 1) != 0, smoothed = (form & 2) != 0;
            if ((logits && !has_arg(k, "from_logits")) || (smoothed && !has_arg(k, "label_smoothing")))
                continue;
            auto_free char *text =
                xasprintf("{\"%s\": {%s%s%s}}", k->names[0], logits ? "\"from_logits\": true" : "",
                          logits && smoothed ? ", " : "", smoothed ? "\"label_smoothing\": 0.1" : "");
            AUTO(loss) *l = parse(text);
            check_gradient(l);
        }
    }
}
END_TEST

START_TEST(every_name_of_keras_finds_its_loss)
{
    for (size_t i = 0; i < LOSSES.count; i++) {
        const struct kind *k = catalog_row(&LOSSES, i);
        for (size_t j = 0; j < KIND_NAMES_MAX && k->names[j] != NULL; j++) {
            auto_free char *text = xasprintf("\"%s\"", k->names[j]);
            AUTO(loss) *l = parse(text);
            ck_assert_str_eq(loss_name(l), k->names[1]);
            json_auto_t *config = loss_json(l);
            AUTO(loss) *again = parse_json(config);
            ck_assert_str_eq(loss_name(again), k->names[1]);
        }
    }
}
END_TEST

/* ---- the fused path ---- */

static void check_fused(const char *text, const char *logits_text, enum activation_kind last)
{
    AUTO(loss) *l = parse(text), *logits = parse(logits_text);
    const struct activation a = activation_of(last), other = activation_of(ACT_RELU);
    struct data d;
    float y[CELLS], want_y[CELLS], g[CELLS], want_g[CELLS];
    fill(&d, logits);
    ck_assert(loss_fuses(l, &a));
    ck_assert(!loss_fuses(l, &other));
    const void *t = loss_sparse(l) ? (const void *)d.label : d.t;
    activation_forward(&a, d.p, want_y, ROWS, COLS);
    const double want = loss_eval(logits, ROWS_OF(t, d.w, ROWS, COLS), d.p, 0.5F, want_g);
    const double got = loss_eval_fused(l, &a, ROWS_OF(t, d.w, ROWS, COLS), d.p, y, 0.5F, g);
    ck_near(got, want, 1e-6);
    for (size_t i = 0; i < CELLS; i++) {
        ck_near(y[i], want_y[i], 1e-6);
        ck_near(g[i], want_g[i], 1e-6);
    }
    const double in_place = loss_eval_fused(l, &a, ROWS_OF(t, d.w, ROWS, COLS), d.p, d.p, 0.5F, g);
    ck_near(in_place, want, 1e-6);
    ck_assert_mem_eq(d.p, y, sizeof(y));
    const double probabilities = loss_eval(l, ROWS_OF(t, d.w, ROWS, COLS), want_y, 1, NULL);
    ck_near(probabilities, want, 1e-4);
}

START_TEST(fused_is_the_loss_of_logits_and_the_activation)
{
    check_fused("\"categorical_crossentropy\"", "{\"CategoricalCrossentropy\": {\"from_logits\": true}}", ACT_SOFTMAX);
    check_fused("\"sparse_categorical_crossentropy\"", "{\"SparseCategoricalCrossentropy\": {\"from_logits\": true}}",
                ACT_SOFTMAX);
    check_fused("\"binary_crossentropy\"", "{\"BinaryCrossentropy\": {\"from_logits\": true}}", ACT_SIGMOID);
    AUTO(loss) *mse = parse("\"mse\"");
    const struct activation softmax = activation_of(ACT_SOFTMAX);
    ck_assert(!loss_fuses(mse, &softmax));
}
END_TEST

START_TEST(huge_logits_stay_finite)
{
    AUTO(loss) *sparse = parse("\"sparse_categorical_crossentropy\""), *binary = parse("\"bce\"");
    const struct activation softmax = activation_of(ACT_SOFTMAX), sigmoid = activation_of(ACT_SIGMOID);
    const float x[3] = { 1e4F, -1e4F, 0 }, t[3] = { 0, 1, 1 };
    const int32_t label = 1;
    float y[3], g[3];
    ck_near(loss_eval_fused(sparse, &softmax, ROWS_OF(&label, NULL, 1, 3), x, y, 1, g), 2e4, 1);
    ck_assert(isfinite(g[0]) && isfinite(g[1]) && isfinite(g[2]));
    ck_near(loss_eval_fused(binary, &sigmoid, ROWS_OF(t, NULL, 1, 3), x, y, 1, g), 2e4 / 3, 1);
    ck_assert(isfinite(g[0]) && isfinite(g[1]) && isfinite(g[2]));
}
END_TEST

START_TEST(bad_numbers_are_not_hidden)
{
    for (size_t i = 0; i < LOSSES.count; i++) {
        auto_free char *text = xasprintf("\"%s\"", catalog_row(&LOSSES, i)->names[0]);
        AUTO(loss) *l = parse(text);
        struct data d;
        fill(&d, l);
        d.p[7] = NAN;
        const double v =
            loss_eval(l, ROWS_OF(loss_sparse(l) ? (const void *)d.label : d.t, NULL, ROWS, COLS), d.p, 1, NULL);
        ck_assert_msg(isnan(v), "%s of NaN is %g", text, v);
    }
    AUTO(loss) *l = parse("\"sparse_categorical_crossentropy\"");
    float p[2 * 3] = { 0.2F, 0.3F, 0.5F, 0.2F, 0.3F, 0.5F }, g[6];
    for (int32_t label = -1; label <= 3; label += 4)
        ck_assert(isnan(loss_eval(l, ROWS_OF(((int32_t[]){ 1, label }), NULL, 2, 3), p, 1, g)));
}
END_TEST

START_TEST(an_ignored_class_counts_for_nothing)
{
    AUTO(loss) *l = parse("{\"SparseCategoricalCrossentropy\": {\"ignore_class\": -1}}");
    AUTO(loss) *plain = parse("\"sparse_categorical_crossentropy\"");
    const float p[4 * 2] = { 0.25F, 0.75F, 0.5F, 0.5F, 0.1F, 0.9F, 0.6F, 0.4F };
    float g[8];
    const double all = loss_eval(l, ROWS_OF(((int32_t[]){ 0, -1, 1, -1 }), NULL, 4, 2), p, 0.25F, g);
    const double first = loss_eval(plain, ROWS_OF((int32_t[]){ 0 }, NULL, 1, 2), p, 1, NULL);
    const double third = loss_eval(plain, ROWS_OF((int32_t[]){ 1 }, NULL, 1, 2), p + 4, 1, NULL);
    ck_near(all / 4, (first + third) / 2, 1e-6); /* Keras: the mean over the rows that count */
    ck_near(g[2], 0, 0);
    ck_near(g[7], 0, 0);
    ck_near(g[0], -0.5 / 0.25 + 0.5, 1e-6);
}
END_TEST

/* Two of four rows are padding, one of the others is of the ignored class. */
START_TEST(padding_counts_for_nothing)
{
    const char *const losses[] = { "\"sparse_categorical_crossentropy\"",
                                   "{\"SparseCategoricalCrossentropy\": {\"ignore_class\": 2}}" };
    const float p[4 * 3] = { 0.25F, 0.5F, 0.25F, 0.5F, 0.25F, 0.25F, 0.1F, 0.8F, 0.1F, 0.6F, 0.1F, 0.3F };
    const float mask[4] = { 3, 0, 1, 0 }, weight[4] = { 1, 5, 3, 7 };
    const int32_t label[4] = { 0, 1, 2, 2 };
    const double kept = -log(0.25), other = -log(0.1);
    for (size_t k = 0; k < 2; k++) {
        AUTO(loss) *l = parse(losses[k]);
        struct loss_batch b = { .y_true = label, .mask = mask, .rows = 4, .cols = 3 };
        float g[12];
        double count;
        ck_near(loss_eval(l, &b, p, 0.25F, g) / 4, k == 0 ? (kept + other) / 2 : kept, 1e-6);
        ck_near(loss_sum(l, &b, p, &count), k == 0 ? kept + other : kept, 1e-6);
        ck_near(count, k == 0 ? 2 : 1, 0);
        for (size_t i = 0; i < 12; i++)
            ck_assert((g[i] != 0) == (i < 3 || (k == 0 && i >= 6 && i < 9)));
        b.weight = weight;
        ck_near(loss_eval(l, &b, p, 1, NULL) / 4, k == 0 ? (kept + 3 * other) / 2 : kept, 1e-6);
        ck_near(loss_sum(l, &b, p, &count), k == 0 ? kept + 3 * other : kept, 1e-6);
        ck_near(count, k == 0 ? 4 : 1, 0);
        b.mask = (float[4]){ 0 };
        ck_near(loss_eval(l, &b, p, 1, g), 0, 0);
        ck_near(loss_sum(l, &b, p, &count), 0, 0);
        ck_near(count, 0, 0);
    }
}
END_TEST

/* Keras counts them in the mean, unless there are weights. */
START_TEST(metrics_count_an_ignored_class_as_zero)
{
    AUTO(loss) *l = parse("{\"SparseCategoricalCrossentropy\": {\"ignore_class\": 1}}");
    const float p[3 * 2] = { 0.2F, 0.8F, 0.3F, 0.7F, 0.6F, 0.4F };
    const int32_t label[3] = { 0, 1, 1 };
    double count;
    ck_near(loss_sum(l, ROWS_OF(label, NULL, 3, 2), p, &count) / count, -log(0.2) / 3, 1e-6);
    ck_near(loss_sum(l, ROWS_OF(label, ((float[3]){ 1, 1, 1 }), 3, 2), p, &count) / count, -log(0.2), 1e-6);
}
END_TEST

START_TEST(hinge_takes_zeros_and_ones_for_signs)
{
    AUTO(loss) *l = parse("\"hinge\"");
    const float p[4] = { 0.3F, -0.2F, 0.9F, 0.1F }, signs[4] = { 1, -1, 1, -1 }, bits[4] = { 1, 0, 1, 0 };
    ck_near(loss_eval(l, ROWS_OF(bits, NULL, 2, 2), p, 1, NULL), loss_eval(l, ROWS_OF(signs, NULL, 2, 2), p, 1, NULL),
            1e-7);
}
END_TEST

START_TEST(wide_rows_are_summed_exactly)
{
    enum { WIDE = 10007 };
    static float p[WIDE], t[WIDE], g[WIDE];
    AUTO(loss) *l = parse("\"mse\"");
    for (size_t i = 0; i < WIDE; i++)
        p[i] = 3;
    ck_near(loss_eval(l, ROWS_OF(t, NULL, 1, WIDE), p, 1, g), 9, 1e-6);
    ck_near(g[WIDE - 1], 6.0 / WIDE, 1e-9);
}
END_TEST

START_TEST(bad_input_names_the_fault)
{
    struct err e = { 0 };
    refused("\"mean_squared_eror\"", "loss 'mean_squared_eror' is not known; did you mean 'mean_squared_error'?");
    refused("{\"Huber\": {\"delta\": 0}}", "delta: must be greater than 0, not 0");
    refused("{\"BinaryCrossentropy\": {\"label_smoothing\": 2}}", "must be between 0 and 1, not 2");
    refused("{\"BinaryCrossentropy\": {\"from_logit\": true}}", "did you mean 'from_logits'?");
    refused("{\"MeanSquaredError\": {\"reduction\": \"sum\"}}", "sum_over_batch_size");
    refused("{\"CategoricalCrossentropy\": {\"axis\": 1}}", "only axis -1");
    refused("\"ctc\"", "loss 'ctc' is not supported yet");
    AUTO(loss) *sparse = parse("\"sparse_categorical_crossentropy\""), *mse = parse("\"mse\"");
    const struct shape one = shape_of(1, (int64_t[]){ 1 });
    ck_assert_int_lt(loss_check(sparse, &one, &e), 0);
    ck_message_has(e, "at least 2 classes");
    ck_assert_int_eq(loss_check(mse, &one, &e), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/loss");
    TCase *t = tcase_create("loss");
    tcase_add_test(t, every_golden_loss_and_gradient_is_keras);
    tcase_add_test(t, gradients_are_the_slopes_of_the_values);
    tcase_add_test(t, every_name_of_keras_finds_its_loss);
    tcase_add_test(t, fused_is_the_loss_of_logits_and_the_activation);
    tcase_add_test(t, huge_logits_stay_finite);
    tcase_add_test(t, bad_numbers_are_not_hidden);
    tcase_add_test(t, an_ignored_class_counts_for_nothing);
    tcase_add_test(t, padding_counts_for_nothing);
    tcase_add_test(t, metrics_count_an_ignored_class_as_zero);
    tcase_add_test(t, hinge_takes_zeros_and_ones_for_signs);
    tcase_add_test(t, wide_rows_are_summed_exactly);
    tcase_add_test(t, bad_input_names_the_fault);
    suite_add_tcase(s, t);
    return s;
}
