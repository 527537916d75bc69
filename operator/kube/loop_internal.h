/* loop_internal - how http hangs its sockets on the loop. For this folder only. */
#ifndef TRAINYARD_KUBE_LOOP_INTERNAL_H
#define TRAINYARD_KUBE_LOOP_INTERNAL_H

#include "kube/loop.h"

enum { LOOP_READ = 1, LOOP_WRITE = 2 };

/* Calls fn when fd is ready for one of `wanted` (also when it broke: then with all of them). The owner keeps the
 * structure until loop_fd_clear(), which must come before the fd is closed. */
struct loop_fd {
    int fd, wanted;
    void (*fn)(void *user, int fd, int ready);
    void *user;
    bool set;
};
MUST_USE int loop_fd_set(struct loop *l, struct loop_fd *w, struct err *e);
void loop_fd_clear(struct loop *l, struct loop_fd *w);
/* loop_turn() fails with this after the present round: for failures in callbacks that nobody else can be told. */
void loop_fail(struct loop *l, const struct err *e);

#endif
