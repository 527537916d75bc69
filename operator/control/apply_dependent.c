/* Dependents with a fixed name: created; if one of that name exists, updated, adopted, or left unchanged.
 *
 *     POST -> AlreadyExists -> GET -> ours: patched to the desired state, if it follows the spec
 *                                  -> an orphan that we created: adopted and updated if our job still exists
 *                                  -> anything else: left unchanged, and reported
 *
 * Every patch and delete has the observed uid and resourceVersion as preconditions, so it never changes another object,
 * or one that has another owner meanwhile. */
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { RETRY_MS = 1000, FORMER_REPORTED_AFTER = 2 };

static const struct kube_resource *resource_of(const struct dependent *ch, const struct controller_env *env)
{
    return ch->resource != NULL ? ch->resource : build_pod_group_resource(&env->settings->build);
}

/* ---- ownership ---- */

enum whose { OURS, ORPHAN, FORMER /* of an earlier job of this name, or terminating: deleted soon */, FOREIGN };

static bool is_former(const struct job_spec *v, const json_t *meta)
{
    const json_t *owner;
    size_t i;
    if (json_object_get(meta, "deletionTimestamp") != NULL)
        return true;
    json_array_foreach(
        json_object_get(meta, "ownerReferences"), i,
        owner) if (json_is_true(json_object_get(owner, "controller")) &&
                   str_eq(json_string_value(json_object_get(owner, "name")), v->name) &&
                   str_eq(json_string_value(json_object_get(owner, "kind")), v->kind->resource.kind)) return true;
    return false;
}

static enum whose whose(const struct job_spec *v, const struct dependent *ch, const json_t *meta)
{
    const char *owner = object_owner_uid(meta);
    if (str_eq(owner, v->uid))
        return OURS;
    if (is_former(v, meta))
        return FORMER;
    return owner == NULL && ch->adopts && object_has_our_labels(v->kind, meta, v->name) ? ORPHAN : FOREIGN;
}

/* ---- requests ---- */

static void send(struct in_flight_request *req, struct cache_entry *entry, enum kube_verb verb, const json_t *body,
                 bool metadata_only, in_flight_done *done)
{
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, resource_of(req->dependent, req->env), entry->spec.ns, req->name, NULL);
    in_flight_send(
        req->env, entry, &req->action,
        (struct kube_request){
            .verb = verb, .priority = KUBE_NORMAL, .path = path.data, .body = body, .metadata_only = metadata_only },
        done);
    in_flight_last(req->env)->dependent = req->dependent;
    in_flight_last(req->env)->completed = req->completed;
}

static void not_made(struct in_flight_request *req, struct cache_entry *entry)
{
    req->dependent->over(req, entry, NULL);
    env_enqueue(req->env, entry);
}

static void refused(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    apply_refused(req, entry, a);
    not_made(req, entry);
}

/* It changed or was deleted meanwhile. */
static void requeue(struct in_flight_request *req, struct cache_entry *entry)
{
    apply_delay(req->env, entry, req->action.kind, RETRY_MS);
    not_made(req, entry);
}

static void made(struct in_flight_request *req, struct cache_entry *entry, const json_t *object, bool tell)
{
    apply_created(req, entry, tell);
    req->dependent->over(req, entry, object);
    env_enqueue(req->env, entry);
}

/* ---- ours: updated ---- */

static void on_changed(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    if (kube_ok(a))
        made(req, entry, a->body, false);
    else if (a->status == 404 || a->status == 409)
        requeue(req, entry);
    else
        refused(req, entry, a);
}

static void change(struct in_flight_request *req, struct cache_entry *entry, const json_t *current)
{
    struct apply_context ctx = { .env = req->env, .entry = entry };
    json_auto_t *object = req->dependent->build(&ctx, &req->action);
    json_decref(ctx.spec);
    if (object == NULL) {
        requeue(req, entry);
        return;
    }
    json_auto_t *patch = build_merge_patch(object, current, &req->dependent->rules);
    req->completed = apply_completed(entry);
    if (patch == NULL)
        made(req, entry, current, false);
    else
        send(req, entry, KUBE_MERGE_PATCH, patch, false, on_changed);
}

/* ---- orphans ---- */

static void on_adopted(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry != NULL && kube_ok(a))
        log_info("%s %s: adopted %s %s", req->env->kind->resource.kind, entry->key,
                 resource_of(req->dependent, req->env)->kind, req->name);
    on_changed(req, entry, a);
}

/* Owner and content in one patch, so that no client ever sees an object of ours with the content of another job. */
static void on_orphan(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    struct apply_context ctx = { .env = req->env, .entry = entry };
    json_auto_t *object = req->dependent->build(&ctx, &req->action);
    json_decref(ctx.spec);
    if (!kube_ok(a) || whose(&entry->spec, req->dependent, meta) != ORPHAN || object == NULL) {
        requeue(req, entry);
        return;
    }
    json_auto_t *patch =
        build_adoption_patch(&entry->spec, json_string_value(json_object_get(meta, "uid")), object_version(meta));
    json_auto_t *change = build_merge_patch(object, a->body, &req->dependent->rules);
    build_strategic_patch(change);
    json_object_update_recursive(patch, change);
    send(req, entry, KUBE_STRATEGIC_PATCH, patch, false, on_adopted);
}

static void adopt(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    if (apply_may_adopt(entry, a))
        send(req, entry, KUBE_GET, NULL, false, on_orphan);
    else
        requeue(req, entry);
}

static void ask_job(struct in_flight_request *req, struct cache_entry *entry)
{
    apply_get_job(req->env, entry, &req->action, adopt);
    in_flight_last(req->env)->dependent = req->dependent;
}

void dependent_adopt(struct apply_context *ctx, const struct action *a, const struct dependent *ch)
{
    apply_get_job(ctx->env, ctx->entry, a, adopt);
    in_flight_last(ctx->env)->dependent = ch;
}

/* ---- existing objects ---- */

static void leave_alone(struct in_flight_request *req, struct cache_entry *entry, bool former)
{
    if (former)
        log_info("%s %s: waiting for the old %s %s to be deleted", req->env->kind->resource.kind, entry->key,
                 resource_of(req->dependent, req->env)->kind, req->name);
    if (!former || entry->create_backoff[create_kind_of(req->action.kind)].failures > FORMER_REPORTED_AFTER)
        apply_foreign(req, entry, resource_of(req->dependent, req->env));
    requeue(req, entry);
}

static void on_found(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    enum whose is = kube_ok(a) ? whose(&entry->spec, req->dependent, meta) : FOREIGN;
    if (a->status == 404)
        requeue(req, entry);
    else if (!kube_ok(a))
        refused(req, entry, a);
    else if (is == OURS && req->dependent->follows)
        change(req, entry, a->body);
    else if (is == OURS)
        made(req, entry, a->body, false);
    else if (is == ORPHAN)
        ask_job(req, entry);
    else
        leave_alone(req, entry, is == FORMER);
}

static void on_created(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    if (kube_ok(a))
        made(req, entry, a->body, true);
    else if (str_eq(a->reason, "AlreadyExists"))
        send(req, entry, KUBE_GET, NULL, false, on_found);
    else
        refused(req, entry, a);
}

void dependent_ensure(struct apply_context *ctx, const struct action *a, const struct dependent *ch)
{
    json_auto_t *object = ch->build(ctx, a);
    const char *name = json_string_value(json_at(object, "metadata.name"));
    apply_send(ctx, a, KUBE_CREATE, resource_of(ch, ctx->env), name, object, on_created);
    in_flight_last(ctx->env)->dependent = ch;
    in_flight_last(ctx->env)->completed = apply_completed(ctx->entry);
}

/* ---- deletes ---- */

static void on_deleted(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    req->dependent->gone(req, entry, a, kube_ok(a));
    env_enqueue(req->env, entry);
}

/* Only our own object is deleted; one of another owner counts as absent. */
static void on_to_delete(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    bool ours = kube_ok(a) && str_eq(object_owner_uid(meta), entry->spec.uid);
    if (!ours || json_object_get(meta, "deletionTimestamp") != NULL) {
        req->dependent->gone(req, entry, a, false);
        env_enqueue(req->env, entry);
        return;
    }
    struct apply_context ctx = { .env = req->env, .entry = entry };
    struct action with_uid = req->action;
    with_uid.uid = json_string_value(json_object_get(meta, "uid"));
    with_uid.version = object_version(meta);
    apply_delete(&ctx, &with_uid, resource_of(req->dependent, req->env), on_deleted);
    in_flight_last(req->env)->dependent = req->dependent;
}

void dependent_delete(struct apply_context *ctx, const struct action *a, const char *name, const struct dependent *ch)
{
    apply_send(ctx, a, KUBE_GET, resource_of(ch, ctx->env), name, NULL, on_to_delete);
    in_flight_last(ctx->env)->dependent = ch;
}
