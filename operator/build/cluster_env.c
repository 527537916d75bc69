/* How a replica learns who the others are: TF_CONFIG, and beside it the JOB_NAME family for programs that read that. */
#include "build/parts.h"
#include "job/cluster.h"

static void put_address(const struct pod_build *p, enum role r, int index, struct strlist *hosts)
{
    const struct job_view *v = p->v;
    const char *domain = p->s->cluster_domain != NULL ? p->s->cluster_domain : "";
    bool own_service = v->kind->service_per_replica;
    char name[128], address[512];

    str_fmt(address, sizeof(address), "%s%s%s.%s.svc%s%s:%d", job_view_pod_name(v, r, index, name), own_service ? "" : ".",
            own_service ? "" : v->name, v->ns, *domain != '\0' ? "." : "", domain, v->roles[r].port);
    strlist_add(hosts, address);
}

static void cluster_of(const struct pod_build *p, struct cluster *c)
{
    *c = (struct cluster){ .configured = true, .role = p->role, .index = p->index, .master = p->v->master };
    for (int r = 0; r < ROLE_COUNT; r++) {
        c->listed[r] = p->v->roles[r].present && !p->v->kind->own_processes; /* training-operator writes [] */
        for (int i = 0; i < p->v->roles[r].replicas; i++)
            put_address(p, (enum role)r, i, &c->hosts[r]);
    }
}

static void add_env(json_t *container, const char *name, const char *value)
{
    json_array_append_new(array_in(container, "env"), json_pack("{s:s, s:s}", "name", name, "value", value));
}

void put_env(json_t *container, const char *name, const char *value)
{
    if (named_in(json_object_get(container, "env"), name) == NULL)
        add_env(container, name, value);
}

static void put_hosts(json_t *container, const char *name, const struct strlist *hosts)
{
    AUTO_FINI(buf) text = BUF_INIT;

    for (size_t i = 0; i < hosts->n; i++)
        buf_printf(&text, "%s%s", i > 0 ? "," : "", hosts->items[i]);
    if (hosts->n > 0)
        put_env(container, name, text.data);
}

/* The family speaks of parameter servers: without them it would be half given. */
static void put_family(struct pod_build *p, const struct cluster *c)
{
    char index[16];

    if (c->hosts[ROLE_PS].n == 0)
        return;
    str_fmt(index, sizeof(index), "%d", p->index);
    put_env(p->container, "JOB_NAME", job_view_role(p->v, p->role));
    put_env(p->container, "TASK_INDEX", index);
    put_hosts(p->container, "PS_HOSTS", &c->hosts[ROLE_PS]);
    put_hosts(p->container, "WORKER_HOSTS", &c->hosts[ROLE_WORKER]);
    put_hosts(p->container, "CHIEF_HOST", &c->hosts[ROLE_CHIEF]);
}

/* A TF_CONFIG that the template has stays where it is, and ours comes after it: the last one counts. TFJob's rule is that
 * the container must have the name; a TrainJob's may be the first one. */
void pod_cluster_env(struct pod_build *p)
{
    const json_t *named = named_in(json_object_get(p->pod_spec, "containers"), p->v->kind->container);
    AUTO_FINI(cluster) c = { .configured = false };

    if (p->container == NULL || alone(p->v) || (named == NULL && !p->v->kind->own_processes))
        return;
    cluster_of(p, &c);
    auto_free char *text = p->v->dynamic ? cluster_to_sparse_tf_config(&c, p->role, p->index)
                                         : cluster_to_tf_config(&c, p->role, p->index);
    add_env(p->container, "TF_CONFIG", text);
    put_family(p, &c);
}
