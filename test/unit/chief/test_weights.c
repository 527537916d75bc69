/* Weights of every kind of file. test/data/train/weights was written by Keras 3.15 and tf_keras 2.21 (test/interop
 * tests their newest files): value k of variable v is v + 1 + k/64. fortran.npz is small.npz with its kernels in
 * Fortran order. */
#include "chief/weights.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "check_main.h"
#include "data/h5.h"

#define DIR "test/data/train/weights/"

static struct buf report;
static struct err e;

static struct model *model_of(const char *layers)
{
    auto_free char *text = xasprintf("{inputShape: [3], layers: %s}", layers);
    json_auto_t *doc = NULL;
    AUTO(source) *source = NULL;
    struct model *m = NULL;
    ck_ok_e(yaml_parse(text, strlen(text), "test", &doc, &source, &e));
    struct node n = node_root(doc, source);
    ck_ok_e(model_build(&n, NULL, ".", &m, &e));
    return m;
}

#define SMALL                                                                                                          \
    "[{Normalization: {name: scale}}, {Dense: {units: 2, name: hidden, activation: relu}}, {BatchNormalization: "      \
    "{name: norm}}, "                                                                                                  \
    "{Dense: {units: 2, name: out}}]"

/* The vector after loading; NAN where nothing was read. */
static float *load(const struct model *m, const char *file)
{
    auto_free char *path = path_join(DIR, file);
    float *v = xcalloc(model_size(m), sizeof(*v));
    for (size_t i = 0; i < model_size(m); i++)
        v[i] = -1;
    buf_clear(&report);
    int r = weights_load(path, m, v, &report, &e);
    ck_assert_msg(r == 0, "%s: %s", file, r < 0 ? e.msg : "");
    return v;
}

static void refuse(const struct model *m, const char *file, const char *why)
{
    auto_free char *path = path_join(DIR, file);
    auto_free float *v = xcalloc(model_size(m), sizeof(*v));
    AUTO_FINI(buf) text = BUF_INIT;
    e = (struct err){ 0 };
    ck_assert_msg(weights_load(path, m, v, &text, &e) < 0, "%s is taken", file);
    ck_assert_msg(strstr(e.msg, why) != NULL, "%s: %s", file, e.msg);
    ck_assert_int_eq(err_exit_code(&e), 2);
}

/* The number that the generator gave to a variable. */
static int number_of(const char *name)
{
    static const char *const NAMES[] = { "scale/mean", "scale/variance", "hidden/kernel",    "hidden/bias",
                                         "norm/gamma", "norm/beta",      "norm/moving_mean", "norm/moving_variance",
                                         "out/kernel", "out/bias" };
    for (int i = 0; i < (int)COUNT_OF(NAMES); i++)
        if (strcmp(NAMES[i], name) == 0)
            return i + 1;
    return 0;
}

static void ck_values(const struct model *m, const float *vector, const char *file)
{
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        for (size_t k = 0; k < v->count; k++)
            ck_assert_msg(vector[v->offset + k] == (float)number_of(v->name) + (float)k / 64, "%s: %s[%zu] is %g", file,
                          v->name, k, (double)vector[v->offset + k]);
    }
}

START_TEST(every_kind_of_file)
{
    static const char *const FILES[] = { "small.keras", "deflated.keras", "small.weights.h5",    "unnamed.weights.h5",
                                         "small.npz",   "packed.npz",     "fortran.npz",         "small.safetensors",
                                         "tf_keras.h5", "tf_keras.keras", "tf_keras.weights.h5", "object.ckpt" };
    AUTO(model) *m = model_of(SMALL);
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        auto_free float *v = load(m, FILES[i]);
        ck_values(m, v, FILES[i]);
        ck_assert_ptr_nonnull(strstr(report.data, ": 10 of 10 variables: "));
        ck_assert_ptr_null(strstr(report.data, "not in the file"));
        ck_assert_ptr_null(strstr(report.data, "optimizer"));
    }
}
END_TEST

START_TEST(a_run_and_a_checkpoint)
{
    AUTO(model) *m = model_of(SMALL);
    static const char *const PATHS[] = { "../../cli/run", "../../cli/run/checkpoints",
                                         "../../cli/run/checkpoints/model.ckpt-1" };
    for (size_t i = 0; i < COUNT_OF(PATHS); i++) {
        auto_free float *v = load(m, PATHS[i]);
        ck_assert_ptr_nonnull(strstr(report.data, ": 10 of 10 variables: "));
        ck_assert_ptr_null(strstr(report.data, "global_step"));
        ck_assert(v[0] > 0 && v[0] < 2);
    }
}
END_TEST

/* Adam's slots of TensorFlow 1 are named after the variables: they are neither loaded nor reported. */
START_TEST(slots_are_not_read)
{
    AUTO(model) *m = model_of("[{Dense: {units: 2, name: kernel}}, {Dense: {units: 2, name: Adam}}]");
    auto_free float *v = xcalloc(model_size(m), sizeof(*v));
    buf_clear(&report);
    ck_assert_int_eq(weights_load("test/data/train/tf_files/ckpt_tf1", m, v, &report, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "it has no variable of the model; the model has kernel/kernel"));
    ck_assert_ptr_null(strstr(e.msg, "dense/kernel/Adam"));
    ck_assert_ptr_null(strstr(e.msg, "beta1_power"));
}
END_TEST

/* Transfer learning: a new head on trained layers. */
START_TEST(some_layers_begin_anew)
{
    AUTO(model) *m = model_of("[{Dense: {units: 2, name: hidden, trainable: false}}, {Dense: {units: 5, name: head}}]");
    static const char *const FILES[] = { "small.keras", "small.npz", "small.safetensors", "tf_keras.h5" };
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        auto_free float *v = load(m, FILES[i]);
        for (size_t k = 0; k < model_variables(m); k++) {
            const struct variable *var = model_variable(m, k);
            float want = strncmp(var->name, "head", 4) == 0 ? -1 : (float)number_of(var->name);
            ck_assert_msg(v[var->offset] == want, "%s: %s", FILES[i], var->name);
        }
        ck_assert_ptr_nonnull(strstr(report.data, ": 2 of 4 variables: hidden/kernel, hidden/bias\n"));
        ck_assert_ptr_nonnull(strstr(report.data, "not in the file, trained from scratch: head/kernel, head/bias\n"));
        ck_assert_ptr_nonnull(strstr(report.data, "in the file, but not in the model: "));
    }
}
END_TEST

START_TEST(what_does_not_fit_is_an_error)
{
    AUTO(model) *wide = model_of("[{Dense: {units: 7, name: out}}]");
    AUTO(model) *no_bias = model_of("[{Dense: {units: 2, name: hidden, use_bias: false}}]");
    AUTO(model) *other = model_of("[{Dense: {units: 2, name: strange}}]");
    refuse(
        wide, "small.npz",
        "'out/kernel': its shape is (2, 2) there and (3, 7) in the model; rename its layer to train it from scratch");
    refuse(wide, "small.keras", "'out/kernel': its shape is (2, 2) there");
    refuse(no_bias, "small.keras", "layer 'hidden' has 2 variables there and 1 in the model");
    refuse(other, "small.safetensors",
           "it has no variable of the model; the model has strange/kernel, strange/bias, the file hidden/bias");
    refuse(other, "model.json", "unsupported file of weights: it must be a run's folder");
    refuse(other, "nothing.npz", "no checkpoint " DIR "nothing.npz");
}
END_TEST

static void ck_damaged(const struct model *m, const char *data, size_t n, const char *file, const char *why)
{
    auto_free float *v = xcalloc(model_size(m), sizeof(*v));
    AUTO_FINI(buf) text = BUF_INIT;
    e = (struct err){ 0 };
    ck_ok_e(file_write(file, data, n, &e));
    ck_assert_int_eq(weights_load(file, m, v, &text, &e), -1);
    ck_assert_msg(strstr(e.msg, why) != NULL, "%s", e.msg);
    ck_ok_e(file_remove(file, &e));
}

static void put(struct buf *b, const char *what, const char *with, size_t n)
{
    char *at = memmem(b->data, b->len, what, n);
    ck_assert_ptr_nonnull(at);
    memcpy(at, with, n);
}

START_TEST(damage_and_claims)
{
    AUTO(model) *m = model_of(SMALL);
    auto_free char *file = xasprintf("/tmp/trainyard-weights-%d", (int)getpid());
    AUTO_FINI(buf) npz = BUF_INIT, safe = BUF_INIT, h5 = BUF_INIT, packed = BUF_INIT;
    ck_ok_e(file_read(DIR "small.npz", 1 << 20, &npz, &e));
    ck_ok_e(file_read(DIR "packed.npz", 1 << 20, &packed, &e));
    ck_ok_e(file_read(DIR "small.safetensors", 1 << 20, &safe, &e));
    ck_ok_e(file_read(DIR "small.weights.h5", 1 << 20, &h5, &e));

    ck_damaged(m, npz.data, npz.len - 30, file, "its end record is missing");
    ck_damaged(m, safe.data, 40, file, "its header is cut off");
    ck_damaged(m, safe.data, safe.len - 1, file, "lie beyond the end of the file");
    ck_damaged(m, h5.data, 3000, file, "damaged HDF5 file");
    put(&npz, "'shape': (3, 2)", "'shape': (3, 1)", 15); /* the CRC detects it */
    ck_damaged(m, npz.data, npz.len, file, "its checksum is wrong");
    char *entry = memmem(packed.data, packed.len, "PK\1\2", 4);
    memset(entry + 24, 0xee, 4); /* 4 GB of content from 100 bytes: refused before memory is allocated */
    ck_damaged(m, packed.data, packed.len, file, "its offset or size is wrong");
    put(&safe, "\"F32\"", "\"X32\"", 5);
    ck_damaged(m, safe.data, safe.len, file, "its type is not known");
    put(&h5, "TREE", "TRUE", 4);
    ck_damaged(m, h5.data, h5.len, file, "the tree of a group");
}
END_TEST

START_TEST(values_must_be_finite)
{
    AUTO(model) *m = model_of(SMALL);
    auto_free char *file = xasprintf("/tmp/trainyard-weights-%d", (int)getpid());
    AUTO_FINI(buf) safe = BUF_INIT;
    const float infinite = HUGE_VALF;
    ck_ok_e(file_read(DIR "small.safetensors", 1 << 20, &safe, &e));
    memcpy(safe.data + safe.len - 4, &infinite, 4);
    ck_damaged(m, safe.data, safe.len, file, "a value is not finite");
}
END_TEST

/* Keras's model.save() keeps spaces of a layer's name, which names of variables here cannot have. */
START_TEST(a_name_with_spaces)
{
    AUTO(model) *m = model_of("[{Dense: {units: 2, name: my layer}}]");
    auto_free float *v = load(m, "spaces.h5");
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *of = model_variable(m, i);
        for (size_t k = 0; k < of->count; k++)
            ck_assert_msg(v[of->offset + k] == (float)(i + 1) + (float)k / 64, "%s[%zu] is %g", of->name, k,
                          (double)v[of->offset + k]);
    }
}
END_TEST

/* An HDF5 file in which every group contains itself: reading ends at the bounds. */
START_TEST(a_cycle_of_groups)
{
    AUTO_FINI(buf) h5 = BUF_INIT;
    struct named_arrays l = { 0 };
    ck_ok_e(file_read(DIR "small.weights.h5", 1 << 20, &h5, &e));
    char *node = memmem(h5.data, h5.len, "SNOD", 4);
    ck_assert_ptr_nonnull(node);
    memcpy(node + 8 + 8, h5.data + 24 + 32 + 8, 8); /* the first member is the root */
    memset(node + 8 + 16, 0, 4);
    ck_assert_int_eq(h5_read(h5.data, h5.len, "cycle", &l, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "cycle: damaged HDF5 file: "));
    ck_assert_ptr_nonnull(strstr(e.msg, "deep"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("weights");
    TCase *t = tcase_create("weights");
    report = (struct buf)BUF_INIT;
    tcase_add_test(t, every_kind_of_file);
    tcase_add_test(t, a_run_and_a_checkpoint);
    tcase_add_test(t, slots_are_not_read);
    tcase_add_test(t, some_layers_begin_anew);
    tcase_add_test(t, what_does_not_fit_is_an_error);
    tcase_add_test(t, damage_and_claims);
    tcase_add_test(t, values_must_be_finite);
    tcase_add_test(t, a_name_with_spaces);
    tcase_add_test(t, a_cycle_of_groups);
    suite_add_tcase(s, t);
    return s;
}
