/* What compile says for each output of a model. Faults are cases of test_model.c. */
#include "yaml_model.h"

#define INPUT "{class_name: InputLayer, name: in, config: {batch_shape: [null, 4], name: in}, inbound_nodes: []}"
#define DENSE(name, units, calls)                                                                                      \
    "{class_name: Dense, name: " name ", config: {name: " name ", units: " units "}, inbound_nodes: [" calls "]}"
#define OF_INPUT "[[in, 0, 0, {}]]"
#define GRAPH(layers, outputs)                                                                                         \
    "{layers: [" INPUT ", " layers "], input_layers: [[in, 0, 0]], output_layers: [" outputs "]}"
#define MODEL(graph, compiled) "{class_name: Functional, config: " graph compiled "}"
#define TWO_DENSE              DENSE("a", "2", OF_INPUT) ", " DENSE("b", "1", OF_INPUT)
#define TWO                    MODEL(GRAPH(TWO_DENSE, "[a, 0, 0], [b, 0, 0]"), "")
#define ONE                    MODEL(GRAPH(DENSE("a", "2", OF_INPUT), "[a, 0, 0]"), "")
#define SHARED_DENSE           DENSE("a", "4", OF_INPUT ", [[a, 0, 0, {}]]")
#define SHARED                 MODEL(GRAPH(SHARED_DENSE, "[a, 0, 0], [a, 1, 0]"), "")
#define SHARED_AND_OTHER                                                                                               \
    MODEL(GRAPH(SHARED_DENSE ", " DENSE("a_1", "1", OF_INPUT), "[a_1, 0, 0], [a, 0, 0], [a, 1, 0]"), "")
#define COMPILED     ", compile_config: {loss: {a: mse, b: mae}, loss_weights: {a: 3.0, b: 0.5}}"
#define COMPILED_TWO MODEL(GRAPH(TWO_DENSE, "[a, 0, 0], [b, 0, 0]"), COMPILED)

static struct model *build(const char *keras, const char *compile)
{
    auto_free char *text = xasprintf("{model: {keras: %s}, compile: %s}", keras, compile);
    return yaml_model(text);
}

/* "a mean_squared_error 1; b huber 0.5: loss a_loss b_loss" */
static void describe(const struct model *m, struct buf *out)
{
    for (size_t i = 0; i < m->nheads; i++)
        buf_printf(out, "%s%s %s %g", i > 0 ? "; " : "", m->heads[i].name, loss_name(m->heads[i].loss),
                   m->heads[i].loss_weight);
    buf_char(out, ':');
    for (size_t i = 0; i < model_metrics(m); i++)
        buf_printf(out, " %s", model_metric_name(m, i));
}

static const struct {
    const char *keras, *compile, *want;
} CASES[] = {
    { ONE, "{loss: mse, metrics: [mae]}", "a mean_squared_error 1: loss mae" },
    { ONE, "{loss: {a: mse}, lossWeights: 0.5, metrics: {a: mae}}", "a mean_squared_error 0.5: loss mae" },
    { ONE, "{loss: [mse], lossWeights: [0.5], metrics: {a: [mae, mse]}}", "a mean_squared_error 0.5: loss mae mse" },
    { TWO, "{loss: mse}", "a mean_squared_error 1; b mean_squared_error 1: loss a_loss b_loss" },
    { TWO, "{loss: {Huber: {delta: 2}}}", "a huber 1; b huber 1: loss a_loss b_loss" },
    { TWO, "{loss: {class_name: Huber, config: {delta: 2}}}", "a huber 1; b huber 1: loss a_loss b_loss" },
    { TWO, "{loss: {b: mae, a: mse}, lossWeights: {b: 0.5, a: 2}}",
      "a mean_squared_error 2; b mean_absolute_error 0.5: loss a_loss b_loss" },
    { TWO, "{loss: [mse, {Huber: {delta: 2}}], lossWeights: [2, 1]}",
      "a mean_squared_error 2; b huber 1: loss a_loss b_loss" },
    { TWO, "{loss: mse, metrics: {b: [mae, mse]}, weightedMetrics: {b: mae}}",
      "a mean_squared_error 1; b mean_squared_error 1: loss a_loss b_loss b_mae b_mse b_weighted_mae" },
    { TWO, "{loss: mse, metrics: [mae, [mse]], weightedMetrics: [[], mae]}",
      "a mean_squared_error 1; b mean_squared_error 1: loss a_loss b_loss a_mae b_mse b_mae" },
    { SHARED, "{loss: {a: mse, a_1: mae}}", "a mean_squared_error 1; a_1 mean_absolute_error 1: loss a_loss a_1_loss" },
    { SHARED_AND_OTHER, "{loss: mse}",
      "a_1 mean_squared_error 1; a mean_squared_error 1; a_2 mean_squared_error 1: loss a_1_loss a_loss a_2_loss" },
    { COMPILED_TWO, "{optimizer: Adam}", "a mean_squared_error 3; b mean_absolute_error 0.5: loss a_loss b_loss" },
    /* Keras's weights were chosen for its losses */
    { COMPILED_TWO, "{loss: mse}", "a mean_squared_error 1; b mean_squared_error 1: loss a_loss b_loss" },
    { COMPILED_TWO, "{lossWeights: {a: 1, b: 7}}",
      "a mean_squared_error 1; b mean_absolute_error 7: loss a_loss b_loss" },
};

START_TEST(every_output_has_its_own)
{
    AUTO_FINI(buf) got = BUF_INIT;
    AUTO(model) *m = build(CASES[_i].keras, CASES[_i].compile);
    describe(m, &got);
    ck_assert_str_eq(got.data, CASES[_i].want);
}
END_TEST

/* What is written for Keras reads back as the same. */
START_TEST(it_survives_writing)
{
    AUTO_FINI(buf) first = BUF_INIT, second = BUF_INIT;
    AUTO(model) *m = build(CASES[_i].keras, CASES[_i].compile), *again = NULL;
    json_auto_t *written = model_to_json(m), *document = json_pack("{s:O}", "keras", written);
    struct node n = node_root(document, NULL), none = { .path = "compile" };
    struct err e = { 0 };
    ck_ok_e(model_build(&n, &none, ".", &again, &e));
    describe(m, &first);
    describe(again, &second);
    ck_assert_str_eq(second.data, first.data);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/model_compile");
    TCase *t = tcase_create("model_compile");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, every_output_has_its_own, 0, COUNT_OF(CASES));
    tcase_add_loop_test(t, it_survives_writing, 0, COUNT_OF(CASES));
    return s;
}
