/* status_internal - what the files of the status share. */
#ifndef TRAINYARD_API_JOB_STATUS_INTERNAL_H
#define TRAINYARD_API_JOB_STATUS_INTERNAL_H

#include "api/job_status.h"

/* Takes over reason and message. */
void job_status_put(struct job_status *s, size_t at, struct condition c);
void index_counts_emit(const struct index_counts *c, struct buf *out);
void index_counts_parse(const char *text, struct index_counts *ret); /* lenient: the rest after a fault is left out */

#endif
