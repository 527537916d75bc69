/* apply - carries out a plan: sends its actions as requests and writes their answers into the cache. */
#ifndef TRAINYARD_CONTROL_APPLY_H
#define TRAINYARD_CONTROL_APPLY_H

#include "control/controller_env.h"

/* granted: it is the job's turn in the fair queue; otherwise only actions that need no turn are sent. true: some
 * actions wait for a turn. */
bool apply_plan(struct controller_env *env, struct cache_entry *entry, const struct job_plan *p, bool granted);
/* What the plan has to know about the job's certificates; NULL: it gets none, or needs none now. Borrowed until the
 * next call. */
const struct identity_facts *identity_observe(struct controller_env *env, struct cache_entry *entry, int64_t now_ms);
/* The watch reported the pod as deleted, but perhaps only its labels were changed: reads it from the API server. */
void apply_confirm_pod_gone(struct controller_env *env, struct cache_entry *entry, struct pod_info *p);

#endif
