/* The cache of jobs: entries by key, and the pods and services of each. A pod whose create was sent has an entry from
 * that moment on (an expectation), so a late watch never causes a second create. */
#include "control/cache.h"

#include <string.h>

#include "base/str.h"

void pod_info_free(struct pod_info *p)
{
    if (p != NULL)
        pod_info_fini(p);
    free(p);
}

void service_info_free(struct service_info *s)
{
    if (s != NULL)
        service_info_fini(s);
    free(s);
}

const char *cache_key(const char *ns, const char *name, char out[512])
{
    str_fmt(out, 512, "%s/%s", ns, name);
    return out;
}

/* ---- creates ---- */

enum create_kind create_kind_of(enum action_kind k)
{
    return k == ACT_CREATE_POD ? CREATE_PODS : k == ACT_CREATE_SERVICE ? CREATE_SERVICES : CREATE_OTHERS;
}

bool action_is_create(enum action_kind k)
{
    static const bool IS_CREATE[] = {
        [ACT_IDENTITY] = true,     [ACT_ENSURE_CONFIG] = true,      [ACT_ENSURE_POLICY] = true,
        [ACT_ENSURE_GROUP] = true, [ACT_ENSURE_TENSORBOARD] = true, [ACT_CREATE_SERVICE] = true,
        [ACT_CREATE_POD] = true,   [ACT_ADOPT_POD] = true,          [ACT_ADOPT_SERVICE] = true
    };
    return k < COUNT_OF(IS_CREATE) && IS_CREATE[k];
}

struct create_backoff *cache_entry_create_backoff(struct cache_entry *entry, enum action_kind k)
{
    return action_is_create(k) ? &entry->create_backoff[create_kind_of(k)] : NULL;
}

/* ---- one entry ---- */

static void claims_free(struct cache_entry *entry)
{
    for (size_t i = 0; entry->claims != NULL && i < entry->spec.nclaims; i++)
        free(entry->claims[i].name);
    free(entry->claims);
    free(entry->claims_fault);
}

void job_status_release(struct job_status **s)
{
    if (*s != NULL)
        job_status_fini(*s);
    free(TAKE(*s));
}

void cache_entry_forget_job(struct cache_entry *entry)
{
    struct cache_entry kept = { .key = entry->key,
                                .pods = entry->pods,
                                .npods = entry->npods,
                                .services = entry->services,
                                .nservices = entry->nservices,
                                .config = entry->config,
                                .policy = entry->policy };
    claims_free(entry);
    identity_state_free(entry->identity);
    job_status_release(&entry->acked);
    job_status_release(&entry->observed);
    dispatch_leave(&entry->ticket);
    kube_ticket_cancel(&entry->status_ticket);
    free(entry->progress.metrics);
    refusal_fini(&entry->refused);
    refusal_fini(&entry->tensorboard_refused);
    free(entry->board.trouble);
    job_status_fini(&entry->status);
    job_spec_fini(&entry->spec);
    *entry = kept;
}

void owned_object_fini(struct owned_object *o)
{
    free(o->uid);
    free(o->owner_uid);
    *o = (struct owned_object){ NULL, NULL };
}

static void cache_entry_free(struct cache_entry *entry)
{
    cache_entry_forget_job(entry);
    for (size_t i = 0; i < entry->npods; i++)
        pod_info_free(entry->pods[i]);
    for (size_t i = 0; i < entry->nservices; i++)
        service_info_free(entry->services[i]);
    free(entry->pods);
    free(entry->services);
    owned_object_fini(&entry->config);
    owned_object_fini(&entry->policy);
    free(entry->key);
    free(entry);
}

static size_t find_pod(const struct cache_entry *entry, const char *name)
{
    size_t i = 0;
    while (i < entry->npods && !str_eq(entry->pods[i]->name, name))
        i++;
    return i;
}

struct pod_info *cache_entry_pod(const struct cache_entry *entry, const char *name)
{
    size_t i = find_pod(entry, name);
    return i < entry->npods ? entry->pods[i] : NULL;
}

bool cache_entry_put_pod(struct cache_entry *entry, struct pod_info *p)
{
    size_t i = find_pod(entry, p->name);
    if (i == entry->npods) {
        entry->pods = xrealloc(entry->pods, (entry->npods + 1) * sizeof(struct pod_info *));
        entry->pods[entry->npods++] = p;
        return true;
    }
    if (str_eq(entry->pods[i]->uid, p->uid) && p->version < entry->pods[i]->version) {
        pod_info_free(p);
        return false;
    }
    pod_info_free(entry->pods[i]);
    entry->pods[i] = p;
    return true;
}

bool cache_entry_remove_pod(struct cache_entry *entry, const char *name, const char *uid)
{
    size_t i = find_pod(entry, name);
    if (i == entry->npods || (uid != NULL && (entry->pods[i]->creating ||
                                              (entry->pods[i]->uid != NULL && !str_eq(entry->pods[i]->uid, uid)))))
        return false;
    pod_info_free(entry->pods[i]);
    entry->pods[i] = entry->pods[--entry->npods];
    return true;
}

static size_t find_service(const struct cache_entry *entry, const char *name)
{
    size_t i = 0;
    while (i < entry->nservices && !str_eq(entry->services[i]->name, name))
        i++;
    return i;
}

struct service_info *cache_entry_service(const struct cache_entry *entry, const char *name)
{
    size_t i = find_service(entry, name);
    return i < entry->nservices ? entry->services[i] : NULL;
}

void cache_entry_put_service(struct cache_entry *entry, struct service_info *s)
{
    size_t i = find_service(entry, s->name);
    if (i == entry->nservices) {
        entry->services = xrealloc(entry->services, (entry->nservices + 1) * sizeof(struct service_info *));
        entry->nservices++;
    } else {
        service_info_free(entry->services[i]);
    }
    entry->services[i] = s;
}

bool cache_entry_remove_service(struct cache_entry *entry, const char *name, const char *uid)
{
    size_t i = find_service(entry, name);
    if (i == entry->nservices ||
        (uid != NULL &&
         (entry->services[i]->creating || (entry->services[i]->uid != NULL && !str_eq(entry->services[i]->uid, uid)))))
        return false;
    service_info_free(entry->services[i]);
    entry->services[i] = entry->services[--entry->nservices];
    return true;
}

void cache_entry_drop_expected_pod(struct cache_entry *entry, const char *name, const char *owner)
{
    const struct pod_info *p = cache_entry_pod(entry, name);
    if (p != NULL && p->creating && (owner == NULL || str_eq(p->owner_uid, owner)))
        cache_entry_remove_pod(entry, name, NULL);
}

void cache_entry_drop_expected_service(struct cache_entry *entry, const char *name, const char *owner)
{
    const struct service_info *s = cache_entry_service(entry, name);
    if (s != NULL && s->creating && (owner == NULL || str_eq(s->owner_uid, owner)))
        cache_entry_remove_service(entry, name, NULL);
}

/* ---- all entries ---- */

struct cache_entry *cache_find(const struct cache *c, const char *key)
{
    return map_get(&c->entries, key);
}

struct cache_entry *cache_get_or_add(struct cache *c, const char *ns, const char *name)
{
    char key[512];
    struct cache_entry *entry = map_get(&c->entries, cache_key(ns, name, key));
    if (entry == NULL) {
        entry = xcalloc(1, sizeof(*entry));
        entry->key = xstrdup(key);
        map_put(&c->entries, key, entry);
    }
    return entry;
}

void cache_remove(struct cache *c, struct cache_entry *entry)
{
    map_remove(&c->entries, entry->key);
    cache_entry_free(entry);
}

void cache_remove_if_empty(struct cache *c, struct cache_entry *entry)
{
    if (!entry->known && entry->npods == 0 && entry->nservices == 0 && entry->config.uid == NULL &&
        entry->policy.uid == NULL)
        cache_remove(c, entry);
}

void cache_fini(struct cache *c)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&c->entries, &i)) != NULL;)
        cache_entry_free(slot->value);
    map_fini(&c->entries);
}
