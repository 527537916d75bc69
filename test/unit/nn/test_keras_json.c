/* Keras's JSON in and out: files that Keras 2 and 3 wrote, and what we write reads back as the same model. */
#include "golden.h"
#include "nn/model_impl.h"

static struct model *build(json_t *model, json_t *compile, const char *base_dir)
{
    struct node m = node_root(model, NULL), c = node_root(compile, NULL);
    struct model *ret = NULL;
    struct err e = { 0 };
    ck_assert_ptr_nonnull(model);
    ck_ok_e(model_build(&m, compile != NULL ? &c : NULL, base_dir, &ret, &e));
    json_decref(model);
    json_decref(compile);
    return ret;
}

static json_t *adam(void)
{
    return json_pack("{s:s, s:s, s:[s]}", "optimizer", "Adam", "loss", "sparse_categorical_crossentropy", "metrics",
                     "accuracy");
}

static void check_golden_model(const struct model *m)
{
    static const char *const NAMES[] = { "d1/kernel", "d1/bias", "d2/kernel", "d2/bias" };
    ck_assert_uint_eq(model_variables(m), COUNT_OF(NAMES));
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        ck_assert_str_eq(model_variable(m, i)->name, NAMES[i]);
    ck_assert_uint_eq(model_params(m), 784 * 8 + 8 + 80 + 10);
    ck_assert_int_eq(m->inputs[0].shape.dim[0], 784);
}

START_TEST(files_of_keras_2_and_3)
{
    static const char *const DIRS[] = { "test/data/nn/keras2", "test/data/nn/keras3" };
    for (size_t i = 0; i < COUNT_OF(DIRS); i++) {
        AUTO(model) *m = build(json_pack("{s:s}", "kerasFile", "model.json"), NULL, DIRS[i]);
        check_golden_model(m);
    }
}
END_TEST

START_TEST(inline_and_as_text)
{
    json_auto_t *file = golden_read("test/data/nn/keras3/model.json");
    auto_free char *text = json_dumps(file, 0);
    AUTO(model) *inlined = build(json_pack("{s:O}", "keras", file), NULL, ".");
    AUTO(model) *as_text = build(json_pack("{s:s}", "keras", text), NULL, ".");
    check_golden_model(inlined);
    check_golden_model(as_text);
}
END_TEST

static void ck_same_json(const json_t *got, const json_t *want)
{
    auto_free char *g = json_dumps(got, JSON_SORT_KEYS | JSON_INDENT(1)),
                   *w = json_dumps(want, JSON_SORT_KEYS | JSON_INDENT(1));
    ck_assert_str_eq(g, w);
}

/* Arguments that only the newest Keras 3 has are not written. */
static void drop_newest(json_t *config)
{
    json_object_del(config, "quantization_config");
    json_object_del(json_at(config, "kernel_initializer.config"), "input_axes");
    json_object_del(json_at(config, "kernel_initializer.config"), "output_axes");
}

/* Keras 3 wrote this file, to_json(): we write the same, apart from the compile part (see below). */
START_TEST(we_write_what_keras_3_writes)
{
    json_auto_t *want = golden_read("test/data/nn/keras3/model.json");
    AUTO(model) *m = build(json_pack("{s:O}", "keras", want), NULL, ".");
    json_auto_t *got = model_to_json(m);
    json_object_del(want, "compile_config");
    drop_newest(json_at(want, "config.layers.1.config"));
    drop_newest(json_at(want, "config.layers.2.config"));
    ck_same_json(got, want);
}
END_TEST

START_TEST(compile_config)
{
    json_auto_t *keras = golden_read("test/data/nn/keras3/model.json");
    AUTO(model) *m = build(json_pack("{s:O}", "keras", keras), adam(), ".");
    json_auto_t *got = model_to_json(m);
    static const char *const ARGS[] = { "learning_rate", "beta_1", "beta_2", "epsilon" };
    ck_assert_str_eq(json_string_value(json_at(got, "compile_config.loss.class_name")),
                     "SparseCategoricalCrossentropy");
    ck_assert_str_eq(json_string_value(json_at(got, "compile_config.metrics.0")), "accuracy");
    ck_assert_str_eq(json_string_value(json_at(got, "compile_config.optimizer.class_name")), "Adam");
    for (size_t i = 0; i < COUNT_OF(ARGS); i++) {
        auto_free char *path = xasprintf("compile_config.optimizer.config.%s", ARGS[i]);
        ck_assert_double_eq_tol(json_number_value(json_at(got, path)), json_number_value(json_at(keras, path)), 1e-9);
    }
}
END_TEST

/* Every layer with arguments that are not the defaults survives writing and reading. */
START_TEST(round_trip)
{
    static const char LAYERS_TEXT[] =
        "[{\"Rescaling\": {\"scale\": 0.5, \"offset\": -1}}, {\"Normalization\": {\"mean\": [1, 2, 3, 4], "
        "\"variance\": [4, 3, 2, 1]}},"
        " {\"Reshape\": {\"target_shape\": [3, -1]}}, {\"BatchNormalization\": {\"momentum\": 0.9, "
        "\"epsilon\": 0.01, \"center\": false, \"synchronized\": true}},"
        " {\"Dropout\": {\"rate\": 0.25, \"seed\": 3}}, {\"Flatten\": {\"name\": \"flat\"}},"
        " {\"Dense\": {\"units\": 5, \"activation\": \"elu\", \"use_bias\": false, \"kernel_initializer\": "
        "{\"RandomNormal\": {\"stddev\": 0.2}},"
        " \"kernel_regularizer\": {\"L1L2\": {\"l1\": 0.1, \"l2\": 0.2}}, \"trainable\": false}},"
        " {\"ReLU\": {\"max_value\": 6, \"negative_slope\": 0.1}}, \"LeakyReLU\", {\"ELU\": {\"alpha\": 0.5}},"
        " {\"Activation\": {\"activation\": \"tanh\"}}, \"Softmax\"]";
    json_auto_t *layers = json_loads(LAYERS_TEXT, 0, NULL);
    AUTO(model) *m =
        build(json_pack("{s:[i, i], s:O, s:s}", "inputShape", 3, 4, "layers", layers, "name", "mine"), NULL, ".");
    json_auto_t *first = model_to_json(m);
    AUTO(model) *again = build(json_pack("{s:O}", "keras", first), NULL, ".");
    json_auto_t *second = model_to_json(again);
    ck_same_json(second, first);

    size_t size = model_size(m);
    ck_assert_uint_eq(size, model_size(again));
    auto_free float *a = xcalloc(size, sizeof(float)), *b = xcalloc(size, sizeof(float));
    model_init(m, 1, a);
    model_init(again, 1, b);
    ck_assert_mem_eq(a, b, size * sizeof(float));
    ck_assert_str_eq(model_name(again), "mine");
    ck_assert_str_eq(json_string_value(json_at(first, "config.layers.6.config.name")), "flat");
    ck_assert(json_is_false(json_at(first, "config.layers.7.config.trainable")));
    ck_assert(json_is_true(json_at(first, "config.layers.4.config.synchronized")));
}
END_TEST

/* Keras 2 has no InputLayer when the first layer has batch_input_shape, and has alpha in LeakyReLU. */
START_TEST(old_spellings)
{
    static const char OLD[] = "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
                              "{\"class_name\": \"Dense\", \"config\": {\"name\": \"h\", \"trainable\": true, "
                              "\"batch_input_shape\": [null, 3], \"dtype\": \"float32\","
                              " \"units\": 2, \"activation\": \"linear\", \"use_bias\": true, "
                              "\"kernel_initializer\": {\"class_name\": \"GlorotUniform\","
                              " \"config\": {\"seed\": null}}, \"bias_initializer\": {\"class_name\": "
                              "\"Zeros\", \"config\": {}}, \"kernel_regularizer\": null,"
                              " \"bias_regularizer\": null, \"activity_regularizer\": null, "
                              "\"kernel_constraint\": null, \"bias_constraint\": null}},"
                              "{\"class_name\": \"LeakyReLU\", \"config\": {\"name\": \"l\", \"trainable\": "
                              "true, \"dtype\": \"float32\", \"alpha\": 0.125}}]},"
                              " \"keras_version\": \"2.4.0\", \"backend\": \"tensorflow\"}";
    AUTO(model) *m = build(json_pack("{s:s}", "keras", OLD), NULL, ".");
    json_auto_t *json = model_to_json(m);
    ck_assert_int_eq(m->inputs[0].shape.dim[0], 3);
    ck_assert_str_eq(model_variable(m, 0)->name, "h/kernel");
    ck_assert_double_eq(json_number_value(json_at(json, "config.layers.2.config.negative_slope")), 0.125);
}
END_TEST

/* Written by Keras 3.15: BatchNormalization has renorm_clipping: null, and layers serve as activations. */
START_TEST(newest_keras)
{
    AUTO(model) *m = build(json_pack("{s:s}", "kerasFile", "sequential.json"), NULL, "test/data/nn/keras3_15");
    ck_assert_uint_eq(m->nlayers, 5);
    ck_assert_int_eq(m->layers[0].activation.kind, ACT_RELU);
    ck_float_eq(m->layers[0].activation.max_value, 6);
    ck_assert_int_eq(m->layers[2].activation.kind, ACT_LEAKY_RELU);
    ck_float_eq(m->layers[2].activation.negative_slope, 0.3F); /* the layer's default, not the function's 0.2 */
    ck_assert_int_eq(m->layers[4].activation.kind, ACT_SOFTMAX);

    json_auto_t *json = model_to_json(m); /* what it writes keeps the arguments */
    ck_assert_str_eq(json_string_value(json_at(json, "config.layers.1.config.activation.class_name")), "ReLU");
    ck_assert_double_eq(json_number_value(json_at(json, "config.layers.1.config.activation.config.max_value")), 6);
    ck_assert_str_eq(json_string_value(json_at(json, "config.layers.5.config.activation")), "softmax");
    AUTO(model) *again = build(json_pack("{s:O}", "keras", json), NULL, ".");
    ck_float_eq(again->layers[2].activation.negative_slope, 0.3F);
}
END_TEST

/* Model(inputs, outputs) without branches is the Sequential model of the same layers. */
START_TEST(functional_chain_of_keras)
{
    static const char *const DIRS[] = { "test/data/nn/keras3_15", "test/data/nn/tf_keras" };
    for (size_t i = 0; i < COUNT_OF(DIRS); i++) {
        AUTO(model) *m = build(json_pack("{s:s}", "kerasFile", "functional.json"), adam(), DIRS[i]);
        ck_assert_str_eq(model_name(m), "chain");
        ck_assert_uint_eq(m->nlayers, 3);
        ck_assert_str_eq(model_variable(m, 0)->name, "a/kernel");
        ck_assert_str_eq(model_variable(m, 3)->name, "b/bias");
        ck_assert_int_eq(m->inputs[0].shape.dim[0], 4);
        json_auto_t *json = model_to_json(m);
        ck_assert_str_eq(json_string_value(json_at(json, "class_name")), "Sequential");
        ck_assert_str_eq(json_string_value(json_at(json, "config.layers.0.config.name")), "pixels");
    }
}
END_TEST

/* The layers are in the file in any order; their calls define which follows which. */
START_TEST(functional_layers_out_of_order)
{
    json_auto_t *file = golden_read("test/data/nn/tf_keras/functional.json");
    json_t *layers = json_at(file, "config.layers"), *last = json_incref(json_array_get(layers, 3));
    json_array_remove(layers, 3);
    json_array_insert_new(layers, 0, last);
    AUTO(model) *m = build(json_pack("{s:O}", "keras", file), NULL, ".");
    ck_assert_str_eq(m->layers[0].name, "a");
    ck_assert_str_eq(m->layers[2].name, "b");
}
END_TEST

/* Branches that join, and a tensor that several layers read: both notations describe the same model. */
START_TEST(functional_graph)
{
    static const char *const FILES[] = { "keras3.json", "keras2.json" };
    json_auto_t *first = NULL;
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        AUTO(model) *m = build(json_pack("{s:s}", "kerasFile", FILES[i]), adam(), "test/data/nn/graph");
        ck_assert_uint_eq(m->nnodes, 10);
        ck_assert_int_eq(m->layers[6].out.dim[0], 4 + 6 + 6 + 6);
        ck_assert(!m->graphs[0]->sequential);
        ck_assert_uint_eq(m->nodes[1].in[0], 0);
        ck_assert_uint_eq(m->nodes[1].in[1], 1);
        ck_assert_uint_eq(m->nodes[8].in[0], m->nodes[8].in[1]);
        json_auto_t *json = model_to_json(m);
        ck_assert_str_eq(json_string_value(json_at(json, "class_name")), "Functional");
        ck_assert_str_eq(json_string_value(json_at(json, "module")), "keras.src.models.functional");
        AUTO(model) *again = build(json_pack("{s:O}", "keras", json), adam(), ".");
        json_auto_t *second = model_to_json(again);
        ck_same_json(second, json);
        if (i == 0)
            first = json_incref(json);
    }
    ck_assert_str_eq(
        json_string_value(json_at(first, "config.layers.7.inbound_nodes.0.args.0.3.config.keras_history.0")), "a");
}
END_TEST

/* A chain, but no layer of a Sequential model can be called with a list. */
START_TEST(functional_sum_of_one_tensor)
{
    static const char TEXT[] = "{\"class_name\": \"Functional\", \"config\": {\"layers\": ["
                               "{\"class_name\": \"InputLayer\", \"name\": \"in\", \"config\": {\"batch_shape\": "
                               "[null, 4], \"name\": \"in\"}, "
                               "\"inbound_nodes\": []}, "
                               "{\"class_name\": \"Add\", \"name\": \"sum\", \"config\": {\"name\": \"sum\"}, "
                               "\"inbound_nodes\": [[[\"in\", 0, 0, {}]]]}], "
                               "\"input_layers\": [[\"in\", 0, 0]], \"output_layers\": [[\"sum\", 0, 0]]}}";
    AUTO(model) *m = build(json_pack("{s:s}", "keras", TEXT), adam(), ".");
    json_auto_t *json = model_to_json(m);
    ck_assert_str_eq(json_string_value(json_at(json, "class_name")), "Functional");
    AUTO(model) *again = build(json_pack("{s:O}", "keras", json), adam(), ".");
    json_auto_t *second = model_to_json(again);
    ck_same_json(second, json);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/keras_json");
    TCase *t = tcase_create("keras_json");
    tcase_add_test(t, files_of_keras_2_and_3);
    tcase_add_test(t, inline_and_as_text);
    tcase_add_test(t, we_write_what_keras_3_writes);
    tcase_add_test(t, compile_config);
    tcase_add_test(t, round_trip);
    tcase_add_test(t, old_spellings);
    tcase_add_test(t, newest_keras);
    tcase_add_test(t, functional_chain_of_keras);
    tcase_add_test(t, functional_layers_out_of_order);
    tcase_add_test(t, functional_graph);
    tcase_add_test(t, functional_sum_of_one_tensor);
    suite_add_tcase(s, t);
    return s;
}
