/* The tables of operations. For the chief the members are one ps: it serves while one of them has the state, and its
 * state is lost when none has. Bulk goes to one holder, and what must be the same in all goes to all. */
#include "collective/params_members.h"

#include <string.h>

#include "base/stop.h"
#include "collective/params_members_internal.h"

enum { BULK_MS = 25000 };

static void holders_close_bulk(struct holders *h)
{
    params_free(TAKE(h->bulk));
    h->bulk_name[0] = '\0';
    h->snapshot_at = -1;
}

static void holders_free(struct params *p)
{
    struct holders *h = holders_of(p);
    holders_drop_asks(h);
    holders_close_bulk(h);
    if (h->wire.free != NULL)
        h->wire.free(h->wire.user);
    view_fini(&h->view);
    for (size_t i = 0; i < h->n; i++)
        ordinal_set_fini(&h->links[i].applied);
    free(h->peers);
    free(h->links);
    free(h->joins);
    params_release(p);
}

/* Of a new generation no view has begun, and no join. */
static void holders_forget(struct params *p)
{
    struct holders *h = holders_of(p);
    holders_end_view(h);
    h->njoins = 0;
    h->fenced = false;
    h->filling = SIZE_MAX;
    h->snapshot_at = -1;
}

int64_t holders_now(const struct holders *h)
{
    return h->wire.now_ms(h->wire.user);
}

struct view_facts holders_facts(const struct holders *h)
{
    return (struct view_facts){ .now_ms = holders_now(h),
                                .generation = h->p.generation,
                                .groups = &h->p.groups,
                                .view = &h->view,
                                .peers = h->peers,
                                .n = h->n,
                                .joins = h->joins,
                                .njoins = h->njoins,
                                .min_members = h->config.min_members,
                                .filled_ms = h->filled_ms,
                                .snapshots = h->bulk_name };
}

struct known_member holders_address(const struct holders *h, size_t peer)
{
    struct known_member k = { .incarnation = h->peers[peer].incarnation, .alive = h->peers[peer].alive };
    memcpy(k.name, h->peers[peer].name, sizeof(k.name));
    memcpy(k.address, h->links[peer].address, sizeof(k.address));
    return k;
}

size_t holders_find(const struct holders *h, const char *name, uint64_t incarnation)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->peers[i].incarnation == incarnation && strcmp(h->peers[i].name, name) == 0)
            return i;
    return h->n;
}

/* ---- who has the state ---- */

/* Of the generation of now, or of an earlier one that can be adopted. */
bool holder_any_life(const struct holders *h, size_t i)
{
    const struct peer_facts *p = &h->peers[i];
    return p->answered && p->fits && p->state >= PEER_HOLDING && p->generation <= h->p.generation;
}

bool holder_now(const struct holders *h, size_t i)
{
    return holder_any_life(h, i) && h->peers[i].generation == h->p.generation;
}

bool holder_is_silent(const struct holders *h, size_t i)
{
    return h->peers[i].since_ms >= 0 && holders_now(h) - h->peers[i].since_ms > PEER_SILENCE_MS;
}

bool holders_have(const struct holders *h, bool (*has)(const struct holders *h, size_t i))
{
    for (size_t i = 0; i < h->n; i++)
        if (has(h, i))
            return true;
    return false;
}

/* Members of the view, or while none runs those that have the state and answer. */
bool holder_counts(const struct holders *h, size_t i)
{
    const struct peer_facts *p = &h->peers[i];
    if (h->view.number != 0)
        return p->answered && view_find(&h->view, p->name, p->incarnation) >= 0;
    return (holders_have(h, holder_now) ? holder_now(h, i) : holder_any_life(h, i)) && !holder_is_silent(h, i);
}

/* One with the highest step that answers: a member of the view before others, that of the connection before others, and
 * one that terminates last. h->n: none. */
static size_t holders_choose(const struct holders *h)
{
    size_t best = h->n;
    int64_t best_rank = -1;
    for (size_t i = 0; i < h->n; i++) {
        const struct peer_facts *p = &h->peers[i];
        if (!holder_now(h, i) || !holder_counts(h, i) || holder_is_silent(h, i))
            continue;
        int64_t rank = 8 * p->at + 4 * (view_find(&h->view, p->name, p->incarnation) >= 0) + 2 * !p->terminating +
                       (strcmp(p->name, h->bulk_name) == 0);
        if (rank > best_rank) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

static struct params *holders_bulk(struct holders *h, size_t peer)
{
    const struct peer_facts *p = &h->peers[peer];
    if (h->bulk == NULL || strcmp(p->name, h->bulk_name) != 0 || p->incarnation != h->bulk_incarnation) {
        struct known_member to = holders_address(h, peer);
        holders_close_bulk(h);
        h->bulk = h->wire.open(h->wire.user, &to, h->p.vector);
        str_fmt(h->bulk_name, sizeof(h->bulk_name), "%s", p->name);
        h->bulk_incarnation = p->incarnation;
    }
    params_set_generation(h->bulk, h->p.generation);
    params_set_rates(h->bulk, h->p.rates);
    params_set_groups(h->bulk, &h->p.groups);
    params_watch(h->bulk, h->p.watch_after_ms, h->p.watch, h->p.watch_user);
    return h->bulk;
}

static int holders_one(struct holders *h, size_t *ret, struct err *e)
{
    size_t peer = holders_choose(h);
    if (peer == h->n)
        return err_set(e, ERR_LOST, "no worker that has the state answers");
    *ret = peer;
    return 0;
}

/* ---- Init, Adopt, Restore ---- */

/* One that answers: the state is filled in there. */
static size_t holders_choose_empty(const struct holders *h)
{
    const struct view_facts f = holders_facts(h);
    for (size_t i = 0; i < h->n; i++) {
        const struct peer_facts *p = &h->peers[i];
        if (p->answered && p->since_ms < 0 && !peer_is_lost(&f, p) && !p->terminating)
            return i;
    }
    return h->n;
}

static int holders_init_one(struct params *p, size_t ps, const char *optimizer_json, int64_t deadline_ms, struct err *e)
{
    struct holders *h = holders_of(p);
    (void)ps;
    size_t seed = holders_choose_empty(h);
    if (seed == h->n)
        return err_set(e, ERR_LOST, "members: no worker answers");
    params_set_optimizer(p, optimizer_json);
    h->filling = seed;
    h->low = -1;
    return params_init(holders_bulk(h, seed), 0, optimizer_json, deadline_ms, e);
}

static int holders_filling(struct holders *h, struct params **ret, struct err *e)
{
    if (h->filling >= h->n)
        return err_set(e, ERR_LOST, "the worker that was filled is gone");
    *ret = holders_bulk(h, h->filling);
    return 0;
}

static int holders_restore(struct params *p, size_t ps, uint32_t segment, bool with_slots, int64_t version,
                           const struct ordinal_set *applied, const float *data, size_t floats, int64_t deadline_ms,
                           struct err *e)
{
    struct params *bulk;
    (void)ps;
    if (holders_filling(holders_of(p), &bulk, e) < 0)
        return -1;
    return params_restore(bulk, 0, segment, with_slots, version, applied, data, floats,
                          MIN(deadline_ms, (int64_t)BULK_MS), e);
}

static int holders_serve(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    struct holders *h = holders_of(p);
    struct params *bulk;
    (void)ps;
    if (holders_filling(h, &bulk, e) < 0 || params_serve(bulk, 0, deadline_ms, e) < 0)
        return -1;
    h->filling = SIZE_MAX;
    h->empty = false;
    h->filled_ms = holders_now(h);
    return 0;
}

/* In a new generation: the others are left out, and join again. */
static int adopt_new(struct holders *h, struct member_init *inits, size_t n, struct err *e)
{
    size_t adopted = 0;
    for (size_t i = 0; i < n; i++) {
        struct peer_facts *p = &h->peers[inits[i].peer];
        if (!inits[i].ok && err_is(&inits[i].error, ERR_FENCED))
            return err_set(e, ERR_FENCED, "%s", inits[i].error.msg);
        if (!inits[i].ok)
            continue;
        adopted++;
        if (p->generation != h->p.generation) { /* what its next answer will say */
            p->generation = h->p.generation;
            p->state = PEER_HOLDING;
            p->view = 0;
        }
        h->links[inits[i].peer].chief = h->p.id.incarnation;
    }
    if (adopted == 0 && n > 0)
        return err_set(e, inits[0].error.code, "%s", inits[0].error.msg);
    return adopted > 0 ? 0 : err_set(e, ERR_LOST, "no worker that has the state answers");
}

/* The learning rates must be the same in all that train. */
static int adopt_again(struct holders *h, const struct member_init *inits, size_t n, struct err *e)
{
    const struct view_facts f = holders_facts(h);
    for (size_t i = 0; i < n; i++)
        if (!inits[i].ok && !peer_is_lost(&f, &h->peers[inits[i].peer]))
            return err_set(e, inits[i].error.code, "%s", inits[i].error.msg);
    return 0;
}

/* Those that are joining get the rates by Init, since they cannot be adopted. */
static int adopt_joining(struct holders *h, struct err *e)
{
    auto_free struct member_init *inits = xcalloc(h->n + 1, sizeof(*inits));
    size_t n = 0;
    for (size_t i = 0; i < h->njoins; i++) {
        size_t peer = holders_find(h, h->joins[i].name, h->joins[i].incarnation);
        if (peer < h->n)
            inits[n++].peer = peer;
    }
    if (n == 0)
        return 0;
    holders_init(h, false, inits, n);
    return adopt_again(h, inits, n, e);
}

static int holders_adopt(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    struct holders *h = holders_of(p);
    auto_free struct member_init *inits = xcalloc(h->n + 1, sizeof(*inits));
    bool again = holders_have(h, holder_now);
    size_t n = 0;
    (void)ps, (void)deadline_ms;
    for (size_t i = 0; i < h->n; i++)
        if (again ? holder_now(h, i) && !holder_is_silent(h, i) : holder_any_life(h, i) && !holder_is_silent(h, i))
            inits[n++].peer = i;
    holders_init(h, true, inits, n);
    if (adopt_new(h, inits, n, e) < 0)
        return -1;
    return again && (adopt_again(h, inits, n, e) < 0 || adopt_joining(h, e) < 0) ? -1 : 0;
}

static int holders_fence(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    holders_of(p)->fenced = true;
    return holders_adopt(p, ps, deadline_ms, e);
}

/* ---- Snapshot, Finish ---- */

/* A member that does not answer is left out of the view meanwhile, so that training goes on. */
static void holders_keep_leading(struct holders *h)
{
    enum view_outcome outcome;
    bool terminating;
    char waits[160];
    if (h->fenced || h->view.number == 0)
        return;
    holders_poll(h, 0);
    holders_lead(h, &outcome, &terminating, waits, sizeof(waits));
}

static int holders_announce_snapshot(struct params *p, size_t ps, int64_t at, int64_t deadline_ms, struct err *e)
{
    struct holders *h = holders_of(p);
    size_t peer;
    (void)ps;
    if (holders_one(h, &peer, e) < 0)
        return -1;
    struct params *bulk = holders_bulk(h, peer);
    h->snapshot_at = -1;
    if (params_announce_snapshot(bulk, 0, at, MIN(deadline_ms, (int64_t)MEMBER_ORDER_MS), e) < 0)
        return -1;
    h->snapshot_at = at;
    return 0;
}

static int holders_snapshot_from(struct holders *h, const int64_t *at, size_t *ret, struct err *e)
{
    if (at == NULL || h->snapshot_at != *at)
        return holders_one(h, ret, e);
    size_t peer = holders_find(h, h->bulk_name, h->bulk_incarnation);
    if (peer == h->n || holder_is_silent(h, peer))
        return err_set(e, ERR_LOST, "%s, which keeps the state to save, is lost", h->bulk_name);
    *ret = peer;
    return 0;
}

static int holders_snapshot(struct params *p, size_t ps, uint32_t segment, const int64_t *at, int64_t deadline_ms,
                            struct shard_snapshot *ret, struct err *e)
{
    struct holders *h = holders_of(p);
    size_t peer;
    int64_t ms = MIN(deadline_ms, (int64_t)BULK_MS);
    (void)ps;
    holders_keep_leading(h);
    if (holders_snapshot_from(h, at, &peer, e) < 0)
        return -1;
    struct params *bulk = holders_bulk(h, peer);
    h->saved_at = at != NULL ? *at : -1;
    return at != NULL ? params_snapshot_at(bulk, 0, segment, *at, ms, ret, e)
                      : params_snapshot(bulk, 0, segment, ms, ret, e);
}

static int holders_confirm_snapshots(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    struct holders *h = holders_of(p);
    (void)ps, (void)deadline_ms;
    return holders_confirm_all(h, h->saved_at) > 0 ? 0 : err_set(e, ERR_LOST, "no worker answers");
}

static int holders_finish(struct params *p, size_t ps, int64_t step, int64_t deadline_ms, struct err *e)
{
    (void)ps, (void)deadline_ms;
    return holders_finish_all(holders_of(p), step) > 0 ? 0 : err_set(e, ERR_LOST, "no worker answers");
}

/* ---- the data plane ---- */

static int holders_pull(struct params *p, bool rest, int64_t deadline_ms, struct err *e)
{
    struct holders *h = holders_of(p);
    size_t peer;
    if (holders_one(h, &peer, e) < 0)
        return -1;
    struct params *bulk = holders_bulk(h, peer);
    int64_t ms = MIN(deadline_ms, (int64_t)BULK_MS);
    return rest ? params_pull_rest(bulk, ms, e) : params_pull(bulk, ms, e);
}

static int holders_pull_at(struct params *p, int64_t at, int64_t wait_ms, int64_t deadline_ms, struct err *e)
{
    struct holders *h = holders_of(p);
    size_t peer;
    if (holders_one(h, &peer, e) < 0)
        return -1;
    return params_pull_at(holders_bulk(h, peer), at, wait_ms, MIN(deadline_ms, (int64_t)BULK_MS), e);
}

static void holders_versions(const struct params *p, int64_t *ret_min, int64_t *ret_max)
{
    const struct holders *h = (const struct holders *)(const void *)p;
    *ret_min = *ret_max = 0;
    if (h->bulk != NULL)
        params_versions(h->bulk, ret_min, ret_max);
}

static void holders_mark(struct params *p)
{
    (void)p; /* a chief pushes nothing */
}

static int holders_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                              struct err *e)
{
    (void)p, (void)grads, (void)direct, (void)deadline_ms;
    return err_set(e, ERR_INTERNAL, "a push of ordinal %lld by a chief", (long long)ordinal);
}

static int holders_push_finish(struct params *p, struct push_result *ret, struct err *e)
{
    (void)p, (void)ret;
    return err_set(e, ERR_INTERNAL, "no push was begun");
}

static const struct params_ops HOLDERS = {
    .free = holders_free,
    .forget = holders_forget,
    .mark = holders_mark,
    .gradients = params_own_gradients,
    .pull = holders_pull,
    .pull_at = holders_pull_at,
    .versions = holders_versions,
    .push_start = holders_push_start,
    .push_finish = holders_push_finish,
};
static const struct params_admin_ops HOLDERS_ADMIN = {
    .describe = holders_describe,
    .init = holders_init_one,
    .adopt = holders_adopt,
    .fence = holders_fence,
    .restore = holders_restore,
    .serve = holders_serve,
    .announce_snapshot = holders_announce_snapshot,
    .snapshot = holders_snapshot,
    .confirm_snapshots = holders_confirm_snapshots,
    .finish = holders_finish,
};

struct params *holders_new(const struct members_config *config, const struct member_wire *wire)
{
    struct holders *h = xcalloc(1, sizeof(*h));
    params_setup(&h->p, &HOLDERS, &HOLDERS_ADMIN, config->layout, 1, &config->id);
    params_make_vector(&h->p);
    h->p.in_workers = true;
    h->config = *config;
    h->config.min_members = MAX(config->min_members, (size_t)1);
    h->wire = *wire;
    h->first_ms = h->filled_ms = h->low = h->snapshot_at = h->saved_at = -1;
    h->filling = SIZE_MAX;
    h->life = 1;
    return &h->p;
}

struct params *params_new_members(const struct members_config *config)
{
    const struct member_wire wire = member_wire_grpc(config);
    return holders_new(config, &wire);
}

void params_members_source(struct params *p, known_members_fn *list, view_changed_fn *changed, void *user)
{
    struct holders *h = holders_of(p);
    h->list = list;
    h->changed = changed;
    h->source = user;
}
