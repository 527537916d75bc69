/* model_build as users call it: layout, names, initial values, what data fit, summary. Also test/data/nn/invalid, one
 * folder {spec.yaml, error} for each case: spec.yaml holds model: and perhaps compile:, error the message without the
 * place. */
#include <math.h>

#include "base/file.h"
#include "base/str.h"
#include "case_folder.h"
#include "codec/yaml.h"
#include "golden.h"
#include "nn/model_impl.h"
#include "nn/model_outline.h"

/* text: YAML with model: and perhaps compile: */
static int try_build(const char *text, const char *name, const char *base_dir, struct model **ret, struct err *e)
{
    json_auto_t *doc = NULL;
    AUTO(source) *source = NULL;
    if (yaml_parse(text, strlen(text), name, &doc, &source, e) < 0)
        return -1;
    struct node root = node_root(doc, source), model = node_get(&root, "model"), compile = node_get(&root, "compile");
    return model_build(&model, node_present(&compile) ? &compile : NULL, base_dir, ret, e);
}

static struct model *build(const char *text)
{
    struct model *m = NULL;
    struct err e = { 0 };
    ck_ok_e(try_build(text, "test", ".", &m, &e));
    return m;
}

static const char MNIST[] = "model:\n"
                            "  inputShape: [28, 28]\n"
                            "  layers:\n"
                            "    - Rescaling: {scale: 0.00392156862745098}\n"
                            "    - Flatten\n"
                            "    - Dense: {units: 128, activation: relu}\n"
                            "    - BatchNormalization\n"
                            "    - Dense: {units: 10, activation: softmax}\n"
                            "compile: {optimizer: Adam, loss: sparse_categorical_crossentropy, metrics: [accuracy]}\n";

START_TEST(layout)
{
    static const struct {
        const char *name;
        enum variable_kind kind;
        size_t count;
    } WANT[] = {
        { "dense/kernel", VAR_TRAINABLE, 784 * 128 },
        { "dense/bias", VAR_TRAINABLE, 128 },
        { "batch_normalization/gamma", VAR_TRAINABLE, 128 },
        { "batch_normalization/beta", VAR_TRAINABLE, 128 },
        { "dense_1/kernel", VAR_TRAINABLE, 1280 },
        { "dense_1/bias", VAR_TRAINABLE, 10 },
        { "batch_normalization/moving_mean", VAR_MOVING, 128 },
        { "batch_normalization/moving_variance", VAR_MOVING, 128 },
    };
    AUTO(model) *m = build(MNIST);
    size_t at = 0;

    ck_assert_uint_eq(model_variables(m), COUNT_OF(WANT));
    for (size_t i = 0; i < COUNT_OF(WANT); i++) {
        const struct variable *v = model_variable(m, i);
        ck_assert_str_eq(v->name, WANT[i].name);
        ck_assert_int_eq(v->kind, WANT[i].kind);
        ck_assert_uint_eq(v->count, WANT[i].count);
        ck_assert_uint_eq(v->offset, at);
        at = (at + v->count + 15) / 16 * 16;
        if (i == 5)
            ck_assert_uint_eq(m->trainable_size, at);
    }
    ck_assert_uint_eq(model_size(m), at);
    ck_assert_uint_eq(model_params(m), 784 * 128 + 128 + 4 * 128 + 1290);
    ck_assert_int_eq(m->heads[0].out.shape.dim[0], 10);
    ck_assert_str_eq(model_name(m), "sequential");
    ck_assert_uint_eq(model_metrics(m), 2);
    ck_assert_str_eq(model_metric_name(m, 0), "loss");
    ck_assert_str_eq(model_metric_name(m, 1), "accuracy");
    ck_assert(!model_wants_adapt(m));
}
END_TEST

START_TEST(initial_values)
{
    AUTO(model) *m = build(MNIST);
    size_t size = model_size(m);
    auto_free float *a = xcalloc(size, sizeof(float)), *b = xcalloc(size, sizeof(float)),
                    *c = xcalloc(size, sizeof(float));
    const struct variable *kernel = model_variable(m, 0), *last = model_variable(m, 4),
                          *variance = model_variable(m, 7);
    double limit = sqrt(6.0 / (784 + 128)), sum = 0, squares = 0;

    for (size_t i = 0; i < size; i++)
        a[i] = 5; /* gaps are cleared too */
    model_init(m, 7, a);
    model_init(m, 7, b);
    model_init(m, 8, c);
    ck_assert_mem_eq(a, b, size * sizeof(float));
    ck_assert_mem_ne(a, c, kernel->count * sizeof(float));
    ck_assert_mem_ne(a, a + last->offset, last->count * sizeof(float));
    for (size_t i = 0; i < kernel->count; i++) {
        ck_assert(fabs((double)a[i]) <= limit); /* glorot_uniform */
        sum += (double)a[i];
        squares += (double)a[i] * (double)a[i];
    }
    double n = (double)kernel->count;
    ck_assert_double_eq_tol(sum / n, 0, 4 * limit / sqrt(3 * n));
    ck_assert_double_eq_tol(sqrt(squares / n), limit / sqrt(3), 0.01 * limit);
    ck_float_eq(a[model_variable(m, 1)->offset], 0);
    ck_float_eq(a[model_variable(m, 2)->offset], 1);
    ck_float_eq(a[variance->offset + 127], 1);
    for (size_t i = last->offset + 1280 + 10; i < m->trainable_size; i++)
        ck_float_eq(a[i], 0);
}
END_TEST

/* What TensorFlow does not allow in a scope becomes '_' in the names of variables, and stays in that of the layer. */
START_TEST(names_with_spaces)
{
    AUTO(model) *m = build("model: {inputShape: [2], layers: [{Dense: {units: 1, name: \"my dens\u00e9 (1)\"}}, "
                           "{Dense: {units: 1, name: a.b-c_d}}]}\n");
    ck_assert_str_eq(m->layers[0].name, "my dens\xc3\xa9 (1)");
    ck_assert_str_eq(model_variable(m, 0)->name, "my_dens___1_/kernel");
    ck_assert_str_eq(model_variable(m, 2)->name, "a.b-c_d/kernel");
}
END_TEST

START_TEST(automatic_names_step_aside)
{
    AUTO(model) *m = build("model: {inputShape: [4], layers: [{Dense: {units: 1, name: dense_1}}, {Dense: "
                           "{units: 1}}, {Dense: {units: 1}}]}");
    ck_assert_str_eq(model_variable(m, 0)->name, "dense_1/kernel");
    ck_assert_str_eq(model_variable(m, 2)->name, "dense/kernel");
    ck_assert_str_eq(model_variable(m, 4)->name, "dense_2/kernel");
}
END_TEST

START_TEST(a_nested_model_is_not_trained)
{
    AUTO(model) *m =
        build("model: {inputShape: [4], layers: [{Sequential: {name: a, trainable: false, layers: [{Dense: "
              "{units: 2}}, {Sequential: {name: b, layers: [{Dense: {units: 2}}]}}]}}, {Dense: {units: 1}}]}");
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        ck_assert_msg((v->kind == VAR_CONST) == str_starts(v->name, "a/"), "%s", v->name);
    }
    ck_assert_uint_eq(model_variables(m), 6);
}
END_TEST

/* The config of a model of two calls of a model, which has two calls of another, ...: `deep` models within each other,
 * and in the innermost one two calls of a layer. */
static void put_doubling(struct buf *out, int deep)
{
    buf_printf(out,
               "config: {name: m%d, layers: [{class_name: InputLayer, name: in, config: {name: in, batch_shape: [null, "
               "2]}, inbound_nodes: []}, {class_name: %s, name: m%d, inbound_nodes: [[[in, 0, 0, {}]], [[m%d, 0, 0, "
               "{}]]], ",
               deep, deep > 1 ? "Functional" : "Dense", deep - 1, deep - 1);
    if (deep > 1)
        put_doubling(out, deep - 1);
    else
        buf_str(out, "config: {name: m0, units: 2}");
    buf_printf(out, "}], input_layers: [[in, 0, 0]], output_layers: [[m%d, 1, 0]]}", deep - 1);
}

static void doubling_model(struct buf *out, int deep)
{
    buf_str(out, "model: {keras: {class_name: Functional, ");
    put_doubling(out, deep);
    buf_str(out, "}}");
}

/* 2^14 calls of a layer are within the limit, 2^15 are not. */
START_TEST(a_small_document_does_not_become_a_huge_model)
{
    for (int deep = 14; deep <= 15; deep++) {
        AUTO_FINI(buf) text = BUF_INIT;
        AUTO(model) *m = NULL;
        struct err e = { 0 };
        doubling_model(&text, deep);
        if (deep == 14)
            ck_ok_e(try_build(text.data, "test", ".", &m, &e));
        else
            ck_assert(try_build(text.data, "test", ".", &m, &e) < 0 &&
                      strstr(e.msg, "more than 20000 calls of layers"));
    }
}
END_TEST

/* What a picture shows: calls, and models within models. */
START_TEST(outline_of_nested_models)
{
    AUTO(model) *m = build("model: {inputShape: [4], layers: [{Sequential: {name: a, layers: [{Dense: {units: 3}}, "
                           "{Sequential: {name: b, layers: [{Dense: {units: 2}}]}}]}}, {Dense: {units: 1}}]}");
    AUTO_FINI(model_outline) o = model_outline_of(m);
    ck_assert_uint_eq(o.nboxes, 4);
    ck_assert_uint_eq(o.ngroups, 2);
    ck_assert_str_eq(o.groups[0].name, "a");
    ck_assert_str_eq(o.groups[1].name, "b");
    ck_assert_uint_eq(o.groups[0].parent, 0);
    ck_assert_uint_eq(o.groups[1].parent, 1);
    for (size_t i = 0; i < o.nboxes; i++) {
        static const size_t GROUPS[] = { 0, 1, 2, 0 };
        ck_assert_uint_eq(o.boxes[i].group, GROUPS[i]);
        ck_assert_uint_eq(o.boxes[i].nfrom, i > 0);
        ck_assert(i == 0 || o.boxes[i].from[0] == i - 1);
    }
    ck_assert_str_eq(o.boxes[0].class_name, "InputLayer");
    ck_assert_str_eq(o.boxes[1].name, "dense");
    ck_assert_str_eq(o.boxes[1].in, "(None, 4)");
    ck_assert_str_eq(o.boxes[1].out, "(None, 3)");
}
END_TEST

START_TEST(outline_of_shared_layers)
{
    AUTO_FINI(buf) text = BUF_INIT;
    doubling_model(&text, 2);
    AUTO(model) *m = build(text.data);
    AUTO_FINI(model_outline) o = model_outline_of(m);
    ck_assert_uint_eq(o.nboxes, 5);
    ck_assert_str_eq(o.boxes[1].name, "m0 [0]");
    ck_assert_str_eq(o.boxes[4].name, "m0 [3]");
    ck_assert_uint_eq(o.ngroups, 2);
    ck_assert_str_eq(o.groups[1].name, "m1 [1]");
    ck_assert_uint_eq(o.boxes[2].group, 1);
    ck_assert_uint_eq(o.boxes[3].group, 2);
}
END_TEST

START_TEST(shapes)
{
    static const struct {
        const char *layers, *want;
    } CASES[] = {
        { "[Flatten]", "(24,)" },
        { "[{Reshape: {target_shape: [6, -1]}}]", "(6, 4)" },
        { "[{Reshape: {target_shape: [-1]}}, {Reshape: {target_shape: [2, 12]}}]", "(2, 12)" },
        { "[{Dense: {units: 7}}]", "(2, 3, 7)" },
        { "[{Dropout: {rate: 0.5}}, {Activation: {activation: relu}}, ReLU, Softmax, LeakyReLU, ELU]", "(2, 3, 4)" },
        { "[Normalization, BatchNormalization, {Rescaling: {scale: 2}}]", "(2, 3, 4)" },
        { "[{class_name: Dense, config: {units: 2}}]", "(2, 3, 2)" },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        auto_free char *text = xasprintf("model: {inputShape: [2, 3, 4], layers: %s}", CASES[i].layers);
        AUTO(model) *m = build(text);
        char shape[128];
        ck_assert_str_eq(shape_text(&m->heads[0].out.shape, shape), CASES[i].want);
        ck_assert_uint_eq(model_metrics(m), 0); /* without compile */
    }
}
END_TEST

/* ---- what data fit ---- */

struct offer {
    const char *loss, *units;
    struct shape features, labels;
    bool integer;
    const char *error; /* NULL: fits */
};

#define PIXELS                                                                                                         \
    {                                                                                                                  \
        2,                                                                                                             \
        {                                                                                                              \
            28, 28                                                                                                     \
        }                                                                                                              \
    }
#define NUMBER                                                                                                         \
    {                                                                                                                  \
        0,                                                                                                             \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
static const struct offer OFFERS[] = {
    { "sparse_categorical_crossentropy", "10", PIXELS, NUMBER, true, NULL },
    { "sparse_categorical_crossentropy", "10", PIXELS, { 1, { 1 } }, true, NULL },
    { "sparse_categorical_crossentropy", "10", { 3, { 28, 28, 1 } }, NUMBER, true, NULL },
    { "sparse_categorical_crossentropy", "10", PIXELS, NUMBER, false,
      "the labels have shape () and are not integers; sparse_categorical_crossentropy wants one class number" },
    { "sparse_categorical_crossentropy",
      "10",
      PIXELS,
      { 1, { 10 } },
      true,
      "the labels have shape (10,), 10 numbers for each example; sparse_categorical_crossentropy wants one class "
      "number "
      "for each example; one-hot labels need categorical_crossentropy" },
    { "sparse_categorical_crossentropy", "10", PIXELS, { 1, { 8 } }, false, "choose the one that is the class number" },
    { "categorical_crossentropy", "10", PIXELS, { 1, { 10 } }, false, NULL },
    { "categorical_crossentropy", "10", PIXELS, NUMBER, true, "use sparse_categorical_crossentropy" },
    { "mse", "1", PIXELS, NUMBER, false, NULL },
    { "mse", "1", PIXELS, NUMBER, true, NULL },
    { "mse", "2", PIXELS, NUMBER, false,
      "the model's output is (2,), a label of the data is (); choose other labels, or a last layer of 1 unit" },
    { "mse", "2", PIXELS, NUMBER, true, "for other numbers a last layer of 1 unit" },
    { "mse",
      "2",
      PIXELS,
      { 1, { 8 } },
      false,
      "a label of the data is (8,); choose other labels, or a last layer of 8 units" },
    { "mse",
      "6",
      PIXELS,
      { 2, { 2, 3 } },
      false,
      "a label of the data is (2, 3); they hold as many numbers: end the model with a Reshape" },
    { "mse", "2", PIXELS, { 2, { 2, 3 } }, false, "choose other labels, or a last layer whose output has their shape" },
    { "mse",
      "1",
      { 1, { 784 } },
      NUMBER,
      false,
      "the model's input is (28, 28), an example of the data is (784,); they hold as many numbers" },
    { "mse",
      "1",
      { 2, { 28, 27 } },
      NUMBER,
      false,
      "an example of the data is (28, 27); choose the features that the model expects" },
};

/* Labels of a form, or none if `labels` is NULL. */
static int fits(const struct model *m, const struct shape *features, const struct shape *labels, bool integer,
                struct err *e)
{
    return model_check_input(m, 0, features, e) < 0 ? -1 : model_check_label(m, 0, labels, integer, e);
}

START_TEST(data_fit)
{
    const struct offer *o = &OFFERS[_i];
    auto_free char *text = xasprintf("model: {inputShape: [28, 28], layers: [Flatten, {Dense: {units: %s}}]}\n"
                                     "compile: {optimizer: SGD, loss: %s}",
                                     o->units, o->loss);
    AUTO(model) *m = build(text);
    struct err e = { 0 };
    int rc = fits(m, &o->features, &o->labels, o->integer, &e);
    ck_assert_msg((rc == 0) == (o->error == NULL), "%s", e.msg);
    if (o->error != NULL)
        ck_assert_msg(strstr(e.msg, o->error) != NULL, "%s", e.msg);
}
END_TEST

START_TEST(an_output_of_several_rows_wants_as_many_class_numbers)
{
    AUTO(model) *m = build("model: {inputShape: [28, 28], layers: [{Dense: {units: 10}}]}\n"
                           "compile: {optimizer: SGD, loss: sparse_categorical_crossentropy}");
    struct shape pixels = PIXELS, rows = { 1, { 28 } }, other = { 1, { 27 } }, one_hot = { 2, { 28, 10 } };
    struct err e = { 0 };
    ck_ok_e(fits(m, &pixels, &rows, false, &e));
    ck_assert_int_eq(fits(m, &pixels, &other, false, &e), -1);
    ck_assert_str_eq(e.msg, "the labels have shape (27,); sparse_categorical_crossentropy of an output (28, 10) wants "
                            "class numbers of shape (28,) for each example; choose other labels, or an output with as "
                            "many rows");
    ck_assert_int_eq(fits(m, &pixels, &one_hot, false, &e), -1);
    ck_assert_msg(strstr(e.msg, "one-hot labels need categorical_crossentropy") != NULL, "%s", e.msg);
}
END_TEST

START_TEST(labels_are_needed_for_a_loss)
{
    AUTO(model) *m = build(MNIST);
    struct shape pixels = PIXELS;
    struct err e = { 0 };
    ck_assert_int_eq(fits(m, &pixels, NULL, false, &e), -1);
    ck_assert_str_eq(e.msg, "loss sparse_categorical_crossentropy needs labels, the data have none; name them in "
                            "'labels' (idx, npy, npz) or "
                            "'label' (csv, tfrecord), or give a 'directory' (images)");
}
END_TEST

START_TEST(the_optimizer_is_rmsprop_as_in_keras)
{
    AUTO(model) *m = build("model: {inputShape: [2], layers: [{Dense: {units: 1}}]}\ncompile: {loss: mse}\n");
    ck_assert_str_eq(optimizer_name(model_optimizer(m)), "RMSprop");
}
END_TEST

/* Neither the manifest nor the file says how to compile: jobs need it, others build without. */
START_TEST(a_job_needs_a_loss)
{
    json_auto_t *spec = json_pack("{s:s}", "kerasFile", "keras3_unbuilt/model.json");
    json_object_set_new(spec, "inputShape", json_pack("[i]", 4));
    struct node model = node_root(spec, NULL), compile = { .path = "compile" };
    AUTO(model) *m = NULL;
    struct err e = { 0 };
    ck_fails(model_build(&model, &compile, "test/data/nn/forms", &m, &e), ERR_INPUT,
             "compile: is missing, and the model of Keras has no compile_config with a loss");
    ck_ok_e(model_build(&model, NULL, "test/data/nn/forms", &m, &e));
}
END_TEST

START_TEST(summary)
{
    AUTO_FINI(buf) want = BUF_INIT, got = BUF_INIT;
    struct err e = { 0 };
    AUTO(model) *m = build(MNIST);
    model_summary(m, &got);
    ck_ok_e(file_read("test/data/nn/summary.txt", 1 << 16, &want, &e));
    ck_assert_str_eq(got.data, want.data);
}
END_TEST

/* ---- what is refused ---- */

#define INVALID "test/data/nn/invalid"

/* spec.yaml and what it names; error is the message. A new case needs no code. */
START_TEST(invalid)
{
    AUTO_FINI(buf) text = BUF_INIT, want = BUF_INIT;
    AUTO(model) *m = NULL;
    struct err e = { 0 }, got = { 0 };
    auto_free char *dir = case_path(INVALID, _i), *spec = path_join(dir, "spec.yaml"), *error = path_join(dir, "error");
    ck_ok_e(file_read(spec, 1 << 20, &text, &e));
    ck_ok_e(file_read(error, 1 << 16, &want, &e));
    ck_assert_msg(try_build(text.data, "spec.yaml", dir, &m, &got) < 0, "%s is accepted", dir);
    want.data[strcspn(want.data, "\n")] = '\0';
    ck_assert_msg(strcmp(got.msg, want.data) == 0, "%s:\n got %s\nwant %s", dir, got.msg, want.data);
    ck_assert_int_eq(err_exit_code(&got), 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/model");
    TCase *t = tcase_create("model");
    tcase_add_test(t, layout);
    tcase_add_test(t, initial_values);
    tcase_add_test(t, names_with_spaces);
    tcase_add_test(t, automatic_names_step_aside);
    tcase_add_test(t, a_nested_model_is_not_trained);
    tcase_add_test(t, a_small_document_does_not_become_a_huge_model);
    tcase_add_test(t, outline_of_nested_models);
    tcase_add_test(t, outline_of_shared_layers);
    tcase_add_test(t, shapes);
    tcase_add_loop_test(t, data_fit, 0, (int)COUNT_OF(OFFERS));
    tcase_add_test(t, an_output_of_several_rows_wants_as_many_class_numbers);
    tcase_add_test(t, labels_are_needed_for_a_loss);
    tcase_add_test(t, a_job_needs_a_loss);
    tcase_add_test(t, summary);
    tcase_add_test(t, the_optimizer_is_rmsprop_as_in_keras);
    tcase_add_loop_test(t, invalid, 0, case_count(INVALID));
    suite_add_tcase(s, t);
    return s;
}
