/* ledger - which batch ordinals are free, leased, done. Pure: time is a parameter, and there is no output but the
 * results.
 *
 * `done` comes only from what the segments report as applied (ledger_observe), never from what a worker reports. So a
 * ledger can be rebuilt after any crash. An ordinal is leased to one worker at a time, until that one is lost, leaves
 * or comes back as a new process. When an observation no longer has ordinals (a ps was restored from an older
 * checkpoint), they are free again.
 *
 * Workers take the lowest ordinal that they hold, so the first undone one of a lost worker is that on which it died.
 * From then on it is leased alone, so that the next worker that dies with it had nothing else to compute. After three
 * deaths on one ordinal the ledger names it (ledger_poisoned).
 *
 * Not thread-safe. Cost of a call: O(leases + window / 64), window = ordinals between the first undone and the last
 * leased.
 */
#ifndef TRAINYARD_COORD_LEDGER_H
#define TRAINYARD_COORD_LEDGER_H

#include "shard/ordinal_set.h"

enum { LEDGER_DEATHS_MAX = 3 };

struct ledger;
struct ledger *ledger_new(int64_t total); /* ordinals 0 .. total-1 */
void ledger_free(struct ledger *l);
DEFINE_AUTO(ledger, ledger_free);

struct ledger_wish {
    int worker;          /* the caller's number of the worker's process: an incarnation gets a new number */
    int64_t from, limit; /* ordinals to choose from: half-open */
    int64_t want;        /* at most so many */
};
/* Leases the lowest free ordinals in a row: returns their number (0: none now) and the first. */
int64_t ledger_lease(struct ledger *l, const struct ledger_wish *w, int64_t *ret_first);
/* The lowest free ordinal from `from` on and below the limit, or -1. */
int64_t ledger_first_free(const struct ledger *l, int64_t from, int64_t limit);
/* One above the highest ordinal that is done or leased. */
int64_t ledger_top(const struct ledger *l);
/* Half-open ranges of ordinals, ascending: [r[0], r[1]), [r[2], r[3]), ... n values. */
struct ordinal_ranges {
    const int64_t *r;
    size_t n;
};

struct held_batches {
    int worker;
    int64_t first, end; /* half-open */
};

/* The worker reports the ordinals that it holds, as ascending ranges. What it does not name of its leases is complete
 * as far as it knows, or it has given it up; the next observation begun after now_ms decides. */
void ledger_complete(struct ledger *l, int worker, struct ordinal_ranges held, int64_t now_ms);
/* Restores the leases that a worker still holds, of an earlier chief or from before a pause: every free ordinal of
 * `held` is leased to that worker. */
void ledger_reclaim(struct ledger *l, int worker, struct ordinal_ranges held);
/* The worker's leases are free again. Returns the first undone ordinal on which it still worked, or -1. */
int64_t ledger_drop(struct ledger *l, int worker);
/* A worker died on this ordinal, which is not leased to it any more; ignored when it is done. */
void ledger_count_death(struct ledger *l, int64_t ordinal);

/* What every segment has applied, requested at time begun_ms. */
void ledger_observe(struct ledger *l, const struct ordinal_set *done, int64_t begun_ms);

int64_t ledger_total(const struct ledger *l);
int64_t ledger_done(const struct ledger *l); /* number of ordinals that are done */
bool ledger_finished(const struct ledger *l);
/* Number of ordinals below the limit that are neither done nor leased; those that were done out of order may count. */
int64_t ledger_free_below(const struct ledger *l, int64_t limit);
/* A worker holds a lease that begins below the limit. */
bool ledger_leased_below(const struct ledger *l, int64_t limit);
/* The worker to whom the ordinal is leased, or -1. */
int ledger_holder(const struct ledger *l, int64_t ordinal);
/* The lowest lease in progress of the worker that begins at `from` or above. False: there is none. */
bool ledger_next_of(const struct ledger *l, int worker, int64_t from, struct held_batches *ret);
/* The lowest batches below the limit that another worker than `asking` has not computed. False: there are none. */
bool ledger_first_held(const struct ledger *l, int asking, int64_t limit, struct held_batches *ret);
/* Nothing below the limit is free or in progress: an observation now may give new information. */
bool ledger_drained(const struct ledger *l, int64_t limit);
const struct ordinal_set *ledger_done_set(const struct ledger *l);
/* An ordinal on which LEDGER_DEATHS_MAX workers died, or -1. */
int64_t ledger_poisoned(const struct ledger *l);

#endif
