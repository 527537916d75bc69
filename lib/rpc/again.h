/* again - requests of a server that cannot be answered yet (rpc_reply.again_ms): a list of those that wait, and one of
 * those that are due, because of a wake or because their time is over. No thread waits for them. Pure; the caller has a
 * lock. */
#ifndef TRAINYARD_RPC_AGAIN_H
#define TRAINYARD_RPC_AGAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct again_item { /* a part of the request */
    int64_t until_ms;
    struct again_item *next;
};

struct again {
    struct again_item *waiting, *due;
    size_t nwaiting, max;
    atomic_size_t ndue; /* may be read without the lock */
    uint64_t wakes;
    bool stopping;
};

enum again_answer {
    AGAIN_NO,  /* its time is over, or the server stops, or too many wait: the error is the answer */
    AGAIN_NOW, /* there was a wake since */
    AGAIN_WAIT /* it is in the list */
};
/* A request could not be handled at a time when there had been `wakes` wakes. It may wait until until_ms. */
enum again_answer again_add(struct again *a, struct again_item *item, uint64_t wakes, int64_t until_ms, int64_t now_ms);
/* All are due; returns their number. */
size_t again_wake(struct again *a);
/* From now on none waits any more; as again_wake. */
size_t again_stop(struct again *a);
/* Those whose time is over are due; returns their number. */
size_t again_expire(struct again *a, int64_t now_ms);
/* The next one that is due, or NULL. */
struct again_item *again_take(struct again *a);
/* When the first one's time is over; INT64_MAX: none waits. */
int64_t again_first_end(const struct again *a);

#endif
