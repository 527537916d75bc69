/* controller_env - what the parts of a controller share; the controller owns all of it and passes it down. */
#ifndef TRAINYARD_CONTROL_CONTROLLER_ENV_H
#define TRAINYARD_CONTROL_CONTROLLER_ENV_H

#include "control/cache.h"
#include "control/controller_metrics.h"
#include "control/controller_settings.h"
#include "control/quota_waiters.h"
#include "kube/event_recorder.h"
#include "kube/workqueue.h"

struct in_flight_request;
struct controller_env {
    struct kube_client *client;
    const struct job_kind *kind;
    const struct controller_settings *settings;
    struct dispatch *dispatch; /* of the jobs of both kinds */
    struct cache cache;
    struct quota_waiters quota_waiters;
    struct workqueue *queue; /* keys of jobs to reconcile */
    struct event_recorder *events;
    struct in_flight_request *in_flight; /* list (in_flight.h) */
    struct controller_metrics metrics;
};

/* Queues the job for a reconcile, if it is known. */
void env_enqueue(struct controller_env *env, const struct cache_entry *entry);
void env_event(struct controller_env *env, const struct cache_entry *entry, bool warning, const char *reason,
               const char *about, const char *note);
int64_t env_now(const struct controller_env *env);   /* milliseconds since 1970, by the API server's clock */
int64_t env_clock(const struct controller_env *env); /* loop_now() */

#endif
