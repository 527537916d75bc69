/* collective_fixture - members of an all-reduce in one process, each with a server of its own, and the chief's orders
 * to them. A shard with the same gradients, as a parameter server has it, says what the values must be. */
#ifndef TRAINYARD_COLLECTIVE_COLLECTIVE_FIXTURE_H
#define TRAINYARD_COLLECTIVE_COLLECTIVE_FIXTURE_H

#include "shard/sync_fixture.h"

#include "collective/collective.h"
#include "collective/view.h"
#include "params/parameters_codec.h"
#include "rpc/peer.pb-c.h"

enum { MEMBERS = 4, CALL_WAIT_MS = 20000 };
enum { TRANSPORTS = 2 }; /* a test has _i 0: gRPC; 1: the members share memory */

struct party_member {
    char name[16], address[32];
    uint64_t incarnation;
    _Alignas(64) float vector[FLOATS];
    float grads[FLOATS]; /* where the members do not share memory */
    struct shard *shard;
    struct collective *collective;
    struct rpc_server *server;
    struct rpc_channel *channel;
};

struct party {
    struct layout *layout;
    bool share; /* memory, as members of one host do; else all travels through gRPC */
    struct party_member members[MEMBERS];
    struct shard *reference;
    float begin[FLOATS];
};

static inline void member_start(struct party *p, size_t i, uint64_t incarnation)
{
    struct party_member *m = &p->members[i];
    struct rpc_method methods[COLLECTIVE_METHODS];
    struct err e = { 0 };
    str_fmt(m->name, sizeof(m->name), "worker-%zu", i);
    m->incarnation = incarnation;
    m->shard = shard_new(incarnation);
    shard_take_sums(m->shard);
    shard_use_vector(m->shard, m->vector);
    const struct collective_config config = { .layout = p->layout,
                                              .shard = m->shard,
                                              .name = m->name,
                                              .incarnation = incarnation,
                                              .credentials = &RPC_INSECURE,
                                              .share = p->share };
    ck_ok_e(collective_new(&config, &m->collective, &e));
    collective_methods(m->collective, methods);
    ck_ok_e(rpc_server_start("127.0.0.1:0", &RPC_INSECURE, methods, COLLECTIVE_METHODS,
                             &(struct rpc_server_options){ .threads = 2, .payload_max = PARAMETERS_PAYLOAD_MAX },
                             &m->server, &e));
    collective_serve(m->collective, m->server);
    str_fmt(m->address, sizeof(m->address), "127.0.0.1:%d", rpc_server_port(m->server));
    m->channel = rpc_channel_new(m->address, &RPC_INSECURE, NULL);
}

static inline void member_stop(struct party *p, size_t i)
{
    struct party_member *m = &p->members[i];
    if (m->server == NULL)
        return;
    rpc_channel_free(TAKE(m->channel));
    collective_serve(m->collective, NULL);
    rpc_server_free(TAKE(m->server));
    collective_free(TAKE(m->collective));
    shard_free(TAKE(m->shard));
}

/* The chief's Init, and the state of the beginning. */
static inline void member_fill(struct party *p, size_t i)
{
    begin(p->members[i].shard, &CHIEF, &G, p->layout, ADAM, p->begin);
}

static inline void member_init(struct party *p, size_t i)
{
    struct err e = { 0 };
    struct shard *s = p->members[i].shard;
    ck_ok_e(shard_init(s, &CHIEF, ADAM, p->layout->segments, p->layout->n, p->layout->hash, &e));
    ck_ok_e(shard_set_groups(s, &CHIEF, &G, &e));
}

static inline void party_open(struct party *p, size_t members, bool share)
{
    *p = (struct party){ .layout = small_layout(), .share = share };
    rpc_init();
    fill(p->layout, 99, p->begin);
    p->reference = synchronous(p->layout, ADAM, p->begin);
    for (size_t i = 0; i < members; i++) {
        member_start(p, i, 100 + i);
        member_fill(p, i);
    }
}

static inline void party_close(struct party *p)
{
    for (size_t i = 0; i < MEMBERS; i++)
        member_stop(p, i);
    shard_free(p->reference);
    layout_free(p->layout);
    rpc_shutdown();
}

/* ---- orders ---- */

struct order_call {
    Trainyard__V1__ViewAction action;
    uint64_t view;
    int64_t at;
    unsigned members; /* bits */
    int other;        /* -1: none */
};

static inline void wire_member(const struct party_member *m, Trainyard__V1__ViewMember *ret)
{
    trainyard__v1__view_member__init(ret);
    ret->name = unconst(m->name);
    ret->address = unconst(m->address);
    ret->incarnation = m->incarnation;
}

static inline int order(struct party *p, size_t to, const struct order_call *o, Trainyard__V1__ViewReply **ret,
                        struct err *e)
{
    Trainyard__V1__Header header;
    Trainyard__V1__ViewRequest q;
    Trainyard__V1__ViewMember wire[MEMBERS + 1], *list[MEMBERS];
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    ProtobufCMessage *answer = NULL;
    trainyard__v1__view_request__init(&q);
    trainyard__v1__header__init(&header);
    header.job_uid = unconst(CHIEF.job_uid);
    header.sender = unconst("chief-0");
    header.generation = CHIEF.generation;
    header.incarnation = CHIEF.incarnation;
    q.header = &header;
    q.action = o->action;
    q.view = o->view;
    q.at = o->at;
    q.members = list;
    for (size_t i = 0; i < MEMBERS; i++)
        if (o->members & (1u << i)) {
            wire_member(&p->members[i], &wire[i]);
            list[q.n_members++] = &wire[i];
        }
    if (o->other >= 0) {
        wire_member(&p->members[o->other], &wire[MEMBERS]);
        q.other = &wire[MEMBERS];
    }
    codec_pack(&q.base, &head);
    if (rpc_unary(p->members[to].channel, "/trainyard.v1.Peer/View", head.data, head.len, NULL, 0, CALL_WAIT_MS, &m,
                  e) < 0 ||
        codec_unpack(&trainyard__v1__view_reply__descriptor, m, &answer, e) < 0)
        return -1;
    *ret = (void *)answer;
    return 0;
}

static inline void ordered(struct party *p, size_t to, const struct order_call *o)
{
    Trainyard__V1__ViewReply *r = NULL;
    struct err e = { 0 };
    ck_ok_e(order(p, to, o, &r, &e));
    protobuf_c_message_free_unpacked(&r->base, NULL);
}

static inline void all_ordered(struct party *p, unsigned members, struct order_call o)
{
    for (size_t i = 0; i < MEMBERS; i++)
        if (members & (1u << i))
            ordered(p, i, &o);
}

static inline void start(struct party *p, uint64_t view, int64_t at, unsigned members)
{
    all_ordered(p, members, (struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_START, view, at, members, -1 });
}

static inline void stop(struct party *p, uint64_t view, unsigned members)
{
    all_ordered(p, members, (struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_STOP, view, 0, 0, -1 });
}

static inline Trainyard__V1__ViewReply *asked(struct party *p, size_t i)
{
    Trainyard__V1__ViewReply *r = NULL;
    struct err e = { 0 };
    ck_ok_e(order(p, i, &(struct order_call){ .action = TRAINYARD__V1__VIEW_ACTION__VIEW_ASK, .other = -1 }, &r, &e));
    return r;
}

static inline int64_t place(struct party *p, size_t i)
{
    Trainyard__V1__ViewReply *r = asked(p, i);
    int64_t at = r->at;
    protobuf_c_message_free_unpacked(&r->base, NULL);
    return at;
}

static inline void join(struct party *p, size_t newcomer, size_t donor, uint64_t view)
{
    ordered(p, donor, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_DONATE, view, 0, 0, (int)newcomer });
    ordered(p, newcomer, &(struct order_call){ TRAINYARD__V1__VIEW_ACTION__VIEW_JOIN, view, 0, 0, (int)donor });
}

/* ---- what other members send ---- */

struct transfer_call {
    Trainyard__V1__TransferKind kind;
    const char *sender;
    uint64_t incarnation, generation, view;
    int64_t at, ordinal;
    uint32_t index;
    size_t members; /* of the view; 0: 2 */
    bool want_sum;
    uint32_t wait_ms;
};

/* A gradient has the floats of the chunk of that index. */
static inline int transfer_answer(struct party *p, size_t to, const struct transfer_call *t, struct rpc_message **ret,
                                  struct err *e)
{
    Trainyard__V1__Header header;
    Trainyard__V1__TransferRequest q;
    AUTO_FINI(buf) head = BUF_INIT;
    auto_free struct chunk_range *chunks = NULL;
    float grads[FLOATS] = { 0 };
    trainyard__v1__transfer_request__init(&q);
    trainyard__v1__header__init(&header);
    header.job_uid = unconst(CHIEF.job_uid);
    header.sender = unconst(t->sender);
    header.generation = t->generation;
    header.incarnation = t->incarnation;
    q.header = &header;
    q.view = t->view;
    q.kind = t->kind;
    q.at = t->at;
    q.ordinal = t->ordinal;
    q.index = t->index;
    q.want_sum = t->want_sum;
    q.wait_ms = t->wait_ms;
    view_chunks(FLOATS, t->members > 0 ? t->members : 2, G.size, &chunks);
    fill(p->layout, (uint64_t)t->ordinal + 1, grads);
    const struct rpc_piece piece = { .data = grads + chunks[t->index].from,
                                     .size = (chunks[t->index].to - chunks[t->index].from) * sizeof(float) };
    codec_pack(&q.base, &head);
    return rpc_unary(p->members[to].channel, "/trainyard.v1.Peer/Transfer", head.data, head.len, &piece,
                     t->kind == TRAINYARD__V1__TRANSFER_KIND__TRANSFER_GRADIENT, CALL_WAIT_MS, ret, e);
}

static inline int transfer(struct party *p, size_t to, const struct transfer_call *t, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    return transfer_answer(p, to, t, &m, e);
}

/* ---- steps ---- */

/* The gradient of a member that has entered the step. */
static inline const float *gradient_of(struct party *p, size_t i, int64_t ordinal)
{
    float *shared = collective_gradient(p->members[i].collective);
    float *grads = shared != NULL ? shared : p->members[i].grads;
    memset(grads, 0, FLOATS * sizeof(*grads));
    fill(p->layout, (uint64_t)ordinal + 1, grads);
    return grads;
}

/* next_at: as in collective_enter. */
static inline int give_before(struct party *p, size_t i, int64_t ordinal, int64_t next_at, struct err *e)
{
    struct collective *c = p->members[i].collective;
    if (collective_enter(c, groups_first(&G, ordinal), next_at, CALL_WAIT_MS, e) < 0)
        return -1;
    collective_give(c, ordinal, gradient_of(p, i, ordinal), 0);
    int rc = collective_given(c, e);
    collective_leave(c);
    return rc;
}

static inline int give(struct party *p, size_t i, int64_t ordinal, struct err *e)
{
    return give_before(p, i, ordinal, -1, e);
}

static inline void given(struct party *p, size_t i, int64_t ordinal)
{
    struct err e = { 0 };
    ck_ok_e(give(p, i, ordinal, &e));
}

/* All ordinals below are applied. */
static inline int64_t done_below(struct shard *s)
{
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(s, &info);
    return info.applied.low;
}

/* The values of a member at a step are those of a parameter server. */
static inline void check_values(struct party *p, size_t i, int64_t at)
{
    float want[FLOATS];
    struct err e = { 0 };
    for (int64_t o = done_below(p->reference); o < at; o++)
        push(p->reference, o);
    values_at(p->reference, at, want);
    ck_ok_e(collective_enter(p->members[i].collective, at, -1, CALL_WAIT_MS, &e));
    check_same(p->members[i].vector, want);
    collective_leave(p->members[i].collective);
}

/* Each ordinal of [from, to) is given by a member of its turn. */
static inline void give_all(struct party *p, const size_t *turns, size_t n, int64_t from, int64_t to)
{
    for (int64_t o = from; o < to; o++)
        given(p, turns[(size_t)o % n], o);
}

#endif
