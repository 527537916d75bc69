/* cache - all the operator knows of the jobs of one kind: spec, status, pods and services, and what is in flight.
 *
 * Entries are found by "namespace/name". One may exist before its job is known (the watch may report a pod first), and
 * is removed when neither job nor pods nor services are left. Requests in flight remember the key, never the entry.
 */
#ifndef TRAINYARD_CONTROL_CACHE_H
#define TRAINYARD_CONTROL_CACHE_H

#include "base/map.h"
#include "control/create_backoff.h"
#include "control/dispatch.h"
#include "plan/plan.h"

/* Back-off of requests that failed; zero before the first failure. Times ending in _ms are clock_ms() here, which no
 * change of the clock moves, except progress_ms, which the plan compares with the API server's times. */
struct retry_backoff {
    int failures; /* rounds in a row */
    int64_t until_ms;
};

/* The API server refuses by kind: a quota of services does not keep pods from being created. */
enum create_kind { CREATE_PODS, CREATE_SERVICES, CREATE_OTHERS, CREATE_KINDS };
bool action_is_create(enum action_kind k); /* creates and adoptions */
enum create_kind create_kind_of(enum action_kind k);
/* The replica whose object was refused last. */
struct refused_replica {
    bool set;
    enum role role;
    int index;
};

/* An object of the job as the watch reported it last; uid NULL: it does not exist. */
struct owned_object {
    char *uid, *owner_uid;
};
void owned_object_fini(struct owned_object *o);

struct controller_env;
struct cache_entry {
    char *key;
    int counted_state; /* of controller_metrics_set_state() */
    bool known;        /* the job's object has been seen: spec and status are set */
    struct job_spec spec;
    bool resumed_unobserved; /* it was suspended and resumed between two reconciles */

    /* the status (status_writer.h) */
    struct job_status status;    /* as decided */
    struct job_status *acked;    /* as the API server has it; NULL: the same */
    int64_t status_version;      /* resourceVersion of the object that status.foreign is of; 0: not known */
    int conflicts;               /* status patches in a row that came too late for that version */
    int64_t changed_ms;          /* since when status and acked differ */
    struct job_status *observed; /* as the watch reported last, if it lacks something; NULL: it does not */
    int64_t observed_ms;
    int restores;          /* how often fields that others removed were written again */
    bool status_in_flight; /* a status patch is in flight */
    bool counts_in_flight; /* with counts of restarts that the server does not have yet */
    bool waits_for_counts; /* an action waits until such counts are written */
    struct retry_backoff status_backoff;
    struct kube_ticket status_ticket; /* to write its status */

    /* requests (apply.h, dispatch.h) */
    bool may_be_deleted;           /* the end of a dependent was missed, so the job's end may be missed too */
    bool job_get_in_flight;        /* the API server was asked whether the job still exists */
    bool started;                  /* it may send requests: its first turn in the fair queue has come */
    bool granted;                  /* its turn has come */
    struct dispatch_ticket ticket; /* to send what its plan asks for */
    struct controller_env *env;    /* whose tickets these are */
    struct create_backoff create_backoff[CREATE_KINDS];
    struct refused_replica last_refused[CREATE_KINDS];
    struct retry_backoff delete_backoff;
    int64_t label_after_ms;             /* labels of its pods are restored at this time at the earliest */
    struct refusal refused;             /* the refused create that stands for all; the same one until it succeeds */
    struct refusal tensorboard_refused; /* the same of TensorBoard, without which the job runs */

    /* what the cluster has of it */
    struct pod_info **pods;
    size_t npods;
    struct service_info **services;
    size_t nservices;
    struct claim_info *claims; /* spec.nclaims of them, or NULL */
    char *claims_fault;
    size_t claims_in_flight;  /* answers that are still to come */
    size_t claims_generation; /* answers of an earlier one belong to an earlier spec */
    int64_t claims_ms;
    bool claims_known;
    struct owned_object config, policy;                       /* the job file and the NetworkPolicy */
    bool config_ensured, policy_ensured, tensorboard_ensured; /* an answer confirmed it */
    bool tensorboard_found;                                   /* its service was seen, whoever created it */
    bool config_in_flight, policy_in_flight, tensorboard_in_flight, group_in_flight;
    int64_t ensured_ms;
    enum group_phase group;
    int64_t group_ms; /* when its phase was last read */

    /* the chief's progress (progress_poller.h) */
    struct training_progress progress;
    int64_t progress_ms, progress_written_ms;
    bool poll_wanted, poll_in_flight;
};

struct cache {
    struct map entries;
};
void cache_fini(struct cache *c);
struct cache_entry *cache_find(const struct cache *c, const char *key);
struct cache_entry *cache_get_or_add(struct cache *c, const char *ns, const char *name);
void cache_remove_if_empty(struct cache *c, struct cache_entry *entry); /* it may be gone afterwards */
void cache_remove(struct cache *c, struct cache_entry *entry);
/* "ns/name" into out. */
const char *cache_key(const char *ns, const char *name, char out[512]);

/* One on the heap, such as entry->acked; NULL afterwards. */
void job_status_release(struct job_status **s);
/* The job's object is gone, or another job has its name: back to an unknown job with the same pods. */
void cache_entry_forget_job(struct cache_entry *entry);
/* Reads the spec of an object in another state. What was derived from the old spec is reset, the rest is kept. */
struct controller_settings;
void cache_entry_set_spec(struct cache_entry *entry, const struct job_kind *kind, const struct controller_settings *s,
                          const json_t *object);
/* Of a create; NULL: the action is not one. */
struct create_backoff *cache_entry_create_backoff(struct cache_entry *entry, enum action_kind k);

struct pod_info *cache_entry_pod(const struct cache_entry *entry, const char *name);
/* Takes the pod over. An older version of the same pod is dropped; false then. */
bool cache_entry_put_pod(struct cache_entry *entry, struct pod_info *p);
/* uid NULL: whichever has the name; else never an expectation, whose uid is not known yet. */
bool cache_entry_remove_pod(struct cache_entry *entry, const char *name, const char *uid);
struct service_info *cache_entry_service(const struct cache_entry *entry, const char *name);
void cache_entry_put_service(struct cache_entry *entry, struct service_info *s);
bool cache_entry_remove_service(struct cache_entry *entry, const char *name, const char *uid);
/* Removes the expectation that a create left, not what the watch has reported since. owner NULL: any job's. */
void cache_entry_drop_expected_pod(struct cache_entry *entry, const char *name, const char *owner);
void cache_entry_drop_expected_service(struct cache_entry *entry, const char *name, const char *owner);

void pod_info_free(struct pod_info *p);
DEFINE_AUTO(pod_info, pod_info_free);
void service_info_free(struct service_info *s);
DEFINE_AUTO(service_info, service_info_free);

#endif
