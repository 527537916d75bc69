/* Builds a replica's pod: the user's template with name, labels, owner and environment. For a TrainJob it also fills in
 * defaults, volumes and affinity; values of the template are kept. */
#include "build/pod_build.h"

static void warn_line(struct buf *warn, const char *reason, const char *text)
{
    if (warn != NULL)
        buf_printf(warn, "%s: %s\n", reason, text);
}

/* A pod gets labels, annotations and finalizers of its template, as with all controllers. */
static void take_over(const json_t *from, json_t *to)
{
    static const char *const KEYS[] = { "labels", "annotations", "finalizers" };

    for (size_t i = 0; i < COUNT_OF(KEYS); i++)
        if (json_has(from, KEYS[i]))
            json_object_set_new(to, KEYS[i], json_deep_copy(json_object_get(from, KEYS[i])));
}

/* job-uid names the job object for which the pod was created, even after the pod lost its owner. */
static json_t *pod_labels(const struct job_spec *v, enum role r, int index)
{
    json_t *labels = replica_labels(v, r, index);

    if (is_leader(v, r, index))
        set_label(labels, v, "job-role", "master");
    if (v->kind->own_processes)
        set_label(labels, v, "job-uid", v->uid);
    return labels;
}

json_t *build_label_patch(const struct job_spec *v, enum role r, int index, const char *uid, int64_t version)
{
    return json_pack("{s:{s:s, s:o, s:o}}", "metadata", "uid", uid, "resourceVersion",
                     json_sprintf("%lld", (long long)version), "labels", pod_labels(v, r, index));
}

static void put_labels(struct pod_build *p)
{
    json_t *labels = json_fill_object(p->metadata, "labels"), *ours = pod_labels(p->v, p->role, p->index);

    json_object_update(labels, ours);
    json_decref(ours);
    if (p->v->kind->own_processes)
        fill_app_labels(labels);
}

/* Policies by exit code and restarts of all replicas are done by the operator, because the kubelet ignores exit codes
 * and restarts a single pod. */
static void put_restart_policy(struct pod_build *p, struct buf *warn)
{
    enum restart_policy policy = p->v->roles[p->role].restart;
    bool by_operator = policy == RESTART_EXIT_CODE ||
                       (policy == RESTART_ON_FAILURE && p->v->scope == SCOPE_JOB && p->role != ROLE_EVALUATOR);

    if (json_has(p->pod_spec, "restartPolicy"))
        warn_line(warn, "SetPodTemplateRestartPolicy",
                  "Restart policy in pod template overridden by restart policy in replica spec");
    json_object_set_new(p->pod_spec, "restartPolicy",
                        json_string(restart_policy_name(by_operator ? RESTART_NEVER : policy)));
}

static void put_gang(struct pod_build *p, struct buf *warn)
{
    const char *name = p->s->gang_scheduler, *own = json_string_value(json_object_get(p->pod_spec, "schedulerName"));

    if (name == NULL || *name == '\0')
        return;
    if (own != NULL && *own != '\0' && !str_eq(own, name))
        warn_line(warn, "SetPodTemplateSchedulerName",
                  "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten");
    if (own == NULL || *own == '\0')
        json_object_set_new(p->pod_spec, "schedulerName", json_string(name));
    if (str_eq(name, "volcano")) {
        json_t *annotations = json_fill_object(p->metadata, "annotations");
        json_object_set_new(annotations, "scheduling.k8s.io/group-name", json_string(p->v->name));
        json_object_set_new(annotations, "volcano.sh/task-spec", json_string(job_spec_role_name(p->v, p->role)));
    } else {
        json_object_set_new(json_fill_object(p->metadata, "labels"), "scheduling.x-k8s.io/pod-group",
                            json_string(p->v->name));
    }
}

void fill_port(json_t *container, const char *name, int port)
{
    json_t *ports = json_fill_array(container, "ports");

    if (json_find_named(ports, name) == NULL)
        json_array_append_new(ports, json_pack("{s:s, s:i}", "name", name, "containerPort", port));
}

/* A TrainJob needs no template. Without one, or if it has only sidecars, the container is Trainyard's. */
static void find_container(struct pod_build *p)
{
    const struct job_kind *k = p->v->kind;

    p->container = training_container(k, p->pod_spec);
    if (!k->own_processes || json_find_named(json_object_get(p->pod_spec, "containers"), k->container) != NULL)
        return;
    if (p->container != NULL && !p->v->has_model)
        return;
    json_array_insert_new(json_fill_array(p->pod_spec, "containers"), 0, json_pack("{s:s}", "name", k->container));
    p->container = json_array_get(json_object_get(p->pod_spec, "containers"), 0);
}

static void put_address(struct pod_build *p, const char *name)
{
    json_object_set_new(p->pod_spec, "hostname", json_string(name));
    json_object_set_new(p->pod_spec, "subdomain", json_string(p->v->name));
}

static struct pod_build begin(const struct job_spec *v, const json_t *spec, enum role r, int index, int restarts,
                              const struct build_settings *s)
{
    const json_t *template = json_object_get(replica_spec(v, spec, r), "template"),
                 *from = json_object_get(template, "spec");
    struct pod_build p = { .v = v, .spec = spec, .s = s, .role = r, .index = index };
    char name[128], count[16];

    p.metadata = json_pack("{s:s, s:s, s:[o]}", "name", job_spec_pod_name(v, r, index, name), "namespace", v->ns,
                           "ownerReferences", build_owner_reference(v));
    p.pod_spec = json_is_object(from) ? json_deep_copy(from) : json_object();
    p.pod = json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "Pod", "metadata", p.metadata, "spec",
                      p.pod_spec);
    take_over(json_object_get(template, "metadata"), p.metadata);
    str_fmt(count, sizeof(count), "%d", restarts);
    if (restarts > 0)
        json_object_set_new(json_fill_object(p.metadata, "annotations"), "trainyard.dev/restarts", json_string(count));
    if (!v->kind->service_per_replica)
        put_address(&p, name);
    find_container(&p);
    return p;
}

/* The job would run, and its results would be lost at the end. */
static void warn_of_output(const struct pod_build *p, struct buf *warn)
{
    const json_t *volume = json_find_named(json_object_get(p->pod_spec, "volumes"), "trainyard-output");

    if (is_leader(p->v, p->role, p->index) && storage_source(p->spec, "output") == NULL && json_has(volume, "emptyDir"))
        warn_line(warn, "NoOutputVolume",
                  "checkpoints, summaries and the model are lost with this pod: spec.storage.output names no volume");
}

json_t *build_pod(const struct job_spec *v, const json_t *spec, enum role r, int index, int restarts,
                  const struct claim_info *claims, size_t nclaims, const struct job_identity *identity,
                  const struct build_settings *s, struct buf *warn)
{
    struct pod_build p = begin(v, spec, r, index, restarts, s);

    put_labels(&p);
    put_restart_policy(&p, warn);
    put_gang(&p, warn);
    if (p.container != NULL)
        fill_port(p.container, TFJOB_PORT, pod_ports_of(v, r, index).grpc);
    if (pod_cluster_env(&p))
        warn_line(warn, "SetPodTemplateTFConfig",
                  "the TF_CONFIG in the pod template is replaced by the operator's; give it another name to keep it");
    if (v->kind->own_processes) {
        if (v->has_model)
            fill_port(p.container, "http", pod_ports_of(v, r, index).http);
        pod_defaults(&p);
        pod_volumes(&p);
        warn_of_output(&p, warn);
        pod_claims(&p, claims, nclaims);
    }
    if (p.container != NULL && identity != NULL)
        pod_identity(&p, identity);
    return p.pod;
}
