/* The NetworkPolicy of a TrainJob: which pods may connect to its replicas. */
#include "build/job_template.h"
#include "build/metadata.h"
#include "build/objects.h"
#include "build/pod_ports.h"

static json_t *namespace_peer(const char *name)
{
    return json_pack("{s:{s:{s:s}}}", "namespaceSelector", "matchLabels", "kubernetes.io/metadata.name", name);
}

static void allow(json_t *ingress, json_t *from, int port)
{
    json_array_append_new(ingress,
                          json_pack("{s:O, s:[{s:s, s:i}]}", "from", from, "ports", "protocol", "TCP", "port", port));
}

/* The job's pods may connect to each other on all ports; the operator and scrapers only to HTTP, and the operator to
 * HTTPS, where /progress is. Policies never block probes from the node. Egress is not limited, because DNS, storage and
 * downloads differ between clusters. TensorBoard's pods have no label operator-name, so the policy does not select
 * them. */
json_t *build_network_policy(const struct job_spec *v, const struct build_settings *s)
{
    json_t *labels = job_labels(v), *policy, *ingress;
    json_auto_t *readers = json_array(), *us = json_array();

    fill_app_labels(labels);
    policy = object_with_metadata(v, "networking.k8s.io/v1", "NetworkPolicy", v->name, labels);
    ingress = json_pack("[{s:[{s:{s:o}}]}]", "from", "podSelector", "matchLabels", job_labels(v));
    if (s->operator_ns != NULL && *s->operator_ns != '\0')
        json_array_append_new(us, namespace_peer(s->operator_ns));
    json_array_extend(readers, us);
    for (size_t i = 0; s->scraper_namespaces != NULL && i < s->scraper_namespaces->n; i++)
        if (!str_eq(s->scraper_namespaces->items[i], s->operator_ns))
            json_array_append_new(readers, namespace_peer(s->scraper_namespaces->items[i]));
    if (json_array_size(readers) > 0) /* an empty `from` would allow all */
        allow(ingress, readers, HTTP_PORT);
    if (json_array_size(us) > 0)
        allow(ingress, us, HTTPS_PORT);
    json_object_set_new(policy, "spec",
                        json_pack("{s:{s:o}, s:[s], s:o}", "podSelector", "matchLabels", job_labels(v), "policyTypes",
                                  "Ingress", "ingress", ingress));
    return policy;
}
