/* Start of the chief: it acquires a generation, then fills the ps from the newest complete checkpoint or with
 * initial values. The same code restores a ps that was lost later. */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/stop.h"
#include "chief/chief_internal.h"
#include "chief/output_dir.h"
#include "chief/training_state.h"
#include "chief/weights.h"
#include "shard/generation.h"

enum { RETRY_MS = 20, SEEN_MS = 2000, CONFIRM_MS = 1000 };

/* ---- where values come from ---- */

static int initial_segment(const float *vector, const struct segment_spec *segment, float *data, bool *ret_slots,
                           int64_t *ret_version)
{
    memcpy(data, vector + segment->offset, segment->count * sizeof(float));
    *ret_slots = false;
    *ret_version = 0;
    return 0;
}

static int adapt_normalization(const struct chief *c, float *vector, struct err *e)
{
    AUTO(exec) *x = NULL;
    AUTO(loader) *l = NULL;
    AUTO(adapt) *a = adapt_new(c->config.model);
    struct ordinal_space plain = c->config.space;
    plain.shuffle = false;
    if (exec_new(c->config.model, ordinal_space_rows(&plain), 0, &x, e) < 0 ||
        loader_new(c->config.train, &plain, NULL, &l, e) < 0)
        return -1;
    report_info(c->config.report, "adapting Normalization to %lld training examples", (long long)plain.examples);
    for (int64_t i = 0; i < ordinal_space_batches(&plain); i++) {
        struct batch b;
        if (loader_get(l, i, &b, e) < 0)
            return -1;
        loader_hint(l, i + 1 < ordinal_space_batches(&plain) ? i + 1 : -1);
        adapt_add(a, x, vector, &b);
    }
    adapt_finish(a, vector);
    return 0;
}

/* Over the values that the initializers drew. */
static int load_initial_weights(const struct chief *c, float *vector, struct err *e)
{
    auto_free char *path = path_join(c->config.data_dir, c->config.job->fit.initial_weights);
    AUTO_FINI(strlist) lines = { 0 };
    AUTO_FINI(buf) report = BUF_INIT;
    if (weights_load(path, c->config.model, vector, &report, e) < 0)
        return err_wrap(e, "fit.initialWeights");
    strlist_split(&lines, report.data, '\n');
    for (size_t i = 0; i < lines.n; i++)
        report_info(c->config.report, "%s", lines.items[i]);
    return 0;
}

static int initial_values(const struct chief *c, float **ret, struct err *e)
{
    void *memory;
    if (mem_alloc(model_size(c->config.model) * sizeof(float), "initial values", &memory, e) < 0)
        return -1;
    auto_free float *vector = memory;
    model_init(c->config.model, c->config.space.seed, vector);
    if (model_wants_adapt(c->config.model) && adapt_normalization(c, vector, e) < 0)
        return -1;
    if (c->config.job->fit.initial_weights != NULL && load_initial_weights(c, vector, e) < 0)
        return -1;
    *ret = TAKE(vector);
    return 0;
}

/* ---- the first checkpoint ---- */

struct saved_metrics {
    struct node node;
    const struct report *report;
};

static void restore_metrics(void *user, struct epoch_metrics *t)
{
    const struct saved_metrics *saved = user;
    struct err e = { 0 };
    if (node_present(&saved->node) && epoch_metrics_from_json(t, &saved->node, &e) < 0)
        report_warning(saved->report, "metrics in the checkpoint were ignored: %s", e.msg);
}

int chief_find_checkpoint(const struct chief *c, bool warn, struct checkpoint **ret, struct err *e)
{
    auto_free char *warning = NULL;
    if (checkpoint_open_whole(c->checkpoints, ret, &warning, e) < 0)
        return -1;
    if (warning != NULL && warn)
        report_warning(c->config.report, "%s", warning);
    return 0;
}

int chief_open_checkpoint(const struct chief *c, bool warn, struct checkpoint **ret, struct rebase *ret_rebase,
                          struct err *e)
{
    const struct run_spec now = chief_run_spec(c);
    AUTO(checkpoint) *ck = NULL;
    if (chief_find_checkpoint(c, warn, &ck, e) < 0 || (ck != NULL && previous_run_check(&now, ck, ret_rebase, e) < 0))
        return -1;
    *ret = TAKE(ck);
    return 0;
}

/* Which batches are done, and what was recorded of them. The metrics of an epoch that a rebase leaves out are of no
 * use. */
static int restore_records(struct chief *c, const struct checkpoint *ck, const struct rebase *rebase,
                           struct ordinal_set *done, struct err *e)
{
    struct node state = checkpoint_training_state(ck);
    struct saved_metrics saved = { .node = node_get(&state, "tally"), .report = c->config.report };
    if (rebase->on) {
        done->low = done->high = rebase->low;
        c->recorded_epochs = rebase->epoch;
        return 0;
    }
    coordinator_metrics(c->coordinator, restore_metrics, &saved);
    return checkpoint_done(ck, c->config.layout, done, e) < 0 ||
                   node_i64_or(&state, "recordedEpochs", 0, 0, INT64_MAX, &c->recorded_epochs, e) < 0
               ? -1
               : 0;
}

/* The run continues with the arithmetic that it began with. */
static int chief_restore_arithmetic(const struct chief *c, const struct node *state, struct err *e)
{
    const char *text;
    if (!chief_deterministic(c))
        return 0;
    if (training_state_arithmetic(state, &text, e) < 0)
        return -1;
    coordinator_set_arithmetic(c->coordinator, text);
    return 0;
}

int chief_resume_from(struct chief *c, const struct checkpoint *ck, const struct rebase *rebase, struct err *e)
{
    struct node state = checkpoint_training_state(ck), history = node_get(&state, "history");
    AUTO_FINI(ordinal_set) done = ORDINAL_SET_INIT;
    c->generation = MAX(c->generation, training_state_generation(&state));
    c->saved_step = rebase->on ? -1 : checkpoint_step(ck); /* the new space is saved at once */
    c->saved_ms = clock_ms();
    atomic_store(&c->checkpoint_step, checkpoint_step(ck));
    if (chief_restore_arithmetic(c, &state, e) < 0 || restore_records(c, ck, rebase, &done, e) < 0)
        return -1;
    coordinator_observe(c->coordinator, &done, clock_ms());
    if (reporter_from_json(c->reporter, &history, c->recorded_epochs, e) < 0 ||
        chief_callbacks_restore(c, &state, rebase->on, e) < 0)
        return -1;
    if (rebase->on)
        report_info(c->config.report, "rebasing %s: step %lld, other batches from epoch %lld on", checkpoint_prefix(ck),
                    (long long)rebase->version, (long long)rebase->epoch + 1);
    else
        report_info(c->config.report, "restoring %s: step %lld, %lld of %lld batches done", checkpoint_prefix(ck),
                    (long long)checkpoint_step(ck), (long long)ordinal_set_count(&done), (long long)c->total);
    return 0;
}

/* ---- generations ---- */

/* The generation of this process; number 0 before its first one. */
static struct generation own_generation(const struct chief *c)
{
    return c->leads ? (struct generation){ .number = c->generation, .incarnation = c->config.incarnation }
                    : (struct generation){ 0 };
}

/* Of this job, or of a job with the same volume? */
int chief_superseded(struct chief *c, const struct err *why, struct err *e)
{
    const char *dir = c->config.output_dir;
    auto_free char *uid = NULL;
    if (output_dir_uid(dir, &uid, NULL) == 0 && uid[0] != '\0' && !str_eq(uid, c->config.job_uid))
        (void)err_set(&c->superseded, ERR_INPUT,
                      "another job (uid %s) has begun to write to %s: give each job an output volume of its own", uid,
                      dir);
    else
        (void)err_set(&c->superseded, ERR_FENCED, "%s: a newer chief is in charge", why->msg);
    return err_set(e, c->superseded.code, "%s", c->superseded.msg);
}

static int claim_uid(const struct chief *c, struct err *e)
{
    auto_free char *owner = NULL;
    if (output_dir_uid(c->config.output_dir, &owner, e) < 0)
        return -1;
    return str_eq(owner, c->config.job_uid) ? 0 : output_dir_set_uid(c->config.output_dir, c->config.job_uid, e);
}

/* The uid is written between claim and file, so that a chief which loses against another job finds its uid. */
static int claim_generation(struct chief *c, uint64_t above, struct generation *ret, struct err *e)
{
    const struct generation mine = own_generation(c);
    const char *dir = c->config.output_dir;
    if (generation_claim(dir, &mine, c->config.incarnation, above, c->config.report, ret, e) < 0)
        return -1;
    if (claim_uid(c, e) < 0) {
        generation_withdraw(dir, ret);
        return -1;
    }
    return generation_publish(dir, &mine, ret, e);
}

/* Once it is in charge: an earlier chief may still write files, but cannot publish them any more. */
static void remove_temporaries(const struct chief *c)
{
    size_t removed = output_dir_tidy(c->config.output_dir);
    if (removed > 0)
        report_info(c->config.report, "removed %zu temporary files that killed saves left in %s", removed,
                    c->config.output_dir);
}

int chief_raise_generation(struct chief *c, uint64_t seen, struct err *e)
{
    struct generation taken;
    struct err cause = { 0 };
    if (claim_generation(c, MAX(seen, c->generation), &taken, &cause) < 0)
        return err_is(&cause, ERR_FENCED) ? chief_superseded(c, &cause, e) : err_set(e, cause.code, "%s", cause.msg);
    c->generation = taken.number;
    if (!c->leads)
        remove_temporaries(c);
    c->leads = true;
    atomic_store(&c->shown_generation, taken.number);
    return 0;
}

/* A chief that waits for space may be replaced. */
static int await_space_in_charge(struct chief *c, const struct err *cause, struct err *e)
{
    struct err other = { 0 };
    if (chief_await_space(c, cause, e) < 0)
        return -1;
    if (c->leads && chief_confirm_file(c, false, &other) < 0 && c->superseded.code != ERR_NONE)
        return err_set(e, other.code, "%s", other.msg);
    return 0;
}

int chief_take_lead(struct chief *c, uint64_t seen, struct err *e)
{
    struct err cause = { 0 };
    bool first = !c->leads;
    while (chief_raise_generation(c, seen, &cause) < 0)
        if (await_space_in_charge(c, &cause, e) < 0)
            return -1;
    while (first && chief_write_job(c, &cause) < 0)
        if (await_space_in_charge(c, &cause, e) < 0)
            return -1;
    chief_wait_over(c, &c->storage_wait);
    return 0;
}

int chief_confirm_file(struct chief *c, bool complete, struct err *e)
{
    const char *dir = c->config.output_dir;
    const struct generation mine = own_generation(c);
    struct generation file;
    struct err cause = { 0 };
    if (generation_read(dir, &file, e) < 0)
        return -1;
    if (generation_eq(&file, &mine))
        return 0;
    if (file.number != 0)
        (void)err_set(
            &cause, ERR_FENCED,
            "generation %llu of another chief (incarnation %016llx) has begun; this chief has generation %llu",
            (unsigned long long)file.number, (unsigned long long)file.incarnation, (unsigned long long)c->generation);
    else if (!complete)
        (void)err_set(&cause, ERR_LOST, "the generation file of %s is gone, and not all %s answer", dir,
                      c->config.members ? "workers" : "ps");
    else if (generation_put_back(dir, &mine, &cause) == 0)
        return 0;
    return err_is(&cause, ERR_FENCED) ? chief_superseded(c, &cause, e) : err_set(e, cause.code, "%s", cause.msg);
}

static const char *chief_holder(const struct chief *c)
{
    return c->config.members ? "a worker" : "a ps";
}

int chief_confirm_ps_set(struct chief *c, const struct ps_set_view *view, struct err *e)
{
    struct err cause = { 0 };
    if (view->highest_generation > c->generation)
        (void)err_set(&cause, ERR_FENCED, "%s is at generation %llu, this chief at %llu", chief_holder(c),
                      (unsigned long long)view->highest_generation, (unsigned long long)c->generation);
    else if (view->other_chief != 0)
        (void)err_set(&cause, ERR_FENCED, "%s has generation %llu from another chief (incarnation %016llx)",
                      chief_holder(c), (unsigned long long)c->generation, (unsigned long long)view->other_chief);
    return cause.code == ERR_NONE ? 0 : chief_superseded(c, &cause, e);
}

/* ---- initialising the ps ---- */

/* The newest checkpoint, or initial values; opened and checked when the first ps turns out to need them. */
struct origin {
    struct chief *chief;
    bool open;
    struct checkpoint *checkpoint;
    struct rebase rebase;
    float *vector;
};

static void origin_fini(struct origin *o)
{
    checkpoint_free(o->checkpoint);
    free(o->vector);
}
DEFINE_AUTO_FINI(origin, origin_fini);

static int origin_open(struct origin *o, struct err *e)
{
    if (chief_open_checkpoint(o->chief, o->chief->began, &o->checkpoint, &o->rebase, e) < 0)
        return -1;
    if (o->checkpoint == NULL && initial_values(o->chief, &o->vector, e) < 0)
        return -1;
    o->open = true;
    return 0;
}

static int origin_segment(void *user, const struct segment_spec *segment, float *data, bool *ret_slots,
                          int64_t *ret_version, struct ordinal_set *ret_applied, struct err *e)
{
    struct origin *o = user;
    if (!o->open && origin_open(o, e) < 0)
        return -1;
    if (o->checkpoint == NULL)
        return initial_segment(o->vector, segment, data, ret_slots, ret_version);
    struct checkpoint_source from = { .checkpoint = o->checkpoint, .model = o->chief->config.model };
    if (checkpoint_segment(&from, segment, data, ret_slots, ret_version, ret_applied, e) < 0)
        return -1;
    if (o->rebase.on) {
        ordinal_set_fini(ret_applied);
        *ret_applied = (struct ordinal_set){ .low = o->rebase.low, .high = o->rebase.low };
        *ret_version = o->rebase.version;
    }
    return 0;
}

static int initialise_once(struct chief *c, struct origin *from, struct err *e)
{
    struct segment_source source = { .read = origin_segment, .user = from };
    int restored = 0;
    if (ps_set_initialise(c->ps_set, c->generation, &source, &restored, e) < 0 || chief_confirm_file(c, true, e) < 0)
        return -1;
    atomic_fetch_add(&c->restored, (uint64_t)restored);
    bool resumed = restored > 0 && from->checkpoint != NULL,
         again = resumed && c->began; /* the first time it was reported already */
    if (!c->began)
        c->begin_step = resumed ? (from->rebase.on ? from->rebase.version : checkpoint_step(from->checkpoint)) + 1
                        : restored > 0 ? 0
                                       : -1;
    if (again && chief_synchronous(c) && atomic_load(&c->step) > checkpoint_step(from->checkpoint))
        report_info(c->config.report, "step %lld is trained again from step %lld on", (long long)atomic_load(&c->step),
                    (long long)checkpoint_step(from->checkpoint));
    if (restored > 0 && c->config.members)
        report_info(c->config.report, "one worker %s%s%s, and the others take the state from it",
                    resumed ? "restored" : "initialised", again ? " from " : "",
                    again ? checkpoint_prefix(from->checkpoint) : "");
    else if (restored > 0 && !c->config.local)
        report_info(c->config.report, "%d ps %s%s%s", restored, resumed ? "restored" : "initialised",
                    again ? " from " : "", again ? checkpoint_prefix(from->checkpoint) : "");
    if (restored > 0) {
        chief_end_again(c);
        chief_decide_again(c);
    }
    c->began = true;
    return 0;
}

bool chief_worth_waiting(const struct err *e)
{
    return err_is(e, ERR_LOST) || err_is(e, ERR_TIMEOUT) || err_is(e, ERR_NOT_READY) || err_is(e, ERR_PENDING) ||
           err_is(e, ERR_STALE);
}

/* A ps refused this chief. The file decides: if it names another chief, that one is in charge. If it names this one,
 * the ps has its generation from a volume that is gone; then this chief acquires a higher one, once, before it has
 * led. */
static int handle_refusal(struct chief *c, const struct err *cause, struct err *e)
{
    AUTO_FINI(ps_set_view) ps_set = { 0 };
    if (chief_confirm_file(c, false, e) < 0)
        return -1;
    if (c->began || c->raised_again)
        return err_set(e, cause->code, "%s", cause->msg);
    c->raised_again = true;
    ps_set_poll(c->ps_set, SEEN_MS, &ps_set);
    return chief_take_lead(c, ps_set.highest_generation, e);
}

static void announce_starting(const struct chief *c)
{
    coordinator_set(c->coordinator, JOB_STARTING, c->generation,
                    c->config.members ? "the chief to begin with the workers that have registered"
                                      : "the chief to initialise the parameter servers");
}

/* Reports what it waits for, and checks whether another chief is in charge. */
static int wait_for_ps(struct chief *c, struct wait_state *w, int64_t *confirmed_ms, const struct err *cause,
                       struct err *e)
{
    int64_t now = clock_ms();
    char message[240];
    if (!chief_worth_waiting(cause) || (double)wait_ms(w, now) > c->config.job->limits.max_wait_seconds * 1000.0)
        return err_set(e, cause->code, "%s", cause->msg);
    if (stop_count() > 0)
        return err_set(e, ERR_STOPPED, "stopped while waiting for the %s",
                       c->config.members ? "workers" : "parameter servers");
    str_fmt(message, sizeof(message), "%s", cause->msg);
    reporter_waits(c->reporter, w->since_ms, message);
    wait_report(w, now, c->config.report, message);
    if (now - *confirmed_ms >= CONFIRM_MS) {
        struct err other = { 0 };
        *confirmed_ms = now;
        if (chief_confirm_file(c, false, &other) < 0 && c->superseded.code != ERR_NONE)
            return err_set(e, other.code, "%s", other.msg);
    }
    coordinator_wait(c->coordinator, now + RETRY_MS);
    return 0;
}

/* The model of the checkpoints, for an export while the job trains. It is written again at the end; storage that fails
 * now is waited for with the first checkpoint. */
static void write_model(const struct chief *c)
{
    json_auto_t *model = model_to_json(c->config.model);
    struct err e = { 0 };
    if (output_dir_json(c->config.output_dir, "model.json", model, &e) < 0)
        report_warning(c->config.report, "model.json: %s", e.msg);
}

int chief_initialise_ps(struct chief *c, uint64_t seen, struct err *e)
{
    int64_t confirmed_ms = clock_ms();
    struct wait_state wait = { 0 };
    struct err cause = { 0 };
    AUTO_FINI(origin) from = { .chief = c };
    if (chief_take_lead(c, seen, e) < 0)
        return -1;
    announce_starting(c);
    wait_begin(&wait, confirmed_ms, WAIT_EXPLAIN_MS);
    while (initialise_once(c, &from, &cause) < 0) {
        bool fenced = err_is(&cause, ERR_FENCED);
        if (err_is(&cause, ERR_STALE) && chief_take_lead(c, 0, e) < 0)
            return -1;
        if ((fenced ? handle_refusal(c, &cause, e) : wait_for_ps(c, &wait, &confirmed_ms, &cause, e)) < 0)
            return -1;
        if (fenced)
            announce_starting(c);
    }
    write_model(c);
    coordinator_set(c->coordinator, JOB_TRAINING, c->generation, "");
    reporter_state(c->reporter, "training", "");
    return 0;
}
