/* collective_fetch - a list of parts that other members have: the sums of a step, or what a member that is behind takes
 * from another one. Several calls are in flight. Blocking; no lock is held. */
#ifndef TRAINYARD_COLLECTIVE_COLLECTIVE_FETCH_H
#define TRAINYARD_COLLECTIVE_COLLECTIVE_FETCH_H

#include "collective/collective_internal.h"

struct fetch;
struct fetch_kind {
    Trainyard__V1__TransferKind kind;
    uint32_t wait_ms;
    bool (*has)(struct fetch *f, size_t index);                       /* NULL: none is there */
    const struct view_member *(*from)(struct fetch *f, size_t index); /* who has it */
    int (*take)(struct fetch *f, size_t index, const struct rpc_message *m, const Trainyard__V1__TransferReply *reply,
                struct err *e);
};
extern const struct fetch_kind FETCH_SUMS;  /* of a step: each chunk from its owner */
extern const struct fetch_kind FETCH_KEPT;  /* all sums of a step, from one member that has made it */
extern const struct fetch_kind FETCH_STATE; /* all segments, from the member that keeps them for this one */
extern const struct fetch_kind FETCH_CHECK; /* a hash of the state */

struct fetch {
    const struct fetch_kind *kind;
    struct collective *c;
    uint64_t epoch, generation, view;
    char job_uid[SHARD_UID_MAX];
    int64_t at;
    size_t n, in_flight;
    struct view_member other;
    struct groups groups;
    struct view members;     /* of the view, for sums */
    struct reduction *to;    /* sums: borrowed */
    float *sums;             /* kept sums: of the whole vector */
    struct shard_caller who; /* state: as whom it is restored */
    int64_t found_at;        /* of the last answer: where the other member is, or the state */
    int64_t version;         /* of the state */
    uint64_t hash;
    struct peer_call *calls; /* [n] */
    bool *taken;             /* [n] */
};
/* n parts, of the step and the view of now. Under the lock. */
void fetch_init(struct fetch *f, struct collective *c, const struct fetch_kind *kind, size_t n);
void fetch_fini(struct fetch *f);
DEFINE_AUTO_FINI(fetch, fetch_fini);

/* Fetches all parts that are not there. After an error the same call fetches the rest; no call is in flight then. */
MUST_USE int fetch_all(struct fetch *f, struct err *e);
/* The same, again and again until all is there. False: the epoch is over, or it failed (e->code). */
bool fetch_patiently(struct fetch *f, struct err *e);
/* Says for what the member waits, and pauses. False: the epoch is over. */
bool fetch_pause(struct collective *c, uint64_t epoch, const struct err *cause, int64_t pause_ms);

/* The sum of a chunk of another member, in the payload of its answer. */
MUST_USE int fetch_sum(struct reduction *r, size_t chunk, const struct rpc_message *m, struct err *e);

#endif
