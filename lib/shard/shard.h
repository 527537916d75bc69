/* shard - the segments that one ps holds, and every operation on them: the core of trainyard-ps and, called directly,
 * of single-machine training (params/params.h has the client for both).
 *
 * Each segment keeps (values, slots, version, applied set) under its own lock, so pushes apply in parallel, and a
 * snapshot takes the four together. A push of an ordinal that a segment already has changes nothing.
 *
 *     shard_init -> LOADING -> shard_restore of each segment -> shard_serve -> SERVING -> shard_finish -> FINISHED
 *
 * Generations (design 4a): shard_init and shard_adopt raise it and return only when no call of an older generation is
 * inside the shard, so later calls of such a caller are fenced and never applied. Thread-safe; calls block on segment
 * locks only, init/adopt/serve/finish also until the calls inside have left. Memory for values and slots is made once,
 * at Init.
 */
#ifndef TRAINYARD_SHARD_SHARD_H
#define TRAINYARD_SHARD_SHARD_H

#include "nn/optimizers/optimizer.h"
#include "shard/generation.h"
#include "shard/group_sums.h"
#include "shard/groups.h"
#include "shard/layout.h"
#include "shard/ordinal_set.h"
#include "shard/rates.h"
#include "tensor/tensor.h"

enum { SHARD_UID_MAX = 64 };
enum shard_state { SHARD_UNINITIALISED, SHARD_LOADING, SHARD_SERVING, SHARD_TERMINATING, SHARD_FINISHED };

struct shard;
/* incarnation: random, non-zero, of this process. */
struct shard *shard_new(uint64_t incarnation);
/* Only this job may use it (TRAINYARD_JOB_UID); without it the first Init decides. Before any other call. */
void shard_set_job(struct shard *s, const char *job_uid);
void shard_free(struct shard *s);
DEFINE_AUTO(shard, shard_free);

/* The caller. A different job_uid than the one of Init is ERR_REFUSED; an older generation than the shard's is
 * ERR_FENCED ("generation 3 is over, this is 4"); a newer one, outside Init, Adopt and Finish, is ERR_NOT_READY, and so
 * is whatever needs a state that is not reached. After shard_finish all is ERR_REFUSED "the job has finished".
 *
 * A generation belongs to the chief that named it first (Init or Adopt). The calls of a chief only - Init, Adopt,
 * Restore, Serve, Snapshot, Finish - are ERR_FENCED when they come from another incarnation in that generation. */
struct shard_caller {
    const char *job_uid, *sender;
    uint64_t generation;
    uint64_t incarnation; /* of the caller's process */
};

uint64_t shard_incarnation(const struct shard *s);
/* Checks whether this caller may pull and push now, as shard_pull and shard_push do. */
MUST_USE int shard_check(struct shard *s, const struct shard_caller *who, struct err *e);

struct shard_info {
    uint64_t incarnation, generation, layout_hash;
    uint64_t chief; /* incarnation of the chief that named the generation; 0: none did, or not known */
    enum shard_state state;
    /* Intersection over its segments of what each has. In synchronous training a gradient counts that waits for the
     * rest of its group: it needs not be computed again. shard_info_fini */
    struct ordinal_set applied;
    int64_t version_min, version_max;
    struct groups groups; /* size 0: asynchronous */
    uint64_t pushes, duplicates, staleness_sum, staleness_max, apply_ns;
    char job_uid[SHARD_UID_MAX];
};
void shard_describe(struct shard *s, struct shard_info *ret);
/* The same without applied set and versions: reads no segment, for callers that poll. */
void shard_brief(struct shard *s, struct shard_info *ret);
size_t shard_bytes(struct shard *s); /* values and slots; in synchronous training also what a group needs */
void shard_info_fini(struct shard_info *i);
DEFINE_AUTO_FINI(shard_info, shard_info_fini);

/* segments: ascending ids. The same call again, in the same generation, changes nothing. */
MUST_USE int shard_init(struct shard *s, const struct shard_caller *who, const char *optimizer_json,
                        const struct segment_spec *segments, size_t n, uint64_t layout_hash, struct err *e);
/* Synchronous updates: gradients are applied in groups. After shard_init, in the same generation and before the first
 * shard_restore; without it each gradient is an update at once. The same call again changes nothing. */
MUST_USE int shard_set_groups(struct shard *s, const struct shard_caller *who, const struct groups *groups,
                              struct err *e);
/* Keeps all state and moves to who->generation; ERR_NOT_READY unless it serves. */
MUST_USE int shard_adopt(struct shard *s, const struct shard_caller *who, struct err *e);

/* The learning rates that callbacks have set: from now on a batch is applied at the rate of its ordinal. After
 * shard_init or shard_adopt, in the same generation. */
MUST_USE int shard_set_rates(struct shard *s, const struct shard_caller *who, const struct rates *rates, struct err *e);

/* A gather view of bulk bytes: next() yields consecutive ranges (1) or the end (0); they add up to size. */
struct bytes_in {
    int (*next)(void *user, const void **ret, size_t *ret_size);
    void (*again)(void *user); /* next() begins with the first range again */
    void *user;
    size_t size;
    enum dtype element; /* of what the bytes are; only DT_FLOAT is supported */
};
/* Bytes in one contiguous range: floats. */
struct one_range {
    const void *data;
    size_t size;
    bool given;
};
struct bytes_in one_range(struct one_range *range);
/* Sets one segment: values, then (with_slots) each slot; without, slots get the optimizer's initial values. */
MUST_USE int shard_restore(struct shard *s, const struct shard_caller *who, uint32_t id, bool with_slots,
                           int64_t version, const struct ordinal_set *applied, struct bytes_in *payload, struct err *e);
MUST_USE int shard_serve(struct shard *s, const struct shard_caller *who, struct err *e);

/* Some of the segments a shard holds, counted in the order of Init: large shards are pulled and pushed in parts. */
struct shard_part {
    size_t first, count; /* count 0: all from first on */
};
struct shard_sizes {
    size_t segments;   /* in the part */
    size_t pull, push; /* bytes: of all of them, of all but CONST ones */
    size_t shard;      /* bytes of a pull of the whole shard */
};
/* All 0 before Init. ERR_INPUT when the part reaches beyond the segments. */
MUST_USE int shard_measure(struct shard *s, struct shard_part part, struct shard_sizes *ret, struct err *e);

/* Memory for the results, of exactly the sizes of the part (else ERR_NOT_READY: the shard was initialised again). */
struct shard_out {
    float *values;      /* NULL: not wanted */
    size_t size;        /* bytes of values */
    enum dtype element; /* of values; only DT_FLOAT is supported */
    int64_t *versions;  /* NULL: not needed; else one for each segment of the part */
    size_t nversions;
    /* NULL, or allocates the memory once the caller and the part are known to be valid: fills the members above. May
     * fail. */
    int (*make)(struct shard_out *out, const struct shard_sizes *sizes, struct err *e);
};
MUST_USE int shard_pull(struct shard *s, const struct shard_caller *who, struct shard_part part, struct shard_out *out,
                        struct err *e);
/* The same in synchronous training: values of one step, those from which the group that begins with the ordinal `at`
 * is computed. A segment keeps those of its step and of the one before (with shard_use_vector only the former).
 * ERR_PENDING: a segment still waits for gradients ("the gradients of batches 4, 6"); ERR_STALE: a segment is two steps
 * on, so every segment of the job has the whole group. */
MUST_USE int shard_pull_at(struct shard *s, const struct shard_caller *who, struct shard_part part, int64_t at,
                           struct shard_out *out, struct err *e);
/* Called after updates of groups, and after each change of generation or state: what was ERR_PENDING may be there.
 * From any thread; it may not call the shard. NULL: none. */
void shard_on_update(struct shard *s, void (*fn)(void *user), void *user);
/* The number of such moments; blocks until it is not `seen`, or until deadline_ms. */
uint64_t shard_updates(struct shard *s);
void shard_await_update(struct shard *s, uint64_t seen, int64_t deadline_ms);
/* Applies the gradient bytes of one ordinal and copies the new values of the same segments out. seen: versions the
 * gradient came from, one for each segment of the part (NULL: unknown). The gradient is read directly from the
 * received ranges. *ret_duplicate: every segment already had it. Exactly once holds for each segment by itself.
 * ERR_DIVERGED: a gradient is not finite; nothing of the push was applied. In synchronous training no values are
 * copied (out->values is NULL then), and an ordinal behind the group of now is ERR_PENDING. */
MUST_USE int shard_push(struct shard *s, const struct shard_caller *who, struct shard_part part, int64_t ordinal,
                        const int64_t *seen, struct bytes_in *grads, struct shard_out *out, bool *ret_duplicate,
                        struct err *e);
/* The same with gradients and values in vectors of the model's layout: nothing is gathered or scattered.
 */
struct shard_vectors {
    const float *grads;
    float *values; /* NULL: not wanted */
    size_t floats; /* in each */
    bool trusted;  /* the caller has checked that all gradients are finite */
};
MUST_USE int shard_push_vectors(struct shard *s, const struct shard_caller *who, struct shard_part part,
                                int64_t ordinal, const int64_t *seen, const struct shard_vectors *vectors,
                                int64_t *versions, size_t nversions, bool *ret_duplicate, struct err *e);

/* shard_pull_at into such a vector. */
MUST_USE int shard_pull_vectors_at(struct shard *s, const struct shard_caller *who, struct shard_part part, int64_t at,
                                   const struct shard_vectors *vectors, int64_t *versions, size_t nversions,
                                   struct err *e);

/* Synchronous training: adds the statistics of batches in a phase of their step (shard/group_sums.h). The caller
 * computes from the values of that step. ERR_PENDING: those of other batches are missing. ERR_STALE: the step is over.
 * The second one waits for up to q->wait_ms. */
MUST_USE int shard_reduce(struct shard *s, const struct shard_caller *who, struct group_request *q, struct err *e);
MUST_USE int shard_reduce_wait(struct shard *s, const struct shard_caller *who, struct group_request *q, struct err *e);

struct shard_snapshot { /* of one segment; data: values then slots, count floats each */
    int64_t version;
    struct ordinal_set applied;
    int slots;
    size_t count;
    float *data; /* free()d by shard_snapshot_fini */
};
MUST_USE int shard_snapshot(struct shard *s, const struct shard_caller *who, uint32_t id, struct shard_snapshot *ret,
                            struct err *e);
/* Synchronous training: the state of one step, in which all ordinals below `at`, the first of a group, are applied and
 * no others. Announced before, every segment copies itself as soon as it is there, and training goes on. Then each
 * copy is taken once. ERR_PENDING: not there yet. ERR_STALE: a segment is beyond, and has no copy. */
MUST_USE int shard_announce_snapshot(struct shard *s, const struct shard_caller *who, int64_t at, struct err *e);
MUST_USE int shard_snapshot_at(struct shard *s, const struct shard_caller *who, uint32_t id, int64_t at,
                               struct shard_snapshot *ret, struct err *e);
void shard_snapshot_fini(struct shard_snapshot *s);
DEFINE_AUTO_FINI(shard_snapshot, shard_snapshot_fini);

/* The checkpoint with all snapshots that were taken until now is published. Before that a snapshot saves nothing: its
 * checkpoint may still be given up. */
MUST_USE int shard_confirm_snapshots(struct shard *s, const struct shard_caller *who, struct err *e);

/* ---- a member of an all-reduce (collective/collective.h), whose shard has all segments ---- */

/* The gradients of a group are added elsewhere: no push is taken. Before shard_init. */
void shard_take_sums(struct shard *s);
/* The update of the step that begins with the ordinal `at`, from the sums of all its gradients, a vector of the model's
 * layout: of weighted gradients (groups_weight), for VAR_MOVING the next values. ERR_NOT_READY: it is at another step,
 * or does not serve. One caller at a time. */
MUST_USE int shard_apply_sums(struct shard *s, int64_t at, const float *sums, struct err *e);
/* Serving or loading: forgets values and slots, and is LOADING again, in the same generation. */
MUST_USE int shard_load_again(struct shard *s, struct err *e);
/* The state of a segment, by its index in the order of Init, for another member. ERR_NOT_READY: there is none. */
MUST_USE int shard_copy(struct shard *s, size_t index, struct shard_snapshot *ret, struct err *e);
/* A hash of the whole state: values, slots, versions, applied sets. */
MUST_USE int shard_state_hash(struct shard *s, uint64_t *ret, struct err *e);

/* SIGTERM arrived: SERVING is reported as TERMINATING; everything else continues. */
void shard_terminating(struct shard *s);
/* shard_terminating was called, and every segment is in a checkpoint: by a snapshot taken since, or by one that holds
 * all that had been applied by then. The chief has confirmed it. */
bool shard_saved(struct shard *s);
/* Any generation that is not older is accepted, also in a shard that was never initialised. A repeated call succeeds.
 */
MUST_USE int shard_finish(struct shard *s, const struct shard_caller *who, struct err *e);

/* Single machine: the values are in the caller's parameter vector (model layout) instead of separate memory, so
 * pulling costs nothing. Call before shard_init; vector outlives the shard. shard_vector: that vector or NULL. */
void shard_use_vector(struct shard *s, float *vector);
float *shard_vector(const struct shard *s);

#endif
