/* Acquires, renews and releases the Lease. leader_elector_record.c decides; this file sends requests and sets timers. A
 * leader that cannot renew in time reports the loss before another client may acquire the lease. */
#include "kube/leader_elector_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"

enum { RELEASE_MS = 2000 };

static const struct kube_resource LEASES = { "coordination.k8s.io", "v1", "leases", "Lease" };

/* Every function here calls the user's callbacks last, because they may free the elector. */
struct leader_elector {
    struct kube_client *client;
    struct loop *loop;
    char *ns, *name, *identity;
    struct lease_settings settings;
    struct leader_callbacks user;
    struct buf path, all;
    struct lease_record seen;
    json_t *object; /* as last read, with all fields that this program does not know */
    bool holding, failing;
    int64_t sent_ms, renewed_ms;
    struct kube_call *call;
    struct timer next, limit;
    char told[256]; /* the leader that was last passed to on_leader() */
    void (*released)(void *user);
    void *released_user;
    bool releasing;
};

static void poll_lease(void *user);
static void on_limit(void *user);
static void on_seen(void *user, const struct kube_answer *a);
static void on_written(void *user, const struct kube_answer *a);

/* ---- requests ---- */

static void send_request(struct leader_elector *el, enum kube_verb verb, const json_t *body,
                         void (*done)(void *user, const struct kube_answer *a))
{
    el->sent_ms = loop_now(el->loop);
    el->call = kube_send(el->client, &(struct kube_request){
                                         .verb = verb,
                                         .priority = KUBE_URGENT,
                                         .path = verb == KUBE_CREATE ? el->all.data : el->path.data,
                                         .body = body,
                                         .timeout_ms = el->settings.renew_s * 500,
                                         .retry_ms = -1,
                                         .done = done,
                                         .user = el,
                                     });
}

static void get_lease(struct leader_elector *el)
{
    send_request(el, KUBE_GET, NULL, on_seen);
}

static void write_lease(struct leader_elector *el, enum kube_verb verb)
{
    json_auto_t *body = lease_body(&el->settings, verb == KUBE_CREATE ? NULL : el->object, el->releasing, clock_wall());
    send_request(el, verb, body, on_written);
}

static void store_lease(struct leader_elector *el, json_t *object)
{
    json_incref(object);
    json_decref(el->object);
    el->object = object;
    lease_observe(&el->seen, object, loop_now(el->loop));
}

/* ---- next steps ---- */

/* Followers poll at random intervals, so that they do not collide. */
static int64_t pause_ms(const struct leader_elector *el)
{
    int64_t pause = (int64_t)el->settings.retry_s * 1000;
    if (el->holding)
        return pause;
    uint64_t random = hash64(el->identity, strlen(el->identity), (uint64_t)clock_ns());
    return pause + (int64_t)(random % (uint64_t)(pause * 6 / 5));
}

static void requeue(struct leader_elector *el)
{
    int64_t now = loop_now(el->loop), pause = pause_ms(el);
    int64_t due = el->holding ? now + pause : lease_next_ms(&el->settings, &el->seen, pause, now);
    timer_set(el->loop, &el->next, due, poll_lease, el);
}

static void stop_requests(struct leader_elector *el)
{
    timer_clear(el->loop, &el->next);
    timer_clear(el->loop, &el->limit);
    kube_cancel(TAKE(el->call));
}

static void lose_lease(struct leader_elector *el, const char *why)
{
    stop_requests(el);
    el->holding = false;
    el->user.on_lost(el->user.user, why);
}

static void finish_release(void *user)
{
    struct leader_elector *el = user;

    stop_requests(el);
    el->holding = false;
    el->released(el->released_user);
}

static void request_failed(struct leader_elector *el, const struct kube_answer *a)
{
    if (el->releasing) {
        finish_release(el);
        return;
    }
    if (!el->failing || el->holding)
        log_warning("lease %s/%s: %s; trying again", el->ns, el->name, a->message);
    el->failing = true;
    requeue(el);
}

static void notify_leader(struct leader_elector *el)
{
    if (el->seen.holder[0] == '\0' || strcmp(el->seen.holder, el->told) == 0)
        return;
    snprintf(el->told, sizeof(el->told), "%s", el->seen.holder);
    if (el->user.on_leader != NULL)
        el->user.on_leader(el->user.user, el->told);
}

static void report_loss(struct leader_elector *el)
{
    char why[600];
    if (loop_now(el->loop) - el->renewed_ms >= (int64_t)el->settings.renew_s * 1000)
        snprintf(why, sizeof(why), "it could not be renewed for %d s", el->settings.renew_s);
    else
        snprintf(why, sizeof(why), "%s holds it now", el->seen.holder);
    lose_lease(el, why);
}

static void act_on_record(struct leader_elector *el)
{
    switch (lease_next(&el->settings, &el->seen, el->holding, el->renewed_ms, loop_now(el->loop))) {
    case LEASE_CREATE:
        write_lease(el, KUBE_CREATE);
        return;
    case LEASE_TAKE:
    case LEASE_RENEW:
        write_lease(el, KUBE_UPDATE);
        return;
    case LEASE_LOST:
        report_loss(el);
        return;
    case LEASE_WAIT:
        requeue(el);
        notify_leader(el);
        return;
    }
}

/* ---- callbacks ---- */

static void poll_lease(void *user)
{
    struct leader_elector *el = user;

    if (el->call != NULL)
        return;
    if (el->holding)
        act_on_record(el);
    else
        get_lease(el);
}

static void on_limit(void *user)
{
    report_loss(user);
}

/* Releases the lease only if this program still holds it. */
static void release_if_ours(struct leader_elector *el)
{
    if (el->seen.exists && strcmp(el->seen.holder, el->identity) == 0)
        write_lease(el, KUBE_UPDATE);
    else
        finish_release(el);
}

static void on_seen(void *user, const struct kube_answer *a)
{
    struct leader_elector *el = user;

    el->call = NULL;
    if (a->status != 404 && (!kube_ok(a) || a->body == NULL)) {
        request_failed(el, a);
        return;
    }
    store_lease(el, a->status == 404 ? NULL : a->body);
    el->failing = false;
    if (el->releasing)
        release_if_ours(el);
    else
        act_on_record(el);
}

static void lease_written(struct leader_elector *el, const struct kube_answer *a)
{
    bool first = !el->holding;

    store_lease(el, a->body);
    el->failing = false;
    el->holding = true;
    el->renewed_ms = el->sent_ms;
    timer_set(el->loop, &el->limit, el->renewed_ms + (int64_t)el->settings.renew_s * 1000, on_limit, el);
    requeue(el);
    if (first)
        el->user.on_leading(el->user.user);
}

static void on_written(void *user, const struct kube_answer *a)
{
    struct leader_elector *el = user;

    el->call = NULL;
    if (a->status == 409 || (a->status == 404 && el->seen.exists)) /* another client was faster: read the lease again */
        get_lease(el);
    else if (!kube_ok(a) || a->body == NULL)
        request_failed(el, a);
    else if (el->releasing)
        finish_release(el);
    else
        lease_written(el, a);
}

/* ---- the interface ---- */

struct leader_elector *leader_elector_new(struct kube_client *k, const struct lease_settings *s,
                                          const struct leader_callbacks *u)
{
    struct leader_elector *el = xcalloc(1, sizeof(*el));

    el->client = k;
    el->loop = kube_client_loop(k);
    el->ns = xstrdup(s->ns);
    el->name = xstrdup(s->name);
    el->identity = xstrdup(s->identity);
    el->settings = *s;
    el->settings.ns = el->ns;
    el->settings.name = el->name;
    el->settings.identity = el->identity;
    el->user = *u;
    el->path = el->all = (struct buf)BUF_INIT;
    kube_path(&el->path, &LEASES, el->ns, el->name, NULL);
    kube_path(&el->all, &LEASES, el->ns, NULL, NULL);
    timer_set(el->loop, &el->next, loop_now(el->loop), poll_lease, el);
    return el;
}

void leader_elector_release(struct leader_elector *el, void (*done)(void *user), void *user)
{
    bool maybe = el->holding || el->call != NULL; /* a request in flight may be acquiring it */
    int64_t now = loop_now(el->loop);

    stop_requests(el);
    el->releasing = true;
    el->released = done;
    el->released_user = user;
    timer_set(el->loop, &el->limit, maybe ? now + RELEASE_MS : now, finish_release, el);
    if (el->holding)
        write_lease(el, KUBE_UPDATE);
    else if (maybe)
        get_lease(el);
}

void leader_elector_free(struct leader_elector *el)
{
    if (el == NULL)
        return;
    stop_requests(el);
    json_decref(el->object);
    buf_fini(&el->path);
    buf_fini(&el->all);
    free(el->ns);
    free(el->name);
    free(el->identity);
    free(el);
}
