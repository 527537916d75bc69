/* Volumes of a TrainJob: their mounts in each pod, and node affinity or an error according to the access modes of
 * claims.
 */
#include "build/pod_build.h"

/* ---- mounts ---- */

static bool runs_trainyard(const struct pod_build *p)
{
    return p->v->has_model;
}

static bool reads_data(const struct pod_build *p)
{
    return p->role != ROLE_PS && storage_source(p->spec, "data") != NULL;
}

/* The leader writes checkpoints and summaries; the evaluator reads checkpoints and writes summaries. */
static bool writes_output(const struct pod_build *p)
{
    bool has_output = p->v->has_model || storage_source(p->spec, "output") != NULL;
    return has_output && (is_leader(p->v, p->role, p->index) || p->role == ROLE_EVALUATOR);
}

static json_t *job_source(const struct pod_build *p)
{
    char name[128];
    return json_pack("{s:{s:s}}", "configMap", "name", build_config_map_name(p->v, name));
}

static json_t *data_source(const struct pod_build *p)
{
    return json_deep_copy(storage_source(p->spec, "data"));
}

static json_t *empty_source(const struct pod_build *p UNUSED)
{
    return json_pack("{s:{}}", "emptyDir");
}

/* Without a volume the output is lost with the pod. */
static json_t *output_source(const struct pod_build *p)
{
    const json_t *given = storage_source(p->spec, "output");
    return given != NULL ? json_deep_copy(given) : empty_source(p);
}

static const struct mount {
    const char *volume, *path;
    bool read_only;
    bool (*wanted)(const struct pod_build *p);
    json_t *(*source)(const struct pod_build *p);
} MOUNTS[] = {
    { "trainyard-job", "/etc/trainyard", true, runs_trainyard, job_source },
    { "trainyard-data", "/data", true, reads_data, data_source },
    { "trainyard-output", "/logs", false, writes_output, output_source },
    { "trainyard-tmp", "/tmp", false, runs_trainyard, empty_source },
};

static bool is_mounted(const json_t *container, const char *path)
{
    const json_t *mounts = json_object_get(container, "volumeMounts"), *m;
    size_t i;

    json_array_foreach(mounts, i, m) if (str_eq(json_string_value(json_object_get(m, "mountPath")), path)) return true;
    return false;
}

/* A claim that the pod already has is mounted from the same volume: not every kubelet can mount a claim twice. */
static const char *volume_of_claim(const json_t *volumes, const json_t *source)
{
    const json_t *claim = json_object_get(source, "persistentVolumeClaim"), *v;
    size_t i;

    json_array_foreach(volumes, i,
                       v) if (claim != NULL && json_equal(json_object_get(v, "persistentVolumeClaim"),
                                                          claim)) return json_string_value(json_object_get(v, "name"));
    return NULL;
}

static const char *put_volume(struct pod_build *p, const char *name, const json_t *source)
{
    json_t *volumes = json_fill_array(p->pod_spec, "volumes"), *volume;
    const char *same = volume_of_claim(volumes, source);

    if (json_find_named(volumes, name) != NULL)
        return name;
    if (same != NULL)
        return same;
    volume = json_pack("{s:s}", "name", name);
    json_object_update_missing(volume, (json_t *)(uintptr_t)source);
    json_array_append_new(volumes, volume);
    return name;
}

void fill_mount(struct pod_build *p, const char *volume, const char *path, bool read_only, const json_t *source)
{
    if (is_mounted(p->container, path))
        return;
    json_t *mount = json_pack("{s:s, s:s}", "name", put_volume(p, volume, source), "mountPath", path);
    if (read_only)
        json_object_set_new(mount, "readOnly", json_true());
    json_array_append_new(json_fill_array(p->container, "volumeMounts"), mount);
}

void pod_volumes(struct pod_build *p)
{
    for (size_t i = 0; i < COUNT_OF(MOUNTS); i++) {
        const struct mount *m = &MOUNTS[i];
        if (!m->wanted(p))
            continue;
        json_auto_t *source = m->source(p);
        fill_mount(p, m->volume, m->path, m->read_only, source);
    }
}

/* ---- access modes ---- */

static const char *claim_in(const json_t *spec, const char *which)
{
    const json_t *claim = json_object_get(storage_source(spec, which), "persistentVolumeClaim");
    return json_string_value(json_object_get(claim, "claimName"));
}

/* The numbers of pods that mount a claim, by role. */
struct claim_users {
    int chiefs, evaluators, workers, boards;
};

static struct claim_users users_of(const struct job_spec *v, const json_t *spec, const char *claim)
{
    bool data = str_eq(claim_in(spec, "data"), claim), output = str_eq(claim_in(spec, "output"), claim);
    bool chief_leads = job_spec_leader(v) == ROLE_CHIEF;
    int workers = v->roles[ROLE_WORKER].replicas, leading = chief_leads ? 0 : MIN(workers, 1);

    return (struct claim_users){
        .chiefs = (data || output) && chief_leads ? v->roles[ROLE_CHIEF].replicas : 0,
        .evaluators = data || output ? v->roles[ROLE_EVALUATOR].replicas : 0,
        .workers = data     ? workers
                   : output ? leading
                            : 0,
        .boards = output && v->tensorboard,
    };
}

static int user_count(const struct claim_users *u)
{
    return u->chiefs + u->evaluators + u->workers + u->boards;
}

static const struct claim_info *claim_info_of(const char *claim, const struct claim_info *claims, size_t nclaims)
{
    for (size_t i = 0; claim != NULL && i < nclaims; i++)
        if (str_eq(claims[i].name, claim))
            return &claims[i];
    return NULL;
}

/* True if several pods mount the claim and it allows only one node. */
static bool needs_one_node(const struct job_spec *v, const json_t *spec, const char *which,
                           const struct claim_info *claims, size_t nclaims)
{
    const struct claim_info *f = claim_info_of(claim_in(spec, which), claims, nclaims);

    if (f == NULL || !f->found || !f->read_write_once || f->read_write_many || f->read_only_many)
        return false;
    struct claim_users u = users_of(v, spec, f->name);
    return user_count(&u) > 1;
}

/* The affinity term also matches the pod itself, so the first pod can be scheduled. */
static void add_node_affinity(const struct job_spec *v, json_t *metadata, json_t *pod_spec)
{
    json_t *affinity = json_fill_object(json_fill_object(pod_spec, "affinity"), "podAffinity");
    json_t *terms = json_fill_array(affinity, "requiredDuringSchedulingIgnoredDuringExecution");

    json_object_set_new(json_fill_object(metadata, "labels"), VOLUME_GROUP, json_string(v->name));
    json_array_append_new(terms, json_pack("{s:{s:{s:s}}, s:s}", "labelSelector", "matchLabels", VOLUME_GROUP, v->name,
                                           "topologyKey", "kubernetes.io/hostname"));
}

void pod_claims(struct pod_build *p, const struct claim_info *claims, size_t nclaims)
{
    if ((reads_data(p) && needs_one_node(p->v, p->spec, "data", claims, nclaims)) ||
        (writes_output(p) && needs_one_node(p->v, p->spec, "output", claims, nclaims)))
        add_node_affinity(p->v, p->metadata, p->pod_spec);
}

void tensorboard_claims(const struct job_spec *v, const json_t *spec, const struct claim_info *claims, size_t nclaims,
                        json_t *metadata, json_t *pod_spec)
{
    if (needs_one_node(v, spec, "output", claims, nclaims))
        add_node_affinity(v, metadata, pod_spec);
}

static void name_users(const struct job_spec *v, const struct claim_users *u, struct buf *out)
{
    const struct {
        int n;
        const char *name;
    } all[] = { { u->chiefs, job_spec_role_name(v, ROLE_CHIEF) },
                { u->evaluators, "evaluator" },
                { u->workers, "worker" },
                { u->boards, "TensorBoard" } };
    int left = 0;

    for (size_t i = 0; i < COUNT_OF(all); i++)
        left += all[i].n > 0;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (all[i].n == 0)
            continue;
        if (out->len > 0)
            buf_str(out, left == 1 ? " and " : ", ");
        if (all[i].n > 1)
            buf_printf(out, "%d ", all[i].n);
        buf_printf(out, "%s%s", all[i].name, all[i].n > 1 ? "s" : "");
        left--;
    }
}

char *build_claims_fault(const struct job_spec *v, const struct claim_info *claims, size_t nclaims)
{
    json_auto_t *spec = job_spec_json(v);

    for (size_t i = 0; i < nclaims; i++) {
        AUTO_FINI(buf) who = BUF_INIT;
        struct claim_users u = users_of(v, spec, claims[i].name);
        if (!claims[i].found || !claims[i].read_write_once_pod || user_count(&u) <= 1)
            continue;
        name_users(v, &u, &who);
        return xasprintf("claim %s is ReadWriteOncePod, but %s mount it; use one that is ReadWriteMany, or "
                         "ReadWriteOnce to have them all on one node",
                         claims[i].name, who.data);
    }
    return NULL;
}
