/* Posts events as background requests. Series that are due wait in one list with one ticket for all of them, so that a
 * waiting event needs little memory and is posted with its newest count. */
#include "kube/event_correlator.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

static const struct kube_resource EVENTS = { "", "v1", "events", "Event" };

struct event_recorder {
    struct kube_client *client;
    struct loop *loop;
    char *component, *instance;
    struct event_correlator correlator;
    struct event_series *first, *last; /* due, in order */
    struct kube_ticket ticket;
    bool warned;
    struct timer flush;
    void (*flushed)(void *user); /* NULL: no flush is in progress */
    void *user;
};

static void on_timer(void *user);
static void on_flushed(void *user);
static void on_ticket(void *user);

/* ---- series that are due ---- */

static void queue_add(struct event_recorder *ev, struct event_series *s)
{
    s->state = SERIES_DUE;
    s->due_prev = ev->last;
    s->due_next = NULL;
    *(ev->last != NULL ? &ev->last->due_next : &ev->first) = s;
    ev->last = s;
    kube_ticket_wait(ev->client, &ev->ticket, KUBE_BACKGROUND, on_ticket, ev);
}

static void queue_remove(struct event_recorder *ev, struct event_series *s)
{
    *(s->due_prev != NULL ? &s->due_prev->due_next : &ev->first) = s->due_next;
    *(s->due_next != NULL ? &s->due_next->due_prev : &ev->last) = s->due_prev;
}

/* ---- sending ---- */

static enum event_outcome outcome_of(struct event_recorder *ev, const struct event_series *s,
                                     const struct kube_answer *a)
{
    if (kube_ok(a) || (a->status == 409 && !s->created)) { /* it exists, because an earlier answer was lost */
        ev->warned = false;
        return EVENT_POSTED;
    }
    if (a->status == 404 && s->created)
        return EVENT_GONE;
    bool ending = a->status == 404 || strstr(a->message, "being terminated") != NULL;
    log_msg(ending || ev->warned ? LOG_DEBUG : LOG_WARNING, "could not post event for %s %s/%s (%s): %s",
            s->subject->kind, s->subject->ns, s->subject->name, s->text, a->message);
    ev->warned = ev->warned || !ending;
    return EVENT_FAILED;
}

static void on_sent(void *user, const struct kube_answer *a)
{
    struct event_series *s = user;
    struct event_recorder *ev = s->events;
    bool again = event_correlator_sent(&ev->correlator, s, outcome_of(ev, s, a), loop_now(ev->loop));

    s->call = NULL;
    if (again && ev->flushed != NULL)
        queue_add(ev, s);
    else if (!again && s->subject->gone)
        event_correlator_end(&ev->correlator, s, loop_now(ev->loop));
    else
        timer_set(ev->loop, &s->timer, again ? s->due_ms : s->last_ms + EVENT_SERIES_MS + 1, on_timer, s);
    if (ev->flushed != NULL && ev->correlator.waiting == 0)
        timer_set(ev->loop, &ev->flush, loop_now(ev->loop), on_flushed, ev);
}

static void post_series(struct event_recorder *ev, struct event_series *s)
{
    AUTO_FINI(buf) path = BUF_INIT;
    char name[EVENT_NAME_MAX];

    event_correlator_sending(&ev->correlator, s);
    json_auto_t *body = s->created ? event_patch_body(s) : event_create_body(s, ev->component, ev->instance);
    kube_path(&path, &EVENTS, event_namespace(s->subject), s->created ? event_name(s, name) : NULL, NULL);
    s->call = kube_send(ev->client, &(struct kube_request){ .verb = s->created ? KUBE_MERGE_PATCH : KUBE_CREATE,
                                                            .priority = KUBE_BACKGROUND,
                                                            .path = path.data,
                                                            .body = body,
                                                            .metadata_only = true,
                                                            .discard_body = true,
                                                            .done = on_sent,
                                                            .user = s });
}

static void on_ticket(void *user)
{
    struct event_recorder *ev = user;
    struct event_series *s = ev->first;

    queue_remove(ev, s);
    post_series(ev, s);
    if (ev->first != NULL)
        kube_ticket_wait(ev->client, &ev->ticket, KUBE_BACKGROUND, on_ticket, ev);
}

static void on_timer(void *user)
{
    struct event_series *s = user;

    if (s->state == SERIES_WAITING)
        queue_add(s->events, s);
    else
        event_correlator_end(&s->events->correlator, s, loop_now(s->events->loop));
}

/* ---- the interface ---- */

struct event_recorder *event_recorder_new(struct kube_client *k, const char *component, const char *instance)
{
    struct event_recorder *ev = xcalloc(1, sizeof(*ev));

    ev->client = k;
    ev->loop = kube_client_loop(k);
    ev->component = xstrdup(component);
    ev->instance = xstrdup(instance);
    return ev;
}

static void stop_series(struct event_recorder *ev, struct event_subject *t)
{
    for (struct event_series *s = t->first; s != NULL; s = s->next) {
        timer_clear(ev->loop, &s->timer);
        kube_cancel(TAKE(s->call));
        if (s->state == SERIES_DUE)
            queue_remove(ev, s);
    }
    if (ev->first == NULL)
        kube_ticket_cancel(&ev->ticket);
}

void event_recorder_free(struct event_recorder *ev)
{
    struct map_slot *slot;

    if (ev == NULL)
        return;
    for (size_t i = 0; (slot = map_next(&ev->correlator.subjects, &i)) != NULL;)
        stop_series(ev, slot->value);
    timer_clear(ev->loop, &ev->flush);
    event_correlator_fini(&ev->correlator);
    free(ev->component);
    free(ev->instance);
    free(ev);
}

void event_record(struct event_recorder *ev, const struct event_object *about_object, enum event_type type,
                  const char *reason, const char *about, const char *note)
{
    struct event_series *s = event_correlator_record(&ev->correlator, about_object, type, reason, about, note,
                                                     loop_now(ev->loop), clock_wall());

    if (s == NULL) {
        log_debug("too many events, dropped one for %s %s: %s %s", about_object->kind, about_object->name, reason,
                  note);
        return;
    }
    s->events = ev;
    if (s->state == SERIES_WAITING)
        timer_set(ev->loop, &s->timer, s->due_ms, on_timer, s);
}

void event_recorder_forget(struct event_recorder *ev, const char *uid)
{
    struct event_subject *t = event_correlator_find(&ev->correlator, uid);

    if (t == NULL)
        return;
    for (struct event_series *s = t->first; s != NULL; s = s->next)
        if (s->state == SERIES_IDLE)
            timer_clear(ev->loop, &s->timer);
    event_correlator_gone(&ev->correlator, t);
}

static void on_flushed(void *user)
{
    struct event_recorder *ev = user;
    void (*done)(void *user) = TAKE(ev->flushed); /* once */

    done(ev->user);
}

void event_recorder_flush(struct event_recorder *ev, int64_t max_ms, void (*done)(void *user), void *user)
{
    struct map_slot *slot;

    ev->flushed = done;
    ev->user = user;
    for (size_t i = 0; (slot = map_next(&ev->correlator.subjects, &i)) != NULL;)
        for (struct event_series *s = ((struct event_subject *)slot->value)->first; s != NULL; s = s->next)
            if (s->state == SERIES_WAITING) {
                timer_clear(ev->loop, &s->timer);
                queue_add(ev, s);
            }
    timer_set(ev->loop, &ev->flush, loop_now(ev->loop) + (ev->correlator.waiting > 0 ? max_ms : 0), on_flushed, ev);
}

size_t event_recorder_waiting(const struct event_recorder *ev)
{
    return ev->correlator.waiting;
}
