/* A plan's actions become requests, and their answers facts. */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

const struct kube_resource PODS = { "", "v1", "pods", "Pod" };
const struct kube_resource SERVICES = { "", "v1", "services", "Service" };
const struct kube_resource CONFIG_MAPS = { "", "v1", "configmaps", "ConfigMap" };
const struct kube_resource CLAIMS = { "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim" };
const struct kube_resource NETWORK_POLICIES = { "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy" };
const struct kube_resource DEPLOYMENTS = { "apps", "v1", "deployments", "Deployment" };

enum { WORDS_MAX = 1000, RETRY_FIRST_MS = 1000, RETRY_MOST_MS = 60000, RETRY_DOUBLINGS = 10 };

const json_t *apply_spec(struct context *x)
{
    if (x->spec == NULL)
        x->spec = job_view_spec(&x->r->view);
    return x->spec;
}

/* What is made, and the reasons of its events; made NULL: that is not told. */
static const struct {
    const char *noun, *made, *failed;
    bool of_replicas; /* the job itself says when it is refused */
} MAKES[] = {
    [ACT_ENSURE_CONFIG] = { "ConfigMap", NULL, "FailedCreateConfigMap", true },
    [ACT_ENSURE_POLICY] = { "NetworkPolicy", NULL, "FailedCreateNetworkPolicy", true },
    [ACT_ENSURE_GROUP] = { "PodGroup", NULL, "FailedCreatePodGroup", true },
    [ACT_ENSURE_BOARD] = { "TensorBoard", NULL, "FailedCreateTensorBoard", false },
    [ACT_CREATE_SERVICE] = { "service", "SuccessfulCreateService", "FailedCreateService", true },
    [ACT_CREATE_POD] = { "pod", "SuccessfulCreatePod", "FailedCreatePod", true },
};

static struct pause *pause_of(struct record *r, enum action_kind k)
{
    return k < COUNT_OF(MAKES) && MAKES[k].noun != NULL ? &r->makes : &r->deletes;
}

void apply_block(struct controller *c, struct record *r, enum action_kind k, int64_t at_least_ms)
{
    struct pause *p = pause_of(r, k);
    int64_t now = clock_ms();
    if (now >= p->until_ms) /* those of one round count once */
        p->failures++;
    int64_t pause = MIN((int64_t)RETRY_FIRST_MS << MIN(p->failures - 1, RETRY_DOUBLINGS), (int64_t)RETRY_MOST_MS);
    p->until_ms = MAX(p->until_ms, now + MAX(pause, at_least_ms));
    queue_add_at(c->queue, r->key, p->until_ms);
}

/* What is the job's own is of no role. */
static const char *about(const struct task *t, const struct record *r)
{
    return t->action.role < ROLE_COUNT ? job_view_role_key(&r->view, t->action.role) : "";
}

static void say_failed(struct task *t, const struct record *r, const char *reason, const char *verb, const char *words)
{
    auto_free char *note = xasprintf("Error %s: %s", verb, words);
    log_warning("%s %s: %s: %s", t->c->kind->resource.kind, r->key, reason, note);
    controller_event(t->c, r, true, reason, about(t, r), note);
}

void apply_failed(struct task *t, struct record *r, const char *reason, const char *verb, const struct kube_answer *a)
{
    say_failed(t, r, reason, verb, a->message);
    counter_add(t->c->meters.errors, 1);
    apply_block(t->c, r, t->action.kind, 0);
}

void apply_done(struct task *t, struct record *r, const char *reason, const char *what)
{
    auto_free char *note = xasprintf("%s: %s", what, t->name);
    controller_event(t->c, r, false, reason, about(t, r), note);
}

/* ---- creates ---- */

static bool is_about(const struct refusal *f, const struct task *t)
{
    return f->name != NULL && f->kind == t->action.kind && str_eq(f->name, t->name);
}

/* Of several that are refused one speaks for all, the same one at each try, so that what is told does not change. */
static void remember(struct record *r, const struct task *t, const char *words)
{
    struct refusal *f = &r->refused;
    const struct action *a = &t->action;
    bool wanted = f->name != NULL && (f->index < 0 || f->index < r->view.roles[f->role].replicas);
    if (!MAKES[a->kind].of_replicas || (wanted && !is_about(f, t)))
        return;
    refusal_fini(f);
    *f = (struct refusal){ .kind = a->kind, .role = a->role, .index = a->role < ROLE_COUNT ? a->index : -1, .name = xstrdup(t->name) };
    f->what = xasprintf("%s %s", MAKES[a->kind].noun, t->name);
    f->words = facts_cut(words, WORDS_MAX, false);
    if (f->words == NULL)
        f->words = xstrdup("no reason was given");
}

void apply_made(struct task *t, struct record *r, bool tell)
{
    if (is_about(&r->refused, t))
        refusal_fini(&r->refused);
    if (!tell || MAKES[t->action.kind].made == NULL)
        return;
    auto_free char *what = xasprintf("Created %s", MAKES[t->action.kind].noun);
    apply_done(t, r, MAKES[t->action.kind].made, what);
}

void apply_not_made(struct task *t, struct record *r, const struct kube_answer *a)
{
    remember(r, t, a->message);
    apply_failed(t, r, MAKES[t->action.kind].failed, "creating", a);
}

void apply_foreign(struct task *t, struct record *r)
{
    auto_free char *words = xasprintf("%s \"%s\" already exists and belongs to somebody else", MAKES[t->action.kind].noun, t->name);
    remember(r, t, words);
    say_failed(t, r, MAKES[t->action.kind].failed, "creating", words);
}

void apply_send(struct context *x, const struct action *a, enum kube_verb verb, const struct kube_resource *what, const char *name,
                const json_t *body, void (*done)(struct task *t, struct record *r, const struct kube_answer *an))
{
    AUTO_FINI(buf) path = BUF_INIT;
    struct action with_name = *a;
    with_name.name = name;
    with_name.uid = NULL;
    kube_path(&path, what, x->r->view.ns, verb == KUBE_CREATE ? NULL : name, NULL);
    if (verb == KUBE_CREATE && x->c->kind->own_processes) /* a misspelt key of a template is named, not ignored */
        kube_query(&path, "fieldValidation", "Strict");
    task_send(x->c, x->r, &with_name, (struct kube_request){ .verb = verb, .urgency = KUBE_NORMAL, .path = path.data, .body = body,
                                                             .metadata_only = verb == KUBE_CREATE }, done);
}

void apply_look(struct task *t, struct record *r, const struct kube_resource *what, bool metadata_only,
                void (*done)(struct task *t, struct record *r, const struct kube_answer *an))
{
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, what, r->view.ns, t->name, NULL);
    task_send(t->c, r, &t->action, (struct kube_request){ .verb = KUBE_GET, .urgency = KUBE_NORMAL, .path = path.data,
                                                          .metadata_only = metadata_only }, done);
}

/* ---- deletes ---- */

void apply_delete(struct context *x, const struct action *a, const struct kube_resource *what,
                  void (*done)(struct task *t, struct record *r, const struct kube_answer *an))
{
    AUTO_FINI(buf) path = BUF_INIT;
    json_auto_t *options = kube_delete_options(a->uid, a->grace_s);
    kube_path(&path, what, x->r->view.ns, a->name, NULL);
    task_send(x->c, x->r, a, (struct kube_request){ .verb = KUBE_DELETE, .urgency = KUBE_NORMAL, .path = path.data, .body = options }, done);
}

/* ---- all of a plan ---- */

static void (*const APPLY[])(struct context *x, const struct action *a) = {
    [ACT_LOOK_UP_CLAIMS] = apply_claims,     [ACT_ENSURE_CONFIG] = apply_config,
    [ACT_ENSURE_POLICY] = apply_policy,      [ACT_ENSURE_GROUP] = apply_group,
    [ACT_DELETE_GROUP] = apply_delete_group, [ACT_ENSURE_BOARD] = apply_board,
    [ACT_DELETE_BOARD] = apply_delete_board, [ACT_CREATE_SERVICE] = apply_create_service,
    [ACT_CREATE_POD] = apply_create_pod,     [ACT_DELETE_SERVICE] = apply_delete_service,
    [ACT_DELETE_POD] = apply_delete_pod,     [ACT_ADOPT_POD] = apply_adopt_pod,
    [ACT_DELETE_JOB] = apply_delete_job,
};

static bool held(struct record *r, enum action_kind k)
{
    return k != ACT_LOOK_UP_CLAIMS && clock_ms() < pause_of(r, k)->until_ms;
}

void apply_plan(struct controller *c, struct record *r, const struct plan *p)
{
    struct context x = { .c = c, .r = r };
    /* Pods mount the job file and must not start outside their policy: these come first, and alone. */
    for (size_t i = 0; i < p->nactions; i++)
        x.hold_pods |= p->actions[i].kind == ACT_ENSURE_CONFIG || p->actions[i].kind == ACT_ENSURE_POLICY;
    for (size_t i = 0; i < r->npods; i++)
        x.making += r->pods[i]->creating;
    for (size_t i = 0; i < p->nactions; i++)
        if (!held(r, p->actions[i].kind))
            APPLY[p->actions[i].kind](&x, &p->actions[i]);
    apply_look_at_group(&x);
    json_decref(x.spec);
}
