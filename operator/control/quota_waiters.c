/* Finds the two oldest jobs of each namespace that wait for a quota: one of them is not the job that asks. */
#include "control/quota_waiters.h"

#include <string.h>

#include "base/str.h"
#include "control/controller_env.h"

enum { READ_AGAIN_MS = 1000, KEPT = 2 };

struct waiter {
    char *name, *uid;
    int64_t created_ms;
};
struct ns_waiters {
    struct waiter oldest[KEPT]; /* name NULL: none */
};

static void waiters_clear(struct map *by_ns)
{
    const struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(by_ns, &i)) != NULL;) {
        struct ns_waiters *w = slot->value;
        for (size_t k = 0; k < KEPT; k++) {
            free(w->oldest[k].name);
            free(w->oldest[k].uid);
        }
        free(w);
    }
    map_fini(by_ns);
    *by_ns = (struct map){ .n = 0 };
}

void quota_waiters_fini(struct quota_waiters *w)
{
    waiters_clear(&w->by_ns);
}

/* Times have seconds only. */
static bool waiters_is_older(int64_t created_ms, const char *uid, int64_t than_ms, const char *than_uid)
{
    return created_ms != than_ms ? created_ms < than_ms : strcmp(uid, than_uid) < 0;
}

/* A job that the quota never admits waits in vain; one that gave its pods back waits for the others first. */
static bool waiters_waits(const struct cache_entry *entry)
{
    const struct refusal *f = &entry->refused;
    return entry->known && f->name != NULL && f->over_quota && !f->never_fits && !entry->spec.suspend &&
           !entry->spec.deleting && !job_status_finished(&entry->status) && !plan_gave_back(&entry->status) &&
           cache_entry_pod(entry, f->name) == NULL;
}

static void waiters_add(struct quota_waiters *w, const struct cache_entry *entry)
{
    struct waiter one = { .name = entry->spec.name, .uid = entry->spec.uid, .created_ms = entry->spec.created_ms };
    struct ns_waiters *of = map_get(&w->by_ns, entry->spec.ns);
    if (of == NULL) {
        of = xcalloc(1, sizeof(*of));
        map_put(&w->by_ns, entry->spec.ns, of);
    }
    one.name = xstrdup(one.name);
    one.uid = xstrdup(one.uid);
    for (size_t k = 0; k < KEPT; k++) {
        struct waiter *here = &of->oldest[k];
        if (one.name != NULL &&
            (here->name == NULL || waiters_is_older(one.created_ms, one.uid, here->created_ms, here->uid))) {
            struct waiter next = *here;
            *here = one;
            one = next;
        }
    }
    free(one.name);
    free(one.uid);
}

static void waiters_read(struct controller_env *env)
{
    struct quota_waiters *w = &env->quota_waiters;
    const struct map_slot *slot;
    if (w->read_ms != 0 && env_clock(env) - w->read_ms < READ_AGAIN_MS)
        return;
    waiters_clear(&w->by_ns);
    for (size_t i = 0; (slot = map_next(&env->cache.entries, &i)) != NULL;)
        if (waiters_waits(slot->value))
            waiters_add(w, slot->value);
    w->read_ms = env_clock(env);
}

void quota_waiters_observe(struct controller_env *env, const struct cache_entry *entry, struct observed *ret)
{
    bool asks = (entry->refused.name != NULL && entry->refused.over_quota) || plan_gave_back(&entry->status);
    if (!asks)
        return;
    waiters_read(env);
    const struct ns_waiters *of = map_get(&env->quota_waiters.by_ns, entry->spec.ns);
    for (size_t k = 0; of != NULL && k < KEPT; k++) {
        const struct waiter *o = &of->oldest[k];
        if (o->name == NULL || str_eq(o->uid, entry->spec.uid))
            continue;
        ret->quota_rival = o->name;
        ret->rival_is_older = waiters_is_older(o->created_ms, o->uid, entry->spec.created_ms, entry->spec.uid);
        return;
    }
}
