/* A controller's metrics, with names that existing dashboards for controller-runtime and training-operator use. */
#include "control/controller_metrics.h"

#include "base/str.h"

static void init_states(struct controller_metrics *m)
{
    for (int i = 0; i < COND_COUNT; i++) {
        if (condition_is_auxiliary((enum condition_type)i))
            continue;
        m->states[i] = registry_gauge(
            m->registry, "trainyard_operator_jobs_by_state", "Number of jobs per state.",
            LABELS({ "kind", m->kind->resource.kind }, { "state", condition_name((enum condition_type)i) }));
        gauge_set(m->states[i], 0);
    }
}

void controller_metrics_init(struct controller_metrics *m, struct registry *r, const struct job_kind *kind, int workers)
{
    static const double BOUNDS[] = { 0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1 };
    const char *name = kind->controller;

    *m = (struct controller_metrics){
        .registry = r,
        .kind = kind,
        .reconciles =
            registry_counter(r, "controller_runtime_reconcile_total", "Total number of reconciliations per controller.",
                             LABELS({ "controller", name }, { "result", "success" })),
        .errors = registry_counter(r, "controller_runtime_reconcile_errors_total",
                                   "Total number of failed requests of reconciliations per controller.",
                                   LABELS({ "controller", name })),
        .time = registry_histogram(r, "controller_runtime_reconcile_time_seconds",
                                   "Length of time per reconciliation per controller.", LABELS({ "controller", name }),
                                   BOUNDS, COUNT_OF(BOUNDS)),
        .pods_created = registry_counter(r, "training_operator_created_pods_total", "Total number of created pods.",
                                         LABELS({ "framework", kind->framework })),
        .pods_deleted = registry_counter(r, "training_operator_deleted_pods_total", "Total number of deleted pods.",
                                         LABELS({ "framework", kind->framework })),
        .services_created =
            registry_counter(r, "training_operator_succeeded_service_creation_total",
                             "Total number of created services.", LABELS({ "framework", kind->framework })),
        .jobs = registry_gauge(r, "trainyard_operator_jobs", "Number of jobs in the cache.",
                               LABELS({ "kind", kind->resource.kind })),
    };
    init_states(m);
    gauge_set(registry_gauge(r, "controller_runtime_max_concurrent_reconciles",
                             "Maximum number of reconciles between two rounds of I/O, per controller.",
                             LABELS({ "controller", name })),
              workers);
}

static void add_to_state(const struct controller_metrics *m, int counted, double n)
{
    struct gauge *g = counted > 0 ? m->states[counted - 1] : NULL;
    if (g != NULL)
        gauge_set(g, gauge_value(g) + n);
}

void controller_metrics_set_state(const struct controller_metrics *m, int *counted, const char *state)
{
    int now = 0;
    for (int i = 0; i < COND_COUNT; i++)
        if (m->states[i] != NULL && str_eq(state, condition_name((enum condition_type)i)))
            now = i + 1;
    if (now == *counted)
        return;
    add_to_state(m, *counted, -1);
    add_to_state(m, now, 1);
    *counted = now;
}

static struct counter *job_counter(const struct controller_metrics *m, const char *ns, const char *what)
{
    char name[64];
    str_fmt(name, sizeof(name), "training_operator_jobs_%s_total", what);
    return registry_counter(m->registry, name, "Total number of jobs that were created, deleted, restarted, or ended.",
                            LABELS({ "job_namespace", ns }, { "framework", m->kind->framework }));
}

/* All series of a namespace begin together with 0, when its first job is seen, because Prometheus does not see an
 * increase in a series that begins with 1. */
void controller_metrics_count_job(const struct controller_metrics *m, const char *ns, const char *what, uint64_t n)
{
    static const char *const ALL[] = { "created", "deleted", "successful", "failed", "restarted" };
    for (size_t i = 0; i < COUNT_OF(ALL); i++)
        job_counter(m, ns, ALL[i]);
    counter_add(job_counter(m, ns, what), n);
}
