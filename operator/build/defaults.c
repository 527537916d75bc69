/* What a TrainJob's pods are given where their template is silent: the program, the security that Pod Security
 * "restricted" wants, a probe, a grace. Of what the template says nothing is changed. */
#include "build/parts.h"

#include <math.h>

enum { NOBODY = 65532, GRACE_DEFAULT_S = 120, GRACE_MAX_S = 7 * 24 * 3600 };

/* ---- what the job says once ---- */

static const json_t *job_defaults(const json_t *spec)
{
    return json_object_get(json_object_get(spec, "spec"), "podDefaults");
}

static void add_members(const json_t *from, const char *key, json_t *to)
{
    const json_t *members = json_object_get(from, key);
    json_t *into;

    if (json_object_size(members) > 0 && (into = object_in(to, key)) != NULL)
        json_object_update_missing(into, (json_t *)(uintptr_t)members);
}

static void add_items(const json_t *from, const char *key, json_t *to)
{
    const json_t *items = json_object_get(from, key);
    json_t *into;

    if (json_array_size(items) > 0 && (into = array_in(to, key)) != NULL)
        json_array_extend(into, (json_t *)(uintptr_t)items);
}

void job_pod_defaults(const json_t *spec, json_t *metadata, json_t *pod_spec)
{
    static const char *const TEXTS[] = { "priorityClassName", "serviceAccountName" };
    const json_t *given = job_defaults(spec);

    add_members(given, "labels", metadata);
    add_members(given, "annotations", metadata);
    add_members(given, "nodeSelector", pod_spec);
    add_items(given, "imagePullSecrets", pod_spec);
    add_items(given, "tolerations", pod_spec);
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++)
        if (has(given, TEXTS[i]))
            fill(pod_spec, TEXTS[i], json_copy(json_object_get(given, TEXTS[i])));
}

/* ---- security ---- */

/* 0 asks for root, and then nothing may say the opposite. */
static bool wants_root(const json_t *context)
{
    const json_t *user = json_object_get(context, "runAsUser");
    return json_is_integer(user) && json_integer_value(user) == 0;
}

/* OpenShift gives each namespace a range of users and refuses pods that name another one. */
static bool leaves_user(const json_t *spec, const struct build_settings *s)
{
    const json_t *given = json_object_get(job_defaults(spec), "assignUser");
    return json_is_boolean(given) ? json_is_false(given) : s->leave_user;
}

void secure_pod(json_t *pod_spec, const json_t *container, const json_t *spec, const struct build_settings *s)
{
    json_t *c = object_in(pod_spec, "securityContext");

    if (!wants_root(c) && !wants_root(json_object_get(container, "securityContext")))
        fill(c, "runAsNonRoot", json_true());
    if (!leaves_user(spec, s)) {
        fill(c, "runAsUser", json_integer(NOBODY));
        fill(c, "runAsGroup", json_integer(NOBODY));
        fill(c, "fsGroup", json_integer(NOBODY));
        fill(c, "fsGroupChangePolicy", json_string("OnRootMismatch")); /* a large volume is not walked at every start */
    }
    fill(c, "seccompProfile", json_pack("{s:s}", "type", "RuntimeDefault"));
}

void secure_container(json_t *container)
{
    json_t *c = object_in(container, "securityContext");

    if (!json_is_true(json_object_get(c, "privileged")))
        fill(c, "allowPrivilegeEscalation", json_false());
    fill(c, "readOnlyRootFilesystem", json_true());
    fill(c, "capabilities", json_pack("{s:[s]}", "drop", "ALL"));
}

/* ---- nodes that the image is for ---- */

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

/* In a cluster of several architectures a pod would else start where its image does not run. */
static void put_architecture(struct pod_build *p)
{
    static const char LABEL[] = "kubernetes.io/arch";

    if (p->s->architecture == NULL || *p->s->architecture == '\0' ||
        mentions(json_at(p->pod_spec, "affinity.nodeAffinity"), LABEL))
        return;
    fill(object_in(p->pod_spec, "nodeSelector"), LABEL, json_string(p->s->architecture));
}

/* ---- the program ---- */

static void put_program(struct pod_build *p)
{
    json_t *c = p->container, *args;

    if (has(c, "command") || has(c, "args"))
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
    json_array_append_new(args, json_sprintf("%d", HTTP_PORT));
    json_object_set_new(c, "command", json_pack("[s]", p->role == ROLE_PS ? "trainyard-ps" : "trainyard-worker"));
    json_object_set_new(c, "args", args);
}

static void put_image(struct pod_build *p)
{
    if (has(p->container, "image"))
        return;
    json_object_set_new(p->container, "image", json_string(p->s->trainer_image));
    put_architecture(p);
    if (p->s->pull_policy != NULL && *p->s->pull_policy != '\0')
        fill(p->container, "imagePullPolicy", json_string(p->s->pull_policy));
}

static int grace_of(const struct pod_build *p)
{
    const json_t *fit = json_object_get(json_object_get(p->spec, "spec"), "fit"),
                 *given = json_object_get(fit, "stopGraceSeconds");
    double seconds = json_is_number(given) ? ceil(json_number_value(given)) : GRACE_DEFAULT_S;

    return (int)MAX(1.0, MIN(seconds, (double)GRACE_MAX_S));
}

/* Only what our own programs need. */
static void put_own(struct pod_build *p)
{
    json_t *c = p->container;

    put_program(p);
    put_env(c, "TRAINYARD_TERMINATION_LOG", "/dev/termination-log");
    put_env(c, "TMPDIR", "/tmp");
    if (p->role == ROLE_WORKER && !leads(p->v, p->role, p->index))
        put_env(c, "TRAINYARD_CACHE_DIR", "/tmp/cache"); /* the others keep indexes on the output volume */
    fill(c, "readinessProbe",
         json_pack("{s:{s:s, s:i}, s:i, s:i}", "httpGet", "path", "/readyz", "port", HTTP_PORT, "initialDelaySeconds",
                   1, "periodSeconds", 2));
    fill(c, "resources", json_pack("{s:{s:s, s:s}}", "requests", "cpu", "100m", "memory", "128Mi"));
    fill(c, "terminationMessagePolicy", json_string("FallbackToLogsOnError"));
    secure_container(c);
    secure_pod(p->pod_spec, c, p->spec, p->s);
    fill(p->pod_spec, "terminationGracePeriodSeconds", json_integer(grace_of(p)));
}

/* ---- lost nodes ---- */

/* The member is that text, or is left open, which stands for all. */
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
            json_array_append_new(array_in(p->pod_spec, "tolerations"),
                                  json_pack("{s:s, s:s, s:s, s:i}", "key", LOST[i], "operator", "Exists", "effect",
                                            "NoExecute", "tolerationSeconds", p->s->lost_after_s));
}

void pod_defaults(struct pod_build *p)
{
    job_pod_defaults(p->spec, p->metadata, p->pod_spec);
    put_image(p);
    if (p->v->has_model)
        put_own(p);
    fill(p->pod_spec, "automountServiceAccountToken", json_false());
    fill(p->pod_spec, "enableServiceLinks", json_false());
    put_tolerations(p);
}
