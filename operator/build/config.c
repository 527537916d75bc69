/* What stands beside a TrainJob's pods: their job file, and who may reach them. */
#include "build/parts.h"
#include "job/replica_file.h"

bool build_needs_config(const struct job_spec *v)
{
    return v->kind->own_processes && (v->has_model || !alone(v));
}

/* The job file; NULL when the model was left out of the spec. */
static json_t *job_data(const struct job_spec *v, const json_t *spec)
{
    json_auto_t *doc = NULL, *file = NULL;
    AUTO_FINI(buf) text = BUF_INIT;

    if (!has(json_object_get(spec, "spec"), "model"))
        return NULL;
    doc = json_pack("{s:s, s:s, s:O, s:O}", "apiVersion", v->kind->api_version, "kind", v->kind->resource.kind,
                    "metadata", json_object_get(spec, "metadata"), "spec", json_object_get(spec, "spec"));
    file = job_replica_file(doc);
    json_emit(file, &text);
    buf_char(&text, '\n');
    return json_pack("{s:s}", "job.yaml", text.data);
}

json_t *build_config(const struct job_spec *v, const json_t *spec, const struct build_settings *s)
{
    json_t *labels, *config, *data;
    char name[128];

    if (!build_needs_config(v) || (data = v->has_model ? job_data(v, spec) : cluster_data(v, s)) == NULL)
        return NULL;
    labels = job_labels(v);
    put_app_labels(labels);
    config = object_head(v, "v1", "ConfigMap", build_config_name(v, name), labels);
    json_object_set_new(config, "data", data);
    return config;
}

static json_t *namespace_peer(const char *name)
{
    return json_pack("{s:{s:{s:s}}}", "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name", name);
}

/* The job's own pods reach each other on all ports; the operator and those who collect metrics reach HTTP. Probes come
 * from the node, which no policy keeps out. Nothing is said about what pods may reach: names, storage and downloads
 * differ from cluster to cluster. TensorBoard's pods have no operator-name and stay open. */
json_t *build_network_policy(const struct job_spec *v, const struct build_settings *s)
{
    json_t *labels = job_labels(v), *policy, *readers = json_array(), *ingress;

    put_app_labels(labels);
    policy = object_head(v, "networking.k8s.io/v1", "NetworkPolicy", v->name, labels);
    ingress = json_pack("[{s:[{s:{s:o}}]}]", "from", "podSelector", "matchLabels", job_labels(v));
    if (s->operator_ns != NULL && *s->operator_ns != '\0')
        json_array_append_new(readers, namespace_peer(s->operator_ns));
    for (size_t i = 0; s->scraper_namespaces != NULL && i < s->scraper_namespaces->n; i++)
        if (!str_eq(s->scraper_namespaces->items[i], s->operator_ns))
            json_array_append_new(readers, namespace_peer(s->scraper_namespaces->items[i]));
    if (json_array_size(readers) > 0) /* an empty `from` would let everybody in */
        json_array_append_new(ingress, json_pack("{s:O, s:[{s:s, s:i}]}", "from", readers, "ports", "protocol", "TCP",
                                                 "port", HTTP_PORT));
    json_decref(readers);
    json_object_set_new(policy, "spec",
                        json_pack("{s:{s:o}, s:[s], s:o}", "podSelector", "matchLabels", job_labels(v), "policyTypes",
                                  "Ingress", "ingress", ingress));
    return policy;
}
