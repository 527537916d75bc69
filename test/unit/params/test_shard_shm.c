/* How a ps uses memory of workers of its host. It serves slots, refuses what reaches beyond the memory, and releases
 * the memory of a process that has ended. */
#include "shard/shard_fixture.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "params/push_slot.h"
#include "params/shard_service.h"
#include "params/shard_service_internal.h"
#include "params/shm_region.h"
#include "rpc/rpc.h"

enum {
    FLOATS = 80,
    SLOTS_AT = SHM_REGION_START,
    SEGMENTS = 8,
    GRADS_AT = 2 * SHM_REGION_START,
    VALUES_AT = 3 * SHM_REGION_START,
    BYTES = 4 * SHM_REGION_START
};

struct ps {
    struct layout *layout;
    struct shard *shard;
    struct shard_service *service;
    struct rpc_method methods[SHARD_METHODS];
};

static void ps_open(struct ps *p)
{
    static const float zeros[FLOATS];
    p->layout = small_layout();
    p->shard = serving(p->layout, SGD, zeros);
    p->service = shard_service_new(p->shard);
    atomic_store(&p->service->share_max, (size_t)BYTES + SHM_REGION_START);
    shard_service_methods(p->service, p->methods);
}

static void ps_close(struct ps *p)
{
    shard_service_free(p->service);
    shard_free(p->shard);
    layout_free(p->layout);
}

/* Attach as a worker sends it. */
static int attach(struct ps *p, int pid, const struct shm_region *r, const char *sender, uint32_t slots,
                  uint64_t slots_at, uint32_t version, struct err *e)
{
    Trainyard__V1__Header header;
    trainyard__v1__header__init(&header);
    header.job_uid = unconst(UID);
    header.sender = unconst(sender);
    header.generation = 1;
    Trainyard__V1__AttachRequest q = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    q.header = &header;
    q.pid = pid;
    q.fd = r->fd;
    q.size = r->size;
    q.nonce = (ProtobufCBinaryData){ .data = r->data, .len = SHM_REGION_NONCE };
    q.slots_at = slots_at;
    q.slots = slots;
    q.slot_segments = (uint32_t)MIN((size_t)SEGMENTS, p->layout->n);
    q.slot_version = version;
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    codec_pack(&q.base, &head);
    ck_assert_int_eq(rpc_message_of(head.data, head.len, &m, e), 0);
    struct rpc_reply reply = { .head = BUF_INIT };
    int rc = rpc_method_call(&p->methods[PS_ATTACH], &(struct rpc_connection){ .leader = ROLE_CHIEF }, m, &reply, e);
    buf_fini(&reply.head);
    return rc;
}

static struct push_slot *slot_of(const struct shm_region *r)
{
    return (struct push_slot *)(void *)(r->data + SLOTS_AT);
}

static const struct push_slot *ask(struct push_slot *s, const struct push_slot_request *q)
{
    uint32_t number = atomic_load(&s->base.asked) + 1;
    s->request = *q;
    shm_slot_post(&s->base.asked, number);
    ck_wait(shm_slot_wait(&s->base.answered, number - 1, 1000));
    return s;
}

static struct push_slot_request request(struct shard *s, int64_t ordinal)
{
    struct shard_sizes sizes;
    struct err e;
    ck_ok_e(shard_measure(s, (struct shard_part){ 0 }, &sizes, &e));
    return (struct push_slot_request){ .ordinal = ordinal,
                                       .generation = 1,
                                       .gradients_at = GRADS_AT,
                                       .values_at = VALUES_AT,
                                       .count = (uint32_t)sizes.segments };
}

START_TEST(a_push_through_a_slot_is_applied_once)
{
    struct ps p;
    struct err e;
    AUTO(shm_region) *r = NULL;
    ps_open(&p);
    ck_ok_e(shm_region_make(BYTES, &r, &e));
    ck_ok_e(attach(&p, getpid(), r, "worker-0", 1, SLOTS_AT, PUSH_SLOT_VERSION, &e));
    float *grads = shm_region_at(r, GRADS_AT, FLOATS * sizeof(float)),
          *values = shm_region_at(r, VALUES_AT, FLOATS * sizeof(float));
    for (size_t i = 0; i < FLOATS; i++)
        grads[i] = 1;
    struct push_slot_request q = request(p.shard, 3);
    for (int again = 0; again < 2; again++) {
        const struct push_slot *s = ask(slot_of(r), &q);
        ck_assert_msg(s->base.code == ERR_NONE, "%s", s->base.text);
        ck_assert_int_eq(s->answer.duplicate, again);
        ck_assert_uint_eq(s->answer.incarnation, 11);
        ck_assert_int_eq(slot_of(r)->versions[0], 1);
        ck_float(values[0], -0.5);
    }
    ps_close(&p);
}
END_TEST

START_TEST(a_bad_request_is_refused)
{
    struct ps p;
    struct err e;
    AUTO(shm_region) *r = NULL;
    ps_open(&p);
    ck_ok_e(shm_region_make(BYTES, &r, &e));
    ck_ok_e(attach(&p, getpid(), r, "worker-0", 1, SLOTS_AT, PUSH_SLOT_VERSION, &e));
    const struct push_slot_request good = request(p.shard, 0);
    struct push_slot_request q[10];
    for (size_t i = 0; i < COUNT_OF(q); i++)
        q[i] = good;
    q[0].count = 0;
    q[1].count = SEGMENTS + 1;
    q[2].first = 1000;
    q[3].gradients_at = r->size;
    q[4].values_at = r->size - 8;
    q[5].gradients_at = UINT64_MAX - 3;
    q[6].values_at = 8; /* the nonce */
    q[7].gradients_at = GRADS_AT + 2;
    q[8].generation = 0;
    q[9].ordinal = -1;
    for (size_t i = 0; i < COUNT_OF(q); i++)
        ck_assert_msg(ask(slot_of(r), &q[i])->base.code != ERR_NONE, "request %zu", i);
    ck_assert_int_eq(ask(slot_of(r), &good)->base.code, ERR_NONE); /* and it continues to serve */
    ps_close(&p);
}
END_TEST

START_TEST(a_bad_offer_is_refused)
{
    struct ps p;
    struct err e;
    AUTO(shm_region) *r = NULL;
    ps_open(&p);
    ck_ok_e(shm_region_make(BYTES, &r, &e));
    ck_fails(attach(&p, getpid(), r, "worker-0", 1, SLOTS_AT, PUSH_SLOT_VERSION + 1, &e), ERR_REFUSED, "version");
    ck_fails(attach(&p, getpid(), r, "worker-0", 0, SLOTS_AT, PUSH_SLOT_VERSION, &e), ERR_REFUSED, "slots");
    ck_fails(attach(&p, getpid(), r, "worker-0", SLOTS_MAX + 1, SLOTS_AT, PUSH_SLOT_VERSION, &e), ERR_REFUSED, "slots");
    ck_fails(attach(&p, getpid(), r, "worker-0", 1, SLOTS_AT + 4, PUSH_SLOT_VERSION, &e), ERR_REFUSED, "slots");
    ck_fails(attach(&p, getpid(), r, "worker-0", 1, BYTES + SHM_REGION_START - 64, PUSH_SLOT_VERSION, &e), ERR_REFUSED,
             "beyond");
    ck_fails(attach(&p, -1, r, "worker-0", 1, SLOTS_AT, PUSH_SLOT_VERSION, &e), ERR_REFUSED, "process");
    atomic_store(&p.service->share_max, (size_t)BYTES);
    ck_fails(attach(&p, getpid(), r, "worker-0", 1, SLOTS_AT, PUSH_SLOT_VERSION, &e), ERR_REFUSED,
             "this job needs 16384");
    ck_assert_uint_eq(shard_service_shared(p.service), 0);
    ps_close(&p);
}
END_TEST

static void await_shared(struct ps *p, size_t wanted)
{
    ck_wait(shard_service_shared(p->service) == wanted);
}

START_TEST(memory_that_is_given_up_is_let_go)
{
    struct ps p;
    struct err e;
    AUTO(shm_region) *r = NULL, *next = NULL;
    ps_open(&p);
    ck_ok_e(shm_region_make(BYTES, &r, &e));
    ck_ok_e(shm_region_make(BYTES, &next, &e));
    ck_ok_e(attach(&p, getpid(), r, "worker-0", 2, SLOTS_AT, PUSH_SLOT_VERSION, &e));
    ck_ok_e(attach(&p, getpid(), next, "worker-0", 1, SLOTS_AT, PUSH_SLOT_VERSION, &e)); /* in place of the first */
    ck_assert_uint_eq(shard_service_shared(p.service), 1);
    atomic_store(&slot_of(next)->base.closed, 1);
    shm_slot_wake(&slot_of(next)->base.asked);
    await_shared(&p, 0);
    ps_close(&p);
}
END_TEST

START_TEST(memory_of_a_dead_worker_is_let_go)
{
    struct ps p;
    struct err e;
    AUTO(shm_region) *r = NULL;
    ck_ok_e(shm_region_make(BYTES, &r, &e)); /* the child has the same descriptor */
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    ps_open(&p);
    ck_ok_e(attach(&p, child, r, "worker-0", 1, SLOTS_AT, PUSH_SLOT_VERSION, &e));
    ck_assert_uint_eq(shard_service_shared(p.service), 1);
    kill(child, SIGKILL);
    await_shared(&p, 0);
    waitpid(child, NULL, 0);
    ps_close(&p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shard_shm");
    TCase *c = tcase_create("all");
    tcase_add_test(c, a_push_through_a_slot_is_applied_once);
    tcase_add_test(c, a_bad_request_is_refused);
    tcase_add_test(c, a_bad_offer_is_refused);
    tcase_add_test(c, memory_that_is_given_up_is_let_go);
    tcase_add_test(c, memory_of_a_dead_worker_is_let_go);
    suite_add_tcase(s, c);
    return s;
}
