/* Embedding in a model: numbers without a row, padding, and which numbers of an input have a row. Values beside Keras's
 * are in test_layers.c and test_graph_runs.c. */
#include "exec_values.h"
#include "nn/exec_impl.h"
#include "yaml_model.h"

enum { WORDS = 3, COLUMNS = 2 };

static struct model *bag(bool masked)
{
    auto_free char *text = xasprintf("model:\n"
                                     "  inputShape: [3]\n"
                                     "  layers:\n"
                                     "    - Embedding: {input_dim: 4, output_dim: 2, mask_zero: %s}\n"
                                     "    - Dropout: {rate: 0}\n"
                                     "    - GlobalAveragePooling1D\n",
                                     masked ? "true" : "false");
    return yaml_model(text);
}

/* Row i of the table is (10 i, 10 i + 1). */
static float *table_of(const struct model *m)
{
    float *params = zeros(model_size(m));
    for (size_t i = 0; i < model_variable(m, 0)->count; i++)
        params[model_variable(m, 0)->offset + i] = (float)(10 * (i / COLUMNS) + i % COLUMNS);
    return params;
}

static const struct {
    bool masked;
    float words[WORDS], first; /* the mean of the first column; the second is 1 more */
} MEANS[] = {
    { true, { 1, 0, 3 }, 20 },   { false, { 1, 0, 3 }, 40.0F / 3 }, { true, { 0, 0, 2 }, 20 },
    { true, { 3, 3, 3 }, 30 },   { false, { 0, 0, 0 }, 0 },         { true, { 1, 4, 0 }, NAN },
    { true, { -1, 1, 1 }, NAN }, { false, { NAN, 1, 1 }, NAN },
};
START_TEST(the_mean_of_words)
{
    AUTO(model) *m = bag(MEANS[_i].masked);
    AUTO(exec) *x = make_exec(m, 1, 1);
    auto_free float *params = table_of(m), *words = xmemdup(MEANS[_i].words, sizeof(MEANS[_i].words));
    struct batch b = { .n = 1,
                       .x[0] = { .dtype = DT_FLOAT, .shape = shape_of(2, (int64_t[]){ 1, WORDS }), .data = words } };
    const float *y = exec_predict(x, params, &b);
    float first = MEANS[_i].first;
    if (isnan(first)) {
        ck_assert(isnan(y[0]) && isnan(y[1]));
        return;
    }
    ck_assert(fabsf(y[0] - first) < 1e-4F);
    ck_assert(fabsf(y[1] - first - 1) < 1e-4F);
}
END_TEST

/* What makes the numbers learns nothing from the table or from the mask. */
START_TEST(numbers_have_no_gradient)
{
    AUTO(model) *m = yaml_model("model:\n"
                                "  inputShape: [3]\n"
                                "  layers:\n"
                                "    - Dense: {units: 3, kernel_initializer: zeros, bias_initializer: ones}\n"
                                "    - Embedding: {input_dim: 4, output_dim: 2, mask_zero: true}\n"
                                "    - GlobalAveragePooling1D\n"
                                "compile: {optimizer: SGD, loss: mse}\n");
    AUTO(exec) *x = make_exec(m, 1, 1);
    auto_free float *params = zeros(model_size(m)), *grads = zeros(model_size(m)), *words = zeros(WORDS);
    float labels[COLUMNS] = { 1, 2 };
    struct shape in = shape_of(2, (int64_t[]){ 1, WORDS }), out = shape_of(2, (int64_t[]){ 1, COLUMNS });
    struct batch b = { .n = 1,
                       .x[0] = { .dtype = DT_FLOAT, .shape = in, .data = words },
                       .y[0] = { .dtype = DT_FLOAT, .shape = out, .data = labels } };
    double loss;
    model_init(m, 1, params);
    words[0] = 5;
    for (size_t i = 0; i < x->pass[true].plan.floats; i++)
        x->memory[i] = NAN;
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        bool some = false;
        for (size_t k = 0; k < v->count; k++)
            some |= grads[v->offset + k] != 0;
        ck_assert_int_eq(some, strcmp(v->name, "embedding/embeddings") == 0);
    }
}
END_TEST

/* Keras divides 0 by 0. */
START_TEST(padding_alone_has_the_mean_0)
{
    AUTO(model) *m = bag(true);
    AUTO(exec) *x = make_exec(m, 1, 1);
    auto_free float *params = table_of(m), *words = zeros(WORDS);
    struct batch b = { .n = 1,
                       .x[0] = { .dtype = DT_FLOAT, .shape = shape_of(2, (int64_t[]){ 1, WORDS }), .data = words } };
    const float *y = exec_predict(x, params, &b);
    ck_assert(y[0] == 0 && y[1] == 0);
}
END_TEST

/* Of the words of table_of(), with zeros for labels. */
static double square_of(double word)
{
    return (100 * word * word + (10 * word + 1) * (10 * word + 1)) / 2;
}

/* As Keras's evaluate(): a batch's loss is the mean over its words, an epoch's the mean over examples of the losses of
 * their batches, and a metric the mean over all words. */
START_TEST(a_loss_leaves_padding_out)
{
    AUTO(model) *m = yaml_model("model:\n"
                                "  inputShape: [3]\n"
                                "  layers: [{Embedding: {input_dim: 4, output_dim: 2, mask_zero: true}}]\n"
                                "compile: {optimizer: SGD, loss: mse, metrics: [mse]}\n");
    AUTO(exec) *x = make_exec(m, 2, 1);
    auto_free float *params = table_of(m), *labels = zeros(2 * WORDS * COLUMNS);
    auto_free double *acc = xcalloc(metrics_width(m), sizeof(*acc)), *sum = xcalloc(metrics_width(m), sizeof(*sum));
    float words[3 * WORDS] = { 1, 0, 0, 2, 2, 0, 3, 0, 0 };
    double result[2];
    for (size_t at = 0; at < 3; at += 2) {
        int64_t n = at == 0 ? 2 : 1;
        struct shape in = shape_of(2, (int64_t[]){ n, WORDS }), out = shape_of(3, (int64_t[]){ n, WORDS, COLUMNS });
        struct batch b = { .n = (size_t)n,
                           .x[0] = { .dtype = DT_FLOAT, .shape = in, .data = words + at * WORDS },
                           .y[0] = { .dtype = DT_FLOAT, .shape = out, .data = labels } };
        memset(acc, 0, metrics_width(m) * sizeof(*acc));
        exec_evaluate(x, params, &b, acc);
        metrics_merge(m, sum, acc);
    }
    metrics_result(m, sum, result);
    ck_assert_double_eq_tol(result[0], (2 * (square_of(1) + 2 * square_of(2)) / 3 + square_of(3)) / 3, 1e-3);
    ck_assert_double_eq_tol(result[1], (square_of(1) + 2 * square_of(2) + square_of(3)) / 4, 1e-3);
}
END_TEST

static const struct {
    const char *args;
    float y[12]; /* of 2, 0, 2 */
    size_t n;
} ENCODINGS[] = {
    { "num_tokens: 4", { 1, 0, 1, 0 }, 4 },
    { "num_tokens: 3, output_mode: multi_hot", { 1, 0, 1 }, 3 },
    { "num_tokens: 4, output_mode: count", { 1, 0, 2, 0 }, 4 },
    { "num_tokens: 3, output_mode: one_hot", { 0, 0, 1, 1, 0, 0, 0, 0, 1 }, 9 },
    { "num_tokens: 2", { NAN, NAN }, 2 },
    { "num_tokens: 2, output_mode: one_hot", { NAN, NAN, 1, 0, NAN, NAN }, 6 },
    { "num_tokens: 2, output_mode: count", { NAN, NAN }, 2 },
};
START_TEST(numbers_are_encoded)
{
    auto_free char *text =
        xasprintf("model: {inputShape: [3], layers: [{CategoryEncoding: {%s}}, Flatten]}", ENCODINGS[_i].args);
    AUTO(model) *m = yaml_model(text);
    AUTO(exec) *x = make_exec(m, 1, 1);
    float params[1] = { 0 }, numbers[] = { 2, 0, 2 };
    struct batch b = { .n = 1,
                       .x[0] = { .dtype = DT_FLOAT, .shape = shape_of(2, (int64_t[]){ 1, WORDS }), .data = numbers } };
    const float *y = exec_predict(x, params, &b);
    ck_assert_uint_eq(shape_elements(&m->heads[0].out.shape), ENCODINGS[_i].n);
    for (size_t i = 0; i < ENCODINGS[_i].n; i++)
        ck_assert(isnan(ENCODINGS[_i].y[i]) ? isnan(y[i]) : y[i] == ENCODINGS[_i].y[i]);
}
END_TEST

static const struct {
    const char *layers;
    int64_t rows;
    const char *layer;
} RANGES[] = {
    { "[{Embedding: {input_dim: 7, output_dim: 2, name: words}}, Flatten]", 7, "words" },
    { "[{Reshape: {target_shape: [3, 1]}}, Flatten, {Embedding: {input_dim: 7, output_dim: 2, name: words}}, Flatten]",
      7, "words" },
    { "[{RepeatVector: {n: 2}}, {Permute: {dims: [2, 1]}}, {Embedding: {input_dim: 5, output_dim: 1, name: e}}, "
      "Flatten]",
      5, "e" },
    { "[{Rescaling: {scale: 2}}, {Embedding: {input_dim: 7, output_dim: 2}}, Flatten]", 0, NULL },
    { "[Identity, {CategoryEncoding: {num_tokens: 9, name: tags}}]", 9, "tags" },
    { "[{CategoryEncoding: {num_tokens: 9}}, {CategoryEncoding: {num_tokens: 2}}]", 9, "category_encoding" },
    { "[{Dense: {units: 7}}]", 0, NULL },
};
START_TEST(numbers_that_have_a_row)
{
    auto_free char *text = xasprintf("model: {inputShape: [3], layers: %s}", RANGES[_i].layers);
    AUTO(model) *m = yaml_model(text);
    struct index_range range = model_index_range(m, 0);
    ck_assert_int_eq(range.rows, RANGES[_i].rows);
    if (range.rows > 0)
        ck_assert_str_eq(range.layer, RANGES[_i].layer);
}
END_TEST

/* Two tables read one input: the smaller one decides. Each input has its own. Their vectors are joined by
 * keras.ops.concatenate(), which here computes no mask. */
START_TEST(each_input_has_its_range)
{
    AUTO(model) *m = yaml_model(
        "model: {keras: {class_name: Functional, config: {input_layers: [[a, 0, 0], [b, 0, 0]], output_layers: [[all, "
        "0, 0]], layers: [\n"
        "  {class_name: InputLayer, name: a, config: {batch_shape: [null, 1], name: a}, inbound_nodes: []},\n"
        "  {class_name: InputLayer, name: b, config: {batch_shape: [null, 1], name: b}, inbound_nodes: []},\n"
        "  {class_name: Embedding, name: x, config: {input_dim: 9, output_dim: 2, name: x}, inbound_nodes: [[[a, 0, 0, "
        "{}]]]},\n"
        "  {class_name: Embedding, name: y, config: {input_dim: 8, output_dim: 2, name: y}, inbound_nodes: [[[a, 0, 0, "
        "{}]]]},\n"
        "  {class_name: Embedding, name: z, config: {input_dim: 6, output_dim: 2, name: z}, inbound_nodes: [[[b, 0, 0, "
        "{}]]]},\n"
        "  {module: keras.src.ops.numpy, class_name: Concatenate, name: all, config: {name: all}, inbound_nodes: [[[x, "
        "0, 0, {}], [y, 0, 0, {}], "
        "[z, 0, 0, {}]]]}]}}}\n");
    struct index_range a = model_index_range(m, 0), b = model_index_range(m, 1);
    ck_assert_int_eq(a.rows, 8);
    ck_assert_str_eq(a.layer, "y");
    ck_assert_int_eq(b.rows, 6);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/embedding");
    TCase *t = tcase_create("embedding");
    tcase_add_loop_test(t, the_mean_of_words, 0, COUNT_OF(MEANS));
    tcase_add_test(t, numbers_have_no_gradient);
    tcase_add_test(t, padding_alone_has_the_mean_0);
    tcase_add_test(t, a_loss_leaves_padding_out);
    tcase_add_loop_test(t, numbers_are_encoded, 0, COUNT_OF(ENCODINGS));
    tcase_add_loop_test(t, numbers_that_have_a_row, 0, COUNT_OF(RANGES));
    tcase_add_test(t, each_input_has_its_range);
    suite_add_tcase(s, t);
    return s;
}
