/* PodGroups of the gang schedulers, which start all pods of a job or none of them. minResources counts requests as
 * training-operator does. */
#include "build/json_fill.h"
#include "build/metadata.h"
#include "build/objects.h"
#include "build/pod_resources.h"

static const struct kube_resource VOLCANO = { "scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup" };
static const struct kube_resource PLUGINS = { "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup" };

const struct kube_resource *build_pod_group_resource(const struct build_settings *s)
{
    if (s->gang_scheduler == NULL || *s->gang_scheduler == '\0')
        return NULL;
    return str_eq(s->gang_scheduler, "volcano") ? &VOLCANO : &PLUGINS;
}

/* ---- resources of the pods ---- */

/* Of the first min_member pods, leading roles first. NULL: they request nothing, or a value is not a quantity. */
static json_t *min_resources(const struct job_spec *v, const json_t *spec, const struct build_settings *settings,
                             int min_member)
{
    AUTO_FINI(resource_sums) s = { .failed = false };
    const struct map_slot *slot;
    int pods[ROLE_COUNT];
    json_t *result = json_object();

    job_spec_first_members(v, min_member, pods);
    resource_sums_add(&s, v, spec, settings, pods, NULL);
    for (size_t i = 0; (slot = map_next(&s.by_name, &i)) != NULL;)
        json_object_set_new(result, slot->key, quantity_sum_value(slot->value));
    if (!s.failed && json_object_size(result) > 0)
        return result;
    json_decref(result);
    return NULL;
}

/* ---- the group ---- */

/* kubectl's last-applied annotation describes the job, and would be wrong for the group. */
static json_t *annotations(const json_t *spec)
{
    json_t *from = json_object_get(json_object_get(spec, "metadata"), "annotations");
    json_t *to = json_is_object(from) ? json_copy(from) : json_object();

    json_object_del(to, "kubectl.kubernetes.io/last-applied-configuration");
    return to;
}

/* A completed replica has no pod that the scheduler could count. */
static int members_of(const struct job_spec *v, int completed)
{
    int all = job_spec_replicas(v), members = v->gang.min_available > 0 ? v->gang.min_available : all;
    return completed > 0 ? MAX(MIN(members, all - completed), 1) : members;
}

json_t *build_pod_group(const struct job_spec *v, const json_t *spec, int completed, const struct build_settings *s)
{
    const struct kube_resource *resource = build_pod_group_resource(s);
    const json_t *policy =
        json_object_get(json_object_get(json_object_get(spec, "spec"), "runPolicy"), "schedulingPolicy");
    json_t *given = json_object_get(policy, "minResources"), *group, *out, *notes = annotations(spec);
    int members = members_of(v, completed);
    char api_version[64];

    str_fmt(api_version, sizeof(api_version), "%s/%s", resource->group, resource->version);
    group = object_with_metadata(v, api_version, resource->kind, v->name, job_labels(v));
    out = json_fill_object(group, "spec");
    if (json_object_size(notes) > 0)
        json_object_set(json_object_get(group, "metadata"), "annotations", notes);
    json_decref(notes);
    json_object_set_new(out, "minMember", json_integer(members));
    if (resource == &VOLCANO) {
        json_object_set_new(out, "queue", json_string(v->gang.queue != NULL ? v->gang.queue : "default"));
        if (v->gang.priority_class != NULL)
            json_object_set_new(out, "priorityClassName", json_string(v->gang.priority_class));
    }
    json_t *resources = json_is_object(given) ? json_incref(given) : min_resources(v, spec, s, members);
    if (resources != NULL)
        json_object_set_new(out, "minResources", resources);
    if (resource == &PLUGINS && v->gang.timeout_s > 0)
        json_object_set_new(out, "scheduleTimeoutSeconds", json_integer(v->gang.timeout_s));
    return group;
}
