/* job_fixture - a whole small job for tests: its folder with data, the job that names them, its model, layout and data
 * set. 40 examples of 4 numbers in batches of 4: ten batches an epoch. Optimizer Counting adds 1 to each cell for each
 * batch a segment applies, and all begin at zero, so a cell is the count. */
#ifndef TRAINYARD_SHARD_JOB_FIXTURE_H
#define TRAINYARD_SHARD_JOB_FIXTURE_H

#include "check_main.h"

#include <string.h>

#include "base/file.h"
#include "data/dataset.h"
#include "shard/layout.h"

enum { JOB_EXAMPLES = 40, JOB_BATCH = 4, JOB_BATCHES = 10 };
#define JOB_UID            "job-1"
#define COUNTING_OPTIMIZER "Counting"

static const char SMALL_LAYERS[] =
    "[{Dense: {units: 3, kernel_initializer: zeros}}, {Dense: {units: 1, kernel_initializer: zeros}}]";

struct job_fixture {
    char dir[64];
    struct job *job;
    struct model *model;
    struct layout *layout;
    struct dataset *train, *validation;
    struct ordinal_space space;
};

static inline void write_rows(const char *dir, const char *name)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    auto_free char *path = path_join(dir, name);
    buf_str(&text, "a,b,c,d,y\n");
    for (int i = 0; i < JOB_EXAMPLES; i++)
        buf_printf(&text, "%d,%d,%d,%d,1\n", i % 3, i % 5, i % 2, i % 7);
    ck_ok_e(file_write(path, text.data, text.len, &e));
}

/* fit: the content of `fit: {...}` besides batchSize, as "epochs: 2". */
static inline void job_open_layers(struct job_fixture *f, const char *layers, const char *optimizer, const char *fit)
{
    struct err e = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    *f = (struct job_fixture){ .dir = "/tmp/trainyard-unit.XXXXXX" };
    ck_assert_ptr_nonnull(mkdtemp(f->dir));
    write_rows(f->dir, "train.csv");
    buf_printf(&text,
               "apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: small}\nspec:\n"
               "  model: {inputShape: [4], layers: %s}\n"
               "  compile: {optimizer: %s, loss: mse}\n"
               "  data: {train: {format: csv, files: [train.csv]}, validation: {format: csv, files: [train.csv]}}\n"
               "  fit: {batchSize: %d, seed: 7, %s}\n"
               "  checkpoint: {everySteps: 1000000, keep: 2}\n  summaries: {everySteps: 5}\n",
               layers, optimizer, JOB_BATCH, fit);
    ck_ok_e(job_parse(text.data, text.len, "small.yaml", &f->job, &e));
    ck_ok_e(model_build(&f->job->model, &f->job->compile, f->dir, &f->model, &e));
    f->layout = layout_new(f->model);
    ck_ok_e(dataset_open(&f->job->train, f->dir, f->dir, NULL, &f->train, &e));
    ck_ok_e(dataset_open(&f->job->validation, f->dir, f->dir, NULL, &f->validation, &e));
    f->space = (struct ordinal_space){ .fingerprint = dataset_fingerprint(f->train),
                                       .seed = 7,
                                       .examples = JOB_EXAMPLES,
                                       .batch_size = JOB_BATCH,
                                       .shuffle = true };
}

static inline void job_open(struct job_fixture *f, const char *optimizer, const char *fit)
{
    job_open_layers(f, SMALL_LAYERS, optimizer, fit);
}

static inline void job_close(struct job_fixture *f)
{
    auto_free char *command = xasprintf("rm -rf %s", f->dir);
    dataset_free(f->train);
    dataset_free(f->validation);
    layout_free(f->layout);
    model_free(f->model);
    job_free(f->job);
    ck_assert_int_eq(system(command), 0);
}

/* Every cell of every trainable variable. */
static inline void want_cells(const struct job_fixture *f, const float *vector, float wanted)
{
    for (size_t i = 0; i < model_variables(f->model); i++) {
        const struct variable *v = model_variable(f->model, i);
        for (size_t k = 0; v->kind == VAR_TRAINABLE && k < v->count; k++)
            ck_assert_msg(vector[v->offset + k] == wanted, "%s[%zu] is %g, not %g", v->name, k,
                          (double)vector[v->offset + k], (double)wanted);
    }
}

#endif
