/* The controller's numbers: those of controller-runtime and of training-operator, under the names dashboards know. */
#include "base/str.h"
#include "control/controller_internal.h"

void meters_init(struct controller *c)
{
    static const double BOUNDS[] = { 0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1 };
    struct registry *r = c->settings.registry;
    const char *name = c->kind->controller;
    c->metrics = (struct controller_metrics){
        .reconciles = registry_counter(r, "controller_runtime_reconcile_total", "Reconciliations.",
                                       LABELS({ "controller", name }, { "result", "success" })),
        .errors = registry_counter(r, "controller_runtime_reconcile_errors_total", "Requests of a job that failed.",
                                   LABELS({ "controller", name })),
        .time = registry_histogram(r, "controller_runtime_reconcile_time_seconds", "Time of one look at a job.",
                                   LABELS({ "controller", name }), BOUNDS, COUNT_OF(BOUNDS)),
        .pods_created = registry_counter(r, "training_operator_created_pods_total", "Pods made.",
                                         LABELS({ "framework", c->kind->framework })),
        .pods_deleted = registry_counter(r, "training_operator_deleted_pods_total", "Pods deleted.",
                                         LABELS({ "framework", c->kind->framework })),
        .services_created = registry_counter(r, "training_operator_succeeded_service_creation_total", "Services made.",
                                             LABELS({ "framework", c->kind->framework })),
        .jobs = registry_gauge(r, "trainyard_operator_jobs", "Jobs known.", LABELS({ "kind", c->kind->resource.kind })),
    };
    for (int i = 0; i < COND_COUNT; i++)
        if (!condition_is_auxiliary((enum condition_type)i)) {
            c->metrics.states[i] = registry_gauge(
                r, "trainyard_operator_jobs_by_state", "Jobs by state.",
                LABELS({ "kind", c->kind->resource.kind }, { "state", condition_name((enum condition_type)i) }));
            gauge_set(c->metrics.states[i], 0);
        }
    gauge_set(registry_gauge(r, "controller_runtime_max_concurrent_reconciles",
                             "Jobs looked at between two rounds of I/O.", LABELS({ "controller", name })),
              c->settings.workers);
}

static void count_state(const struct controller *c, int metered, double n)
{
    struct gauge *g = metered > 0 ? c->metrics.states[metered - 1] : NULL;
    if (g != NULL)
        gauge_set(g, gauge_value(g) + n);
}

void meters_state(const struct controller *c, struct record *r, const char *state)
{
    int metered = 0;
    for (int i = 0; i < COND_COUNT; i++)
        if (c->metrics.states[i] != NULL && str_eq(state, condition_name((enum condition_type)i)))
            metered = i + 1;
    if (metered == r->metered)
        return;
    count_state(c, r->metered, -1);
    count_state(c, metered, 1);
    r->metered = metered;
}

static struct counter *job_counter(const struct controller *c, const struct record *r, const char *what)
{
    char name[64];
    str_fmt(name, sizeof(name), "training_operator_jobs_%s_total", what);
    return registry_counter(c->settings.registry, name,
                            "Jobs that were created, deleted, restarted, or ended, by namespace and framework.",
                            LABELS({ "job_namespace", r->view.ns }, { "framework", c->kind->framework }));
}

/* All of a namespace's series begin together, with 0 when its first job is seen: Prometheus sees no increase in one
 * that begins with 1. */
void meters_job(const struct controller *c, const struct record *r, const char *what, uint64_t n)
{
    static const char *const ALL[] = { "created", "deleted", "successful", "failed", "restarted" };
    for (size_t i = 0; i < COUNT_OF(ALL); i++)
        job_counter(c, r, ALL[i]);
    counter_add(job_counter(c, r, what), n);
}
