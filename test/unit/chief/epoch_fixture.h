/* epoch_fixture - a chief whose steps the test runs itself, on the ps of ps_fixture.h. The test pushes batches, polls
 * the ps, and records and evaluates epochs one call at a time. */
#ifndef TRAINYARD_CHIEF_EPOCH_FIXTURE_H
#define TRAINYARD_CHIEF_EPOCH_FIXTURE_H

#include "chief_fixture.h"

#include <math.h>

#include "chief/history.h"
#include "chief/output_dir.h"

struct world {
    struct ps_fixture ps;
    struct leader l;
    struct params *worker;
};

static inline void world_open(struct world *w, const char *optimizer, const char *fit)
{
    struct err e = { 0 };
    *w = (struct world){ 0 };
    ps_open(&w->ps, optimizer, fit);
    leader_open(&w->l, &w->ps, w->ps.job.dir);
    ck_ok_e(chief_initialise_ps(w->l.chief, 0, &e));
    w->worker = ps_params(&w->ps, "worker-0", JOB_UID);
}

static inline void world_close(struct world *w)
{
    params_free(w->worker);
    leader_close(&w->l);
    ps_close(&w->ps);
}

/* The chief polls the ps for what they have applied. */
static inline void look(struct world *w)
{
    AUTO_FINI(ps_set_view) view = { 0 };
    ps_set_poll(w->l.chief->ps_set, WAIT_MS, &view);
    ck_assert_int_eq((int)view.condition, PS_SET_READY);
    coordinator_observe(w->l.chief->coordinator, &view.done, view.begun_ms);
    atomic_store(&w->l.chief->step, view.step);
}

static inline void train(struct world *w, int64_t from, int64_t to)
{
    ps_push(&w->ps, w->worker, w->l.chief->generation, from, to);
    look(w);
}

static inline struct epoch_values take(struct world *w, int64_t over)
{
    struct epoch_values v = { 0 };
    struct err e = { 0 };
    int taken = chief_take_values(w->l.chief, over, &v, &e);
    ck_assert_msg(taken == 1, "%d %s", taken, e.msg);
    return v;
}

static inline void record(struct world *w, int64_t over)
{
    struct epoch_values v = take(w, over);
    struct err e = { 0 };
    ck_ok_e(chief_record_epochs(w->l.chief, over, &v, &e));
}

static inline void await_evaluation(struct world *w)
{
    struct err e = { 0 };
    ck_wait(chief_evaluation_take(w->l.chief, &e) < 0 || !w->l.chief->evaluation.running);
    ck_assert_str_eq(e.msg, "");
}

/* The loss of a model all of whose trainable cells are `cell`. */
static inline double loss_of(struct world *w, float cell)
{
    const struct job_fixture *j = &w->ps.job;
    struct err e = { 0 };
    double values[8];
    AUTO(evaluator) *v = NULL;
    auto_free float *vector = xcalloc(model_size(j->model), sizeof(*vector));
    for (size_t i = 0; i < model_size(j->model); i++)
        vector[i] = cell;
    ck_ok_e(evaluator_new(j->model, j->validation, JOB_BATCH, &v, &e));
    ck_ok_e(evaluator_run(v, vector, NULL, NULL, values, &e));
    return values[0];
}

static inline void want_history(struct world *w, int64_t entries)
{
    json_auto_t *h = reporter_to_json(w->l.chief->reporter);
    const char *key;
    json_t *list;
    json_object_foreach(h, key, list)
        ck_assert_msg((int64_t)json_array_size(list) == entries, "%s has %zu entries, not %lld", key,
                      json_array_size(list), (long long)entries);
}

static inline double val_loss(struct world *w, int64_t epoch)
{
    json_auto_t *h = reporter_to_json(w->l.chief->reporter);
    double v;
    return history_find(h, epoch, "val_loss", &v) ? v : (double)NAN;
}

static inline void want_val_loss(struct world *w, int64_t epoch, float cell)
{
    double got = val_loss(w, epoch), wanted = loss_of(w, cell);
    ck_assert_msg(fabs(got - wanted) <= 1e-6 * wanted, "epoch %lld: %.9g, not %.9g", (long long)epoch, got, wanted);
}

static inline json_t *progress(struct world *w)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    json_t *v = NULL;
    chief_progress(w->l.chief, &text);
    ck_ok_e(json_parse(text.data, text.len, "progress", &v, &e));
    return v;
}

static inline void want_message(struct world *w, const char *wanted)
{
    json_auto_t *v = progress(w);
    const char *message = json_string_value(json_object_get(v, "message"));
    ck_assert_ptr_nonnull(message);
    ck_assert_msg(strstr(message, wanted) != NULL, "'%s' does not say '%s'", message, wanted);
}

static inline bool finish(struct world *w)
{
    struct err e = { 0 };
    bool finished;
    w->l.chief->storage_retry_ms = 0;
    ck_ok_e(chief_finish(w->l.chief, &finished, &e));
    return finished;
}

static inline void finish_all(struct world *w)
{
    struct err e = { 0 };
    int64_t step;
    ck_wait(chief_evaluation_take(w->l.chief, &e) < 0 || finish(w));
    ck_assert_str_eq(e.msg, "");
    ck_assert_int_eq(output_dir_finished(w->ps.job.dir, JOB_UID, &step, &e), 1);
}

static inline bool is_saved(struct world *w, int64_t step)
{
    auto_free char *file = xasprintf("%s/checkpoints/model.ckpt-%lld.index", w->ps.job.dir, (long long)step);
    return file_exists(file);
}

#endif
