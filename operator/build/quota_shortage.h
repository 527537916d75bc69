/* quota_shortage - what the API server's message about an exceeded quota means for a job. Pure. */
#ifndef TRAINYARD_BUILD_QUOTA_SHORTAGE_H
#define TRAINYARD_BUILD_QUOTA_SHORTAGE_H

#include "build/objects.h"

/* The message of a create that was refused because a ResourceQuota is used up. */
bool is_over_quota(const char *message);
/* "the job needs pods=3 to train, and the quota has pods=2", when the quota of such a message can never admit the least
 * number of replicas with which the job can train (job_spec_minimum()); NULL: it can, or nothing is known about it.
 * spec: job_spec_json(v). xmalloc'ed. */
char *quota_shortage(const struct job_spec *v, const json_t *spec, const struct build_settings *s, const char *message);

#endif
