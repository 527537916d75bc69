/* The ConfigMap of a TrainJob: the job file of its replicas, or their addresses if the job has no model. */
#include "build/pod_build.h"
#include "job/replica_file.h"

bool build_needs_config_map(const struct job_spec *v)
{
    return v->kind->own_processes && (v->has_model || !is_single_process(v));
}

/* The job file; NULL when the spec was pruned of its model. */
static json_t *job_data(const struct job_spec *v, const json_t *spec)
{
    json_auto_t *doc = NULL, *file = NULL;
    AUTO_FINI(buf) text = BUF_INIT;

    if (!json_has(json_object_get(spec, "spec"), "model"))
        return NULL;
    doc = json_pack("{s:s, s:s, s:O, s:O}", "apiVersion", v->kind->api_version, "kind", v->kind->resource.kind,
                    "metadata", json_object_get(spec, "metadata"), "spec", json_object_get(spec, "spec"));
    file = job_replica_file(doc);
    json_emit(file, &text);
    buf_char(&text, '\n');
    return json_pack("{s:s}", "job.yaml", text.data);
}

json_t *build_config_map(const struct job_spec *v, const json_t *spec, const struct build_settings *s)
{
    json_t *labels, *config, *data;
    char name[128];

    if (!build_needs_config_map(v) || (data = v->has_model ? job_data(v, spec) : cluster_config_data(v, s)) == NULL)
        return NULL;
    labels = job_labels(v);
    fill_app_labels(labels);
    config = object_with_metadata(v, "v1", "ConfigMap", build_config_map_name(v, name), labels);
    json_object_set_new(config, "data", data);
    return config;
}
