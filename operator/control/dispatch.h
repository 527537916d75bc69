/* dispatch - gives jobs of all kinds their turns to send requests, by fair.h, as fast as the client sends them out. */
#ifndef TRAINYARD_CONTROL_DISPATCH_H
#define TRAINYARD_CONTROL_DISPATCH_H

#include "control/fair.h"
#include "kube/client.h"

struct dispatch;
struct dispatch_job { /* lives in its job's record; zero before its first use */
    struct fair_job fair;
    struct dispatch *dispatch;
    void (*fn)(void *user);
    void *user;
};

struct dispatch *dispatch_new(struct kube_client *k);
void dispatch_free(struct dispatch *d); /* no job waits any more */
DEFINE_AUTO(dispatch, dispatch_free);

/* Nobody waits, and a request would go out at once. */
bool dispatch_has_room(const struct dispatch *d);
/* fn is called once, when it is the job's turn; it sends what fair_goes_on() allows. */
void dispatch_wait(struct dispatch *d, struct dispatch_job *j, void (*fn)(void *user), void *user);
void dispatch_leave(struct dispatch_job *j);
const struct fair *dispatch_fair(const struct dispatch *d);
/* Bodies of requests that were sent, and that have ended. */
void dispatch_sent(struct dispatch *d, size_t bytes);
void dispatch_ended(struct dispatch *d, size_t bytes);

#endif
