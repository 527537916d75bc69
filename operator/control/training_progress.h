/* training_progress - reads what a chief reports: its page /progress, and the same text in its termination message. */
#ifndef TRAINYARD_CONTROL_TRAINING_PROGRESS_H
#define TRAINYARD_CONTROL_TRAINING_PROGRESS_H

#include "api/job_status.h"

enum { PROGRESS_MAX = 65536 }; /* bytes of the page */

/* -1: it is not a progress report. ret->updated_ms is left 0. */
MUST_USE int training_progress_parse(const char *text, size_t n, struct training_progress *ret);
/* The same from a pod's termination message, when its training container exited with 0. -1: it has none. */
MUST_USE int training_progress_of_pod(const struct job_kind *k, const json_t *pod, struct training_progress *ret);
void training_progress_fini(struct training_progress *p);
DEFINE_AUTO_FINI(training_progress, training_progress_fini);

#endif
