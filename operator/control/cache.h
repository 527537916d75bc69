/* cache - the operator's data about the jobs of one kind: spec, status, pods, services and requests in flight.
 *
 * Entries are found by "namespace/name". One may exist before its job is known (the watch may report a pod first), and
 * is removed when it has no job, pods or services. Requests in flight remember the key, never the entry.
 */
#ifndef TRAINYARD_CONTROL_CACHE_H
#define TRAINYARD_CONTROL_CACHE_H

#include "base/map.h"
#include "control/create_backoff.h"
#include "control/dispatch.h"
#include "control/identity_issuer.h"
#include "plan/plan.h"

/* Back-off of requests that failed; zero before the first failure. Times ending in _ms are loop_now() here, which is
 * monotonic. The exception is progress_ms, which the plan compares with the API server's times. */
struct retry_backoff {
    int failures; /* rounds in a row */
    int64_t until_ms;
};

/* The API server refuses by kind: a quota of services does not prevent the creation of pods. */
enum create_kind { CREATE_PODS, CREATE_SERVICES, CREATE_OTHERS, CREATE_KINDS };
bool action_is_create(enum action_kind k); /* creates and adoptions */
enum create_kind create_kind_of(enum action_kind k);
/* The replica whose object was refused last. */
struct refused_replica {
    bool set;
    enum role role;
    int index;
};

/* An object of the job as last reported by the watch; uid NULL: it does not exist. */
struct owned_object {
    char *uid, *owner_uid;
};
void owned_object_fini(struct owned_object *o);

/* What is known about the certificates of a job that gets some. */
struct identity_work;
struct identity_state {
    struct identity_cas cas;
    struct identity_facts facts; /* of the last reconcile */
    struct identity_work *work;  /* leaves that are being issued or written; NULL: none */
    struct retry_backoff backoff;
    size_t first;         /* the Secret that is looked at first */
    char *failure;        /* why the last write failed; NULL: it did not */
    int64_t *answered_ms; /* [nanswered] by Secret: when its last write succeeded */
    size_t nanswered;
};
void identity_state_free(struct identity_state *s); /* apply_identity.c */

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
    int conflicts;               /* status patches in a row that failed because that version was outdated */
    int64_t changed_ms;          /* since when status and acked differ */
    struct job_status *observed; /* last one of the watch, if it lacks some of our fields; else NULL */
    int64_t observed_ms;
    int restores;            /* how often fields that others removed were written again */
    bool status_in_flight;   /* a status patch is in flight */
    bool counts_in_flight;   /* with counts of restarts that the server does not have yet */
    bool identity_in_flight; /* with certificates that the server does not have yet */
    bool waits_for_counts;   /* an action waits until these counts are written */
    struct retry_backoff status_backoff;
    struct kube_ticket status_ticket; /* to write its status */

    /* requests (apply.h, dispatch.h) */
    bool may_be_deleted;    /* the deletion of a dependent was missed, so the job's deletion may be missed, too */
    bool job_get_in_flight; /* a GET of the job is in flight, to see whether it still exists */
    bool started;           /* it may send requests: it had its first turn in the fair queue */
    bool granted;           /* its turn has come */
    struct dispatch_ticket ticket; /* to send the actions of its plan */
    struct controller_env *env;    /* owner of these tickets */
    struct create_backoff create_backoff[CREATE_KINDS];
    struct refused_replica last_refused[CREATE_KINDS];
    struct retry_backoff delete_backoff;
    int64_t label_after_ms; /* labels of its pods are restored at this time at the earliest */
    struct refusal refused; /* the refused create that is reported for all; it stays the same until it succeeds */
    struct refusal tensorboard_refused; /* the same of TensorBoard, without which the job runs */

    /* the job's objects in the cluster */
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
    bool tensorboard_found; /* its service was seen, whichever controller created it */
    struct board_watch {    /* its Deployment is read until it has a pod */
        bool ready, in_flight;
        int reads;
        int64_t next_ms; /* 0: not read yet */
        char *trouble;   /* why the Deployment can create no pod; NULL: nothing is known */
    } board;
    bool config_in_flight, policy_in_flight, tensorboard_in_flight, group_in_flight;
    int64_t ensured_ms;
    enum group_phase group;
    int64_t group_ms; /* when its phase was last read */

    struct identity_state *identity; /* NULL: not looked at yet */

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
void cache_remove_if_empty(struct cache *c, struct cache_entry *entry); /* may free the entry */
void cache_remove(struct cache *c, struct cache_entry *entry);
/* "ns/name" into out. */
const char *cache_key(const char *ns, const char *name, char out[512]);

/* One on the heap, such as entry->acked; NULL afterwards. */
void job_status_release(struct job_status **s);
/* The job's object was deleted, or another job has its name: the entry becomes an unknown job with the same pods. */
void cache_entry_forget_job(struct cache_entry *entry);
/* Reads the spec of a changed object. Data derived from the old spec are reset, all other data are kept. */
struct controller_settings;
void cache_entry_set_spec(struct cache_entry *entry, const struct job_kind *kind, const struct controller_settings *s,
                          const json_t *object);
/* The back-off of a create; NULL: the action is not a create. */
struct create_backoff *cache_entry_create_backoff(struct cache_entry *entry, enum action_kind k);

struct pod_info *cache_entry_pod(const struct cache_entry *entry, const char *name);
/* Takes ownership of the pod. Returns false and frees it if it is an older version of the same pod. */
bool cache_entry_put_pod(struct cache_entry *entry, struct pod_info *p);
/* uid NULL: the pod of that name. Otherwise never an expectation, because its uid is not known yet. */
bool cache_entry_remove_pod(struct cache_entry *entry, const char *name, const char *uid);
struct service_info *cache_entry_service(const struct cache_entry *entry, const char *name);
void cache_entry_put_service(struct cache_entry *entry, struct service_info *s);
bool cache_entry_remove_service(struct cache_entry *entry, const char *name, const char *uid);
/* Removes the expectation of a create, but not a pod or service that the watch has reported since. owner NULL: any
 * job's. */
void cache_entry_drop_expected_pod(struct cache_entry *entry, const char *name, const char *owner);
void cache_entry_drop_expected_service(struct cache_entry *entry, const char *name, const char *owner);

void pod_info_free(struct pod_info *p);
DEFINE_AUTO(pod_info, pod_info_free);
void service_info_free(struct service_info *s);
DEFINE_AUTO(service_info, service_info_free);

#endif
