/* Builds one pod of each role, and adds the quantities of its containers. */
#include "build/pod_resources.h"

#include "build/json_fill.h"

void resource_sums_fini(struct resource_sums *s)
{
    const struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&s->by_name, &i)) != NULL;)
        free(slot->value);
    map_fini(&s->by_name);
}

static void sums_add_quantity(struct resource_sums *s, const char *name, const json_t *quantity, int times)
{
    struct quantity_sum *sum = map_get(&s->by_name, name);

    if (sum == NULL) {
        sum = xcalloc(1, sizeof(*sum));
        map_put(&s->by_name, name, sum);
    }
    if (quantity_sum_add(sum, quantity, times) < 0)
        s->failed = true;
}

static void sums_add_container(struct resource_sums *s, const json_t *container, int times, const char *what)
{
    json_t *resources = json_object_get(container, "resources"), *quantity;
    const char *name;

    if (what == NULL)
        what = json_has(resources, "requests") ? "requests" : "limits";
    json_object_foreach(json_object_get(resources, what), name, quantity) sums_add_quantity(s, name, quantity, times);
}

void resource_sums_add(struct resource_sums *s, const struct job_spec *v, const json_t *spec,
                       const struct build_settings *settings, const int pods[ROLE_COUNT], const char *what)
{
    for (int k = 0; k < ROLE_COUNT; k++) {
        enum role r = JOB_SPEC_ORDER[k];
        if (!v->roles[r].present || pods[r] <= 0)
            continue;
        json_auto_t *pod = build_pod(v, spec, r, 0, 0, NULL, 0, NULL, settings, NULL);
        const json_t *container;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(pod, "spec"), "containers"), i, container)
            sums_add_container(s, container, pods[r], what);
    }
}
