/* queue - names of objects that want a look: each at most once, now or later.
 *
 * Keys are strings the queue copies. A key that is added while it is being worked on is given out again afterwards.
 * O(log n) an operation.
 * Metrics of controller-runtime's names (workqueue_*{name}) when there is a registry.
 */
#ifndef TRAINYARD_KUBE_QUEUE_H
#define TRAINYARD_KUBE_QUEUE_H

#include "kube/loop.h"

struct registry;
struct queue;
/* work() is called from the loop for each key, one after the other, at most `at_once` keys between two rounds of I/O.
 */
struct queue *queue_new(struct loop *l, const char *name, int at_once, void (*work)(void *user, const char *key),
                        void *user, struct registry *r);
void queue_free(struct queue *q);
DEFINE_AUTO(queue, queue_free);
void queue_add(struct queue *q, const char *key);
/* Keeps the earlier of two times. */
void queue_add_at(struct queue *q, const char *key, int64_t due_ms);
void queue_drop(struct queue *q, const char *key); /* the object is gone: nothing of it is kept */
size_t queue_length(const struct queue *q);        /* ready now */

#endif
