/* controller_internal - inside of controller.h: what its files share. */
#ifndef TRAINYARD_CONTROL_CONTROLLER_INTERNAL_H
#define TRAINYARD_CONTROL_CONTROLLER_INTERNAL_H

#include "control/controller.h"
#include "control/record.h"
#include "kube/event_recorder.h"
#include "kube/reflector.h"
#include "kube/workqueue.h"

struct controller_metrics {
    struct counter *reconciles, *errors;
    struct gauge *jobs;
    struct gauge *states[COND_COUNT]; /* jobs whose state has this name; NULL: it is not a state */
    struct histogram *time;
    struct counter *pods_created, *pods_deleted, *services_created;
};

struct task;
struct controller {
    struct kube_client *client;
    struct loop *loop;
    struct dispatch *dispatch; /* turns to send requests, of the jobs of both kinds */
    const struct job_kind *kind;
    struct controller_settings settings;
    struct store store;
    struct workqueue *queue;  /* of records to plan */
    struct workqueue *polls;  /* of records whose chief is to be asked */
    struct http_client *http; /* to the chiefs */
    struct event_recorder *events;
    struct reflector *
        *reflectors; /* of each namespace: jobs, pods, services; of TrainJobs, job files and policies, too */
    size_t nreflectors, in_namespace;
    struct task *tasks;  /* requests on their way */
    struct poll *asking; /* chiefs being asked */
    size_t polled;       /* jobs with a chief that is asked */
    size_t jobs;         /* records whose job is known */
    struct controller_metrics metrics;
};

/* controller.c */
void controller_wake(struct controller *c, const struct record *r);
void controller_event(struct controller *c, const struct record *r, bool warning, const char *reason, const char *about,
                      const char *note);
int64_t controller_now(const struct controller *c); /* milliseconds since 1970, by the API server's clock */

/* watch.c: what reflectors tell goes into the records. */
void watch_start(struct controller *c);
/* The job's object in another state: its spec is read again, and what follows from it is looked at again. */
void watch_new_spec(struct controller *c, struct record *r, const json_t *object);

/* apply.c: a plan's actions become requests, and their answers facts. granted: it is the job's turn; else only what
 * needs none goes. true: some wait for a turn. */
bool apply_plan(struct controller *c, struct record *r, const struct plan *p, bool granted);
enum make_kind apply_make_kind(enum action_kind k);
bool apply_is_make(enum action_kind k);
void apply_cancel_all(struct controller *c);

/* writer.c: the status patch, one at a time for a job; does nothing when there is nothing to say. While the API server
 * has more to do than it can, a status that others will follow waits for its turn and is made up then, so that it says
 * all that came meanwhile. */
void writer_write(struct controller *c, struct record *r);
/* The job's object as the watch tells it. When its status it still lacks something of ours after a while somebody took
 * it away, and it is written again: once for each time that is seen, with pauses that grow while it is removed again.
 */
int64_t writer_version_of(const json_t *object); /* its resourceVersion; 0: none that can be compared */
void writer_saw(struct controller *c, struct record *r, const json_t *object);
/* How long it must lack something, after so many times it was written again. */
int64_t writer_patience_ms(int rewrites);
struct writer_step {
    enum { WRITER_NOTHING, WRITER_LATER /* at_ms: look again then */, WRITER_IN_TURN, WRITER_AT_ONCE } act;
    int64_t at_ms;
};
/* Pure. differs: job_status_differs() of what the server has and of what was decided. */
struct writer_step writer_decide(const struct record *r, unsigned differs, int64_t progress_pause_ms, int64_t now_ms);
/* After so many failures in a row, from 1. refused: by the server, for good; the same will hardly be taken the next
 * time. */
int64_t writer_pause_ms(int failures, bool refused);

/* task.c: one request on its way. */
struct task {
    struct task *next, **link;
    struct controller *c;
    char *key, *uid;      /* the record, and the job's life the request was made for */
    struct action action; /* name and uid are the two below */
    bool counted;         /* one of the job's requests under way */
    size_t bytes;         /* its body */
    int64_t sent_ms;
    char *name, *object_uid;
    size_t claim, round;       /* of an answer about a claim */
    int completed;             /* replicas without which the PodGroup is made */
    const struct child *child; /* what kind of object it is about (apply_internal.h) */
    struct job_status *before; /* a status patch: what the server had */
    struct kube_call *call;
    void (*done)(struct task *t, struct record *r, const struct kube_answer *a);
};
/* Sends the request; done() gets the record, or NULL when the job is gone or is another one by now. */
void task_send(struct controller *c, struct record *r, const struct action *a, struct kube_request request,
               void (*done)(struct task *t, struct record *r, const struct kube_answer *a));
/* The last task sent, for what only some need to remember. */
struct task *task_last(struct controller *c);

/* poll.c */
void poll_work(void *user, const char *key);
void poll_cancel_all(struct controller *c);

/* controller_metrics.c */
void meters_init(struct controller *c);
void meters_job(const struct controller *c, const struct record *r, const char *what,
                uint64_t n); /* "created", "failed", ... */

/* The job counts among those of its state; "": among none. */
void meters_state(const struct controller *c, struct record *r, const char *state);

extern const struct kube_resource PODS, SERVICES, CONFIG_MAPS, CLAIMS, NETWORK_POLICIES, DEPLOYMENTS;

#endif
