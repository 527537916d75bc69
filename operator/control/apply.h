/* apply - carries out a plan: its actions become requests, and their answers go into the cache. */
#ifndef TRAINYARD_CONTROL_APPLY_H
#define TRAINYARD_CONTROL_APPLY_H

#include "control/controller_env.h"

/* granted: it is the job's turn; otherwise only actions that need no turn are sent. true: some wait for a turn. */
bool apply_plan(struct controller_env *env, struct cache_entry *entry, const struct job_plan *p, bool granted);
/* The watch reported the pod as deleted, but perhaps only its labels were changed: the API server is asked. */
void apply_confirm_pod_gone(struct controller_env *env, struct cache_entry *entry, struct pod_info *p);

#endif
