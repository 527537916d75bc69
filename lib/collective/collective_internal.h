/* collective_internal - what the files of a member share:
 *
 *     collective.c           the state, and where the thread that trains enters and leaves a step
 *     collective_give.c      the gradient that it gives
 *     collective_step.c      the steps of a view: sums and updates
 *     collective_exchange.c  the member's own thread: catches up, takes part in the steps, or joins
 *     collective_order.c     what the chief orders: views, joining, donating
 *     collective_reduce.c    batch statistics
 *     collective_service.c   what others call
 *     collective_fetch.c     what this member fetches from others
 *     collective_calls.c     calls to other members
 */
#ifndef TRAINYARD_COLLECTIVE_COLLECTIVE_INTERNAL_H
#define TRAINYARD_COLLECTIVE_COLLECTIVE_INTERNAL_H

#include "base/thread.h"
#include "collective/collective.h"
#include "collective/reduction.h"
#include "collective/view.h"
#include "params/parameters_codec.h"
#include "rpc/peer.pb-c.h"

enum { COLLECTIVE_TEXT_MAX = 240 };

/* A channel to another member; kept as long as this process lives, because members come back. */
struct peer {
    struct peer *next;
    char name[VIEW_NAME_SIZE], address[VIEW_ADDRESS_SIZE];
    struct rpc_channel *channel;
};

/* A call to another member, which a change of the view cancels. */
struct peer_call {
    struct peer_call *next, **link; /* of those that may be cancelled */
    struct peer *peer;
    struct rpc_call *call;     /* NULL: none is in flight */
    bool wants_sum;            /* a gradient whose answer has the sum */
    struct share_peer *shared; /* the request is in slot `slot` of shared memory, and no call; NULL: it is not */
    int slot;
    struct buf head;
    struct rpc_piece piece;
};

/* The state of a step. Reference counted, because answers that are being sent read from it. */
struct state_copy {
    _Atomic int refs;
    size_t n;
    struct shard_snapshot segments[];
};
struct state_copy *state_copy_ref(struct state_copy *s);
void state_copy_unref(struct state_copy *s); /* NULL: nothing */

/* What this member keeps for a newcomer: the state of a step, and the sums of the steps since. */
struct donation {
    struct donation *next;
    struct view_member to;
    int64_t at, heard_ms;
    struct state_copy *state;
    struct reduction **kept; /* ascending by step */
    size_t nkept, kept_cap;
    bool follows;         /* it has the state, and takes sums */
    size_t behind, taken; /* sums that were kept when it began to follow; that it has taken since */
};

enum member_phase {
    PHASE_IDLE,    /* in no view; the shard may have a state */
    PHASE_JOINING, /* takes the state of another member, and follows it */
    PHASE_TRAINING
};

/* The gradient that the thread that trains gives. Only that thread uses it. */
struct given_gradient {
    struct reduction *to; /* NULL: it has not entered a step */
    uint64_t epoch;
    int64_t next_at; /* as in collective_enter */
    bool sums;       /* the answers have the sums, as far as they are complete in time */
    char job_uid[SHARD_UID_MAX];
    struct peer **owners; /* by member of the view; NULL: this one */
    size_t nowners;
    int64_t ordinal;
    const float *gradient;
    size_t left, own_left;   /* chunks [0, left) are not given to others yet, [0, own_left) not to this member */
    size_t in_flight;        /* calls */
    struct peer_call *calls; /* [chunk] */
    size_t ncalls;
};

/* The gradient that was given last: its chunks of this member are read when their turn comes. */
struct lent_gradient {
    struct reduction *to; /* NULL: none */
    int64_t ordinal;
};

/* Who fetches the sums of the step. */
enum sum_fetcher { FETCHER_NONE, FETCHER_TRAINER, FETCHER_OWN /* the member's own thread */ };

struct collective {
    struct collective_config config;
    struct shard_service *service;
    struct rpc_method methods[SHARD_METHODS]; /* of the service */
    struct thread thread;
    struct given_gradient giving;
    struct lent_gradient lent;   /* likewise of the thread that trains */
    struct share *share;         /* NULL: no memory is shared. Only the thread that trains uses it */
    struct slot_server *sharers; /* members that share memory with this one */

    struct mutex calls_lock;
    struct peer_call *calls; /* in flight */
    uint64_t calls_epoch;    /* calls of an earlier one are not started */
    struct peer *peers;

    struct mutex lock;        /* of all that follows */
    struct cond changed, due; /* due: the member's own thread has something to do */
    struct rpc_server *server;
    bool quit, terminating;
    char job_uid[SHARD_UID_MAX];
    enum member_phase phase;
    uint64_t epoch;           /* changes with each order that ends what the threads do */
    uint64_t generation;      /* of the view */
    uint64_t stopped;         /* views up to this one are over, in its generation */
    struct view view;         /* of the last START */
    struct peer **owners;     /* its members */
    bool ready;               /* training: the first step of the view has begun */
    bool joined;              /* joining: the state is there */
    bool check;               /* the state must be compared with that of `other` before the first step */
    struct view_member other; /* who has the state, or the sums, that this member lacks; name "": none */
    int64_t at;               /* the step of the values, while joined or training */
    int64_t version;          /* number of updates, likewise */
    int64_t saved_at;         /* step of which the chief has confirmed a checkpoint; -1: none */
    uint64_t led_view;        /* that runs, by the chief's last request */
    int64_t behind;           /* as in ViewReply */
    struct groups groups;
    struct reduction_frame *frame;
    struct reduction *now, *next, *last; /* of the step; of the one after it, or NULL; of the one before, or NULL */
    enum sum_fetcher fetcher;
    bool entered, near, waiting; /* the thread that trains uses the values; is expected in this step or the next one; is
                                    in collective_enter */
    bool applying;               /* an update is made, or a step opened */
    int readers, adders;         /* threads that read the state; that add gradients */
    struct donation *donations;
    char trouble[COLLECTIVE_TEXT_MAX], waits_for[COLLECTIVE_TEXT_MAX];
    struct err fatal;
};

/* ---- collective.c: all under the lock ---- */
void collective_changed_here(struct collective *c); /* wakes the threads that wait */
void collective_changed(struct collective *c);      /* the same, and requests that wait */
/* Ends what the threads do: calls are cancelled, and no update begins. Returns when none is being made. False: another
 * order has come meanwhile, and this one is over. */
bool collective_new_epoch(struct collective *c);
/* Where the state of the shard is; false: it has none. Only in PHASE_IDLE, else `at` is known. */
bool collective_locate(struct collective *c, struct shard_info *ret);
/* This member cannot go on: the thread that trains gets the error. */
void collective_fail(struct collective *c, const struct err *e);
/* It cannot go on in this view. */
void collective_give_up(struct collective *c, const struct err *e);
/* The epoch is over, or the process ends. */
bool collective_over(const struct collective *c, uint64_t epoch);

/* ---- collective_give.c ---- */
void giving_begin(struct collective *c, int64_t next_at); /* under the lock */
void giving_end(struct collective *c);                    /* no call is in flight then */
/* The memory of the gradient is not read any more. ERR_NOMEM: it may still be. */
MUST_USE int lent_take_back(struct lent_gradient *l, struct err *e);
void giving_fini(struct given_gradient *g);

/* ---- collective_step.c ---- */
/* Under the lock. The sums are there, and the update may be made now: step_make makes it and opens the next step. The
 * lock is released meanwhile. */
bool step_is_complete(const struct collective *c);
MUST_USE int step_make(struct collective *c, struct err *e);
/* Under the lock: the member's own thread has something to do in the view. */
bool step_needs_thread(const struct collective *c);
/* What it does, until the epoch is over. */
MUST_USE int step_tasks(struct collective *c, uint64_t epoch, struct err *e);
/* An update from sums that another member kept. 1: made; 0: the epoch is over. */
MUST_USE int step_follow(struct collective *c, uint64_t epoch, struct reduction *r, struct err *e);

/* ---- collective_order.c ---- */
MUST_USE int collective_order(struct collective *c, const struct rpc_caller *chief, const Trainyard__V1__ViewRequest *q,
                              struct err *e);
/* Under the lock. NULL: nothing is kept for it. */
struct donation *donation_for(const struct collective *c, const char *name, uint64_t incarnation);
void donations_keep(struct collective *c, struct reduction *r, int64_t now_ms); /* the sums of a step */
/* The sums of all steps below are taken. True: fewer are kept now. */
bool donation_drop_below(struct donation *d, int64_t at);
/* No further step may be applied before a newcomer has taken what is kept for it. */
bool donations_wait(const struct collective *c);
void donations_free(struct collective *c);

/* ---- collective_exchange.c ---- */
void collective_thread(void *user);

/* ---- collective_calls.c ---- */
enum { CALL_WINDOW = 8, CALL_MS = 30000 }; /* calls in flight to a member; deadline, beside the time of the bytes */

/* What a call says. */
struct transfer {
    Trainyard__V1__TransferRequest request; /* without its header */
    const char *job_uid;
    uint64_t generation, epoch;
    struct rpc_piece piece; /* data NULL: no payload */
    size_t before;          /* bytes in flight, with its own: they share the link */
};
struct peer *collective_peer(struct collective *c, const struct view_member *m);
void collective_peers_free(struct collective *c);
struct peer_call *peer_calls_new(size_t n);
void peer_calls_free(struct peer_call *calls, size_t n); /* none is in flight */
/* False: the epoch is over, and nothing was started. */
bool peer_start(struct collective *c, struct peer_call *k, const struct transfer *t);
/* The answer. Errors name the member; ERR_STOPPED: cancelled. */
MUST_USE int peer_finish(struct collective *c, struct peer_call *k, struct rpc_message **ret_message,
                         ProtobufCMessage **ret, struct err *e);
/* The same of any method. The head of the request is in k->head, and k->piece follows. */
struct peer_method {
    const char *path;
    uint32_t lane;
    uint64_t epoch;
    int64_t deadline_ms;
};
Trainyard__V1__Header peer_header(const struct collective *c, const char *job_uid, uint64_t generation);
bool peer_start_call(struct collective *c, struct peer_call *k, const struct peer_method *m);
MUST_USE int peer_finish_call(struct collective *c, struct peer_call *k, const ProtobufCMessageDescriptor *kind,
                              struct rpc_message **ret_message, ProtobufCMessage **ret, struct err *e);
/* Calls of this epoch are cancelled. */
bool peer_calls_over(struct collective *c, uint64_t epoch);
/* Those calls, which the caller has not finished, end soon. */
void peer_cancel(struct peer_call *calls, size_t n);
/* Those of earlier epochs, and none is started in them. */
void peer_cancel_all(struct collective *c, uint64_t epoch);
/* The same call may succeed later, or in another view. */
bool peer_worth_retry(const struct err *e);

/* ---- collective_service.c ---- */
/* A transfer on its way. Through shared memory it has no message and no reply. */
struct transfer_request {
    struct collective *c;
    const struct rpc_caller *caller;
    const struct rpc_message *message;
    const Trainyard__V1__TransferRequest *q;
    struct rpc_reply *reply;
    Trainyard__V1__TransferReply answer;
};
/* Under the lock: the caller may send this, in the view of now. */
MUST_USE int transfer_check_view(const struct transfer_request *x, struct err *e);
/* A gradient is added between the two. *ret NULL: the step is over, with this gradient from elsewhere. */
MUST_USE int transfer_begin(const struct transfer_request *x, struct reduction **ret, struct err *e);
void transfer_end(const struct transfer_request *x, struct reduction *r, bool added, bool complete);
/* Under the lock: 1: a gradient that was added can be answered, with the sum *ret of its chunk (borrowed), or without
 * one (NULL): this member has begun the step. 0: not yet, *ret_missing says why. */
MUST_USE int transfer_answered(const struct transfer_request *x, struct reduction **ret, const char **ret_missing,
                               struct err *e);
int collective_on_transfer(void *user, const struct rpc_caller *caller, const struct rpc_message *message,
                           struct rpc_reply *reply, struct err *e);
int collective_on_view(void *user, const struct rpc_caller *caller, const struct rpc_message *message,
                       struct rpc_reply *reply, struct err *e);

#endif
