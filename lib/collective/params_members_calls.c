/* The messages to members. Those of one kind are in flight together, so that all that do not answer cost one deadline.
 * What a member answers is checked before it counts. */
#include <string.h>

#include "collective/params_members_internal.h"

static const int64_t AT_MAX = INT64_MAX / 4; /* of an ordinal; above it none is valid */

static void calls_header(const struct holders *h, Trainyard__V1__Header *ret)
{
    trainyard__v1__header__init(ret);
    ret->job_uid = unconst(h->p.id.job_uid);
    ret->sender = unconst(h->p.id.sender);
    ret->generation = h->p.generation;
    ret->incarnation = h->p.id.incarnation;
}

static int calls_named(const struct holders *h, size_t peer, struct err *e)
{
    return err_wrap(e, "%s (%s)", h->peers[peer].name, h->links[peer].address);
}

/* ---- View ---- */

static Trainyard__V1__ViewMember calls_member(const char *name, const char *address, uint64_t incarnation)
{
    Trainyard__V1__ViewMember m;
    trainyard__v1__view_member__init(&m);
    m.name = unconst(name);
    m.address = unconst(address);
    m.incarnation = incarnation;
    return m;
}

static void calls_pack(const struct holders *h, const struct member_order *o, struct buf *ret)
{
    Trainyard__V1__Header header;
    Trainyard__V1__ViewRequest q;
    Trainyard__V1__ViewMember other;
    size_t n = o->members != NULL ? o->members->n : 0;
    auto_free Trainyard__V1__ViewMember *members = xcalloc(n + 1, sizeof(*members));
    auto_free Trainyard__V1__ViewMember **list = xcalloc(n + 1, sizeof(*list));
    calls_header(h, &header);
    trainyard__v1__view_request__init(&q);
    q.header = &header;
    q.action = o->action;
    q.view = o->view;
    q.at = o->at;
    for (size_t i = 0; i < n; i++) {
        const struct view_member *m = &o->members->members[i];
        members[i] = calls_member(m->name, m->address, m->incarnation);
        list[i] = &members[i];
    }
    q.members = list;
    q.n_members = n;
    if (o->other != SIZE_MAX) {
        const struct peer_facts *p = &h->peers[o->other];
        other = calls_member(p->name, h->links[o->other].address, p->incarnation);
        q.other = &other;
    }
    codec_pack(&q.base, ret);
}

void holders_pack_ask(const struct holders *h, struct buf *ret)
{
    calls_pack(h,
               &(struct member_order){
                   .action = TRAINYARD__V1__VIEW_ACTION__VIEW_ASK, .view = h->view.number, .other = SIZE_MAX },
               ret);
}

static int calls_check(const struct holders *h, size_t peer, const Trainyard__V1__ViewReply *a, struct err *e)
{
    if (a->incarnation != h->peers[peer].incarnation)
        return err_set(e, ERR_LOST, "another process answers there");
    if ((unsigned)a->state > PEER_TRAINING || a->generation > GENERATION_MAX)
        return err_set(e, ERR_REFUSED, "state %d in generation %llu is of another release", (int)a->state,
                       (unsigned long long)a->generation);
    if (a->at < 0 || a->at > AT_MAX || a->version < 0 || a->version > AT_MAX || a->behind < -1 || a->behind > AT_MAX ||
        a->view > GENERATION_MAX)
        return err_set(e, ERR_REFUSED, "its answer is out of range");
    return 0;
}

static bool calls_fit(const struct holders *h, const Trainyard__V1__ViewReply *a)
{
    const struct groups groups = codec_groups_of(a->groups);
    return a->layout_hash == h->config.layout->hash && str_eq(a->job_uid, h->p.id.job_uid) &&
           groups_same(&groups, &h->p.groups);
}

int holders_take_answer(struct holders *h, size_t peer, const struct rpc_message *m, struct err *e)
{
    PROTOBUF_AUTO *answer = NULL;
    if (codec_unpack(&trainyard__v1__view_reply__descriptor, m, &answer, e) < 0)
        return calls_named(h, peer, e);
    const Trainyard__V1__ViewReply *a = (const void *)answer;
    AUTO_FINI(ordinal_set) applied = ORDINAL_SET_INIT;
    if (calls_check(h, peer, a, e) < 0 || codec_ordinal_set(a->applied, &applied, e) < 0)
        return calls_named(h, peer, e);
    struct peer_facts *p = &h->peers[peer];
    struct peer_link *l = &h->links[peer];
    ordinal_set_copy(&l->applied, &applied);
    p->since_ms = -1;
    p->answered = true;
    p->fits = calls_fit(h, a);
    p->terminating = a->terminating;
    p->trouble = a->trouble[0] != '\0';
    p->state = (enum peer_state)a->state;
    p->generation = a->generation;
    p->view = a->view;
    p->at = a->at;
    p->behind = a->behind;
    l->own_job = a->job_uid[0] == '\0' || str_eq(a->job_uid, h->p.id.job_uid);
    l->version = a->version;
    l->updates = a->updates;
    l->apply_ns = a->apply_ns;
    l->chief = a->chief_incarnation;
    str_fmt(l->trouble, sizeof(l->trouble), "%s", a->trouble);
    h->highest_view = MAX(h->highest_view, a->view);
    return 0;
}

static void *calls_start(struct holders *h, size_t peer, const char *path, const struct buf *head, int64_t deadline_ms)
{
    struct known_member to = holders_address(h, peer);
    h->links[peer].outdated = h->links[peer].ask != NULL;
    return h->wire.start(h->wire.user, &to, path, head, deadline_ms);
}

/* A donor answers once it has copied its state. */
static int64_t calls_order_ms(const struct holders *h, const struct member_order *o)
{
    enum { COPY_FLOATS_A_MS = 10000 }; /* with slots, on a busy machine */
    bool copies = o->action == TRAINYARD__V1__VIEW_ACTION__VIEW_DONATE;
    return MEMBER_ORDER_MS + (copies ? (int64_t)(h->config.layout->vector / COPY_FLOATS_A_MS) : 0);
}

void holders_order(struct holders *h, struct member_order *orders, size_t n)
{
    auto_free void **calls = xcalloc(n + 1, sizeof(*calls));
    AUTO_FINI(buf) head = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        calls_pack(h, &orders[i], &head);
        calls[i] = calls_start(h, orders[i].peer, "/trainyard.v1.Peer/View", &head, calls_order_ms(h, &orders[i]));
    }
    for (size_t i = 0; i < n; i++) {
        struct member_order *o = &orders[i];
        AUTO(rpc_message) *m = NULL;
        o->error = (struct err){ 0 };
        if (h->wire.finish(h->wire.user, calls[i], &m, &o->error) < 0)
            (void)calls_named(h, o->peer, &o->error);
        else
            o->ok = holders_take_answer(h, o->peer, m, &o->error) == 0;
    }
}

/* ---- Init ---- */

static void calls_pack_init(const struct holders *h, bool adopt, struct buf *ret)
{
    const struct layout *l = h->config.layout;
    auto_free Trainyard__V1__Segment *segments = xcalloc(l->n + 1, sizeof(*segments));
    auto_free Trainyard__V1__Segment **list = xcalloc(l->n + 1, sizeof(*list));
    Trainyard__V1__Header header;
    Trainyard__V1__Groups groups;
    Trainyard__V1__InitRequest q;
    trainyard__v1__init_request__init(&q);
    calls_header(h, &header);
    codec_groups(&h->p.groups, &groups);
    q.header = &header;
    q.adopt = adopt;
    q.n_rate_from = q.n_rates = h->p.rates->n;
    q.rate_from = h->p.rates->from;
    q.rates = h->p.rates->rate;
    if (!adopt) {
        for (size_t i = 0; i < l->n; i++) {
            codec_segment(&l->segments[i], &segments[i]);
            list[i] = &segments[i];
        }
        q.optimizer = unconst(h->p.optimizer);
        q.segments = list;
        q.n_segments = l->n;
        q.layout_hash = l->hash;
        q.groups = &groups;
    }
    codec_pack(&q.base, ret);
}

static int calls_take_init(const struct holders *h, bool adopt, const struct rpc_message *m, struct err *e)
{
    PROTOBUF_AUTO *answer = NULL;
    if (codec_unpack(&trainyard__v1__init_reply__descriptor, m, &answer, e) < 0)
        return -1;
    const Trainyard__V1__InitReply *a = (const void *)answer;
    if (a->generation != h->p.generation || a->chief_incarnation != h->p.id.incarnation)
        return err_set(e, ERR_FENCED, "generation %llu belongs to another chief there",
                       (unsigned long long)a->generation);
    if (a->rates != h->p.rates->n || (!adopt && a->group_size != h->p.groups.size))
        return err_set(e, ERR_REFUSED, "it did not take the groups or the learning rates: use the same release");
    return 0;
}

void holders_init(struct holders *h, bool adopt, struct member_init *inits, size_t n)
{
    auto_free void **calls = xcalloc(n + 1, sizeof(*calls));
    AUTO_FINI(buf) head = BUF_INIT;
    calls_pack_init(h, adopt, &head);
    for (size_t i = 0; i < n; i++)
        calls[i] = calls_start(h, inits[i].peer, ps_method_path(PS_INIT), &head, MEMBER_INIT_MS);
    for (size_t i = 0; i < n; i++) {
        struct member_init *t = &inits[i];
        AUTO(rpc_message) *m = NULL;
        t->error = (struct err){ 0 };
        t->ok =
            h->wire.finish(h->wire.user, calls[i], &m, &t->error) == 0 && calls_take_init(h, adopt, m, &t->error) == 0;
        if (!t->ok)
            (void)calls_named(h, t->peer, &t->error);
    }
}

/* The same message to all; returns how many answered. */
static int calls_tell_all(struct holders *h, enum ps_method method, const ProtobufCMessage *q)
{
    auto_free void **calls = xcalloc(h->n + 1, sizeof(*calls));
    AUTO_FINI(buf) head = BUF_INIT;
    int answered = 0;
    codec_pack(q, &head);
    for (size_t i = 0; i < h->n; i++)
        calls[i] = calls_start(h, i, ps_method_path(method), &head, MEMBER_ORDER_MS);
    for (size_t i = 0; i < h->n; i++) {
        AUTO(rpc_message) *m = NULL;
        struct err ignored = { 0 };
        answered += h->wire.finish(h->wire.user, calls[i], &m, &ignored) == 0;
    }
    return answered;
}

int holders_finish_all(struct holders *h, int64_t step)
{
    Trainyard__V1__Header header;
    Trainyard__V1__FinishRequest q;
    calls_header(h, &header);
    trainyard__v1__finish_request__init(&q);
    q.header = &header;
    q.step = step;
    return calls_tell_all(h, PS_FINISH, &q.base);
}

int holders_confirm_all(struct holders *h, int64_t at)
{
    Trainyard__V1__Header header;
    Trainyard__V1__SnapshotRequest q;
    calls_header(h, &header);
    trainyard__v1__snapshot_request__init(&q);
    q.header = &header;
    q.confirm = true;
    q.at = at;
    return calls_tell_all(h, PS_SNAPSHOT, &q.base);
}
