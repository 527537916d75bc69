/* Every golden layer of Keras: forward, dL/dinputs, dL/dweights, moving statistics. */
#include <math.h>

#include "golden.h"
#include "op_run.h"

static const struct variable *variable_of(const struct op_run *r, const char *name)
{
    for (size_t i = 0; i < model_variables(r->m); i++) {
        const char *slash = strchr(model_variable(r->m, i)->name, '/');
        if (strcmp(slash + 1, name) == 0)
            return model_variable(r->m, i);
    }
    ck_abort_msg("no variable %s", name);
    return NULL;
}

static void load(float *to, const json_t *tensor)
{
    for (size_t i = 0; i < golden_count(tensor); i++)
        to[i] = golden_at(tensor, i);
}

/* config without the keys that are not arguments */
static json_t *arguments(const json_t *config)
{
    json_t *args = json_deep_copy(config);
    json_object_del(args, "class");
    json_object_del(args, "note");
    return args;
}

static void check_state(const json_t *c, struct op_run *r)
{
    const json_t *want;
    const char *name;
    json_object_foreach(json_object_get(c, "state_after"), name, want)
    {
        const struct variable *v = variable_of(r, name);
        ck_assert_int_eq(v->kind, VAR_MOVING);
        for (size_t i = 0; i < v->count; i++) { /* what a ps does with the batch statistic */
            float now = r->params[v->offset + i], batch = r->grads[v->offset + i];
            if (r->c.training)
                r->params[v->offset + i] = now * v->momentum + batch * (1 - v->momentum);
        }
        golden_check(c, name, want, r->params + v->offset);
    }
}

/* Layers that have no mode are run as in training: only then does forward keep what backward needs. */
static bool wants_training(const json_t *c)
{
    const char *class_name = json_string_value(json_object_get(json_object_get(c, "config"), "class"));
    bool has_modes = strcmp(class_name, "Dropout") == 0 || strcmp(class_name, "BatchNormalization") == 0;
    return !has_modes || json_is_true(json_object_get(c, "training"));
}

static void run_case(const json_t *c)
{
    const json_t *config = json_object_get(c, "config"), *inputs = json_object_get(c, "inputs"), *w;
    json_auto_t *args = arguments(config);
    struct shape whole = golden_shape(json_array_get(inputs, 0), 0), in[OP_RUN_INPUTS];
    size_t nin = json_array_size(inputs);
    const char *name;
    struct op_run r;

    ck_assert_uint_le(nin, OP_RUN_INPUTS);
    for (size_t k = 0; k < nin; k++)
        in[k] = golden_shape(json_array_get(inputs, k), 1);
    op_run_init(&r, json_string_value(json_object_get(config, "class")), args, in, nin, (size_t)whole.dim[0],
                wants_training(c));
    struct shape out = golden_shape(json_object_get(c, "output"), 1);
    ck_assert_msg(shape_eq(&out, &r.c.l->out), "%s: another shape", json_string_value(json_object_get(c, "name")));
    float *x = r.x;
    for (size_t k = 0; k < nin; x += r.each[k++])
        load(x, json_array_get(inputs, k));
    load(r.dy, json_object_get(c, "upstream"));
    json_object_foreach(json_object_get(c, "weights"), name, w) load(r.params + variable_of(&r, name)->offset, w);

    op_run_forward(&r);
    golden_check(c, "output", json_object_get(c, "output"), r.y);
    op_run_backward(&r);
    const float *dx = r.dx;
    const json_t *grads = json_object_get(c, "grad_inputs"); /* indices have none */
    for (size_t k = 0; k < json_array_size(grads); dx += r.each[k++])
        golden_check(c, "grad_inputs", json_array_get(grads, k), dx);
    json_object_foreach(json_object_get(c, "grad_weights"), name, w)
        golden_check(c, name, w, r.grads + variable_of(&r, name)->offset);
    check_state(c, &r);
    op_run_fini(&r);
}

START_TEST(golden_layers)
{
    json_auto_t *file = golden_read("test/data/nn/layers.json");
    const json_t *cases = json_object_get(file, "cases"), *c;
    size_t i;
    ck_assert_uint_ge(json_array_size(cases), 20);
    json_array_foreach(cases, i, c) run_case(c);
}
END_TEST

START_TEST(a_bad_number_is_not_lost)
{
    static const struct shape TWO[2] = { { .rank = 1, .dim = { 2 } }, { .rank = 1, .dim = { 2 } } };
    static const float X[] = { NAN, 1, 2, NAN };
    json_auto_t *none = json_object();
    struct op_run r;
    op_run_init(&r, _i == 0 ? "Maximum" : "Minimum", none, TWO, 2, 1, false);
    memcpy(r.x, X, sizeof(X));
    op_run_forward(&r);
    ck_assert(isnan(r.y[0]) && isnan(r.y[1]));
    op_run_fini(&r);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/layers");
    TCase *t = tcase_create("golden");
    tcase_add_test(t, golden_layers);
    tcase_add_loop_test(t, a_bad_number_is_not_lost, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
