/* Members of one host share memory: who does, and what a member answers to requests that another one writes there. The
 * tests of test_collective.c and test_collective_steps.c run through such memory, too. */
#include "collective_fixture.h"

#include <unistd.h>

#include "collective/collective_internal.h"
#include "collective/transfer_slot.h"

static size_t shared_by(struct party *p, size_t i)
{
    return collective_shared(p->members[i].collective);
}

/* A step of batches [at, at + 4), by two members. */
static void step(struct party *p, int64_t at)
{
    for (int64_t o = at; o < at + 4; o++)
        given(p, (size_t)o % 2, o);
    for (size_t i = 0; i < 2; i++)
        check_values(p, i, at + 4);
}

/* A float of the memory of member i behind its gradient, which nobody writes: other memory has 0 there. */
static float *mark_of(struct party *p, size_t i)
{
    float *gradient = collective_gradient(p->members[i].collective);
    ck_assert_ptr_nonnull(gradient);
    return gradient + FLOATS;
}

START_TEST(members_of_one_host_share_memory)
{
    struct party p;
    party_open(&p, 2, true);
    start(&p, 1, 0, 3);
    ck_assert_uint_eq(shared_by(&p, 0), 0);
    step(&p, 0);
    ck_assert_uint_eq(shared_by(&p, 0), 1);
    ck_assert_uint_eq(shared_by(&p, 1), 1);
    *mark_of(&p, 0) = 7;
    stop(&p, 1, 3);
    start(&p, 2, 4, 3);
    step(&p, 4);
    ck_assert(*mark_of(&p, 0) == 7); /* the memory stays in the next view */
    party_close(&p);
}
END_TEST

/* Member 1 is held, and the view ends: it may read the gradient later. */
START_TEST(memory_with_a_request_that_has_no_answer_is_replaced)
{
    struct party p;
    struct err e = { 0 };
    party_open(&p, 2, true);
    start(&p, 1, 0, 3);
    step(&p, 0);
    struct collective *c = p.members[0].collective;
    ck_ok_e(collective_enter(c, 4, 4, CALL_WAIT_MS, &e));
    *mark_of(&p, 0) = 7;
    {
        MUTEX_GUARD(&p.members[1].collective->lock);
        collective_give(c, 4, gradient_of(&p, 0, 4), 0);
        stop(&p, 2, 1);
        ck_fails(collective_given(c, &e), ERR_PENDING, "no answer through shared memory");
        collective_leave(c);
    }
    ck_assert(*mark_of(&p, 0) == 7);
    stop(&p, 2, 2);
    start(&p, 2, 4, 3);
    step(&p, 4);
    ck_assert(*mark_of(&p, 0) == 0);
    ck_assert_uint_eq(shared_by(&p, 1), 1);
    party_close(&p);
}
END_TEST

/* _i: the one that does not want to; 2: both want to, but seem to be on different hosts. */
START_TEST(one_that_does_not_share_exchanges_through_calls)
{
    struct party p;
    party_open(&p, 0, false);
    for (size_t i = 0; i < 2; i++) {
        p.share = (int)i != _i;
        member_start(&p, i, 100 + i);
        member_fill(&p, i);
    }
    if (_i == 2)
        str_fmt(p.members[1].address, sizeof(p.members[1].address), "localhost:%d",
                rpc_server_port(p.members[1].server));
    start(&p, 1, 0, 3);
    step(&p, 0);
    step(&p, 4);
    ck_assert_uint_eq(shared_by(&p, 0) + shared_by(&p, 1), 0);
    party_close(&p);
}
END_TEST

START_TEST(a_member_of_another_process_gets_other_memory)
{
    struct party p;
    party_open(&p, 2, true);
    start(&p, 1, 0, 3);
    step(&p, 0);
    stop(&p, 1, 3);
    member_stop(&p, 1);
    member_start(&p, 1, 201);
    member_init(&p, 1);
    start(&p, 2, 4, 1);
    for (int64_t o = 4; o < 8; o++)
        given(&p, 0, o);
    check_values(&p, 0, 8);
    join(&p, 1, 0, 2);
    ck_wait(place(&p, 1) >= 8);
    stop(&p, 2, 3);
    start(&p, 3, 8, 3);
    given(&p, 0, 8);
    given(&p, 1, 9);
    for (size_t i = 0; i < 2; i++)
        check_values(&p, i, 10);
    ck_assert_uint_eq(shared_by(&p, 0), 1);
    ck_assert_uint_eq(shared_by(&p, 1), 1);
    party_close(&p);
}
END_TEST

/* ---- what a member may be told ---- */

struct hostile {
    struct shm_region *region;
    struct transfer_memory plan;
    struct transfer_slot *slots[TRANSFER_SLOTS];
    uint32_t asked[TRANSFER_SLOTS];
};

static void hostile_open(struct hostile *h, size_t floats)
{
    struct err e = { 0 };
    *h = (struct hostile){ .plan = transfer_memory_plan(floats) };
    ck_ok_e(shm_region_make(h->plan.size - SHM_REGION_START, &h->region, &e));
    for (size_t k = 0; k < TRANSFER_SLOTS; k++)
        h->slots[k] = (struct transfer_slot *)(void *)(h->region->data + h->plan.slots_at) + k;
}

static Trainyard__V1__AttachRequest offer_of(const struct hostile *h)
{
    Trainyard__V1__AttachRequest q = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    q.pid = getpid();
    q.fd = h->region->fd;
    q.size = h->region->size;
    q.nonce = (ProtobufCBinaryData){ .data = h->region->data, .len = SHM_REGION_NONCE };
    q.slots_at = h->plan.slots_at;
    q.slots = TRANSFER_SLOTS;
    q.slot_version = TRANSFER_SLOT_VERSION;
    return q;
}

/* As worker-1 of the view sends it to worker-0. */
static int attach(struct party *p, uint64_t incarnation, Trainyard__V1__AttachRequest *offer, struct err *e)
{
    Trainyard__V1__Header header;
    Trainyard__V1__TransferRequest q;
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    trainyard__v1__header__init(&header);
    trainyard__v1__transfer_request__init(&q);
    header.job_uid = unconst(CHIEF.job_uid);
    header.sender = unconst("worker-1");
    header.generation = 1;
    header.incarnation = incarnation;
    q.header = &header;
    q.view = 1;
    q.kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_ATTACH;
    q.offer = offer;
    codec_pack(&q.base, &head);
    return rpc_unary(p->members[0].channel, "/trainyard.v1.Peer/Transfer", head.data, head.len, NULL, 0, CALL_WAIT_MS,
                     &m, e);
}

START_TEST(memory_of_another_form_or_sender_is_refused)
{
    struct party p;
    struct err e = { 0 };
    struct hostile h;
    party_open(&p, 2, true);
    start(&p, 1, 0, 3);
    hostile_open(&h, FLOATS);
    const Trainyard__V1__AttachRequest good = offer_of(&h);
    Trainyard__V1__AttachRequest q = good;
    ck_fails(attach(&p, 101, NULL, &e), ERR_REFUSED, "share");
    ck_fails(attach(&p, 999, &q, &e), ERR_FENCED, "");
    q.slot_version++;
    ck_fails(attach(&p, 101, &q, &e), ERR_REFUSED, "version 2");
    q = good;
    q.size += SHM_REGION_START;
    ck_fails(attach(&p, 101, &q, &e), ERR_REFUSED, "bytes");
    q = good;
    q.slots--;
    ck_fails(attach(&p, 101, &q, &e), ERR_REFUSED, "1 slots");
    q = good;
    q.slots_at = q.size - 64;
    ck_fails(attach(&p, 101, &q, &e), ERR_REFUSED, "beyond");
    q = good;
    q.nonce.data = (uint8_t[SHM_REGION_NONCE]){ 1 };
    ck_fails(attach(&p, 101, &q, &e), ERR_REFUSED, "");
    ck_assert_uint_eq(shared_by(&p, 0), 0);
    q = good;
    ck_ok_e(attach(&p, 101, &q, &e));
    ck_assert_uint_eq(shared_by(&p, 0), 1);
    shm_region_free(h.region);
    party_close(&p);
}
END_TEST

static struct transfer_slot_request request_of(const struct hostile *h, int64_t ordinal)
{
    return (struct transfer_slot_request){ .generation = 1,
                                           .view = 1,
                                           .at = groups_first(&G, ordinal),
                                           .ordinal = ordinal,
                                           .gradient_at = h->plan.gradient_at,
                                           .sums_at = h->plan.sums_at };
}

static void check_answer(struct hostile *h, const struct transfer_slot_request *q, enum err_code code, const char *text)
{
    struct transfer_slot *slot = h->slots[0];
    slot->request = *q;
    shm_slot_post(&slot->base.asked, ++h->asked[0]);
    ck_wait(atomic_load(&slot->base.answered) == h->asked[0]);
    ck_assert_int_eq(slot->base.code, (int)code);
    ck_assert_msg(code == ERR_NONE || strstr(slot->base.text, text) != NULL, "%s", slot->base.text);
}

START_TEST(requests_that_do_not_fit_are_answered_with_an_error)
{
    struct party p;
    struct err e = { 0 };
    struct hostile h;
    party_open(&p, 2, true);
    start(&p, 1, 0, 3);
    hostile_open(&h, FLOATS);
    Trainyard__V1__AttachRequest offer = offer_of(&h);
    ck_ok_e(attach(&p, 101, &offer, &e));
    const struct transfer_slot_request good = request_of(&h, 1);
    struct transfer_slot_request q = good;
    q.view = 2;
    check_answer(&h, &q, ERR_NOT_READY, "");
    q = good;
    q.generation = 9;
    check_answer(&h, &q, ERR_NOT_READY, "");
    q = good;
    q.at = 400;
    check_answer(&h, &q, ERR_NOT_READY, "at batch 0");
    q = good;
    q.ordinal = 4;
    check_answer(&h, &q, ERR_INPUT, "not in the group");
    q = good;
    q.chunk = 7;
    check_answer(&h, &q, ERR_INPUT, "chunk 7");
    q = good;
    q.chunk = 1; /* its own */
    check_answer(&h, &q, ERR_INPUT, "chunk 1");
    static const uint64_t BEYOND[] = { UINT64_MAX - 3, UINT64_MAX / 2, 1 };
    for (size_t i = 0; i < COUNT_OF(BEYOND); i++) {
        q = good;
        q.gradient_at = BEYOND[i];
        check_answer(&h, &q, ERR_INPUT, "0 bytes");
    }
    q.gradient_at = h.plan.size;
    check_answer(&h, &q, ERR_INPUT, "0 bytes");
    fill(p.layout, 2, (float *)(void *)(h.region->data + h.plan.gradient_at));
    q = good;
    q.want_sum = 1;
    q.wait_ms = 1;
    check_answer(&h, &q, ERR_PENDING, "gradients are missing");
    for (int64_t o = 0; o < 4; o += 1 + (o == 0)) /* 1 is there */
        given(&p, 0, o);
    q.sums_at = h.plan.size - 4;
    check_answer(&h, &q, ERR_INPUT, "a sum beyond");
    q.sums_at = good.sums_at;
    check_answer(&h, &q, ERR_NONE, "");
    shm_region_free(h.region);
    party_close(&p);
}
END_TEST

/* ---- the plan ---- */

START_TEST(the_memory_has_room_for_slots_gradient_and_sums)
{
    const struct transfer_memory m = transfer_memory_plan(1000);
    ck_assert_uint_ge(m.gradient_at,
                      transfer_slots_at(&m, SLOT_CLIENTS_MAX - 1) + TRANSFER_SLOTS * sizeof(struct transfer_slot));
    ck_assert_uint_ge(m.sums_at, m.gradient_at + 4000);
    ck_assert_uint_ge(m.size, m.sums_at + 4000);
    ck_assert_uint_eq(m.gradient_at % SHM_REGION_START + m.sums_at % SHM_REGION_START, 0);
    ck_assert_uint_gt(transfer_memory_plan(TRANSFER_MEMORY_MAX / 8).size, 0);
    ck_assert_uint_eq(transfer_memory_plan(TRANSFER_MEMORY_MAX / 8 + 1).size, 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("collective_share");
    TCase *t = tcase_create("share");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, members_of_one_host_share_memory);
    tcase_add_test(t, memory_with_a_request_that_has_no_answer_is_replaced);
    tcase_add_loop_test(t, one_that_does_not_share_exchanges_through_calls, 0, 3);
    tcase_add_test(t, a_member_of_another_process_gets_other_memory);
    tcase_add_test(t, memory_of_another_form_or_sender_is_refused);
    tcase_add_test(t, requests_that_do_not_fit_are_answered_with_an_error);
    tcase_add_test(t, the_memory_has_room_for_slots_gradient_and_sums);
    suite_add_tcase(s, t);
    return s;
}
