/* The functions that every part of a controller uses: queue a job, record an event about it, read a clock. */
#include "control/controller_env.h"

int64_t env_now(const struct controller_env *env)
{
    return kube_client_time(env->client);
}

int64_t env_clock(const struct controller_env *env)
{
    return loop_now(kube_client_loop(env->client));
}

void env_enqueue(struct controller_env *env, const struct cache_entry *entry)
{
    if (entry->known)
        workqueue_add(env->queue, entry->key);
}

void env_event(struct controller_env *env, const struct cache_entry *entry, bool warning, const char *reason,
               const char *about, const char *note)
{
    const struct event_object o = { .api_version = env->kind->api_version,
                                    .kind = env->kind->resource.kind,
                                    .ns = entry->spec.ns,
                                    .name = entry->spec.name,
                                    .uid = entry->spec.uid };
    event_record(env->events, &o, warning ? EVENT_WARNING : EVENT_NORMAL, reason, about, note);
}
