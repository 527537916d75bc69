/* launcher - runs the replicas of a job as processes of this machine: starts, watches, restarts, stops them
 * (supervise.h decides), shows their lines and the progress (console.h, progress.h).
 *
 * One thread, one poll(2). Blocks until the job is over. Needs stop_install() before.
 */
#ifndef TRAINYARD_CLI_LAUNCHER_H
#define TRAINYARD_CLI_LAUNCHER_H

#include "job/job.h"

struct launch {
    const struct job *job;            /* borrowed, as all */
    const char *job_file, *data_dir, *output_dir, *uid;
    const char *log_level, *log_format;
    bool json;
};
/* *ret_exit: the job's exit code. -1: it could not be begun at all; nothing runs then. */
MUST_USE int launcher_run(const struct launch *launch, int *ret_exit, struct err *e);

/* What the terminal does with a line of the chief while the bar says the same. */
enum line_kind { LINE_SHOW, LINE_STEP, LINE_EPOCH };
enum line_kind launcher_line_kind(const char *text);
/* "epoch 2/5 done loss 0.2 val_loss 0.3" -> "Epoch 2/5 [====================] 100%  loss 0.2 val_loss 0.3" */
void launcher_epoch_line(const char *text, struct buf *out);

#endif
