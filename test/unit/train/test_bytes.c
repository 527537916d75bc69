/* Features of uint8 stay bytes until exec converts and scales them in one pass. Whatever reads a batch must get the
 * same bits as from a file that holds the same numbers as float32. */
#include "data/data_help.h"

#include "base/rng.h"
#include "codec/json.h"
#include "nn/exec.h"
#include "nn/metrics/metrics.h"
#include "train/evaluate.h"
#include "train/step_engine.h"

enum { EXAMPLES = 90, PIXELS = 25, BATCH = 32 };
#define TAIL  "{\"Dense\": {\"units\": 4, \"activation\": \"softmax\"}}]}"
#define INPUT "{\"inputShape\": [5, 5], \"layers\": ["
static const char *const MODELS[] = {
    INPUT "{\"Rescaling\": {\"scale\": 0.00392156862745098}}, {\"Flatten\": {}}," TAIL,
    INPUT "{\"Flatten\": {}}, {\"Rescaling\": {\"scale\": 0.0078431372549, \"offset\": -1.1}}," TAIL,
    INPUT "{\"Flatten\": {}}," TAIL,
    INPUT "{\"Flatten\": {}}, {\"Rescaling\": {\"scale\": 0.1, \"offset\": 0.3}}, {\"Dropout\": {\"rate\": 0.3}}," TAIL,
    INPUT "{\"Flatten\": {}}, {\"Normalization\": {}}, {\"Rescaling\": {\"scale\": 0.7}}," TAIL,
    INPUT "{\"Rescaling\": {\"scale\": 0.00392156862745098}}, {\"Flatten\": {}}, {\"Normalization\": {}}," TAIL,
};
static const char COMPILE[] =
    "{\"optimizer\": \"Adam\", \"loss\": \"sparse_categorical_crossentropy\", \"metrics\": [\"accuracy\"]}";

struct world {
    struct folder folder;
    struct model *model;
    struct dataset *bytes, *floats;
};

/* The same examples as uint8 and as float32, and their class numbers. */
static void write_files(const struct folder *f)
{
    AUTO_FINI(buf) bytes = BUF_INIT;
    AUTO_FINI(buf) floats = BUF_INIT;
    AUTO_FINI(buf) labels = BUF_INIT;
    struct rng r = rng_at(3, RNG_TEST, 0, 0);
    npy_header(&bytes, "|u1", "(90, 5, 5)");
    npy_header(&floats, "<f4", "(90, 5, 5)");
    npy_header(&labels, "|u1", "(90,)");
    for (int i = 0; i < EXAMPLES * PIXELS; i++) {
        uint8_t v = i < 256 ? (uint8_t)i : (uint8_t)rng_u32(&r); /* every value of a byte */
        float as_float = v;
        buf_char(&bytes, (char)v);
        buf_add(&floats, &as_float, sizeof(as_float));
    }
    for (int i = 0; i < EXAMPLES; i++)
        buf_char(&labels, (char)(i % 4));
    put_file(f, "bytes.npy", bytes.data, bytes.len);
    put_file(f, "floats.npy", floats.data, floats.len);
    put_file(f, "labels.npy", labels.data, labels.len);
}

static struct dataset *open_data(const char *dir, char *features)
{
    char labels[] = "labels.npy";
    struct data_spec spec = { .format = DATA_NPY, .features = features, .labels = labels };
    struct dataset *d = NULL;
    struct err e = { 0 };
    ck_ok_e(dataset_open(&spec, dir, dir, NULL, &d, &e));
    return d;
}

static struct world world_open(const char *model)
{
    struct world w = { .folder = folder_new() };
    struct err e = { 0 };
    json_auto_t *m = NULL, *c = NULL;
    write_files(&w.folder);
    ck_ok_e(json_parse(model, strlen(model), "model", &m, &e));
    ck_ok_e(json_parse(COMPILE, strlen(COMPILE), "compile", &c, &e));
    struct node mn = node_root(m, NULL), cn = node_root(c, NULL);
    ck_ok_e(model_build(&mn, &cn, ".", &w.model, &e));
    w.bytes = open_data(w.folder.path, (char[]){ "bytes.npy" });
    w.floats = open_data(w.folder.path, (char[]){ "floats.npy" });
    return w;
}

static void world_close(struct world *w)
{
    dataset_free(w->bytes);
    dataset_free(w->floats);
    model_free(w->model);
    folder_fini(&w->folder);
}

static float *vector_of(const struct model *m)
{
    return xcalloc(model_size(m), sizeof(float));
}

/* A step for each batch of two epochs; loss and sums are those of the last one. Returns the type of the batches. */
static enum dtype train(const struct world *w, const struct dataset *d, float *params, float *grads, double *loss,
                        double *sums)
{
    AUTO(loader) *l = NULL;
    AUTO(exec) *x = NULL;
    AUTO(adapt) *a = adapt_new(w->model);
    struct err e = { 0 };
    struct batch b = { 0 };
    struct ordinal_space space = { .seed = 5, .examples = EXAMPLES, .batch_size = BATCH, .shuffle = true };
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    ck_ok_e(exec_new(w->model, ordinal_space_rows(&space), 9, &x, &e));
    model_init(w->model, 1, params);
    for (int64_t i = 0; i < ordinal_space_batches(&space); i++) {
        ck_ok_e(loader_get(l, i, &b, &e));
        adapt_add(a, x, params, &b);
    }
    adapt_finish(a, params);
    for (int64_t i = 0; i < 2 * ordinal_space_batches(&space); i++) {
        ck_ok_e(loader_get(l, i, &b, &e));
        exec_train(x, params, &b, grads, sums, NULL, NULL, loss);
        for (size_t k = 0; k < model_variables(w->model); k++) {
            const struct variable *v = model_variable(w->model, k);
            for (size_t j = v->offset; v->kind == VAR_TRAINABLE && j < v->offset + v->count; j++)
                params[j] -= 0.01F * grads[j];
        }
    }
    return b.x[0].dtype;
}

START_TEST(training_gives_the_bits_that_floats_give)
{
    struct world w = world_open(MODELS[_i]);
    size_t size = model_size(w.model) * sizeof(float), width = metrics_width(w.model);
    auto_free float *p1 = vector_of(w.model), *p2 = vector_of(w.model), *g1 = vector_of(w.model),
                    *g2 = vector_of(w.model);
    auto_free double *s1 = xcalloc(width, sizeof(double)), *s2 = xcalloc(width, sizeof(double));
    double loss1, loss2;
    ck_assert_int_eq((int)train(&w, w.bytes, p1, g1, &loss1, s1), DT_UINT8);
    ck_assert_int_eq((int)train(&w, w.floats, p2, g2, &loss2, s2), DT_FLOAT);
    ck_assert_mem_eq(&loss1, &loss2, sizeof(loss1));
    ck_assert_mem_eq(g1, g2, size);
    ck_assert_mem_eq(p1, p2, size);
    ck_assert_mem_eq(s1, s2, width * sizeof(double));
    world_close(&w);
}
END_TEST

START_TEST(evaluation_gives_the_bits_that_floats_give)
{
    struct world w = world_open(MODELS[_i]);
    struct err e = { 0 };
    auto_free float *params = vector_of(w.model);
    double of_bytes[2], of_floats[2];
    AUTO(evaluator) *one = NULL, *other = NULL;
    model_init(w.model, 1, params);
    ck_ok_e(evaluator_new(w.model, w.bytes, BATCH, &one, &e));
    ck_ok_e(evaluator_new(w.model, w.floats, BATCH, &other, &e));
    ck_ok_e(evaluator_run(one, params, NULL, NULL, of_bytes, &e));
    ck_ok_e(evaluator_run(other, params, NULL, NULL, of_floats, &e));
    ck_assert_mem_eq(of_bytes, of_floats, sizeof(of_bytes));
    world_close(&w);
}
END_TEST

static void no_gradient(void *user UNUSED, struct train_step *step UNUSED, size_t variable UNUSED)
{
}

/* The gradient of a batch, of which `ahead` is read ahead before it is loaded; -1: none is. */
static void gradient_of(struct step_engine *g, struct train_step *step, int64_t ahead)
{
    struct err e = { 0 };
    ck_assert(ahead < 0 || step_engine_read_ahead(g, ahead));
    ck_ok_e(step_engine_load(g, step->ordinal, &e));
    ck_ok_e(step_engine_compute(g, step, no_gradient, NULL, &e));
}

/* Also after another batch was read ahead than is wanted then. */
START_TEST(a_batch_read_ahead_is_the_one_that_is_loaded)
{
    static const int64_t AHEAD[] = { -1, 1, 2, 0, 4 };
    struct world w = world_open(MODELS[0]);
    struct err e = { 0 };
    struct ordinal_space space = { .seed = 5, .examples = EXAMPLES, .batch_size = BATCH, .shuffle = true };
    struct step_engine_config config = { .model = w.model, .dataset = w.bytes, .space = &space };
    AUTO(step_engine) *one = NULL, *plain = NULL;
    size_t size = model_size(w.model) * sizeof(float);
    auto_free float *params = vector_of(w.model), *g1 = vector_of(w.model), *g2 = vector_of(w.model);
    auto_free double *sums = xcalloc(metrics_width(w.model), sizeof(double));
    model_init(w.model, 1, params);
    ck_ok_e(step_engine_new(&config, &one, &e));
    ck_ok_e(step_engine_new(&config, &plain, &e));
    for (size_t i = 0; i < COUNT_OF(AHEAD); i++) {
        struct train_step first = { .ordinal = (int64_t)i, .values = params, .grads = g1, .sums = sums };
        struct train_step second = { .ordinal = (int64_t)i, .values = params, .grads = g2, .sums = sums };
        gradient_of(one, &first, AHEAD[i]);
        gradient_of(plain, &second, -1);
        ck_assert_mem_eq(g1, g2, size);
    }
    world_close(&w);
}
END_TEST

/* Buffers are as large as the largest possible batch: a batch size beyond the data costs nothing. */
START_TEST(a_batch_is_no_larger_than_the_data)
{
    struct world w = world_open(MODELS[0]);
    struct err e = { 0 };
    auto_free float *params = vector_of(w.model);
    double at_once[2], all[2];
    AUTO(evaluator) *large = NULL, *exact = NULL;
    model_init(w.model, 1, params);
    ck_ok_e(evaluator_new(w.model, w.bytes, (int64_t)1 << 40, &large, &e));
    ck_ok_e(evaluator_new(w.model, w.bytes, EXAMPLES, &exact, &e));
    ck_ok_e(evaluator_run(large, params, NULL, NULL, at_once, &e));
    ck_ok_e(evaluator_run(exact, params, NULL, NULL, all, &e));
    ck_assert_mem_eq(at_once, all, sizeof(all));
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("bytes");
    TCase *t = tcase_create("bytes");
    tcase_add_loop_test(t, training_gives_the_bits_that_floats_give, 0, (int)COUNT_OF(MODELS));
    tcase_add_loop_test(t, evaluation_gives_the_bits_that_floats_give, 0, (int)COUNT_OF(MODELS));
    tcase_add_test(t, a_batch_is_no_larger_than_the_data);
    tcase_add_test(t, a_batch_read_ahead_is_the_one_that_is_loaded);
    suite_add_tcase(s, t);
    return s;
}
