/* shard - the segments one ps holds, and everything a ps may be asked: the inside of trainyard-ps, and, called
 * directly, of single-machine training (train/params.h has the client for both).
 *
 * Each segment keeps (values, slots, version, applied set) under its own lock, so pushes apply in parallel, and a
 * snapshot takes the four together. A push of an ordinal a segment has changes nothing. States and generations:
 * design 4a. Thread-safe; calls block only on segment locks. Memory for values and slots is made once, at Init.
 */
#ifndef TRAINYARD_TRAIN_SHARD_H
#define TRAINYARD_TRAIN_SHARD_H

#include "nn/optimizer.h"
#include "train/applied.h"
#include "train/layout.h"

enum shard_state { SHARD_UNINITIALISED, SHARD_LOADING, SHARD_SERVING, SHARD_TERMINATING, SHARD_FINISHED };

struct shard;
/* incarnation: random, non-zero, of this process. */
struct shard *shard_new(uint64_t incarnation);
void shard_free(struct shard *s);
DEFINE_AUTO(shard, shard_free)

/* Who asks. A different job_uid than the one of Init is ERR_REFUSED; an older generation than the shard's is
 * ERR_FENCED (message: "generation 3 is over, this is 4"); a newer one, outside Init, is ERR_NOT_READY. */
struct shard_caller {
    const char *job_uid, *sender;
    uint64_t generation;
};

struct shard_info {
    uint64_t incarnation, generation, layout_hash;
    enum shard_state state;
    struct applied applied;       /* intersection over its segments; shard_info_fini */
    int64_t version_min, version_max;
    uint64_t pushes, duplicates, staleness_sum, staleness_max, apply_ns;
    char job_uid[64];
};
void shard_describe(struct shard *s, struct shard_info *ret);
void shard_info_fini(struct shard_info *i);
DEFINE_AUTO_FINI(shard_info, shard_info_fini)

MUST_USE int shard_init(struct shard *s, const struct shard_caller *who, const char *optimizer_json,
                        const struct segment_spec *segments, size_t n, uint64_t layout_hash, struct err *e);
MUST_USE int shard_adopt(struct shard *s, const struct shard_caller *who, struct err *e);

/* A gather/scatter view of bulk bytes: next() yields consecutive ranges (1) or the end (0). */
struct bytes_in {
    int (*next)(void *user, const void **ret, size_t *ret_size);
    void *user;
    size_t size;                  /* total */
};
MUST_USE int shard_restore(struct shard *s, const struct shard_caller *who, uint32_t id, bool with_slots, int64_t version,
                           const struct applied *applied, struct bytes_in *payload, struct err *e);
MUST_USE int shard_serve(struct shard *s, const struct shard_caller *who, struct err *e);

/* Bytes of all segments / of all but CONST ones: what Pull and Push carry. 0 before Init. */
size_t shard_pull_size(const struct shard *s);
size_t shard_push_size(const struct shard *s);
size_t shard_segments(const struct shard *s);

/* Copies values of all segments, in order, into out (shard_pull_size bytes); versions[shard_segments]. */
MUST_USE int shard_pull(struct shard *s, const struct shard_caller *who, float *out, int64_t *versions, struct err *e);
/* Applies the gradient bytes of one ordinal and copies the new values of the same segments into out (NULL: none,
 * shard_push_size bytes otherwise). seen[]: versions the gradient came from (NULL: unknown). The gradient is read
 * straight from the received ranges. *ret_duplicate: every segment had it. */
MUST_USE int shard_push(struct shard *s, const struct shard_caller *who, int64_t ordinal, const int64_t *seen,
                        struct bytes_in *grads, float *out, int64_t *versions, bool *ret_duplicate, struct err *e);

struct shard_snapshot { /* of one segment; data: values then slots, count floats each */
    int64_t version;
    struct applied applied;
    int slots;
    size_t count;
    float *data;                  /* free()d by shard_snapshot_fini */
};
MUST_USE int shard_snapshot(struct shard *s, const struct shard_caller *who, uint32_t id, struct shard_snapshot *ret, struct err *e);
void shard_snapshot_fini(struct shard_snapshot *s);
DEFINE_AUTO_FINI(shard_snapshot, shard_snapshot_fini)

void shard_terminating(struct shard *s);  /* SIGTERM came */
MUST_USE int shard_finish(struct shard *s, const struct shard_caller *who, struct err *e);

/* Single machine: the values live in the caller's parameter vector (model layout) instead of memory of their own, so
 * pulling costs nothing. Call before shard_init; vector outlives the shard. */
void shard_use_vector(struct shard *s, float *vector);

#endif
