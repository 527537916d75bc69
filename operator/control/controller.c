/* Owns the parts of a controller and runs the reconcile: cache -> plan -> status, requests, events. All decisions are
 * plan_job()'s; this file carries them out. */
#include "control/controller_internal.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/apply.h"
#include "control/in_flight.h"
#include "control/status_writer.h"

enum { CLAIMS_AGAIN_MS = 4000, ENSURE_AGAIN_MS = 60000, JOB_AGAIN_MS = 1000 };

static struct controller *controller_of(struct controller_env *env)
{
    return (struct controller *)env; /* its first member */
}

/* ---- input of the plan ---- */

static bool is_ours(const struct cache_entry *entry, const struct owned_object *b)
{
    return b->uid != NULL && str_eq(b->owner_uid, entry->spec.uid);
}

/* The watch shows that the ConfigMap exists. Only an answer shows that it has the current addresses. */
static bool has_job_file(const struct cache_entry *entry)
{
    return entry->config_ensured || (entry->spec.has_model && is_ours(entry, &entry->config));
}

static struct observed observe(struct controller_env *env, struct cache_entry *entry, int64_t now)
{
    struct observed o = {
        .pods = (const struct pod_info *const *)entry->pods,
        .npods = entry->npods,
        .services = (const struct service_info *const *)entry->services,
        .nservices = entry->nservices,
        .claims = entry->claims,
        .claims_known = entry->claims_known,
        .claims_fault = entry->claims_fault,
        .config_ensured = has_job_file(entry),
        .policy_ensured = entry->policy_ensured || is_ours(entry, &entry->policy),
        .tensorboard_ensured = entry->tensorboard_ensured,
        .tensorboard_found = entry->tensorboard_found,
        .tensorboard_trouble = entry->board.trouble,
        .identity = identity_observe(env, entry, now),
        .group = entry->group,
        .refused = entry->refused.name != NULL ? &entry->refused : NULL,
        .tensorboard_refused = entry->tensorboard_refused.name != NULL ? &entry->tensorboard_refused : NULL,
        .progress = entry->progress,
        .progress_ms = entry->progress_ms,
    };
    quota_waiters_observe(env, entry, &o);
    return o;
}

/* Objects that were created or found long ago may have been deleted since. They are checked again when new pods need
 * them. */
static void refresh_stale(const struct controller_env *env, struct cache_entry *entry)
{
    int64_t now = env_clock(env);
    bool missing = false;
    for (size_t i = 0; entry->claims_known && i < entry->spec.nclaims; i++)
        missing |= !entry->claims[i].found;
    if (missing && now - entry->claims_ms >= CLAIMS_AGAIN_MS)
        entry->claims_known = false;
    if (entry->npods < (size_t)job_spec_replicas(&entry->spec) && entry->ensured_ms != 0 &&
        now - entry->ensured_ms >= ENSURE_AGAIN_MS)
        entry->config_ensured = entry->policy_ensured = false;
}

static void record_events(struct controller *c, const struct cache_entry *entry, const struct job_plan *p)
{
    for (size_t i = 0; i < p->nevents; i++) {
        const struct plan_event *ev = &p->events[i];
        env_event(&c->env, entry, ev->warning, ev->reason, ev->about, ev->note);
        log_msg(ev->warning ? LOG_WARNING : LOG_INFO, "%s %s: %s: %s", c->env.kind->resource.kind, entry->key,
                ev->reason, ev->note);
    }
}

static void count_changes(const struct controller *c, const struct cache_entry *entry, const struct job_status *is,
                          int restarted)
{
    static const struct {
        enum condition_type type;
        const char *what;
    } COUNTED[] = { { COND_CREATED, "created" }, { COND_SUCCEEDED, "successful" }, { COND_FAILED, "failed" } };
    for (size_t i = 0; i < COUNT_OF(COUNTED); i++)
        if (job_status_is(is, COUNTED[i].type) && !job_status_is(&entry->status, COUNTED[i].type))
            controller_metrics_count_job(&c->env.metrics, entry->spec.ns, COUNTED[i].what, 1);
    if (restarted > 0)
        controller_metrics_count_job(&c->env.metrics, entry->spec.ns, "restarted", (uint64_t)restarted);
}

static void log_state(const struct controller *c, const struct cache_entry *entry, const struct job_status *is)
{
    if (!str_eq(is->state, entry->status.state))
        log_info("%s %s: %s%s%s", c->env.kind->resource.kind, entry->key, is->state,
                 is->ready[0] != '\0' ? ", ready " : "", is->ready);
}

/* Stores the decided status; the server's status is kept until it has accepted the new one. New conditions are written
 * at once, even when an earlier write was refused. */
static void set_status(struct controller *c, struct cache_entry *entry, struct job_plan *p)
{
    unsigned differs = job_status_differs(&entry->status, &p->status);
    if (differs == 0)
        return;
    if ((differs & STATUS_CONDITIONS) != 0)
        entry->status_backoff = (struct retry_backoff){ 0 };
    count_changes(c, entry, &p->status, p->restarted);
    log_state(c, entry, &p->status);
    if (entry->acked == NULL) {
        entry->changed_ms = env_clock(&c->env);
        entry->acked = xmalloc(sizeof(*entry->acked));
        *entry->acked = entry->status;
    } else {
        job_status_fini(&entry->status);
    }
    entry->status = p->status;
    memset(&p->status, 0, sizeof(p->status));
}

static void reconcile_key(void *user, const char *key);

static void on_granted(void *user)
{
    struct cache_entry *entry = user;
    entry->started = entry->granted = true;
    reconcile_key(controller_of(entry->env), entry->key);
}

/* Jobs send their requests in turns (control/fair_queue.h), as fast as the API server accepts them. Requests that have
 * to wait are not stored: the next reconcile of the job plans them again. */
static void apply_in_turn(struct controller *c, struct cache_entry *entry, const struct job_plan *p)
{
    bool begun = entry->started || entry->npods + entry->nservices > 0;
    bool granted = entry->granted || (p->nactions > 0 && dispatch_has_room(c->env.dispatch));
    entry->granted = false;
    entry->started = begun || granted;
    bool more = entry->started ? apply_plan(&c->env, entry, p, granted) : p->nactions > 0;
    entry->env = &c->env;
    if (more)
        dispatch_wait(c->env.dispatch, &entry->ticket, on_granted, entry);
    else
        dispatch_leave(&entry->ticket);
}

static bool all_pending(const struct cache_entry *entry)
{
    for (size_t i = 0; i < entry->npods; i++)
        if (entry->pods[i]->phase != POD_PENDING)
            return false;
    return entry->npods > 0;
}

static bool one_is_creating(const struct cache_entry *entry)
{
    for (size_t i = 0; i < entry->npods; i++)
        if (entry->pods[i]->creating)
            return true;
    return false;
}

/* The job was suspended and resumed between two reconciles, for example by a queue that moves it. Pending pods were
 * created from the templates before that, so they are deleted as if the suspension had been seen. Pods whose create is
 * in flight cannot be deleted yet; the answer triggers another reconcile. A job with a running pod continues. */
static bool replay_suspension(struct controller *c, struct cache_entry *entry)
{
    bool now = entry->resumed_unobserved && all_pending(entry);
    entry->resumed_unobserved = now && one_is_creating(entry);
    if (now && !entry->resumed_unobserved)
        workqueue_add(c->env.queue, entry->key);
    return now;
}

static void run_plan(struct controller *c, struct cache_entry *entry, int64_t now, struct job_plan *ret)
{
    bool suspend = entry->spec.suspend;
    entry->spec.suspend |= replay_suspension(c, entry);
    struct observed seen = observe(&c->env, entry, now);
    plan_keep_replicas(&entry->spec, &entry->status, &seen);
    plan_job(&entry->spec, &entry->status, &seen, &c->settings.plan, now, ret);
    entry->spec.suspend = suspend;
}

static void requeue_after_backoff(struct controller *c, const struct cache_entry *entry)
{
    for (int i = 0; i < CREATE_KINDS; i++)
        if (entry->create_backoff[i].until_ms > env_clock(&c->env))
            workqueue_add_at(c->env.queue, entry->key, entry->create_backoff[i].until_ms);
    if (entry->delete_backoff.until_ms > env_clock(&c->env))
        workqueue_add_at(c->env.queue, entry->key, entry->delete_backoff.until_ms);
}

static void reconcile(struct controller *c, struct cache_entry *entry)
{
    AUTO_FINI(job_plan) p = { 0 };
    int64_t now = env_now(&c->env);
    refresh_stale(&c->env, entry);
    run_plan(c, entry, now, &p);
    set_status(c, entry, &p);
    controller_metrics_set_state(&c->env.metrics, &entry->counted_state, entry->status.state);
    apply_in_turn(c, entry, &p);
    record_events(c, entry, &p);
    status_writer_write(&c->env, entry, progress_poller_interval_ms(c->poller));
    progress_poller_set(c->poller, entry, p.poll);
    if (p.next_ms > 0)
        workqueue_add_at(c->env.queue, entry->key, env_clock(&c->env) + MAX(p.next_ms - now, 1));
    requeue_after_backoff(c, entry);
}

/* ---- jobs that may be deleted ---- */

static void on_job_read(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    bool gone =
        a->status == 404 || (kube_ok(a) && (!str_eq(json_string_value(json_object_get(meta, "uid")), entry->spec.uid) ||
                                            json_object_get(meta, "deletionTimestamp") != NULL));
    entry->job_get_in_flight = false;
    entry->may_be_deleted = gone;
    workqueue_add_at(req->env->queue, entry->key,
                     env_clock(req->env) + (gone ? JOB_AGAIN_MS : 0)); /* the watch will report it soon */
}

/* A relist after a gap in the watch found that dependents were deleted. The list of jobs may arrive later than theirs,
 * so the job itself may be deleted, too. Replacements must not be created, because they would collide with a new job of
 * that name. */
static bool job_exists(struct controller *c, struct cache_entry *entry)
{
    AUTO_FINI(buf) path = BUF_INIT;
    if (!entry->may_be_deleted || entry->spec.deleting)
        return true;
    if (entry->job_get_in_flight)
        return false;
    entry->job_get_in_flight = true;
    kube_path(&path, &c->env.kind->resource, entry->spec.ns, entry->spec.name, NULL);
    in_flight_send(
        &c->env, entry, NULL,
        (struct kube_request){ .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = path.data, .metadata_only = true },
        on_job_read);
    return false;
}

static void reconcile_key(void *user, const char *key)
{
    struct controller *c = user;
    struct cache_entry *entry = cache_find(&c->env.cache, key);
    if (entry == NULL || !entry->known || !watches_see_dependents(c->watches, entry->spec.ns) || !job_exists(c, entry))
        return;
    int64_t started = clock_ns();
    reconcile(c, entry);
    counter_add(c->env.metrics.reconciles, 1);
    histogram_observe(c->env.metrics.time, (double)(clock_ns() - started) * 1e-9);
}

/* ---- reports from the watches ---- */

static void on_status(void *user, struct cache_entry *entry, const json_t *object)
{
    struct controller *c = user;
    status_writer_observe(&c->env, entry, object);
}

static void on_pod_missing(void *user, struct cache_entry *entry, struct pod_info *pod)
{
    struct controller *c = user;
    apply_confirm_pod_gone(&c->env, entry, pod);
}

static void on_forget(void *user, struct cache_entry *entry)
{
    struct controller *c = user;
    progress_poller_set(c->poller, entry, false);
}

/* ---- start and end ---- */

/* The trusted CAs changed. */
static void on_cas_changed(void *user)
{
    struct controller *c = user;
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&c->env.cache.entries, &i)) != NULL;) {
        const struct cache_entry *entry = slot->value;
        if (entry->spec.identity)
            env_enqueue(&c->env, entry);
    }
}

static int64_t first_expiry(void *user)
{
    const struct controller *c = user;
    struct map_slot *slot;
    int64_t first = 0;
    for (size_t i = 0; (slot = map_next(&c->env.cache.entries, &i)) != NULL;) {
        const struct cache_entry *entry = slot->value;
        if (!entry->known || entry->spec.suspend || job_status_finished(&entry->status))
            continue;
        int64_t one = identity_expiry_ms(entry->spec.roles, &entry->status.identity);
        if (one > 0 && (first == 0 || one < first))
            first = one;
    }
    return first;
}

bool controller_synced(const struct controller *c)
{
    return watches_synced(c->watches);
}

struct controller *controller_new(struct kube_client *k, const struct job_kind *kind,
                                  const struct controller_settings *s)
{
    struct controller *c = xcalloc(1, sizeof(*c));

    c->settings = *s;
    c->env = (struct controller_env){
        .client = k,
        .kind = kind,
        .settings = &c->settings,
        .dispatch = s->dispatch,
        .queue = workqueue_new(kube_client_loop(k), kind->resource.plural, s->workers, reconcile_key, c, s->registry),
        .events = event_recorder_new(k, kind->controller, s->instance),
    };
    controller_metrics_init(&c->env.metrics, s->registry, kind, s->workers);
    c->poller = progress_poller_new(&c->env);
    c->watches = watches_new(&c->env, &(struct watches_user){ on_status, on_pod_missing, on_forget, c });
    c->issuer_user = (struct identity_issuer_user){ .on_change = on_cas_changed, .expiry_ms = first_expiry, .user = c };
    if (s->issuer != NULL)
        identity_issuer_add(s->issuer, &c->issuer_user);
    return c;
}

struct event_recorder *controller_end(struct controller *c)
{
    struct event_recorder *events = c->env.events;

    identity_issuer_remove(&c->issuer_user);
    in_flight_cancel_all(&c->env);
    progress_poller_free(c->poller);
    watches_free(c->watches);
    workqueue_free(c->env.queue);
    quota_waiters_fini(&c->env.quota_waiters);
    cache_fini(&c->env.cache);
    gauge_set(c->env.metrics.jobs, 0);
    free(c);
    return events;
}

void controller_free(struct controller *c)
{
    if (c != NULL)
        event_recorder_free(controller_end(c));
}
