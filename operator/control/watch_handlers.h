/* watch_handlers - the watches of a controller: they write what its reflectors report into the cache and queue the job.
 */
#ifndef TRAINYARD_CONTROL_WATCH_HANDLERS_H
#define TRAINYARD_CONTROL_WATCH_HANDLERS_H

#include "control/controller_env.h"

/* What the watches report upwards. */
struct watches_user {
    /* The job's object, which was already in the cache; its status may lack some of our fields. */
    void (*on_status)(void *user, struct cache_entry *entry, const json_t *object);
    /* The watch reported a pod as deleted that this operator did not delete: perhaps only its labels were changed. */
    void (*on_pod_missing)(void *user, struct cache_entry *entry, struct pod_info *pod);
    /* The job's entry is about to be removed. */
    void (*on_forget)(void *user, struct cache_entry *entry);
    void *user;
};

struct watches;
/* Starts them; env and user must outlive them. */
struct watches *watches_new(struct controller_env *env, const struct watches_user *user);
void watches_free(struct watches *w);
DEFINE_AUTO(watches, watches_free);
/* All lists have been read once (a kind that is not installed counts as read). */
bool watches_synced(const struct watches *w);
/* The pods and services of this namespace are known. While they may not be listed (403, as from an API server that has
 * just started), all of a job's pods would seem to have vanished. */
bool watches_see_dependents(const struct watches *w, const char *ns);

#endif
