/* One ticket in the client's queue represents all jobs. When it is called, the fair queue selects the job that sends.
 */
#include "control/dispatch.h"

struct dispatch {
    struct kube_client *client;
    struct fair_queue queue;
    struct kube_ticket turn; /* a place in the client's queue, for the job that is next */
};

struct dispatch *dispatch_new(struct kube_client *k)
{
    struct dispatch *d = xcalloc(1, sizeof(*d));
    d->client = k;
    return d;
}

void dispatch_free(struct dispatch *d)
{
    if (d != NULL)
        kube_ticket_cancel(&d->turn);
    free(d);
}

static void on_turn(void *user);

static void grant_next(struct dispatch *d)
{
    if (d->queue.first != NULL && fair_queue_has_room(&d->queue))
        kube_ticket_wait(d->client, &d->turn, KUBE_NORMAL, on_turn, d);
}

static void on_turn(void *user)
{
    struct dispatch *d = user;
    struct fair_ticket *next = fair_queue_next(&d->queue, loop_now(kube_client_loop(d->client)));

    if (next == NULL)
        return;
    struct dispatch_ticket *t = (struct dispatch_ticket *)next; /* its first member */
    dispatch_leave(t);
    t->fn(t->user); /* the job may be freed afterwards */
    grant_next(d);
}

bool dispatch_has_room(const struct dispatch *d)
{
    return d->queue.first == NULL && fair_queue_has_room(&d->queue) && kube_has_room(d->client);
}

void dispatch_wait(struct dispatch *d, struct dispatch_ticket *t, void (*fn)(void *user), void *user)
{
    t->dispatch = d;
    t->fn = fn;
    t->user = user;
    fair_queue_add(&d->queue, &t->fair, loop_now(kube_client_loop(d->client)));
    grant_next(d);
}

void dispatch_leave(struct dispatch_ticket *t)
{
    if (t->fair.waits)
        fair_queue_remove(&t->dispatch->queue, &t->fair);
}

const struct fair_queue *dispatch_queue(const struct dispatch *d)
{
    return &d->queue;
}

void dispatch_sent(struct dispatch *d, size_t bytes)
{
    d->queue.bytes += bytes;
}

void dispatch_ended(struct dispatch *d, size_t bytes)
{
    d->queue.bytes -= bytes;
    grant_next(d);
}
