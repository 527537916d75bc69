/* Certificates of a job: issues leaves, some in each turn, and writes them into Secrets that the operator cannot read.
 * A change of a Secret begins with a test of its uid, so that no other Secret is ever changed, and the answers are not
 * read beyond name and uid. Keys are in no log and no event. */
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "build/metadata.h"
#include "control/apply_internal.h"
#include "control/identity_issuer.h"
#include "control/status_writer.h"

/* Leaves of a turn: some 10 ms, so that the loop renews the Lease in time however many leaves are issued. */
enum { LEAVES_A_TURN = 50, REPLACED_MS = 60000, STALE_PART = 20 };

struct identity_work {
    struct identity_step step;
    struct job_cas cas;
    int64_t began_ms;
    json_t *data; /* keys of the Secret and their texts */
    size_t issued;
    bool sent;
};

static void work_free(struct identity_work *w)
{
    if (w == NULL)
        return;
    identity_step_fini(&w->step);
    job_cas_fini(&w->cas);
    json_decref(w->data);
    free(w);
}

static void drop_work(struct cache_entry *entry)
{
    work_free(TAKE(entry->identity->work));
}

static const struct identity_issuer_metrics *metrics(const struct controller_env *env)
{
    return identity_issuer_metrics(env->settings->issuer);
}

/* ---- failures ---- */

/* After a failed write. The next Secret of the job is tried first then. */
static void hold(struct controller_env *env, struct cache_entry *entry, size_t secret, int64_t at_least_ms)
{
    struct identity_state *s = entry->identity;
    s->backoff.failures++;
    s->backoff.until_ms = env_clock(env) + MAX(create_backoff_delay_ms(s->backoff.failures), at_least_ms);
    s->first = secret + 1;
    counter_add(metrics(env)->failures, 1);
    workqueue_add_at(env->queue, entry->key, s->backoff.until_ms);
}

/* Takes ownership of the text. The same failure is reported once. */
static void tell(struct controller_env *env, struct cache_entry *entry, const char *reason, char *text)
{
    if (str_eq(text, entry->identity->failure)) {
        free(text);
        return;
    }
    free(entry->identity->failure);
    entry->identity->failure = text;
    log_warning("%s %s: %s: %s", env->kind->resource.kind, entry->key, reason, text);
    env_event(env, entry, true, reason, "", text);
}

static void over(struct cache_entry *entry)
{
    free(TAKE(entry->identity->failure));
    entry->identity->backoff = (struct retry_backoff){ 0 };
}

/* ---- leaves ---- */

/* Issues some of the leaves. ret: all of them are issued. */
static int issue_some(const struct controller_env *env, struct identity_work *w, bool *ret, struct err *e)
{
    size_t end = MIN(w->issued + LEAVES_A_TURN, w->step.nleaves);
    for (; w->issued < end; w->issued++) {
        const struct identity_replica *r = &w->step.leaves[w->issued];
        AUTO_FINI(leaf) leaf = { .key = NULL };
        char key[SECRET_KEY_SIZE];
        if (ca_issue(w->cas.issuing, (int)r->role, r->index, w->began_ms / 1000,
                     identity_issuer_lifetime_s(env->settings->issuer), &leaf, e) < 0)
            return err_wrap(e, "%s-%d", role_name(r->role), r->index);
        json_object_set_new(w->data, job_identity_key(r->role, r->index, "crt", key), json_string(leaf.certificate));
        json_object_set_new(w->data, job_identity_key(r->role, r->index, "key", key), json_string(leaf.key));
    }
    *ret = w->issued == w->step.nleaves;
    return 0;
}

static int begin(const struct controller_env *env, struct cache_entry *entry, int64_t now_ms, struct err *e)
{
    struct identity_work *w = xcalloc(1, sizeof(*w));
    int64_t next_ms;

    entry->identity->work = w;
    identity_plan(entry->spec.roles, &entry->status.identity, &entry->identity->facts, now_ms, &w->step, &next_ms);
    w->began_ms = now_ms / 1000 * 1000;
    w->data = json_object();
    if (identity_issuer_cas(env->settings->issuer, &entry->spec, now_ms, &w->cas, e) < 0)
        return -1;
    json_object_set_new(w->data, SECRET_CA_KEY, json_string(w->cas.pem));
    return 0;
}

/* The job waited meanwhile, or the trusted CAs changed. */
static bool is_stale(const struct cache_entry *entry, const struct identity_work *w, int64_t now_ms)
{
    const struct identity_facts *f = &entry->identity->facts;
    return !ca_list_equal(&w->cas.list, &f->cas) || now_ms < w->began_ms ||
           now_ms > w->began_ms + f->lifetime_ms / STALE_PART;
}

/* ---- answers ---- */

static void note_answer(struct identity_state *s, size_t secret, int64_t now_ms)
{
    if (secret >= s->nanswered) {
        s->answered_ms = xrealloc(s->answered_ms, (secret + 1) * sizeof(*s->answered_ms));
        while (s->nanswered <= secret)
            s->answered_ms[s->nanswered++] = 0;
    }
    s->answered_ms[secret] = now_ms;
}

static void record(struct controller_env *env, struct cache_entry *entry, const char *name, const char *uid)
{
    struct identity_work *w = entry->identity->work;
    struct job_identity *id = &status_writer_change(env, entry)->identity;
    int64_t end_ms = w->began_ms + identity_issuer_lifetime_s(env->settings->issuer) * 1000;
    size_t at = w->step.kind == IDENTITY_CREATE ? job_identity_add_secret(id, name, uid) : w->step.secret;

    if (at < id->nsecrets) {
        struct identity_secret *s = &id->secrets[at];
        note_answer(entry->identity, at, env_now(env));
        str_fmt(s->uid, sizeof(s->uid), "%s", uid);
        s->cas = w->cas.list;
        for (size_t i = 0; i < w->step.nleaves; i++)
            job_identity_put(id, w->step.leaves[i].role, w->step.leaves[i].index, at, end_ms, w->cas.list.ids[0]);
    }
    counter_add(metrics(env)->issued, w->step.nleaves);
    counter_add(metrics(env)->renewals, w->step.renewal ? w->step.nleaves : 0);
    log_msg(w->step.nleaves > 0 ? LOG_INFO : LOG_DEBUG, "%s %s: Secret %s: %zu certificates %s",
            env->kind->resource.kind, entry->key, name, w->step.nleaves, w->step.renewal ? "renewed" : "issued");
    over(entry);
}

static void replaced(struct in_flight_request *req, struct cache_entry *entry, const char *name, const char *words)
{
    hold(req->env, entry, entry->identity->work->step.secret, REPLACED_MS);
    tell(req->env, entry, "IdentitySecretReplaced",
         xasprintf("Secret %s is not the one that the operator made, or it was made immutable: it is not changed (%s). "
                   "Its certificates are made again once it is deleted: kubectl delete secret %s -n %s",
                   name, words, name, entry->spec.ns));
}

static void on_created(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL || entry->identity == NULL || entry->identity->work == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    const char *name = json_string_value(json_object_get(meta, "name"));
    const char *uid = json_string_value(json_object_get(meta, "uid"));
    bool again = entry->identity->work->step.kind == IDENTITY_RECREATE;
    if (kube_ok(a) && name != NULL && uid != NULL && strlen(name) < SECRET_NAME_SIZE && strlen(uid) < SECRET_UID_SIZE) {
        record(req->env, entry, name, uid);
        apply_created(req, entry, false);
    } else if (again && str_eq(a->reason, "AlreadyExists")) {
        replaced(req, entry, req->name, a->message);
    } else {
        counter_add(metrics(req->env)->failures, 1);
        apply_refused(req, entry, a);
    }
    drop_work(entry);
    env_enqueue(req->env, entry);
}

static void on_changed(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL || entry->identity == NULL || entry->identity->work == NULL)
        return;
    const struct identity_work *w = entry->identity->work;
    struct job_identity *id = &entry->status.identity;
    size_t at = w->step.secret;
    if (kube_ok(a) && at < id->nsecrets) {
        char uid[SECRET_UID_SIZE];
        str_fmt(uid, sizeof(uid), "%s", id->secrets[at].uid);
        record(req->env, entry, req->name, uid);
    } else if (a->status == 404 && at < id->nsecrets) {
        log_warning("%s %s: Secret %s was deleted; it is made again", req->env->kind->resource.kind, entry->key,
                    req->name);
        status_writer_change(req->env, entry)->identity.secrets[at].uid[0] = '\0';
    } else if (a->status == 422) {
        replaced(req, entry, req->name, a->message);
    } else {
        hold(req->env, entry, at, 0);
        tell(req->env, entry, "FailedUpdateSecret",
             xasprintf("cannot write the certificates into Secret %s: %s", req->name, a->message));
    }
    drop_work(entry);
    env_enqueue(req->env, entry);
}

/* ---- requests ---- */

/* Its name is the API server's when none is given. The client may send a create twice when an answer is lost: then one
 * of the Secrets is used by no pod, and is deleted with the job. */
static json_t *build_secret(const struct job_spec *v, const char *name, const json_t *data)
{
    json_t *labels = job_labels(v);
    fill_app_labels(labels);
    json_t *secret = object_with_metadata(v, "v1", "Secret", name != NULL ? name : "", labels);
    json_t *meta = json_object_get(secret, "metadata");
    if (name == NULL) {
        json_object_del(meta, "name");
        json_object_set_new(meta, "generateName", json_sprintf("%s-identity-", v->name));
    }
    json_object_set_new(secret, "type", json_string("Opaque"));
    json_object_set(secret, "stringData", (json_t *)(uintptr_t)data);
    return secret;
}

static void send_create(struct apply_context *ctx, const struct action *a, const struct identity_work *w)
{
    const struct job_spec *v = &ctx->entry->spec;
    const struct job_identity *id = &ctx->entry->status.identity;
    const char *name = w->step.kind == IDENTITY_RECREATE ? id->secrets[w->step.secret].name : NULL;
    json_auto_t *secret = build_secret(v, name, w->data);
    auto_free char *shown = xasprintf("%s-identity", v->name);
    apply_send(ctx, a, KUBE_CREATE, &RESOURCE_SECRETS, name != NULL ? name : shown, secret, on_created);
}

static void send_patch(struct apply_context *ctx, const struct action *a, const struct identity_work *w)
{
    const struct identity_secret *s = &ctx->entry->status.identity.secrets[w->step.secret];
    struct action with_name = *a;
    AUTO_FINI(buf) path = BUF_INIT;
    json_auto_t *patch = json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:O}]", "op", "test", "path", "/metadata/uid", "value",
                                   s->uid, "op", "add", "path", "/stringData", "value", w->data);
    with_name.name = s->name;
    kube_path(&path, &RESOURCE_SECRETS, ctx->entry->spec.ns, s->name, NULL);
    in_flight_send(ctx->env, ctx->entry, &with_name,
                   (struct kube_request){ .verb = KUBE_JSON_PATCH,
                                          .priority = KUBE_NORMAL,
                                          .path = path.data,
                                          .body = patch,
                                          .metadata_only = true,
                                          .discard_body = true },
                   on_changed);
}

static void send_work(struct apply_context *ctx, const struct action *a, struct identity_work *w)
{
    if (w->step.kind == IDENTITY_PATCH && w->step.secret < ctx->entry->status.identity.nsecrets)
        send_patch(ctx, a, w);
    else
        send_create(ctx, a, w);
    w->sent = true;
    json_decref(w->data); /* the request has a copy */
    w->data = NULL;
}

void apply_identity(struct apply_context *ctx, const struct action *a)
{
    struct cache_entry *entry = ctx->entry;
    struct identity_state *s = entry->identity;
    int64_t now_ms = env_now(ctx->env);
    struct err e = { .code = ERR_NONE };
    bool all = false;

    if (s == NULL || (s->work != NULL && s->work->sent))
        return;
    if (env_clock(ctx->env) < s->backoff.until_ms) {
        workqueue_add_at(ctx->env->queue, entry->key, s->backoff.until_ms);
        return;
    }
    if (!ctx->granted) { /* leaves are issued in the job's turn, so that few of them wait in memory */
        ctx->more = true;
        return;
    }
    if (s->work != NULL && is_stale(entry, s->work, now_ms))
        drop_work(entry);
    if ((s->work == NULL && begin(ctx->env, entry, now_ms, &e) < 0) || issue_some(ctx->env, s->work, &all, &e) < 0) {
        drop_work(entry);
        hold(ctx->env, entry, s->first, 0);
        tell(ctx->env, entry, "FailedIssueCertificate", xasprintf("cannot issue certificates: %s", e.msg));
    } else if (!all) {
        ctx->more = true; /* in its next turn, after I/O */
    } else if (apply_may_send(ctx, a->kind)) {
        send_work(ctx, a, s->work);
    }
}

/* ---- facts for the plan ---- */

const struct identity_facts *identity_observe(struct controller_env *env, struct cache_entry *entry, int64_t now_ms)
{
    struct identity_issuer *issuer = env->settings->issuer;
    if (issuer == NULL || !entry->spec.identity || entry->spec.suspend || entry->spec.deleting ||
        entry->spec.managed_elsewhere || job_status_finished(&entry->status))
        return NULL;
    if (entry->identity == NULL)
        entry->identity = xcalloc(1, sizeof(*entry->identity));
    struct identity_state *s = entry->identity;
    identity_issuer_facts(issuer, &entry->spec, &entry->status.identity, now_ms, &s->cas, &s->facts);
    const struct job_identity *acked = entry->acked != NULL ? &entry->acked->identity : &entry->status.identity;
    s->facts.confirmed = entry->identity_in_flight ? NULL : acked;
    s->facts.doubt = identity_find_doubt(&entry->status.identity, (const struct pod_info *const *)entry->pods,
                                         entry->npods, s->answered_ms, s->nanswered, now_ms);
    s->facts.first = s->first;
    s->facts.fault_told = s->facts.fault == NULL && s->failure != NULL;
    if (s->facts.fault_told)
        s->facts.fault = s->failure;
    return &s->facts;
}

void identity_state_free(struct identity_state *s)
{
    if (s == NULL)
        return;
    work_free(s->work);
    free(s->failure);
    free(s->answered_ms);
    free(s);
}
