/* The parts of a job's spec that determine a single pod: its template, its container, and whether it leads. */
#include "build/job_template.h"

#include "build/json_fill.h"

json_t *replica_spec(const struct job_spec *v, const json_t *spec, enum role r)
{
    const json_t *specs = json_object_get(json_object_get(spec, "spec"), v->kind->replica_specs);
    return json_object_get(specs, job_spec_role_key(v, r));
}

json_t *storage_source(const json_t *spec, const char *which)
{
    json_t *source = json_object_get(json_object_get(json_object_get(spec, "spec"), "storage"), which);
    return json_is_object(source) ? source : NULL;
}

bool is_leader(const struct job_spec *v, enum role r, int index)
{
    return r == job_spec_leader(v) && (r == ROLE_CHIEF || index == 0);
}

/* A worker of an all-reduce may get peers later. */
bool is_single_process(const struct job_spec *v)
{
    return job_spec_replicas(v) == 1 && !v->all_reduce;
}

json_t *training_container(const struct job_kind *k, const json_t *pod_spec)
{
    json_t *containers = json_object_get(pod_spec, "containers"), *named = json_find_named(containers, k->container);
    return named != NULL ? named : json_array_get(containers, 0);
}
