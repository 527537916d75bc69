/* controller - runs the jobs of one kind: watches them, their pods and services, plans, acts, writes the status.
 *
 * One per kind, on the operator's loop. It works only between controller_new() and its end, which leaves the cluster as
 * it is (another controller may take the jobs over, or the same later).
 *
 *     watch -> records (facts) -> queue of names -> plan_job() -> requests -> answers -> records -> ...
 */
#ifndef TRAINYARD_CONTROL_CONTROLLER_H
#define TRAINYARD_CONTROL_CONTROLLER_H

#include "build/objects.h"
#include "net/registry.h"
#include "plan/plan.h"

struct dispatch;
struct controller_settings { /* strings, lists and the dispatch must outlive the controller */
    struct plan_settings plan;
    struct build_settings build;
    const struct strlist *namespaces;    /* empty: all */
    enum clean_pod_policy default_clean; /* of jobs that name none */
    int workers;                         /* jobs looked at between two rounds of I/O */
    int64_t progress_ms;                 /* between two looks at a chief's /progress, at least */
    const char *instance;                /* name of this operator, for events */
    struct registry *registry;
    struct dispatch *dispatch; /* turns to send requests: one for all controllers */
};

struct controller;
struct controller *controller_new(struct kube_client *k, const struct job_kind *kind,
                                  const struct controller_settings *s);
void controller_free(struct controller *c);
/* Frees it too, and gives what it had to tell: event_recorder_flush() them, event_recorder_free() them. */
struct event_recorder *controller_end(struct controller *c);
DEFINE_AUTO(controller, controller_free);
/* All lists have been read once (a kind that is not installed counts as read). */
bool controller_synced(const struct controller *c);

#endif
