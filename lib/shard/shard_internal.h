/* shard_internal - what the files of the shard share: shard.c (states and generations), shard_apply.c (pull, push),
 * shard_store.c (restore, snapshot), update_async.c and update_sync.c (what a gradient does), shard_reduce.c
 * (statistics of a group), shard_group.c (the group of a segment).
 *
 * The gate: every call that uses segments holds it shared. A call that changes the generation, the state or the set of
 * segments holds it exclusively. Writers come first, because a stream of pushes could otherwise block a new chief
 * forever.
 */
#ifndef TRAINYARD_SHARD_SHARD_INTERNAL_H
#define TRAINYARD_SHARD_SHARD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "shard/float_reader.h"
#include "shard/shard.h"

/* Synchronous training: the gradients of a group before its update, and the step before. */
struct segment_group {
    int64_t first, end;  /* ordinals; all below `first` are applied */
    int64_t next;        /* the gradients below are in `sum` */
    int64_t received;    /* gradients of the group */
    bool *has;           /* [end - first] */
    float **waiting;     /* [end - first]: those that came before their turn, or NULL */
    int64_t lent;        /* this one is memory of its pusher; -1: none is */
    bool due;            /* all are there, and threads make the update (segment_settle) */
    size_t handed, open; /* of its floats: given to a thread; not updated yet */
    float *sum;          /* weighted; VAR_MOVING: the next values instead */
    float *previous;     /* values of the step before; NULL: the values are in the caller's vector */
    int64_t previous_at; /* first ordinal of that step's group; -1: there is none */
};

struct segment {
    struct segment_spec spec;
    struct mutex lock;
    /* under lock: */
    float *values, *slots[OPTIMIZER_MAX_SLOTS];
    struct opt_state state; /* state.t is the version */
    struct ordinal_set applied;
    bool restored;
    bool clean;                 /* nothing was applied since the last snapshot or restore */
    bool saved;                 /* it was clean at, or since, shard_terminating */
    struct segment_group group; /* synchronous training */
    struct shard_snapshot copy; /* of the step that was announced; data NULL: there is none */
    int64_t copy_at;            /* first ordinal of the group that follows it */
    /* fixed: */
    bool sums_elsewhere; /* as in struct shard */
    bool in_place;       /* values: in the caller's vector. All who push are threads of this process */
    int nslots;
    size_t pull_at, push_at; /* bytes of pull and push before this segment */
    void *memory;
};

struct update_policy;
struct shard {
    pthread_rwlock_t gate;
    uint64_t incarnation;
    const struct update_policy *policy;
    float *vector;
    bool sums_elsewhere; /* see shard_take_sums */
    /* under the gate: */
    char job_uid[SHARD_UID_MAX];
    uint64_t generation, layout_hash;
    uint64_t chief;         /* incarnation of the chief to which the generation belongs */
    enum shard_state state; /* never SHARD_TERMINATING: that is SERVING and terminating */
    bool terminating;
    atomic_bool unconfirmed; /* a snapshot was taken that may be in no checkpoint */
    char *optimizer_json;
    struct optimizer *optimizer;
    struct rates rates;            /* of the chief's callbacks */
    struct groups groups;          /* size 0: asynchronous */
    atomic_int_fast64_t announced; /* the step of the next snapshot, by its first ordinal; -1: none */
    struct mutex updated_lock;
    struct cond updated;
    uint64_t updates; /* under updated_lock */
    void (*on_update)(void *user);
    void *on_update_user;
    struct segment *segments;
    size_t n, pull_size, push_size;
    struct mutex sums_lock;
    struct group_sums *sums; /* under sums_lock */
    size_t vector_floats;    /* the vector is at least as long as its segments need */
    atomic_uint_fast64_t pushes, duplicates, staleness_sum, staleness_max, apply_ns;
};

static inline void gate_leave_(pthread_rwlock_t **gate)
{
    pthread_rwlock_unlock(*gate);
}
static inline pthread_rwlock_t *gate_shared_(struct shard *s)
{
    pthread_rwlock_rdlock(&s->gate);
    return &s->gate;
}
static inline pthread_rwlock_t *gate_exclusive_(struct shard *s)
{
    pthread_rwlock_wrlock(&s->gate);
    return &s->gate;
}
#define GATE_SHARED(s)    __attribute__((cleanup(gate_leave_), unused)) pthread_rwlock_t *gate_ = gate_shared_(s)
#define GATE_EXCLUSIVE(s) __attribute__((cleanup(gate_leave_), unused)) pthread_rwlock_t *gate_ = gate_exclusive_(s)

/* All under the gate. The caller's job and generation are those of the shard, and its state is `state`. */
MUST_USE int shard_admit(const struct shard *s, const struct shard_caller *who, enum shard_state state, struct err *e);
MUST_USE int shard_find(struct shard *s, uint32_t id, struct segment **ret, struct err *e);
/* The same for calls of the chief only: the generation must be the caller's. */
MUST_USE int shard_admit_chief(const struct shard *s, const struct shard_caller *who, enum shard_state state,
                               struct err *e);
static inline size_t segment_bytes(const struct segment *g)
{
    return g->spec.count * sizeof(float);
}

/* Values and slots are of no step any more. Under the gate, exclusively. */
void segment_forget(struct segment *g);
/* Values and slots, version and applied set; under the segment's lock. */
MUST_USE int segment_copy(const struct segment *g, struct shard_snapshot *ret, struct err *e);
/* Wakes whoever waits for updates. Without the lock of a segment. */
void shard_updated(struct shard *s);

/* ---- shard_group.c: under the segment's lock ---- */
/* Begins with the group at the applied set's low-water mark. ERR_INPUT: that is within a group. */
MUST_USE int group_begin(struct segment *g, const struct groups *groups, struct err *e);
void group_fini(struct segment *g);
/* Adds "the gradients of batches 4, 6 and 3 more" to out: those that are missing. */
void group_describe_missing(const struct segment *g, struct buf *out);
/* The values at the step whose group begins with `at`; ERR_PENDING, ERR_STALE. */
MUST_USE int group_values(const struct segment *g, int64_t at, const float **ret, struct err *e);
/* Everything that the segment has: applied, or waiting for the rest of its group. */
void group_received(const struct segment *g, struct ordinal_set *ret);

/* ---- update_sync.c ---- */
/* Under the gate, without the lock of a segment: makes the update that is due, beside other threads that do the same.
 * Returns when it is made. */
void segment_settle(struct shard *s, struct segment *g);
void shard_settle(struct shard *s); /* all segments */
/* The lock of a segment of which no update is due: whoever reads values takes it so. */
struct mutex *segment_lock_settled(struct shard *s, struct segment *g);
#define SETTLED_GUARD(s, g)                                                                                            \
    __attribute__((cleanup(mutex_guard_), unused)) struct mutex *settled_guard_ = segment_lock_settled(s, g)

/* ---- shard_reduce.c ---- */
/* Under the gate, exclusively: the state is another one. */
void shard_forget_sums(struct shard *s);

/* ---- shard_store.c ---- */
/* The state of now is kept for shard_snapshot_at(). Without memory there is no copy, and the snapshot fails. */
void segment_keep_copy(struct segment *g, int64_t at);

/* ERR_REFUSED unless it is float32. what: "gradient". */
MUST_USE int shard_element_check(enum dtype element, const char *what, struct err *e);

#endif
