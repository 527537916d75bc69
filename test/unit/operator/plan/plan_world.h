/* plan_world - a job with its pods and services in a test's memory. Plans are made and their actions carried out at
 * once, as a controller and a cluster would. Times are milliseconds from ZERO. */
#ifndef TRAINYARD_OPERATOR_PLAN_PLAN_WORLD_H
#define TRAINYARD_OPERATOR_PLAN_PLAN_WORLD_H

#include "check_main.h"

#include <stdio.h>
#include <string.h>

#include "api/time.h"
#include "base/file.h"
#include "codec/yaml.h"
#include "plan/plan.h"

#define ZERO INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
enum { WORLD_MAX = 64 };

struct world {
    struct job_spec spec;
    struct job_status status;
    struct pod_info pods[WORLD_MAX];
    struct service_info services[WORLD_MAX];
    size_t npods, nservices;
    struct claim_info claims[CLAIMS_MAX];
    struct observed seen;
    struct refusal refused;
    struct plan_settings settings;
    int64_t now;
    int uids;
};

static inline json_t *world_yaml(const char *text, const char *name)
{
    struct err e = { .code = ERR_NONE };
    AUTO(source) *src = NULL;
    json_t *v = NULL;
    ck_ok_e(yaml_parse(text, strlen(text), name, &v, &src, &e));
    return v;
}

static inline const struct job_kind *world_kind(const json_t *job)
{
    return str_eq(json_string_value(json_object_get(job, "kind")), "TFJob") ? &KIND_TFJOB : &KIND_TRAINJOB;
}

static inline void world_job(struct world *w, const json_t *job)
{
    job_spec_fini(&w->spec);
    job_spec_parse(world_kind(job), job, CLEAN_NONE, &w->spec);
}

static inline void world_init(struct world *w, const json_t *job)
{
    *w = (struct world){ .now = ZERO, .spec = { .kind = world_kind(job) } };
    world_job(w, job);
}

static inline void world_fini(struct world *w)
{
    for (size_t i = 0; i < w->npods; i++)
        pod_info_fini(&w->pods[i]);
    for (size_t i = 0; i < w->nservices; i++)
        service_info_fini(&w->services[i]);
    refusal_fini(&w->refused);
    job_status_fini(&w->status);
    job_spec_fini(&w->spec);
}
DEFINE_AUTO_FINI(world, world_fini);

static inline struct pod_info *world_find(struct world *w, const char *name)
{
    for (size_t i = 0; i < w->npods; i++)
        if (str_eq(w->pods[i].name, name))
            return &w->pods[i];
    return NULL;
}

/* The same; it must be there. */
static inline struct pod_info *world_pod(struct world *w, const char *name)
{
    size_t i = 0;
    while (i < w->npods && !str_eq(w->pods[i].name, name))
        i++;
    ck_assert_msg(i < w->npods, "%s is not there", name);
    return &w->pods[i];
}

/* A pod of that name, running and ours. */
static inline struct pod_info *world_add(struct world *w, const char *name)
{
    const char *dash = strrchr(name, '-'), *before = dash;
    ck_assert_msg(dash != NULL && w->npods < WORLD_MAX, "%s", name);
    while (before > name && before[-1] != '-')
        before--;
    auto_free char *role = xstrndup(before, (size_t)(dash - before));
    struct pod_info *p = &w->pods[w->npods++];
    *p = (struct pod_info){ .name = xstrdup(name),
                            .uid = xasprintf("pod-%d", ++w->uids),
                            .owner_uid = xstrdup(w->spec.uid),
                            .index = atoi(dash + 1),
                            .phase = POD_RUNNING,
                            .ready = true,
                            .exit_code = -1,
                            .node = xstrdup("node-1"),
                            .ip = xstrdup("10.0.0.1") };
    ck_assert_int_eq(role_parse(role, &p->role, NULL), 0);
    return p;
}

static inline void world_remove(struct world *w, struct pod_info *p)
{
    pod_info_fini(p);
    *p = w->pods[--w->npods];
}

static inline struct service_info *world_add_service(struct world *w, const char *name, enum role r, int index)
{
    ck_assert_uint_lt(w->nservices, WORLD_MAX);
    struct service_info *s = &w->services[w->nservices++];
    *s = (struct service_info){ .name = xstrdup(name),
                                .uid = xasprintf("service-%d", ++w->uids),
                                .owner_uid = xstrdup(w->spec.uid),
                                .role = r,
                                .index = index };
    return s;
}

static inline void world_plan(struct world *w, const struct job_status *status, struct job_plan *ret)
{
    const struct pod_info *pods[WORLD_MAX];
    const struct service_info *services[WORLD_MAX];
    struct observed o = w->seen;

    for (size_t i = 0; i < w->npods; i++)
        pods[i] = &w->pods[i];
    for (size_t i = 0; i < w->nservices; i++)
        services[i] = &w->services[i];
    o.pods = pods;
    o.npods = w->npods;
    o.services = services;
    o.nservices = w->nservices;
    o.claims = w->claims;
    o.refused = w->refused.name != NULL ? &w->refused : NULL;
    plan_keep_replicas(&w->spec, status, &o);
    plan_job(&w->spec, status, &o, &w->settings, w->now, ret);
    ck_assert_msg(ret->next_ms == 0 || ret->next_ms > w->now, "the next look is at %lld, now is %lld",
                  (long long)ret->next_ms, (long long)w->now);
}

static inline void world_keep_status(struct world *w, const struct job_status *is)
{
    struct job_status copy;
    job_status_copy(is, &copy);
    job_status_fini(&w->status);
    w->status = copy;
}

static inline void world_begin(struct world *w, const struct action *a)
{
    char name[128];
    struct pod_info *p = a->name != NULL ? world_find(w, a->name) : NULL;

    if (a->kind == ACT_CREATE_POD) {
        job_spec_pod_name(&w->spec, a->role, a->index, name);
        ck_assert_msg(world_find(w, name) == NULL, "%s is made though it is there", name);
        p = world_add(w, name);
        p->creating = true;
        p->ready = false;
        p->phase = POD_PENDING;
        p->restarts = a->restarts;
    } else if (a->kind == ACT_DELETE_POD) {
        ck_assert_msg(p != NULL && !p->deleting && str_eq(p->uid, a->uid), "%s is deleted, but it is not there",
                      a->name);
        p->deleting = true;
    } else if (a->kind == ACT_ADOPT_POD || a->kind == ACT_LABEL_POD) {
        p->patching = true;
    } else if (a->kind == ACT_ADOPT_SERVICE) {
        for (size_t i = 0; i < w->nservices; i++)
            w->services[i].patching |= str_eq(w->services[i].uid, a->uid);
    } else if (a->kind == ACT_CREATE_SERVICE) {
        bool job = a->index < 0;
        world_add_service(w, job ? w->spec.name : job_spec_pod_name(&w->spec, a->role, a->index, name), a->role,
                          a->index)
            ->creating = true;
    } else if (a->kind == ACT_DELETE_SERVICE) {
        for (size_t i = 0; i < w->nservices; i++)
            if (str_eq(w->services[i].name, a->name))
                w->services[i].deleting = true;
    }
}

/* The requests are in flight. */
static inline void world_act(struct world *w, const struct job_plan *p)
{
    for (size_t i = 0; i < p->nactions; i++) {
        enum action_kind kind = p->actions[i].kind;
        world_begin(w, &p->actions[i]);
        w->seen.config_ensured |= kind == ACT_ENSURE_CONFIG;
        w->seen.policy_ensured |= kind == ACT_ENSURE_POLICY;
        w->seen.tensorboard_ensured =
            (w->seen.tensorboard_ensured || kind == ACT_ENSURE_TENSORBOARD) && kind != ACT_DELETE_TENSORBOARD;
        w->seen.tensorboard_found =
            (w->seen.tensorboard_found || kind == ACT_ENSURE_TENSORBOARD) && kind != ACT_DELETE_TENSORBOARD;
        if (kind == ACT_ENSURE_GROUP)
            w->seen.group = GROUP_PENDING;
        if (kind == ACT_DELETE_GROUP)
            w->seen.group = GROUP_ABSENT;
    }
}

/* The cluster has done what was requested: pods to delete are gone, pods to create wait for a node. */
static inline void world_settle(struct world *w)
{
    for (size_t i = w->npods; i-- > 0;) {
        w->pods[i].creating = false;
        if (w->pods[i].patching && w->pods[i].owner_uid == NULL)
            w->pods[i].owner_uid = xstrdup(w->spec.uid);
        w->pods[i].mislabelled &= !w->pods[i].patching;
        w->pods[i].patching = false;
        if (w->pods[i].deleting)
            world_remove(w, &w->pods[i]);
    }
    for (size_t i = w->nservices; i-- > 0;) {
        w->services[i].creating = false;
        if (w->services[i].patching && w->services[i].owner_uid == NULL)
            w->services[i].owner_uid = xstrdup(w->spec.uid);
        w->services[i].patching = false;
        if (!w->services[i].deleting)
            continue;
        service_info_fini(&w->services[i]);
        w->services[i] = w->services[--w->nservices];
    }
}

static inline bool world_still_due(const struct job_plan *p)
{
    for (size_t i = 0; i < p->nactions; i++)
        if (p->actions[i].kind != ACT_DELETE_JOB && p->actions[i].kind != ACT_GET_CLAIMS)
            return true;
    return false;
}

/* Plans again, with the status as another operator would read it: nothing changes. */
static inline void world_look_again(struct world *w, const char *what)
{
    struct job_status none = { .nconds = 0 };
    AUTO_FINI(job_status) read = { .nconds = 0 };
    AUTO_FINI(job_plan) again = { .nactions = 0 };

    json_auto_t *written = job_status_patch(w->spec.kind, w->spec.uid, 0, &none, &w->status);
    job_status_parse(json_object_get(written, "status"), &read);
    world_plan(w, &read, &again);
    json_auto_t *patch = job_status_patch(w->spec.kind, w->spec.uid, 0, &read, &again.status);
    if (patch != NULL) {
        AUTO_FINI(buf) text = BUF_INIT;
        json_emit(patch, &text);
        ck_abort_msg("%s: a second look changes the status: %s", what, text.data);
    }
    ck_assert_msg(again.nevents == 0, "%s: a second look says %s: %s", what, again.events[0].reason,
                  again.events[0].note);
    ck_assert_msg(!world_still_due(&again), "%s: a second look acts again", what);
}

#endif
