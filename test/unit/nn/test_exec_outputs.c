/* exec with models of several inputs and outputs, where Keras's golden runs (test_graph_runs.c) do not reach. */
#include "nn/exec.h"
#include "nn/metrics/metrics.h"
#include "yaml_model.h"

/* Rows of numbers that are not all the same. */
static float *numbers(size_t n)
{
    float *v = xcalloc(n, sizeof(*v));
    for (size_t i = 0; i < n; i++)
        v[i] = (float)(i * 37 % 101) / 10 - 5;
    return v;
}

static void add_tensor(struct batch *b, bool label, enum dtype type, const struct shape *one, void *data)
{
    struct tensor t = { .dtype = type, .shape = { .rank = one->rank + 1, .dim = { (int64_t)b->n } }, .data = data };
    struct err e = { 0 };
    memcpy(t.shape.dim + 1, one->dim, (size_t)one->rank * sizeof(one->dim[0]));
    ck_ok_e(label ? batch_add_label(b, "", t, &e) : batch_add_input(b, "", t, &e));
}

/* n examples of a model with one input and two outputs. */
static struct batch two_labels(const struct model *m, size_t n, float *x, float *first, float *second)
{
    struct batch b = { .n = n };
    add_tensor(&b, false, DT_FLOAT, &model_input(m, 0)->shape, x);
    add_tensor(&b, true, DT_FLOAT, &model_output(m, 0)->shape, first);
    add_tensor(&b, true, DT_FLOAT, &model_output(m, 1)->shape, second);
    return b;
}

static const char TWO_IMAGES[] =
    "{model: {keras: {class_name: Functional, config: {layers: ["
    "{class_name: InputLayer, name: x, config: {name: x, batch_shape: [null, 3]}, inbound_nodes: []},"
    "{class_name: InputLayer, name: y, config: {name: y, batch_shape: [null, 3]}, inbound_nodes: []},"
    "{class_name: Rescaling, name: r, config: {name: r, scale: 0.1}, inbound_nodes: [[[x, 0, 0, {}]]]},"
    "{class_name: Add, name: s, config: {name: s}, inbound_nodes: [[[r, 0, 0, {}], [y, 0, 0, {}]]]}],"
    "input_layers: [[x, 0, 0], [y, 0, 0]], output_layers: [[s, 0, 0]]}}}}";

/* Bytes become floats in every input. */
START_TEST(bytes_are_floats_in_each_input)
{
    AUTO(model) *m = yaml_model(TWO_IMAGES);
    AUTO(exec) *x = NULL;
    struct err e = { 0 };
    unsigned char bytes[2][3] = { { 10, 20, 30 }, { 1, 2, 255 } };
    struct batch b = { .n = 1 };
    for (size_t i = 0; i < 2; i++)
        add_tensor(&b, false, DT_UINT8, &model_input(m, i)->shape, bytes[i]);
    ck_ok_e(exec_new(m, 1, 0, &x, &e));
    const float *sum = exec_predict(x, NULL, &b);
    ck_assert(sum[0] == 2 && sum[1] == 4 && sum[2] == 258);
}
END_TEST

/* 'rows' has 5 rows for each example, 'one' is a number. */
static const char ROWS[] =
    "{model: {keras: {class_name: Functional, config: {layers: ["
    "{class_name: InputLayer, name: x, config: {name: x, batch_shape: [null, 5, 3]}, inbound_nodes: []},"
    "{class_name: Dense, name: rows, config: {name: rows, units: 2}, inbound_nodes: [[[x, 0, 0, {}]]]},"
    "{class_name: Flatten, name: flat, config: {name: flat}, inbound_nodes: [[[rows, 0, 0, {}]]]},"
    "{class_name: Dense, name: one, config: {name: one, units: 1}, inbound_nodes: [[[flat, 0, 0, {}]]]}],"
    "input_layers: [[x, 0, 0]], output_layers: [[rows, 0, 0], [one, 0, 0]]}}},"
    "compile: {loss: mse, lossWeights: {rows: 0.5, one: 2}}}";

/* An example of weight w counts as much as w times its losses: here with outputs of different numbers of rows. */
START_TEST(examples_weigh_in_every_output)
{
    enum { N = 3 };
    AUTO(model) *m = yaml_model(ROWS);
    AUTO(exec) *x = NULL;
    struct err e = { 0 };
    auto_free float *in = numbers(N * 15), *rows = numbers(N * 10), *one = numbers(N);
    auto_free float *params = xcalloc(model_size(m), sizeof(float)), *grads = xcalloc(model_size(m), sizeof(float));
    const float weight[N] = { 2, 0, 0.25F };
    double want = 0, loss;

    model_init(m, 1, params);
    ck_ok_e(exec_new(m, N, 0, &x, &e));
    for (size_t i = 0; i < N; i++) {
        struct batch b = two_labels(m, 1, in + 15 * i, rows + 10 * i, one + i);
        exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
        want += (double)weight[i] * loss / N;
    }
    struct batch b = two_labels(m, N, in, rows, one);
    b.weight = weight;
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
    ck_assert_double_eq_tol(loss, want, 1e-4);
}
END_TEST

/* The loss of 'p' computes its softmax from the output of 'd', which 'q' and 'r' must not overwrite. */
static const char ACTIVATION[] =
    "{model: {keras: {class_name: Functional, config: {layers: ["
    "{class_name: InputLayer, name: x, config: {name: x, batch_shape: [null, 4]}, inbound_nodes: []},"
    "{class_name: Dense, name: d, config: {name: d, units: 4}, inbound_nodes: [[[x, 0, 0, {}]]]},"
    "{class_name: Softmax, name: p, config: {name: p}, inbound_nodes: [[[d, 0, 0, {}]]]},"
    "{class_name: Dense, name: q, config: {name: q, units: 4}, inbound_nodes: [[[x, 0, 0, {}]]]},"
    "{class_name: Dense, name: r, config: {name: r, units: 4}, inbound_nodes: [[[q, 0, 0, {}]]]}],"
    "input_layers: [[x, 0, 0]], output_layers: [[p, 0, 0], [r, 0, 0]]}}},"
    "compile: {loss: {p: categorical_crossentropy, r: mse}}}";

START_TEST(evaluation_keeps_what_the_losses_read)
{
    enum { N = 2 };
    AUTO(model) *m = yaml_model(ACTIVATION);
    AUTO(exec) *x = NULL;
    struct err e = { 0 };
    auto_free float *in = numbers(N * 4), *r = numbers(N * 4);
    auto_free float *params = xcalloc(model_size(m), sizeof(float)), *grads = xcalloc(model_size(m), sizeof(float));
    auto_free double *acc = xcalloc(metrics_width(m), sizeof(double));
    float p[N * 4] = { 1, 0, 0, 0, 0, 0, 1, 0 };
    struct batch b = two_labels(m, N, in, p, r);
    double loss, measured[3];

    model_init(m, 1, params);
    ck_ok_e(exec_new(m, N, 0, &x, &e));
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
    exec_evaluate(x, params, &b, acc);
    metrics_result(m, acc, measured);
    ck_assert_double_eq_tol(measured[0], loss, 1e-6);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/exec_outputs");
    TCase *t = tcase_create("exec_outputs");
    suite_add_tcase(s, t);
    tcase_add_test(t, bytes_are_floats_in_each_input);
    tcase_add_test(t, examples_weigh_in_every_output);
    tcase_add_test(t, evaluation_keeps_what_the_losses_read);
    return s;
}
