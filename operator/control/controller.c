#include "control/controller_internal.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

enum { POLLS_AT_ONCE = 16, CLAIMS_AGAIN_MS = 4000, ENSURE_AGAIN_MS = 60000, ASK_AGAIN_MS = 1000 };

int64_t controller_now(const struct controller *c)
{
    return kube_client_time(c->client);
}

void controller_wake(struct controller *c, const struct record *r)
{
    if (r->known)
        workqueue_add(c->queue, r->key);
}

void controller_event(struct controller *c, const struct record *r, bool warning, const char *reason, const char *about,
                      const char *note)
{
    const struct event_object o = { .api_version = c->kind->api_version,
                                    .kind = c->kind->resource.kind,
                                    .ns = r->view.ns,
                                    .name = r->view.name,
                                    .uid = r->view.uid };
    event_record(c->events, &o, warning ? EVENT_WARNING : EVENT_NORMAL, reason, about, note);
}

/* ---- one look at one job ---- */

static bool is_ours(const struct record *r, const struct beside *b)
{
    return b->uid != NULL && str_eq(b->owner_uid, r->view.uid);
}

/* The watch tells that the job file is there. That it has today's addresses only an answer tells. */
static bool has_job_file(const struct record *r)
{
    return r->config_ensured || (r->view.has_model && is_ours(r, &r->config));
}

static struct observed observe(const struct record *r)
{
    return (struct observed){
        .pods = (const struct pod_info *const *)r->pods,
        .npods = r->npods,
        .services = (const struct service_info *const *)r->services,
        .nservices = r->nservices,
        .claims = r->claims,
        .claims_known = r->claims_known,
        .claims_fault = r->claims_fault,
        .config_ensured = has_job_file(r),
        .policy_ensured = r->policy_ensured || is_ours(r, &r->policy),
        .tensorboard_ensured = r->tensorboard_ensured,
        .tensorboard_found = r->tensorboard_found,
        .group = r->group,
        .refused = r->refused.name != NULL ? &r->refused : NULL,
        .tensorboard_refused = r->tensorboard_refused.name != NULL ? &r->tensorboard_refused : NULL,
        .progress = r->progress,
        .progress_ms = r->progress_ms,
    };
}

/* What was made or found long ago may have been deleted by somebody: it is looked at again when new pods need it. */
static void doubt(struct record *r)
{
    int64_t now = clock_ms();
    bool missing = false;
    for (size_t i = 0; r->claims_known && i < r->view.nclaims; i++)
        missing |= !r->claims[i].found;
    if (missing && now - r->claims_ms >= CLAIMS_AGAIN_MS)
        r->claims_known = false;
    if (r->npods < (size_t)job_spec_replicas(&r->view) && r->ensured_ms != 0 && now - r->ensured_ms >= ENSURE_AGAIN_MS)
        r->config_ensured = r->policy_ensured = false;
}

static void say_events(struct controller *c, const struct record *r, const struct plan *p)
{
    for (size_t i = 0; i < p->nevents; i++) {
        const struct plan_event *ev = &p->events[i];
        controller_event(c, r, ev->warning, ev->reason, ev->about, ev->note);
        log_msg(ev->warning ? LOG_WARNING : LOG_INFO, "%s %s: %s: %s", c->kind->resource.kind, r->key, ev->reason,
                ev->note);
    }
}

static void count_changes(const struct controller *c, const struct record *r, const struct job_status *is,
                          int restarted)
{
    static const struct {
        enum condition_type type;
        const char *what;
    } COUNTED[] = { { COND_CREATED, "created" }, { COND_SUCCEEDED, "successful" }, { COND_FAILED, "failed" } };
    for (size_t i = 0; i < COUNT_OF(COUNTED); i++)
        if (job_status_is(is, COUNTED[i].type) && !job_status_is(&r->status, COUNTED[i].type))
            meters_job(c, r, COUNTED[i].what, 1);
    if (restarted > 0)
        meters_job(c, r, "restarted", (uint64_t)restarted);
}

static void log_state(const struct controller *c, const struct record *r, const struct job_status *is)
{
    if (!str_eq(is->state, r->status.state))
        log_info("%s %s: %s%s%s", c->kind->resource.kind, r->key, is->state, is->ready[0] != '\0' ? ", ready " : "",
                 is->ready);
}

/* The status as decided; what the server has is kept until it has taken the new one. News for people are told at once,
 * even when what was to be told before was refused. */
static void take_status(struct controller *c, struct record *r, struct plan *p)
{
    unsigned differs = job_status_differs(&r->status, &p->status);
    if (differs == 0)
        return;
    if ((differs & STATUS_CONDITIONS) != 0)
        r->tells = (struct pause){ 0 };
    count_changes(c, r, &p->status, p->restarted);
    log_state(c, r, &p->status);
    if (r->acked == NULL) {
        r->changed_ms = clock_ms();
        r->acked = xmalloc(sizeof(*r->acked));
        *r->acked = r->status;
    } else {
        job_status_fini(&r->status);
    }
    r->status = p->status;
    memset(&p->status, 0, sizeof(p->status));
}

static void set_poll(struct controller *c, struct record *r, bool poll)
{
    if (poll == r->poll)
        return;
    r->poll = poll;
    c->polled += poll ? 1 : (size_t)-1;
    if (poll)
        workqueue_add_at(c->polls, r->key, clock_ms() + 500);
    else
        workqueue_drop(c->polls, r->key);
}

static void work(void *user, const char *key);

static void on_turn(void *user)
{
    struct record *r = user;
    r->begun = r->granted = true;
    work(r->controller, r->key);
}

/* Jobs send what they have to send in turns (control/fair.h), as fast as the API server takes it: what a thousand jobs,
 * or a job of a thousand replicas, are still to make is not kept, and does not stand before what another job needs. */
static void act(struct controller *c, struct record *r, const struct plan *p)
{
    bool begun = r->begun || r->npods + r->nservices > 0;
    bool granted = r->granted || (p->nactions > 0 && dispatch_has_room(c->dispatch));
    r->granted = false;
    r->begun = begun || granted;
    bool more = r->begun ? apply_plan(c, r, p, granted) : p->nactions > 0;
    r->controller = c;
    if (more)
        dispatch_wait(c->dispatch, &r->turn, on_turn, r);
    else
        dispatch_leave(&r->turn);
}

static bool all_wait(const struct record *r)
{
    for (size_t i = 0; i < r->npods; i++)
        if (r->pods[i]->phase != POD_PENDING)
            return false;
    return r->npods > 0;
}

static bool one_is_being_made(const struct record *r)
{
    for (size_t i = 0; i < r->npods; i++)
        if (r->pods[i]->creating)
            return true;
    return false;
}

/* Suspended and resumed before anybody looked, as by a queue that sends it elsewhere: pods that wait were made for the
 * templates before that, so the suspension is made up for. Who is being made cannot be deleted yet: its answer brings
 * the next look. A job of which anything runs goes on as it is. */
static bool makes_up(struct controller *c, struct record *r)
{
    bool now = r->resumed_unseen && all_wait(r);
    r->resumed_unseen = now && one_is_being_made(r);
    if (now && !r->resumed_unseen)
        workqueue_add(c->queue, r->key);
    return now;
}

static void look(struct controller *c, struct record *r, int64_t now, struct plan *ret)
{
    struct observed seen = observe(r);
    bool suspend = r->view.suspend;
    r->view.suspend |= makes_up(c, r);
    plan_keep_size(&r->view, &r->status, &seen);
    plan_job(&r->view, &r->status, &seen, &c->settings.plan, now, ret);
    r->view.suspend = suspend;
}

static void reconcile(struct controller *c, struct record *r)
{
    AUTO_FINI(plan) p = { 0 };
    int64_t now = controller_now(c);
    doubt(r);
    look(c, r, now, &p);
    take_status(c, r, &p);
    meters_state(c, r, r->status.state);
    act(c, r, &p);
    say_events(c, r, &p);
    writer_write(c, r);
    set_poll(c, r, p.poll);
    if (p.next_ms > 0)
        workqueue_add_at(c->queue, r->key, clock_ms() + MAX(p.next_ms - now, 1));
    for (int i = 0; i < MAKE_KINDS; i++)
        if (r->makes[i].until_ms > clock_ms())
            workqueue_add_at(c->queue, r->key, r->makes[i].until_ms);
    if (r->deletes.until_ms > clock_ms())
        workqueue_add_at(c->queue, r->key, r->deletes.until_ms);
}

/* Its pods and services are known. While they may not be listed (403, as from an API server that has just started) it
 * would look as if all of them had vanished. */
static bool sees(const struct controller *c, const struct record *r)
{
    const struct strlist *namespaces = c->settings.namespaces;
    for (size_t i = 0; i + c->in_namespace <= c->nreflectors; i += c->in_namespace) {
        const char *ns = namespaces->n > 0 ? namespaces->items[i / c->in_namespace] : NULL;
        if (ns != NULL && !str_eq(ns, r->view.ns))
            continue;
        bool all = reflector_synced(c->reflectors[i + 1]) && reflector_synced(c->reflectors[i + 2]);
        for (size_t k = 3; k < c->in_namespace; k++) /* without these it looks for itself */
            all = all && (reflector_synced(c->reflectors[i + k]) || reflector_trouble(c->reflectors[i + k]) != NULL);
        return all;
    }
    return false;
}

/* ---- jobs that may be gone ---- */

static void on_job_asked(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    const json_t *meta = json_object_get(a->body, "metadata");
    bool gone =
        a->status == 404 || (kube_ok(a) && (!str_eq(json_string_value(json_object_get(meta, "uid")), r->view.uid) ||
                                            json_object_get(meta, "deletionTimestamp") != NULL));
    r->asked = false;
    r->unsure = gone;
    workqueue_add_at(t->c->queue, r->key, clock_ms() + (gone ? ASK_AGAIN_MS : 0)); /* soon the watch will tell */
}

/* Children were found to be gone by a list, after a gap in the watch. The list of jobs may come later than theirs, so
 * the job itself may be gone, and then nothing is made in its place: who has that name now would find it in its way. */
static bool is_there(struct controller *c, struct record *r)
{
    AUTO_FINI(buf) path = BUF_INIT;
    if (!r->unsure || r->view.deleting)
        return true;
    if (r->asked)
        return false;
    r->asked = true;
    kube_path(&path, &c->kind->resource, r->view.ns, r->view.name, NULL);
    task_send(
        c, r, NULL,
        (struct kube_request){ .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = path.data, .metadata_only = true },
        on_job_asked);
    return false;
}

static void work(void *user, const char *key)
{
    struct controller *c = user;
    struct record *r = store_find(&c->store, key);
    if (r == NULL || !r->known || !sees(c, r) || !is_there(c, r))
        return;
    int64_t started = clock_ns();
    reconcile(c, r);
    counter_add(c->metrics.reconciles, 1);
    histogram_observe(c->metrics.time, (double)(clock_ns() - started) * 1e-9);
}

/* ---- its life ---- */

bool controller_synced(const struct controller *c)
{
    for (size_t i = 0; i < c->nreflectors; i++)
        if (!reflector_synced(c->reflectors[i]) && reflector_trouble(c->reflectors[i]) == NULL)
            return false;
    return true;
}

struct controller *controller_new(struct kube_client *k, const struct job_kind *kind,
                                  const struct controller_settings *s)
{
    struct controller *c = xcalloc(1, sizeof(*c));
    c->client = k;
    c->loop = kube_client_loop(k);
    c->kind = kind;
    c->settings = *s;
    c->dispatch = s->dispatch;
    c->queue = workqueue_new(c->loop, kind->resource.plural, s->workers, work, c, s->registry);
    c->polls =
        workqueue_new(c->loop, kind->own_processes ? "progress" : "progress-other", POLLS_AT_ONCE, poll_work, c, NULL);
    c->http = http_client_new(c->loop, NULL, false, POLLS_AT_ONCE);
    c->events = event_recorder_new(k, kind->controller, s->instance);
    meters_init(c);
    watch_start(c);
    return c;
}

struct event_recorder *controller_end(struct controller *c)
{
    struct event_recorder *told = c->events;

    apply_cancel_all(c);
    poll_cancel_all(c);
    for (size_t i = 0; i < c->nreflectors; i++)
        reflector_free(c->reflectors[i]);
    free(c->reflectors);
    http_client_free(c->http);
    workqueue_free(c->polls);
    workqueue_free(c->queue);
    store_fini(&c->store);
    gauge_set(c->metrics.jobs, 0);
    free(c);
    return told;
}

void controller_free(struct controller *c)
{
    if (c != NULL)
        event_recorder_free(controller_end(c));
}
