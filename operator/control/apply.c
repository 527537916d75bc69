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

enum { WORDS_MAX = 1000, WRITES_FAILED = 3 };

const json_t *apply_spec(struct context *x)
{
    if (x->spec == NULL)
        x->spec = job_spec_json(&x->r->view);
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
    [ACT_ENSURE_TENSORBOARD] = { "TensorBoard", NULL, "FailedCreateTensorBoard", false },
    [ACT_CREATE_SERVICE] = { "service", "SuccessfulCreateService", "FailedCreateService", true },
    [ACT_CREATE_POD] = { "pod", "SuccessfulCreatePod", "FailedCreatePod", true },
    [ACT_ADOPT_POD] = { "pod", NULL, "FailedAdoptPod", true },
    [ACT_ADOPT_SERVICE] = { "service", NULL, "FailedAdoptService", true },
};

/* NULL: it is not a create. */
static struct pace *pace_of(struct record *r, enum action_kind k)
{
    if (k >= COUNT_OF(MAKES) || MAKES[k].noun == NULL)
        return NULL;
    return &r->makes[apply_make_kind(k)];
}

enum make_kind apply_make_kind(enum action_kind k)
{
    return k == ACT_CREATE_POD ? MAKE_PODS : k == ACT_CREATE_SERVICE ? MAKE_SERVICES : MAKE_OTHERS;
}

bool apply_is_make(enum action_kind k)
{
    return k < COUNT_OF(MAKES) && MAKES[k].noun != NULL;
}

static void pause_deletes(struct pause *p, int64_t now_ms, int64_t at_least_ms)
{
    if (now_ms >= p->until_ms) /* those of one round count once */
        p->failures++;
    p->until_ms = MAX(p->until_ms, now_ms + MAX(pace_pause_ms(p->failures), at_least_ms));
}

void apply_block(struct controller *c, struct record *r, enum action_kind k, int64_t at_least_ms)
{
    struct pace *p = pace_of(r, k);
    if (p != NULL)
        pace_pause(p, clock_ms(), at_least_ms);
    else
        pause_deletes(&r->deletes, clock_ms(), at_least_ms);
    workqueue_add_at(c->queue, r->key, p != NULL ? p->until_ms : r->deletes.until_ms);
}

bool apply_waits_for_counts(struct record *r, enum role role, int index)
{
    int has = r->acked != NULL ? index_counts_get(&r->acked->roles[role].again, index) : 0;
    int is = index_counts_get(&r->status.roles[role].again, index);
    bool waits = is > 0 && r->tells.failures < WRITES_FAILED && (r->writing_counts || (r->acked != NULL && has != is));
    r->held |= waits;
    return waits;
}

/* What is the job's own is of no role. */
static const char *about(const struct task *t, const struct record *r)
{
    return t->action.role < ROLE_COUNT ? job_spec_role_key(&r->view, t->action.role) : "";
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
    counter_add(t->c->metrics.errors, 1);
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

static struct refusal *refusal_of(struct record *r, const struct task *t)
{
    return MAKES[t->action.kind].of_replicas ? &r->refused : &r->tensorboard_refused;
}

/* Of several that are refused one speaks for all, the same one at each try, so that what is told does not change. */
static void remember(struct record *r, const struct task *t, const char *words)
{
    struct refusal *f = refusal_of(r, t);
    const struct action *a = &t->action;
    bool wanted = f->name != NULL && (f->index < 0 || f->index < r->view.roles[f->role].replicas);
    if (wanted && !is_about(f, t))
        return;
    refusal_fini(f);
    *f = (struct refusal){
        .kind = a->kind, .role = a->role, .index = a->role < ROLE_COUNT ? a->index : -1, .name = xstrdup(t->name)
    };
    f->what = xasprintf("%s %s", MAKES[a->kind].noun, t->name);
    f->words = text_truncate(words, WORDS_MAX, false);
    if (f->words == NULL)
        f->words = xstrdup("no reason was given");
}

void apply_made(struct task *t, struct record *r, bool tell)
{
    struct pace *p = pace_of(r, t->action.kind);
    if (p != NULL)
        pace_accept(p, t->sent_ms);
    if (is_about(refusal_of(r, t), t))
        refusal_fini(refusal_of(r, t));
    if (!tell || MAKES[t->action.kind].made == NULL)
        return;
    auto_free char *what = xasprintf("Created %s", MAKES[t->action.kind].noun);
    apply_done(t, r, MAKES[t->action.kind].made, what);
}

/* A job that lacks a thousand pods is not told of each. */
void apply_not_made(struct task *t, struct record *r, const struct kube_answer *a)
{
    enum action_kind k = t->action.kind;
    struct pace *p = pace_of(r, k);
    remember(r, t, a->message);
    counter_add(t->c->metrics.errors, 1);
    r->refused_last[apply_make_kind(k)] =
        (struct cursor){ .set = true, .role = t->action.role, .index = t->action.index };
    if (pace_refuse(p, t->sent_ms, clock_ms()))
        say_failed(t, r, MAKES[k].failed, "creating", a->message);
    workqueue_add_at(t->c->queue, r->key, p->until_ms);
}

void apply_foreign(struct task *t, struct record *r, const struct kube_resource *what)
{
    auto_free char *words = xasprintf("%s \"%s\" already exists and belongs to somebody else: it is left alone. Rename "
                                      "the job, or, if nobody needs it, kubectl delete %s %s -n %s",
                                      what->kind, t->name, what->plural, t->name, r->view.ns);
    remember(r, t, words);
    say_failed(t, r, MAKES[t->action.kind].failed, "creating", words);
}

void apply_send(struct context *x, const struct action *a, enum kube_verb verb, const struct kube_resource *what,
                const char *name, const json_t *body,
                void (*done)(struct task *t, struct record *r, const struct kube_answer *an))
{
    AUTO_FINI(buf) path = BUF_INIT;
    struct action with_name = *a;
    with_name.name = name;
    with_name.uid = NULL;
    with_name.version = 0;
    kube_path(&path, what, x->r->view.ns, verb == KUBE_CREATE ? NULL : name, NULL);
    if (verb ==
        KUBE_CREATE) /* a misspelt key of a template is named, not ignored; a TFJob's pod is made nevertheless */
        kube_query(&path, "fieldValidation", x->c->kind->own_processes ? "Strict" : "Warn");
    task_send(x->c, x->r, &with_name,
              (struct kube_request){ .verb = verb,
                                     .priority = KUBE_NORMAL,
                                     .path = path.data,
                                     .body = body,
                                     .metadata_only = verb == KUBE_CREATE },
              done);
}

void apply_get(struct task *t, struct record *r, const struct kube_resource *what, bool metadata_only,
               void (*done)(struct task *t, struct record *r, const struct kube_answer *an))
{
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, what, r->view.ns, t->name, NULL);
    task_send(t->c, r, &t->action,
              (struct kube_request){
                  .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = path.data, .metadata_only = metadata_only },
              done);
}

/* ---- orphans ---- */

void apply_ask_job(struct controller *c, struct record *r, const struct action *a,
                   void (*done)(struct task *t, struct record *r, const struct kube_answer *an))
{
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, &c->kind->resource, r->view.ns, r->view.name, NULL);
    task_send(
        c, r, a,
        (struct kube_request){ .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = path.data, .metadata_only = true },
        done);
}

bool apply_may_adopt(const struct record *r, const struct kube_answer *a)
{
    const json_t *meta = json_object_get(a->body, "metadata");
    return kube_ok(a) && str_eq(json_string_value(json_object_get(meta, "uid")), r->view.uid) &&
           json_object_get(meta, "deletionTimestamp") == NULL;
}

/* ---- deletes ---- */

void apply_delete(struct context *x, const struct action *a, const struct kube_resource *what,
                  void (*done)(struct task *t, struct record *r, const struct kube_answer *an))
{
    AUTO_FINI(buf) path = BUF_INIT;
    json_auto_t *options = kube_delete_options(a->uid, a->version, a->grace_s);
    kube_path(&path, what, x->r->view.ns, a->name, NULL);
    task_send(x->c, x->r, a,
              (struct kube_request){ .verb = KUBE_DELETE, .priority = KUBE_NORMAL, .path = path.data, .body = options },
              done);
}

/* ---- all of a plan ---- */

static void (*const APPLY[])(struct context *x, const struct action *a) = {
    [ACT_GET_CLAIMS] = apply_claims,
    [ACT_ENSURE_CONFIG] = apply_config,
    [ACT_ENSURE_POLICY] = apply_policy,
    [ACT_ENSURE_GROUP] = apply_group,
    [ACT_DELETE_GROUP] = apply_delete_group,
    [ACT_ENSURE_TENSORBOARD] = apply_board,
    [ACT_DELETE_TENSORBOARD] = apply_delete_board,
    [ACT_CREATE_SERVICE] = apply_create_service,
    [ACT_CREATE_POD] = apply_create_pod,
    [ACT_DELETE_SERVICE] = apply_delete_service,
    [ACT_DELETE_POD] = apply_delete_pod,
    [ACT_ADOPT_POD] = apply_adopt_pod,
    [ACT_ADOPT_SERVICE] = apply_adopt_service,
    [ACT_LABEL_POD] = apply_label_pod,
    [ACT_DELETE_JOB] = apply_delete_job,
};

/* What goes at once, because the plan asks for it only in the look that finds it, or because there is one in the life
 * of a job. */
static bool needs_no_turn(enum action_kind k)
{
    static const bool AT_ONCE[] = { [ACT_ENSURE_GROUP] = true,
                                    [ACT_DELETE_GROUP] = true,
                                    [ACT_ENSURE_TENSORBOARD] = true,
                                    [ACT_DELETE_TENSORBOARD] = true,
                                    [ACT_DELETE_JOB] = true };
    return k < COUNT_OF(AT_ONCE) && AT_ONCE[k];
}

/* For a while, or until others were answered. */
static bool is_held(const struct context *x, enum action_kind k)
{
    const struct pace *p = pace_of(x->r, k);
    int64_t now = clock_ms();
    if (p != NULL)
        return !pace_allows(p, now);
    return k != ACT_GET_CLAIMS && now < x->r->deletes.until_ms;
}

/* The job's turn is over, or not yet there. Services leave half of it to pods, so that these are not created last. */
static bool is_over(const struct context *x, enum action_kind k)
{
    int sent = k == ACT_CREATE_SERVICE && x->makes_pods ? 2 * x->sent : x->sent;
    return !needs_no_turn(k) && (!x->granted || !fair_goes_on(dispatch_fair(x->c->dispatch), sent, x->bytes_then));
}

bool apply_may_send(struct context *x, enum action_kind k)
{
    if (is_held(x, k))
        return false;
    if (is_over(x, k)) {
        x->more = true;
        return false;
    }
    x->sent += !needs_no_turn(k);
    return true;
}

/* Actions of one kind. After a refusal the next try begins behind what was refused last, so that one which is refused
 * every time does not keep the others from being created. */
static void apply_some(struct context *x, const struct action *a, size_t n)
{
    const struct cursor *last = &x->r->refused_last[apply_make_kind(a->kind)];
    size_t first = 0;
    for (size_t i = 0; apply_is_make(a->kind) && last->set && i < n; i++)
        if (a[i].role == last->role && a[i].index == last->index)
            first = i + 1;
    bool more = x->more;
    x->more = false;
    for (size_t i = 0; i < n && !x->more && !is_held(x, a->kind); i++)
        APPLY[a->kind](x, &a[(first + i) % n]);
    x->more |= more;
}

static void apply_all(struct context *x, const struct plan *p)
{
    for (size_t i = 0, n; i < p->nactions; i += n) {
        for (n = 1; i + n < p->nactions && p->actions[i + n].kind == p->actions[i].kind;)
            n++;
        apply_some(x, &p->actions[i], n);
    }
}

bool apply_plan(struct controller *c, struct record *r, const struct plan *p, bool granted)
{
    struct context x = { .c = c,
                         .r = r,
                         .granted = granted,
                         .may_label = clock_ms() >= r->label_after_ms,
                         .bytes_then = dispatch_fair(c->dispatch)->bytes };
    r->held = false;
    /* Pods mount the job file, must not start outside their policy and not in somebody else's gang: these come first,
     * and alone. */
    for (size_t i = 0; i < p->nactions; i++)
        x.hold_pods |=
            p->actions[i].kind == ACT_ENSURE_CONFIG || p->actions[i].kind == ACT_ENSURE_POLICY ||
            (p->actions[i].kind == ACT_ENSURE_GROUP && (r->group == GROUP_UNKNOWN || r->group == GROUP_ABSENT));
    for (size_t i = 0; i < p->nactions; i++)
        x.makes_pods |= p->actions[i].kind == ACT_CREATE_POD;
    x.core_only =
        plan_core_comes_first(&r->view, (const struct pod_info *const *)r->pods, r->npods, p->actions, p->nactions);
    apply_all(&x, p);
    apply_get_group(&x);
    json_decref(x.spec);
    return x.more;
}
