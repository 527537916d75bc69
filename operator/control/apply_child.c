/* Objects that a job has under a fixed name: made; when one of that name exists, taken, adopted, or left alone.
 *
 *     POST -> AlreadyExists -> GET -> ours: patched to what it should be, if it does not follow by itself
 *                                  -> an orphan that we made: does our job stay? then our ownerRef and what it should
 * be
 *                                  -> anything else: left alone, and told
 *
 * Every patch and delete bears the uid and the resourceVersion that were looked at, so that it never meets another
 * object and never one that was given to somebody else meanwhile. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { AGAIN_MS = 1000, FORMER_TOLD_AFTER = 2 };

static const struct kube_resource *resource_of(const struct child *ch, const struct controller *c)
{
    return ch->resource != NULL ? ch->resource : build_pod_group_resource(&c->settings.build);
}

/* ---- whose ---- */

enum whose { OURS, ORPHAN, FORMER /* of an earlier life of this name, or on its way out: soon gone */, FOREIGN };

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

static enum whose whose(const struct job_spec *v, const struct child *ch, const json_t *meta)
{
    const char *owner = object_owner_uid(meta);
    if (str_eq(owner, v->uid))
        return OURS;
    if (is_former(v, meta))
        return FORMER;
    return owner == NULL && ch->adopts && object_has_our_labels(v->kind, meta, v->name) ? ORPHAN : FOREIGN;
}

/* ---- requests ---- */

static void send(struct task *t, struct record *r, enum kube_verb verb, const json_t *body, bool metadata_only,
                 void (*done)(struct task *t, struct record *r, const struct kube_answer *a))
{
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, resource_of(t->child, t->c), r->view.ns, t->name, NULL);
    task_send(
        t->c, r, &t->action,
        (struct kube_request){
            .verb = verb, .priority = KUBE_NORMAL, .path = path.data, .body = body, .metadata_only = metadata_only },
        done);
    task_last(t->c)->child = t->child;
    task_last(t->c)->completed = t->completed;
}

static void not_made(struct task *t, struct record *r)
{
    t->child->over(t, r, NULL);
    controller_wake(t->c, r);
}

static void refused(struct task *t, struct record *r, const struct kube_answer *a)
{
    apply_not_made(t, r, a);
    not_made(t, r);
}

/* It changed or went while we looked. */
static void requeue(struct task *t, struct record *r)
{
    apply_block(t->c, r, t->action.kind, AGAIN_MS);
    not_made(t, r);
}

static void made(struct task *t, struct record *r, const json_t *object, bool tell)
{
    apply_made(t, r, tell);
    t->child->over(t, r, object);
    controller_wake(t->c, r);
}

/* ---- one that is there and ours: what it should be ---- */

static void on_changed(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a))
        made(t, r, a->body, false);
    else if (a->status == 404 || a->status == 409)
        requeue(t, r);
    else
        refused(t, r, a);
}

static void change(struct task *t, struct record *r, const json_t *current)
{
    struct context x = { .c = t->c, .r = r };
    json_auto_t *object = t->child->build(&x, &t->action);
    json_decref(x.spec);
    if (object == NULL) {
        requeue(t, r);
        return;
    }
    json_auto_t *patch = build_merge_patch(object, current, &t->child->rules);
    t->completed = apply_completed(r);
    if (patch == NULL)
        made(t, r, current, false);
    else
        send(t, r, KUBE_MERGE_PATCH, patch, false, on_changed);
}

/* ---- one that nobody controls ---- */

static void on_adopted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r != NULL && kube_ok(a))
        log_info("%s %s: adopted %s %s", t->c->kind->resource.kind, r->key, resource_of(t->child, t->c)->kind, t->name);
    on_changed(t, r, a);
}

/* Its owner and what it should be in one patch: nobody ever sees one that is ours and says what another job wanted. */
static void on_orphan(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    struct context x = { .c = t->c, .r = r };
    json_auto_t *object = t->child->build(&x, &t->action);
    json_decref(x.spec);
    if (!kube_ok(a) || whose(&r->view, t->child, meta) != ORPHAN || object == NULL) {
        requeue(t, r);
        return;
    }
    json_auto_t *patch =
        build_adoption_patch(&r->view, json_string_value(json_object_get(meta, "uid")), object_version(meta));
    json_auto_t *change = build_merge_patch(object, a->body, &t->child->rules);
    build_strategic_patch(change);
    json_object_update_recursive(patch, change);
    send(t, r, KUBE_STRATEGIC_PATCH, patch, false, on_adopted);
}

static void adopt(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (apply_may_adopt(r, a))
        send(t, r, KUBE_GET, NULL, false, on_orphan);
    else
        requeue(t, r);
}

static void ask_job(struct task *t, struct record *r)
{
    apply_ask_job(t->c, r, &t->action, adopt);
    task_last(t->c)->child = t->child;
}

void child_adopt(struct context *x, const struct action *a, const struct child *ch)
{
    apply_ask_job(x->c, x->r, a, adopt);
    task_last(x->c)->child = ch;
}

/* ---- one that is there ---- */

static void leave_alone(struct task *t, struct record *r, bool former)
{
    if (former)
        log_info("%s %s: waiting for the old %s %s to be deleted", t->c->kind->resource.kind, r->key,
                 resource_of(t->child, t->c)->kind, t->name);
    if (!former || r->makes[apply_make_kind(t->action.kind)].failures > FORMER_TOLD_AFTER)
        apply_foreign(t, r, resource_of(t->child, t->c));
    requeue(t, r);
}

static void on_found(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    enum whose is = kube_ok(a) ? whose(&r->view, t->child, meta) : FOREIGN;
    if (a->status == 404)
        requeue(t, r);
    else if (!kube_ok(a))
        refused(t, r, a);
    else if (is == OURS && t->child->follows)
        change(t, r, a->body);
    else if (is == OURS)
        made(t, r, a->body, false);
    else if (is == ORPHAN)
        ask_job(t, r);
    else
        leave_alone(t, r, is == FORMER);
}

static void on_created(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a))
        made(t, r, a->body, true);
    else if (str_eq(a->reason, "AlreadyExists"))
        send(t, r, KUBE_GET, NULL, false, on_found);
    else
        refused(t, r, a);
}

void child_ensure(struct context *x, const struct action *a, const struct child *ch)
{
    json_auto_t *object = ch->build(x, a);
    const char *name = json_string_value(json_at(object, "metadata.name"));
    apply_send(x, a, KUBE_CREATE, resource_of(ch, x->c), name, object, on_created);
    task_last(x->c)->child = ch;
    task_last(x->c)->completed = apply_completed(x->r);
}

/* ---- deletes ---- */

static void on_deleted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    t->child->gone(t, r, a, kube_ok(a));
    controller_wake(t->c, r);
}

/* Only ours is deleted; nothing of ours is there when it is somebody else's. */
static void on_to_delete(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    bool ours = kube_ok(a) && str_eq(object_owner_uid(meta), r->view.uid);
    if (!ours || json_object_get(meta, "deletionTimestamp") != NULL) {
        t->child->gone(t, r, a, false);
        controller_wake(t->c, r);
        return;
    }
    struct context x = { .c = t->c, .r = r };
    struct action with_uid = t->action;
    with_uid.uid = json_string_value(json_object_get(meta, "uid"));
    with_uid.version = object_version(meta);
    apply_delete(&x, &with_uid, resource_of(t->child, t->c), on_deleted);
    task_last(t->c)->child = t->child;
}

void child_delete(struct context *x, const struct action *a, const char *name, const struct child *ch)
{
    apply_send(x, a, KUBE_GET, resource_of(ch, x->c), name, NULL, on_to_delete);
    task_last(x->c)->child = ch;
}
