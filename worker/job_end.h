/* job_end - has the job ended, according to its output folder? For a replica whose chief does not answer: after the end
 * no chief comes that could say so. A replica that cannot read the folder never learns it here.
 */
#ifndef TRAINYARD_WORKER_JOB_END_H
#define TRAINYARD_WORKER_JOB_END_H

#include "replica.h"

struct job_end {
    const struct replica *replica;
    bool other; /* the folder's run differs from the job: it was compared once */
};

/* uid: the job's, as the chief or the environment told it; "" for a replica that was started by hand and has not met a
 * chief. Such a replica believes only a folder that --output-dir names, and only if its run has the settings of the
 * job. Not thread-safe. */
bool job_end_reached(struct job_end *j, const char *uid, int64_t *ret_step);

#endif
