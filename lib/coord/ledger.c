/* Leases as a sorted table of disjoint ranges, beside the set of ordinals that are done. Free ordinals are not
 * stored: they are those between. Only ledger_observe makes an ordinal done. */
#include "coord/ledger.h"

#include <string.h>

struct lease {
    int64_t first, end;   /* half-open */
    int64_t completed_ms; /* when its worker reported it complete; -1: in progress */
    int worker;
};
struct death {
    int64_t ordinal;
    int count;
};
struct ledger {
    int64_t total;
    struct ordinal_set done;
    struct lease *leases; /* sorted by first, disjoint */
    size_t n, cap;
    struct death *deaths;
    size_t ndeaths;
    int64_t poisoned;
};

struct ledger *ledger_new(int64_t total)
{
    struct ledger *l = xcalloc(1, sizeof(*l));
    l->total = total;
    l->poisoned = -1;
    return l;
}

void ledger_free(struct ledger *l)
{
    if (l == NULL)
        return;
    ordinal_set_fini(&l->done);
    free(l->leases);
    free(l->deaths);
    free(l);
}

static int64_t first_undone(const struct ledger *l, int64_t from, int64_t end)
{
    while (from < end && ordinal_set_has(&l->done, from))
        from++;
    return from;
}

/* ---- the sorted table of leases ---- */

static void lease_insert(struct ledger *l, struct lease lease)
{
    size_t at = l->n;
    while (at > 0 && l->leases[at - 1].first > lease.first)
        at--;
    if (l->n == l->cap) {
        l->cap = MAX(2 * l->cap, (size_t)16);
        l->leases = xrealloc(l->leases, l->cap * sizeof(*l->leases));
    }
    memmove(l->leases + at + 1, l->leases + at, (l->n - at) * sizeof(*l->leases));
    l->leases[at] = lease;
    l->n++;
}

static void lease_remove(struct ledger *l, size_t at)
{
    memmove(l->leases + at, l->leases + at + 1, (l->n - at - 1) * sizeof(*l->leases));
    l->n--;
}

static void death_count(struct ledger *l, int64_t ordinal)
{
    for (size_t i = 0; i < l->ndeaths; i++)
        if (l->deaths[i].ordinal == ordinal) {
            if (++l->deaths[i].count >= LEDGER_DEATHS_MAX)
                l->poisoned = ordinal;
            return;
        }
    l->deaths = xrealloc(l->deaths, (l->ndeaths + 1) * sizeof(*l->deaths));
    l->deaths[l->ndeaths++] = (struct death){ .ordinal = ordinal, .count = 1 };
}

void ledger_count_death(struct ledger *l, int64_t ordinal)
{
    if (!ordinal_set_has(&l->done, ordinal))
        death_count(l, ordinal);
}

/* The lowest free range at or above `from`: not done, not leased. Empty when ret_first == ret_end. */
static void free_range(const struct ledger *l, int64_t from, int64_t limit, int64_t *ret_first, int64_t *ret_end)
{
    int64_t first = MAX(from, l->done.low);
    size_t i = 0;
    for (;;) {
        first = first_undone(l, first, limit);
        while (i < l->n && l->leases[i].end <= first)
            i++;
        if (i == l->n || l->leases[i].first > first || first >= limit)
            break;
        first = l->leases[i].end;
    }
    int64_t end = i < l->n ? MIN(limit, l->leases[i].first) : limit;
    *ret_first = MIN(first, limit);
    *ret_end = MAX(*ret_first, end);
}

/* Cuts [first, end) before the next done ordinal, at most `want` long. */
static int64_t undone_run(const struct ledger *l, int64_t first, int64_t end, int64_t want)
{
    end = MIN(end, first + want);
    int64_t at = first;
    while (at < end && !ordinal_set_has(&l->done, at))
        at++;
    return at;
}

/* Cuts [first, end) so that an ordinal on which a worker died is alone. */
static int64_t without_suspects(const struct ledger *l, int64_t first, int64_t end)
{
    for (size_t i = 0; i < l->ndeaths; i++) {
        int64_t suspect = l->deaths[i].ordinal;
        if (suspect >= first && suspect < end)
            end = MAX(suspect, first + 1);
    }
    return end;
}

int64_t ledger_lease(struct ledger *l, const struct ledger_wish *w, int64_t *ret_first)
{
    int64_t first, end;
    free_range(l, w->from, MIN(w->limit, l->total), &first, &end);
    end = without_suspects(l, first, undone_run(l, first, end, MAX(w->want, 1)));
    if (first >= end)
        return 0;
    lease_insert(l, (struct lease){ .first = first, .end = end, .completed_ms = -1, .worker = w->worker });
    *ret_first = first;
    return end - first;
}

int64_t ledger_first_free(const struct ledger *l, int64_t from, int64_t limit)
{
    int64_t first, end;
    free_range(l, from, MIN(limit, l->total), &first, &end);
    return first < end ? first : -1;
}

int64_t ledger_top(const struct ledger *l)
{
    int64_t leased = l->n > 0 ? l->leases[l->n - 1].end : 0;
    return MAX(MAX(leased, l->done.high), l->done.low);
}

/* The lowest part of the lease that is held; empty at its end: none is. */
static void first_held(const struct lease *lease, struct ordinal_ranges held, int64_t *ret_first, int64_t *ret_end)
{
    *ret_first = *ret_end = lease->end;
    for (size_t i = 0; i + 1 < held.n; i += 2)
        if (held.r[i] < lease->end && held.r[i + 1] > lease->first) {
            *ret_first = MAX(held.r[i], lease->first);
            *ret_end = MIN(held.r[i + 1], lease->end);
            return;
        }
}

/* From `ordinal` on it is a lease of its own. */
static void lease_split(struct ledger *l, size_t at, int64_t ordinal)
{
    struct lease rest = l->leases[at];
    if (ordinal == rest.end)
        return;
    l->leases[at].end = rest.first = ordinal;
    lease_insert(l, rest);
}

void ledger_complete(struct ledger *l, int worker, struct ordinal_ranges held, int64_t now_ms)
{
    for (size_t i = 0; i < l->n; i++) {
        int64_t from, to;
        if (l->leases[i].worker != worker || l->leases[i].completed_ms >= 0)
            continue;
        first_held(&l->leases[i], held, &from, &to);
        if (from == l->leases[i].first) {
            lease_split(l, i, to);
        } else {
            lease_split(l, i, from);
            l->leases[i].completed_ms = now_ms;
        }
    }
}

void ledger_reclaim(struct ledger *l, int worker, struct ordinal_ranges held)
{
    for (size_t i = 0; i + 1 < held.n; i += 2) {
        int64_t from = held.r[i], limit = MIN(held.r[i + 1], l->total), first, end;
        for (free_range(l, from, limit, &first, &end); first < end; free_range(l, end, limit, &first, &end)) {
            end = undone_run(l, first, end, end - first);
            lease_insert(l, (struct lease){ .first = first, .end = end, .completed_ms = -1, .worker = worker });
        }
    }
}

/* The first undone ordinal of a lease in progress; -1: all are done, or its worker reported it complete. */
static int64_t works_on(const struct ledger *l, const struct lease *lease)
{
    int64_t ordinal = first_undone(l, lease->first, lease->end);
    return lease->completed_ms < 0 && ordinal < lease->end ? ordinal : -1;
}

int64_t ledger_drop(struct ledger *l, int worker)
{
    int64_t lowest = -1;
    for (size_t i = l->n; i-- > 0;) {
        if (l->leases[i].worker != worker)
            continue;
        int64_t ordinal = works_on(l, &l->leases[i]);
        lowest = ordinal >= 0 ? ordinal : lowest;
        lease_remove(l, i);
    }
    return lowest;
}

void ledger_observe(struct ledger *l, const struct ordinal_set *done, int64_t begun_ms)
{
    ordinal_set_copy(&l->done, done);
    for (size_t i = l->n; i-- > 0;) {
        const struct lease *lease = &l->leases[i];
        bool judged =
            lease->completed_ms >= 0 && lease->completed_ms < begun_ms; /* within one ms it may have begun before */
        if (judged || first_undone(l, lease->first, lease->end) == lease->end)
            lease_remove(l, i);
    }
}

int64_t ledger_total(const struct ledger *l)
{
    return l->total;
}

int64_t ledger_done(const struct ledger *l)
{
    return ordinal_set_count(&l->done);
}

static bool done_below(const struct ledger *l, int64_t limit)
{
    return l->done.low >= MIN(limit, l->total);
}

bool ledger_finished(const struct ledger *l)
{
    return done_below(l, l->total);
}

int64_t ledger_free_below(const struct ledger *l, int64_t limit)
{
    int64_t first, end, top = MIN(limit, l->total);
    free_range(l, 0, top, &first, &end);
    int64_t n = top - first;
    for (size_t i = 0; i < l->n; i++)
        n -= MAX(MIN(l->leases[i].end, top) - MAX(l->leases[i].first, first), 0);
    return MAX(n, 0);
}

bool ledger_leased_below(const struct ledger *l, int64_t limit)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->leases[i].completed_ms < 0 && l->leases[i].first < limit)
            return true;
    return false;
}

int ledger_holder(const struct ledger *l, int64_t ordinal)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->leases[i].first <= ordinal && ordinal < l->leases[i].end)
            return l->leases[i].worker;
    return -1;
}

bool ledger_next_of(const struct ledger *l, int worker, int64_t from, struct held_batches *ret)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct lease *lease = &l->leases[i];
        if (lease->first < from || lease->completed_ms >= 0 || lease->worker != worker)
            continue;
        *ret = (struct held_batches){ .worker = worker, .first = lease->first, .end = lease->end };
        return true;
    }
    return false;
}

bool ledger_first_held(const struct ledger *l, int asking, int64_t limit, struct held_batches *ret)
{
    for (size_t i = 0; i < l->n && l->leases[i].first < limit; i++) {
        const struct lease *lease = &l->leases[i];
        int64_t first = first_undone(l, lease->first, lease->end);
        if (lease->completed_ms >= 0 || lease->worker == asking || first == lease->end)
            continue;
        *ret = (struct held_batches){ .worker = lease->worker, .first = first, .end = MIN(lease->end, limit) };
        return true;
    }
    return false;
}

bool ledger_drained(const struct ledger *l, int64_t limit)
{
    return ledger_free_below(l, limit) == 0 && !ledger_leased_below(l, limit) && !done_below(l, limit);
}

const struct ordinal_set *ledger_done_set(const struct ledger *l)
{
    return &l->done;
}

int64_t ledger_poisoned(const struct ledger *l)
{
    return l->poisoned;
}
