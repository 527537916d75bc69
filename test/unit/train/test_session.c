#include "shard/job_fixture.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "coord/coordinator.h"
#include "params/params_internal.h"
#include "params/ps_set.h"
#include "train/session.h"

enum { WAIT_MS = 10000 };

/* Single machine without a chief: the test brings the shard into service and leases all batches. */
struct world {
    struct job_fixture job;
    struct shard *shard;
    struct params *params, *chief;
    struct placement *placement;
    struct coordinator *coordinator;
    struct coordinator_client *coord;
    struct chief_client *member;
    struct session_stats stats;
    float value;
    int64_t max_wait_ms; /* 0: WAIT_MS */
    int64_t group_size;  /* 0: asynchronous */
    bool overlap;
    bool asynchronous; /* the strategy ParameterServer, though the shard is in this process */
    bool parses;       /* the end of the job waits for a thread of the loader */
};

static int constant(void *user, const struct segment_spec *s, float *data, bool *ret_slots, int64_t *ret_version,
                    struct ordinal_set *ret_applied, struct err *e)
{
    (void)ret_applied, (void)e;
    for (size_t i = 0; i < s->count; i++)
        data[i] = *(float *)user;
    *ret_slots = false;
    *ret_version = 0;
    return 0;
}

static void serve(struct world *w)
{
    struct err e = { 0 };
    int restored;
    AUTO(ps_set) *f = ps_set_new(w->chief, w->job.layout, w->placement, model_optimizer(w->job.model), JOB_UID, NULL);
    ck_ok_e(ps_set_initialise(f, 1, &(struct segment_source){ .read = constant, .user = &w->value }, &restored, &e));
}

static void world_open(struct world *w, const char *optimizer, int epochs)
{
    struct err e = { 0 };
    struct params_identity id = { .job_uid = JOB_UID, .sender = "local", .incarnation = 1 };
    job_open(&w->job, optimizer, "epochs: 1");
    w->shard = shard_new(5);
    w->params = params_new_local(w->job.layout, w->shard, &id);
    w->chief = params_new_local(w->job.layout, w->shard, &id);
    w->placement = placement_new(w->job.layout, PLACEMENT_GREEDY, 1);
    if (w->group_size > 0) {
        struct groups groups = groups_of(&w->job.space, w->group_size);
        params_set_groups(w->chief, &groups);
    }
    serve(w);
    w->coordinator = coordinator_new(&(struct coordinator_config){ .model = w->job.model,
                                                                   .job_uid = JOB_UID,
                                                                   .incarnation = 1,
                                                                   .space = w->job.space,
                                                                   .layout_hash = w->job.layout->hash,
                                                                   .ps_count = 1,
                                                                   .batches_per_epoch = JOB_BATCHES,
                                                                   .total = epochs * JOB_BATCHES,
                                                                   .lease_ms = 10000,
                                                                   .heartbeat_ms = 5000 });
    coordinator_set(w->coordinator, JOB_TRAINING, 1, "");
    coordinator_allow_below(w->coordinator, INT64_MAX);
    w->coord = coordinator_client_new_local(w->coordinator);
    struct chief_client_config config = {
        .coordinator = w->coord,
        .width = metrics_width(w->job.model),
        .max_wait_ms = WAIT_MS,
        .identity = { .sender = { .job_uid = JOB_UID, .name = "local", .role = ROLE_WORKER, .incarnation = 1 },
                      .space = w->job.space,
                      .shuffle_version = SHUFFLE_VERSION,
                      .layout_hash = w->job.layout->hash,
                      .ps_count = 1 }
    };
    ck_ok_e(chief_client_start(&config, &w->member, &e));
}

static void world_close(struct world *w)
{
    chief_client_free(w->member);
    coordinator_client_free(w->coord);
    coordinator_free(w->coordinator);
    params_free(w->chief);
    params_free(w->params);
    shard_free(w->shard);
    placement_free(w->placement);
    job_close(&w->job);
}

static int run(struct world *w, struct err *e)
{
    struct session_config config = { .model = w->job.model,
                                     .dataset = w->job.train,
                                     .space = &w->job.space,
                                     .params = w->params,
                                     .chief = w->member,
                                     .strategy =
                                         w->asynchronous || w->overlap ? STRATEGY_PARAMETER_SERVER : STRATEGY_SINGLE,
                                     .overlap = w->overlap,
                                     .max_wait_ms = w->max_wait_ms != 0 ? w->max_wait_ms : WAIT_MS };
    return session_run(&config, &w->stats, e);
}

/* Whether this process has a thread of that name. */
static bool has_thread(const char *name)
{
    bool found = false;
    DIR *d = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *t = readdir(d); t != NULL && !found; t = readdir(d)) {
        AUTO_FINI(buf) text = BUF_INIT;
        auto_free char *path = xasprintf("/proc/self/task/%s/comm", t->d_name);
        found = file_read(path, 64, &text, NULL) == 0 && strncmp(text.data, name, strlen(name)) == 0;
    }
    closedir(d);
    return found;
}

/* The chief's part: polls what was applied, and reports when everything is. */
static void watch(void *user)
{
    struct world *w = user;
    struct coordinator_view v = { 0 };
    while (!v.finished && !v.diverged && v.members >= 0) {
        AUTO_FINI(shard_info) info = { 0 };
        coordinator_wait(w->coordinator, clock_ms() + 1);
        int64_t begun = clock_ms();
        shard_describe(w->shard, &info);
        coordinator_observe(w->coordinator, &info.applied, begun);
        coordinator_view(w->coordinator, &v);
    }
    if (w->parses) /* the thread sets its name when it runs */
        ck_wait(has_thread("loader"));
    coordinator_set(w->coordinator, v.diverged ? JOB_STOPPING : JOB_FINISHED, 1, "");
}

static int run_watched(struct world *w, struct err *e)
{
    struct thread t = { 0 };
    ck_assert_int_eq(thread_start(&t, "chief", watch, w, e), 0);
    int result = run(w, e);
    thread_join(&t);
    return result;
}

/* The times of the steps on /metrics are those that the chief has of this worker. */
static void assert_times_are_those_of_the_chief(struct world *w)
{
    struct coordinator_view v;
    coordinator_view(w->coordinator, &v);
    const uint64_t want[ACTIVITY_COUNT] = { [ACTIVITY_COMPUTE] = v.compute_ns,
                                            [ACTIVITY_NETWORK] = v.network_ns,
                                            [ACTIVITY_DATA] = v.data_ns,
                                            [ACTIVITY_WAIT] = v.wait_ns };
    ck_assert_uint_gt(v.compute_ns, 0);
    for (int i = 0; i < ACTIVITY_COUNT; i++)
        ck_assert_uint_eq(atomic_load(&w->stats.spent_ns[i]), want[i]);
}

/* ---- the order of events ---- */

/* The operations of a params object, and a log of what the session did with them: C begins to compute a batch, P starts
 * its push, F finishes the push. */
static struct {
    const struct params_ops *real;
    struct params_ops ops;
    char events[1000];
    size_t n;
} spy;

static void note(char what)
{
    ck_assert_uint_lt(spy.n + 1, sizeof(spy.events));
    spy.events[spy.n++] = what;
}

static void spy_mark(struct params *p)
{
    note('C');
    spy.real->mark(p);
}

static int spy_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                          struct err *e)
{
    note('P');
    return spy.real->push_start(p, ordinal, grads, direct, deadline_ms, e);
}

static int spy_push_finish(struct params *p, struct push_result *ret, struct err *e)
{
    note('F');
    return spy.real->push_finish(p, ret, e);
}

static const char *events_of_a_run(bool asynchronous, bool overlap)
{
    struct world w = { .asynchronous = asynchronous, .overlap = overlap };
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, 2);
    memset(&spy, 0, sizeof(spy));
    spy.real = w.params->ops;
    spy.ops = *spy.real;
    spy.ops.mark = spy_mark;
    spy.ops.push_start = spy_push_start;
    spy.ops.push_finish = spy_push_finish;
    w.params->ops = &spy.ops;
    ck_ok_e(run_watched(&w, &e));
    w.params->ops = spy.real;
    want_cells(&w.job, params_vector(w.params), 2 * JOB_BATCHES);
    world_close(&w);
    return spy.events;
}

START_TEST(no_batch_computes_while_an_earlier_one_is_unapplied)
{
    const char *events = events_of_a_run(_i, false);
    ck_assert_uint_eq(strlen(events), 3 * 2 * JOB_BATCHES);
    for (size_t i = 0; events[i] != 0; i++)
        ck_assert_msg(events[i] == "CPF"[i % 3], "%s", events);
}
END_TEST

START_TEST(overlap_computes_one_batch_ahead)
{
    const char *events = events_of_a_run(true, true);
    ck_assert_msg(strncmp(events, "CPCF", 4) == 0, "%s", events);
    int unapplied = 0, most = 0;
    for (size_t i = 0; events[i] != 0; i++) {
        unapplied += (events[i] == 'C') - (events[i] == 'F');
        most = MAX(most, unapplied);
    }
    ck_assert_int_eq(unapplied, 0);
    ck_assert_int_eq(most, 2);
}
END_TEST

START_TEST(every_batch_of_every_epoch_once)
{
    struct world w = { 0 };
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, 5);
    ck_ok_e(run_watched(&w, &e));
    want_cells(&w.job, params_vector(w.params), 5 * JOB_BATCHES);
    ck_assert_int_eq(atomic_load(&w.stats.steps), 5 * JOB_BATCHES);
    ck_assert_int_eq(atomic_load(&w.stats.examples), 5 * JOB_EXAMPLES);
    assert_times_are_those_of_the_chief(&w);
    world_close(&w);
}
END_TEST

/* The session announces the next batch, so that records are parsed while it computes. */
START_TEST(csv_is_parsed_while_the_session_computes)
{
    struct world w = { 0 };
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, 5);
    w.parses = true;
    ck_assert(!has_thread("loader"));
    ck_ok_e(run_watched(&w, &e));
    ck_assert(!has_thread("loader"));
    want_cells(&w.job, params_vector(w.params), 5 * JOB_BATCHES);
    world_close(&w);
}
END_TEST

START_TEST(a_damaged_record_ends_it_with_its_place)
{
    struct world w = { 0 };
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, 1);
    auto_free char *path = path_join(w.job.dir, "train.csv");
    AUTO_FINI(buf) text = BUF_INIT;
    ck_ok_e(file_read(path, 1 << 20, &text, &e));
    FILE *f = fopen(path, "r+"); /* in place, after it was opened and validated */
    ck_assert_ptr_nonnull(f);
    text.data[text.len - 2] = 'x';
    ck_assert_uint_eq(fwrite(text.data, 1, text.len, f), text.len);
    ck_assert_int_eq(fclose(f), 0);
    ck_fails(run(&w, &e), ERR_INPUT, "train.csv:41");
    world_close(&w);
}
END_TEST

START_TEST(a_loss_that_is_no_number_never_reaches_the_parameters)
{
    struct world w = { .value = 1e30f }; /* the square of the loss overflows */
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, 1);
    ck_fails(run_watched(&w, &e), ERR_DIVERGED, "not finite");
    want_cells(&w.job, params_vector(w.params), 1e30f);
    world_close(&w);
}
END_TEST

START_TEST(a_shard_that_finished_tells_of_the_end)
{
    struct world w = { 0 };
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, 1);
    ck_wait(chief_client_has_work(w.member));
    coordinator_set(w.coordinator, JOB_FINISHED, 1,
                    ""); /* other workers computed these batches, which this one has not seen yet */
    ck_ok_e(params_finish(w.chief, 0, 10, WAIT_MS, &e));
    ck_fails(run(&w, &e), ERR_STOPPED, "the job has finished");
    ck_assert(chief_client_finished(w.member));
    world_close(&w);
}
END_TEST

/* A pull that fails again and again, and makes progress meanwhile or does not. */
static struct slow_pull {
    struct params_ops ops;
    const struct params_ops *real;
    int failures;
    bool moves;
} slow;

static int slow_pull(struct params *p, bool rest, int64_t deadline_ms, struct err *e)
{
    if (slow.failures-- <= 0)
        return slow.real->pull(p, rest, deadline_ms, e);
    p->moved += slow.moves;
    return err_set(e, ERR_TIMEOUT, "ps-0 is slow");
}

START_TEST(patience_is_with_what_does_not_move)
{
    struct world w = { .value = 0 };
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, 1);
    slow = (struct slow_pull){ .ops = *w.params->ops, .real = w.params->ops, .failures = 5, .moves = _i };
    slow.ops.pull = slow_pull;
    w.params->ops = &slow.ops;
    w.max_wait_ms = 1; /* shorter than the pause after a failure: two of them without progress are too long */
    if (_i) {
        ck_ok_e(run_watched(&w, &e));
        want_cells(&w.job, params_vector(w.params), JOB_BATCHES);
    } else {
        ck_assert_int_eq(run(&w, &e), -1);
        ck_assert_msg(e.code == ERR_TIMEOUT && slow.failures > 0, "%s", e.msg);
    }
    world_close(&w);
}
END_TEST

/* Two threads may get the same ordinal: the chief leases it again when this process was held. */
START_TEST(mirrored_begins_what_no_other_thread_has_claimed)
{
    struct world w = { .group_size = 4 };
    struct err e = { 0 };
    struct train_step *step;
    AUTO(claims) *claims = claims_new(4);
    world_open(&w, COUNTING_OPTIMIZER, 1);
    struct strategy_config config = { .model = w.job.model,
                                      .space = &w.job.space,
                                      .group_size = w.group_size,
                                      .params = w.params,
                                      .chief = w.member,
                                      .max_wait_ms = WAIT_MS,
                                      .claims = claims };
    struct train_strategy *s = strategy_new(STRATEGY_MIRRORED, &config);
    ck_ok_e(s->ops->open(s, &e));
    ck_assert(claims_take(claims, 0, 1)); /* by another thread */
    ck_assert_int_eq(s->ops->begin_step(s, 0, &step, &e), 0);
    ck_assert_int_eq(step->ordinal, 0);
    ck_assert_int_eq(s->ops->begin_step(s, 1, &step, &e), STEP_OVER);
    ck_assert(!claims_take(claims, 0, 0)); /* it has claimed what it began */
    s->ops->close(s);
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("session");
    TCase *t = tcase_create("session");
    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, no_batch_computes_while_an_earlier_one_is_unapplied, 0, 2);
    tcase_add_test(t, overlap_computes_one_batch_ahead);
    tcase_add_test(t, every_batch_of_every_epoch_once);
    tcase_add_test(t, csv_is_parsed_while_the_session_computes);
    tcase_add_test(t, a_damaged_record_ends_it_with_its_place);
    tcase_add_test(t, a_loss_that_is_no_number_never_reaches_the_parameters);
    tcase_add_test(t, a_shard_that_finished_tells_of_the_end);
    tcase_add_loop_test(t, patience_is_with_what_does_not_move, 0, 2);
    tcase_add_test(t, mirrored_begins_what_no_other_thread_has_claimed);
    suite_add_tcase(s, t);
    return s;
}
