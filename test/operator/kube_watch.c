/* What `kubectl get -o json` shows, at once and after each change, for tests that wait:
 *
 *     kube_watch SECONDS NAMESPACE KIND [NAME]
 *
 * Prints a line of JSON each time, its keys sorted as kubectl sorts them: the object, or null where it does not exist;
 * without a name an array of all objects of the namespace. Ends with 0 when nobody reads its output any more, with 1
 * when SECONDS have passed since the first line, and with 2 for a kind that it does not know. The server is that of
 * $KUBECONFIG. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "kube/reflector.h"

static const struct {
    const char *word; /* on the command line */
    struct kube_resource resource;
} KINDS[] = {
    { "configmap", { "", "v1", "configmaps", "ConfigMap" } },
    { "deployment", { "apps", "v1", "deployments", "Deployment" } },
    { "event", { "", "v1", "events", "Event" } },
    { "lease", { "coordination.k8s.io", "v1", "leases", "Lease" } },
    { "networkpolicy", { "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy" } },
    { "pod", { "", "v1", "pods", "Pod" } },
    { "podgroups.scheduling.volcano.sh", { "scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup" } },
    { "podgroups.scheduling.x-k8s.io", { "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup" } },
    { "pvc", { "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim" } },
    { "quota", { "", "v1", "resourcequotas", "ResourceQuota" } },
    { "secret", { "", "v1", "secrets", "Secret" } },
    { "service", { "", "v1", "services", "Service" } },
    { "tfjob", { "kubeflow.org", "v1", "tfjobs", "TFJob" } },
    { "trainjob", { "trainyard.dev", "v1alpha1", "trainjobs", "TrainJob" } },
    { "trainjobs.trainyard.dev", { "trainyard.dev", "v1alpha1", "trainjobs", "TrainJob" } },
};

struct view {
    struct loop *loop;
    json_t *objects;  /* by name */
    const char *name; /* NULL: all */
    int64_t limit_ms;
    bool synced;
    struct timer print, limit;
    int code;
};

static void end_with(struct view *v, int code)
{
    v->code = code;
    loop_stop(v->loop);
}

static void on_limit(void *user)
{
    end_with(user, 1);
}

static void on_closed(void *user)
{
    end_with(user, 0);
}

static json_t *shown(const struct view *v)
{
    const char *name;
    json_t *object, *all;
    if (v->name != NULL) {
        object = json_object_get(v->objects, v->name);
        return object != NULL ? json_incref(object) : json_null();
    }
    all = json_array();
    json_object_foreach(v->objects, name, object) json_array_append(all, object);
    return all;
}

static void print(void *user)
{
    struct view *v = user;
    json_auto_t *what = shown(v);
    if (json_dumpf(what, stdout, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) != 0 || putchar('\n') == EOF ||
        fflush(stdout) != 0)
        end_with(v, 0);
    else if (!timer_is_set(&v->limit))
        timer_set(v->loop, &v->limit, loop_now(v->loop) + v->limit_ms, on_limit, v);
}

/* Once for all changes that came together. */
static void print_soon(struct view *v)
{
    if (v->synced && !timer_is_set(&v->print))
        timer_set(v->loop, &v->print, loop_now(v->loop), print, v);
}

static void on_object(void *user, const json_t *object)
{
    struct view *v = user;
    const char *name = json_string_value(json_at(object, "metadata.name"));
    if (v->name != NULL && !str_eq(name, v->name))
        return;
    json_object_set_new(v->objects, name, json_deep_copy(object));
    print_soon(v);
}

static void on_gone(void *user, const char *ns UNUSED, const char *name, const char *uid UNUSED,
                    const json_t *last UNUSED)
{
    struct view *v = user;
    if (json_object_del(v->objects, name) == 0)
        print_soon(v);
}

static void each(void *user, void (*tell)(void *reflector, const char *ns, const char *name, const char *uid),
                 void *reflector)
{
    struct view *v = user;
    const char *name;
    json_t *object;
    json_object_foreach(v->objects, name, object)
        tell(reflector, json_string_value(json_at(object, "metadata.namespace")), name,
             json_string_value(json_at(object, "metadata.uid")));
}

static void on_synced(void *user)
{
    struct view *v = user;
    v->synced = true;
    print_soon(v);
}

static const struct kube_resource *resource_of(const char *word)
{
    for (size_t i = 0; i < COUNT_OF(KINDS); i++)
        if (strcmp(KINDS[i].word, word) == 0)
            return &KINDS[i].resource;
    return NULL;
}

int main(int argc, char **argv)
{
    struct err e = { .code = ERR_NONE };
    AUTO(kubeconfig) *config = NULL;
    const struct kube_resource *resource = argc >= 4 ? resource_of(argv[3]) : NULL;
    if (resource == NULL) {
        fprintf(stderr, "usage: kube_watch SECONDS NAMESPACE KIND [NAME]; %s is not a kind of kube_watch.c\n",
                argc >= 4 ? argv[3] : "nothing");
        return 2;
    }
    if (kubeconfig_load(NULL, NULL, &config, &e) < 0) {
        fprintf(stderr, "kube_watch: %s\n", e.msg);
        return 2;
    }
    AUTO(loop) *loop = loop_new();
    AUTO(kube_client) *client = kube_client_new(loop, config, &(struct kube_settings){ .user_agent = "kube_watch/0" });
    json_auto_t *objects = json_object();
    struct view v = {
        .loop = loop, .objects = objects, .name = argc > 4 ? argv[4] : NULL, .limit_ms = atoll(argv[1]) * 1000
    };
    const struct reflector_spec spec = { .resource = *resource, .ns = argv[2], .name = resource->plural };
    AUTO(reflector) *r =
        reflector_new(client, &spec, &(struct reflector_user){ on_object, on_gone, each, on_synced, &v });
    loop_watch_fd(loop, STDOUT_FILENO, on_closed, &v); /* an error of the pipe: it has no reader */
    if (loop_run(loop, &e) < 0) {
        fprintf(stderr, "kube_watch: %s\n", e.msg);
        return 2;
    }
    return v.code;
}
