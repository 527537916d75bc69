/* params_grpc - inside of the gRPC form of train/params.h: params_grpc.c moves the vector (pull, push), in parts and
 * on several connections when a ps holds much; params_share.c spares a ps of this host the
 * network; params_ask.c has what the chief asks one ps at a time. */
#ifndef TRAINYARD_TRAIN_PARAMS_GRPC_H
#define TRAINYARD_TRAIN_PARAMS_GRPC_H

#include "train/params_internal.h"
#include "train/region.h"
#include "train/wire.h"

struct part { /* some consecutive segments of a ps: one message */
    size_t first, count;        /* in peer.segments */
    size_t pull, push;          /* bytes */
    size_t push_at;             /* bytes of the peer's push before this part */
    int lane;
    struct rpc_piece *pieces;   /* of the gradient */
    size_t npieces;
    struct buf head;
    struct rpc_call *call;
    int64_t started_ms;
    bool done;                  /* in the pull or push of now */
};
struct peer {
    size_t index;
    struct rpc_channel *channel;
    int small_lane;             /* a connection without bulk, so that small calls need not wait behind it */
    uint64_t incarnation;       /* that answered first in this generation; 0: none did */
    const struct segment_spec **segments;
    size_t nsegments;
    struct versions {
        int64_t *v;             /* [nsegments] */
        bool known;
    } now, marked, pushed;      /* of the values in the vector; as params_mark saw them; what a push was computed from */
    struct part *parts;
    size_t nparts;
    size_t push;                /* bytes of all parts */
    size_t next, window;        /* the part to start next; parts in flight at most */
    size_t in_flight, bytes_in_flight;
    /* Memory that a ps of this host shares, see params_share.c: */
    bool may_share;
    struct region *region;      /* NULL: none; gradients, then values */
    uint64_t region_id;
    bool region_doubtful;       /* a call failed: the ps may still read or write it, so it is not used again */
    int64_t share_after_ms;     /* when to try next */
};
struct remote {
    struct params p;
    struct peer *peers;         /* [p.nps] */
    struct errand { struct peer *peer; struct part *part; } *errands; /* all parts, those of different ps interleaved */
    size_t nerrands;
    /* Of the pull or push of now, or the last one: */
    int64_t ordinal, deadline_ms, since_ms; /* ordinal < 0: a pull; deadline of a part, beside the time of its bytes */
    bool unfinished;              /* it failed, and the parts that are done need not be asked for again */
    size_t done, total;           /* bytes */
    const float *grads;
    struct push_result result;    /* of the parts that are done */
    bool is_marked;               /* since the last push */
};

/* How long bytes may take on the slowest link that is supported. */
static inline int64_t params_floor_ms(size_t bytes)
{
    return (int64_t)(bytes / PARAMS_FLOOR_BYTES_A_MS);
}
static inline struct remote *remote_of(struct params *p)
{
    return (struct remote *)(void *)p;
}
void remote_header(const struct params *p, Trainyard__V1__Header *ret);
/* "ps-1 (host:port): " before what went wrong. */
int peer_error(const struct peer *peer, struct err *e);
/* An answer must come from this generation, and from the process that answered first in it. */
MUST_USE int peer_admit(const struct params *p, struct peer *peer, uint64_t incarnation, uint64_t generation, struct err *e);

/* Offers memory to a ps on this host, now and then, until it takes it or refuses. */
void peer_share(const struct params *p, struct peer *peer);
void peer_unshare(struct peer *peer);
uint64_t peer_gradients_at(const struct part *part);
uint64_t peer_values_at(const struct peer *peer, const struct part *part);

int remote_describe(struct params *p, size_t ps, int64_t deadline_ms, struct shard_info *ret, struct err *e);
int remote_init(struct params *p, size_t ps, const char *optimizer_json, int64_t deadline_ms, struct err *e);
int remote_adopt(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
int remote_restore(struct params *p, size_t ps, uint32_t segment, bool with_slots, int64_t version,
                   const struct applied *applied, const float *data, size_t floats, int64_t deadline_ms, struct err *e);
int remote_serve(struct params *p, size_t ps, int64_t deadline_ms, struct err *e);
int remote_snapshot(struct params *p, size_t ps, uint32_t segment, int64_t deadline_ms, struct shard_snapshot *ret,
                    struct err *e);
int remote_finish(struct params *p, size_t ps, int64_t step, int64_t deadline_ms, struct err *e);

#endif
