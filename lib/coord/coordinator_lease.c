/* Which batches a worker gets, and when another one takes over those of a worker that does not work on them. */
#include "base/str.h"
#include "coord/coordinator_internal.h"

/* A member that computed nothing for so many times the length of a lease, or of a batch, has stalled. */
enum { STALL_LEASES = 3, STALL_BATCHES = 3 };

bool coordinator_trains(const struct coordinator *c, const struct member *m)
{
    return m->alive && m->role != ROLE_EVALUATOR && (!c->config.views || m->in_view);
}

/* Those that train, and are not waited for. */
static int64_t active_workers(const struct coordinator *c)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->members.n; i++)
        n += coordinator_trains(c, &c->members.items[i]) && !c->members.items[i].stalled;
    return MAX(n, MAX(c->config.sharers, 1));
}

/* Leases shrink towards the limit so that all workers reach it together. */
static int64_t lease_size(const struct coordinator *c, int64_t want)
{
    int64_t workers = (int64_t)members_alive(&c->members, true);
    return workers > 1 ? MAX(1, MIN(want, ledger_free_below(c->ledger, c->limit) / (2 * workers))) : want;
}

/* "worker-3 has not computed batches 120 to 127" */
static void describe_held(const struct coordinator *c, const struct held_batches *h, const char *verb, char *out,
                          size_t n)
{
    const struct member *m = members_numbered(&c->members, h->worker);
    const char *name = m != NULL ? m->name : "a worker";
    if (h->end - h->first == 1)
        str_fmt(out, n, "%s%s batch %lld", name, verb, (long long)h->first);
    else
        str_fmt(out, n, "%s%s batches %lld to %lld", name, verb, (long long)h->first, (long long)h->end - 1);
}

void coordinator_wait_reason(const struct coordinator *c, const struct member *m, char *out, size_t n)
{
    struct held_batches held;
    if (!coordinator_trains(c, m))
        str_fmt(out, n, "its place among the workers that train");
    else if (ledger_first_held(c->ledger, m->number, c->limit, &held))
        describe_held(c, &held, ", which holds", out, n);
    else
        str_fmt(out, n, "%s", c->waits_for[0] != 0 ? c->waits_for : "the chief to see what has been applied");
}

/* How long another worker may compute nothing while this one has nothing to do. Where batches take long, it is three
 * times what a batch takes this one: before that, the other one is probably nearer to its end. */
static int64_t stall_ms(const struct coordinator *c, const struct member *asking)
{
    return MAX((int64_t)STALL_LEASES * c->config.lease_ms, STALL_BATCHES * asking->batch_ms);
}

void coordinator_take_from(struct coordinator *c, struct member *m)
{
    int64_t lowest = ledger_drop(c->ledger, m->number);
    if (lowest >= 0)
        m->suspect = m->suspect >= 0 ? MIN(m->suspect, lowest) : lowest;
}

static void note_stall(struct coordinator *c, struct member *m)
{
    c->view.stalls++;
    m->stalled = true;
    coordinator_changed(c);
}

void coordinator_take_back(struct coordinator *c, const struct member *asking, int64_t limit, int64_t now_ms)
{
    struct held_batches held;
    char what[COORDINATOR_TEXT_MAX - 32];
    if (!ledger_first_held(c->ledger, asking->number, limit, &held))
        return;
    struct member *m = members_numbered(&c->members, held.worker);
    if (m == NULL || now_ms - m->progress_ms < stall_ms(c, asking))
        return;
    describe_held(c, &held, " has not computed", what, sizeof(what));
    str_fmt(c->view.stalled, sizeof(c->view.stalled), "%s for %lld s", what,
            (long long)(now_ms - m->progress_ms) / 1000);
    ledger_drop(c->ledger, m->number);
    note_stall(c, m);
}

void coordinator_take_back_of_silent(struct coordinator *c, struct member *m, int64_t now_ms)
{
    struct held_batches held;
    char what[COORDINATOR_TEXT_MAX - 32];
    if (c->config.groups.size == 0 || c->config.views || m->stalled ||
        now_ms - m->seen_ms <= coordinator_pace(c, c->config.silence_ms) ||
        !ledger_next_of(c->ledger, m->number, 0, &held))
        return;
    m->silent = true;
    describe_held(c, &held, ", which holds", what, sizeof(what));
    str_fmt(c->view.stalled, sizeof(c->view.stalled), "%s, was not heard for %.1f s", what,
            (double)(now_ms - m->seen_ms) / 1000.0);
    coordinator_take_from(c, m);
    note_stall(c, m);
}

bool coordinator_left_out(const struct coordinator *c, const struct member *m)
{
    return c->running.n > 0 && !m->in_view;
}

void coordinator_set_view(struct coordinator *c, const struct view *v)
{
    MUTEX_GUARD(&c->lock);
    view_copy(&c->running, v);
    for (size_t i = 0; i < c->members.n; i++) {
        struct member *m = &c->members.items[i];
        m->in_view = view_find(v, m->name, m->incarnation) >= 0;
        if (coordinator_left_out(c, m))
            coordinator_take_from(c, m);
    }
}

/* A lease on the way to a worker. */
struct giving {
    struct coordinator *c;
    struct member *to;
    int64_t limit;
    struct coordinator_reply *reply;
};

static void give_range(const struct giving *g, int64_t from, int64_t want, int64_t limit)
{
    struct coordinator_reply *r = g->reply;
    const struct ledger_wish wish = { .worker = g->to->number, .from = from, .limit = limit, .want = want };
    int64_t first, count = ledger_lease(g->c->ledger, &wish, &first);
    if (count == 0)
        return;
    leased_ranges_add(&g->to->leased, first, first + count);
    if (r->count == 0) {
        r->first = first;
        r->count = count;
        return;
    }
    r->more[r->nmore++] = first;
    r->more[r->nmore++] = first + count;
}

/* A share of each group, so that all workers compute at the same time; the lowest groups, whose gradients the others
 * may wait for, come first. */
static void give_shares(const struct giving *g, int64_t want)
{
    const struct groups *groups = &g->c->config.groups;
    int64_t workers = active_workers(g->c), share = (groups->size + workers - 1) / workers;
    int64_t left = MIN(MAX(want / share, 1), COORDINATOR_LEASE_RANGES + 1);
    for (int64_t from = 0; left > 0; left--) {
        int64_t first = ledger_first_free(g->c->ledger, from, g->limit);
        if (first < 0)
            return;
        from = groups_end(groups, first);
        give_range(g, first, share, MIN(from, g->limit));
    }
}

int64_t coordinator_lease_limit(const struct coordinator *c, const struct lease_request *q)
{
    return q->lower_only ? MIN(c->limit, q->below) : c->limit;
}

void coordinator_give_leases(struct coordinator *c, struct member *m, const struct lease_request *q, int64_t now_ms,
                             struct coordinator_reply *ret)
{
    struct held_batches own;
    if (!coordinator_trains(c, m) || m->stalled)
        return;
    if (!ledger_next_of(c->ledger, m->number, 0, &own))
        m->progress_ms = now_ms;
    const struct giving g = { .c = c, .to = m, .limit = coordinator_lease_limit(c, q), .reply = ret };
    if (c->config.groups.size > 0)
        give_shares(&g, q->want);
    else
        give_range(&g, 0, lease_size(c, q->want), g.limit);
}
