/* controller_metrics - a controller's metrics: named as in controller-runtime and training-operator where they measure
 * the same. */
#ifndef TRAINYARD_CONTROL_CONTROLLER_METRICS_H
#define TRAINYARD_CONTROL_CONTROLLER_METRICS_H

#include "api/job_status.h"
#include "net/registry.h"

struct controller_metrics {
    struct registry *registry;
    const struct job_kind *kind;
    struct counter *reconciles, *errors;
    struct gauge *jobs;
    struct gauge *states[COND_COUNT]; /* jobs in the state of this name; NULL: it is not a state */
    struct histogram *time;
    struct counter *pods_created, *pods_deleted, *services_created;
};

void controller_metrics_init(struct controller_metrics *m, struct registry *r, const struct job_kind *kind,
                             int workers);
/* what: "created", "failed", ... */
void controller_metrics_count_job(const struct controller_metrics *m, const char *ns, const char *what, uint64_t n);
/* Counts a job in the gauge of its state; "": in none. *counted: the state in which it is counted now, 0 at first. */
void controller_metrics_set_state(const struct controller_metrics *m, int *counted, const char *state);

#endif
