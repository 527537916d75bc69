/* Members of an all-reduce in one process: their values have the bits of a parameter server's, whoever gives a
 * gradient, and whoever comes or goes. */
#include "collective_fixture.h"

#include "base/thread.h"

START_TEST(all_members_have_the_bits_of_a_parameter_server)
{
    static const size_t TURNS[] = { 0, 1, 2 };
    struct party p;
    party_open(&p, 3, _i);
    start(&p, 1, 0, 7);
    give_all(&p, TURNS, 3, 0, 2 * EPOCH);
    for (size_t i = 0; i < 3; i++)
        check_values(&p, i, 2 * EPOCH);
    party_close(&p);
}
END_TEST

START_TEST(one_member_alone_has_them_too)
{
    static const size_t TURNS[] = { 0 };
    struct party p;
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    give_all(&p, TURNS, 1, 0, EPOCH);
    check_values(&p, 0, EPOCH);
    party_close(&p);
}
END_TEST

START_TEST(a_gradient_that_is_given_twice_counts_once)
{
    struct party p;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    given(&p, 0, 2);
    given(&p, 1, 2);
    given(&p, 1, 3);
    given(&p, 0, 0);
    given(&p, 0, 0);
    given(&p, 1, 1);
    check_values(&p, 0, 4);
    check_values(&p, 1, 4);
    party_close(&p);
}
END_TEST

START_TEST(a_step_that_is_over_is_stale)
{
    struct party p;
    struct err e;
    static const size_t TURNS[] = { 0, 1 };
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    give_all(&p, TURNS, 2, 0, 4);
    check_values(&p, 1, 4);
    ck_fails(give(&p, 1, 3, &e), ERR_STALE, "the step of batch 0 is over");
    party_close(&p);
}
END_TEST

START_TEST(it_says_which_gradients_are_missing)
{
    struct party p;
    struct err e;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    given(&p, 0, 1);
    ck_fails(collective_enter(p.members[0].collective, 4, -1, 1, &e), ERR_PENDING, "the gradients of batches 0, 2, 3");
    party_close(&p);
}
END_TEST

/* ---- members come and go ---- */

START_TEST(the_others_make_the_step_again_when_a_member_is_lost)
{
    static const size_t TURNS[] = { 0, 1, 2 }, REST[] = { 0, 2 };
    struct party p;
    party_open(&p, 3, _i);
    start(&p, 1, 0, 7);
    give_all(&p, TURNS, 3, 0, 4);
    given(&p, 0, 4);
    given(&p, 1, 5); /* is lost with its member */
    ck_wait(place(&p, 2) == 4);
    member_stop(&p, 1);
    stop(&p, 2, 5);
    start(&p, 2, 4, 5);
    give_all(&p, REST, 2, 4, EPOCH);
    check_values(&p, 0, EPOCH);
    check_values(&p, 2, EPOCH);
    party_close(&p);
}
END_TEST

struct giver {
    struct party *p;
    size_t member;
    int64_t ordinal;
    int rc;
    struct err e;
};

static void giver_run(void *user)
{
    struct giver *g = user;
    g->rc = give(g->p, g->member, g->ordinal, &g->e);
}

START_TEST(a_gradient_on_its_way_to_a_lost_member_is_given_again)
{
    struct party p;
    struct err e;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    member_stop(&p, 1);
    struct giver g = { .p = &p, .member = 0, .ordinal = 0 };
    struct thread t = { 0 };
    ck_ok_e(thread_start(&t, "giver", giver_run, &g, &e));
    stop(&p, 2, 1);
    thread_join(&t);
    ck_assert_int_eq(g.rc, -1);
    ck_assert_int_eq(g.e.code, ERR_PENDING);
    start(&p, 2, 0, 1);
    for (int64_t o = 0; o < 4; o++)
        given(&p, 0, o);
    check_values(&p, 0, 4);
    party_close(&p);
}
END_TEST

static struct order_call begin_at(uint64_t view, int64_t at, unsigned members, int other)
{
    return (struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_START, view, at, members, other };
}

START_TEST(who_is_a_step_behind_takes_the_sums_of_another_member)
{
    static const size_t TURNS[] = { 0 }, BOTH[] = { 0, 1 };
    struct party p;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 1);
    give_all(&p, TURNS, 1, 0, 4);
    check_values(&p, 0, 4);
    stop(&p, 2, 3);
    const struct order_call first = begin_at(2, 4, 3, -1), second = begin_at(2, 4, 3, 0);
    ordered(&p, 0, &first);
    ck_assert_int_eq(place(&p, 1), 0);
    ordered(&p, 1, &second);
    give_all(&p, BOTH, 2, 4, EPOCH);
    check_values(&p, 0, EPOCH);
    check_values(&p, 1, EPOCH);
    party_close(&p);
}
END_TEST

START_TEST(sums_that_were_taken_are_passed_on)
{
    static const size_t FIRST[] = { 0 }, OTHERS[] = { 1, 2 };
    struct party p;
    party_open(&p, 3, _i);
    start(&p, 1, 0, 1);
    give_all(&p, FIRST, 1, 0, 4);
    check_values(&p, 0, 4);
    stop(&p, 2, 7);
    const struct order_call first = begin_at(2, 4, 7, -1), second = begin_at(2, 4, 7, 0);
    ordered(&p, 0, &first);
    ordered(&p, 1, &second);
    ck_wait(place(&p, 1) == 4);
    member_stop(&p, 0); /* the only one that made the step; member 2 has not taken its sums yet */
    stop(&p, 3, 6);
    const struct order_call ahead = begin_at(3, 4, 6, -1), behind = begin_at(3, 4, 6, 1);
    ordered(&p, 1, &ahead);
    ordered(&p, 2, &behind);
    give_all(&p, OTHERS, 2, 4, EPOCH);
    check_values(&p, 1, EPOCH);
    check_values(&p, 2, EPOCH);
    party_close(&p);
}
END_TEST

START_TEST(a_newcomer_takes_the_state_and_the_steps_since)
{
    static const size_t OLD[] = { 0, 1 }, ALL_THREE[] = { 0, 1, 2 };
    struct party p;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    give_all(&p, OLD, 2, 0, 4);
    member_start(&p, 2, 102);
    member_init(&p, 2);
    join(&p, 2, 0, 1);
    give_all(&p, OLD, 2, 4, EPOCH); /* training goes on meanwhile */
    for (size_t i = 0; i < 3; i++)
        ck_wait(place(&p, i) >= EPOCH);
    stop(&p, 2, 7);
    all_ordered(&p, 3, begin_at(2, EPOCH, 7, -1));
    const struct order_call third = begin_at(2, EPOCH, 7, 0);
    ordered(&p, 2, &third);
    give_all(&p, ALL_THREE, 3, EPOCH, 2 * EPOCH);
    for (size_t i = 0; i < 3; i++)
        check_values(&p, i, 2 * EPOCH);
    party_close(&p);
}
END_TEST

START_TEST(a_newcomer_with_another_state_does_not_train)
{
    static const size_t OLD[] = { 0 };
    struct party p;
    struct err e;
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    give_all(&p, OLD, 1, 0, 4);
    check_values(&p, 0, 4);
    member_start(&p, 1, 101);
    member_init(&p, 1);
    join(&p, 1, 0, 1);
    ck_wait(place(&p, 1) >= 4);
    (void)done_below(p.members[1].shard); /* takes the locks of the segments */
    p.members[1].vector[0] += 1;
    (void)done_below(p.members[1].shard);
    stop(&p, 2, 3);
    const struct order_call first = begin_at(2, 4, 3, -1), second = begin_at(2, 4, 3, 0);
    ordered(&p, 0, &first);
    ordered(&p, 1, &second);
    ck_fails(collective_enter(p.members[1].collective, 4, -1, CALL_WAIT_MS, &e), ERR_LOST,
             "the state that worker-0 gave differs from its own at batch 4");
    party_close(&p);
}
END_TEST

/* ---- orders that are refused ---- */

static void refused(struct party *p, size_t i, struct order_call o, enum err_code code, const char *text)
{
    Trainyard__V1__ViewReply *r = NULL;
    struct err e;
    ck_fails(order(p, i, &o, &r, &e), code, text);
}

START_TEST(orders_that_do_not_fit_are_refused)
{
    struct party p;
    party_open(&p, 2, _i);
    member_start(&p, 2, 102);
    start(&p, 2, 0, 3);
    refused(&p, 0, begin_at(1, 0, 3, -1), ERR_FENCED, "view 1 is over");
    refused(&p, 0, begin_at(3, 0, 2, -1), ERR_FENCED, "not a member of view 3");
    refused(&p, 0, begin_at(3, 2, 3, -1), ERR_INPUT, "batch 2 does not begin a step");
    refused(&p, 0, begin_at(3, 4, 3, -1), ERR_NOT_READY, "it is at batch 0, the view begins at 4");
    refused(&p, 2, begin_at(3, 0, 7, -1), ERR_NOT_READY, "it waits for the chief to initialise it");
    stop(&p, 4, 3);
    refused(&p, 0, begin_at(3, 0, 3, -1), ERR_FENCED, "view 3 is over");
    start(&p, 4, 0, 3);
    party_close(&p);
}
END_TEST

/* ---- what is refused, and what waits ---- */

static struct transfer_call gradient(uint64_t view, int64_t at, int64_t ordinal)
{
    return (struct transfer_call){ .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_GRADIENT,
                                   .sender = "worker-0",
                                   .incarnation = 100,
                                   .generation = CHIEF.generation,
                                   .view = view,
                                   .at = at,
                                   .ordinal = ordinal,
                                   .index = 1 };
}

static void not_taken(struct party *p, struct transfer_call t, enum err_code code, const char *text)
{
    struct err e;
    ck_fails(transfer(p, 1, &t, &e), code, text);
}

START_TEST(transfers_of_another_view_or_process_are_refused)
{
    struct party p;
    struct err e = { 0 };
    struct transfer_call t = gradient(2, 0, 1);
    party_open(&p, 2, _i);
    start(&p, 2, 0, 3);
    not_taken(&p, gradient(1, 0, 1), ERR_FENCED, "view 1 is over");
    not_taken(&p, gradient(3, 0, 1), ERR_NOT_READY, "it does not know view 3 yet");
    t.generation++;
    not_taken(&p, t, ERR_NOT_READY, "it does not know view 2 yet");
    t = gradient(2, 0, 1);
    t.incarnation = 99;
    not_taken(&p, t, ERR_FENCED, "worker-0 is not a member of view 2");
    t.sender = "worker-7";
    not_taken(&p, t, ERR_FENCED, "worker-7 is not a member of view 2");
    t = gradient(2, 0, 1);
    t.index = 0;
    not_taken(&p, t, ERR_INPUT, "chunk 0 of 2 belongs to another member");
    t.index = 1;
    ck_ok_e(transfer(&p, 1, &t, &e));
    stop(&p, 3, 3);
    not_taken(&p, t, ERR_FENCED, "view 2 is over");
    party_close(&p);
}
END_TEST

/* Until then it asks senders to try again. */
static void await_step(struct party *p, size_t i, int64_t at)
{
    struct err e = { 0 };
    ck_ok_e(collective_enter(p->members[i].collective, at, -1, CALL_WAIT_MS, &e));
    collective_leave(p->members[i].collective);
}

/* A member may be one step behind: what comes for the next step waits there. */
START_TEST(a_gradient_of_the_next_step_waits)
{
    static const size_t BOTH[] = { 0, 1 };
    struct party p;
    struct err e = { 0 };
    struct transfer_call t = gradient(1, 4, 5);
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    await_step(&p, 1, 0);
    ck_ok_e(transfer(&p, 1, &t, &e));
    not_taken(&p, gradient(1, 8, 9), ERR_NOT_READY, "it is at batch 0, the gradient is of the step of batch 8");
    give_all(&p, BOTH, 2, 0, EPOCH);
    check_values(&p, 0, EPOCH);
    check_values(&p, 1, EPOCH);
    t = gradient(1, 0, 0); /* of a step that is over: it has it from elsewhere */
    ck_ok_e(transfer(&p, 1, &t, &e));
    party_close(&p);
}
END_TEST

START_TEST(values_do_not_change_while_a_batch_is_computed)
{
    struct party p;
    struct err e = { 0 };
    float before[FLOATS];
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    ck_ok_e(collective_enter(p.members[0].collective, 0, -1, CALL_WAIT_MS, &e));
    memcpy(before, p.members[0].vector, sizeof(before));
    for (int64_t o = 0; o < 4; o++)
        given(&p, 1, o);
    check_values(&p, 1, 4);       /* all sums are there */
    for (int i = 0; i < 200; i++) /* its own thread has time to make the update, if it may */
        ck_assert_int_eq(place(&p, 0), 0);
    check_same(p.members[0].vector, before);
    collective_leave(p.members[0].collective);
    check_values(&p, 0, 4);
    party_close(&p);
}
END_TEST

START_TEST(the_chief_learns_what_is_applied_and_what_waits)
{
    static const size_t BOTH[] = { 0, 1 };
    struct party p;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    give_all(&p, BOTH, 2, 0, 4);
    check_values(&p, 0, 4);
    given(&p, 1, 6);
    Trainyard__V1__ViewReply *r = asked(&p, 0);
    ck_assert_int_eq(r->state, TRAINYARD__V1__MEMBER_STATE__MEMBER_TRAINING);
    ck_assert_int_eq(r->version, 1);
    ck_assert_int_eq(r->at, 4);
    ck_assert_int_eq(r->applied->low_water, 4);
    ck_assert_uint_eq(r->applied->n_ranges, 2);
    ck_assert_int_eq(r->applied->ranges[0], 6);
    ck_assert_int_eq(r->applied->ranges[1], 7);
    ck_assert(!r->terminating);
    protobuf_c_message_free_unpacked(&r->base, NULL);
    party_close(&p);
}
END_TEST

/* A step whose gradients are all here is not applied everywhere: its last batch does not count yet. */
START_TEST(a_complete_step_counts_when_it_is_applied)
{
    struct party p;
    struct err e = { 0 };
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    ck_ok_e(collective_enter(p.members[0].collective, 0, -1, CALL_WAIT_MS, &e)); /* holds the update up */
    for (int64_t o = 0; o < 4; o++)
        given(&p, 1, o);
    Trainyard__V1__ViewReply *r = asked(&p, 0);
    ck_assert_int_eq(r->applied->low_water, 3);
    ck_assert_uint_eq(r->applied->n_ranges, 0);
    protobuf_c_message_free_unpacked(&r->base, NULL);
    collective_leave(p.members[0].collective);
    check_values(&p, 0, 4);
    party_close(&p);
}
END_TEST

START_TEST(another_chief_ends_the_view)
{
    struct party p;
    struct err e = { 0 };
    struct shard_caller next = CHIEF;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    next.generation++;
    next.incarnation = 5;
    ck_ok_e(shard_adopt(p.members[0].shard, &next, &e));
    Trainyard__V1__ViewReply *r = asked(&p, 0);
    ck_assert_int_eq(r->state, TRAINYARD__V1__MEMBER_STATE__MEMBER_HOLDING);
    ck_assert_uint_eq(r->generation, next.generation);
    ck_assert_uint_eq(r->chief_incarnation, 5);
    protobuf_c_message_free_unpacked(&r->base, NULL);
    refused(&p, 0, begin_at(2, 0, 3, -1), ERR_FENCED, "generation 2 of another chief has begun");
    party_close(&p);
}
END_TEST

static int parameters_call(struct party *p, size_t to, const char *path, ProtobufCMessage *q, struct err *e)
{
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    codec_pack(q, &head);
    return rpc_unary(p->members[to].channel, path, head.data, head.len, NULL, 0, CALL_WAIT_MS, &m, e);
}

static Trainyard__V1__Header of_chief(void)
{
    Trainyard__V1__Header h;
    trainyard__v1__header__init(&h);
    h.job_uid = unconst(CHIEF.job_uid);
    h.sender = unconst("chief-0");
    h.generation = CHIEF.generation;
    h.incarnation = CHIEF.incarnation;
    return h;
}

START_TEST(a_member_that_trains_is_not_filled)
{
    struct party p;
    struct err e;
    Trainyard__V1__Header header = of_chief();
    Trainyard__V1__RestoreRequest q;
    trainyard__v1__restore_request__init(&q);
    q.header = &header;
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    ck_fails(parameters_call(&p, 0, "/trainyard.v1.Parameters/Restore", &q.base, &e), ERR_NOT_READY,
             "it computes from the state that is to be replaced");
    party_close(&p);
}
END_TEST

/* ---- leaving ---- */

static void confirm(struct party *p, size_t to, int64_t at)
{
    struct err e = { 0 };
    Trainyard__V1__Header header = of_chief();
    Trainyard__V1__SnapshotRequest q;
    trainyard__v1__snapshot_request__init(&q);
    q.header = &header;
    q.confirm = true;
    q.at = at;
    ck_ok_e(parameters_call(p, to, "/trainyard.v1.Parameters/Snapshot", &q.base, &e));
}

static bool may_leave(struct party *p, size_t i)
{
    return collective_may_leave(p->members[i].collective, 0); /* a time at which the chief was heard */
}

START_TEST(a_stopped_member_stays_until_its_state_is_saved)
{
    static const size_t BOTH[] = { 0, 1 };
    struct party p;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    give_all(&p, BOTH, 2, 0, 4);
    check_values(&p, 0, 4);
    collective_terminating(p.members[0].collective);
    Trainyard__V1__ViewReply *r = asked(&p, 0);
    ck_assert(r->terminating);
    protobuf_c_message_free_unpacked(&r->base, NULL);
    ck_assert(!may_leave(&p, 0));
    confirm(&p, 0, 0); /* a checkpoint of an earlier step */
    ck_assert(!may_leave(&p, 0));
    confirm(&p, 0, 4);
    ck_assert(may_leave(&p, 0));
    party_close(&p);
}
END_TEST

START_TEST(it_may_leave_when_others_train_without_it)
{
    struct party p;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    collective_terminating(p.members[0].collective);
    stop(&p, 2, 3);
    ck_assert(!may_leave(&p, 0)); /* the next view may begin with it */
    start(&p, 2, 0, 2);
    ordered(&p, 0, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_ASK, 2, 0, 0, -1 });
    ck_assert(may_leave(&p, 0));
    party_close(&p);
}
END_TEST

START_TEST(it_may_leave_when_no_chief_is_heard_or_it_has_no_state)
{
    struct party p;
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    ck_assert(!may_leave(&p, 0));
    ck_assert(collective_may_leave(p.members[0].collective, clock_ms() + 4000));
    member_start(&p, 1, 101);
    ck_assert(may_leave(&p, 1));
    party_close(&p);
}
END_TEST

/* ---- newcomers that are slow ---- */

START_TEST(sums_are_kept_until_the_newcomer_takes_them)
{
    static const size_t OLD[] = { 0, 1 };
    struct party p;
    party_open(&p, 2, _i);
    start(&p, 1, 0, 3);
    member_start(&p, 2, 102);
    member_init(&p, 2);
    ordered(&p, 0, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_DONATE, 1, 0, 0, 2 });
    give_all(&p, OLD, 2, 0, 2 * EPOCH); /* it is not there yet */
    check_values(&p, 0, 2 * EPOCH);
    ordered(&p, 2, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_JOIN, 1, 0, 0, 0 });
    ck_wait(place(&p, 2) >= 2 * EPOCH);
    float want[FLOATS];
    values_at(p.reference, 2 * EPOCH, want);
    (void)done_below(p.members[2].shard); /* takes the locks of the segments */
    check_same(p.members[2].vector, want);
    party_close(&p);
}
END_TEST

static bool is_close(struct party *p, size_t i)
{
    Trainyard__V1__ViewReply *r = asked(p, i);
    bool close = r->state == TRAINYARD__V1__MEMBER_STATE__MEMBER_JOINING && r->behind == 0;
    protobuf_c_message_free_unpacked(&r->base, NULL);
    return close;
}

START_TEST(a_newcomer_that_has_all_steps_is_not_behind)
{
    static const size_t OLD[] = { 0 };
    struct party p;
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    give_all(&p, OLD, 1, 0, EPOCH);
    check_values(&p, 0, EPOCH);
    member_start(&p, 1, 101);
    member_init(&p, 1);
    join(&p, 1, 0, 1);
    ck_wait(is_close(&p, 1));
    ordered(&p, 0, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_FORGET, 1, 0, 0, 1 });
    party_close(&p);
}
END_TEST

static bool gave_up(struct party *p, size_t i, const char *why)
{
    Trainyard__V1__ViewReply *r = asked(p, i);
    bool over = r->state != TRAINYARD__V1__MEMBER_STATE__MEMBER_JOINING && strstr(r->trouble, why) != NULL;
    protobuf_c_message_free_unpacked(&r->base, NULL);
    return over;
}

/* It came too late, and its donor has given it up. The chief learns that, and lets it join again. */
START_TEST(a_newcomer_for_whom_nothing_is_kept_gives_up)
{
    struct party p;
    party_open(&p, 1, _i);
    start(&p, 1, 0, 1);
    member_start(&p, 1, 101);
    member_init(&p, 1);
    ordered(&p, 1, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_JOIN, 1, 0, 0, 0 });
    ck_wait(gave_up(&p, 1, "it keeps no state for worker-1"));
    join(&p, 1, 0, 1);
    ck_wait(is_close(&p, 1));
    ordered(&p, 0, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_FORGET, 1, 0, 0, 1 });
    party_close(&p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("collective");
    TCase *t = tcase_create("collective");
    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, all_members_have_the_bits_of_a_parameter_server, 0, TRANSPORTS);
    tcase_add_loop_test(t, one_member_alone_has_them_too, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_gradient_that_is_given_twice_counts_once, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_step_that_is_over_is_stale, 0, TRANSPORTS);
    tcase_add_loop_test(t, it_says_which_gradients_are_missing, 0, TRANSPORTS);
    tcase_add_loop_test(t, the_others_make_the_step_again_when_a_member_is_lost, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_gradient_on_its_way_to_a_lost_member_is_given_again, 0, TRANSPORTS);
    tcase_add_loop_test(t, who_is_a_step_behind_takes_the_sums_of_another_member, 0, TRANSPORTS);
    tcase_add_loop_test(t, sums_that_were_taken_are_passed_on, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_newcomer_takes_the_state_and_the_steps_since, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_newcomer_with_another_state_does_not_train, 0, TRANSPORTS);
    tcase_add_loop_test(t, orders_that_do_not_fit_are_refused, 0, TRANSPORTS);
    tcase_add_loop_test(t, transfers_of_another_view_or_process_are_refused, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_gradient_of_the_next_step_waits, 0, TRANSPORTS);
    tcase_add_loop_test(t, values_do_not_change_while_a_batch_is_computed, 0, TRANSPORTS);
    tcase_add_loop_test(t, the_chief_learns_what_is_applied_and_what_waits, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_complete_step_counts_when_it_is_applied, 0, TRANSPORTS);
    tcase_add_loop_test(t, another_chief_ends_the_view, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_member_that_trains_is_not_filled, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_stopped_member_stays_until_its_state_is_saved, 0, TRANSPORTS);
    tcase_add_loop_test(t, it_may_leave_when_others_train_without_it, 0, TRANSPORTS);
    tcase_add_loop_test(t, it_may_leave_when_no_chief_is_heard_or_it_has_no_state, 0, TRANSPORTS);
    tcase_add_loop_test(t, sums_are_kept_until_the_newcomer_takes_them, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_newcomer_that_has_all_steps_is_not_behind, 0, TRANSPORTS);
    tcase_add_loop_test(t, a_newcomer_for_whom_nothing_is_kept_gives_up, 0, TRANSPORTS);
    suite_add_tcase(s, t);
    return s;
}
