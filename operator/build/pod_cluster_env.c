/* The addresses of the other replicas in a pod's environment: TF_CONFIG, and JOB_NAME with its family for programs that
 * read those. Any variable but TF_CONFIG in the template is kept. */
#include "build/pod_build.h"
#include "job/tf_config.h"

static void put_address(const struct pod_build *p, enum role r, int index, struct cluster *c)
{
    const struct job_spec *v = p->v;
    const char *domain = p->s->cluster_domain != NULL ? p->s->cluster_domain : "";
    bool own_service = v->kind->service_per_replica;
    char name[128], address[512];

    str_fmt(address, sizeof(address), "%s%s%s.%s.svc%s%s:%d", job_spec_pod_name(v, r, index, name),
            own_service ? "" : ".", own_service ? "" : v->name, v->ns, *domain != '\0' ? "." : "", domain,
            pod_ports_of(v, r, index).grpc);
    hosts_put(&c->hosts[r], (size_t)index, address);
}

/* Trainyard's own programs get the addresses of the ps and the leader only; all replicas register with the chief. */
static bool is_listed(const struct job_spec *v, enum role r, int index)
{
    return !v->has_model || r == ROLE_PS || is_leader(v, r, index);
}

/* A worker of an all-reduce is a server: it listens at its own address, and the chief tells it to the others. So those
 * that were there before it find it, too. */
static bool lists_itself(const struct pod_build *p)
{
    return p->v->all_reduce && p->role == ROLE_WORKER && !is_listed(p->v, p->role, p->index);
}

static void cluster_of(const struct pod_build *p, struct cluster *c)
{
    const struct job_spec *v = p->v;
    *c = (struct cluster){ .configured = true,
                           .role = p->role,
                           .index = p->index,
                           .master = v->master,
                           .workers = v->has_model ? v->roles[ROLE_WORKER].replicas : 0 };
    for (int r = 0; r < ROLE_COUNT; r++) {
        c->listed[r] = v->roles[r].present && !v->kind->own_processes; /* training-operator writes [] */
        for (int i = 0; i < v->roles[r].replicas && is_listed(v, (enum role)r, i); i++)
            put_address(p, (enum role)r, i, c);
    }
    if (lists_itself(p))
        put_address(p, p->role, p->index, c);
}

static void add_env(json_t *container, const char *name, const char *value)
{
    json_array_append_new(json_fill_array(container, "env"), json_pack("{s:s, s:s}", "name", name, "value", value));
}

void fill_env(json_t *container, const char *name, const char *value)
{
    if (json_find_named(json_object_get(container, "env"), name) == NULL)
        add_env(container, name, value);
}

/* The value is in the job's ConfigMap. */
static void add_env_from(const struct pod_build *p, const char *name, const char *key)
{
    char config[128];
    json_array_append_new(json_fill_array(p->container, "env"),
                          json_pack("{s:s, s:{s:{s:s, s:s}}}", "name", name, "valueFrom", "configMapKeyRef", "name",
                                    build_config_map_name(p->v, config), "key", key));
}

static char *hosts_text(const struct strlist *hosts)
{
    AUTO_FINI(buf) text = BUF_INIT;

    for (size_t i = 0; i < hosts->n; i++)
        buf_printf(&text, "%s%s", i > 0 ? "," : "", hosts->items[i]);
    return buf_detach(&text);
}

static const struct {
    enum role role;
    const char *name, *key;
} FAMILY[] = { { ROLE_PS, "PS_HOSTS", "ps-hosts" },
               { ROLE_WORKER, "WORKER_HOSTS", "worker-hosts" },
               { ROLE_CHIEF, "CHIEF_HOST", "chief-host" } };

/* A TrainJob's pods read their peers' addresses from its ConfigMap, which stores them once. A TFJob has no ConfigMap.
 */
static void put_hosts(struct pod_build *p, const char *name, const char *key, const struct strlist *hosts)
{

    if (hosts->n == 0 || json_find_named(json_object_get(p->container, "env"), name) != NULL)
        return;
    auto_free char *text = hosts_text(hosts);
    if (p->v->kind->own_processes)
        add_env_from(p, name, key);
    else
        add_env(p->container, name, text);
}

/* For programs that do not read TF_CONFIG; Trainyard's do. The variables describe parameter servers, so they are set
 * only for jobs with parameter servers. */
static void put_family(struct pod_build *p, const struct cluster *c)
{
    char index[16];

    if (p->v->has_model || c->hosts[ROLE_PS].n == 0)
        return;
    str_fmt(index, sizeof(index), "%d", p->index);
    fill_env(p->container, "JOB_NAME", job_spec_role_name(p->v, p->role));
    fill_env(p->container, "TASK_INDEX", index);
    for (size_t i = 0; i < COUNT_OF(FAMILY); i++)
        put_hosts(p, FAMILY[i].name, FAMILY[i].key, &c->hosts[FAMILY[i].role]);
}

/* The kubelet replaces $(CLUSTER_VARIABLE) by its value. */
#define CLUSTER_VARIABLE "TRAINYARD_CLUSTER"

static char *tf_config_of(struct pod_build *p, const struct cluster *c)
{
    if (p->v->dynamic)
        return cluster_to_sparse_tf_config(c, p->role, p->index);
    if (p->v->has_model || !p->v->kind->own_processes)
        return cluster_to_tf_config(c, p->role, p->index);
    add_env_from(p, CLUSTER_VARIABLE, "cluster");
    return cluster_to_tf_config_around(c, "$(" CLUSTER_VARIABLE ")", p->role, p->index);
}

json_t *cluster_config_data(const struct job_spec *v, const struct build_settings *s)
{
    struct pod_build p = { .v = v, .s = s };
    AUTO_FINI(cluster) c = { .configured = false };

    cluster_of(&p, &c);
    auto_free char *cluster = cluster_to_json(&c);
    json_t *data = json_pack("{s:s}", "cluster", cluster);
    for (size_t i = 0; i < COUNT_OF(FAMILY); i++) {
        auto_free char *text = hosts_text(&c.hosts[FAMILY[i].role]);
        if (c.hosts[FAMILY[i].role].n > 0)
            json_object_set_new(data, FAMILY[i].key, json_string(text));
    }
    return data;
}

char *build_cluster_fault(const struct job_spec *v, const struct build_settings *s)
{
    struct cluster_names n = { .job = v->name,
                               .ns = v->ns,
                               .domain = s->cluster_domain != NULL ? s->cluster_domain : "",
                               .service_per_replica = v->kind->service_per_replica };

    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < v->roles[r].replicas && is_listed(v, (enum role)r, i); i++)
            n.replicas[r]++;
    auto_free char *text = cluster_too_large(&n);
    return text != NULL ? xasprintf("spec.%s: %s", v->kind->replica_specs, text) : NULL;
}

static bool remove_env(json_t *container, const char *name)
{
    json_t *env = json_object_get(container, "env");
    bool removed = false;
    for (size_t i = json_array_size(env); i-- > 0;)
        if (str_eq(json_string_value(json_object_get(json_array_get(env, i), "name")), name))
            removed = json_array_remove(env, i) == 0;
    return removed;
}

/* A TF_CONFIG of the template is replaced: in training-operator's pods the operator's came last and won. For a TFJob
 * the container must have its fixed name; for a TrainJob it may be the first container. */
bool pod_cluster_env(struct pod_build *p)
{
    const json_t *named = json_find_named(json_object_get(p->pod_spec, "containers"), p->v->kind->container);
    AUTO_FINI(cluster) c = { .configured = false };

    if (p->container == NULL || is_single_process(p->v) || (named == NULL && !p->v->kind->own_processes))
        return false;
    cluster_of(p, &c);
    auto_free char *text = tf_config_of(p, &c);
    bool replaced = remove_env(p->container, "TF_CONFIG");
    add_env(p->container, "TF_CONFIG", text);
    put_family(p, &c);
    return replaced;
}
