/* guard - is another TFJob controller at work in this cluster? Two would undo each other's doing.
 *
 * Kubeflow's training-operator shows itself by its leader election Lease (1ca428e5.training-operator.kubeflow.org, in
 * any namespace; alive while it is renewed by OUR clock) or by its validating webhook. Both are watched, filtered by
 * name at the server. Where we may not look (no cluster-wide rights) for `patience_ms` we assume that there is none;
 * the log says what could not be listed.
 */
#ifndef TRAINYARD_OPERATOR_GUARD_H
#define TRAINYARD_OPERATOR_GUARD_H

#include "kube/client.h"

struct guard;
/* on_change is called from the loop once all that can be seen has been seen, then whenever the answer changes.
 * why: for people; NULL when nobody else is there. */
struct guard *guard_new(struct kube_client *k, int64_t patience_ms, void (*on_change)(void *user, const char *why),
                        void *user);
void guard_free(struct guard *g);
DEFINE_AUTO(guard, guard_free);

#endif
