/* The arithmetic of a job: the first worker's, or that of its checkpoint. What else is compared: test_coordinator.c. */
#include "coordinator_world.h"

#define ZEN     "OpenBLAS 0.3.21, core Zen, 1 thread, glibc 2.36 with FMA"
#define HASWELL "OpenBLAS 0.3.21, core Haswell, 1 thread, glibc 2.36 with FMA"

static struct world open_job(bool one_arithmetic)
{
    struct world d = { .m = small_model(SMALL_DENSE, SMALL_COMPILE) };
    d.c = coordinator_new(&(struct coordinator_config){
        .model = d.m,
        .job_uid = "uid-1",
        .incarnation = 77,
        .layout_hash = 5,
        .ps_count = 2,
        .batches_per_epoch = 10,
        .total = TOTAL,
        .lease_ms = LEASE_MS,
        .heartbeat_ms = 100,
        .one_arithmetic = one_arithmetic,
        .space = { .fingerprint = 9, .seed = 1, .examples = 640, .batch_size = 64, .shuffle = true } });
    coordinator_set(d.c, JOB_TRAINING, 3, "");
    return d;
}

static int enter_as(struct world *d, const char *name, enum role role, const char *arithmetic)
{
    struct register_request q = registration(name, 1);
    q.sender.role = role;
    q.arithmetic = arithmetic;
    return coordinator_register(d->c, &q, 0, &d->reply, &d->e);
}

static int enter(struct world *d, const char *name, const char *arithmetic)
{
    return enter_as(d, name, ROLE_WORKER, arithmetic);
}

static void want_job(struct world *d, const char *arithmetic)
{
    char text[ARITHMETIC_MAX];
    coordinator_arithmetic(d->c, text);
    ck_assert_str_eq(text, arithmetic);
}

static void want_says(const struct world *d, const char *text)
{
    ck_assert_msg(strstr(d->e.msg, text) != NULL, "%s", d->e.msg);
}

START_TEST(the_first_worker_decides_and_another_arithmetic_is_refused)
{
    struct world d = open_job(true);
    want_job(&d, "");
    ck_assert_int_eq(enter(&d, "worker-0", ZEN), 0);
    want_job(&d, ZEN);
    ck_assert_int_eq(enter(&d, "worker-1", ZEN), 0);
    ck_assert_int_eq(enter(&d, "worker-2", HASWELL), -1);
    ck_assert_int_eq(d.e.code, ERR_REFUSED);
    want_says(&d, "worker-2 computes with '" HASWELL "', the job with '" ZEN "'");
    want_says(&d, "set OPENBLAS_CORETYPE to one core type in all workers");
    want_says(&d, "strategy.deterministic: false");
    want_job(&d, ZEN);
    ck_assert_int_eq(look(&d).workers, 2);
    ck_assert_int_eq(enter_as(&d, "chief-0", ROLE_CHIEF, HASWELL), -1); /* one that trains registers, too */
    ck_assert_int_eq(enter(&d, "worker-0", ZEN), 0);                    /* after a change of the generation */
    close_coordinator(&d);
}
END_TEST

START_TEST(a_refused_worker_does_not_decide)
{
    struct world d = open_job(true);
    struct register_request q = registration("worker-0", 1);
    q.arithmetic = HASWELL;
    q.space.seed++;
    ck_assert_int_eq(coordinator_register(d.c, &q, 0, &d.reply, &d.e), -1);
    want_job(&d, "");
    ck_assert_int_eq(enter(&d, "worker-1", ZEN), 0);
    close_coordinator(&d);
}
END_TEST

START_TEST(an_evaluator_neither_decides_nor_is_compared)
{
    struct world d = open_job(true);
    ck_assert_int_eq(enter_as(&d, "evaluator-0", ROLE_EVALUATOR, HASWELL), 0);
    want_job(&d, "");
    ck_assert_int_eq(enter(&d, "worker-0", ZEN), 0);
    ck_assert_int_eq(enter_as(&d, "evaluator-0", ROLE_EVALUATOR, HASWELL), 0);
    want_job(&d, ZEN);
    close_coordinator(&d);
}
END_TEST

/* As an older release. */
START_TEST(a_worker_that_does_not_say_is_not_refused)
{
    struct world d = open_job(true);
    ck_assert_int_eq(enter(&d, "worker-0", ""), 0);
    ck_assert_int_eq(enter(&d, "worker-1", NULL), 0);
    want_job(&d, "");
    ck_assert_int_eq(enter(&d, "worker-2", ZEN), 0);
    ck_assert_int_eq(enter(&d, "worker-3", ""), 0);
    want_job(&d, ZEN);
    close_coordinator(&d);
}
END_TEST

START_TEST(nothing_is_compared_unless_it_is_asked_for)
{
    struct world d = open_job(false);
    ck_assert_int_eq(enter(&d, "worker-0", ZEN), 0);
    ck_assert_int_eq(enter(&d, "worker-1", HASWELL), 0);
    want_job(&d, "");
    close_coordinator(&d);
}
END_TEST

START_TEST(the_arithmetic_of_an_earlier_run_decides)
{
    struct world d = open_job(true);
    coordinator_set_arithmetic(d.c, HASWELL);
    ck_assert_int_eq(enter(&d, "worker-0", ZEN), -1);
    ck_assert_int_eq(d.e.code, ERR_REFUSED);
    want_says(&d, "worker-0 computes with '" ZEN "', the job with '" HASWELL "'");
    ck_assert_int_eq(enter(&d, "worker-1", HASWELL), 0);
    want_job(&d, HASWELL);
    close_coordinator(&d);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("register_check");
    TCase *t = tcase_create("register_check");
    tcase_add_test(t, the_first_worker_decides_and_another_arithmetic_is_refused);
    tcase_add_test(t, a_refused_worker_does_not_decide);
    tcase_add_test(t, an_evaluator_neither_decides_nor_is_compared);
    tcase_add_test(t, a_worker_that_does_not_say_is_not_refused);
    tcase_add_test(t, nothing_is_compared_unless_it_is_asked_for);
    tcase_add_test(t, the_arithmetic_of_an_earlier_run_decides);
    suite_add_tcase(s, t);
    return s;
}
