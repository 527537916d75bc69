#include "api/facts.h"

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

static const char *label(const struct job_kind *k, const json_t *object, const char *name)
{
    char key[LABEL_KEY_MAX];

    if (!str_fmt(key, sizeof(key), "%s%s", k->label_prefix, name))
        return NULL;
    return text_of(json_object_get(json_object_get(object, "metadata"), "labels"), key);
}

const char *pod_job_name(const struct job_kind *k, const json_t *object)
{
    return label(k, object, "job-name");
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

const char *facts_owner_uid(const json_t *metadata)
{
    const json_t *owner;
    size_t i;

    json_array_foreach(json_object_get(metadata, "ownerReferences"), i, owner)
        if (json_is_true(json_object_get(owner, "controller")))
            return text_of(owner, "uid");
    return NULL;
}

static char *copy_or_null(const char *s)
{
    return s != NULL && s[0] != '\0' ? xstrdup(s) : NULL;
}

/* ---- why: reason and message ---- */

struct why {
    const char *reason, *message;
    bool last_words;   /* the message's end says more than its beginning */
};

static bool continues(char c)
{
    return ((unsigned char)c & 0xC0U) == 0x80; /* inside of a UTF-8 character */
}

char *facts_cut(const char *s, size_t max, bool keep_end)
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

/* Waiting for what every start waits for. */
static bool usual_wait(const char *reason)
{
    return reason == NULL || strcmp(reason, "ContainerCreating") == 0 || strcmp(reason, "PodInitializing") == 0;
}

/* How the container ended, or NULL: it runs, it never ran, or nobody knows. One that the kubelet restarts again and
 * again is between two lives; then its last end counts. */
static const json_t *ended(const json_t *container)
{
    const json_t *terminated = state(container, "state", "terminated");

    if (terminated != NULL)
        return terminated;
    return state(container, "state", "waiting") != NULL ? state(container, "lastState", "terminated") : NULL;
}

struct containers {
    const json_t *init, *main; /* lists of statuses */
    const json_t *trainer;     /* the one that trains, by its name, else the first; NULL: no status yet */
};

static struct containers containers_of(const struct job_kind *k, const json_t *status)
{
    struct containers c = { json_object_get(status, "initContainerStatuses"), json_object_get(status, "containerStatuses"),
                            NULL };
    const json_t *one;
    size_t i;

    c.trainer = json_array_get(c.main, 0);
    json_array_foreach(c.main, i, one)
        if (str_eq(text_of(one, "name"), k->container))
            c.trainer = one;
    return c;
}

/* The first container of the list that ended badly. */
static const json_t *first_failed(const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
        if (ended(one) != NULL && exit_code_of(ended(one)) > 0)
            return one;
    return NULL;
}

/* The container whose end speaks for the pod: the trainer. When the pod failed though the trainer did not, another. */
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

/* The first container of the list that waits for something unusual. */
static const json_t *stuck_in(const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one) {
        const json_t *waiting = state(one, "state", "waiting");
        if (waiting != NULL && !usual_wait(text_of(waiting, "reason")))
            return one;
    }
    return NULL;
}

static int restart_count(const json_t *list)
{
    const json_t *one;
    json_int_t sum = 0;
    size_t i;

    json_array_foreach(list, i, one)
        sum += MAX(json_integer_value(json_object_get(one, "restartCount")), 0);
    return (int)MIN(sum, INT32_MAX / 2);
}

/* ---- conditions ---- */

static const json_t *condition(const json_t *status, const char *type, const char *value)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(status, "conditions"), i, one)
        if (str_eq(text_of(one, "type"), type))
            return str_eq(text_of(one, "status"), value) ? one : NULL;
    return NULL;
}

static struct why why_from(const json_t *o)
{
    return (struct why){ text_of(o, "reason"), text_of(o, "message"), false };
}

/* A container waits: why, and what it last said if it already ran. */
static struct why why_waiting(const json_t *container)
{
    struct why w = why_from(state(container, "state", "waiting"));
    const char *words = text_of(state(container, "lastState", "terminated"), "message");

    return words != NULL && words[0] != '\0' ? (struct why){ w.reason, words, true } : w;
}

/* The most telling cause: what befell the whole pod, then what its containers say, then why it is nowhere yet. */
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
    static const char *const PHASES[] = { [POD_PENDING] = "Pending", [POD_RUNNING] = "Running",
                                          [POD_SUCCEEDED] = "Succeeded", [POD_FAILED] = "Failed" };
    for (size_t i = 0; s != NULL && i < COUNT_OF(PHASES); i++)
        if (strcmp(s, PHASES[i]) == 0)
            return (enum pod_phase)i;
    return s == NULL || s[0] == '\0' ? POD_PENDING : POD_UNKNOWN;
}

static void read_metadata(const json_t *metadata, struct pod_facts *p)
{
    const char *restarts = text_of(json_object_get(metadata, "annotations"), RESTARTS_ANNOTATION);
    const char *version = text_of(metadata, "resourceVersion");
    int64_t n;

    p->name = copy_or_null(text_of(metadata, "name"));
    p->uid = copy_or_null(text_of(metadata, "uid"));
    p->owner_uid = copy_or_null(facts_owner_uid(metadata));
    p->created_ms = time_parse(text_of(metadata, "creationTimestamp"));
    p->gone_by_ms = time_parse(text_of(metadata, "deletionTimestamp"));
    if (version != NULL && str_i64(version, 0, INT64_MAX, &n, NULL) == 0)
        p->version = n;
    if (restarts != NULL && str_i64(restarts, 0, INT32_MAX / 2, &n, NULL) == 0)
        p->restarts = (int)n;
}

/* "in container 'fetch': <its words>", for the pod's exit code is not the trainer's */
static char *words_in(const json_t *container, const char *words)
{
    return xasprintf("in container '%s'%s%s", text_of(container, "name"), words != NULL ? ": " : "", words != NULL ? words : "");
}

static void read_status(const struct job_kind *k, const json_t *status, struct pod_facts *p)
{
    struct containers c = containers_of(k, status);

    p->phase = phase_of(text_of(status, "phase"));
    p->ready = condition(status, "Ready", "True") != NULL;
    p->disrupted = condition(status, "DisruptionTarget", "True") != NULL;
    p->started_ms = time_parse(text_of(status, "startTime"));
    p->container_restarts = restart_count(c.init) + restart_count(c.main);
    p->ip = copy_or_null(text_of(status, "podIP"));

    const json_t *speaker = decisive(&c, p->phase), *end = ended(speaker);
    struct why why = find_why(status, &c, end, p->phase);
    p->exit_code = end != NULL ? exit_code_of(end) : -1;
    p->ended_ms = time_parse(text_of(end, "finishedAt"));
    p->reason = copy_or_null(why.reason);
    p->message = facts_cut(why.message, MESSAGE_MAX, why.last_words);
    if (speaker != c.trainer && text_of(speaker, "name") != NULL) {
        auto_free char *words = TAKE(p->message);
        p->message = words_in(speaker, words);
    }
}

const char *const POD_FACTS_UNREAD[] = { "spec.containers", "spec.initContainers", "spec.volumes", "spec.tolerations",
                                         "spec.affinity", NULL };

int pod_facts_parse(const struct job_kind *k, const json_t *pod, struct pod_facts *ret)
{
    struct pod_facts p = { .exit_code = -1 };

    if (read_role(label(k, pod, "replica-type"), &p.role) < 0 || read_index(label(k, pod, "replica-index"), &p.index) < 0)
        return -1;
    read_metadata(json_object_get(pod, "metadata"), &p);
    read_status(k, json_object_get(pod, "status"), &p);
    p.node = copy_or_null(text_of(json_object_get(pod, "spec"), "nodeName"));
    *ret = p;
    return 0;
}

void pod_facts_fini(struct pod_facts *p)
{
    free(p->name);
    free(p->uid);
    free(p->owner_uid);
    free(p->reason);
    free(p->message);
    free(p->node);
    free(p->ip);
    *p = (struct pod_facts){ .exit_code = -1 };
}

/* ---- services ---- */

int service_facts_parse(const struct job_kind *k, const json_t *service, struct service_facts *ret)
{
    struct service_facts s = { .index = -1 };
    const json_t *metadata = json_object_get(service, "metadata");
    const char *role = label(k, service, "replica-type"), *index = label(k, service, "replica-index");

    if (k->service_per_replica || role != NULL || index != NULL) {
        if (read_role(role, &s.role) < 0 || read_index(index, &s.index) < 0)
            return -1;
    }
    s.name = copy_or_null(text_of(metadata, "name"));
    s.uid = copy_or_null(text_of(metadata, "uid"));
    s.owner_uid = copy_or_null(facts_owner_uid(metadata));
    *ret = s;
    return 0;
}

bool service_is_board(const struct job_kind *k, const json_t *service)
{
    return str_eq(label(k, service, "replica-type"), "tensorboard");
}

void service_facts_fini(struct service_facts *s)
{
    free(s->name);
    free(s->uid);
    free(s->owner_uid);
    *s = (struct service_facts){ .index = -1 };
}
