/* progress - what a chief says of itself, read: its page /progress, and the same text as its pod's last words. Pure. */
#ifndef TRAINYARD_CONTROL_TRAINING_PROGRESS_H
#define TRAINYARD_CONTROL_TRAINING_PROGRESS_H

#include "api/job_status.h"

enum { PROGRESS_MAX = 65536 }; /* bytes of the page */

/* -1: it is no progress. ret->updated_ms is left 0. */
MUST_USE int training_progress_parse(const char *text, size_t n, struct training_progress *ret);
/* The same of a pod's object: the last words of the container that trains, when it ended well. -1: it left none. */
MUST_USE int training_progress_of_pod(const struct job_kind *k, const json_t *pod, struct training_progress *ret);
void training_progress_fini(struct training_progress *p);
DEFINE_AUTO_FINI(training_progress, training_progress_fini);

#endif
