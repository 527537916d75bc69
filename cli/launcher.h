/* launcher - runs the replicas of a job as local processes: starts, monitors, restarts and stops them (supervise.h
 * decides), and shows their lines and the progress (console.h, progress_bar.h).
 *
 * One thread, one poll(2). Blocks until the job is over. Needs stop_install() before.
 */
#ifndef TRAINYARD_CLI_LAUNCHER_H
#define TRAINYARD_CLI_LAUNCHER_H

#include "job/job.h"

struct launch {
    const struct job *job; /* borrowed, as all */
    const char *job_file, *data_dir, *output_dir, *uid;
    const char *log_level, *log_format;
    bool json;
    const char *tls_dir; /* where the certificates are kept; NULL: a temporary folder */
    bool insecure;       /* no certificates */
};
/* Checks before anything is created: at least one replica trains, the programs exist, and enough descriptors are free.
 */
MUST_USE int launcher_check(const struct job *job, struct err *e);
struct launch_end {
    int exit_code;             /* the job's */
    char reason[ERR_TEXT_MAX]; /* why it failed, or "" */
};
/* -1: the job could not be started, and nothing runs. */
MUST_USE int launcher_run(const struct launch *launch, struct launch_end *ret, struct err *e);

#endif
