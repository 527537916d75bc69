#include "control/record.h"

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

const char *record_key(const char *ns, const char *name, char out[512])
{
    str_fmt(out, 512, "%s/%s", ns, name);
    return out;
}

/* ---- one record ---- */

static void forget_claims(struct record *r)
{
    for (size_t i = 0; r->claims != NULL && i < r->view.nclaims; i++)
        free(r->claims[i].name);
    free(r->claims);
    free(r->claims_fault);
}

void record_drop_status(struct job_status **s)
{
    if (*s != NULL)
        job_status_fini(*s);
    free(TAKE(*s));
}

void record_forget_job(struct record *r)
{
    struct record kept = { .key = r->key,
                           .pods = r->pods,
                           .npods = r->npods,
                           .services = r->services,
                           .nservices = r->nservices,
                           .config = r->config,
                           .policy = r->policy };
    forget_claims(r);
    record_drop_status(&r->acked);
    record_drop_status(&r->seen);
    dispatch_leave(&r->turn);
    kube_ticket_cancel(&r->tell);
    free(r->progress.metrics);
    refusal_fini(&r->refused);
    refusal_fini(&r->tensorboard_refused);
    job_status_fini(&r->status);
    job_spec_fini(&r->view);
    *r = kept;
}

void beside_fini(struct beside *b)
{
    free(b->uid);
    free(b->owner_uid);
    *b = (struct beside){ NULL, NULL };
}

static void record_free(struct record *r)
{
    record_forget_job(r);
    for (size_t i = 0; i < r->npods; i++)
        pod_info_free(r->pods[i]);
    for (size_t i = 0; i < r->nservices; i++)
        service_info_free(r->services[i]);
    free(r->pods);
    free(r->services);
    beside_fini(&r->config);
    beside_fini(&r->policy);
    free(r->key);
    free(r);
}

static size_t find_pod(const struct record *r, const char *name)
{
    size_t i = 0;
    while (i < r->npods && !str_eq(r->pods[i]->name, name))
        i++;
    return i;
}

struct pod_info *record_pod(const struct record *r, const char *name)
{
    size_t i = find_pod(r, name);
    return i < r->npods ? r->pods[i] : NULL;
}

bool record_put_pod(struct record *r, struct pod_info *p)
{
    size_t i = find_pod(r, p->name);
    if (i == r->npods) {
        r->pods = xrealloc(r->pods, (r->npods + 1) * sizeof(struct pod_info *));
        r->pods[r->npods++] = p;
        return true;
    }
    if (str_eq(r->pods[i]->uid, p->uid) && p->version < r->pods[i]->version) {
        pod_info_free(p);
        return false;
    }
    pod_info_free(r->pods[i]);
    r->pods[i] = p;
    return true;
}

bool record_remove_pod(struct record *r, const char *name, const char *uid)
{
    size_t i = find_pod(r, name);
    if (i == r->npods ||
        (uid != NULL && (r->pods[i]->creating || (r->pods[i]->uid != NULL && !str_eq(r->pods[i]->uid, uid)))))
        return false;
    pod_info_free(r->pods[i]);
    r->pods[i] = r->pods[--r->npods];
    return true;
}

static size_t find_service(const struct record *r, const char *name)
{
    size_t i = 0;
    while (i < r->nservices && !str_eq(r->services[i]->name, name))
        i++;
    return i;
}

struct service_info *record_service(const struct record *r, const char *name)
{
    size_t i = find_service(r, name);
    return i < r->nservices ? r->services[i] : NULL;
}

void record_put_service(struct record *r, struct service_info *s)
{
    size_t i = find_service(r, s->name);
    if (i == r->nservices) {
        r->services = xrealloc(r->services, (r->nservices + 1) * sizeof(struct service_info *));
        r->nservices++;
    } else {
        service_info_free(r->services[i]);
    }
    r->services[i] = s;
}

bool record_remove_service(struct record *r, const char *name, const char *uid)
{
    size_t i = find_service(r, name);
    if (i == r->nservices || (uid != NULL && (r->services[i]->creating ||
                                              (r->services[i]->uid != NULL && !str_eq(r->services[i]->uid, uid)))))
        return false;
    service_info_free(r->services[i]);
    r->services[i] = r->services[--r->nservices];
    return true;
}

void record_drop_expected_pod(struct record *r, const char *name, const char *owner)
{
    const struct pod_info *p = record_pod(r, name);
    if (p != NULL && p->creating && (owner == NULL || str_eq(p->owner_uid, owner)))
        record_remove_pod(r, name, NULL);
}

void record_drop_expected_service(struct record *r, const char *name, const char *owner)
{
    const struct service_info *s = record_service(r, name);
    if (s != NULL && s->creating && (owner == NULL || str_eq(s->owner_uid, owner)))
        record_remove_service(r, name, NULL);
}

/* ---- all of them ---- */

struct record *store_find(const struct store *s, const char *key)
{
    return map_get(&s->records, key);
}

struct record *store_get(struct store *s, const char *ns, const char *name)
{
    char key[512];
    struct record *r = map_get(&s->records, record_key(ns, name, key));
    if (r == NULL) {
        r = xcalloc(1, sizeof(*r));
        r->key = xstrdup(key);
        map_put(&s->records, key, r);
    }
    return r;
}

void store_remove(struct store *s, struct record *r)
{
    map_remove(&s->records, r->key);
    record_free(r);
}

void store_drop_if_empty(struct store *s, struct record *r)
{
    if (!r->known && r->npods == 0 && r->nservices == 0 && r->config.uid == NULL && r->policy.uid == NULL)
        store_remove(s, r);
}

void store_fini(struct store *s)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&s->records, &i)) != NULL;)
        record_free(slot->value);
    map_fini(&s->records);
}
