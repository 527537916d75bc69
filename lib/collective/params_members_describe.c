/* Describe: polls the members, leads them, and says how they are, as one ps would. */
#include <string.h>

#include "collective/params_members_internal.h"

enum { REGISTER_MS = 2000 };

/* Another chief has the members, or some of them. */
static bool holders_foreign(const struct holders *h, size_t i)
{
    const struct peer_facts *p = &h->peers[i];
    return p->answered && h->links[i].own_job &&
           (p->generation > h->p.generation ||
            (p->generation == h->p.generation && h->links[i].chief != 0 && h->links[i].chief != h->p.id.incarnation));
}

/* Gradients of the step of now that all members of the view have: they need not be computed again. */
static void describe_received(const struct holders *h, int64_t low, struct ordinal_set *ret)
{
    AUTO_FINI(ordinal_set) all = ORDINAL_SET_INIT;
    struct err never;
    *ret = (struct ordinal_set){ .low = low, .high = low };
    for (size_t i = 0; i < h->view.n; i++) {
        size_t peer = holders_find(h, h->view.members[i].name, h->view.members[i].incarnation);
        if (peer == h->n || h->peers[peer].view != h->view.number)
            return;
        if (i == 0)
            ordinal_set_copy(&all, &h->links[peer].applied);
        else
            ordinal_set_intersect(&all, &h->links[peer].applied);
    }
    for (int64_t o = low; o < all.high; o++)
        if (ordinal_set_has(&all, o) && ordinal_set_add(ret, o, &never) < 0)
            return;
}

/* The steps of those that count; without a view those with the highest step. What was applied by all once is not taken
 * back while some have it. */
static void describe_steps(struct holders *h, struct shard_info *ret)
{
    int64_t low = INT64_MAX, high = -1, version = 0;
    for (size_t i = 0; i < h->n; i++)
        if (holder_counts(h, i) && h->peers[i].at > high) {
            high = h->peers[i].at;
            version = h->links[i].version;
        }
    if (high < 0)
        return;
    for (size_t i = 0; i < h->view.n; i++) {
        size_t peer = holders_find(h, h->view.members[i].name, h->view.members[i].incarnation);
        if (peer < h->n && h->peers[peer].answered)
            low = MIN(low, h->peers[peer].at);
    }
    low = MIN(high, MAX(low == INT64_MAX ? high : low, h->low));
    h->low = low;
    describe_received(h, low, &ret->applied);
    ret->version_max = version;
    ret->version_min = version - (groups_below(&h->p.groups, high) - groups_below(&h->p.groups, low));
}

static void describe_state(struct holders *h, enum shard_state state, struct shard_info *ret)
{
    struct shard_info info = { .incarnation = h->life, .layout_hash = h->config.layout->hash, .state = state };
    str_fmt(info.job_uid, sizeof(info.job_uid), "%s", h->p.id.job_uid);
    for (size_t i = 0; i < h->n; i++) {
        const struct peer_facts *p = &h->peers[i];
        if (!p->answered)
            continue;
        if (p->generation > info.generation) {
            info.generation = p->generation;
            info.chief = h->links[i].chief;
        }
        if (holders_foreign(h, i) && p->generation == info.generation)
            info.chief = h->links[i].chief;
        info.pushes += h->links[i].updates;
        info.apply_ns += h->links[i].apply_ns;
    }
    info.groups = h->p.groups;
    if (state != SHARD_UNINITIALISED)
        describe_steps(h, &info);
    *ret = info;
}

/* A chief that has just come does not know who has the state before the workers have registered. */
static bool describe_may_decide(struct holders *h)
{
    size_t answered = 0;
    for (size_t i = 0; i < h->n; i++)
        answered += h->peers[i].answered;
    if (!h->decided)
        h->decided = answered > 0 &&
                     ((h->n >= h->config.wanted && answered == h->n) || holders_now(h) - h->first_ms >= REGISTER_MS);
    return h->decided;
}

static size_t describe_answering(const struct holders *h)
{
    const struct view_facts f = holders_facts(h);
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        n += h->peers[i].answered && !peer_is_lost(&f, &h->peers[i]);
    return n;
}

static void describe_waits(const char *what, struct err *e)
{
    (void)err_set(e, ERR_LOST, "members: %s", what);
}

static void describe_lost(struct holders *h, struct shard_info *ret, struct err *e)
{
    char text[80];
    size_t n = describe_answering(h);
    if (!h->empty)
        h->life++;
    h->empty = true;
    h->low = -1;
    holders_end_view(h);
    str_fmt(text, sizeof(text), "%zu of at least %zu workers are there", n, h->config.min_members);
    if (n < h->config.min_members)
        describe_waits(text, e);
    else
        describe_state(h, SHARD_UNINITIALISED, ret);
}

static void describe_led(struct holders *h, struct shard_info *ret, struct err *e)
{
    enum view_outcome outcome;
    bool terminating;
    char waits[160];
    if (h->empty && holders_have(h, holder_now)) {
        h->empty = false; /* filled, though the answer did not come */
        h->filled_ms = holders_now(h);
    }
    holders_lead(h, &outcome, &terminating, waits, sizeof(waits));
    if (outcome == VIEW_WAITS)
        describe_waits(waits, e);
    else if (outcome == VIEW_LOST)
        describe_lost(h, ret, e);
    else
        describe_state(h, terminating ? SHARD_TERMINATING : SHARD_SERVING, ret);
}

void holders_describe(struct params *p, int64_t deadline_ms, struct shard_info *rets, struct err *errors)
{
    struct holders *h = holders_of(p);
    errors[0] = (struct err){ 0 };
    holders_poll(h, deadline_ms);
    if (h->n == 0)
        describe_waits("no worker has joined yet", &errors[0]);
    else if (holders_have(h, holders_foreign))
        describe_state(h, SHARD_SERVING, &rets[0]);
    else if (!describe_may_decide(h))
        describe_waits("waiting for the workers to register", &errors[0]);
    else if (h->fenced && !holders_have(h, holder_counts))
        describe_waits("no worker that has the state answers", &errors[0]);
    else if (h->fenced || (!holders_have(h, holder_now) && holders_have(h, holder_counts)))
        describe_state(h, SHARD_SERVING, &rets[0]); /* of an earlier generation: to be adopted */
    else
        describe_led(h, &rets[0], &errors[0]);
}
