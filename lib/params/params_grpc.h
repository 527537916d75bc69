/* params_grpc - inside of the gRPC form of params/params.h:
 *
 *     params_grpc.c        a connection to each ps, and the chunks that its segments travel in
 *     params_transfer.c    a pull or push of the whole vector: all chunks at all ps
 *     params_message.c     one chunk as a gRPC message
 *     params_reduce.c      batch statistics
 *     params_shm.c         memory that is shared with ps of this host, so that a push needs no message
 *     params_grpc_admin.c  the control plane
 */
#ifndef TRAINYARD_PARAMS_PARAMS_GRPC_H
#define TRAINYARD_PARAMS_PARAMS_GRPC_H

#include "params/parameters_codec.h"
#include "params/params_internal.h"
#include "params/push_slot.h"

struct chunk {           /* some consecutive segments of a ps: one message */
    size_t first, count; /* in conn.segments */
    size_t pull, push;   /* bytes */
    int lane;
    struct rpc_piece *pieces; /* of the gradient */
    size_t npieces;
    struct buf head;
    struct rpc_call *call; /* in flight by gRPC, or */
    int slot;              /* in flight through conn.slots[slot]; -1: it is not */
    int64_t started_ms;
    bool done;       /* in this transfer */
    bool has_values; /* the answer brought those of the step that was wanted */
};
struct ps_connection {
    size_t index;
    char name[RPC_NAME_SIZE]; /* "ps-1" */
    struct rpc_channel *channel;
    int small_lane;       /* a lane without chunks, so that small calls need not wait behind them */
    uint64_t incarnation; /* of the process that answered first in this generation; 0: none did */
    const struct segment_spec **segments;
    size_t nsegments;
    struct versions {
        int64_t *v; /* [nsegments] */
        bool known;
    } now, marked,
        pushed; /* of the values in the vector; at the time of params_mark; what a gradient is computed from */
    struct chunk *chunks;
    size_t nchunks;
    size_t push;         /* bytes of all chunks */
    size_t left, window; /* chunks [0, left) are not started; at most `window` are in flight */
    size_t in_flight, bytes_in_flight;
    /* A ps of this host, see params_shm.c: */
    bool shm_allowed;
    size_t slots_at, slot_segments; /* bytes from the start of the memory; most segments of a chunk */
    int nslots;
    struct push_slot *slots[SLOTS_MAX]; /* NULL: nothing is shared now */
    uint32_t asked[SLOTS_MAX];          /* number of the newest request */
    bool busy[SLOTS_MAX];
    bool shm_unsettled;       /* a request has no answer: the ps may still read or write the memory */
    uint64_t shm_incarnation; /* of the process that serves the slots */
    int64_t shm_retry_ms;     /* when to offer memory again */
};
struct remote {
    struct params p;
    struct ps_connection *conns; /* [p.nps] */
    /* All chunks, those of different ps interleaved, the last first: the order in which they are started. */
    struct request {
        struct ps_connection *conn;
        struct chunk *chunk;
    } * requests;
    size_t nrequests;
    /* Of this transfer, or the last one: */
    int64_t ordinal, deadline_ms, since_ms; /* ordinal < 0: a pull; deadline of a chunk, beside the time of its bytes */
    int64_t at, wait_ms;                    /* of a pull of a step; at < 0: a pull of what is there */
    struct wanted_step wanted;              /* of a push */
    bool unfinished;                        /* it failed; chunks that are done need not be sent again */
    size_t done, total;                     /* bytes */
    const float *grads;
    size_t from;               /* floats below are not complete yet: chunks with them are not started */
    bool early;                /* begun by push_early, and not yet by push_start */
    struct push_result result; /* of the chunks that are done */
    bool borrows;              /* the vector is the caller's */
    bool is_marked;            /* since the last push */
    /* Memory for ps of this host, see params_shm.c: */
    struct shm_memory *memory;                         /* NULL: there is none; it holds p.vector */
    struct shm_memory *gradients_in[PARAMS_GRADIENTS]; /* that params_gradients gave a pointer into */
    size_t gradients_at[PARAMS_GRADIENTS + 1], values_at, staged_at,
        memory_size;           /* bytes; the last gradient is for a copy */
    size_t push_from, push_to; /* where gradients and values of this push are */
};

enum { PULLING = -1 };             /* instead of an ordinal: a pull */
enum { CHUNKS_IN_FLIGHT_MIN = 2 }; /* of a ps */

/* The time that bytes may take on the slowest link that is supported. */
static inline int64_t params_floor_ms(size_t bytes)
{
    return (int64_t)(bytes / PARAMS_FLOOR_BYTES_A_MS);
}
static inline struct remote *remote_of(struct params *p)
{
    return (struct remote *)(void *)p;
}

/* ---- params_transfer.c ---- */
void remote_forget(struct params *p);
void remote_mark(struct params *p);
int remote_pull(struct params *p, bool rest, int64_t deadline_ms, struct err *e);
int remote_pull_at(struct params *p, int64_t at, int64_t wait_ms, int64_t deadline_ms, struct err *e);
void remote_versions(const struct params *p, int64_t *ret_min, int64_t *ret_max);
int remote_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                      struct err *e);
void remote_push_early(struct params *p, int64_t ordinal, const float *grads, size_t from, int64_t deadline_ms);
int remote_push_finish(struct params *p, struct push_result *ret, struct err *e);
/* Ends the messages in flight; their answers are not read. */
void remote_drain(struct remote *r);

/* ---- params_message.c ---- */
void remote_header(const struct params *p, Trainyard__V1__Header *ret);
/* Puts "ps-1 (host:port): " before the error. */
int ps_error(const struct ps_connection *conn, struct err *e);
/* An answer must come from this generation, and from the process that answered first in it. */
MUST_USE int ps_admit(const struct params *p, struct ps_connection *conn, uint64_t incarnation, uint64_t generation,
                      struct err *e);
struct rpc_call *message_start_pull(struct remote *r, const struct request *j, int64_t deadline_ms);
struct rpc_call *message_start_push(struct remote *r, const struct request *j, int64_t deadline_ms);
/* Blocks until the answer or the deadline. */
MUST_USE int message_finish(struct remote *r, const struct request *j, struct err *e);
/* An answer to a push of a chunk: new versions of its segments. */
MUST_USE int remote_pushed(struct remote *r, const struct request *j, const int64_t *versions, size_t n, bool duplicate,
                           struct err *e);

/* The answer to a pull of a chunk. */
MUST_USE int remote_pulled(const struct request *j, const int64_t *versions, size_t n, struct err *e);

/* ---- params_reduce.c ---- */
int remote_reduce(struct params *p, struct group_request *q, int64_t deadline_ms, struct err *e);

/* ---- params_shm.c ---- */
void shm_setup(struct remote *r); /* once the connections are there */
/* The most bytes that a worker of the job offers: when all ps are on its host. 0: none. */
size_t shm_size_max(const struct remote *r);
void shm_fini(struct remote *r);
int shm_gradients(struct params *p, int which, float **ret, struct err *e);
/* Before a push, or a pull of a step: offers memory to ps of this host, replaces memory that is unsettled. */
void shm_prepare(struct remote *r);
/* Where the gradient of a push is read and its values are written, once the gradient is complete. A gradient that is
 * elsewhere is copied.
 */
void shm_locate(struct remote *r, bool direct);
void shm_locate_values(struct remote *r); /* of a pull of a step: the vector itself */
static inline bool shm_in_use(const struct ps_connection *conn)
{
    return conn->nslots > 0 && conn->slots[0] != NULL;
}
bool shm_any_in_use(const struct remote *r);
/* After the answer to a push of a chunk that was not direct: copies the new values into the vector. */
void shm_take_values(struct remote *r, const struct request *q);

/* ---- params_grpc_admin.c ---- */
extern const struct params_admin_ops remote_admin;
int remote_describe(struct params *p, size_t ps, int64_t deadline_ms, struct shard_info *ret, struct err *e);

#endif
