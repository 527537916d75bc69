#include "check_main.h"
#include "nn/class_weight.h"

#include <math.h>
#include <string.h>

#include "codec/yaml.h"
#include "yaml_model.h"

struct fixture {
    json_t *doc;
    struct source *source;
    struct model *model;
};

static void fixture_fini(struct fixture *f)
{
    model_free(f->model);
    source_free(f->source);
    json_decref(f->doc);
}
DEFINE_AUTO_FINI(fixture, fixture_fini);

/* layers, loss and weights as in a manifest */
static struct fixture build(const char *layers, const char *loss, const char *weights)
{
    struct fixture f = { .doc = NULL };
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    buf_printf(&text, "{model: {inputShape: [2, 3], layers: %s}, compile: {loss: %s}, w: %s}", layers, loss, weights);
    ck_ok_e(yaml_parse(text.data, text.len, "job.yaml", &f.doc, &f.source, &e));
    struct node root = node_root(f.doc, f.source), model = node_get(&root, "model"),
                compile = node_get(&root, "compile");
    ck_ok_e(model_build(&model, &compile, ".", &f.model, &e));
    return f;
}

static int parse(const struct fixture *f, bool with_model, struct class_weights **ret, struct err *e)
{
    struct node root = node_root(f->doc, f->source), w = node_get(&root, "w");
    return with_model ? class_weights_parse(&w, f->model, ret, e) : class_weights_check(&w, NULL, e);
}

#define FLAT(n) "[{Flatten: {}}, {Dense: {units: " #n "}}]"
#define SPARSE  "sparse_categorical_crossentropy"
#define ONE_HOT "categorical_crossentropy"

START_TEST(bad_input_names_the_fault)
{
    static const struct {
        const char *layers, *loss, *weights, *error;
        bool without_model; /* it is found without the model too */
    } CASES[] = {
        { FLAT(3), SPARSE, "{3: 1.0}", "w.3: class 3 does not exist: the model has 3, 0 to 2", false },
        { FLAT(1), "binary_crossentropy", "{2: 1.0}", "w.2: class 2 does not exist: the model has 2, 0 to 1", false },
        { FLAT(3), ONE_HOT, "{9: 1.0}", "w.9: class 9 does not exist: the model has 3, 0 to 2", false },
        { FLAT(3), SPARSE, "{-1: 1.0}", "w.-1: '-1' is not a valid class number; the first class is 0", true },
        { FLAT(3), SPARSE, "{cat: 1.0}", "w.cat: 'cat' is not a valid class number", true },
        { FLAT(3), SPARSE, "{'01': 1.0}", "w.01: '01' is not a valid class number", true },
        { FLAT(3), SPARSE, "{'0x1': 1.0}", "w.0x1: '0x1' is not a valid class number", true },
        { FLAT(3), SPARSE, "{99999999999: 1.0}", "is not a valid class number", true },
        { FLAT(3), SPARSE, "{0: -0.5}", "w.0: must be a weight of 0 or more that float32 can hold", true },
        { FLAT(3), SPARSE, "{0: 1e39}", "w.0: must be a weight of 0 or more that float32 can hold", true },
        { FLAT(3), SPARSE, "{0: heavy}", "w.0: must be a number", true },
        { FLAT(3), SPARSE, "{}", "w: names no class; write '{0: 1.0, 1: 5.0}'", true },
        { FLAT(3), SPARSE, "[1, 2]", "w: must be a map", true },
        { FLAT(3), "mse", "{0: 1.0}",
          "w: with loss mean_squared_error an example has 3 labels and no class; take categorical_crossentropy for "
          "one-hot labels, or weigh the examples instead (data.train.sampleWeight)",
          false },
        { "[{Dense: {units: 4}}]", SPARSE, "{0: 1.0}",
          "w: an output of shape (2, 4) has several classes for each example; weigh the examples instead", false },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        AUTO_FINI(fixture) f = build(CASES[i].layers, CASES[i].loss, CASES[i].weights);
        for (int with = 1; with >= 0; with--) {
            AUTO(class_weights) *c = NULL;
            struct err e = { .code = ERR_NONE };
            bool seen = with > 0 || CASES[i].without_model;
            ck_assert_msg((parse(&f, with > 0, &c, &e) < 0) == seen, "%s, model %d", CASES[i].weights, with);
            ck_assert_msg(!seen || strstr(e.msg, CASES[i].error) != NULL, "'%s' is not '%s'", e.msg, CASES[i].error);
        }
    }
}
END_TEST

static void check_weights(const struct fixture *f, const struct batch *b, const float *want)
{
    AUTO(class_weights) *c = NULL;
    struct err e = { .code = ERR_NONE };
    float got[8];
    ck_ok_e(parse(f, true, &c, &e));
    class_weights_of(c, b, got);
    for (size_t i = 0; i < b->n; i++)
        ck_assert_msg(got[i] >= want[i] && got[i] <= want[i], "example %zu: %g, not %g", i, (double)got[i],
                      (double)want[i]);
}

START_TEST(they_are_for_models_with_one_output)
{
    static const char TEXT[] =
        "{layers: [{class_name: InputLayer, name: x, config: {name: x, batch_shape: [null, 2]}, inbound_nodes: []},"
        "{class_name: Dense, name: a, config: {name: a, units: 2}, inbound_nodes: [[[x, 0, 0, {}]]]},"
        "{class_name: Dense, name: b, config: {name: b, units: 2}, inbound_nodes: [[[x, 0, 0, {}]]]}],"
        "input_layers: [[x, 0, 0]], output_layers: [[a, 0, 0], [b, 0, 0]]}";
    auto_free char *text = xasprintf(
        "{model: {keras: {class_name: Functional, config: %s}}, compile: {loss: categorical_crossentropy}}", TEXT);
    AUTO(model) *m = yaml_model(text);
    AUTO(class_weights) *c = NULL;
    json_auto_t *weights = json_pack("{s:f}", "0", 1.0);
    struct node w = node_root(weights, NULL);
    struct err e = { .code = ERR_NONE };
    ck_fails(class_weights_parse(&w, m, &c, &e), ERR_INPUT,
             "is for models with one output, as in Keras; weigh the examples instead (data.train.sampleWeight)");
}
END_TEST

START_TEST(a_class_number_has_its_weight)
{
    AUTO_FINI(fixture) f = build(FLAT(3), SPARSE, "{2: 5, 0: 0.25}");
    int32_t labels[] = { 0, 1, 2, 2, -1, 3 }; /* the model has no classes for the last two */
    struct batch b = { .n = 6, .y[0] = { .dtype = DT_INT32, .shape = shape_of(1, (int64_t[]){ 6 }), .data = labels } };
    check_weights(&f, &b, (const float[]){ 0.25F, 1, 5, 5, 1, 1 });
}
END_TEST

START_TEST(weights_of_class_and_example_are_multiplied)
{
    AUTO_FINI(fixture) f = build(FLAT(3), SPARSE, "{2: 5, 0: 0.25}");
    int32_t labels[] = { 0, 1, 2, 2 };
    const float own[] = { 4, 3, 2, 0 };
    struct batch b = { .n = 4,
                       .y[0] = { .dtype = DT_INT32, .shape = shape_of(1, (int64_t[]){ 4 }), .data = labels },
                       .weight = own };
    check_weights(&f, &b, (const float[]){ 1, 3, 10, 0 });
}
END_TEST

START_TEST(the_largest_of_several_labels_is_the_class)
{
    AUTO_FINI(fixture) f = build(FLAT(3), ONE_HOT, "{0: 2, 1: 3, 2: 5}");
    float labels[] = { 0, 1, 0, 0.5F, 0.5F, 0.1F, 0.1F, 0.2F, 0.7F, 0, 0, 0 }; /* the first of equal ones */
    struct batch b = { .n = 4,
                       .y[0] = { .dtype = DT_FLOAT, .shape = shape_of(2, (int64_t[]){ 4, 3 }), .data = labels } };
    check_weights(&f, &b, (const float[]){ 3, 2, 5, 2 });
}
END_TEST

START_TEST(a_single_label_is_rounded)
{
    AUTO_FINI(fixture) f = build(FLAT(1), "binary_crossentropy", "{0: 2, 1: 3}");
    float labels[] = { 0, 1, 0.4F, 0.5F, 0.6F, -1, NAN };
    struct batch b = { .n = 7,
                       .y[0] = { .dtype = DT_FLOAT, .shape = shape_of(2, (int64_t[]){ 7, 1 }), .data = labels } };
    check_weights(&f, &b, (const float[]){ 2, 3, 2, 2, 3, 1, 1 });
}
END_TEST

START_TEST(without_the_field_there_are_none)
{
    AUTO_FINI(fixture) f = build(FLAT(3), "mse", "null");
    AUTO(class_weights) *c = NULL;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(parse(&f, true, &c, &e));
    ck_assert_ptr_null(c);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("class weights");
    TCase *t = tcase_create("class weights");
    tcase_add_test(t, bad_input_names_the_fault);
    tcase_add_test(t, they_are_for_models_with_one_output);
    tcase_add_test(t, a_class_number_has_its_weight);
    tcase_add_test(t, weights_of_class_and_example_are_multiplied);
    tcase_add_test(t, the_largest_of_several_labels_is_the_class);
    tcase_add_test(t, a_single_label_is_rounded);
    tcase_add_test(t, without_the_field_there_are_none);
    suite_add_tcase(s, t);
    return s;
}
