/* Pods: created, deleted, adopted, labels restored. A pod is in the cache (an expectation) from the moment its create
 * is sent, so a late watch never causes a second one. */
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { FOREIGN_RETRY_MS = 2000, LABEL_AGAIN_MS = 1000 };

/* Updates the cached pod from the answer, if it is the same pod. The watch may have been faster and have reported the
 * pod's deletion; then it must not be added, because its deletion would never be reported again. */
static void take_pod(struct in_flight_request *req, struct cache_entry *entry, const json_t *object)
{
    struct pod_info *old = cache_entry_pod(entry, req->name);
    const char *its_uid = json_string_value(json_at(object, "metadata.uid"));
    if (its_uid == NULL) /* not a pod: the create is repeated */
        cache_entry_drop_expected_pod(entry, req->name, NULL);
    if (old == NULL || its_uid == NULL || (!old->creating && !str_eq(old->uid, its_uid)))
        return;
    if (old->creating != (req->action.kind ==
                          ACT_CREATE_POD)) /* the answer to a create has no status, so the watch's version is newer */
        return;
    AUTO(pod_info) *p = xcalloc(1, sizeof(*p));
    if (pod_info_parse(req->env->kind, object, p) < 0) { /* another owner's pod of this name, without our labels */
        const char *uid = object_owner_uid(json_object_get(object, "metadata"));
        pod_info_fini(p);
        *p = (struct pod_info){ .name = xstrdup(req->name),
                                .uid = xstrdup(its_uid),
                                .owner_uid = xstrdup(uid != NULL ? uid : "none"),
                                .role = req->action.role,
                                .index = req->action.index,
                                .exit_code = -1 };
    }
    cache_entry_put_pod(entry, TAKE(p));
}

static void on_pod_found(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    if (kube_ok(a) && str_eq(object_owner_uid(json_object_get(a->body, "metadata")), entry->spec.uid)) {
        take_pod(req, entry, a->body);
        apply_created(req, entry, false);
    } else { /* another owner's, perhaps an earlier job's of this name that is deleted soon: retried */
        cache_entry_drop_expected_pod(entry, req->name, NULL);
        if (kube_ok(a) && json_at(a->body, "metadata.deletionTimestamp") == NULL &&
            entry->create_backoff[CREATE_PODS].failures > 0)
            apply_foreign(req, entry, &RESOURCE_PODS);
        apply_delay(req->env, entry, ACT_CREATE_POD, kube_ok(a) ? FOREIGN_RETRY_MS : 0);
    }
    env_enqueue(req->env, entry);
}

/* Warnings of the API server about a TFJob's template: misspelt keys, and warnings of the namespace's policies. */
static void say_server_warnings(struct in_flight_request *req, struct cache_entry *entry, const char *warnings)
{
    AUTO_FINI(strlist) lines = { 0 };
    AUTO_FINI(buf) note = BUF_INIT;
    if (entry->spec.kind->own_processes || warnings[0] == '\0')
        return;
    strlist_split(&lines, warnings, '\n');
    buf_printf(&note, "pod %s: ", req->name);
    for (size_t i = 0; i < lines.n; i++)
        buf_printf(&note, "%s%s", i > 0 ? "; " : "", lines.items[i]);
    log_warning("%s %s: PodTemplateWarning: %s", req->env->kind->resource.kind, entry->key, note.data);
    env_event(req->env, entry, true, "PodTemplateWarning", job_spec_role_key(&entry->spec, req->action.role),
              note.data);
}

static void on_pod_created(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    if (kube_ok(a)) {
        take_pod(req, entry, a->body);
        say_server_warnings(req, entry, a->warnings);
        counter_add(req->env->metrics.pods_created, 1);
        apply_created(req, entry, true);
    } else if (str_eq(a->reason, "AlreadyExists")) {
        apply_get(req, entry, &RESOURCE_PODS, false, on_pod_found);
        return;
    } else {
        cache_entry_drop_expected_pod(entry, req->name, NULL);
        apply_refused(req, entry, a);
    }
    env_enqueue(req->env, entry);
}

/* Warnings of the builder, one line "REASON: text" each. */
static void say_warnings(struct apply_context *ctx, const struct buf *warn, enum role role)
{
    AUTO_FINI(strlist) lines = { 0 };
    strlist_split(&lines, warn->data, '\n');
    for (size_t i = 0; i < lines.n; i++) {
        char *colon = strstr(lines.items[i], ": ");
        if (colon == NULL)
            continue;
        auto_free char *reason = xstrndup(lines.items[i], (size_t)(colon - lines.items[i]));
        env_event(ctx->env, ctx->entry, true, reason, job_spec_role_key(&ctx->entry->spec, role), colon + 2);
    }
}

/* Each answer queues the job, whose next reconcile creates the next pods. */
void apply_create_pod(struct apply_context *ctx, const struct action *a)
{
    char name[128];
    AUTO_FINI(buf) warn = BUF_INIT;
    struct cache_entry *entry = ctx->entry;
    job_spec_pod_name(&entry->spec, a->role, a->index, name);
    if (ctx->hold_pods || (ctx->core_only && !plan_is_core(&entry->spec, a->role, a->index)) ||
        cache_entry_pod(entry, name) != NULL || apply_waits_for_counts(entry, a->role, a->index) ||
        !apply_may_send(ctx, a->kind))
        return;
    json_auto_t *pod = build_pod(&entry->spec, apply_spec(ctx), a->role, a->index, a->restarts, entry->claims,
                                 entry->claims_known ? entry->spec.nclaims : 0, &entry->status.identity,
                                 &ctx->env->settings->build, &warn);
    say_warnings(ctx, &warn, a->role);
    struct pod_info *expectation = xcalloc(1, sizeof(*expectation));
    *expectation = (struct pod_info){ .name = xstrdup(name),
                                      .owner_uid = xstrdup(entry->spec.uid),
                                      .role = a->role,
                                      .index = a->index,
                                      .creating = true,
                                      .exit_code = -1,
                                      .restarts = a->restarts };
    cache_entry_put_pod(entry, expectation);
    apply_send(ctx, a, KUBE_CREATE, &RESOURCE_PODS, name, pod, on_pod_created);
}

/* It was changed since it was observed, or another pod has its name. */
static void on_pod_read(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    struct pod_info *p = cache_entry_pod(entry, req->name);
    bool same = kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), req->object_uid);
    if (p != NULL && str_eq(p->uid, req->object_uid))
        p->deleting = p->patching = false;
    if (same)
        take_pod(req, entry, a->body);
    else if (a->status == 404 || kube_ok(a))
        cache_entry_remove_pod(entry, req->name, req->object_uid);
    else
        apply_failed(req, entry, "FailedGetPod", "reading", a);
    env_enqueue(req->env, entry);
}

static void on_pod_deleted(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    struct pod_info *p = cache_entry_pod(entry, req->name);
    if (kube_ok(a)) {
        entry->delete_backoff = (struct retry_backoff){ 0 };
        counter_add(req->env->metrics.pods_deleted, 1);
        if (str_eq(json_string_value(json_object_get(a->body, "kind")), "Pod") &&
            json_integer_value(json_at(a->body, "metadata.deletionGracePeriodSeconds")) > 0)
            take_pod(req, entry, a->body); /* it terminates within its grace; the watch reports its end */
        apply_record_event(req, entry, "SuccessfulDeletePod", "Deleted pod");
    } else if (a->status == 404) {
        cache_entry_remove_pod(entry, req->name, req->object_uid);
    } else if (a->status == 409) {
        apply_get(req, entry, &RESOURCE_PODS, false, on_pod_read);
        return;
    } else {
        if (p != NULL && str_eq(p->uid, req->object_uid))
            p->deleting = false;
        apply_failed(req, entry, "FailedDeletePod", "deleting", a);
    }
    env_enqueue(req->env, entry);
}

void apply_delete_pod(struct apply_context *ctx, const struct action *a)
{
    struct pod_info *p = cache_entry_pod(ctx->entry, a->name);
    bool counted = p != NULL && index_counts_get(&ctx->entry->status.roles[a->role].again, a->index) > p->restarts;
    if (p == NULL || p->creating || p->deleting || (counted && apply_waits_for_counts(ctx->entry, a->role, a->index)) ||
        !apply_may_send(ctx, a->kind))
        return;
    p->deleting = true;
    apply_delete(ctx, a, &RESOURCE_PODS, on_pod_deleted);
}

static void patched(struct in_flight_request *req, struct cache_entry *entry)
{
    struct pod_info *p = cache_entry_pod(entry, req->name);
    if (p != NULL && str_eq(p->uid, req->object_uid))
        p->patching = false;
}

static void on_adopted(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    patched(req, entry);
    if (kube_ok(a)) {
        take_pod(req, entry, a->body);
        apply_created(req, entry, false);
        log_info("%s %s: adopted pod %s", req->env->kind->resource.kind, entry->key, req->name);
    } else if (a->status == 404) {
        cache_entry_remove_pod(entry, req->name, req->object_uid);
    } else if (a->status == 409) {
        apply_get(req, entry, &RESOURCE_PODS, false, on_pod_read);
        return;
    } else {
        apply_failed(req, entry, "FailedAdoptPod", "adopting", a);
    }
    env_enqueue(req->env, entry);
}

static void adopt(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    struct pod_info *p = cache_entry_pod(entry, req->name);
    AUTO_FINI(buf) path = BUF_INIT;
    if (p == NULL || !str_eq(p->uid, req->object_uid))
        return;
    if (!apply_may_adopt(entry, a)) { /* the watch will report why */
        p->patching = false;
        apply_delay(req->env, entry, req->action.kind, 0);
        return;
    }
    json_auto_t *patch = build_adoption_patch(&entry->spec, req->object_uid, req->action.version);
    kube_path(&path, &RESOURCE_PODS, entry->spec.ns, req->name, NULL);
    in_flight_send(req->env, entry, &req->action,
                   (struct kube_request){
                       .verb = KUBE_STRATEGIC_PATCH, .priority = KUBE_NORMAL, .path = path.data, .body = patch },
                   on_adopted);
}

static void on_labelled(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    if (a->status == 409) {
        apply_get(req, entry, &RESOURCE_PODS, false, on_pod_read);
        return;
    }
    patched(req, entry);
    if (kube_ok(a))
        take_pod(req, entry, a->body);
    else if (a->status == 404)
        cache_entry_remove_pod(entry, req->name, req->object_uid);
    else
        apply_failed(req, entry, "FailedLabelPod", "restoring the labels of the pod", a);
    env_enqueue(req->env, entry);
}

void apply_label_pod(struct apply_context *ctx, const struct action *a)
{
    struct pod_info *p = cache_entry_pod(ctx->entry, a->name);
    AUTO_FINI(buf) path = BUF_INIT;
    if (p == NULL || p->patching)
        return;
    if (!ctx->may_label) {
        workqueue_add_at(ctx->env->queue, ctx->entry->key, ctx->entry->label_after_ms);
        return;
    }
    if (!apply_may_send(ctx, a->kind))
        return;
    p->patching = true;
    ctx->entry->label_after_ms = env_clock(ctx->env) + LABEL_AGAIN_MS;
    log_info("%s %s: labels of pod %s were changed; restoring them", ctx->env->kind->resource.kind, ctx->entry->key,
             a->name);
    json_auto_t *patch = build_label_patch(&ctx->entry->spec, a->role, a->index, a->uid, a->version);
    kube_path(&path, &RESOURCE_PODS, ctx->entry->spec.ns, a->name, NULL);
    in_flight_send(
        ctx->env, ctx->entry, a,
        (struct kube_request){ .verb = KUBE_MERGE_PATCH, .priority = KUBE_NORMAL, .path = path.data, .body = patch },
        on_labelled);
}

/* The entry may belong to another job by now; the pod is deleted in any case. */
static void on_pod_asked(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    struct cache_entry *its = cache_find(&req->env->cache, req->key);
    bool same = kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), req->object_uid);
    if (its == NULL)
        return;
    if (entry != NULL && same)
        take_pod(req, entry, a->body);
    else
        cache_entry_remove_pod(its, req->name, req->object_uid);
    env_enqueue(req->env, its);
    cache_remove_if_empty(&req->env->cache, its);
}

void apply_confirm_pod_gone(struct controller_env *env, struct cache_entry *entry, struct pod_info *p)
{
    const struct action a = {
        .kind = ACT_LABEL_POD, .role = p->role, .index = p->index, .name = p->name, .uid = p->uid
    };
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, &RESOURCE_PODS, entry->spec.ns, p->name, NULL);
    in_flight_send(env, entry, &a,
                   (struct kube_request){ .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = path.data }, on_pod_asked);
}

void apply_adopt_pod(struct apply_context *ctx, const struct action *a)
{
    struct pod_info *p = cache_entry_pod(ctx->entry, a->name);
    if (p == NULL || p->owner_uid != NULL || p->patching || !apply_may_send(ctx, a->kind))
        return;
    p->patching = true;
    apply_get_job(ctx->env, ctx->entry, a, adopt);
}
