/* Steps of two gradients: who gets the sums, and who makes the update, when members train at the same time, and when
 * the thread that trains does not come. */
#define GROUP_SIZE 2
#include "collective_fixture.h"

#include "base/thread.h"
#include "collective/collective_internal.h"

struct trainer {
    struct party *p;
    size_t member, members;
    struct thread thread;
    int rc;
    struct err e;
};

/* Every `members`-th batch, with a hint where the next one is. */
static void trainer_run(void *user)
{
    struct trainer *t = user;
    for (int64_t o = (int64_t)t->member; o < 2 * EPOCH && t->rc == 0; o += (int64_t)t->members) {
        int64_t next = o + (int64_t)t->members;
        t->rc = give_before(t->p, t->member, o, next < 2 * EPOCH ? groups_first(&G, next) : -1, &t->e);
    }
}

/* One member; two that add all for themselves; more members than gradients of a step. */
START_TEST(members_that_train_at_the_same_time_have_the_bits_of_a_parameter_server)
{
    for (size_t n = 1; n <= MEMBERS; n++) {
        struct party p;
        struct trainer t[MEMBERS] = { 0 };
        struct err e = { 0 };
        party_open(&p, n, _i);
        start(&p, 1, 0, (1u << n) - 1);
        for (size_t i = 0; i < n; i++) {
            t[i] = (struct trainer){ .p = &p, .member = i, .members = n };
            ck_ok_e(thread_start(&t[i].thread, "trainer", trainer_run, &t[i], &e));
        }
        for (size_t i = 0; i < n; i++) {
            thread_join(&t[i].thread);
            ck_assert_msg(t[i].rc == 0, "%s", t[i].e.msg);
        }
        for (size_t i = 0; i < n; i++)
            check_values(&p, i, 2 * EPOCH);
        party_close(&p);
    }
}
END_TEST

static int64_t applied_by(struct party *p, size_t i)
{
    return done_below(p->members[i].shard);
}

/* It said that it would come for the next step. */
START_TEST(the_update_is_made_without_the_thread_that_trains)
{
    struct party p;
    struct err e = { 0 };
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    ck_ok_e(give_before(&p, 0, 0, 2, &e));
    ck_ok_e(give_before(&p, 1, 1, 2, &e));
    ck_wait(applied_by(&p, 0) == 2 && applied_by(&p, 1) == 2);
    check_values(&p, 0, 2);
    check_values(&p, 1, 2);
    party_close(&p);
}
END_TEST

/* Three members: the answers would bring the sums, but the other gradient comes later. */
START_TEST(sums_that_did_not_come_with_an_answer_are_fetched)
{
    struct party p;
    struct err e = { 0 };
    party_open(&p, 3, _i);
    start(&p, 1, 0, 7);
    ck_ok_e(give_before(&p, 0, 0, 2, &e));
    ck_ok_e(give_before(&p, 1, 1, 2, &e));
    for (size_t i = 0; i < 3; i++)
        check_values(&p, i, 2);
    party_close(&p);
}
END_TEST

static struct transfer_call gradient(size_t from, int64_t ordinal, bool want_sum, uint32_t wait_ms)
{
    return (struct transfer_call){ .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_GRADIENT,
                                   .sender = from == 1 ? "worker-1" : "worker-2",
                                   .incarnation = 100 + from,
                                   .generation = CHIEF.generation,
                                   .view = 1,
                                   .ordinal = ordinal,
                                   .members = 3,
                                   .want_sum = want_sum,
                                   .wait_ms = wait_ms };
}

/* The floats that an answer has. */
static size_t answer_of(struct party *p, const struct transfer_call *t, float ret[FLOATS])
{
    struct err e = { 0 };
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(transfer_answer(p, 0, t, &m, &e));
    size_t size = rpc_message_payload_size(m);
    ck_assert_uint_le(size, FLOATS * sizeof(float));
    ck_assert(rpc_message_copy(m, 0, ret, size));
    return size / sizeof(float);
}

START_TEST(an_answer_has_the_sum_if_it_is_complete_in_time)
{
    struct party p;
    struct err e;
    float with_answer[FLOATS], asked[FLOATS];
    party_open(&p, 3, _i);
    start(&p, 1, 0, 7);
    struct transfer_call first = gradient(1, 0, true, 1), last = gradient(2, 1, true, CALL_WAIT_MS);
    ck_fails(transfer(&p, 0, &first, &e), ERR_PENDING, "gradients are missing"); /* and it is taken */
    size_t n = answer_of(&p, &last, with_answer);
    ck_assert_uint_gt(n, 0);
    struct transfer_call sum = last, quiet = gradient(2, 1, false, 0);
    sum.kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_SUM;
    ck_assert_uint_eq(answer_of(&p, &sum, asked), n);
    ck_assert_mem_eq(asked, with_answer, n * sizeof(float));
    ck_assert_uint_eq(answer_of(&p, &quiet, asked), 0);
    party_close(&p);
}
END_TEST

/* Two members add all gradients for themselves. One that computes those of the other one, too, does not leave it
 * behind: it makes a step when the other one has begun it, and has its gradients. */
START_TEST(no_member_passes_a_step_that_the_other_has_not_begun)
{
    struct party p;
    struct err e = { 0 };
    struct collective *slow;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    slow = p.members[1].collective;
    ck_ok_e(collective_enter(slow, 0, 0, CALL_WAIT_MS, &e)); /* it computes from these values */
    given(&p, 0, 0);
    given(&p, 0, 1);
    check_values(&p, 0, 2);
    ck_fails(give(&p, 0, 2, &e), ERR_PENDING, "the step before is not over");
    ck_fails(give(&p, 0, 3, &e), ERR_PENDING, "the step before is not over");
    ck_fails(collective_enter(p.members[0].collective, 4, -1, 50, &e), ERR_PENDING, "");
    ck_assert_int_eq(applied_by(&p, 0), 2);
    collective_leave(slow);
    given(&p, 0, 2); /* again */
    given(&p, 0, 3);
    check_values(&p, 0, 4);
    check_values(&p, 1, 4);
    party_close(&p);
}
END_TEST

/* Its gradients of the next step say that it has made this one. */
START_TEST(a_member_that_goes_on_needs_nothing_more_of_this_step)
{
    struct party p;
    struct err e = { 0 };
    struct collective *slow;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    slow = p.members[1].collective;
    ck_ok_e(collective_enter(slow, 0, 0, CALL_WAIT_MS, &e));
    for (int64_t o = 0; o < 2; o++)
        given(&p, 0, o);
    check_values(&p, 0, 2);
    for (int64_t o = 2; o < 4; o++) /* they are there, and nobody has said so */
        ck_fails(give(&p, 0, o, &e), ERR_PENDING, "the step before is not over");
    collective_leave(slow);
    check_values(&p, 1, 4);
    ck_assert_int_eq(applied_by(&p, 0), 2);
    given(&p, 1, 4);
    check_values(&p, 0, 4);
    given(&p, 0, 5);
    check_values(&p, 0, 6);
    check_values(&p, 1, 6);
    party_close(&p);
}
END_TEST

/* Layers are complete from the last one on: what lies below is not read before it is. */
START_TEST(a_gradient_is_given_as_far_as_it_is_complete)
{
    struct party p;
    struct err e = { 0 };
    float grads[FLOATS], whole[FLOATS] = { 0 };
    party_open(&p, 3, _i);
    start(&p, 1, 0, 7);
    fill(p.layout, 1, whole);
    for (size_t i = 0; i < FLOATS; i++)
        grads[i] = 1e9F;
    struct collective *c = p.members[0].collective;
    ck_ok_e(collective_enter(c, 0, 0, CALL_WAIT_MS, &e));
    for (size_t from = FLOATS; from > 0; from--) {
        grads[from - 1] = whole[from - 1];
        collective_give(c, 0, grads, from - 1);
    }
    ck_ok_e(collective_given(c, &e));
    collective_leave(c);
    given(&p, 1, 1);
    for (size_t i = 0; i < 3; i++)
        check_values(&p, i, 2);
    party_close(&p);
}
END_TEST

/* ---- who fetches, and who makes the update ---- */

/* All but the last call of a batch of member i: it gives, and does not leave. */
static void give_and_stay(struct party *p, size_t i, int64_t ordinal, int64_t next_at)
{
    struct collective *c = p->members[i].collective;
    struct err e = { 0 };
    ck_ok_e(collective_enter(c, groups_first(&G, ordinal), next_at, CALL_WAIT_MS, &e));
    collective_give(c, ordinal, gradient_of(p, i, ordinal), 0);
}

static enum sum_fetcher fetcher_of(struct party *p, size_t i)
{
    struct collective *c = p->members[i].collective;
    MUTEX_GUARD(&c->lock);
    return c->fetcher;
}

/* Member 1 gives the last gradient of the step. True: the replies had the sums. False: the own thread fetches them,
 * because this thread or a reply has come late. */
static bool sums_with_replies(struct party *p, int64_t ordinal)
{
    struct collective *c = p->members[1].collective;
    struct err e = { 0 };
    bool there;
    give_and_stay(p, 1, ordinal, ordinal + 1);
    ck_ok_e(collective_given(c, &e));
    {
        MUTEX_GUARD(&c->lock);
        there = c->giving.sums && c->fetcher == FETCHER_TRAINER && reduction_fetched(c->now);
    }
    collective_leave(c);
    return there;
}

START_TEST(sums_come_with_the_replies_to_the_last_gradient_of_a_step)
{
    struct party p;
    struct err e = { 0 };
    int64_t at = 0;
    party_open(&p, 3, _i);
    start(&p, 1, 0, 7);
    for (bool with_replies = false; !with_replies || at < 2 * EPOCH; at += 2) {
        give_and_stay(&p, 0, at, at); /* as if one more followed */
        ck_assert(!p.members[0].collective->giving.sums);
        ck_ok_e(collective_given(p.members[0].collective, &e));
        collective_leave(p.members[0].collective);
        with_replies = sums_with_replies(&p, at + 1) || with_replies;
    }
    for (size_t i = 0; i < 3; i++)
        check_values(&p, i, at);
    party_close(&p);
}
END_TEST

START_TEST(one_thread_fetches_the_sums_of_a_step)
{
    struct party p;
    struct err e = { 0 };
    party_open(&p, 3, _i);
    start(&p, 1, 0, 7);
    given(&p, 0, 0); /* it is not known to come again: the own thread fetches */
    ck_wait(fetcher_of(&p, 0) == FETCHER_OWN);
    give_and_stay(&p, 0, 0, 2);
    ck_assert(!p.members[0].collective->giving.sums);
    ck_assert_int_eq(fetcher_of(&p, 0), FETCHER_OWN);
    ck_ok_e(collective_given(p.members[0].collective, &e));
    collective_leave(p.members[0].collective);
    given(&p, 1, 1);
    for (size_t i = 0; i < 3; i++)
        check_values(&p, i, 2);
    party_close(&p);
}
END_TEST

static bool expected(struct party *p, int64_t next_at)
{
    struct collective *c = p->members[0].collective;
    struct err e = { 0 };
    ck_ok_e(collective_enter(c, 0, next_at, CALL_WAIT_MS, &e));
    collective_leave(c);
    MUTEX_GUARD(&c->lock);
    return c->near;
}

START_TEST(the_thread_that_trains_is_expected_in_this_step_and_the_next)
{
    struct party p;
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    ck_assert(expected(&p, 0));
    ck_assert(expected(&p, 2));
    ck_assert(!expected(&p, 4));
    ck_assert(!expected(&p, -1));
    party_close(&p);
}
END_TEST

/* The state is copied for a newcomer, or hashed. */
START_TEST(no_update_is_made_while_the_state_is_read)
{
    struct party p;
    struct err e = { 0 };
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    struct collective *c = p.members[0].collective;
    ck_ok_e(give_before(&p, 0, 0, 0, &e));
    {
        MUTEX_GUARD(&c->lock);
        c->readers++;
    }
    ck_ok_e(give_before(&p, 0, 1, -1, &e));
    ck_fails(collective_enter(c, 2, -1, 50, &e), ERR_PENDING, "");
    ck_assert_int_eq(applied_by(&p, 0), 0);
    {
        MUTEX_GUARD(&c->lock);
        c->readers--;
        collective_changed(c);
    }
    check_values(&p, 0, 2);
    party_close(&p);
}
END_TEST

/* The donor's only step that it may not make yet: its gradients are there. */
static bool is_braked(struct party *p, int64_t at)
{
    struct err e = { 0 };
    int rc = collective_enter(p->members[0].collective, at, -1, 50, &e);
    collective_leave(p->members[0].collective);
    ck_assert_msg(rc == 0 || err_is(&e, ERR_PENDING), "%s", e.msg);
    ck_assert(rc == 0 || strstr(e.msg, "a worker that joins") != NULL);
    return rc < 0;
}

/* A newcomer, played by the test, begins to follow 4 steps behind a donor that trains alone. */
START_TEST(a_donor_lets_the_newcomer_catch_up)
{
    static const size_t ALONE[] = { 0 };
    static const int64_t TAKEN[] = { 0, 0, 1, 3, 5, 7, 8, 9 }; /* steps that it has when another one may be made */
    struct party p;
    struct err e = { 0 };
    struct transfer_call kept = { .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_KEPT,
                                  .sender = "worker-1",
                                  .incarnation = 101,
                                  .generation = CHIEF.generation,
                                  .view = 1 };
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    member_start(&p, 1, 101);
    ordered(&p, 0, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_DONATE, 1, 0, 0, 1 });
    int64_t at = 0, taken = 0;
    for (int i = 0; i < 4; i++, at = groups_end(&G, at))
        give_all(&p, ALONE, 1, at, groups_end(&G, at));
    ck_assert(!is_braked(&p, at));
    ck_ok_e(transfer(&p, 0, &kept, &e)); /* it has the state now, and asks for the first sums */
    for (size_t i = 0; i < COUNT_OF(TAKEN); i++, at = groups_end(&G, at)) {
        for (; taken < TAKEN[i]; taken++) {
            ck_assert(is_braked(&p, at));
            kept.at = groups_end(&G, kept.at);
            ck_ok_e(transfer(&p, 0, &kept, &e));
        }
        ck_assert(!is_braked(&p, at));
        give_all(&p, ALONE, 1, at, groups_end(&G, at));
    }
    ck_assert(is_braked(&p, at));
    {
        struct collective *c = p.members[0].collective;
        MUTEX_GUARD(&c->lock);
        c->donations->heard_ms -= 60000; /* as if it was not heard since */
    }
    ck_assert(!is_braked(&p, at));
    party_close(&p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("collective_steps");
    TCase *t = tcase_create("steps");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, members_that_train_at_the_same_time_have_the_bits_of_a_parameter_server, 0, TRANSPORTS);
    tcase_add_loop_test(t, the_update_is_made_without_the_thread_that_trains, 0, TRANSPORTS);
    tcase_add_loop_test(t, sums_that_did_not_come_with_an_answer_are_fetched, 0, TRANSPORTS);
    tcase_add_loop_test(t, an_answer_has_the_sum_if_it_is_complete_in_time, 0, TRANSPORTS);
    tcase_add_loop_test(t, no_member_passes_a_step_that_the_other_has_not_begun, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_member_that_goes_on_needs_nothing_more_of_this_step, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_gradient_is_given_as_far_as_it_is_complete, 0, TRANSPORTS);
    tcase_add_loop_test(t, sums_come_with_the_replies_to_the_last_gradient_of_a_step, 0, TRANSPORTS);
    tcase_add_loop_test(t, one_thread_fetches_the_sums_of_a_step, 0, TRANSPORTS);
    tcase_add_loop_test(t, the_thread_that_trains_is_expected_in_this_step_and_the_next, 0, TRANSPORTS);
    tcase_add_loop_test(t, no_update_is_made_while_the_state_is_read, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_donor_lets_the_newcomer_catch_up, 0, TRANSPORTS);
    suite_add_tcase(s, t);
    return s;
}
