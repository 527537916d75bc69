/* Decides when a status is written (pure), and writes it: one merge patch in flight per job, guarded by resourceVersion
 * when it contains conditions. Conditions are written at once, counts within a second, progress at its interval. */
#include "control/status_writer.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "control/in_flight.h"

enum {
    RUNNING_DELAY_MS = 500,
    COUNTS_DELAY_MS = 1000,
    RETRY_FIRST_MS = 1000,
    RETRY_MAX_MS = 300 * 1000,
    RETRY_DOUBLINGS = 9,
    CONFLICT_FIRST_MS = 100, /* the watch usually reports sooner */
    CONFLICTS_MAX = 6,       /* then the version is not trusted, as after a restore of etcd */
    RESTORE_MS = 5000,       /* more than a watch lags */
    RESTORE_DOUBLINGS = 7,
};

/* ---- deciding ---- */

/* How long a change may wait for others. Changes that users act on are written at once. The start of a job waits for
 * the pods that start after its leader. Counts alone are written within a second. */
static int64_t batch_delay_ms(const struct cache_entry *entry, unsigned differs)
{
    if (differs == STATUS_PROGRESS || (differs & STATUS_IDENTITY) != 0) /* pods wait for it */
        return 0;
    if ((differs & STATUS_CONDITIONS) == 0)
        return COUNTS_DELAY_MS;
    return str_eq(entry->status.state, "Running") && !job_status_is(entry->acked, COND_RUNNING) ? RUNNING_DELAY_MS : 0;
}

/* No other change will cause a reconcile. */
static bool is_settled(const struct job_status *s)
{
    for (size_t i = 0; i < s->nconds; i++)
        if (condition_is_auxiliary(s->conds[i].type) && s->conds[i].is_true)
            return true;
    return job_status_finished(s) || job_status_is(s, COND_SUSPENDED);
}

struct status_write_step status_writer_decide(const struct cache_entry *entry, unsigned differs,
                                              int64_t progress_interval_ms, int64_t now_ms)
{
    int64_t due = MAX(entry->waits_for_counts ? 0 : entry->changed_ms + batch_delay_ms(entry, differs),
                      entry->status_backoff.until_ms);

    if (differs == 0)
        return (struct status_write_step){ STATUS_WRITE_NOTHING, 0 };
    if (differs == STATUS_PROGRESS && entry->progress_written_ms != 0 &&
        now_ms - entry->progress_written_ms < progress_interval_ms - progress_interval_ms / 10)
        return (struct status_write_step){ STATUS_WRITE_NOTHING, 0 }; /* with the next poll */
    if (now_ms < due)
        return (struct status_write_step){ STATUS_WRITE_LATER, due };
    bool now = entry->waits_for_counts || (differs & STATUS_IDENTITY) != 0 ||
               ((differs & STATUS_CONDITIONS) != 0 && is_settled(&entry->status));
    return (struct status_write_step){ now ? STATUS_WRITE_NOW : STATUS_WRITE_QUEUED, 0 };
}

int64_t status_writer_retry_delay_ms(int failures, bool refused)
{
    return refused ? MIN((int64_t)RETRY_FIRST_MS << MIN(failures - 1, RETRY_DOUBLINGS), (int64_t)RETRY_MAX_MS)
                   : RETRY_FIRST_MS;
}

int64_t status_writer_restore_delay_ms(int rewrites)
{
    return (int64_t)RESTORE_MS << MIN(rewrites, RESTORE_DOUBLINGS);
}

/* ---- fields that other writers removed ---- */

static void observe_foreign(struct controller_env *env, struct cache_entry *entry, const json_t *object)
{
    int64_t version = object_version(json_object_get(object, "metadata"));
    if (version <= entry->status_version) /* older than the answer to our own patch */
        return;
    entry->status_version = version;
    job_status_set_foreign(&entry->status, json_object_get(object, "status"));
    if (entry->conflicts == 0)
        return;
    entry->conflicts = 0;
    entry->status_backoff.until_ms = 0;
    env_enqueue(env, entry);
}

void status_writer_observe(struct controller_env *env, struct cache_entry *entry, const json_t *object)
{
    const json_t *status = json_object_get(object, "status");
    job_status_release(&entry->observed);
    observe_foreign(env, entry, object);
    if (entry->spec.managed_elsewhere || entry->spec.deleting)
        return;
    AUTO_FINI(job_status) is = { .nconds = 0 };
    job_status_parse(status, &is);
    if (!job_status_lacks(&is, &entry->status))
        return;
    entry->observed = xmemdup(&is, sizeof(is));
    memset(&is, 0, sizeof(is));
    entry->observed_ms = env_clock(env);
    if (entry->acked == NULL && !entry->status_in_flight) /* else it is checked when that is written */
        workqueue_add_at(env->queue, entry->key, entry->observed_ms + status_writer_restore_delay_ms(entry->restores));
}

/* The watch reports our own writes with a delay; its reports before that are outdated. */
static void detect_removed(struct controller_env *env, struct cache_entry *entry)
{
    if (entry->observed == NULL || entry->acked != NULL)
        return;
    int64_t due = entry->observed_ms + status_writer_restore_delay_ms(entry->restores);
    if (env_clock(env) < due) {
        workqueue_add_at(env->queue, entry->key, due);
        return;
    }
    if (job_status_lacks(entry->observed, &entry->status)) {
        log_info("%s %s: status was changed by another writer; rewriting it", env->kind->resource.kind, entry->key);
        entry->acked = TAKE(entry->observed);
        entry->changed_ms = env_clock(env);
        entry->restores++;
    }
    job_status_release(&entry->observed);
}

struct job_status *status_writer_change(struct controller_env *env, struct cache_entry *entry)
{
    if (entry->acked == NULL) {
        entry->changed_ms = env_clock(env);
        entry->acked = xmalloc(sizeof(*entry->acked));
        job_status_copy(&entry->status, entry->acked);
    }
    return &entry->status;
}

/* ---- acting ---- */

/* A refusal is reported once, not at each retry. */
static void on_failed(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    bool refused = a->status >= 400 && a->status < 500 && a->status != 429;
    bool first = ++entry->status_backoff.failures == 1;

    entry->status_backoff.until_ms =
        env_clock(req->env) + status_writer_retry_delay_ms(entry->status_backoff.failures, refused);
    workqueue_add_at(req->env->queue, entry->key, entry->status_backoff.until_ms);
    log_msg(first ? LOG_WARNING : LOG_DEBUG, "%s %s: cannot write the status: %s", req->env->kind->resource.kind,
            entry->key, a->message);
    if (!first || !refused)
        return;
    auto_free char *note = xasprintf("Error writing the status: %s", a->message);
    env_event(req->env, entry, true, "FailedUpdateStatus", "", note);
}

/* Another writer changed the object, and the watch has not reported it yet: its conditions must be kept. */
static void on_conflict(struct in_flight_request *req, struct cache_entry *entry)
{
    entry->status_backoff.until_ms =
        env_clock(req->env) + ((int64_t)CONFLICT_FIRST_MS << MIN(entry->conflicts, CONFLICTS_MAX));
    if (++entry->conflicts > CONFLICTS_MAX)
        entry->status_version = 0;
    workqueue_add_at(req->env->queue, entry->key, entry->status_backoff.until_ms);
    log_debug("%s %s: the status was changed by another writer; retrying", req->env->kind->resource.kind, entry->key);
}

/* If the server did not accept the patch, it still has the status from before it, regardless of later decisions. */
static void on_written(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    entry->status_in_flight = entry->counts_in_flight = entry->identity_in_flight = false;
    if (kube_ok(a)) {
        entry->status_backoff = (struct retry_backoff){ 0 };
        entry->conflicts = 0;
        if (a->body != NULL) /* the patch was for the newest version, so this one is newer */
            entry->status_version = MAX(entry->status_version, object_version(json_object_get(a->body, "metadata")));
        entry->observed_ms = env_clock(req->env); /* the watch will report it soon */
        env_enqueue(req->env, entry);
        return;
    }
    job_status_release(&entry->acked);
    entry->acked = TAKE(req->before);
    if (a->status == 409)
        on_conflict(req, entry);
    else if (a->status != 404) /* 404: the job was deleted; the watch will report it */
        on_failed(req, entry, a);
}

static void send_patch(struct controller_env *env, struct cache_entry *entry, enum kube_priority priority)
{
    json_auto_t *patch =
        job_status_patch(env->kind, entry->spec.uid, entry->status_version, entry->acked, &entry->status);
    bool whole = json_at(patch, "metadata.resourceVersion") != NULL;
    AUTO_FINI(buf) path = BUF_INIT;
    if (patch == NULL) {
        job_status_release(&entry->acked);
        return;
    }
    kube_path(&path, &env->kind->resource, entry->spec.ns, entry->spec.name, "status");
    in_flight_send(env, entry, NULL,
                   (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                          .priority = priority,
                                          .path = path.data,
                                          .body = patch,
                                          .metadata_only = true,
                                          .discard_body = !whole },
                   on_written);
    entry->counts_in_flight = job_status_counts_differ(entry->acked, &entry->status);
    entry->identity_in_flight = !job_identity_equal(&entry->acked->identity, &entry->status.identity);
    in_flight_last(env)->before = TAKE(entry->acked); /* assumed until the answer: the server has entry->status */
    entry->status_in_flight = true;
    if (json_object_get(json_object_get(patch, "status"), "progress") != NULL)
        entry->progress_written_ms = env_clock(env);
}

static void on_turn(void *user)
{
    struct cache_entry *entry = user;
    if (!entry->status_in_flight && entry->acked != NULL)
        send_patch(entry->env, entry, KUBE_LOW);
}

void status_writer_write(struct controller_env *env, struct cache_entry *entry, int64_t progress_interval_ms)
{
    if (entry->status_in_flight)
        return;
    detect_removed(env, entry);
    if (entry->acked == NULL)
        return;
    unsigned differs = job_status_differs(entry->acked, &entry->status);
    struct status_write_step step = status_writer_decide(entry, differs, progress_interval_ms, env_clock(env));
    if (step.act != STATUS_WRITE_QUEUED)
        kube_ticket_cancel(&entry->status_ticket);
    if (differs == 0)
        job_status_release(&entry->acked);
    else if (step.act == STATUS_WRITE_LATER)
        workqueue_add_at(env->queue, entry->key, step.at_ms);
    else if (step.act == STATUS_WRITE_NOW)
        send_patch(env, entry, KUBE_NORMAL);
    else if (step.act == STATUS_WRITE_QUEUED) {
        entry->env = env;
        kube_ticket_wait(env->client, &entry->status_ticket, KUBE_LOW, on_turn, entry);
    }
}
