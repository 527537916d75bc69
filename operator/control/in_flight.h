/* in_flight - requests that were sent and not answered yet.
 *
 * A request remembers the key of its job and the job's uid, never the cache entry, which may be freed meanwhile.
 */
#ifndef TRAINYARD_CONTROL_IN_FLIGHT_H
#define TRAINYARD_CONTROL_IN_FLIGHT_H

#include "control/controller_env.h"

struct dependent;
struct in_flight_request;
/* entry NULL: the job was deleted, or another job has its name. */
typedef void in_flight_done(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a);

struct in_flight_request {
    struct in_flight_request *next, **link;
    struct controller_env *env;
    char *key, *uid;      /* of the job that the request was made for */
    struct action action; /* name and uid are the two below */
    bool counted;         /* it counts as one of the job's requests in flight */
    size_t bytes;         /* of its body */
    int64_t sent_ms;
    char *name, *object_uid;
    size_t claim, claims_generation;   /* for a request about a claim */
    int completed;                     /* completed replicas that the PodGroup leaves out */
    const struct dependent *dependent; /* the kind of object (apply_internal.h) */
    struct job_status *before;         /* for a status patch: the server's status before it */
    struct kube_call *call;
    in_flight_done *done;
};

/* Sends the request. action NULL: it is not limited by the fair queue or by back-off. */
void in_flight_send(struct controller_env *env, struct cache_entry *entry, const struct action *a,
                    struct kube_request request, in_flight_done *done);
/* The request that was sent last, so that the caller can set fields that only some requests need. */
struct in_flight_request *in_flight_last(struct controller_env *env);
void in_flight_cancel_all(struct controller_env *env);

#endif
