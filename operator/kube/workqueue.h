/* workqueue - keys of objects to reconcile: each at most once, now or at a given time.
 *
 * Keys are strings, which the queue copies. A key that is added while it is being processed is processed once more.
 * Each operation costs O(log n). With a registry it has controller-runtime's metrics (workqueue_*{name}).
 */
#ifndef TRAINYARD_KUBE_WORKQUEUE_H
#define TRAINYARD_KUBE_WORKQUEUE_H

#include "kube/loop.h"

struct registry;
struct workqueue;
/* work() is called from the loop for each key, one after the other, at most `at_once` keys between two rounds of I/O.
 */
struct workqueue *workqueue_new(struct loop *l, const char *name, int at_once,
                                void (*work)(void *user, const char *key), void *user, struct registry *r);
void workqueue_free(struct workqueue *q);
DEFINE_AUTO(workqueue, workqueue_free);
void workqueue_add(struct workqueue *q, const char *key);
/* Keeps the earlier of two times. */
void workqueue_add_at(struct workqueue *q, const char *key, int64_t due_ms);
void workqueue_drop(struct workqueue *q, const char *key); /* removes all state of a deleted object */
size_t workqueue_length(const struct workqueue *q);        /* ready now */

#endif
