/* training_operator_detector - detects whether Kubeflow's training-operator runs in this cluster. Two controllers of
 * the same TFJobs would undo each other's changes.
 *
 * training-operator is detected by its leader election Lease (1ca428e5.training-operator.kubeflow.org, in any
 * namespace; alive while it is renewed by OUR clock) or by its validating webhook. Both are watched, filtered by name
 * at the server. A kind that may not be listed (no cluster-wide rights) for `patience_ms` counts as absent and is
 * logged.
 */
#ifndef TRAINYARD_OPERATOR_TRAINING_OPERATOR_DETECTOR_H
#define TRAINYARD_OPERATOR_TRAINING_OPERATOR_DETECTOR_H

#include "kube/client.h"

struct detector;
/* on_change is called from the loop once everything visible has been read, then whenever the answer changes. why: a
 * text for users; NULL when there is no training-operator. */
struct detector *detector_new(struct kube_client *k, int64_t patience_ms,
                              void (*on_change)(void *user, const char *why), void *user);
void detector_free(struct detector *g);
DEFINE_AUTO(detector, detector_free);

#endif
