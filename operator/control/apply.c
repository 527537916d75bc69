/* Sends a plan's actions as requests, in the order of the plan and within the job's turn, and writes their answers into
 * the cache. Refused creates and deletes are retried with back-off, and each round is reported once. */
#include "control/apply.h"

#include "base/log.h"
#include "base/str.h"
#include "build/quota_shortage.h"
#include "control/apply_internal.h"

enum { WORDS_MAX = 1000, WRITES_FAILED = 3 };

const json_t *apply_spec(struct apply_context *ctx)
{
    if (ctx->spec == NULL)
        ctx->spec = job_spec_json(&ctx->entry->spec);
    return ctx->spec;
}

/* The kinds of created objects and the reasons of their events; made NULL: no event. */
static const struct {
    const char *noun, *made, *failed;
    bool of_replicas; /* a refusal goes into a condition of the job */
} CREATES[] = {
    [ACT_IDENTITY] = { "Secret", NULL, "FailedCreateSecret", true },
    [ACT_ENSURE_CONFIG] = { "ConfigMap", NULL, "FailedCreateConfigMap", true },
    [ACT_ENSURE_POLICY] = { "NetworkPolicy", NULL, "FailedCreateNetworkPolicy", true },
    [ACT_ENSURE_GROUP] = { "PodGroup", NULL, "FailedCreatePodGroup", true },
    [ACT_ENSURE_TENSORBOARD] = { "TensorBoard", NULL, "FailedCreateTensorBoard", false },
    [ACT_CREATE_SERVICE] = { "service", "SuccessfulCreateService", "FailedCreateService", true },
    [ACT_CREATE_POD] = { "pod", "SuccessfulCreatePod", "FailedCreatePod", true },
    [ACT_ADOPT_POD] = { "pod", NULL, "FailedAdoptPod", true },
    [ACT_ADOPT_SERVICE] = { "service", NULL, "FailedAdoptService", true },
};

static void delay_deletes(struct retry_backoff *p, int64_t now_ms, int64_t at_least_ms)
{
    if (now_ms >= p->until_ms) /* refusals of one round count once */
        p->failures++;
    p->until_ms = MAX(p->until_ms, now_ms + MAX(create_backoff_delay_ms(p->failures), at_least_ms));
}

void apply_delay(struct controller_env *env, struct cache_entry *entry, enum action_kind k, int64_t at_least_ms)
{
    struct create_backoff *p = cache_entry_create_backoff(entry, k);
    if (p != NULL)
        create_backoff_delay(p, env_clock(env), at_least_ms);
    else
        delay_deletes(&entry->delete_backoff, env_clock(env), at_least_ms);
    workqueue_add_at(env->queue, entry->key, p != NULL ? p->until_ms : entry->delete_backoff.until_ms);
}

bool apply_waits_for_counts(struct cache_entry *entry, enum role role, int index)
{
    int has = entry->acked != NULL ? index_counts_get(&entry->acked->roles[role].again, index) : 0;
    int is = index_counts_get(&entry->status.roles[role].again, index);
    bool waits = is > 0 && entry->status_backoff.failures < WRITES_FAILED &&
                 (entry->counts_in_flight || (entry->acked != NULL && has != is));
    entry->waits_for_counts |= waits;
    return waits;
}

/* Objects of the job itself have no role. */
static const char *about(const struct in_flight_request *req, const struct cache_entry *entry)
{
    return req->action.role < ROLE_COUNT ? job_spec_role_key(&entry->spec, req->action.role) : "";
}

static void say_failed(struct in_flight_request *req, const struct cache_entry *entry, const char *reason,
                       const char *verb, const char *words)
{
    auto_free char *note = xasprintf("Error %s: %s", verb, words);
    log_warning("%s %s: %s: %s", req->env->kind->resource.kind, entry->key, reason, note);
    env_event(req->env, entry, true, reason, about(req, entry), note);
}

void apply_failed(struct in_flight_request *req, struct cache_entry *entry, const char *reason, const char *verb,
                  const struct kube_answer *a)
{
    say_failed(req, entry, reason, verb, a->message);
    counter_add(req->env->metrics.errors, 1);
    apply_delay(req->env, entry, req->action.kind, 0);
}

void apply_record_event(struct in_flight_request *req, struct cache_entry *entry, const char *reason, const char *what)
{
    auto_free char *note = xasprintf("%s: %s", what, req->name);
    env_event(req->env, entry, false, reason, about(req, entry), note);
}

/* ---- creates ---- */

static bool is_about(const struct refusal *f, const struct in_flight_request *req)
{
    return f->name != NULL && f->kind == req->action.kind && str_eq(f->name, req->name);
}

static struct refusal *refusal_of(struct cache_entry *entry, const struct in_flight_request *req)
{
    return CREATES[req->action.kind].of_replicas ? &entry->refused : &entry->tensorboard_refused;
}

/* A quota that can never admit the job: waiting does not help. */
static void say_shortage(const struct in_flight_request *req, const struct cache_entry *entry, struct refusal *f,
                         const char *words)
{
    json_auto_t *spec = job_spec_json(&entry->spec);
    auto_free char *shortage = quota_shortage(&entry->spec, spec, &req->env->settings->build, words);
    f->never_fits = shortage != NULL;
    if (shortage == NULL)
        return;
    auto_free char *before = f->words;
    f->words = xasprintf("%s; %s", before, shortage);
}

/* Of several refused creates one is reported, the same one at each retry, so that the message does not change. */
static void remember(struct cache_entry *entry, const struct in_flight_request *req, const char *words)
{
    struct refusal *f = refusal_of(entry, req);
    const struct action *a = &req->action;
    bool wanted = f->name != NULL && (f->index < 0 || f->index < entry->spec.roles[f->role].replicas);
    if (wanted && !is_about(f, req))
        return;
    refusal_fini(f);
    *f = (struct refusal){
        .kind = a->kind, .role = a->role, .index = a->role < ROLE_COUNT ? a->index : -1, .name = xstrdup(req->name)
    };
    f->what = xasprintf("%s %s", CREATES[a->kind].noun, req->name);
    f->words = text_truncate(words, WORDS_MAX, false);
    if (f->words == NULL)
        f->words = xstrdup("no reason was given");
    f->over_quota = a->kind == ACT_CREATE_POD && is_over_quota(words);
    if (f->over_quota)
        say_shortage(req, entry, f, words);
}

void apply_created(struct in_flight_request *req, struct cache_entry *entry, bool tell)
{
    struct create_backoff *p = cache_entry_create_backoff(entry, req->action.kind);
    if (p != NULL)
        create_backoff_accepted(p, req->sent_ms);
    if (is_about(refusal_of(entry, req), req))
        refusal_fini(refusal_of(entry, req));
    if (!tell || CREATES[req->action.kind].made == NULL)
        return;
    auto_free char *what = xasprintf("Created %s", CREATES[req->action.kind].noun);
    apply_record_event(req, entry, CREATES[req->action.kind].made, what);
}

/* One event per round, not one per pod. */
void apply_refused(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    enum action_kind k = req->action.kind;
    struct create_backoff *p = cache_entry_create_backoff(entry, k);
    remember(entry, req, a->message);
    counter_add(req->env->metrics.errors, 1);
    entry->last_refused[create_kind_of(k)] =
        (struct refused_replica){ .set = true, .role = req->action.role, .index = req->action.index };
    if (create_backoff_refused(p, req->sent_ms, env_clock(req->env)))
        say_failed(req, entry, CREATES[k].failed, "creating", a->message);
    workqueue_add_at(req->env->queue, entry->key, p->until_ms);
}

void apply_foreign(struct in_flight_request *req, struct cache_entry *entry, const struct kube_resource *what)
{
    auto_free char *words =
        xasprintf("%s \"%s\" already exists and belongs to another owner: it is not changed. Rename "
                  "the job, or delete it if it is not needed: kubectl delete %s %s -n %s",
                  what->kind, req->name, what->plural, req->name, entry->spec.ns);
    remember(entry, req, words);
    say_failed(req, entry, CREATES[req->action.kind].failed, "creating", words);
}

void apply_send(struct apply_context *ctx, const struct action *a, enum kube_verb verb,
                const struct kube_resource *what, const char *name, const json_t *body, in_flight_done *done)
{
    AUTO_FINI(buf) path = BUF_INIT;
    struct action with_name = *a;
    with_name.name = name;
    with_name.uid = NULL;
    with_name.version = 0;
    kube_path(&path, what, ctx->entry->spec.ns, verb == KUBE_CREATE ? NULL : name, NULL);
    if (verb == KUBE_CREATE) /* Strict: a misspelt key of a template is an error with the key's name; a TFJob's pod is
                                created nevertheless */
        kube_query(&path, "fieldValidation", ctx->env->kind->own_processes ? "Strict" : "Warn");
    in_flight_send(ctx->env, ctx->entry, &with_name,
                   (struct kube_request){ .verb = verb,
                                          .priority = KUBE_NORMAL,
                                          .path = path.data,
                                          .body = body,
                                          .metadata_only = verb == KUBE_CREATE },
                   done);
}

void apply_get(struct in_flight_request *req, struct cache_entry *entry, const struct kube_resource *what,
               bool metadata_only, in_flight_done *done)
{
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, what, entry->spec.ns, req->name, NULL);
    in_flight_send(req->env, entry, &req->action,
                   (struct kube_request){
                       .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = path.data, .metadata_only = metadata_only },
                   done);
}

/* ---- orphans ---- */

void apply_get_job(struct controller_env *env, struct cache_entry *entry, const struct action *a, in_flight_done *done)
{
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, &env->kind->resource, entry->spec.ns, entry->spec.name, NULL);
    in_flight_send(
        env, entry, a,
        (struct kube_request){ .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = path.data, .metadata_only = true },
        done);
}

bool apply_may_adopt(const struct cache_entry *entry, const struct kube_answer *a)
{
    const json_t *meta = json_object_get(a->body, "metadata");
    return kube_ok(a) && str_eq(json_string_value(json_object_get(meta, "uid")), entry->spec.uid) &&
           json_object_get(meta, "deletionTimestamp") == NULL;
}

/* ---- deletes ---- */

void apply_delete(struct apply_context *ctx, const struct action *a, const struct kube_resource *what,
                  in_flight_done *done)
{
    AUTO_FINI(buf) path = BUF_INIT;
    json_auto_t *options = kube_delete_options(a->uid, a->version, a->grace_s);
    kube_path(&path, what, ctx->entry->spec.ns, a->name, NULL);
    in_flight_send(
        ctx->env, ctx->entry, a,
        (struct kube_request){ .verb = KUBE_DELETE, .priority = KUBE_NORMAL, .path = path.data, .body = options },
        done);
}

/* ---- all of a plan ---- */

static void (*const APPLY[])(struct apply_context *ctx, const struct action *a) = {
    [ACT_GET_CLAIMS] = apply_claims,
    [ACT_IDENTITY] = apply_identity,
    [ACT_ENSURE_CONFIG] = apply_config,
    [ACT_ENSURE_POLICY] = apply_policy,
    [ACT_ENSURE_GROUP] = apply_group,
    [ACT_DELETE_GROUP] = apply_delete_group,
    [ACT_ENSURE_TENSORBOARD] = apply_tensorboard,
    [ACT_DELETE_TENSORBOARD] = apply_delete_tensorboard,
    [ACT_CREATE_SERVICE] = apply_create_service,
    [ACT_CREATE_POD] = apply_create_pod,
    [ACT_DELETE_SERVICE] = apply_delete_service,
    [ACT_DELETE_POD] = apply_delete_pod,
    [ACT_ADOPT_POD] = apply_adopt_pod,
    [ACT_ADOPT_SERVICE] = apply_adopt_service,
    [ACT_LABEL_POD] = apply_label_pod,
    [ACT_DELETE_JOB] = apply_delete_job,
};

/* Actions that do not wait for a turn: the plan has them only in one reconcile, or a job has only one of them. */
static bool needs_no_turn(enum action_kind k)
{
    static const bool AT_ONCE[] = { [ACT_ENSURE_GROUP] = true,
                                    [ACT_DELETE_GROUP] = true,
                                    [ACT_ENSURE_TENSORBOARD] = true,
                                    [ACT_DELETE_TENSORBOARD] = true,
                                    [ACT_DELETE_JOB] = true };
    return k < COUNT_OF(AT_ONCE) && AT_ONCE[k];
}

/* Delayed by back-off, or until other requests were answered. */
static bool is_held(const struct apply_context *ctx, enum action_kind k)
{
    const struct create_backoff *p = cache_entry_create_backoff(ctx->entry, k);
    int64_t now = env_clock(ctx->env);
    if (p != NULL)
        return !create_backoff_allows(p, now);
    return k != ACT_GET_CLAIMS && now < ctx->entry->delete_backoff.until_ms;
}

/* The job's turn has ended, or has not come yet. Services use at most half of a turn, so that pods are not created
 * last.
 */
static bool is_over(const struct apply_context *ctx, enum action_kind k)
{
    int sent = k == ACT_CREATE_SERVICE && ctx->makes_pods ? 2 * ctx->sent : ctx->sent;
    return !needs_no_turn(k) &&
           (!ctx->granted || !fair_queue_may_send(dispatch_queue(ctx->env->dispatch), sent, ctx->bytes_then));
}

bool apply_may_send(struct apply_context *ctx, enum action_kind k)
{
    if (is_held(ctx, k))
        return false;
    if (is_over(ctx, k)) {
        ctx->more = true;
        return false;
    }
    ctx->sent += !needs_no_turn(k);
    return true;
}

/* Actions of one kind. After a refusal the next try begins after the replica that was refused last. So a replica that
 * is always refused does not prevent the creation of the others. */
static void apply_some(struct apply_context *ctx, const struct action *a, size_t n)
{
    const struct refused_replica *last = &ctx->entry->last_refused[create_kind_of(a->kind)];
    size_t first = 0;
    for (size_t i = 0; action_is_create(a->kind) && last->set && i < n; i++)
        if (a[i].role == last->role && a[i].index == last->index)
            first = i + 1;
    bool more = ctx->more;
    ctx->more = false;
    for (size_t i = 0; i < n && !ctx->more && !is_held(ctx, a->kind); i++)
        APPLY[a->kind](ctx, &a[(first + i) % n]);
    ctx->more |= more;
}

static void apply_all(struct apply_context *ctx, const struct job_plan *p)
{
    for (size_t i = 0, n; i < p->nactions; i += n) {
        for (n = 1; i + n < p->nactions && p->actions[i + n].kind == p->actions[i].kind;)
            n++;
        apply_some(ctx, &p->actions[i], n);
    }
}

bool apply_plan(struct controller_env *env, struct cache_entry *entry, const struct job_plan *p, bool granted)
{
    struct apply_context ctx = { .env = env,
                                 .entry = entry,
                                 .granted = granted,
                                 .may_label = env_clock(env) >= entry->label_after_ms,
                                 .bytes_then = dispatch_queue(env->dispatch)->bytes };
    entry->waits_for_counts = false;
    /* Pods mount the job file, must not start without their policy, and must not join another owner's gang. So these
     * objects are created first, and alone. */
    for (size_t i = 0; i < p->nactions; i++)
        ctx.hold_pods |=
            p->actions[i].kind == ACT_ENSURE_CONFIG || p->actions[i].kind == ACT_ENSURE_POLICY ||
            (p->actions[i].kind == ACT_ENSURE_GROUP && (entry->group == GROUP_UNKNOWN || entry->group == GROUP_ABSENT));
    for (size_t i = 0; i < p->nactions; i++)
        ctx.makes_pods |= p->actions[i].kind == ACT_CREATE_POD;
    ctx.core_only = plan_core_comes_first(&entry->spec, (const struct pod_info *const *)entry->pods, entry->npods,
                                          p->actions, p->nactions);
    apply_all(&ctx, p);
    apply_poll_group(&ctx);
    apply_poll_tensorboard(&ctx);
    json_decref(ctx.spec);
    return ctx.more;
}
