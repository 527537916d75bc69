/* loop_internal - descriptors on the loop, for http_client's sockets. For this folder only. */
#ifndef TRAINYARD_KUBE_LOOP_INTERNAL_H
#define TRAINYARD_KUBE_LOOP_INTERNAL_H

#include "kube/loop.h"

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

/* Calls fn when fd is ready for one of `wanted` (on an error with all of them). The owner keeps the structure until
 * loop_fd_clear(), which must come before the fd is closed. */
struct loop_fd {
    int fd, wanted;
    void (*fn)(void *user, int fd, int ready);
    void *user;
    bool set;
};
MUST_USE int loop_fd_set(struct loop *l, struct loop_fd *w, struct err *e);
void loop_fd_clear(struct loop *l, struct loop_fd *w);
/* loop_turn() fails with this error after the current round: for failures in callbacks that cannot report them
 * otherwise. */
void loop_fail(struct loop *l, const struct err *e);

#endif
