/* Reads a TrainJob or TFJob and fills in defaults. Both kinds are read by the same code. */
#include <string.h>
#include <strings.h>

#include "api/job_spec_internal.h"
#include "api/time.h"

enum { REPLICAS_MAX = 5000, PORT_DEFAULT = 2222, PORT_MAX = 65535 };
#define PORT_NAME "tfjob-port"
#define MASTER    "Master"

/* ---- values, or their defaults ---- */

static int64_t number(struct spec_reader *r, const struct node *n, const char *key, int64_t fallback, int64_t min,
                      int64_t max)
{
    int64_t v;
    return node_i64_or(n, key, fallback, min, max, &v, spec_reader_fault(r)) < 0 ? fallback : v;
}

static int number32(struct spec_reader *r, const struct node *n, const char *key, int fallback, int min)
{
    return (int)number(r, n, key, fallback, min, INT32_MAX);
}

static bool flag(struct spec_reader *r, const struct node *n, const char *key)
{
    bool v;
    return node_bool_or(n, key, false, &v, spec_reader_fault(r)) < 0 ? false : v;
}

/* Borrowed; NULL when absent or empty, because Go does not distinguish the two. */
static const char *text(struct spec_reader *r, const struct node *n, const char *key)
{
    const char *v;
    if (node_str_or(n, key, NULL, &v, spec_reader_fault(r)) < 0 || v == NULL || v[0] == '\0')
        return NULL;
    return v;
}

static char *text_copy(struct spec_reader *r, const struct node *n, const char *key)
{
    const char *v = text(r, n, key);
    return v != NULL ? xstrdup(v) : NULL;
}

static size_t choice(struct spec_reader *r, const struct node *n, const char *key, const char *const names[],
                     size_t nnames, size_t fallback)
{
    struct node member = node_get(n, key);
    size_t i;

    if (text(r, n, key) == NULL || node_enum(&member, names, nnames, &i, spec_reader_fault(r)) < 0)
        return fallback;
    return i;
}

/* ---- roles ---- */

int job_spec_role_of(const struct job_kind *k, const char *key, bool *ret_master)
{
    int (*differ)(const char *, const char *) = k->any_case ? strcasecmp : strcmp;

    *ret_master = differ(key, MASTER) == 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        if (differ(key, role_key((enum role)r)) == 0)
            return r;
    return *ret_master ? ROLE_CHIEF : -1;
}

/* The training container: the one of that name, else the first, as in training-operator. */
static struct node training_container(const struct spec_reader *r, const struct node *template)
{
    struct node spec = node_get(template, "spec"), list = node_get(&spec, "containers"), none = { .v = NULL };

    for (size_t i = 0; json_is_array(list.v) && i < node_size(&list); i++) {
        struct node one = node_item(&list, i);
        if (str_eq(json_string_value(json_object_get(one.v, "name")), r->v->kind->container))
            return one;
    }
    return json_is_array(list.v) && node_size(&list) > 0 ? node_item(&list, 0) : none;
}

static int port_of(struct spec_reader *r, const struct node *template)
{
    struct node container = training_container(r, template), ports = node_get(&container, "ports");

    for (size_t i = 0; json_is_array(ports.v) && i < node_size(&ports); i++) {
        struct node port = node_item(&ports, i);
        if (str_eq(json_string_value(json_object_get(port.v, "name")), PORT_NAME))
            return (int)number(r, &port, "containerPort", PORT_DEFAULT, 1, PORT_MAX);
    }
    return PORT_DEFAULT;
}

/* A program of the template listens where it wants. */
static bool has_host_ports(const struct spec_reader *r, const struct node *template)
{
    struct node pod = node_get(template, "spec"), network = node_get(&pod, "hostNetwork"),
                container = training_container(r, template), command = node_get(&container, "command"),
                args = node_get(&container, "args"), ports = node_get(&container, "ports"),
                model = node_get(&r->spec, "model");
    return json_is_true(network.v) && r->v->kind->own_processes && node_present(&model) && command.v == NULL &&
           args.v == NULL && ports.v == NULL;
}

static enum restart_policy restart_of(struct spec_reader *r, const struct node *n)
{
    const char *names[] = { restart_policy_name(RESTART_EXIT_CODE), restart_policy_name(RESTART_ON_FAILURE),
                            restart_policy_name(RESTART_ALWAYS), restart_policy_name(RESTART_NEVER) };
    return (enum restart_policy)choice(r, n, "restartPolicy", names, COUNT_OF(names), r->v->kind->restart);
}

static void read_role(struct spec_reader *r, enum role role, const struct node *n)
{
    struct node template = node_get(n, "template"), pod = node_get(&template, "spec");

    r->role[role] = *n;
    r->v->roles[role] = (struct role_spec){
        .present = true,
        .replicas = (int)number(r, n, "replicas", 1, 0, REPLICAS_MAX),
        .restart = restart_of(r, n),
        .port = port_of(r, &template),
        .host_ports = has_host_ports(r, &template),
        .grace_s = number32(r, &pod, "terminationGracePeriodSeconds", -1, 0),
    };
}

static void unknown_role(struct spec_reader *r, const char *key)
{
    const char *const names[] = { role_key(ROLE_CHIEF), MASTER, role_key(ROLE_PS), role_key(ROLE_WORKER),
                                  role_key(ROLE_EVALUATOR) };
    char cure[64];

    str_did_you_mean(key, names, COUNT_OF(names), cure, sizeof(cure));
    node_key_error(&r->roles, key, spec_reader_fault(r), "'%.60s' is not known%s", key,
                   cure[0] != '\0' ? cure : "; it must be Chief, Master, PS, Worker or Evaluator");
}

static void read_role_key(struct spec_reader *r, const char *key)
{
    struct node n = node_get(&r->roles, key);
    bool master;
    int role = job_spec_role_of(r->v->kind, key, &master);

    if (role < 0) {
        unknown_role(r, key);
    } else if (r->v->roles[role].present) {
        node_error(&n, spec_reader_fault(r),
                   role == ROLE_CHIEF ? "Chief and Master are the same role; give one of them"
                                      : "the same role is given twice, in different spelling");
    } else if (node_present(&n) || r->v->kind->any_case) {
        read_role(r, (enum role)role, &n);
        r->v->master = r->v->master || master;
    }
}

/* A TrainJob without replicas is one process. */
static void read_roles(struct spec_reader *r)
{
    const char *key;
    json_t *one;

    json_object_foreach((json_t *)(uintptr_t)r->roles.v, key, one) read_role_key(r, key);
    if (!node_present(&r->roles) && r->v->kind->own_processes)
        r->v->roles[ROLE_WORKER] = (struct role_spec){
            .present = true, .replicas = 1, .restart = r->v->kind->restart, .port = PORT_DEFAULT, .grace_s = -1
        };
}

/* ---- run policy ---- */

static void read_gang(struct spec_reader *r)
{
    struct node n = node_get(&r->policy, "schedulingPolicy");

    r->v->gang = (struct gang_spec){
        .min_available = number32(r, &n, "minAvailable", 0, 0),
        .queue = text_copy(r, &n, "queue"),
        .priority_class = text_copy(r, &n, "priorityClass"),
        .timeout_s = number32(r, &n, "scheduleTimeoutSeconds", 0, 0),
    };
}

static bool is_ours(const struct job_kind *k, const char *managed_by)
{
    const char *us = k->own_processes ? "trainyard.dev/trainjob-controller" : "kubeflow.org/training-operator";
    return managed_by == NULL || strcmp(managed_by, us) == 0;
}

static void read_policy(struct spec_reader *r, enum clean_pod_policy default_clean)
{
    static const char *const CLEAN[] = { "Running", "All", "None" }, *const STALL[] = { "Notify", "Restart", "Fail" },
                             *const SCOPE[] = { "Replica", "Job" };
    struct job_spec *v = r->v;
    const struct node *n = &r->policy;

    v->clean = (enum clean_pod_policy)choice(r, n, "cleanPodPolicy", CLEAN, COUNT_OF(CLEAN), default_clean);
    v->ttl_s = number(r, n, "ttlSecondsAfterFinished", -1, 0, INT32_MAX);
    v->deadline_s = number(r, n, "activeDeadlineSeconds", -1, 0, INT64_MAX / 1000);
    v->backoff_limit = number(r, n, "backoffLimit", v->kind->backoff_limit, 0, INT32_MAX);
    v->stall_s = number(r, n, "stallSeconds", -1, 1, INT32_MAX);
    v->stall = (enum stall_policy)choice(r, n, "stallPolicy", STALL, COUNT_OF(STALL), STALL_NOTIFY);
    if (v->kind->own_processes)
        v->scope = (enum restart_scope)choice(r, n, "restartScope", SCOPE, COUNT_OF(SCOPE), SCOPE_REPLICA);
    v->suspend = flag(r, n, "suspend");
    v->managed_elsewhere = !is_ours(v->kind, text(r, n, "managedBy")) ||
                           (v->kind->own_processes && !is_ours(v->kind, text(r, &r->spec, "managedBy")));
    read_gang(r);
}

/* ---- claims ---- */

static void add_claim(struct spec_reader *r, const char *volume, bool chief, bool workers)
{
    struct node storage = node_get(&r->spec, "storage"), source = node_get(&storage, volume),
                claim = node_get(&source, "persistentVolumeClaim");
    const char *name = text(r, &claim, "claimName");
    struct job_spec *v = r->v;
    size_t i = 0;

    if (name == NULL || !job_is_object_name(name)) /* it becomes part of an API path */
        return;
    while (i < v->nclaims && strcmp(v->claims[i].name, name) != 0)
        i++;
    if (i == CLAIMS_MAX)
        return;
    if (i == v->nclaims) {
        v->claims = xrealloc(v->claims, (i + 1) * sizeof(*v->claims));
        v->claims[v->nclaims++] = (struct claim_spec){ .name = xstrdup(name) };
    }
    v->claims[i].chief |= chief;
    v->claims[i].workers |= workers;
}

/* Without a chief, worker 0 does its work. Pods of TFJobs mount only the volumes of their templates. */
static void read_claims(struct spec_reader *r)
{
    const struct job_spec *v = r->v;
    bool workers = v->roles[ROLE_WORKER].replicas > 0, leads = job_spec_leader(v) == ROLE_CHIEF;
    bool beside = v->roles[ROLE_EVALUATOR].replicas > 0;

    if (!v->kind->own_processes)
        return;
    add_claim(r, "data", leads || beside, workers);
    add_claim(r, "output", leads || beside || v->tensorboard, workers && !leads);
}

/* ---- the object ---- */

static void read_metadata(struct spec_reader *r)
{
    struct job_spec *v = r->v;
    const json_t *m = r->metadata.v;
    const char *ns = json_string_value(json_object_get(m, "namespace")),
               *name = json_string_value(json_object_get(m, "name")),
               *uid = json_string_value(json_object_get(m, "uid"));

    v->ns = xstrdup(ns != NULL ? ns : "");
    v->name = xstrdup(name != NULL ? name : "");
    v->uid = xstrdup(uid != NULL ? uid : "");
    v->generation = json_integer_value(json_object_get(m, "generation"));
    v->created_ms = time_parse(json_string_value(json_object_get(m, "creationTimestamp")));
    v->deleting = json_is_string(json_object_get(m, "deletionTimestamp"));
}

/* An image of the user's own may not know what to do with certificates, so it gets them only when asked for. */
static bool asks_for_identity(const json_t *object)
{
    const json_t *annotations = json_object_get(json_object_get(object, "metadata"), "annotations");
    return str_eq(json_string_value(json_object_get(annotations, IDENTITY_ANNOTATION)), "true");
}

/* Of a model; without one its images decide how they train. */
static void read_strategy(struct spec_reader *r)
{
    struct node strategy = node_get(&r->spec, "strategy"), name = node_get(&strategy, "name");

    r->v->all_reduce = str_eq(json_string_value(name.v), strategy_name(STRATEGY_MULTI_WORKER_MIRRORED));
    r->v->min_workers = r->v->all_reduce ? number32(r, &strategy, "minReplicas", 1, 1) : 0;
}

void job_spec_read(struct spec_reader *r, enum clean_pod_policy default_clean)
{
    static const char *const SUCCESS[] = { "AllWorkers" };
    struct node top = node_root(r->object, NULL), model, board;
    struct job_spec *v = r->v;

    r->metadata = node_get(&top, "metadata");
    r->spec = node_get(&top, "spec");
    r->roles = node_get(&r->spec, v->kind->replica_specs);
    r->policy = node_get(&r->spec, "runPolicy");
    read_metadata(r);
    read_roles(r);
    read_policy(r, v->kind->own_processes ? v->kind->clean : default_clean);
    if (v->kind->own_processes) {
        model = node_get(&r->spec, "model");
        board = node_get(&r->spec, "tensorboard");
        v->has_model = node_present(&model);
        v->tensorboard = node_present(&board);
        if (v->has_model)
            read_strategy(r);
    } else {
        v->all_workers = choice(r, &r->spec, "successPolicy", SUCCESS, COUNT_OF(SUCCESS), COUNT_OF(SUCCESS)) == 0;
        v->dynamic = flag(r, &r->spec, "enableDynamicWorker");
    }
    v->identity = v->has_model || asks_for_identity(r->object);
    read_claims(r);
}
