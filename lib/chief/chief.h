/* chief - the component that leads a job: initialises or restores the ps, leases batches, saves checkpoints and
 * summaries, evaluates, restores a ps that was lost, and ends the job.
 *
 * A component, not a process: it runs in the chief pod, in worker 0 when there is no chief, and in the only process of
 * single-machine training. chief_run() occupies one thread; workers talk to chief_coordinator() from others.
 */
#ifndef TRAINYARD_CHIEF_CHIEF_H
#define TRAINYARD_CHIEF_CHIEF_H

#include "base/report.h"
#include "base/thread.h"
#include "coord/coordinator.h"
#include "params/params.h"

struct chief_config { /* all borrowed for the lifetime of the chief */
    const struct job *job;
    const struct model *model;
    const struct layout *layout;
    const struct placement *placement;
    const struct dataset *train, *validation; /* validation NULL: none */
    struct ordinal_space space;
    struct params *params; /* the chief's own; when local, shared with the session */
    const char *output_dir, *job_uid;
    const char *data_dir; /* paths of the manifest are relative to it */
    uint64_t incarnation;
    int workers_wanted;      /* number in the cluster spec, for "workers 1/2" */
    size_t members_max;      /* of the job; 0: COORDINATOR_MEMBERS_MAX */
    bool members;            /* no ps: each worker has the state, and params is that of params_new_members */
    bool local;              /* no ps: all that trains is in this process */
    struct mutex *step_gate; /* NULL, or held while a checkpoint is taken. With it (Single) checkpoints and evaluations
                                fall between two exact steps */
    const struct report *report;
};

struct chief;
/* Prepares the output folder, finds and checks the newest checkpoint. Errors are meant for the user, immediately. */
MUST_USE int chief_new(const struct chief_config *config, struct chief **ret, struct err *e);
void chief_free(struct chief *c);
DEFINE_AUTO(chief, chief_free);
struct coordinator *chief_coordinator(struct chief *c);

/* Leads the job to its end. 0: finished (now or before). ERR_STOPPED: a signal came, a checkpoint is saved.
 * ERR_DIVERGED, ERR_FENCED (a newer chief is in charge), ERR_LOST (a ps was away for longer than maxWaitSeconds), ...
 */
MUST_USE int chief_run(struct chief *c, struct err *e);

/* JSON for GET /progress; any thread. */
void chief_progress(struct chief *c, struct buf *out);
/* Numbers for /metrics; any thread. */
struct chief_numbers {
    int64_t step, done, total, checkpoint_step;
    double examples_per_second;
    int workers;
    uint64_t generation, restored;
};
void chief_numbers(struct chief *c, struct chief_numbers *ret);

#endif
