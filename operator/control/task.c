#include "base/clock.h"
#include "base/str.h"
#include "control/controller_internal.h"

/* ---- what is under way ---- */

static void count(struct task *t, struct record *r)
{
    t->counted = true;
    t->bytes = kube_call_bytes(t->call);
    dispatch_sent(t->c->dispatch, t->bytes);
    fair_count(&r->turn.fair, t->sent_ms);
    if (apply_is_make(t->action.kind))
        r->makes[apply_make_kind(t->action.kind)].under_way++;
}

/* r NULL: the job it was for is gone, and its counts with it. */
static void uncount(struct task *t, struct record *r)
{
    if (!t->counted)
        return;
    t->counted = false;
    dispatch_ended(t->c->dispatch, t->bytes);
    if (r != NULL && apply_is_make(t->action.kind))
        r->makes[apply_make_kind(t->action.kind)].under_way--;
}

static void task_free(struct task *t)
{
    uncount(t, NULL);
    if (t->before != NULL)
        job_status_fini(t->before);
    free(t->before);
    *t->link = t->next;
    if (t->next != NULL)
        t->next->link = t->link;
    free(t->key);
    free(t->uid);
    free(t->name);
    free(t->object_uid);
    free(t);
}

/* A create that was on its way for an earlier life of the name leaves no trace behind. */
static void of_another_life(struct task *t, struct record *r)
{
    if (t->name != NULL && t->action.kind == ACT_CREATE_POD)
        record_drop_expected_pod(r, t->name, t->uid);
    if (t->name != NULL && t->action.kind == ACT_CREATE_SERVICE)
        record_drop_expected_service(r, t->name, t->uid);
    controller_wake(t->c, r);
    store_drop_if_empty(&t->c->store, r);
}

static void on_done(void *user, const struct kube_answer *a)
{
    struct task *t = user;
    struct record *r = store_find(&t->c->store, t->key);
    if (r != NULL && (!r->known || !str_eq(r->view.uid, t->uid))) {
        of_another_life(t, r);
        r = NULL;
    }
    uncount(t, r);
    t->done(t, r, a);
    task_free(t);
}

void task_send(struct controller *c, struct record *r, const struct action *a, struct kube_request request,
               void (*done)(struct task *t, struct record *r, const struct kube_answer *a))
{
    struct task *t = xcalloc(1, sizeof(*t));
    t->c = c;
    t->key = xstrdup(r->key);
    t->uid = xstrdup(r->view.uid);
    t->done = done;
    if (a != NULL) {
        t->name = a->name != NULL ? xstrdup(a->name) : NULL;
        t->object_uid = a->uid != NULL ? xstrdup(a->uid) : NULL;
        t->action = *a;
        t->action.name = t->name;
        t->action.uid = t->object_uid;
    }
    t->next = c->tasks;
    t->link = &c->tasks;
    if (t->next != NULL)
        t->next->link = &t->next;
    c->tasks = t;
    request.done = on_done;
    request.user = t;
    t->sent_ms = clock_ms();
    t->call = kube_send(c->client, &request);
    if (a != NULL)
        count(t, r);
}

struct task *task_last(struct controller *c)
{
    return c->tasks;
}

void apply_cancel_all(struct controller *c)
{
    while (c->tasks != NULL) {
        kube_cancel(c->tasks->call);
        task_free(c->tasks);
    }
}
