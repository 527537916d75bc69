/* view_plan - what the chief does about the members of MultiWorkerMirrored (collective/params_members.h). Pure: the
 * time is a parameter, and nothing is remembered. What the members have answered last decides at every poll, so a
 * second loss while the first one is handled is only another poll.
 *
 *     a member of the view is lost    the next view begins without it
 *     a newcomer                      takes the state of a donor, and is in a view when it is at most one step behind
 *     no view runs                    those that have the state of the highest step begin, when there are enough
 *     no member has the state         it is lost
 */
#ifndef TRAINYARD_COLLECTIVE_VIEW_PLAN_H
#define TRAINYARD_COLLECTIVE_VIEW_PLAN_H

#include "collective/view.h"
#include "shard/groups.h"

enum {
    PEER_SILENCE_MS = 600,     /* who does not answer for longer is lost */
    STATE_SILENCE_MS = 10000,  /* its state is not lost yet: the process may only be stopped */
    FIRST_VIEW_WAIT_MS = 2000, /* workers that can join before the first view are waited for */
    DONOR_JOINS_MAX = 4,       /* copies of its state that a donor keeps */
};

enum peer_state { PEER_EMPTY, PEER_JOINING, PEER_HOLDING, PEER_TRAINING }; /* as on the wire */

/* A worker that has registered, and its last answer. */
struct peer_facts {
    char name[VIEW_NAME_SIZE];
    uint64_t incarnation;
    bool alive;       /* it has not left, and was heard lately */
    int64_t since_ms; /* when the request was sent that it has not answered yet; -1: it has answered the last one */
    int64_t retry_ms; /* it does not join before */
    bool answered;    /* what follows is known */
    bool fits;        /* its state is that of this job: layout, groups, uid */
    bool terminating;
    bool trouble; /* its last attempt to join failed */
    enum peer_state state;
    uint64_t generation, view;
    int64_t at, behind;
};
/* A join under way. */
struct view_join {
    char name[VIEW_NAME_SIZE], donor[VIEW_NAME_SIZE];
    uint64_t incarnation, donor_incarnation;
};
struct view_facts {
    int64_t now_ms;
    uint64_t generation;
    const struct groups *groups;
    const struct view *view; /* that runs; number 0: none */
    const struct peer_facts *peers;
    size_t n;
    const struct view_join *joins;
    size_t njoins;
    size_t min_members;
    int64_t filled_ms;     /* when a member was filled, and no view has run since; -1: else */
    const char *snapshots; /* of whom the chief reads snapshots: it is the last to become a donor; NULL: none */
};

enum view_outcome {
    VIEW_SERVES,
    VIEW_WAITS, /* no view can run now: `waits` says for what */
    VIEW_LOST,  /* no member has the state */
};
struct view_plan {
    /* In this order: joins to forget (indices of view_facts.joins) ... */
    struct forget_join {
        size_t join;
        bool failed; /* the newcomer could not do it: it tries again later */
    } * forget;
    size_t nforget;
    /* ... joins to begin (indices of peers), */
    struct begin_join {
        size_t peer, donor;
    } * begin;
    size_t nbegin;
    /* ... and the members of the next view, if it changes. */
    bool change;
    size_t *next;
    size_t nnext;
    enum view_outcome outcome;
    bool terminating; /* all that have the state got SIGTERM */
    char waits[160];
};
void view_plan_fini(struct view_plan *p);
void view_plan_make(const struct view_facts *f, struct view_plan *ret);

/* Once all of `next` have stopped, and `peers` has their answers: how the view begins. Who did not answer, or is too
 * far behind, is not in it. */
struct view_start {
    int64_t at;
    size_t first; /* a member that is at `at` */
    struct view_starter {
        size_t peer;
        size_t other; /* who has the sums that it needs; itself: it needs none */
    } * members;
    size_t n; /* 0: no view can begin */
};
void view_start_fini(struct view_start *s);
void view_plan_start(const struct view_facts *f, const size_t *next, size_t n, struct view_start *ret);

bool peer_is_lost(const struct view_facts *f, const struct peer_facts *p);
bool peer_has_state(const struct view_facts *f, const struct peer_facts *p); /* by its last answer */

#endif
