/* Walks through the containers of a template. */
#include "job/pod_template.h"

#include "job/quantity.h"

static struct node template_containers(const struct node *pod_template, const char *key)
{
    struct node spec = node_get(pod_template, "spec");
    return node_get(&spec, key);
}

int pod_template_check_resources(const struct node *pod_template, struct err *e)
{
    static const char *const LISTS[] = { "initContainers", "containers" }, *const MAPS[] = { "requests", "limits" };
    for (size_t l = 0; l < COUNT_OF(LISTS); l++) {
        struct node list = template_containers(pod_template, LISTS[l]);
        for (size_t i = 0; json_is_array(list.v) && i < node_size(&list); i++)
            for (size_t m = 0; m < COUNT_OF(MAPS); m++) {
                struct node container = node_item(&list, i), resources = node_get(&container, "resources"),
                            map = node_get(&resources, MAPS[m]);
                if (quantity_check_map(&map, e) < 0)
                    return -1;
            }
    }
    return 0;
}

int pod_template_check_names(const struct node *pod_template, struct err *e)
{
    struct node list = template_containers(pod_template, "containers");
    for (size_t i = 0; json_is_array(list.v) && i < node_size(&list); i++) {
        struct node container = node_item(&list, i), name = node_get(&container, "name");
        if (str_eq(json_string_value(name.v), "tensorflow"))
            return node_error(&name, e,
                              "'tensorflow' is the container that trains in a TFJob; beside a 'model' it would be a "
                              "sidecar. Call it 'trainer', or give a sidecar another name");
    }
    return 0;
}
