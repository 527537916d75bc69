/* watch_handlers - the watches of a controller: what its reflectors report goes into the cache and queues the job. */
#ifndef TRAINYARD_CONTROL_WATCH_HANDLERS_H
#define TRAINYARD_CONTROL_WATCH_HANDLERS_H

#include "control/controller_env.h"

/* What the watches report upwards. */
struct watches_user {
    /* The job's object, which was in the cache before: its status may lack something. */
    void (*on_status)(void *user, struct cache_entry *entry, const json_t *object);
    /* The watch reports a pod as deleted that nothing of ours deleted: perhaps only its labels were changed. */
    void (*on_pod_missing)(void *user, struct cache_entry *entry, struct pod_info *pod);
    /* The job is about to be forgotten. */
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
