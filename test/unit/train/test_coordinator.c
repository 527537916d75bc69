#include "small_model.h"
#include "train/coordinator.h"

enum { TOTAL = 20, LEASE_MS = 1000 };

struct desk {
    struct model *m;
    struct coordinator *c;
    struct coord_reply reply;
    struct err e;
};

static struct desk desk_open(bool barrier)
{
    struct desk d = { .m = small_model(SMALL_DENSE, SMALL_COMPILE) };
    d.c = coordinator_new(&(struct coordinator_config){
        .model = d.m, .job_uid = "uid-1", .incarnation = 77, .layout_hash = 5, .ps_count = 2, .batches_per_epoch = 10,
        .total = TOTAL, .lease_ms = LEASE_MS, .heartbeat_ms = 100, .barrier = barrier,
        .space = { .fingerprint = 9, .seed = 1, .examples = 640, .batch_size = 64, .shuffle = true } });
    coordinator_set(d.c, JOB_TRAINING, 3, "");
    return d;
}

static void desk_close(struct desk *d)
{
    coordinator_free(d->c);
    model_free(d->m);
}

static struct coord_request from(enum coord_kind kind, const char *name, uint64_t incarnation)
{
    return (struct coord_request){ .kind = kind, .job_uid = "uid-1", .sender = name, .incarnation = incarnation,
                                   .role = ROLE_WORKER, .layout_hash = 5, .ps_count = 2, .shuffle_version = SHUFFLE_VERSION,
                                   .want = 4,
                                   .space = { .fingerprint = 9, .seed = 1, .examples = 640, .batch_size = 64, .shuffle = true } };
}

static int call(struct desk *d, struct coord_request q, int64_t now)
{
    return coordinator_handle(d->c, &q, now, &d->reply, &d->e);
}

START_TEST(registers_and_lends)
{
    struct desk d = desk_open(false);
    struct coord_request q = from(COORD_REGISTER, "worker-0", 1);
    q.job_uid = ""; /* started by hand: learns it */
    ck_assert_int_eq(call(&d, q, 0), 0);
    ck_assert_str_eq(d.reply.job_uid, "uid-1");
    ck_assert_uint_eq(d.reply.generation, 3);
    ck_assert_int_eq(call(&d, from(COORD_LEASE, "worker-0", 1), 0), 0);
    ck_assert_int_eq(d.reply.first, 0);
    ck_assert_int_eq(d.reply.count, 4);
    desk_close(&d);
}
END_TEST

static void other_batch(struct coord_request *q)
{
    q->space.batch_size = 32;
}
static void other_seed(struct coord_request *q)
{
    q->space.seed = 2;
}
static void other_data(struct coord_request *q)
{
    q->space.fingerprint = 10;
}
static void other_examples(struct coord_request *q)
{
    q->space.examples = 641;
}
static void other_model(struct coord_request *q)
{
    q->layout_hash = 6;
}
static void other_job(struct coord_request *q)
{
    q->job_uid = "uid-2";
}
static void other_ps(struct coord_request *q)
{
    q->ps_count = 1;
}

START_TEST(refuses_a_worker_that_differs_and_names_the_field)
{
    static const struct {
        void (*change)(struct coord_request *q);
        const char *says;
    } cases[] = { { other_batch, "fit.batchSize" }, { other_seed, "fit.seed" },   { other_data, "data.train" },
                  { other_examples, "data.train" }, { other_model, "spec.model" }, { other_job, "uid-2" },
                  { other_ps, "1 ps" } };
    struct desk d = desk_open(false);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct coord_request q = from(COORD_REGISTER, "worker-0", 1);
        cases[i].change(&q);
        ck_assert_int_eq(call(&d, q, 0), -1);
        ck_assert_int_eq(d.e.code, ERR_REFUSED);
        ck_assert_msg(strstr(d.e.msg, cases[i].says) != NULL, "%s", d.e.msg);
    }
    desk_close(&d);
}
END_TEST

START_TEST(a_new_process_takes_over_the_name_and_frees_its_leases)
{
    struct desk d = desk_open(false);
    ck_assert_int_eq(call(&d, from(COORD_REGISTER, "worker-0", 1), 0), 0);
    ck_assert_int_eq(call(&d, from(COORD_LEASE, "worker-0", 1), 0), 0);
    ck_assert_int_eq(call(&d, from(COORD_REGISTER, "worker-0", 2), 10), 0);
    ck_assert_int_eq(call(&d, from(COORD_LEASE, "worker-0", 2), 10), 0);
    ck_assert_int_eq(d.reply.first, 0);
    ck_assert_int_eq(call(&d, from(COORD_HEARTBEAT, "worker-0", 1), 20), -1);
    ck_assert_int_eq(d.e.code, ERR_FENCED);
    desk_close(&d);
}
END_TEST

START_TEST(a_silent_worker_is_gone_after_its_lease)
{
    struct desk d = desk_open(false);
    ck_assert_int_eq(call(&d, from(COORD_REGISTER, "worker-0", 1), 0), 0);
    ck_assert_int_eq(call(&d, from(COORD_LEASE, "worker-0", 1), 0), 0);
    ck_assert_int_eq(call(&d, from(COORD_REGISTER, "worker-1", 2), LEASE_MS), 0);
    coordinator_tick(d.c, LEASE_MS + 1);
    ck_assert_int_eq(call(&d, from(COORD_LEASE, "worker-1", 2), LEASE_MS + 1), 0);
    ck_assert_int_eq(d.reply.first, 0);
    ck_assert_int_eq(call(&d, from(COORD_HEARTBEAT, "worker-0", 1), LEASE_MS + 2), -1);
    ck_assert_int_eq(d.e.code, ERR_NOT_READY); /* it registers again and goes on */
    desk_close(&d);
}
END_TEST

START_TEST(nothing_is_lent_before_it_is_opened_or_while_starting)
{
    struct desk d = desk_open(true);
    ck_assert_int_eq(call(&d, from(COORD_REGISTER, "worker-0", 1), 0), 0);
    ck_assert_int_eq(call(&d, from(COORD_LEASE, "worker-0", 1), 0), 0);
    ck_assert_int_eq(d.reply.count, 0);
    coordinator_open(d.c, 3);
    ck_assert_int_eq(call(&d, from(COORD_LEASE, "worker-0", 1), 0), 0);
    ck_assert_int_eq(d.reply.count, 3);
    coordinator_set(d.c, JOB_STARTING, 4, "the chief to restore ps-1");
    coordinator_open(d.c, 9);
    ck_assert_int_eq(call(&d, from(COORD_LEASE, "worker-0", 1), 0), 0);
    ck_assert_int_eq(d.reply.count, 0);
    ck_assert_int_eq((int)d.reply.state, JOB_STARTING);
    ck_assert_str_eq(d.reply.message, "the chief to restore ps-1");
    desk_close(&d);
}
END_TEST

START_TEST(divergence_reaches_the_chief)
{
    struct desk d = desk_open(false);
    struct coordinator_view view;
    ck_assert_int_eq(call(&d, from(COORD_REGISTER, "worker-1", 1), 0), 0);
    struct coord_request q = from(COORD_HEARTBEAT, "worker-1", 1);
    q.diverged = true;
    q.diverged_ordinal = 12;
    ck_assert_int_eq(call(&d, q, 1), 0);
    coordinator_view(d.c, &view);
    ck_assert(view.diverged);
    ck_assert_int_eq(view.diverged_ordinal, 12);
    ck_assert_str_eq(view.diverged_by, "worker-1");
    desk_close(&d);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("coordinator");
    TCase *t = tcase_create("coordinator");
    tcase_add_test(t, registers_and_lends);
    tcase_add_test(t, refuses_a_worker_that_differs_and_names_the_field);
    tcase_add_test(t, a_new_process_takes_over_the_name_and_frees_its_leases);
    tcase_add_test(t, a_silent_worker_is_gone_after_its_lease);
    tcase_add_test(t, nothing_is_lent_before_it_is_opened_or_while_starting);
    tcase_add_test(t, divergence_reaches_the_chief);
    suite_add_tcase(s, t);
    return s;
}
