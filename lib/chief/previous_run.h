/* previous_run - the run of an earlier job in an output folder: what is known about it, and how the job that is about
 * to start there differs (job/rerun.h has the rules).
 *
 * Known from <output>/job.yaml, the job as it ran, and from the newest checkpoint, which names data, batch size and
 * seed. `trainyard run` reads it before it changes anything. A chief reads it before it creates its first file, because
 * on a cluster a new job may get a used volume.
 */
#ifndef TRAINYARD_CHIEF_PREVIOUS_RUN_H
#define TRAINYARD_CHIEF_PREVIOUS_RUN_H

#include "chief/checkpoint.h"
#include "chief/rebase.h"
#include "data/dataset.h"
#include "job/rerun.h"
#include "nn/model.h"
#include "shard/groups.h"

struct run_spec { /* the job that is about to start; borrowed */
    const struct job *job;
    const struct model *model;
    const struct layout *layout;
    const struct ordinal_space *space;
    const struct column_names *columns; /* of data.train */
    const char *data_dir;
    int workers; /* of the cluster: the default of strategy.replicasToAggregate */
};

struct previous_run {
    char *uid; /* of the job that wrote last; "": none */
    bool finished;
    int64_t finished_step;
    int64_t group_size; /* of synchronous updates, as job.yaml has it; 0: not known, or asynchronous */
    struct rerun_changes changes;
};
void previous_run_fini(struct previous_run *r);
DEFINE_AUTO_FINI(previous_run, previous_run_fini);

/* newest: its newest checkpoint, NULL: there is none. Changes nothing. */
MUST_USE int previous_run_read(const char *dir, const struct run_spec *now, const struct checkpoint *newest,
                               struct previous_run *ret, struct err *e);
/* Checks whether the job can continue from the checkpoint. *ret_rebase: how, if its batches differ, which fit.rebase
 * allows. */
MUST_USE int previous_run_check(const struct run_spec *now, const struct checkpoint *newest, struct rebase *ret_rebase,
                                struct err *e);
struct run_length {
    struct groups groups; /* of size 1 in asynchronous training */
    int64_t step_offset; /* global step - groups_below(ordinals applied); not 0 after a rebase, or after other groups */
    int64_t total;       /* ordinals of the whole job */
};
/* ERR_INPUT when more is done than the job requires. newest NULL: nothing is done. */
MUST_USE int previous_run_length(const struct run_spec *now, const struct previous_run *was,
                                 const struct checkpoint *newest, const struct rebase *rebase, struct run_length *ret,
                                 struct err *e);
/* What the manifest allows: fit.rebase, fit.resume. */
enum rerun previous_run_allowed(const struct job *job);

/* Writes the job as it runs to job.yaml, for later readers of the folder, with a model of kerasFile included; the data
 * folder and, of synchronous updates, the size of the groups are annotations. A file with the same content is not
 * written again. */
MUST_USE int previous_run_write_job(const char *dir, const struct job *job, const char *data_dir,
                                    const struct groups *groups, struct err *e);
/* Reads job.yaml; *ret NULL: there is none. */
MUST_USE int previous_run_read_job(const char *dir, struct job **ret, struct err *e);

/* The data folder of the run that wrote the job, if there is such a folder here; else NULL. */
char *previous_run_data_dir(const struct job *job);

#endif
