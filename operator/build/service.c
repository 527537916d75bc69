/* Headless services: the DNS names by which replicas find each other. */
#include "build/pod_build.h"

#include <string.h>

/* publishNotReadyAddresses: a name must resolve before its replica is ready, because replicas wait for each other to
 * become ready. */
static json_t *headless(json_t *head, json_t *selector, json_t *ports)
{
    json_object_set_new(head, "spec",
                        json_pack("{s:s, s:o, s:b, s:o}", "clusterIP", "None", "selector", selector,
                                  "publishNotReadyAddresses", 1, "ports", ports));
    return head;
}

static json_t *port(const char *name, json_int_t number)
{
    return json_pack("{s:s, s:I}", "name", name, "port", number);
}

static json_t *job_service(const struct job_spec *v)
{
    json_t *labels = job_labels(v);

    fill_app_labels(labels);
    return headless(object_with_metadata(v, "v1", "Service", v->name, labels), job_labels(v),
                    json_pack("[o, o, o]", port(TFJOB_PORT, 2222), port("http", HTTP_PORT), port("https", HTTPS_PORT)));
}

/* Sorted by name; of two with the same name the last one counts. */
static void put_port(json_t *ports, const char *name, json_int_t number)
{
    size_t at = 0;

    for (; at < json_array_size(ports); at++) {
        const char *other = json_string_value(json_object_get(json_array_get(ports, at), "name"));
        int order = strcmp(name, other);
        if (order == 0)
            json_array_remove(ports, at);
        if (order <= 0)
            break;
    }
    json_array_insert_new(ports, at, port(name, number));
}

static json_t *named_ports(const struct job_spec *v, const json_t *spec, enum role r)
{
    const json_t *template = json_object_get(replica_spec(v, spec, r), "template");
    const json_t *container = training_container(v->kind, json_object_get(template, "spec")), *p;
    json_t *ports = json_array();
    size_t i;

    put_port(ports, TFJOB_PORT, v->roles[r].port);
    json_array_foreach(json_object_get(container, "ports"), i, p)
    {
        const char *name = json_string_value(json_object_get(p, "name"));
        const json_t *number = json_object_get(p, "containerPort");
        if (name != NULL && json_is_integer(number))
            put_port(ports, name, json_integer_value(number));
    }
    return ports;
}

json_t *build_service(const struct job_spec *v, const json_t *spec, enum role r, int index)
{
    char name[128];

    if (index < 0)
        return job_service(v);
    return headless(
        object_with_metadata(v, "v1", "Service", job_spec_pod_name(v, r, index, name), replica_labels(v, r, index)),
        replica_labels(v, r, index), named_ports(v, spec, r));
}
