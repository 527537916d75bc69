/* params - the data plane of the parameters: a process's view of the parameter vector, wherever that lives: on n ps
 * over gRPC, or in a shard of this process. Pull, push, gradients, versions and progress. The chief's calls to the ps
 * (describe, initialise, restore, snapshot, finish) are the control plane, params/params_admin.h. Each plane has a
 * table of operations; one conformance test covers both forms.
 *
 * One params object belongs to one thread. It owns the local copy of the vector (params_vector), which params_pull and
 * params_push refresh in place. Calls to the ps go out in parallel.
 *
 * Every message has a deadline: deadline_ms, plus the time that its bytes take at PARAMS_FLOOR_BYTES_A_MS. A message
 * has at most 4 MiB of values (SEGMENT_MAX), with slots for Restore and Snapshot. So a deadline ends a call that makes
 * no progress, and not one that is slow. The keepalive of a connection (rpc/settings.c) detects a lost host sooner.
 */
#ifndef TRAINYARD_PARAMS_PARAMS_H
#define TRAINYARD_PARAMS_PARAMS_H

#include "shard/shard.h"

enum { PARAMS_GRADIENTS = 2 };
enum { PARAMS_FLOOR_BYTES_A_MS = 64 }; /* 64 kB/s: the slowest link that deadlines allow for */

struct params;

struct params_identity {
    const char *job_uid, *sender; /* borrowed for the lifetime of the object */
    uint64_t incarnation;
};
/* hosts: "host:port" of each ps. layout and placement are borrowed. */
struct rpc_credentials;
struct params *params_new_grpc(const struct layout *l, const struct placement *p, char *const hosts[],
                               const struct params_identity *id, const struct rpc_credentials *credentials);
/* One process that serves all segments and is not a ps: errors name it. Pushes go without shared memory. */
struct params_peer {
    const char *name, *host; /* copied */
    float *vector;           /* of the caller, used in place of an own one; NULL: an own one */
};
struct params *params_new_peer(const struct layout *l, const struct placement *p, const struct params_peer *peer,
                               const struct params_identity *id, const struct rpc_credentials *credentials);
/* Everything in `shard`, which uses the vector of this object (shard_use_vector is called here). */
struct params *params_new_local(const struct layout *l, struct shard *shard, const struct params_identity *id);
/* For further threads of this process: the vector is that of the shard, which another params object has. A pull copies
 * nothing, and the values change while others push; in synchronous training not before this object has pushed its
 * gradients of the step. */
struct params *params_new_in_place(const struct layout *l, struct shard *shard, const struct params_identity *id);
void params_free(struct params *p);
DEFINE_AUTO(params, params_free);

/* layout->vector floats, 64-byte aligned; valid until the next call that pulls or pushes. */
float *params_vector(struct params *p);
/* Memory for a gradient, of the same size and alignment. A push from it copies nothing where ps and worker share
 * memory; a push of any other memory works, too. There are PARAMS_GRADIENTS, so that one can be filled while the other
 * is in flight. Valid, with its content, until the next call with the same `which`. */
MUST_USE int params_gradients(struct params *p, int which, float **ret, struct err *e);
void params_set_generation(struct params *p, uint64_t generation);
uint64_t params_generation(const struct params *p);
uint64_t params_incarnation(const struct params *p); /* of the caller's process */

/* Fetches all values. Errors name the ps: "ps-1 (host:port): ...". ERR_LOST/ERR_TIMEOUT: unreachable; ERR_NOT_READY:
 * wait and retry; ERR_FENCED: register with the chief again. */
MUST_USE int params_pull(struct params *p, int64_t deadline_ms, struct err *e);
/* The same after a pull that failed: what it fetched is kept, as long as the generation is the same and every ps the
 * same process. The parts are then of different times. */
MUST_USE int params_pull_rest(struct params *p, int64_t deadline_ms, struct err *e);

/* Synchronous training: pushes bring no values back, and values are pulled by step. From the first call on. */
void params_set_synchronous(struct params *p);
/* The values from which the group that begins with the ordinal `at` is computed. Waits for up to wait_ms at the ps.
 * ERR_PENDING: some gradients of the step before are missing (call it again: what has come is kept, but the vector is
 * then of no step); ERR_STALE: the step is over, and every segment has the group. Else as params_pull. */
MUST_USE int params_pull_at(struct params *p, int64_t at, int64_t wait_ms, int64_t deadline_ms, struct err *e);

/* Synchronous training, between params_pull_at and the push of the batches: the sums of their statistics over all
 * batches of the group (shard/group_sums.h). ERR_PENDING: those of other batches are not there within wait_ms; call it
 * again. ERR_STALE: the step is over. Else as params_pull. */
MUST_USE int params_reduce(struct params *p, struct group_request *q, int64_t deadline_ms, struct err *e);

/* The next push also brings the values of the step whose group begins with `at`, if they are there within wait_ms
 * (push_result.has_values); if not, the vector is of no step. Where the push of a ps is several messages, or goes
 * through shared memory, it brings none. */
void params_want_step(struct params *p, int64_t at, int64_t wait_ms);

/* Smallest and largest version of the segments in the vector, from the last pull or push. When they are equal, they
 * are the step of the values. */
void params_versions(const struct params *p, int64_t *ret_min, int64_t *ret_max);

/* Pushes the gradients of an ordinal (a vector in the model's layout) to every ps and takes the new values. After an
 * error the same call may be repeated (with the same grads, or by another worker): ps that had it answer success.
 * A repetition sends only what is missing, within a generation and while every ps is the same process.
 * Acks of another generation are dropped (ERR_FENCED). */
struct push_result {
    bool duplicate;      /* all ps had it */
    bool has_values;     /* of the step that params_want_step named; the vector has them */
    int64_t staleness;   /* largest over segments: version at arrival minus version seen */
    int64_t version_min; /* over all segments, after the push */
};
MUST_USE int params_push(struct params *p, int64_t ordinal, const float *grads, int64_t deadline_ms,
                         struct push_result *ret, struct err *e);
/* The two halves of params_push, so that a worker can do something between them: at most one push is in flight.
 * params_push_finish writes the vector. direct: the vector is not read before, so that a ps that shares memory may
 * write it at once; otherwise it stays unchanged until then. */
MUST_USE int params_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                               struct err *e);
MUST_USE int params_push_finish(struct params *p, struct push_result *ret, struct err *e);
/* Sends the complete part of a gradient that is still being computed: all messages that need only floats from `from`
 * on. Call it again with a lower `from` when more is complete; params_push of the same ordinal and gradient then
 * sends the rest. Only params_push reads the answers, so the vector stays unchanged until then. Does nothing where a
 * push is one message, or none. */
void params_push_early(struct params *p, int64_t ordinal, const float *grads, size_t from, int64_t deadline_ms);
/* Marks the current vector as the values from which the next push's gradient is computed. Call it before computing
 * while a push is in flight, so that staleness is counted from there. Without it the newest values are assumed. */
void params_mark(struct params *p);

/* Bytes that arrived, of all pulls and pushes: while it grows between two attempts, there is progress. */
uint64_t params_moved(const struct params *p);
/* Called by a pull or push that has taken `after_ms`, between its messages: since when, and "ps-1 (host:port): 12.0 MiB
 * of 64.0 MiB pulled". Its error ends the call. */
typedef int params_watch_fn(void *user, int64_t since_ms, const char *progress, struct err *e);
void params_watch(struct params *p, int64_t after_ms, params_watch_fn *watch, void *user);

#endif
