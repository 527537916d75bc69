/* make_files OUT - an output folder as a training job leaves it, with everything our writers can write: for TensorFlow
 * and TensorBoard to read (check.py). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "tfio/bundle.h"
#include "tfio/checkpoint_state.h"
#include "tfio/event_writer.h"

static int add_random(struct bundle_writer *w, const char *name, enum dtype dtype, struct shape shape, struct err *e)
{
    size_t count, bytes;
    void *data;
    struct rng r = rng_at(hash64(name, strlen(name), 1), RNG_TEST, 0, 0);

    if (shape_count(&shape, &count, e) < 0 || size_mul(count, dtype_size(dtype), &bytes, e) < 0 ||
        mem_alloc(bytes, name, &data, e) < 0)
        return -1;
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)data)[i] = dtype == DT_BOOL ? rng_u32(&r) & 1 : (unsigned char)rng_u32(&r);
    for (size_t i = 0; dtype == DT_FLOAT && i < count; i++)
        ((float *)data)[i] = (float)rng_normal(&r);
    int result = bundle_writer_add_all(w, name, dtype, &shape, data, e);
    free(data);
    return result;
}

/* A training job's tensors, every element type, odd shapes, and so many names that the index has several blocks. */
static int write_tensors(struct bundle_writer *w, int64_t step, struct err *e)
{
    static const enum dtype TYPES[] = { DT_FLOAT,  DT_DOUBLE,     DT_INT32, DT_UINT8,  DT_INT16,
                                        DT_INT8,   DT_COMPLEX64,  DT_INT64, DT_BOOL,   DT_BFLOAT16,
                                        DT_UINT16, DT_COMPLEX128, DT_HALF,  DT_UINT32, DT_UINT64 };
    static const char *const STRINGS[] = { "{\"step\": 7}", "", "two\nlines and a \xe2\x82\xac" };
    static const size_t LENGTHS[] = { 11, 0, 19 };
    const struct shape scalar = { .rank = 0 }, three = shape_of(1, (int64_t[]){ 3 });

    if (bundle_writer_add_all(w, "global_step", DT_INT64, &scalar, &step, e) < 0 ||
        add_random(w, "dense/kernel", DT_FLOAT, shape_of(2, (int64_t[]){ 784, 128 }), e) < 0 ||
        add_random(w, "dense/kernel/Adam", DT_FLOAT, shape_of(2, (int64_t[]){ 784, 128 }), e) < 0 ||
        add_random(w, "conv2d/kernel", DT_FLOAT, shape_of(4, (int64_t[]){ 3, 3, 1, 8 }), e) < 0 ||
        add_random(w, "empty", DT_FLOAT, shape_of(2, (int64_t[]){ 0, 3 }), e) < 0 ||
        bundle_writer_add_strings(w, "_trainyard/strings", &three, STRINGS, LENGTHS, 3, e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(TYPES); i++) {
        auto_free char *name = xasprintf("types/%s", dtype_name(TYPES[i]));
        if (add_random(w, name, TYPES[i], shape_of(2, (int64_t[]){ 2, 3 }), e) < 0)
            return -1;
    }
    for (int i = 0; i < 30000; i++) {
        auto_free char *name = xasprintf("many/scope_%d/variable_%d", i % 13, i);
        if (add_random(w, name, DT_INT32, scalar, e) < 0)
            return -1;
    }
    return 0;
}

static int write_checkpoints(const char *out, struct err *e)
{
    auto_free char *dir = path_join(out, "checkpoints");
    AUTO_FINI(strlist) all = { 0 };

    if (dir_make(dir, e) < 0)
        return -1;
    for (int64_t step = 6; step <= 7; step++) {
        auto_free char *name = xasprintf("model.ckpt-%lld", (long long)step), *prefix = path_join(dir, name);
        AUTO(bundle_writer) *w = NULL;
        if (bundle_writer_open(prefix, &w, e) < 0 || write_tensors(w, step, e) < 0 || bundle_writer_finish(w, e) < 0)
            return -1;
        strlist_add(&all, name);
    }
    return checkpoint_state_write(dir, "model.ckpt-7", &all, e);
}

static int write_run(const char *out, const char *run, struct err *e)
{
    static const char *const METRICS[] = { "loss" };
    auto_free char *dir = path_join(out, run);
    json_auto_t *hparams = json_pack("{s:f,s:s,s:b,s:i,s:{s:i}}", "learning_rate", 0.001, "optimizer", "Adam",
                                     "shuffle", 1, "batch_size", 64, "schedule", "decay_steps", 10);
    AUTO(event_writer) *w = NULL;
    enum { N = 4000 };
    float values[N];
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    double now = floor(clock_wall());

    if (event_writer_open(dir, now, "localhost", &w, e) < 0 ||
        event_writer_session(w, now, SESSION_START, 0, NULL, NULL, e) < 0 ||
        event_writer_hparams(w, now, hparams, METRICS, 1, run, e) < 0)
        return -1;
    for (int step = 0; step <= 1000; step += 50) {
        for (size_t i = 0; i < N; i++)
            values[i] = (float)rng_normal(&r) / (float)(1 + step);
        if (event_writer_scalar(w, now + step, step, "loss", 2.3F / (float)(1 + step), e) < 0 ||
            event_writer_scalar(w, now + step, step, "accuracy \xe2\x82\xac", (float)step / 1000, e) < 0 ||
            (step % 500 == 0 && event_writer_histogram(w, now + step, step, "dense/kernel", values, N, e) < 0))
            return -1;
    }
    if (event_writer_histogram(w, now, 0, "nothing", NULL, 0, e) < 0 ||
        event_writer_histogram(w, now, 0, "one", values, 1, e) < 0 ||
        event_writer_text(w, now, 0, "job", "| key | value |\n|---|---|\n| a | b |", e) < 0 ||
        event_writer_session(w, now, SESSION_CHECKPOINT, 1000, "model.ckpt-1000", NULL, e) < 0 ||
        event_writer_session(w, now, SESSION_STOP, 1000, NULL, "finished", e) < 0 ||
        event_writer_hparams_end(w, now, true, e) < 0)
        return -1;
    return event_writer_sync(w, e);
}

/* A job that went back: its second life begins at step 501. */
static int write_second_life(const char *out, struct err *e)
{
    auto_free char *dir = path_join(out, "summaries/train");
    AUTO(event_writer) *w = NULL;
    double now = floor(clock_wall()) + 1;

    if (event_writer_open(dir, now, "localhost", &w, e) < 0 ||
        event_writer_session(w, now, SESSION_START, 501, NULL, NULL, e) < 0)
        return -1;
    for (int step = 501; step <= 601; step += 50)
        if (event_writer_scalar(w, now + step, step, "loss", 7, e) < 0)
            return -1;
    return event_writer_sync(w, e);
}

int main(int argc, char **argv)
{
    struct err e = { .code = ERR_NONE };
    if (argc != 2)
        return fprintf(stderr, "usage: make_files OUT\n"), 2;
    if (write_checkpoints(argv[1], &e) < 0 || write_run(argv[1], "summaries/train", &e) < 0 ||
        write_run(argv[1], "summaries/validation", &e) < 0 || write_second_life(argv[1], &e) < 0)
        return fprintf(stderr, "error: %s\n", e.msg), 1;
    return 0;
}
