#include "small_model.h"

#include "base/clock.h"
#include "coord/chief_client.h"
#include "coord/coordinator.h"
#include "rpc/rpc.h"

enum { TOTAL = 200, WAIT_MS = 10000 };

/* A chief's coordinator and a worker's client in one process. The test plays the training loop and the chief. */
struct world {
    struct model *model;
    struct coordinator *coordinator;
    struct coordinator_client *coord;
    struct chief_client *member;
    double *sums;
};

/* group_size 0: asynchronous */
static struct coordinator *new_groups(const struct model *m, uint64_t incarnation, int64_t batch_size,
                                      int64_t group_size)
{
    const struct groups groups = { .size = group_size, .batches = 100, .examples = 64, .rest = 64 };
    struct coordinator *c = coordinator_new(&(struct coordinator_config){
        .model = m,
        .job_uid = "uid-1",
        .incarnation = incarnation,
        .layout_hash = 5,
        .ps_count = 1,
        .batches_per_epoch = 100,
        .total = TOTAL,
        .lease_ms = 10000,
        .heartbeat_ms = 20,
        .groups = group_size > 0 ? groups : (struct groups){ 0 },
        .silence_ms = 10000,
        .space = { .fingerprint = 9, .seed = 1, .examples = 640, .batch_size = batch_size, .shuffle = true } });
    coordinator_allow_below(c, TOTAL);
    return c;
}

static struct coordinator *new_coordinator(const struct model *m, uint64_t incarnation, int64_t batch_size)
{
    return new_groups(m, incarnation, batch_size, 0);
}

static struct chief_client_config config_of(const struct world *w)
{
    return (struct chief_client_config){
        .coordinator = w->coord,
        .width = metrics_width(w->model),
        .max_wait_ms = WAIT_MS,
        .identity = { .sender = { .job_uid = "", .name = "worker-0", .role = ROLE_WORKER, .incarnation = 11 },
                      .layout_hash = 5,
                      .ps_count = 1,
                      .shuffle_version = SHUFFLE_VERSION,
                      .space = { .fingerprint = 9, .seed = 1, .examples = 640, .batch_size = 64, .shuffle = true } }
    };
}

static void coordinator_open(struct world *w, int64_t batch_size, int64_t group_size)
{
    *w = (struct world){ .model = small_model(SMALL_DENSE, SMALL_COMPILE) };
    w->sums = xcalloc(metrics_width(w->model), sizeof(*w->sums));
    w->coordinator = new_groups(w->model, 1, batch_size, group_size);
    w->coord = coordinator_client_new_local(w->coordinator);
    coordinator_set(w->coordinator, JOB_TRAINING, 3, "");
}

static void client_open(struct world *w)
{
    struct err e = { 0 };
    struct chief_client_config config = config_of(w);
    ck_ok_e(chief_client_start(&config, &w->member, &e));
}

static void world_open(struct world *w, int64_t batch_size)
{
    coordinator_open(w, batch_size, 0);
    client_open(w);
}

static void world_close(struct world *w)
{
    chief_client_free(w->member);
    coordinator_client_free(w->coord);
    coordinator_free(w->coordinator);
    model_free(w->model);
    free(w->sums);
}

static int64_t next(struct world *w)
{
    struct err e = { 0 };
    enum chief_client_next what;
    int64_t ordinal = -1;
    ck_ok_e(chief_client_next(w->member, &what, &ordinal, &e));
    ck_assert_int_eq((int)what, CHIEF_CLIENT_ORDINAL);
    return ordinal;
}

static void done(struct world *w, int64_t ordinal)
{
    chief_client_done(w->member, &(struct chief_client_step){ .ordinal = ordinal, .sums = w->sums });
}

static struct coordinator_view view_of(const struct world *w)
{
    struct coordinator_view v;
    coordinator_view(w->coordinator, &v);
    return v;
}
static bool has_steps(const struct world *w, int64_t wanted)
{
    return (int64_t)view_of(w).steps == wanted;
}
static bool has_diverged(const struct world *w, int64_t wanted)
{
    struct coordinator_view v = view_of(w);
    return v.diverged && v.diverged_ordinal == wanted;
}
static bool has_members(const struct world *w, int wanted)
{
    return view_of(w).members == wanted;
}

static void count_epoch(void *user, struct epoch_metrics *t)
{
    double metrics[8];
    *(int64_t *)user = epoch_metrics_of(t, 0, metrics);
}

START_TEST(takes_every_batch_once_in_order_and_reports_it_once)
{
    struct world w;
    int64_t reported = 0;
    world_open(&w, 64);
    int64_t seen_ahead = 0;
    for (int64_t i = 0; i < 100; i++) {
        ck_assert_int_eq(next(&w), i);
        int64_t ahead = chief_client_peek(w.member); /* -1 while no further batch is leased */
        ck_assert_int_eq(ahead, ahead < 0 ? -1 : i + 1);
        seen_ahead += ahead >= 0;
        done(&w, i);
    }
    ck_assert_int_gt(seen_ahead, 0);
    ck_wait(has_steps(&w, 100));
    coordinator_metrics(w.coordinator, count_epoch, &reported);
    ck_assert_int_eq(reported, 100);
    world_close(&w);
}
END_TEST

START_TEST(the_last_report_comes_with_leaving)
{
    struct world w;
    world_open(&w, 64);
    ck_assert_int_eq(next(&w), 0);
    ck_assert_int_eq(next(&w), 1);
    done(&w, 0);
    chief_client_leave(w.member, "test");
    ck_wait(has_steps(&w, 1));
    ck_wait(has_members(&w, 0));
    world_close(&w);
}
END_TEST

START_TEST(learns_the_job_and_its_generation)
{
    struct world w;
    struct err e = { 0 };
    uint64_t generation;
    world_open(&w, 64);
    ck_ok_e(chief_client_generation(w.member, 0, &generation, &e));
    ck_assert_uint_eq(generation, 3);
    ck_assert_str_eq(chief_client_job_uid(w.member), "uid-1");
    coordinator_set(w.coordinator, JOB_TRAINING, 4, "");
    ck_ok_e(chief_client_generation(w.member, 3, &generation, &e)); /* a ps refused 3 */
    ck_assert_uint_eq(generation, 4);
    world_close(&w);
}
END_TEST

START_TEST(a_refusal_is_the_end_and_says_why)
{
    struct world w;
    struct err e = { 0 };
    enum chief_client_next what;
    int64_t ordinal;
    world_open(&w, 32); /* the chief's batch size */
    ck_assert_int_eq(chief_client_next(w.member, &what, &ordinal, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_assert_msg(strstr(e.msg, "fit.batchSize") != NULL, "%s", e.msg);
    world_close(&w);
}
END_TEST

START_TEST(divergence_reaches_the_chief)
{
    struct world w;
    struct err e = { 0 };
    enum chief_client_next what;
    world_open(&w, 64);
    int64_t ordinal = next(&w);
    chief_client_diverged(w.member, ordinal);
    ck_wait(has_diverged(&w, ordinal));
    ck_ok_e(chief_client_next(w.member, &what, &ordinal, &e));
    ck_assert_int_eq((int)what, CHIEF_CLIENT_STOPPING);
    world_close(&w);
}
END_TEST

START_TEST(hears_of_the_end)
{
    struct world w;
    struct err e = { 0 };
    enum chief_client_next what = CHIEF_CLIENT_ORDINAL;
    int64_t ordinal;
    world_open(&w, 64);
    done(&w, next(&w));
    coordinator_set(w.coordinator, JOB_FINISHED, 3, "");
    while (what == CHIEF_CLIENT_ORDINAL)
        ck_ok_e(chief_client_next(w.member, &what, &ordinal, &e));
    ck_assert_int_eq((int)what, CHIEF_CLIENT_FINISHED);
    ck_assert(chief_client_finished(w.member));
    world_close(&w);
}
END_TEST

/* ---- synchronous training: a batch whose step has not come ---- */

/* The requests of another worker, whose thread is the test. */
static struct coordinator_sender other_sender(void)
{
    return (
        struct coordinator_sender){ .job_uid = "uid-1", .name = "worker-1", .role = ROLE_WORKER, .incarnation = 21 };
}

static void other_enters(struct world *w)
{
    struct register_request q = config_of(w).identity;
    struct coordinator_reply reply;
    struct err e = { 0 };
    q.sender = other_sender();
    ck_ok_e(coordinator_register(w->coordinator, &q, clock_ms(), &reply, &e));
}

static struct coordinator_reply other_leases(struct world *w, int64_t want)
{
    const struct lease_request q = { .sender = other_sender(), .want = want };
    struct coordinator_reply reply;
    struct err e = { 0 };
    ck_ok_e(coordinator_lease(w->coordinator, &q, clock_ms(), &reply, &e));
    return reply;
}

static void other_leaves(struct world *w)
{
    const struct leave_request q = { .sender = other_sender() };
    struct coordinator_reply reply;
    struct err e = { 0 };
    ck_ok_e(coordinator_leave(w->coordinator, &q, clock_ms(), &reply, &e));
}

/* It would hold all batches of the job in the end, and no other worker would get one. */
START_TEST(a_worker_that_waits_with_the_first_batch_takes_no_more)
{
    struct world w;
    coordinator_open(&w, 64, 4);
    client_open(&w);
    for (int i = 0; i < 2 * TOTAL / 4; i++) {
        ck_assert_int_eq(next(&w), 0);
        chief_client_defer(w.member, 0, 0);
    }
    ck_assert_int_eq(next(&w), 0);
    other_enters(&w);
    struct coordinator_reply r = other_leases(&w, 4);
    ck_assert_msg(r.count > 0 && r.first < TOTAL / 2, "%lld batches from %lld on", (long long)r.count,
                  (long long)r.first);
    world_close(&w);
}
END_TEST

/* The batches that it waits for are free, because their worker is gone. */
START_TEST(a_worker_that_waits_computes_the_lower_batches_first)
{
    struct world w;
    coordinator_open(&w, 64, 4);
    other_enters(&w);
    ck_assert_int_eq(other_leases(&w, 4).first, 0);
    client_open(&w);
    int64_t at = next(&w);
    ck_assert_int_eq(at, 4);
    chief_client_defer(w.member, at, at);
    ck_assert_int_eq(next(&w), 4); /* all below are computed by another worker */
    chief_client_defer(w.member, 4, 4);
    ck_assert_int_eq(next(&w), 4);
    other_leaves(&w);
    chief_client_defer(w.member, 4, 4);
    for (int64_t i = 0; i < 6; i++) { /* its share of the second group is 4 and 5 */
        ck_assert_int_eq(next(&w), i);
        done(&w, i);
    }
    ck_wait(has_steps(&w, 6));
    world_close(&w);
}
END_TEST

/* Layers are synchronized: it waits for all batches of the group. The other worker has those above its own ones, and
 * leaves. */
START_TEST(a_worker_that_waits_for_its_group_gets_what_is_above_its_own_batches)
{
    struct world w;
    coordinator_open(&w, 64, 4);
    other_enters(&w);
    client_open(&w);
    ck_assert_int_eq(next(&w), 0);
    ck_assert_int_eq(next(&w), 1); /* its share of the first group is 0 and 1 */
    ck_assert_int_eq(other_leases(&w, 4).first, 2);
    chief_client_defer(w.member, 1, 4);
    chief_client_defer(w.member, 0, 4);
    for (int64_t i = 0; i < 2; i++)
        ck_assert_int_eq(next(&w), i);
    other_leaves(&w);
    chief_client_defer(w.member, 1, 4);
    chief_client_defer(w.member, 0, 4);
    for (int64_t i = 0; i < 4; i++) {
        ck_assert_int_eq(next(&w), i);
        done(&w, i);
    }
    ck_wait(has_steps(&w, 4));
    world_close(&w);
}
END_TEST

/* Another worker has computed it: it is not reported, and the next one follows. */
START_TEST(a_batch_that_is_dropped_is_not_reported)
{
    struct world w;
    int64_t reported = 0;
    coordinator_open(&w, 64, 4);
    client_open(&w);
    ck_assert_int_eq(next(&w), 0);
    ck_assert_int_eq(chief_client_group_size(w.member), 4);
    chief_client_drop(w.member, 0);
    for (int64_t i = 1; i < 10; i++) { /* no more may be taken at a time than a few: 0 is not held any more */
        ck_assert_int_eq(next(&w), i);
        done(&w, i);
    }
    ck_wait(has_steps(&w, 9));
    coordinator_metrics(w.coordinator, count_epoch, &reported);
    ck_assert_int_eq(reported, 9);
    world_close(&w);
}
END_TEST

/* Training goes on from an earlier step: what was leased for the later one is given up. */
START_TEST(leases_end_with_the_generation)
{
    struct world w;
    struct err e = { 0 };
    uint64_t generation = 0;
    coordinator_open(&w, 64, 4);
    other_enters(&w);
    ck_assert_int_eq(other_leases(&w, 4).first, 0);
    client_open(&w);
    ck_assert_int_eq(next(&w), 4);
    other_leaves(&w);
    coordinator_set(w.coordinator, JOB_TRAINING, 4, "");
    ck_ok_e(chief_client_generation(w.member, 3, &generation, &e));
    ck_assert_uint_eq(generation, 4);
    chief_client_drop(w.member, 4);
    ck_assert_int_eq(next(&w), 0);
    world_close(&w);
}
END_TEST

/* ---- a chief that is replaced ---- */

START_TEST(a_new_chief_lends_again_what_is_held)
{
    struct world w;
    struct coordinator_reply reply;
    struct err e = { 0 };
    world_open(&w, 64);
    for (int64_t i = 0; i < 3; i++)
        ck_assert_int_eq(next(&w), i);        /* in hand, not done */
    chief_client_leave(w.member, "not told"); /* the thread has ended: from here the test sends the worker's requests */

    struct coordinator *second = new_coordinator(w.model, 2, 64);
    struct register_request q = config_of(&w).identity;
    static const int64_t held[] = { 0, 3, 5, 9 };
    q.held = (struct ordinal_ranges){ .r = held, .n = 4 };
    coordinator_set(second, JOB_STARTING, 4, "");
    ck_ok_e(coordinator_register(second, &q, 0, &reply, &e));
    coordinator_set(second, JOB_TRAINING, 4, "");
    struct lease_request lease = { .sender = q.sender, .held = q.held, .want = 4 };
    lease.sender.job_uid = "uid-1";
    ck_ok_e(coordinator_lease(second, &lease, 1, &reply, &e));
    ck_assert_int_eq(reply.first, 3); /* not 0: it has that */
    ck_assert_int_eq(reply.count, 2);
    coordinator_free(second);
    world_close(&w);
}
END_TEST

START_TEST(a_chief_that_forgot_us_is_told_who_we_are)
{
    struct world w;
    struct leave_request leave = { .sender = { .job_uid = "uid-1", .name = "worker-0", .incarnation = 11 } };
    struct coordinator_reply reply;
    struct err e = { 0 };
    world_open(&w, 64);
    ck_assert_int_eq(next(&w), 0);
    ck_ok_e(coordinator_leave(w.coordinator, &leave, clock_ms(), &reply, &e)); /* as if a lease had expired */
    ck_wait(has_members(&w, 1));
    done(&w, 0);
    for (int64_t i = 1; i < 20; i++) {
        ck_assert_int_eq(next(&w), i);
        done(&w, i);
    }
    world_close(&w);
}
END_TEST

START_TEST(a_newer_process_of_the_name_ends_the_older)
{
    struct world w;
    struct coordinator_reply reply;
    struct err e = { 0 };
    enum chief_client_next what = CHIEF_CLIENT_ORDINAL;
    int64_t ordinal;
    world_open(&w, 64);
    done(&w, next(&w));
    struct register_request q = config_of(&w).identity;
    q.sender.incarnation = 12;
    ck_ok_e(coordinator_register(w.coordinator, &q, clock_ms(), &reply, &e));
    int result = 0;
    while (result == 0 && what == CHIEF_CLIENT_ORDINAL)
        if ((result = chief_client_next(w.member, &what, &ordinal, &e)) == 0)
            done(&w, ordinal);
    ck_assert_int_eq(result, -1);
    ck_assert_int_eq(e.code, ERR_FENCED);
    world_close(&w);
}
END_TEST

START_TEST(no_chief_is_waited_for_so_long_and_no_longer)
{
    struct world w = { .model = small_model(SMALL_DENSE, SMALL_COMPILE) };
    struct err e = { 0 };
    enum chief_client_next what;
    int64_t ordinal;
    w.sums = xcalloc(metrics_width(w.model), sizeof(*w.sums));
    rpc_init();
    w.coord = coordinator_client_new_grpc("127.0.0.1:1", NULL, &RPC_INSECURE); /* no server listens there */
    struct chief_client_config config = config_of(&w);
    config.max_wait_ms = 300;
    ck_ok_e(chief_client_start(&config, &w.member, &e));
    ck_assert_int_eq(chief_client_next(w.member, &what, &ordinal, &e), -1);
    ck_assert_int_eq(e.code, ERR_LOST);
    ck_assert_msg(strstr(e.msg, "no chief for") != NULL && strstr(e.msg, "127.0.0.1:1") != NULL, "%s", e.msg);
    world_close(&w);
    rpc_shutdown();
}
END_TEST

/* A later process of the name is alive: this one waits for it, as for a chief, and says so. */
START_TEST(a_later_process_has_the_name)
{
    struct world w = { .model = small_model(SMALL_DENSE, SMALL_COMPILE) };
    struct err e = { 0 };
    struct coordinator_reply reply;
    enum chief_client_next what;
    int64_t ordinal;
    w.sums = xcalloc(metrics_width(w.model), sizeof(*w.sums));
    w.coordinator = new_coordinator(w.model, 1, 64);
    w.coord = coordinator_client_new_local(w.coordinator);
    struct chief_client_config config = config_of(&w);
    struct register_request later = config.identity;
    later.sender.incarnation++;
    ck_ok_e(coordinator_register(w.coordinator, &later, clock_ms(), &reply, &e));
    config.max_wait_ms = 300;
    ck_ok_e(chief_client_start(&config, &w.member, &e));
    ck_assert_int_eq(chief_client_next(w.member, &what, &ordinal, &e), -1);
    ck_assert_int_eq(e.code, ERR_LOST);
    ck_assert_msg(strstr(e.msg, "a process that started later is worker-0, and it is alive") != NULL, "%s", e.msg);
    world_close(&w);
}
END_TEST

static bool yes(void *user, const char *job_uid, int64_t *ret_step)
{
    ck_assert_ptr_nonnull(job_uid);
    (*(int *)user)++;
    *ret_step = 150;
    return true;
}

static void keep_line(void *user, enum log_level level UNUSED, const char *msg, int n UNUSED,
                      const struct log_field *fields UNUSED)
{
    buf_printf(user, "%s\n", msg);
}

START_TEST(who_comes_after_the_end_does_not_wait_for_a_chief)
{
    AUTO_FINI(buf) said = BUF_INIT;
    const struct report report = { .write = keep_line, .user = &said };
    struct world w = { .model = small_model(SMALL_DENSE, SMALL_COMPILE) };
    struct err e = { 0 };
    uint64_t generation;
    int asked = 0;
    rpc_init();
    w.coord = coordinator_client_new_grpc("127.0.0.1:1", NULL, &RPC_INSECURE); /* no server listens there */
    struct chief_client_config config = config_of(&w);
    config.has_finished = yes;
    config.user = &asked;
    config.report = &report;
    ck_ok_e(chief_client_start(&config, &w.member, &e));
    ck_assert_int_eq(chief_client_generation(w.member, 0, &generation, &e), -1);
    ck_assert_int_eq(e.code, ERR_STOPPED);
    ck_assert_str_eq(e.msg, "the job has finished");
    ck_assert(chief_client_finished(w.member));
    ck_assert_int_eq(asked, 1);
    world_close(&w);
    ck_assert_str_eq(said.data, "the job has finished, at step 150\n");
    rpc_shutdown();
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("chief_client");
    TCase *t = tcase_create("chief_client");
    tcase_set_timeout(t, 30);
    tcase_add_test(t, takes_every_batch_once_in_order_and_reports_it_once);
    tcase_add_test(t, the_last_report_comes_with_leaving);
    tcase_add_test(t, learns_the_job_and_its_generation);
    tcase_add_test(t, a_refusal_is_the_end_and_says_why);
    tcase_add_test(t, divergence_reaches_the_chief);
    tcase_add_test(t, hears_of_the_end);
    tcase_add_test(t, a_worker_that_waits_with_the_first_batch_takes_no_more);
    tcase_add_test(t, a_worker_that_waits_computes_the_lower_batches_first);
    tcase_add_test(t, a_worker_that_waits_for_its_group_gets_what_is_above_its_own_batches);
    tcase_add_test(t, a_batch_that_is_dropped_is_not_reported);
    tcase_add_test(t, leases_end_with_the_generation);
    tcase_add_test(t, a_new_chief_lends_again_what_is_held);
    tcase_add_test(t, a_chief_that_forgot_us_is_told_who_we_are);
    tcase_add_test(t, a_newer_process_of_the_name_ends_the_older);
    tcase_add_test(t, no_chief_is_waited_for_so_long_and_no_longer);
    tcase_add_test(t, a_later_process_has_the_name);
    tcase_add_test(t, who_comes_after_the_end_does_not_wait_for_a_chief);
    suite_add_tcase(s, t);
    return s;
}
