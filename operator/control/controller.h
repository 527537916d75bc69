/* controller - runs the jobs of one kind: watches them, their pods and services, plans, acts, writes the status.
 *
 * One per kind, on the operator's loop. It works only between controller_new() and controller_end(), which does not
 * change the cluster (another controller may continue the jobs, or a later one of this kind).
 *
 *     watch -> cache -> queue of names -> plan_job() -> requests -> answers -> cache -> ...
 *
 * It owns its parts: the cache, the watches, apply, the status writer and the progress poller. A part includes only
 * what is below it (docs/architecture.md) and reports upwards by callbacks.
 */
#ifndef TRAINYARD_CONTROL_CONTROLLER_H
#define TRAINYARD_CONTROL_CONTROLLER_H

#include "control/controller_settings.h"
#include "net/registry.h"

struct controller;
struct controller *controller_new(struct kube_client *k, const struct job_kind *kind,
                                  const struct controller_settings *s);
void controller_free(struct controller *c);
/* Frees it too, and returns its event recorder: event_recorder_flush(), then event_recorder_free() it. */
struct event_recorder *controller_end(struct controller *c);
DEFINE_AUTO(controller, controller_free);
/* All lists have been read once (a kind that is not installed counts as read). */
bool controller_synced(const struct controller *c);

#endif
