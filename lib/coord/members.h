/* members - the workers and evaluators of a job, and what each of them may speak of. Pure: time is a parameter.
 *
 * A member may report, and claim after a pause, only batches that were leased to it: a report of others would count in
 * place of their own, and its NaN would end the job. A member that the chief does not know yet may have leases of an
 * earlier chief, once.
 *
 * Not thread-safe. Memory: about 1 KiB for each member.
 */
#ifndef TRAINYARD_COORD_MEMBERS_H
#define TRAINYARD_COORD_MEMBERS_H

#include "collective/view.h"
#include "coord/coordinator_client.h"

/* The ranges of ordinals that were leased to a member last. A worker reports a batch soon after its lease, and holds
 * at most half as many ranges. */
enum { LEASED_RANGES = COORDINATOR_HELD_MAX };
struct leased_ranges {
    struct {
        int64_t first, end; /* half-open */
    } range[LEASED_RANGES];
    unsigned next; /* to overwrite */
};
void leased_ranges_add(struct leased_ranges *l, int64_t first, int64_t end);
bool leased_ranges_has(const struct leased_ranges *l, int64_t ordinal);

struct member {
    char name[64];
    char address[VIEW_ADDRESS_SIZE]; /* where it serves its peers; "": it does not */
    uint64_t incarnation;            /* a later process of a name has a higher one */
    enum role role;
    int number; /* the ledger's name of this process; -1: none yet */
    bool alive;
    bool claims_any;              /* what it holds may be leased to it by an earlier chief */
    bool reports_any;             /* likewise its first report */
    bool stalled;                 /* its batches were given to others; it gets none before it has computed one */
    bool silent;                  /* it has stalled because it was not heard: it gets batches when it is */
    bool waits;                   /* it computes nothing, by its last call: others must compute first */
    bool in_view;                 /* it is a member of the view that runs (coordinator_set_view) */
    int64_t suspect;              /* a batch that it holds and that was given to others then; -1: none */
    int64_t seen_ms, progress_ms; /* its last call; when it last computed a batch, or began */
    int64_t batch_ms;             /* a batch took so long, by its last report */
    uint64_t steps;
    struct leased_ranges leased;
};

struct members {
    struct member *items;
    size_t n, max;
};
void members_fini(struct members *l);
/* NULL: none has that name, or number. Pointers are valid until members_add. */
struct member *members_find(const struct members *l, const char *name);
struct member *members_numbered(const struct members *l, int number);
/* A new one, in place of one that has left if there are `max`. NULL: there are too many. */
struct member *members_add(struct members *l, const char *name);
size_t members_alive(const struct members *l, bool workers_only);

#endif
