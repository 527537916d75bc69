/* outdir - the output folder of `trainyard run` before and after the replicas run: its owner, whether the run starts or
 * continues, and the summary at the end. (What the chief writes: chief/output_dir.h.)
 *
 * The folder itself is locked (flock) while a launcher uses it, from before it reads the folder until it exits.
 *
 *     <output>/uid        the job's uid: kept when a run is resumed
 *     <output>/job.yaml   the job as it runs, with --set and --replicas applied
 */
#ifndef TRAINYARD_CLI_OUTDIR_H
#define TRAINYARD_CLI_OUTDIR_H

#include "job/job.h"
#include "job/rerun.h"

enum outdir_wish { OUTDIR_ANY, OUTDIR_RESUME, OUTDIR_FRESH };

struct outdir_seen {
    bool present, ours; /* a folder with a uid file of a trainyard run */
    bool empty;
    bool checkpoints; /* it has checkpoints, from which a run can resume */
    bool finished;
};
enum outdir_plan {
    OUTDIR_NEW,      /* there is nothing to continue */
    OUTDIR_CONTINUE, /* same life of the job */
    OUTDIR_REOPEN,   /* it had finished, or gets other batches: continues from its last checkpoint as a new life */
    OUTDIR_MOVE,     /* rename it, then as OUTDIR_NEW */
    OUTDIR_DONE      /* finished already: nothing to do */
};
/* Pure. ERR_INPUT when the request cannot be met. need: the changes of the job to the earlier run, all of them allowed.
 */
MUST_USE int outdir_decide(const char *path, enum outdir_wish wish, const struct outdir_seen *seen, enum rerun need,
                           enum outdir_plan *ret, struct err *e);

struct outdir {
    char *path;
    enum outdir_wish wish;
    struct outdir_seen seen;
    char uid[40];
    enum outdir_plan plan;
    char *moved_to;        /* OUTDIR_MOVE: where the old one is */
    int64_t finished_step; /* OUTDIR_DONE */
    int lock;              /* descriptor of the folder; -1: it did not exist */
};
/* Locks the folder, if there is one, and reads its state; changes nothing. ERR_INPUT when another launcher uses it. */
MUST_USE int outdir_open(const char *path, enum outdir_wish wish, struct outdir *ret, struct err *e);
/* Decides; changes nothing. */
MUST_USE int outdir_plan(struct outdir *o, enum rerun need, struct err *e);
/* Carries out the decision (not for OUTDIR_DONE): renames, creates, locks. The uid is the job's own or a new random
 * one. ERR_INPUT when another launcher uses the folder. */
MUST_USE int outdir_make(struct outdir *o, const char *job_uid, struct err *e);
void outdir_fini(struct outdir *o);
DEFINE_AUTO_FINI(outdir, outdir_fini);

/* {"loss": 0.1, ...}: the final metrics, or those of the last epoch; empty without any. New reference. */
json_t *outdir_metrics(const char *path);
/* A text for users with the final metrics and the paths of the files, from the chief's files in the folder. */
void outdir_summary(const char *path, struct buf *out);
/* A line for each checkpoint that a callback keeps beside the result, once the job has finished. */
void outdir_kept(const char *path, struct buf *out);

#endif
