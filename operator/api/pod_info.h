/* pod_info - the fields of pods, services and claims that the cache keeps: a few hundred bytes instead of the JSON. */
#ifndef TRAINYARD_API_POD_INFO_H
#define TRAINYARD_API_POD_INFO_H

#include "api/kind.h"

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

struct pod_info {
    char *name, *uid;
    char *owner_uid; /* uid of its controller; NULL: an orphan */
    char *made_for;  /* of an orphan: uid of the TrainJob it was created for, by its label; NULL: unknown */
    enum role role;
    int index;
    bool creating;    /* our create is in flight; nothing else is known */
    bool deleting;    /* our delete is in flight */
    bool patching;    /* our patch is in flight */
    bool mislabelled; /* a job of ours controls it, but its labels are not those it was created with */
    bool ready;
    bool disrupted;       /* condition DisruptionTarget: drained, evicted, preempted, its node lost */
    enum pod_phase phase; /* decided by the training container: its final end is the pod's, even while sidecars run */
    bool lingers;         /* its training container has ended, and a sidecar would run forever */
    int64_t version;      /* resourceVersion */
    int64_t created_ms, started_ms;
    int64_t ended_ms;   /* when the container of exit_code ended; 0: none has ended */
    int64_t gone_by_ms; /* deletionTimestamp (which includes the grace); 0: not being deleted */
    char *held_by; /* the finalizer that keeps the object of a deleted pod which has ended or never ran; NULL: none */
    int exit_code; /* of the training container; -1: it has not ended, or it is unknown. In CrashLoopBackOff: of its
                      last end. In a pod that failed although this container did not: of the first one that failed, init
                      containers first */
    int container_restarts; /* by the kubelet, all containers but native sidecars */
    int restarts;           /* our annotation: re-creations of this index before this pod */
    char *reason;           /* OOMKilled, Evicted, ImagePullBackOff, Unschedulable, DeletionByTaintManager, ...; NULL */
    char *message; /* for users, cut to 500 bytes: the container's termination message (its end is kept), why it waits,
                      what happened to the pod; NULL: none */
    char *node, *ip; /* NULL while the pod has none */
};

/* Reads a pod in some 3 us. -1 when neither name nor labels give a role and an index of kind k: the pod is not one of
 * ours. The replica follows from the name if a job controls the pod, and from the labels if it is an orphan. The
 * strings are allocated one by one, so the caller can build the pod_info of an expected pod itself. A pod that
 * succeeded has no reason and no message. A pod that failed always has a reason ("Unknown" when none was given).
 *
 * The end of the training container is final when the pod's restartPolicy is Never, or OnFailure and it exited with 0;
 * it is never final under Always. A pod of one container keeps the phase that the kubelet gives it. */
int pod_info_parse(const struct job_kind *k, const json_t *pod, struct pod_info *ret);
/* Members of a pod that pod_info_parse() does not read, most of its size: a watch may prune them (struct
 * reflector_spec). NULL-terminated. */
extern const char *const POD_INFO_PRUNED[];
/* uid of the owner that controls an object with this metadata, borrowed; NULL: it has none. */
const char *object_owner_uid(const json_t *metadata);
/* Its resourceVersion; 0: it has none. */
int64_t object_version(const json_t *metadata);
/* True if its labels are those of an object that we created for the job of that name. An orphan is adopted only with
 * these labels. For a TFJob they are the labels by which training-operator selects. */
bool object_has_our_labels(const struct job_kind *k, const json_t *metadata, const char *job);
/* Name of the job it belongs to, borrowed from the object: the job of this kind that controls it, regardless of its
 * labels, else the job in its labels. NULL: none. */
const char *object_job_name(const struct job_kind *k, const json_t *object);
/* Cuts a text for users: at most max bytes, whole characters, no trailing blanks, "..." where it was cut. NULL when the
 * result is empty. */
char *text_truncate(const char *s, size_t max, bool keep_end);
void pod_info_fini(struct pod_info *p);
DEFINE_AUTO_FINI(pod_info, pod_info_fini);

struct service_info {
    char *name, *uid, *owner_uid;
    enum role role;
    int index;       /* -1: the job's one service */
    int64_t version; /* resourceVersion */
    bool creating, deleting;
    bool patching; /* our patch is in flight */
    bool labelled; /* object_has_our_labels() */
};
/* Reads only its metadata (a PartialObjectMetadata is enough). A service without a replica's labels is a TrainJob's
 * single service.
 */
int service_info_parse(const struct job_kind *k, const json_t *service, struct service_info *ret);
/* Reads TensorBoard's service, which service_info_parse() refuses; `service` is as there. */
bool service_is_tensorboard(const struct job_kind *k, const json_t *service);
void service_info_fini(struct service_info *s);
DEFINE_AUTO_FINI(service_info, service_info_fini);

/* The access modes of a claim of spec.storage. */
struct claim_info {
    char *name;
    bool found, read_write_many, read_write_once, read_write_once_pod, read_only_many;
    int refused; /* unknown whether it exists: the HTTP status of the answer, -1 without one; 0: known */
};

#endif
