#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/controller_internal.h"

enum {
    PROGRESS_JOBS_A_SECOND = 10,
    RUNNING_MS = 500,
    COUNTS_MS = 1000,
    PAUSE_FIRST_MS = 1000,
    PAUSE_MAX_MS = 300 * 1000,
    PAUSE_DOUBLINGS = 9,
    CONFLICT_FIRST_MS = 100, /* the watch tells sooner */
    CONFLICTS_MAX = 6,       /* then the version is not to be trusted, as after a restore of the API server's data */
    LOST_MS = 5000,          /* beyond what a watch is late */
    LOST_DOUBLINGS = 7,
};

/* ---- deciding ---- */

/* How long a change may wait for others that come with it: what people act on goes at once, a job that begins to run is
 * told with the pods that follow its leader's, and counts alone may be a second old. */
static int64_t patience_ms(const struct record *r, unsigned differs)
{
    if (differs == STATUS_PROGRESS)
        return 0;
    if ((differs & STATUS_CONDITIONS) == 0)
        return COUNTS_MS;
    return str_eq(r->status.state, "Running") && !job_status_is(r->acked, COND_RUNNING) ? RUNNING_MS : 0;
}

/* Nothing will follow by itself, or not before somebody does something. */
static bool is_final(const struct job_status *s)
{
    for (size_t i = 0; i < s->nconds; i++)
        if (condition_is_auxiliary(s->conds[i].type) && s->conds[i].is_true)
            return true;
    return job_status_finished(s) || job_status_is(s, COND_SUSPENDED);
}

struct writer_step writer_decide(const struct record *r, unsigned differs, int64_t progress_pause_ms, int64_t now_ms)
{
    int64_t due = MAX(r->held ? 0 : r->changed_ms + patience_ms(r, differs), r->tells.until_ms);

    if (differs == 0)
        return (struct writer_step){ WRITER_NOTHING, 0 };
    if (differs == STATUS_PROGRESS && r->progress_written_ms != 0 &&
        now_ms - r->progress_written_ms < progress_pause_ms - progress_pause_ms / 10)
        return (struct writer_step){ WRITER_NOTHING, 0 }; /* with the next that is heard */
    if (now_ms < due)
        return (struct writer_step){ WRITER_LATER, due };
    bool at_once = r->held || ((differs & STATUS_CONDITIONS) != 0 && is_final(&r->status));
    return (struct writer_step){ at_once ? WRITER_AT_ONCE : WRITER_IN_TURN, 0 };
}

int64_t writer_pause_ms(int failures, bool refused)
{
    return refused ? MIN((int64_t)PAUSE_FIRST_MS << MIN(failures - 1, PAUSE_DOUBLINGS), (int64_t)PAUSE_MAX_MS)
                   : PAUSE_FIRST_MS;
}

int64_t writer_patience_ms(int rewrites)
{
    return (int64_t)LOST_MS << MIN(rewrites, LOST_DOUBLINGS);
}

/* ---- what others took away ---- */

int64_t writer_version_of(const json_t *object)
{
    const char *text = json_string_value(json_at(object, "metadata.resourceVersion"));
    int64_t version;
    return text != NULL && str_i64(text, 0, INT64_MAX, &version, NULL) == 0 ? version : 0;
}

static void see_foreign(struct controller *c, struct record *r, const json_t *object)
{
    int64_t version = writer_version_of(object);
    if (version <= r->version) /* older than the answer to our own patch, which had them */
        return;
    r->version = version;
    job_status_set_foreign(&r->status, json_object_get(object, "status"));
    if (r->conflicts == 0)
        return;
    r->conflicts = 0;
    r->tells.until_ms = 0;
    controller_wake(c, r);
}

void writer_saw(struct controller *c, struct record *r, const json_t *object)
{
    const json_t *status = json_object_get(object, "status");
    record_drop_status(&r->seen);
    see_foreign(c, r, object);
    if (r->view.managed_elsewhere || r->view.deleting)
        return;
    AUTO_FINI(job_status) is = { .nconds = 0 };
    job_status_parse(status, &is);
    if (!job_status_lacks(&is, &r->status))
        return;
    r->seen = xmemdup(&is, sizeof(is));
    memset(&is, 0, sizeof(is));
    r->seen_ms = clock_ms();
    if (r->acked == NULL && !r->writing) /* else it is looked at when that is written */
        workqueue_add_at(c->queue, r->key, r->seen_ms + writer_patience_ms(r->rewrites));
}

/* The watch tells of our own writes a little later: what it told before that is no news. */
static void detect_loss(struct controller *c, struct record *r)
{
    if (r->seen == NULL || r->acked != NULL)
        return;
    int64_t due = r->seen_ms + writer_patience_ms(r->rewrites);
    if (clock_ms() < due) {
        workqueue_add_at(c->queue, r->key, due);
        return;
    }
    if (job_status_lacks(r->seen, &r->status)) {
        log_info("%s %s: status was changed by another writer; rewriting it", c->kind->resource.kind, r->key);
        r->acked = TAKE(r->seen);
        r->changed_ms = clock_ms();
        r->rewrites++;
    }
    record_drop_status(&r->seen);
}

/* ---- acting ---- */

/* A refusal is told once; the same words again and again help nobody. */
static void failed(struct task *t, struct record *r, const struct kube_answer *a)
{
    bool refused = a->status >= 400 && a->status < 500 && a->status != 429;
    bool first = ++r->tells.failures == 1;

    r->tells.until_ms = clock_ms() + writer_pause_ms(r->tells.failures, refused);
    workqueue_add_at(t->c->queue, r->key, r->tells.until_ms);
    log_msg(first ? LOG_WARNING : LOG_DEBUG, "%s %s: its status could not be written: %s", t->c->kind->resource.kind,
            r->key, a->message);
    if (!first || !refused)
        return;
    auto_free char *note = xasprintf("Error writing the status: %s", a->message);
    controller_event(t->c, r, true, "FailedUpdateStatus", "", note);
}

/* Somebody has written to the object, and the watch has not told yet what: his conditions are kept. */
static void conflicted(struct task *t, struct record *r)
{
    r->tells.until_ms = clock_ms() + ((int64_t)CONFLICT_FIRST_MS << MIN(r->conflicts, CONFLICTS_MAX));
    if (++r->conflicts > CONFLICTS_MAX)
        r->version = 0;
    workqueue_add_at(t->c->queue, r->key, r->tells.until_ms);
    log_debug("%s %s: its status was written by somebody else meanwhile: tried again", t->c->kind->resource.kind,
              r->key);
}

/* r->acked may have become what was sent, if the job went on meanwhile: when the server did not take it, the truth is
 * what it had before. */
static void on_written(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    r->writing = r->writing_counts = false;
    if (kube_ok(a)) {
        r->tells = (struct pause){ 0 };
        r->conflicts = 0;
        if (a->body != NULL) /* nobody else has written since the version that this one replaced */
            r->version = MAX(r->version, writer_version_of(a->body));
        r->seen_ms = clock_ms(); /* soon the watch tells of this */
        controller_wake(t->c, r);
        return;
    }
    record_drop_status(&r->acked);
    r->acked = TAKE(t->before);
    if (a->status == 409)
        conflicted(t, r);
    else if (a->status != 404) /* else the job is gone: the watch will say so */
        failed(t, r, a);
}

static void send(struct controller *c, struct record *r, enum kube_priority priority)
{
    json_auto_t *patch = job_status_patch(c->kind, r->view.uid, r->version, r->acked, &r->status);
    bool whole = json_at(patch, "metadata.resourceVersion") != NULL;
    AUTO_FINI(buf) path = BUF_INIT;
    if (patch == NULL) {
        record_drop_status(&r->acked);
        return;
    }
    kube_path(&path, &c->kind->resource, r->view.ns, r->view.name, "status");
    task_send(c, r, NULL,
              (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                     .priority = priority,
                                     .path = path.data,
                                     .body = patch,
                                     .metadata_only = true,
                                     .discard_body = !whole },
              on_written);
    r->writing_counts = job_status_counts_differ(r->acked, &r->status);
    task_last(c)->before = TAKE(r->acked); /* until told otherwise the server has r->status */
    r->writing = true;
    if (json_object_get(json_object_get(patch, "status"), "progress") != NULL)
        r->progress_written_ms = clock_ms();
}

static void on_turn(void *user)
{
    struct record *r = user;
    if (!r->writing && r->acked != NULL)
        send(r->controller, r, KUBE_LOW);
}

void writer_write(struct controller *c, struct record *r)
{
    if (r->writing)
        return;
    detect_loss(c, r);
    if (r->acked == NULL)
        return;
    unsigned differs = job_status_differs(r->acked, &r->status);
    int64_t progress_pause_ms = MAX(c->settings.progress_ms, (int64_t)c->polled * 1000 / PROGRESS_JOBS_A_SECOND);
    struct writer_step step = writer_decide(r, differs, progress_pause_ms, clock_ms());
    if (step.act != WRITER_IN_TURN)
        kube_ticket_cancel(&r->tell);
    if (differs == 0)
        record_drop_status(&r->acked);
    else if (step.act == WRITER_LATER)
        workqueue_add_at(c->queue, r->key, step.at_ms);
    else if (step.act == WRITER_AT_ONCE)
        send(c, r, KUBE_NORMAL);
    else if (step.act == WRITER_IN_TURN) {
        r->controller = c;
        kube_ticket_wait(c->client, &r->tell, KUBE_LOW, on_turn, r);
    }
}
