/* job_status_internal - what the files of job_status share. */
#ifndef TRAINYARD_API_JOB_STATUS_INTERNAL_H
#define TRAINYARD_API_JOB_STATUS_INTERNAL_H

#include "api/job_status.h"

/* Takes ownership of reason and message. */
void job_status_put(struct job_status *s, size_t at, struct condition c);

#endif
