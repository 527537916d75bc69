/* Batch statistics between members: the first member of the view adds them, and the other one asks it. Groups of two
 * batches, one number of a batch. */
#define GROUP_SIZE 2
#include "collective_fixture.h"

#include "base/thread.h"
#include "collective/collective_internal.h"

/* Member i has entered the step that begins with 0. */
static void entered(struct party *p, size_t i)
{
    struct err e = { 0 };
    ck_ok_e(collective_enter(p->members[i].collective, 0, 0, CALL_WAIT_MS, &e));
}

/* Its number of batch `ordinal` in a phase is 10 * phase + ordinal + 1. */
static int reduce(struct party *p, size_t i, uint32_t phase, int64_t ordinal, int64_t wait_ms,
                  struct group_request *ret, double *ret_total, struct err *e)
{
    const double number = 10 * phase + (double)ordinal + 1;
    *ret = (struct group_request){
        .part = { .phase = phase, .ordinals = &ordinal, .n = 1, .numbers = &number, .width = 1 },
        .wait_ms = wait_ms,
        .totals = ret_total
    };
    *ret_total = 0;
    return collective_reduce(p->members[i].collective, ret, e);
}

static void want_total(struct party *p, size_t i, uint32_t phase, int64_t ordinal, double wanted)
{
    struct group_request q;
    double total;
    struct err e = { 0 };
    ck_ok_e(reduce(p, i, phase, ordinal, CALL_WAIT_MS, &q, &total, &e));
    ck_assert_int_eq(q.answer, GROUP_TOTALS);
    ck_assert_msg(total == wanted, "%g, not %g", total, wanted);
}

static void want_pending(struct party *p, size_t i, uint32_t phase, int64_t ordinal)
{
    struct group_request q;
    double total;
    struct err e = { 0 };
    ck_fails(reduce(p, i, phase, ordinal, 1, &q, &total, &e), ERR_PENDING, "");
}

/* Both members have phase 0, and have entered the step. */
static void open_with_sums(struct party *p)
{
    party_open(p, 2, false);
    start(p, 1, 0, 3);
    entered(p, 0);
    entered(p, 1);
    want_pending(p, 1, 0, 1); /* and its number is taken */
    want_total(p, 0, 0, 0, 3);
    want_total(p, 1, 0, 1, 3);
}

static void all_leave(struct party *p)
{
    for (size_t i = 0; i < 2; i++)
        collective_leave(p->members[i].collective);
    party_close(p);
}

START_TEST(the_first_member_adds_and_the_other_one_asks)
{
    struct party p;
    open_with_sums(&p);
    want_pending(&p, 0, 1, 0);
    want_total(&p, 1, 1, 1, 23);
    want_total(&p, 0, 1, 0, 23);
    all_leave(&p);
}
END_TEST

/* ---- another view ---- */

struct asker {
    struct party *p;
    struct thread thread;
    int rc;
    struct err e;
};

static void ask_long(void *user)
{
    struct asker *a = user;
    struct group_request q;
    double total;
    a->rc = reduce(a->p, 1, 1, 1, 10 * CALL_WAIT_MS, &q, &total, &a->e);
    collective_leave(a->p->members[1].collective); /* the order waits for nobody */
}

static bool calls(struct party *p, size_t i)
{
    struct collective *c = p->members[i].collective;
    MUTEX_GUARD(&c->calls_lock);
    return c->calls != NULL;
}

START_TEST(a_change_of_the_view_ends_the_call)
{
    struct party p;
    struct asker a = { .p = &p };
    struct err e = { 0 };
    open_with_sums(&p);
    ck_ok_e(thread_start(&a.thread, "asker", ask_long, &a, &e));
    ck_wait(calls(&p, 1));
    stop(&p, 2, 2);
    thread_join(&a.thread);
    ck_assert_msg(a.rc < 0 && err_is(&a.e, ERR_PENDING), "%s", a.e.msg);
    ck_assert_msg(strstr(a.e.msg, "the batch statistics") == NULL, "%s", a.e.msg); /* its time was not over */
    all_leave(&p);
}
END_TEST

/* Member 0 leaves: member 1 is the first of the next view, and has no sums. */
START_TEST(another_first_member_has_no_sums)
{
    struct party p;
    open_with_sums(&p);
    collective_leave(p.members[0].collective);
    collective_leave(p.members[1].collective);
    stop(&p, 2, 3);
    start(&p, 2, 0, 2);
    entered(&p, 1);
    struct group_request q;
    double total;
    struct err e = { 0 };
    ck_ok_e(reduce(&p, 1, 1, 1, 1, &q, &total, &e));
    ck_assert_int_eq(q.answer, GROUP_AGAIN);
    want_pending(&p, 1, 0, 1);
    want_total(&p, 1, 0, 0, 3); /* of the batch that member 0 had */
    want_total(&p, 1, 0, 1, 3);
    all_leave(&p);
}
END_TEST

/* The step is made while a member still asks for its sums. */
START_TEST(sums_of_a_step_that_is_over_are_stale)
{
    struct party p;
    open_with_sums(&p);
    collective_leave(p.members[0].collective);
    collective_leave(p.members[1].collective);
    for (int64_t o = 0; o < 2; o++)
        given(&p, (size_t)o, o);
    for (size_t i = 0; i < 2; i++) {
        check_values(&p, i, 2);
        struct err e = { 0 };
        ck_ok_e(collective_enter(p.members[i].collective, 2, 2, CALL_WAIT_MS, &e));
    }
    struct group_request q;
    double total = 0;
    struct err e = { 0 };
    const double number = 1;
    const int64_t ordinals[] = { 2, 3 };
    for (size_t i = 2; i-- > 0;) { /* the sums of the next step begin */
        q = (struct group_request){
            .part = { .at = 2, .ordinals = &ordinals[i], .n = 1, .numbers = &number, .width = 1 },
            .wait_ms = 1,
            .totals = &total
        };
        int rc = collective_reduce(p.members[i].collective, &q, &e);
        ck_assert(rc == 0 || err_is(&e, ERR_PENDING));
    }
    for (size_t i = 0; i < 2; i++)
        ck_fails(reduce(&p, i, 0, (int64_t)i, 1, &q, &total, &e), ERR_STALE, "the step of batch 0 is over");
    all_leave(&p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("collective_reduce");
    TCase *t = tcase_create("reduce");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_first_member_adds_and_the_other_one_asks);
    tcase_add_test(t, a_change_of_the_view_ends_the_call);
    tcase_add_test(t, another_first_member_has_no_sums);
    tcase_add_test(t, sums_of_a_step_that_is_over_are_stale);
    suite_add_tcase(s, t);
    return s;
}
