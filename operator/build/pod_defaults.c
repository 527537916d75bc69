/* Defaults of a TrainJob's pods: the program, what Pod Security "restricted" requires, a probe, a grace period. They
 * fill in only absent members; nothing in the template is changed. */
#include "build/pod_build.h"

#include <math.h>

enum { NONROOT_UID = 65532, GRACE_DEFAULT_S = 120, GRACE_MAX_S = 7 * 24 * 3600 };

/* ---- spec.podDefaults ---- */

static const json_t *job_defaults(const json_t *spec)
{
    return json_object_get(json_object_get(spec, "spec"), "podDefaults");
}

static void add_members(const json_t *from, const char *key, json_t *to)
{
    const json_t *members = json_object_get(from, key);
    json_t *into;

    if (json_object_size(members) > 0 && (into = json_fill_object(to, key)) != NULL)
        json_object_update_missing(into, (json_t *)(uintptr_t)members);
}

static void add_items(const json_t *from, const char *key, json_t *to)
{
    const json_t *items = json_object_get(from, key);
    json_t *into;

    if (json_array_size(items) > 0 && (into = json_fill_array(to, key)) != NULL)
        json_array_extend(into, (json_t *)(uintptr_t)items);
}

void apply_pod_defaults(const json_t *spec, json_t *metadata, json_t *pod_spec)
{
    static const char *const TEXTS[] = { "priorityClassName", "serviceAccountName" };
    const json_t *given = job_defaults(spec);

    add_members(given, "labels", metadata);
    add_members(given, "annotations", metadata);
    add_members(given, "nodeSelector", pod_spec);
    add_items(given, "imagePullSecrets", pod_spec);
    add_items(given, "tolerations", pod_spec);
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++)
        if (json_has(given, TEXTS[i]))
            json_fill(pod_spec, TEXTS[i], json_copy(json_object_get(given, TEXTS[i])));
}

/* ---- security ---- */

/* runAsUser 0 is root, and runAsNonRoot would contradict it. */
static bool wants_root(const json_t *context)
{
    const json_t *user = json_object_get(context, "runAsUser");
    return json_is_integer(user) && json_integer_value(user) == 0;
}

/* OpenShift assigns a range of users to each namespace and rejects pods that name another user. */
static bool leaves_user(const json_t *spec, const struct build_settings *s)
{
    const json_t *given = json_object_get(job_defaults(spec), "assignUser");
    return json_is_boolean(given) ? json_is_false(given) : s->leave_user;
}

void fill_pod_security(json_t *pod_spec, const json_t *container, const json_t *spec, const struct build_settings *s)
{
    json_t *c = json_fill_object(pod_spec, "securityContext");

    if (!wants_root(c) && !wants_root(json_object_get(container, "securityContext")))
        json_fill(c, "runAsNonRoot", json_true());
    if (!leaves_user(spec, s)) {
        json_fill(c, "runAsUser", json_integer(NONROOT_UID));
        json_fill(c, "runAsGroup", json_integer(NONROOT_UID));
        json_fill(c, "fsGroup", json_integer(NONROOT_UID));
        json_fill(c, "fsGroupChangePolicy",
                  json_string("OnRootMismatch")); /* not a recursive chown of a large volume at every start */
    }
    json_fill(c, "seccompProfile", json_pack("{s:s}", "type", "RuntimeDefault"));
}

void fill_container_security(json_t *container)
{
    json_t *c = json_fill_object(container, "securityContext");

    if (!json_is_true(json_object_get(c, "privileged")))
        json_fill(c, "allowPrivilegeEscalation", json_false());
    json_fill(c, "readOnlyRootFilesystem", json_true());
    json_fill(c, "capabilities", json_pack("{s:[s]}", "drop", "ALL"));
}

/* ---- architecture of the image ---- */

static bool mentions(const json_t *v, const char *text)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_string(v))
        return str_eq(json_string_value(v), text);
    json_array_foreach(v, i, member) if (mentions(member, text)) return true;
    json_object_foreach((json_t *)(uintptr_t)v, key, member) if (mentions(member, text)) return true;
    return false;
}

/* In a cluster of several architectures a pod could otherwise start on a node that cannot run its image. */
static void put_architecture(struct pod_build *p)
{
    static const char LABEL[] = "kubernetes.io/arch";

    if (p->s->architecture == NULL || *p->s->architecture == '\0' ||
        mentions(json_at(p->pod_spec, "affinity.nodeAffinity"), LABEL))
        return;
    json_fill(json_fill_object(p->pod_spec, "nodeSelector"), LABEL, json_string(p->s->architecture));
}

/* ---- the program ---- */

static void put_program(struct pod_build *p)
{
    json_t *c = p->container, *args;

    if (json_has(c, "command") || json_has(c, "args"))
        return;
    args = json_pack("[s, s]", "--job", "/etc/trainyard/job.yaml");
    if (p->role == ROLE_PS) {
        json_array_append_new(args, json_string("--job-uid"));
        json_array_append_new(args, json_string(p->v->uid));
    } else {
        static const char *const FOLDERS[] = { "--data-dir", "/data", "--output-dir", "/logs" };
        for (size_t i = 0; i < COUNT_OF(FOLDERS); i++)
            json_array_append_new(args, json_string(FOLDERS[i]));
    }
    json_array_append_new(args, json_string("--http-port"));
    json_array_append_new(args, json_sprintf("%d", pod_ports_of(p->v, p->role, p->index).http));
    json_object_set_new(c, "command", json_pack("[s]", p->role == ROLE_PS ? "trainyard-ps" : "trainyard-worker"));
    json_object_set_new(c, "args", args);
}

static void put_image(struct pod_build *p)
{
    if (json_has(p->container, "image"))
        return;
    json_object_set_new(p->container, "image", json_string(p->s->trainer_image));
    put_architecture(p);
    if (p->s->pull_policy != NULL && *p->s->pull_policy != '\0')
        json_fill(p->container, "imagePullPolicy", json_string(p->s->pull_policy));
}

static int grace_of(const struct pod_build *p)
{
    const json_t *fit = json_object_get(json_object_get(p->spec, "spec"), "fit"),
                 *given = json_object_get(fit, "stopGraceSeconds");
    double seconds = json_is_number(given) ? ceil(json_number_value(given)) : GRACE_DEFAULT_S;

    return (int)MAX(1.0, MIN(seconds, (double)GRACE_MAX_S));
}

/* The kubelet evicts a pod whose files take more than its limit, so the worker must know it. */
static void put_cache_space(json_t *container)
{
    const char *name = "TRAINYARD_CACHE_SPACE";
    const json_t *limits = json_object_get(json_object_get(container, "resources"), "limits");
    if (!json_has(limits, "ephemeral-storage") || json_find_named(json_object_get(container, "env"), name) != NULL)
        return;
    json_array_append_new(json_fill_array(container, "env"),
                          json_pack("{s:s, s:{s:{s:s}}}", "name", name, "valueFrom", "resourceFieldRef", "resource",
                                    "limits.ephemeral-storage"));
}

/* Only for Trainyard's own programs. */
static void put_own(struct pod_build *p)
{
    json_t *c = p->container;

    put_program(p);
    fill_env(c, "TRAINYARD_TERMINATION_LOG", "/dev/termination-log");
    fill_env(c, "TMPDIR", "/tmp");
    if (p->role == ROLE_WORKER && !is_leader(p->v, p->role, p->index))
        fill_env(c, "TRAINYARD_CACHE_DIR", "/tmp/cache"); /* the others cache indexes on the output volume */
    if (p->role != ROLE_PS)
        put_cache_space(c);
    json_fill(c, "readinessProbe",
              json_pack("{s:{s:s, s:i}, s:i, s:i}", "httpGet", "path", "/readyz", "port",
                        pod_ports_of(p->v, p->role, p->index).http, "initialDelaySeconds", 1, "periodSeconds", 2));
    json_fill(c, "resources", json_pack("{s:{s:s, s:s}}", "requests", "cpu", "100m", "memory", "128Mi"));
    json_fill(c, "terminationMessagePolicy", json_string("FallbackToLogsOnError"));
    fill_container_security(c);
    fill_pod_security(p->pod_spec, c, p->spec, p->s);
    json_fill(p->pod_spec, "terminationGracePeriodSeconds", json_integer(grace_of(p)));
}

/* ---- lost nodes ---- */

/* The member equals `text`, or is absent, which matches all. */
static bool is_or_open(const json_t *toleration, const char *member, const char *text)
{
    const char *s = json_string_value(json_object_get(toleration, member));
    return s == NULL || *s == '\0' || str_eq(s, text);
}

static bool tolerates(const json_t *tolerations, const char *key)
{
    size_t i;
    const json_t *t;

    json_array_foreach(tolerations, i,
                       t) if (is_or_open(t, "key", key) && is_or_open(t, "effect", "NoExecute")) return true;
    return false;
}

static void put_tolerations(struct pod_build *p)
{
    static const char *const LOST[] = { "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable" };
    bool found[COUNT_OF(LOST)];

    for (size_t i = 0; i < COUNT_OF(LOST); i++)
        found[i] = p->s->lost_after_s <= 0 || tolerates(json_object_get(p->pod_spec, "tolerations"), LOST[i]);
    for (size_t i = 0; i < COUNT_OF(LOST); i++)
        if (!found[i])
            json_array_append_new(json_fill_array(p->pod_spec, "tolerations"),
                                  json_pack("{s:s, s:s, s:s, s:i}", "key", LOST[i], "operator", "Exists", "effect",
                                            "NoExecute", "tolerationSeconds", p->s->lost_after_s));
}

/* Without it a pod on its node's network cannot resolve the names of the others. */
static void put_dns_policy(struct pod_build *p)
{
    if (json_is_true(json_object_get(p->pod_spec, "hostNetwork")))
        json_fill(p->pod_spec, "dnsPolicy", json_string("ClusterFirstWithHostNet"));
}

void pod_defaults(struct pod_build *p)
{
    apply_pod_defaults(p->spec, p->metadata, p->pod_spec);
    put_dns_policy(p);
    put_image(p);
    if (p->v->has_model)
        put_own(p);
    json_fill(p->pod_spec, "automountServiceAccountToken", json_false());
    json_fill(p->pod_spec, "enableServiceLinks", json_false());
    put_tolerations(p);
}
