/* Reads pods and services. The training container decides phase and exit code, so that sidecars do not matter to the
 * plan; everything read is untrusted and bounded. */
#include "api/pod_info.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/time.h"

enum { LABEL_KEY_MAX = 64, MESSAGE_MAX = 500, INDEX_MAX = 999999 };
#define RESTARTS_ANNOTATION "trainyard.dev/restarts"

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* A member of metadata.labels; prefix "": the name is complete. */
static const char *label_of(const json_t *metadata, const char *prefix, const char *name)
{
    char key[LABEL_KEY_MAX];

    if (!str_fmt(key, sizeof(key), "%s%s", prefix, name))
        return NULL;
    return text_of(json_object_get(metadata, "labels"), key);
}

static const char *label(const struct job_kind *k, const json_t *object, const char *name)
{
    return label_of(json_object_get(object, "metadata"), k->label_prefix, name);
}

/* Name of the job of this kind that controls it; NULL: none does. */
static const char *owner_name(const struct job_kind *k, const json_t *object)
{
    const json_t *owner;
    size_t i, n = strlen(k->resource.group);

    json_array_foreach(json_object_get(json_object_get(object, "metadata"), "ownerReferences"), i, owner)
    {
        const char *group = text_of(owner, "apiVersion");
        if (json_is_true(json_object_get(owner, "controller")) && str_eq(text_of(owner, "kind"), k->resource.kind) &&
            group != NULL && strncmp(group, k->resource.group, n) == 0 && group[n] == '/')
            return text_of(owner, "name");
    }
    return NULL;
}

const char *object_job_name(const struct job_kind *k, const json_t *object)
{
    const char *owner = owner_name(k, object);
    return owner != NULL ? owner : label(k, object, "job-name");
}

/* ---- what pods and services share ---- */

static int read_role(const char *s, enum role *ret)
{
    if (s != NULL && strcasecmp(s, "master") == 0) {
        *ret = ROLE_CHIEF;
        return 0;
    }
    for (int r = 0; s != NULL && r < ROLE_COUNT; r++) {
        if (strcasecmp(s, role_name((enum role)r)) == 0) {
            *ret = (enum role)r;
            return 0;
        }
    }
    return -1;
}

static int read_index(const char *s, int *ret)
{
    int64_t i;
    if (s == NULL || str_i64(s, 0, INDEX_MAX, &i, NULL) < 0)
        return -1;
    *ret = (int)i;
    return 0;
}

const char *object_owner_uid(const json_t *metadata)
{
    const json_t *owner;
    size_t i;

    json_array_foreach(json_object_get(metadata, "ownerReferences"), i,
                       owner) if (json_is_true(json_object_get(owner, "controller"))) return text_of(owner, "uid");
    return NULL;
}

/* "digits-worker-3" of job "digits" */
static int read_name(const char *name, const char *job, enum role *ret_role, int *ret_index)
{
    size_t n = strlen(job);
    const char *dash = name != NULL ? strrchr(name, '-') : NULL;
    enum role r;
    int i;

    if (dash == NULL || strncmp(name, job, n) != 0 || name[n] != '-' || dash <= name + n)
        return -1;
    auto_free char *role = xstrndup(name + n + 1, (size_t)(dash - name) - n - 1);
    if (read_role(role, &r) < 0 || read_index(dash + 1, &i) < 0)
        return -1;
    *ret_role = r;
    *ret_index = i;
    return 0;
}

/* Finds the replica of the object. ret_right: its labels give the same replica, and are those by which it is watched.
 */
static int read_place(const struct job_kind *k, const json_t *object, enum role *ret_role, int *ret_index,
                      bool *ret_right)
{
    const char *job = owner_name(k, object), *name = text_of(json_object_get(object, "metadata"), "name");
    enum role by_label = ROLE_COUNT;
    int index = -1;

    bool labelled = read_role(label(k, object, "replica-type"), &by_label) == 0 &&
                    read_index(label(k, object, "replica-index"), &index) == 0;
    if (job == NULL || read_name(name, job, ret_role, ret_index) < 0) {
        if (!labelled)
            return -1;
        *ret_role = by_label;
        *ret_index = index;
    }
    *ret_right = labelled && by_label == *ret_role && index == *ret_index &&
                 str_eq(label(k, object, "operator-name"), k->controller) &&
                 (job == NULL || str_eq(label(k, object, "job-name"), job));
    return 0;
}

int64_t object_version(const json_t *metadata)
{
    const char *version = text_of(metadata, "resourceVersion");
    int64_t n;
    return version != NULL && str_i64(version, 0, INT64_MAX, &n, NULL) == 0 ? n : 0;
}

bool object_has_our_labels(const struct job_kind *k, const json_t *metadata, const char *job)
{
    const char *by = k->own_processes ? label_of(metadata, "", "app.kubernetes.io/managed-by")
                                      : label_of(metadata, k->label_prefix, "operator-name");
    return job != NULL && str_eq(by, k->own_processes ? "trainyard-operator" : k->controller) &&
           str_eq(label_of(metadata, k->label_prefix, "job-name"), job);
}

static char *copy_or_null(const char *s)
{
    return s != NULL && s[0] != '\0' ? xstrdup(s) : NULL;
}

/* ---- reason and message ---- */

struct why {
    const char *reason, *message;
    bool last_words; /* the message's end is more useful than its beginning */
};

static bool continues(char c)
{
    return ((unsigned char)c & 0xC0U) == 0x80; /* inside a UTF-8 character */
}

char *text_truncate(const char *s, size_t max, bool keep_end)
{
    size_t n = s != NULL ? strlen(s) : 0, room = max - 3;

    while (n > 0 && strchr(" \t\r\n", s[n - 1]) != NULL)
        n--;
    if (n == 0)
        return NULL;
    if (n <= max)
        return xstrndup(s, n);
    if (keep_end) {
        for (s += n - room; room > 0 && continues(*s); s++)
            room--;
        return xasprintf("...%.*s", (int)room, s);
    }
    while (room > 0 && continues(s[room]))
        room--;
    return xasprintf("%.*s...", (int)room, s);
}

/* ---- containers ---- */

static const json_t *state(const json_t *container, const char *which, const char *name)
{
    return json_object_get(json_object_get(container, which), name);
}

static int exit_code_of(const json_t *terminated)
{
    const json_t *code = json_object_get(terminated, "exitCode");
    json_int_t n = json_integer_value(code);
    return json_is_integer(code) && n >= 0 && n <= INT32_MAX ? (int)n : -1;
}

/* True for the reasons for which every container waits at its start. */
static bool usual_wait(const char *reason)
{
    return reason == NULL || strcmp(reason, "ContainerCreating") == 0 || strcmp(reason, "PodInitializing") == 0;
}

/* The terminated state of the container. NULL: it is running, it never ran, or its end is unknown. In CrashLoopBackOff
 * it is between two runs; then its last end counts. */
static const json_t *ended(const json_t *container)
{
    const json_t *terminated = state(container, "state", "terminated");

    if (terminated != NULL)
        return terminated;
    return state(container, "state", "waiting") != NULL ? state(container, "lastState", "terminated") : NULL;
}

struct containers {
    const json_t *init, *main; /* lists of statuses */
    const json_t *trainer;     /* the training container, by its name, else the first; NULL: no status yet */
    bool named;                /* by its name */
};

static struct containers containers_of(const struct job_kind *k, const json_t *status)
{
    struct containers c = { json_object_get(status, "initContainerStatuses"),
                            json_object_get(status, "containerStatuses"), NULL, false };
    const json_t *one;
    size_t i;

    c.trainer = json_array_get(c.main, 0);
    json_array_foreach(c.main, i, one) if (str_eq(text_of(one, "name"), k->container))
    {
        c.trainer = one;
        c.named = true;
    }
    return c;
}

/* The first container of the list that ended badly. */
static const json_t *first_failed(const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) if (ended(one) != NULL && exit_code_of(ended(one)) > 0) return one;
    return NULL;
}

/* The container whose end counts as the pod's: the trainer. If the pod failed although the trainer did not: another
 * one. */
static const json_t *decisive(const struct containers *c, enum pod_phase phase)
{
    const json_t *own = ended(c->trainer), *other;

    if (phase != POD_FAILED || (own != NULL && exit_code_of(own) != 0))
        return c->trainer;
    other = first_failed(c->init);
    if (other == NULL)
        other = first_failed(c->main);
    return other != NULL ? other : c->trainer;
}

/* The first container of the list that waits for an unusual reason. */
static const json_t *stuck_in(const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        const json_t *waiting = state(one, "state", "waiting");
        if (waiting != NULL && !usual_wait(text_of(waiting, "reason")))
            return one;
    }
    return NULL;
}

/* A native sidecar: an init container that runs beside the others and that the kubelet restarts after any exit code. */
static bool is_native_sidecar(const json_t *spec, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(spec, "initContainers"), i,
                       one) if (name != NULL && str_eq(text_of(one, "name"),
                                                       name)) return str_eq(text_of(one, "restartPolicy"), "Always");
    return false;
}

static int restart_count(const json_t *spec, const json_t *list)
{
    const json_t *one;
    json_int_t sum = 0;
    size_t i;

    json_array_foreach(list, i, one) if (!is_native_sidecar(spec, text_of(one, "name"))) sum +=
        MAX(json_integer_value(json_object_get(one, "restartCount")), 0);
    return (int)MIN(sum, INT32_MAX / 2);
}

/* True if a container of the list other than `except` has not ended. */
static bool others_run(const json_t *list, const json_t *except)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) if (one != except && state(one, "state", "terminated") == NULL) return true;
    return false;
}

/* ---- conditions ---- */

static const json_t *condition(const json_t *status, const char *type, const char *value)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(status, "conditions"), i,
                       one) if (str_eq(text_of(one, "type"), type)) return str_eq(text_of(one, "status"), value)
        ? one
        : NULL;
    return NULL;
}

/* True if it ended before the deletion of the pod began: then the deletion did not cause its exit code. */
static bool ended_undisturbed(const json_t *status, const json_t *terminated)
{
    const json_t *disrupted = condition(status, "DisruptionTarget", "True");
    if (disrupted != NULL)
        return time_parse(text_of(terminated, "finishedAt")) < time_parse(text_of(disrupted, "lastTransitionTime"));
    return text_of(status, "reason") == NULL;
}

static struct why why_from(const json_t *o)
{
    return (struct why){ text_of(o, "reason"), text_of(o, "message"), false };
}

/* The reason why a container waits, and its last termination message if it already ran. */
static struct why why_waiting(const json_t *container)
{
    struct why w = why_from(state(container, "state", "waiting"));
    const char *words = text_of(state(container, "lastState", "terminated"), "message");

    return words != NULL && words[0] != '\0' ? (struct why){ w.reason, words, true } : w;
}

/* Most specific cause first: pod-level condition, then container state, then scheduling. */
static struct why find_why(const json_t *status, const struct containers *c, const json_t *end, enum pod_phase phase)
{
    const json_t *disrupted = condition(status, "DisruptionTarget", "True");
    const json_t *unscheduled = condition(status, "PodScheduled", "False");
    const json_t *stuck = stuck_in(c->init);

    if (stuck == NULL)
        stuck = stuck_in(c->main);
    if (phase == POD_SUCCEEDED)
        return (struct why){ NULL, NULL, false };
    if (text_of(status, "reason") != NULL)
        return why_from(status);
    if (disrupted != NULL)
        return why_from(disrupted);
    if (stuck != NULL && phase != POD_FAILED)
        return why_waiting(stuck);
    if (end != NULL && exit_code_of(end) != 0)
        return (struct why){ text_of(end, "reason"), text_of(end, "message"), true };
    if (stuck != NULL)
        return why_waiting(stuck);
    if (unscheduled != NULL)
        return why_from(unscheduled);
    return (struct why){ phase == POD_FAILED && end == NULL ? "Unknown" : NULL, text_of(status, "message"), false };
}

/* ---- the pod ---- */

static enum pod_phase phase_of(const char *s)
{
    static const char *const PHASES[] = {
        [POD_PENDING] = "Pending", [POD_RUNNING] = "Running", [POD_SUCCEEDED] = "Succeeded", [POD_FAILED] = "Failed"
    };
    for (size_t i = 0; s != NULL && i < COUNT_OF(PHASES); i++)
        if (strcmp(s, PHASES[i]) == 0)
            return (enum pod_phase)i;
    return s == NULL || s[0] == '\0' ? POD_PENDING : POD_UNKNOWN;
}

/* The terminated state of the training container if the kubelet will never start it again; else NULL. */
static const json_t *final_end(const json_t *spec, const struct containers *c)
{
    const char *policy = text_of(spec, "restartPolicy");
    const json_t *end = c->named ? state(c->trainer, "state", "terminated") : NULL;
    int code = exit_code_of(end);

    return code >= 0 && (str_eq(policy, "Never") || (str_eq(policy, "OnFailure") && code == 0)) ? end : NULL;
}

/* The training container decides the phase. Without sidecars that equals the kubelet's phase after its cleanup. */
static enum pod_phase decide(const json_t *spec, const json_t *status, const struct containers *c, enum pod_phase phase)
{
    const json_t *end = final_end(spec, c);
    bool well = end != NULL && exit_code_of(end) == 0 && ended_undisturbed(status, end);

    if (end == NULL || phase == POD_SUCCEEDED)
        return phase;
    if (phase == POD_FAILED) /* a sidecar failed */
        return well ? POD_SUCCEEDED : POD_FAILED;
    if (!others_run(c->main, c->trainer) && !others_run(c->init, NULL))
        return phase;
    if (exit_code_of(end) == 0)
        return well ? POD_SUCCEEDED : phase;
    return POD_FAILED;
}

static void read_metadata(const json_t *metadata, struct pod_info *p)
{
    const char *restarts = text_of(json_object_get(metadata, "annotations"), RESTARTS_ANNOTATION);
    int64_t n;

    p->name = copy_or_null(text_of(metadata, "name"));
    p->uid = copy_or_null(text_of(metadata, "uid"));
    p->owner_uid = copy_or_null(object_owner_uid(metadata));
    p->created_ms = time_parse(text_of(metadata, "creationTimestamp"));
    p->gone_by_ms = time_parse(text_of(metadata, "deletionTimestamp"));
    p->version = object_version(metadata);
    if (restarts != NULL && str_i64(restarts, 0, INT32_MAX / 2, &n, NULL) == 0)
        p->restarts = (int)n;
}

/* "in container 'fetch': <its words>", because the pod's exit code is not the trainer's */
static char *words_in(const json_t *container, const char *words)
{
    return xasprintf("in container '%s'%s%s", text_of(container, "name"), words != NULL ? ": " : "",
                     words != NULL ? words : "");
}

/* The finalizer that keeps the object of a terminated pod. The kubelet confirms the end of all containers, and the API
 * server deletes a pod that has ended or has no node, with a grace of 0. */
static char *hold_of(const json_t *metadata, enum pod_phase phase)
{
    const json_t *grace = json_object_get(metadata, "deletionGracePeriodSeconds");
    bool left =
        phase == POD_SUCCEEDED || phase == POD_FAILED || (json_is_integer(grace) && json_integer_value(grace) == 0);

    if (text_of(metadata, "deletionTimestamp") == NULL || !left)
        return NULL;
    return copy_or_null(json_string_value(json_array_get(json_object_get(metadata, "finalizers"), 0)));
}

static void read_status(const struct job_kind *k, const json_t *pod, struct pod_info *p)
{
    const json_t *spec = json_object_get(pod, "spec"), *status = json_object_get(pod, "status");
    struct containers c = containers_of(k, status);
    enum pod_phase phase = phase_of(text_of(status, "phase"));

    p->phase = decide(spec, status, &c, phase);
    p->held_by = hold_of(json_object_get(pod, "metadata"), phase);
    p->lingers = p->phase != phase && phase != POD_FAILED && others_run(c.main, c.trainer);
    p->ready = condition(status, "Ready", "True") != NULL;
    p->disrupted = condition(status, "DisruptionTarget", "True") != NULL;
    p->started_ms = time_parse(text_of(status, "startTime"));
    p->container_restarts = restart_count(spec, c.init) + restart_count(spec, c.main);
    p->ip = copy_or_null(text_of(status, "podIP"));

    const json_t *speaker = decisive(&c, p->phase), *end = ended(speaker);
    struct why why = find_why(status, &c, end, p->phase);
    p->exit_code = end != NULL ? exit_code_of(end) : -1;
    p->ended_ms = time_parse(text_of(end, "finishedAt"));
    p->reason = copy_or_null(why.reason);
    p->message = text_truncate(why.message, MESSAGE_MAX, why.last_words);
    if (speaker != c.trainer && text_of(speaker, "name") != NULL) {
        auto_free char *words = TAKE(p->message);
        p->message = words_in(speaker, words);
    }
}

const char *const POD_INFO_PRUNED[] = { "spec.containers", "spec.volumes", "spec.tolerations", "spec.affinity", NULL };

int pod_info_parse(const struct job_kind *k, const json_t *pod, struct pod_info *ret)
{
    struct pod_info p = { .exit_code = -1 };
    bool right;

    if (read_place(k, pod, &p.role, &p.index, &right) < 0)
        return -1;
    read_metadata(json_object_get(pod, "metadata"), &p);
    p.mislabelled = !right && owner_name(k, pod) != NULL;
    if (p.owner_uid == NULL && k->own_processes)
        p.made_for = copy_or_null(label(k, pod, "job-uid"));
    read_status(k, pod, &p);
    p.node = copy_or_null(text_of(json_object_get(pod, "spec"), "nodeName"));
    *ret = p;
    return 0;
}

void pod_info_fini(struct pod_info *p)
{
    free(p->name);
    free(p->uid);
    free(p->owner_uid);
    free(p->made_for);
    free(p->reason);
    free(p->message);
    free(p->node);
    free(p->ip);
    free(p->held_by);
    *p = (struct pod_info){ .exit_code = -1 };
}

/* ---- services ---- */

int service_info_parse(const struct job_kind *k, const json_t *service, struct service_info *ret)
{
    struct service_info s = { .index = -1 };
    const json_t *metadata = json_object_get(service, "metadata");
    const char *role = label(k, service, "replica-type"), *index = label(k, service, "replica-index");

    if (k->service_per_replica || role != NULL || index != NULL) {
        if (read_role(role, &s.role) < 0 || read_index(index, &s.index) < 0)
            return -1;
    }
    s.name = copy_or_null(text_of(metadata, "name"));
    s.uid = copy_or_null(text_of(metadata, "uid"));
    s.owner_uid = copy_or_null(object_owner_uid(metadata));
    s.version = object_version(metadata);
    s.labelled = object_has_our_labels(k, metadata, object_job_name(k, service));
    *ret = s;
    return 0;
}

bool service_is_tensorboard(const struct job_kind *k, const json_t *service)
{
    return str_eq(label(k, service, "replica-type"), "tensorboard");
}

void service_info_fini(struct service_info *s)
{
    free(s->name);
    free(s->uid);
    free(s->owner_uid);
    *s = (struct service_info){ .index = -1 };
}
