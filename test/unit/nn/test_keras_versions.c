/* Each file of test/data/nn/versions has the layers, activations and initializers of docs/layers.md as one version of
 * Keras writes them: [{"name", "model": what to_json() gave, "error": the message if it must be refused}]. A model of
 * that name in keras_3.15.json is the same model: it starts with the same weights and computes the same.
 * test/interop/golden_versions.py writes them. */
#include "case_folder.h"

#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "golden.h"
#include "nn/exec.h"
#include "nn/model_impl.h"

#define VERSIONS "test/data/nn/versions"
enum { EXAMPLES = 3 };

static int build(const json_t *c, struct model **ret, struct err *e)
{
    json_auto_t *spec =
        json_pack("{s:{s:O}, s:{s:s}}", "model", "keras", json_object_get(c, "model"), "compile", "loss", "mse");
    struct node root = node_root(spec, NULL), model = node_get(&root, "model"), compile = node_get(&root, "compile");
    return model_build(&model, &compile, ".", ret, e);
}

struct result { /* of one step from the initial weights */
    float *params, *grads, *outputs;
    double loss;
};

static void result_fini(struct result *r)
{
    free(r->params);
    free(r->grads);
    free(r->outputs);
}
DEFINE_AUTO_FINI(result, result_fini);

static float *draw(size_t n, uint32_t name)
{
    float *v = xcalloc(n + 1, sizeof(float));
    struct rng r = rng_at(3, RNG_TEST, 0, name);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)rng_normal(&r);
    return v;
}

/* The numbers of words or of classes, where the model takes those. */
static float *draw_inputs(const struct model *m, size_t n)
{
    const struct index_range range = model_index_range(m, 0);
    float *v = draw(n, 1);
    for (size_t i = 0; range.rows > 0 && i < n; i++)
        v[i] = (float)((int64_t)(fabsf(v[i]) * 4) % range.rows);
    return v;
}

static struct tensor tensor_of(const struct shape *each, float *v)
{
    struct tensor t = { .dtype = DT_FLOAT, .shape = { .rank = each->rank + 1, .dim = { EXAMPLES } }, .data = v };
    memcpy(&t.shape.dim[1], each->dim, (size_t)each->rank * sizeof(each->dim[0]));
    return t;
}

static void run(const struct model *m, struct result *ret)
{
    AUTO(exec) *x = NULL;
    struct err e = { 0 };
    size_t in = EXAMPLES * shape_elements(&m->inputs[0].shape), out = EXAMPLES * shape_elements(&m->heads[0].out.shape);
    auto_free float *inputs = draw_inputs(m, in), *labels = draw(out, 2);
    struct batch b = { .n = EXAMPLES,
                       .x[0] = tensor_of(&m->inputs[0].shape, inputs),
                       .y[0] = tensor_of(&m->heads[0].out.shape, labels) };
    ck_ok_e(exec_new(m, EXAMPLES, 1, &x, &e));
    ret->params = xcalloc(m->size + 1, sizeof(float));
    ret->grads = xcalloc(m->size + 1, sizeof(float));
    model_init(m, 7, ret->params);
    ret->outputs = xmemdup(exec_predict(x, ret->params, &b), out * sizeof(float));
    exec_train(x, ret->params, &b, ret->grads, NULL, NULL, NULL, &ret->loss);
}

static void check_near(const char *what, const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabsf(got[i] - want[i]) <= 1e-6F * fmaxf(1, fabsf(want[i])), "%s[%zu]: %.9g, not %.9g", what, i,
                      (double)got[i], (double)want[i]);
}

static const json_t *case_named(const json_t *cases, const char *name)
{
    const json_t *c;
    size_t i;
    json_array_foreach(cases, i, c) if (strcmp(json_string_value(json_object_get(c, "name")), name) == 0) return c;
    ck_abort_msg("%s is not in " VERSIONS "/keras_3.15.json", name);
    return NULL;
}

static void check_case(const char *file, const json_t *c, const json_t *newest)
{
    const char *name = json_string_value(json_object_get(c, "name")),
               *error = json_string_value(json_object_get(c, "error"));
    AUTO(model) *is = NULL, *should_be = NULL;
    AUTO_FINI(result) got = { .loss = 0 }, want = { .loss = 0 };
    struct err e = { 0 };
    int built = build(c, &is, &e);
    if (error != NULL) {
        ck_assert_msg(built < 0 && strstr(e.msg, error) != NULL, "%s %s: %s", file, name,
                      built < 0 ? e.msg : "is read");
        return;
    }
    ck_assert_msg(built == 0, "%s %s: %s", file, name, e.msg);
    ck_ok_e(build(case_named(newest, name), &should_be, &e));
    ck_assert_msg(model_size(is) == model_size(should_be), "%s %s: %zu parameters, not %zu", file, name, model_size(is),
                  model_size(should_be));
    run(is, &got);
    run(should_be, &want);
    auto_free char *what = xasprintf("%s %s", file, name);
    check_near(what, got.params, want.params, model_size(is));
    check_near(what, got.outputs, want.outputs, EXAMPLES * shape_elements(&is->heads[0].out.shape));
    check_near(what, got.grads, want.grads, model_size(is));
    ck_assert_msg(fabs(got.loss - want.loss) < 1e-6, "%s: the loss is %.9g, not %.9g", what, got.loss, want.loss);
}

START_TEST(a_version_means_the_same)
{
    auto_free char *path = case_path(VERSIONS, _i);
    json_auto_t *newest = golden_read(VERSIONS "/keras_3.15.json"), *cases = golden_read(path);
    const json_t *c;
    size_t i;
    ck_assert_uint_ge(json_array_size(cases), 40);
    json_array_foreach(cases, i, c) check_case(path, c, newest);
}
END_TEST

/* A new layer needs a case, which test/interop/golden_versions.py writes. */
START_TEST(the_newest_version_has_every_layer)
{
    static const char *const NAMES[] = {
#define X(id, name) name,
        LAYERS(X)
#undef X
    };
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e;
    ck_ok_e(file_read(VERSIONS "/keras_3.15.json", 1 << 20, &text, &e));
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        auto_free char *key = xasprintf("\"class_name\":\"%s\",\"config\"", NAMES[i]);
        ck_assert_msg(strstr(text.data, key) != NULL, "%s has no case", NAMES[i]);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/keras_versions");
    TCase *t = tcase_create("versions");
    tcase_add_loop_test(t, a_version_means_the_same, 0, case_count(VERSIONS));
    tcase_add_test(t, the_newest_version_has_every_layer);
    suite_add_tcase(s, t);
    return s;
}
