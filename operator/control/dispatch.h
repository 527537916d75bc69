/* dispatch - decides when jobs of all kinds send their requests: in the order of fair_queue.h, as fast as the client
 * sends them. */
#ifndef TRAINYARD_CONTROL_DISPATCH_H
#define TRAINYARD_CONTROL_DISPATCH_H

#include "control/fair_queue.h"
#include "kube/client.h"

struct dispatch;
struct dispatch_ticket { /* part of its job's cache entry; zero before its first use */
    struct fair_ticket fair;
    struct dispatch *dispatch;
    void (*fn)(void *user);
    void *user;
};

struct dispatch *dispatch_new(struct kube_client *k);
void dispatch_free(struct dispatch *d); /* no job waits any more */
DEFINE_AUTO(dispatch, dispatch_free);

/* True if no job waits and a request would be sent at once. */
bool dispatch_has_room(const struct dispatch *d);
/* fn is called once, when it is the job's turn; it sends what fair_queue_may_send() allows. */
void dispatch_wait(struct dispatch *d, struct dispatch_ticket *t, void (*fn)(void *user), void *user);
void dispatch_leave(struct dispatch_ticket *t);
const struct fair_queue *dispatch_queue(const struct dispatch *d);
/* Count the bodies of requests that were sent, and of requests that have ended. */
void dispatch_sent(struct dispatch *d, size_t bytes);
void dispatch_ended(struct dispatch *d, size_t bytes);

#endif
