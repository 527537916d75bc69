/* cluster - the members of the job, and which one of them this process is: TF_CONFIG, the JOB_NAME family, or flags
 * (design part 6).
 *
 * cluster_resolve() takes everything as parameters (no getenv inside), so it is pure. The JOB_NAME family is five
 * settings, each from its flag or else from its environment variable; when any of them is given, TF_CONFIG is ignored.
 * Empty values count as not given. An incomplete set is ERR_INPUT with the messages that TensorFlow users know: "Must
 * specify an explicit `job_name`", "Must specify an explicit `task_index`", "Must specify an explicit `ps_hosts`", ...
 * (a ps or a chief may leave out worker_hosts when chief_host is given; all but a ps may leave out ps_hosts when
 * worker_hosts is given, for workers that need no ps). Nothing given, or TF_CONFIG without a cluster:
 * configured = false (single-machine training; role worker, index 0).
 *
 * The result is checked: addresses are host:port and differ, the task is in the cluster, there is at most one chief.
 * Whether a task needs one is its own matter: a dynamic worker of a TFJob has none. An evaluator need not be in the
 * cluster. A worker need not be either when TF_CONFIG lists only the tasks it must find: the ps, and the chief or the
 * worker 0 that leads. So TF_CONFIG stays short for any number of workers. A worker of MultiWorkerMirrored has its own
 * address beside the leader's, because it is a server:
 * {"cluster":{"chief":["..."],"worker":{"3":"..."}},"task":{"type":"worker","index":3},...,"workers":4}.
 */
#ifndef TRAINYARD_JOB_CLUSTER_H
#define TRAINYARD_JOB_CLUSTER_H

#include "job/job.h"

struct cluster {
    bool configured;
    struct strlist hosts[ROLE_COUNT]; /* "host:port" by task index; a sparse entry is NULL */
    enum role role;                   /* this task */
    int index;
    bool listed[ROLE_COUNT]; /* TF_CONFIG names the role also when it has no hosts, as [] */
    int workers;             /* number of workers when not all of them are listed; 0: as many as are listed */
    bool master;             /* TF_CONFIG calls the chief "master", TFJob's old name for it */
};

struct cluster_input { /* NULL: not given */
    const char *tf_config;
    const char *job_name, *task_index, *ps_hosts, *worker_hosts, *chief_host;
};

MUST_USE int cluster_resolve(const struct cluster_input *flags, const struct cluster_input *env, struct cluster *ret,
                             struct err *e);
/* From getenv(). */
struct cluster_input cluster_env(void);
void cluster_fini(struct cluster *c);
DEFINE_AUTO_FINI(cluster, cluster_fini);

/* TF_CONFIG text for a task: {"cluster":{...},"task":{"type":...,"index":...},"environment":"cloud"},
 * byte for byte as training-operator writes it (keys sorted as Go does; c->master: "master" instead of "chief").
 * c->workers > 0 is added as "workers"; such a cluster may list some of its workers, as {"3":"..."}. Another one whose
 * workers have gaps is written in the sparse form. xmalloc'ed. */
char *cluster_to_tf_config(const struct cluster *c, enum role role, int index);
/* The same around the text of the "cluster" object, or around a placeholder. */
char *cluster_to_tf_config_around(const struct cluster *c, const char *cluster, enum role role, int index);
/* The "cluster" object alone. xmalloc'ed. */
char *cluster_to_json(const struct cluster *c);
/* The sparse form, of TFJob's enableDynamicWorker: a task has its own address and those of the ps, so that workers
 * can come and go. A worker gets {"cluster":{"worker":{"1":"..."},"ps":[all]},"task":...}, a ps
 * {"cluster":{"worker":{},"ps":[all]},...} (training-operator gives a ps only its own address, with which an index
 * above 0 is out of range), a chief {"cluster":{"chief":["..."],"worker":{},"ps":[all]},...} and an evaluator the
 * same with its own address after the chief's (training-operator gives neither; TensorFlow refuses that). No
 * environment. c must have dense lists. xmalloc'ed. */
char *cluster_to_sparse_tf_config(const struct cluster *c, enum role role, int index);

/* Address of the Coordinator: the chief's, or worker 0's when there is no chief (TFJob's rule). NULL when
 * the cluster has neither. */
const char *cluster_chief_address(const struct cluster *c);
/* The role of the process at that address; ROLE_COUNT: the cluster has neither, as TF_CONFIG's sparse form for a ps. */
enum role cluster_leader(const struct cluster *c);
const char *cluster_leader_name(const struct cluster *c); /* "chief-0", "worker-0"; NULL */
bool cluster_is_chief(const struct cluster *c);           /* this task hosts the chief component */
int cluster_workers(const struct cluster *c);
/* The number of descriptors that this replica needs at least: its own files, and a connection with each peer. */
size_t cluster_files(const struct cluster *c);
const char *cluster_task_name(const struct cluster *c, char out[64]); /* "worker-3" */

/* The size of TF_CONFIG for these numbers of replicas. Linux does not start a program with more than 128 KiB in one
 * variable. */
struct cluster_names {
    const char *job, *ns, *domain; /* domain "": none */
    bool service_per_replica;      /* TFJob: NAME-ROLE-I.NS.svc; TrainJob: NAME-ROLE-I.NAME.NS.svc */
    int replicas[ROLE_COUNT];      /* those that are listed */
};
enum { TF_CONFIG_MAX = 128 * 1024 - (int)sizeof("TF_CONFIG=") };
/* NULL: it is not too large. Else a message for people; xmalloc'ed. */
char *cluster_too_large(const struct cluster_names *n);

#endif
