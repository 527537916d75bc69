/* keras_model JSON DIR [WEIGHTS] - a run's folder as training leaves it, of a model in Keras's JSON with random values:
 * DIR/model.json, or those of a file, DIR/checkpoints; and what our kernels predict: DIR/x.f32 (ROWS examples),
 * DIR/y.f32. */
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/rng.h"
#include "chief/output_dir.h"
#include "chief/weights.h"
#include "nn/exec.h"
#include "nn/model_impl.h"
#include "tfio/bundle.h"
#include "tfio/checkpoint_state.h"

enum { ROWS = 8 };

/* Values around 1, so that variances are positive and nothing is symmetric. */
static float *random_values(size_t n, uint64_t seed)
{
    float *v = xcalloc(n + 1, sizeof(*v));
    struct rng r = rng_at(seed, RNG_TEST, 0, 0);
    for (size_t i = 0; i < n; i++)
        v[i] = 0.25F + rng_uniform(&r);
    return v;
}

static int write_checkpoint(const struct model *m, const float *values, const char *dir, struct err *e)
{
    auto_free char *folder = output_dir_path(dir, "checkpoints"), *prefix = path_join(folder, "model.ckpt-1");
    AUTO_FINI(strlist) all = { 0 };
    AUTO(bundle_writer) *w = NULL;
    const int64_t step = 1;

    if (dir_make(folder, e) < 0 || bundle_writer_open(prefix, &w, e) < 0 ||
        bundle_writer_add_all(w, "global_step", DT_INT64, &(struct shape){ 0 }, &step, e) < 0)
        return -1;
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        if (bundle_writer_add_all(w, v->name, DT_FLOAT, &v->shape, values + v->offset, e) < 0)
            return -1;
    }
    strlist_add(&all, "model.ckpt-1");
    return bundle_writer_finish(w, e) < 0 ? -1 : checkpoint_state_write(folder, "model.ckpt-1", &all, e);
}

static int write_floats(const char *dir, const char *name, const float *v, size_t n, struct err *e)
{
    auto_free char *path = path_join(dir, name);
    return file_write(path, v, n * sizeof(*v), e);
}

/* One after the other. */
static int write_outputs(const struct model *m, const struct exec *exec, const char *dir, struct err *e)
{
    AUTO_FINI(buf) all = BUF_INIT;
    for (size_t i = 0; i < model_outputs(m); i++)
        buf_add(&all, exec_output(exec, i), ROWS * shape_elements(&model_output(m, i)->shape) * sizeof(float));
    return write_floats(dir, "y.f32", (const float *)(const void *)all.data, all.len / sizeof(float), e);
}

static int predict(const struct model *m, const float *values, const char *dir, struct err *e)
{
    size_t in = 0, at = 0;
    struct batch b = { .n = ROWS };
    AUTO(exec) *exec = NULL;

    for (size_t i = 0; i < model_inputs(m); i++)
        in += ROWS * shape_elements(&model_input(m, i)->shape);
    auto_free float *x = random_values(in, 2);
    for (size_t i = 0; i < model_inputs(m); i++) {
        b.x[i] = (struct tensor){ .dtype = DT_FLOAT, .data = x + at };
        at += ROWS * shape_elements(&model_input(m, i)->shape);
    }
    if (exec_new(m, ROWS, 1, &exec, e) < 0 || write_floats(dir, "x.f32", x, in, e) < 0)
        return -1;
    exec_predict(exec, values, &b);
    return write_outputs(m, exec, dir, e);
}

int main(int argc, char **argv)
{
    struct err e = { .code = ERR_NONE };
    AUTO(model) *m = NULL;

    AUTO_FINI(buf) report = BUF_INIT;
    if (argc < 3 || argc > 4)
        return fprintf(stderr, "usage: keras_model JSON DIR [WEIGHTS]\n"), 2;
    json_auto_t *spec = json_pack("{s:s}", "kerasFile", argv[1]);
    struct node n = node_root(spec, NULL);
    if (model_build(&n, NULL, ".", &m, &e) < 0)
        return fprintf(stderr, "error: %s\n", e.msg), 1;
    auto_free float *values = random_values(model_size(m), 1);
    if (argc == 4 && weights_load(argv[3], m, values, &report, &e) < 0)
        return fprintf(stderr, "error: %s\n", e.msg), 1;
    fputs(report.data, stderr);
    json_auto_t *json = model_to_json(m);
    if (output_dir_json(argv[2], "model.json", json, &e) < 0 || write_checkpoint(m, values, argv[2], &e) < 0 ||
        predict(m, values, argv[2], &e) < 0)
        return fprintf(stderr, "error: %s\n", e.msg), 1;
    return 0;
}
