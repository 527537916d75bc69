/* Training runs of models with shared layers and nested models, beside Keras's. */
#include "golden.h"
#include "nn/exec.h"
#include "nn/model_impl.h"

/* Keras's arguments of compile(), by their names in a manifest. */
static void add_compiled(json_t *compile, const json_t *own)
{
    static const char *const NAMES[][2] = { { "loss", "loss" },
                                            { "loss_weights", "lossWeights" },
                                            { "metrics", "metrics" },
                                            { "weighted_metrics", "weightedMetrics" } };
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (json_object_get(own, NAMES[i][0]) != NULL)
            json_object_set(compile, NAMES[i][1], json_object_get(own, NAMES[i][0]));
}

static struct model *build_case(const json_t *c)
{
    struct err e = { 0 };
    struct model *ret = NULL;
    json_auto_t *model = json_pack("{s:O}", "keras", json_object_get(c, "model"));
    json_auto_t *compile = json_pack("{s:{s:{s:f}}, s:s}", "optimizer", "SGD", "learning_rate", 0.1, "loss", "mse");
    add_compiled(compile, json_object_get(c, "compile"));
    struct node mn = node_root(model, NULL), cn = node_root(compile, NULL);
    ck_ok_e(model_build(&mn, &cn, ".", &ret, &e));
    return ret;
}

/* All variables, by name: compared when `check`, else set. */
static void each_variable(const json_t *c, const json_t *values, const struct model *m, float *params, bool check)
{
    ck_assert_uint_eq(json_object_size(values), model_variables(m));
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        const json_t *tensor = json_object_get(values, v->name);
        ck_assert_msg(golden_count(tensor) == v->count, "%s", v->name);
        if (check)
            golden_check(c, v->name, tensor, params + v->offset);
        for (size_t k = 0; !check && k < v->count; k++)
            params[v->offset + k] = golden_at(tensor, k);
    }
}

/* As parameter servers do it. */
static void apply(const struct model *m, float *params, const float *grads)
{
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        for (size_t k = v->offset; k < v->offset + v->count; k++) {
            if (v->kind == VAR_TRAINABLE)
                params[k] -= 0.1F * grads[k];
            else if (v->kind == VAR_MOVING)
                params[k] = params[k] * v->momentum + grads[k] * (1.0F - v->momentum);
        }
    }
}

struct readiness { /* variables are reported once each, from the last to the first */
    const struct model *m;
    const float *grads;
    float *reported; /* each variable's part of grads as it was when it was reported */
    size_t left;
    bool in_order;
};

static void count_ready(void *user, size_t variable, double loss UNUSED)
{
    struct readiness *r = user;
    const struct variable *v = model_variable(r->m, variable);
    memcpy(r->reported + v->offset, r->grads + v->offset, v->count * sizeof(float));
    r->in_order = r->in_order && variable + 1 == r->left;
    r->left--;
}

/* Nothing was written to a variable after it was reported. */
static void check_reported(const struct readiness *r)
{
    ck_assert(r->in_order && r->left == 0);
    for (size_t i = 0; i < model_variables(r->m); i++) {
        const struct variable *v = model_variable(r->m, i);
        ck_assert_msg(memcmp(r->reported + v->offset, r->grads + v->offset, v->count * sizeof(float)) == 0, "%s",
                      v->name);
    }
}

static void add_labels(struct batch *b, const json_t *y, const struct model *m)
{
    for (size_t k = 0; k < json_array_size(y); k++) {
        const json_t *label = json_array_get(y, k);
        struct tensor t = { DT_FLOAT, golden_shape(label, 0), golden_floats(label) };
        struct err e = { 0 };
        if (loss_sparse(m->heads[k].loss)) {
            t.dtype = DT_INT32;
            for (size_t i = 0; i < golden_count(label); i++)
                ((int32_t *)t.data)[i] = (int32_t)golden_at(label, i);
        }
        ck_ok_e(batch_add_label(b, "", t, &e));
    }
}

/* What evaluate() logs, by name. */
static void check_logs(const json_t *c, const struct model *m, const double *acc)
{
    auto_free double *values = xcalloc(model_metrics(m), sizeof(*values));
    const json_t *logs = json_object_get(c, "logs"), *want;
    const char *name;
    metrics_result(m, acc, values);
    if (logs == NULL)
        return;
    ck_assert_uint_eq(model_metrics(m), json_object_size(logs));
    json_object_foreach((json_t *)(uintptr_t)logs, name, want)
    {
        int i = model_metric_find(m, name);
        ck_assert_msg(i >= 0, "%s", name);
        golden_near(c, name, json_number_value(want), values[i]);
    }
}

static void add_inputs(struct batch *b, const json_t *x)
{
    for (size_t k = 0; k < json_array_size(x); k++) {
        const json_t *in = json_array_get(x, k);
        const struct tensor t = { DT_FLOAT, golden_shape(in, 0), golden_floats(in) };
        struct err e = { 0 };
        ck_ok_e(batch_add_input(b, "", t, &e));
    }
}

static void run_case(const json_t *c)
{
    AUTO(model) *m = build_case(c);
    AUTO(exec) *x = NULL;
    struct err e = { 0 };
    const json_t *after = json_object_get(c, "after"), *outputs = json_object_get(c, "outputs");
    auto_free float *params = xcalloc(m->size + 1, sizeof(float)), *grads = xcalloc(m->size + 1, sizeof(float));
    auto_free float *reported = xcalloc(m->size + 1, sizeof(float));
    auto_free double *acc = xcalloc(metrics_width(m), sizeof(*acc));
    struct batch b = { .n = 4 };

    add_inputs(&b, json_object_get(c, "x"));
    add_labels(&b, json_object_get(c, "y"), m);
    ck_assert(model_inputs(m) == b.nx && model_outputs(m) == b.ny);
    ck_ok_e(exec_new(m, 4, 0, &x, &e));
    each_variable(c, json_object_get(c, "weights"), m, params, false);
    exec_predict(x, params, &b);
    for (size_t k = 0; k < b.ny; k++)
        golden_check(c, "outputs", json_array_get(outputs, k), exec_output(x, k));
    exec_evaluate(x, params, &b, acc);
    check_logs(c, m, acc);
    ck_assert_uint_gt(json_array_size(after), 0);
    for (size_t step = 0; step < json_array_size(after); step++) {
        struct readiness ready = { m, grads, reported, model_variables(m), true };
        double loss;
        for (size_t i = 0; i < m->size; i++)
            grads[i] = NAN; /* all of it is written */
        exec_train(x, params, &b, grads, NULL, count_ready, &ready, &loss);
        check_reported(&ready);
        golden_near(c, "loss", (double)golden_at(json_object_get(c, "losses"), step), loss);
        apply(m, params, grads);
        each_variable(c, json_array_get(after, step), m, params, true);
    }
    for (size_t k = 0; k < b.nx; k++)
        free(b.x[k].data);
    for (size_t k = 0; k < b.ny; k++)
        free(b.y[k].data);
}

START_TEST(a_run_is_that_of_keras)
{
    json_auto_t *file = golden_read("test/data/nn/graphs.json");
    const json_t *cases = json_object_get(file, "cases");
    ck_assert_uint_eq(json_array_size(cases), 19);
    run_case(json_array_get(cases, (size_t)_i));
}
END_TEST

/* The numbers of calls in output_layers are Keras's, in nested models too; a Sequential model has none. */
static void check_ends(const json_t *ours, const json_t *keras)
{
    const json_t *ends = json_at(keras, "config.output_layers"), *layers = json_at(keras, "config.layers"), *layer;
    size_t i;
    if (ends == NULL)
        return;
    ck_assert(json_equal(json_at(ours, "config.output_layers"), ends));
    json_array_foreach(layers, i, layer) check_ends(json_array_get(json_at(ours, "config.layers"), i), layer);
}

/* What is written reads back as the same model, nested models included. */
START_TEST(a_graph_survives_writing)
{
    json_auto_t *file = golden_read("test/data/nn/graphs.json");
    const json_t *c = json_array_get(json_object_get(file, "cases"), (size_t)_i);
    AUTO(model) *m = build_case(c), *again = NULL;
    json_auto_t *first = model_to_json(m), *document = json_pack("{s:O}", "keras", first);
    struct node n = node_root(document, NULL);
    struct err e = { 0 };
    ck_ok_e(model_build(&n, NULL, ".", &again, &e));
    ck_assert_uint_eq(model_variables(again), model_variables(m));
    for (size_t i = 0; i < model_variables(m); i++)
        ck_assert_str_eq(model_variable(again, i)->name, model_variable(m, i)->name);
    ck_assert_uint_eq(again->nnodes, m->nnodes);
    check_ends(first, json_object_get(c, "model"));
    json_auto_t *second = model_to_json(again);
    json_object_del(first, "compile_config");
    ck_assert(json_equal(first, second));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/graph_runs");
    TCase *t = tcase_create("graph_runs");
    tcase_add_loop_test(t, a_run_is_that_of_keras, 0, 19);
    tcase_add_loop_test(t, a_graph_survives_writing, 0, 19);
    suite_add_tcase(s, t);
    return s;
}
