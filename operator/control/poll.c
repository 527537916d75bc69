/* The chiefs' /progress, asked now and then: soon after the start, then less and less often up to the usual pause. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/controller_internal.h"
#include "control/training_progress.h"

enum { POLL_TIMEOUT_MS = 5000, POLL_PORT = 8080, POLL_FIRST_MS = 1000, POLLS_A_SECOND = 10 };

struct poll {
    struct poll *next, **link;
    struct controller *c;
    char *key, *uid;
    struct http_call *call;
};

static void poll_free(struct poll *p)
{
    *p->link = p->next;
    if (p->next != NULL)
        p->next->link = p->link;
    free(p->key);
    free(p->uid);
    free(p);
}

/* As long again as training has lasted, within bounds. */
static void ask_again(struct controller *c, const struct record *r)
{
    int64_t most = MAX(c->settings.progress_ms, (int64_t)c->polled * 1000 / POLLS_A_SECOND);
    int64_t age = controller_now(c) - r->status.start_ms;
    workqueue_add_at(c->polls, r->key, clock_ms() + MIN(most, MAX(POLL_FIRST_MS, age)));
}

static void take(const struct controller *c, struct record *r, struct training_progress *heard)
{
    training_progress_fini(&r->progress);
    r->progress = *heard;
    heard->metrics = NULL;
    r->progress_ms = controller_now(c);
}

static void on_answer(void *user, const struct http_answer *a)
{
    struct poll *p = user;
    struct controller *c = p->c;
    struct record *r = store_find(&c->store, p->key);
    AUTO_FINI(training_progress) heard = { 0 };
    if (r != NULL && r->known && str_eq(r->view.uid, p->uid)) {
        r->polling = false;
        if (a->status == 200 && training_progress_parse(a->body, a->len, &heard) == 0) {
            take(c, r, &heard);
            controller_wake(c, r);
        } else {
            log_debug("%s %s: no progress: %s", c->kind->resource.kind, r->key,
                      a->status == 0 ? a->err->msg : "not understood");
        }
        if (r->poll)
            ask_again(c, r);
    }
    poll_free(p);
}

/* It becomes a part of a URL. */
static bool is_address(const char *ip)
{
    return ip != NULL && ip[0] != '\0' && ip[strspn(ip, "0123456789abcdefABCDEF.:")] == '\0';
}

static const struct pod_info *leader_pod(const struct record *r)
{
    enum role leader = job_spec_leader(&r->view);
    for (size_t i = 0; i < r->npods; i++)
        if (r->pods[i]->role == leader && r->pods[i]->index == 0 && r->pods[i]->phase == POD_RUNNING &&
            is_address(r->pods[i]->ip) && str_eq(r->pods[i]->owner_uid, r->view.uid))
            return r->pods[i];
    return NULL;
}

void poll_work(void *user, const char *key)
{
    struct controller *c = user;
    struct record *r = store_find(&c->store, key);
    if (r == NULL || !r->known || !r->poll || r->polling)
        return;
    const struct pod_info *pod = leader_pod(r);
    if (pod == NULL) {
        ask_again(c, r);
        return;
    }
    auto_free char *url = xasprintf(strchr(pod->ip, ':') != NULL ? "http://[%s]:%d/progress" : "http://%s:%d/progress",
                                    pod->ip, POLL_PORT);
    struct poll *p = xcalloc(1, sizeof(*p));
    *p = (struct poll){
        .c = c, .key = xstrdup(key), .uid = xstrdup(r->view.uid), .next = c->asking, .link = &c->asking
    };
    if (p->next != NULL)
        p->next->link = &p->next;
    c->asking = p;
    r->polling = true;
    p->call = http_client_start(c->http, &(struct http_transfer){ .method = "GET",
                                                                  .url = url,
                                                                  .timeout_ms = POLL_TIMEOUT_MS,
                                                                  .max_body = PROGRESS_MAX,
                                                                  .on_done = on_answer,
                                                                  .user = p });
}

void poll_cancel_all(struct controller *c)
{
    while (c->asking != NULL) {
        http_client_cancel(c->asking->call);
        poll_free(c->asking);
    }
}
