/* supervise - decides when a replica is started, restarted or stopped: the deciding half of `trainyard run`.
 *
 * Pure: time is a parameter (milliseconds of a monotonic clock), and actions go through a table of operations, so that
 * a test reads a whole run as a list of actions. launcher.c is the I/O half.
 *
 * The chief's end (or worker-0's, when there is no chief) with exit code 0 is the end of the job. A replica that dies
 * is restarted by its restart policy after 10 ms, doubled each time up to 10 s. The job fails after more than
 * backoff_limit restarts, after exit codes 2 and 3, and after ends that the policy does not restart. After
 * active_deadline_ms it ends with EXIT_DEADLINE, unless the chief exits 0 when it is stopped. With restart_all
 * (runPolicy.restartScope Job) all others except the evaluator are stopped, and all are started together when the last
 * of them has ended; that counts as one restart. Replicas that had exited 0 are not restarted, and the chief's exit
 * code 0 still ends the job. The chief is stopped first (it saves a checkpoint), then workers and evaluators, then ps.
 * Workers, evaluators and ps get a second signal after half a second, because without a chief there is nothing to wait
 * for. Each group has a timeout, after which it is killed.
 */
#ifndef TRAINYARD_CLI_SUPERVISE_H
#define TRAINYARD_CLI_SUPERVISE_H

#include "base/log.h"
#include "job/job.h"

enum { RESTART_DELAY_MS = 10, RESTART_DELAY_MAX_MS = 10000, RESTART_FORGET_MS = 60000 };

struct supervisor_ops {
    /* Starts replica i. A failure counts as an end of the replica with the exit code of the error. */
    int (*start)(void *user, size_t i, struct err *e);
    void (*signal)(void *user, size_t i, int signal);
    void (*log)(void *user, enum log_level level, const char *text);
};

struct supervisor_config {
    int64_t backoff_limit;
    bool restart_all;
    int64_t active_deadline_ms; /* 0: none */
    int64_t stop_grace_ms;      /* the chief's time to save */
    int64_t end_grace_ms;       /* the others' time to exit after the chief's end */
};

enum replica_state { REPLICA_WAITING, REPLICA_RUNNING, REPLICA_ENDED };
struct supervised_replica {
    enum role role;
    int index;
    char name[32]; /* "worker-3" */
    enum restart_policy policy;
    enum replica_state state;
    bool decides; /* its end with exit code 0 is the end of the job */
    int64_t start_at, started_at, delay_ms;
    int restarts;
};

struct supervisor;
struct supervisor *supervisor_new(const struct supervisor_config *config, const struct supervisor_ops *ops, void *user,
                                  int64_t now);
void supervisor_free(struct supervisor *s);
DEFINE_AUTO(supervisor, supervisor_free);
/* Add all before the first tick. name NULL: "worker-3". */
void supervisor_add(struct supervisor *s, enum role role, int index, const char *name, enum restart_policy policy,
                    bool decides);
size_t supervisor_count(const struct supervisor *s);
const struct supervised_replica *supervisor_replica(const struct supervisor *s, size_t i);

/* Replica i ended: exit code, or 128 + signal. last_words: its last error message, or "". */
void supervisor_exited(struct supervisor *s, size_t i, int exit_code, const char *last_words, int64_t now);
/* The user requested a stop `count` times in all: the first stops in order, the second at once. */
void supervisor_stop(struct supervisor *s, int count, int64_t now);
/* Runs all actions that are due. */
void supervisor_tick(struct supervisor *s, int64_t now);
/* When tick must be called again at the latest; INT64_MAX when only an event can change anything. */
int64_t supervisor_next(const struct supervisor *s);

bool supervisor_over(const struct supervisor *s); /* nothing runs and nothing will be started */
bool supervisor_stopping(const struct supervisor *s);
int supervisor_exit_code(const struct supervisor *s);      /* of the job; meaningful when over */
const char *supervisor_reason(const struct supervisor *s); /* why the job failed, or "" */

/* "was killed by signal 9 (Killed)", "ended with exit code 2". */
const char *supervise_exit_text(int exit_code, char out[64]);

#endif
