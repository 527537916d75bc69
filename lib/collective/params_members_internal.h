/* params_members_internal - inside of params/params.h over the members of MultiWorkerMirrored:
 *
 *     params_members.c          the tables of operations: what goes to one holder of the state, and what to all
 *     params_members_describe.c how the members are, as one ps would say it
 *     params_members_poll.c     asks all known workers, without waiting for those that do not answer
 *     params_members_calls.c    the messages to members: many at once
 *     params_members_views.c    does what collective/view_plan.h decides, and says so
 *     params_members_wire.c     the calls over gRPC; tests have others
 */
#ifndef TRAINYARD_COLLECTIVE_PARAMS_MEMBERS_INTERNAL_H
#define TRAINYARD_COLLECTIVE_PARAMS_MEMBERS_INTERNAL_H

#include "collective/params_members.h"
#include "collective/view_plan.h"
#include "params/parameters_codec.h"
#include "params/params_internal.h"
#include "rpc/peer.pb-c.h"

enum { MEMBER_ORDER_MS = 1000, MEMBER_INIT_MS = 2000 }; /* deadlines: of View, of Init and Finish */

/* Where calls go. A call that was started must be finished. */
struct member_wire {
    void *(*start)(void *user, const struct known_member *to, const char *path, const struct buf *head,
                   int64_t deadline_ms);
    bool (*ready)(void *user, void *call, int64_t wait_ms); /* finish will not block */
    int (*finish)(void *user, void *call, struct rpc_message **ret, struct err *e);
    void (*cancel)(void *user, void *call); /* finish then returns soon */
    /* For bulk: a form of one ps, whose pulls go into `vector`. */
    struct params *(*open)(void *user, const struct known_member *to, float *vector);
    int64_t (*now_ms)(void *user);
    void (*free)(void *user);
    void *user;
};

struct peer_link { /* of a worker, beside its facts */
    char address[VIEW_ADDRESS_SIZE];
    void *ask;     /* VIEW_ASK in flight, or NULL */
    bool outdated; /* its answer is from before an order, and does not count */
    bool own_job;  /* it does not serve another job */
    int64_t version;
    struct ordinal_set applied; /* also gradients that wait there for the rest of their group */
    uint64_t updates, apply_ns, chief;
    char trouble[160]; /* why the last join failed */
    int failures;      /* of joins in a row */
    int losses;
    struct err error; /* of the last call that failed */
};

struct holders {
    struct params p;
    struct members_config config;
    struct member_wire wire;
    known_members_fn *list;
    view_changed_fn *changed;
    void *source;             /* the user of both */
    struct peer_facts *peers; /* [n], by name: a process that follows takes the place of the one before */
    struct peer_link *links;  /* [n] */
    size_t n;
    struct view view;      /* that runs; number 0: none */
    uint64_t highest_view; /* number that was used, by this chief or another */
    struct view_join *joins;
    size_t njoins;
    int64_t first_ms;  /* when the first worker was known; -1: none was */
    int64_t filled_ms; /* see view_facts */
    uint64_t life;     /* of the state: changes when it is lost */
    bool decided;      /* whether there was a state when this chief came */
    bool empty;        /* no member has the state, until one is filled */
    bool fenced;       /* see params_fence */
    int64_t low;       /* what was reported as applied by all; -1: nothing */
    size_t filling;    /* the peer that is being filled; SIZE_MAX: none */
    struct params *bulk;
    char bulk_name[VIEW_NAME_SIZE]; /* to whom; "": bulk is NULL */
    uint64_t bulk_incarnation;
    int64_t snapshot_at; /* announced at bulk; -1: none */
    int64_t saved_at;    /* of the last snapshot that was read; -1: none */
};

static inline struct holders *holders_of(struct params *p)
{
    return (struct holders *)(void *)p;
}
struct params *holders_new(const struct members_config *config, const struct member_wire *wire);
int64_t holders_now(const struct holders *h);
struct view_facts holders_facts(const struct holders *h);
struct known_member holders_address(const struct holders *h, size_t peer);
size_t holders_find(const struct holders *h, const char *name, uint64_t incarnation); /* h->n: none */

/* The member has the state: of the generation of now, or of an earlier one that can be adopted. */
bool holder_any_life(const struct holders *h, size_t i);
bool holder_now(const struct holders *h, size_t i); /* of the generation of now */
bool holder_is_silent(const struct holders *h, size_t i);
/* A member of the view; while none runs, one that has the state and answers. */
bool holder_counts(const struct holders *h, size_t i);
bool holders_have(const struct holders *h, bool (*has)(const struct holders *h, size_t i)); /* one of them */

/* ---- params_members_describe.c ---- */
void holders_describe(struct params *p, int64_t deadline_ms, struct shard_info *rets, struct err *errors);

/* ---- params_members_poll.c ---- */
void holders_poll(struct holders *h, int64_t deadline_ms);
void holders_drop_asks(struct holders *h); /* all in flight */

/* ---- params_members_calls.c ---- */
struct member_order { /* a message to a member, and its result */
    size_t peer;
    Trainyard__V1__ViewAction action;
    uint64_t view;
    int64_t at;
    const struct view *members; /* or NULL */
    size_t other;               /* a peer; SIZE_MAX: none */
    bool ok;
    struct err error; /* begins with the member's name */
};
void holders_pack_ask(const struct holders *h, struct buf *ret);
/* The answer becomes the peer's facts. */
MUST_USE int holders_take_answer(struct holders *h, size_t peer, const struct rpc_message *m, struct err *e);
/* All at once; facts of those that answer are new. */
void holders_order(struct holders *h, struct member_order *orders, size_t n);
struct member_init {
    size_t peer;
    bool ok;
    struct err error;
};
/* Init, with adopt or as for a new life. */
void holders_init(struct holders *h, bool adopt, struct member_init *inits, size_t n);
int holders_finish_all(struct holders *h, int64_t step); /* returns how many answered */
/* A checkpoint of the step that begins with `at` is published; likewise. */
int holders_confirm_all(struct holders *h, int64_t at);

/* ---- params_members_views.c ---- */
void holders_end_view(struct holders *h); /* none runs */
/* Decides, and acts. */
void holders_lead(struct holders *h, enum view_outcome *ret, bool *ret_terminating, char *waits, size_t waits_size);

/* ---- params_members_wire.c ---- */
struct member_wire member_wire_grpc(const struct members_config *config);

#endif
