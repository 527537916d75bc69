#include "control/dispatch.h"

#include "base/clock.h"

struct dispatch {
    struct kube_client *client;
    struct fair fair;
    struct kube_ticket turn; /* of whichever job is next */
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

static void find_next(struct dispatch *d)
{
    if (d->fair.first != NULL && fair_has_room(&d->fair))
        kube_ticket_wait(d->client, &d->turn, KUBE_NORMAL, on_turn, d);
}

static void on_turn(void *user)
{
    struct dispatch *d = user;
    struct fair_job *next = fair_next(&d->fair, clock_ms());

    if (next == NULL)
        return;
    struct dispatch_job *j = (struct dispatch_job *)next; /* its first member */
    dispatch_leave(j);
    j->fn(j->user); /* the job may be gone afterwards */
    find_next(d);
}

bool dispatch_has_room(const struct dispatch *d)
{
    return d->fair.first == NULL && fair_has_room(&d->fair) && kube_has_room(d->client);
}

void dispatch_wait(struct dispatch *d, struct dispatch_job *j, void (*fn)(void *user), void *user)
{
    j->dispatch = d;
    j->fn = fn;
    j->user = user;
    fair_wait(&d->fair, &j->fair, clock_ms());
    find_next(d);
}

void dispatch_leave(struct dispatch_job *j)
{
    if (j->fair.waits)
        fair_leave(&j->dispatch->fair, &j->fair);
}

const struct fair *dispatch_fair(const struct dispatch *d)
{
    return &d->fair;
}

void dispatch_sent(struct dispatch *d, size_t bytes)
{
    d->fair.bytes += bytes;
}

void dispatch_ended(struct dispatch *d, size_t bytes)
{
    d->fair.bytes -= bytes;
    find_next(d);
}
