/* collective - a member of MultiWorkerMirrored: the whole state of the training in a shard of this process, and the
 * exchange of gradients with the other members. There are no parameter servers.
 *
 * Step by step all members of a view (collective/view.h) compute the batches of a group from the same values. Each
 * sends the gradient of a batch to the owners of its chunks. The owner adds the gradients of a chunk in the order of
 * their ordinals, and gives the sum to every member. Who has the sums of all chunks makes the update. So all have the
 * same values again, in the same bits as with parameter servers (shard/update_sync.c).
 *
 * An owner adds gradients of a step only when it has applied the step before, and every member is an owner. So no two
 * members are more than one step apart. (Two members that own all chunks wait until the other one has begun the step
 * and has all gradients, reduction_delivered.) A member keeps the sums of the last step it has applied, for one that is
 * behind. What happens when members come or go is decided by the chief (collective/params_members.h), which stops
 * the view, asks who is how far, and starts the next one.
 *
 * Three kinds of threads use it: the one that trains (collective_enter ...), those of the server (collective_methods),
 * and its own, which does what the one that trains does not come for (collective_step.c).
 */
#ifndef TRAINYARD_COLLECTIVE_COLLECTIVE_H
#define TRAINYARD_COLLECTIVE_COLLECTIVE_H

#include "params/shard_service.h"
#include "rpc/rpc.h"
#include "shard/shard.h"

struct collective_config {
    const struct layout *layout; /* borrowed, as all pointers */
    struct shard *shard;         /* updates a vector of this process (shard_use_vector); shard_take_sums was called */
    const char *name;            /* of this member: "worker-3" */
    uint64_t incarnation;
    const struct rpc_credentials *credentials;
    bool share; /* memory with members on this host */
};
struct collective;
MUST_USE int collective_new(const struct collective_config *config, struct collective **ret, struct err *e);
/* After the server that has its methods. */
void collective_free(struct collective *c);
DEFINE_AUTO(collective, collective_free);

/* The methods of a member's server: Peer, and of Parameters what the chief calls, and Reduce. */
enum { COLLECTIVE_METHODS = 2 + 7 };
void collective_methods(struct collective *c, struct rpc_method ret[COLLECTIVE_METHODS]);
/* Once the server has started; NULL: before rpc_server_free. */
void collective_serve(struct collective *c, struct rpc_server *server);

/* SIGTERM arrived: the chief starts a view without this member, or saves its state if no other member has it. */
void collective_terminating(struct collective *c);
/* Then: the state of this member is not needed any more. It is in a checkpoint, or the others train without it, or no
 * chief is heard. */
bool collective_may_leave(struct collective *c, int64_t now_ms);

/* ---- the thread that trains ---- */

/* Waits until the values are those of the step that begins with `at`, in a view that runs; makes the update before it,
 * if the sums are there. Then the values do not change until collective_leave. next_at: the step, likewise, of the
 * batch that the caller computes after this one; -1: it does not know. ERR_PENDING: not within wait_ms; the message
 * says for what it waits. ERR_STALE: the step is over. Else why the exchange cannot go on. */
MUST_USE int collective_enter(struct collective *c, int64_t at, int64_t next_at, int64_t wait_ms, struct err *e);
/* Between the two: memory for the gradient that members on this host read; NULL: there is none. */
float *collective_gradient(const struct collective *c);
size_t collective_shared(struct collective *c); /* members whose gradients come through shared memory. Thread-safe */
void collective_leave(struct collective *c);    /* also after a failure, and when it was not entered */
/* Between the two: gives the gradient of an ordinal of the step. collective_give sends what lies in chunks that are
 * complete from the float `from` on, does not block, and is called with a lower `from` as more is complete.
 * collective_given, after collective_give with 0, blocks until all owners have it. The memory must stay as it is until
 * the next collective_enter has entered a step, collective_take_back or collective_free.
 * ERR_PENDING: some owners do not have it; it must be given again later, if the step is not over then. */
void collective_give(struct collective *c, int64_t ordinal, const float *gradient, size_t from);
MUST_USE int collective_given(struct collective *c, struct err *e);
/* The memory of the gradient that was given last is not read any more. Not between enter and leave. ERR_NOMEM: it may
 * still be. */
MUST_USE int collective_take_back(struct collective *c, struct err *e);
/* Between enter and leave: changes with each view. */
uint64_t collective_view_number(const struct collective *c);
/* Between the two, before the gradient: the sums of batch statistics over the group (shard/group_sums.h), which the
 * first member of the view adds. ERR_PENDING: not within q->wait_ms. ERR_STALE: the step is over. */
MUST_USE int collective_reduce(struct collective *c, struct group_request *q, struct err *e);
#endif
