/* The API client against a real API server: kube_try KUBECONFIG FOLDER [CREATES [PID]]
 *
 * Creates, reads, patches, applies and deletes a ConfigMap; creates CREATES (500) at once and counts the connections;
 * follows a watch of 100 changes; checks that bookmarks advance a reflector's resourceVersion; reads with the token of
 * a service account. With the server's PID it stops the server for two seconds (SIGSTOP) and checks that the client
 * closes the dead connection. FOLDER is for files. Prints the results and the CPU time of a create. Exit code 1: a
 * check failed. Run by faults.sh. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "kube/reflector_internal.h"
#include "net/registry.h"

static const struct kube_resource CONFIG_MAPS = { "", "v1", "configmaps", "ConfigMap" };
static const struct kube_resource NAMESPACES = { "", "v1", "namespaces", "Namespace" };
static const struct kube_resource ACCOUNTS = { "", "v1", "serviceaccounts", "ServiceAccount" };
static const struct kube_resource ROLE_BINDINGS = { "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding" };

#define NS "kube-try"

static void must(bool ok, const char *what)
{
    printf("%s: %s\n", ok ? "ok" : "FAIL", what);
    if (!ok)
        exit(1);
}

/* ---- one request at a time ---- */

struct one {
    bool over;
    int status;
    char reason[64], message[512];
    json_t *body;
};

static void one_done(void *user, const struct kube_answer *a)
{
    struct one *o = user;
    o->over = true;
    o->status = a->status;
    str_fmt(o->reason, sizeof(o->reason), "%s", a->reason);
    str_fmt(o->message, sizeof(o->message), "%s", a->message);
    json_decref(o->body);
    o->body = json_incref(a->body);
}

static void turn(struct kube_client *k)
{
    struct err e;
    if (loop_turn(kube_client_loop(k), 1000, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        exit(1);
    }
}

static void ask(struct kube_client *k, enum kube_verb verb, const struct kube_resource *r, const char *ns,
                const char *name, const char *sub, json_t *body, struct one *o)
{
    AUTO_FINI(buf) path = BUF_INIT;

    kube_path(&path, r, ns, name, sub);
    o->over = false;
    kube_send(k, &(struct kube_request){ .verb = verb, .path = path.data, .body = body, .done = one_done, .user = o });
    json_decref(body);
    while (!o->over)
        turn(k);
}

static void expect(struct one *o, int status, const char *what)
{
    if (o->status != status)
        printf("status %d %s %s\n", o->status, o->reason, o->message);
    must(o->status == status, what);
}

static json_t *config_map(const char *name, const char *value)
{
    return json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
                     "name", name, "labels", "try", "yes", "data", "value", value);
}

static const char *value_of(const struct one *o)
{
    const char *s = json_string_value(json_at(o->body, "data.value"));
    return s != NULL ? s : "";
}

static void verbs(struct kube_client *k)
{
    struct one o = { .over = false };

    ask(k, KUBE_CREATE, &CONFIG_MAPS, NS, NULL, NULL, config_map("one", "created"), &o);
    expect(&o, 201, "create");
    must(strcmp(json_string_value(json_at(o.body, "metadata.managedFields.0.manager")), "try") == 0,
         "the field manager is ours");
    ask(k, KUBE_CREATE, &CONFIG_MAPS, NS, NULL, NULL, config_map("one", "again"), &o);
    expect(&o, 409, "create again");
    must(strcmp(o.reason, "AlreadyExists") == 0, "the reason says AlreadyExists");
    ask(k, KUBE_MERGE_PATCH, &CONFIG_MAPS, NS, "one", NULL, json_pack("{s:{s:s}}", "data", "value", "patched"), &o);
    expect(&o, 200, "merge patch");
    must(strcmp(value_of(&o), "patched") == 0, "the patch is seen");
    ask(k, KUBE_STRATEGIC_PATCH, &CONFIG_MAPS, NS, "one", NULL,
        json_pack("{s:{s:s}, s:{s:s}}", "metadata", "resourceVersion", "1", "data", "value", "stale"), &o);
    expect(&o, 409, "patch of another version");
    ask(k, KUBE_STRATEGIC_PATCH, &CONFIG_MAPS, NS, "one", NULL, json_pack("{s:{s:s}}", "data", "value", "merged"), &o);
    expect(&o, 200, "strategic merge patch");
    ask(k, KUBE_GET, &CONFIG_MAPS, NS, "one", NULL, NULL, &o);
    expect(&o, 200, "get");
    must(strcmp(value_of(&o), "merged") == 0, "the value is what was patched");
    auto_free char *uid = xstrdup(json_string_value(json_at(o.body, "metadata.uid")));
    ask(k, KUBE_DELETE, &CONFIG_MAPS, NS, "one", NULL, kube_delete_options(uid, 1, -1), &o);
    expect(&o, 409, "delete of another version");
    ask(k, KUBE_DELETE, &CONFIG_MAPS, NS, "one", NULL, kube_delete_options("no-such-uid", 0, -1), &o);
    expect(&o, 409, "delete with another uid");
    ask(k, KUBE_DELETE, &CONFIG_MAPS, NS, "one", NULL, NULL, &o);
    expect(&o, 200, "delete");
    ask(k, KUBE_GET, &CONFIG_MAPS, NS, "one", NULL, NULL, &o);
    expect(&o, 404, "it is gone");
    json_decref(o.body);
}

/* ---- many at once ---- */

struct many {
    int waits, bad;
};

static void many_done(void *user, const struct kube_answer *a)
{
    struct many *m = user;
    m->waits--;
    if (!kube_ok(a)) {
        printf("status %d %s\n", a->status, a->message);
        m->bad++;
    }
}

static void many_creates(struct kube_client *k, int n)
{
    struct many m = { .waits = n };
    AUTO_FINI(buf) path = BUF_INIT;
    int64_t began = clock_ns(), cpu = clock_cpu_ns();

    kube_path(&path, &CONFIG_MAPS, NS, NULL, NULL);
    for (int i = 0; i < n; i++) {
        char name[32];
        str_fmt(name, sizeof(name), "many-%d", i);
        json_auto_t *body = config_map(name, "x");
        kube_send(k, &(struct kube_request){ .verb = KUBE_CREATE,
                                             .path = path.data,
                                             .body = body,
                                             .metadata_only = true,
                                             .priority = KUBE_NORMAL,
                                             .done = many_done,
                                             .user = &m });
    }
    while (m.waits > 0)
        turn(k);
    printf("%d creates: %.0f ms, %.1f us CPU each\n", n, (double)(clock_ns() - began) / 1e6,
           (double)(clock_cpu_ns() - cpu) / 1e3 / n);
    must(m.bad == 0, "many creates at once");
}

/* The established connections of this process. */
static int connections(void)
{
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof(peer);
        n += getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
             (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
    }
    return n;
}

static void list(struct kube_client *k)
{
    struct one o = { .over = false };
    AUTO_FINI(buf) path = BUF_INIT;

    kube_path(&path, &CONFIG_MAPS, NS, NULL, NULL);
    kube_query(&path, "labelSelector", "try=yes");
    kube_query(&path, "limit", "100");
    kube_send(k, &(struct kube_request){ .path = path.data, .metadata_only = true, .done = one_done, .user = &o });
    while (!o.over)
        turn(k);
    expect(&o, 200, "list of metadata");
    must(json_array_size(json_object_get(o.body, "items")) == 100, "a page has 100");
    must(strcmp(json_string_value(json_object_get(o.body, "kind")), "PartialObjectMetadataList") == 0,
         "of metadata only");
    json_decref(o.body);
}

/* ---- a watch ---- */

struct watch {
    int events, ended;
};

static bool watch_line(void *user, const char *line, size_t n)
{
    struct watch *w = user;
    struct err e;
    json_auto_t *v = NULL;

    if (json_parse(line, n, "event", &v, &e) < 0) {
        printf("%s\n", e.msg);
        return true;
    }
    const char *name = json_string_value(json_at(v, "object.metadata.name"));
    w->events +=
        name != NULL && strcmp(name, "seen") == 0; /* a new namespace also gets its kube-root-ca.crt, at any time */
    return true;
}

static void watch_end(void *user, const struct kube_answer *a)
{
    struct watch *w = user;
    printf("the watch ended with %d %s\n", a->status, a->message);
    w->ended++;
}

static void watch(struct kube_client *k)
{
    struct watch w = { .events = 0 };
    struct one o = { .over = false };
    AUTO_FINI(buf) path = BUF_INIT;

    ask(k, KUBE_CREATE, &CONFIG_MAPS, NS, NULL, NULL, config_map("seen", "0"), &o);
    kube_path(&path, &CONFIG_MAPS, NS, NULL, NULL);
    kube_query(&path, "watch", "1");
    kube_query(&path, "resourceVersion", json_string_value(json_at(o.body, "metadata.resourceVersion")));
    struct kube_call *stream = kube_watch(
        k, &(struct kube_stream){
               .path = path.data, .silence_ms = 60000, .on_line = watch_line, .on_end = watch_end, .user = &w });
    int64_t cpu = clock_cpu_ns();
    for (int i = 0; i < 100; i++) {
        char value[16];
        str_fmt(value, sizeof(value), "%d", i + 1);
        ask(k, KUBE_MERGE_PATCH, &CONFIG_MAPS, NS, "seen", NULL, json_pack("{s:{s:s}}", "data", "value", value), &o);
    }
    while (w.events < 100 && w.ended == 0)
        turn(k);
    printf("100 patches one after the other and their events: %.1f us CPU each\n",
           (double)(clock_cpu_ns() - cpu) / 1e3 / 100);
    must(w.events == 100 && w.ended == 0, "100 changes are told");
    kube_cancel(stream);
    json_decref(o.body);
}

/* ---- bookmarks ---- */

struct told {
    int objects, lists;
};

static void told_object(void *user, const json_t *object)
{
    (void)object;
    ((struct told *)user)->objects++;
}

static void told_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    (void)user, (void)ns, (void)name, (void)uid, (void)last;
}

static void told_each(void *user, void (*tell)(void *reflector, const char *ns, const char *name, const char *uid),
                      void *reflector)
{
    (void)user, (void)tell, (void)reflector;
}

static void told_list(void *user)
{
    ((struct told *)user)->lists++;
}

static long long number_of(const char *version)
{
    return version != NULL ? atoll(version) : 0;
}

/* GETs that were answered: lists, and watches that have ended. */
static int gets(struct registry *registry)
{
    AUTO_FINI(buf) text = BUF_INIT;
    registry_emit(registry, &text);
    const char *line = strstr(text.data, "rest_client_requests_total{code=\"200\",method=\"GET\""),
               *value = line != NULL ? strchr(line, '}') : NULL;
    return value != NULL ? atoi(value + 1) : 0;
}

/* The watched objects do not change, but many others of their kind do. The server sends a bookmark with the current
 * resourceVersion two seconds before the watch ends, and the next watch continues from there. Without it the
 * resourceVersion would expire (410), and all objects had to be listed again. */
static void bookmarks(struct kube_client *k, struct registry *registry)
{
    const struct reflector_spec spec = {
        .resource = CONFIG_MAPS, .ns = NS, .label_selector = "marked=yes", .name = "marked"
    };
    struct told t = { .objects = 0 };
    struct one o = { .over = false };
    int64_t began = clock_ms();
    AUTO(reflector) *r =
        reflector_new(k, &spec, &(struct reflector_user){ told_object, told_gone, told_each, told_list, &t });

    reflector_watch_for(r, 5);
    while (!reflector_synced(r))
        turn(k);
    int answered = gets(registry);
    for (int i = 0; i < 50; i++) {
        char name[32];
        str_fmt(name, sizeof(name), "elsewhere-%d", i);
        ask(k, KUBE_CREATE, &CONFIG_MAPS, NS, NULL, NULL, config_map(name, "x"), &o);
    }
    long long last = number_of(json_string_value(json_at(o.body, "metadata.resourceVersion")));
    must(number_of(reflector_version(r)) < last, "the place of a watch that sees nothing is that of its list");
    while (number_of(reflector_version(r)) < last && clock_ms() < began + 30000)
        turn(k);
    must(number_of(reflector_version(r)) >= last && t.objects == 0, "a bookmark says how far the others are");
    printf("after %.1f s\n", (double)(clock_ms() - began) / 1000);
    while (gets(registry) == answered && clock_ms() < began + 30000)
        turn(k);
    must(gets(registry) > answered, "the watch ends when it should");
    json_t *marked = config_map("marked", "x");
    json_object_set_new(json_at(marked, "metadata.labels"), "marked", json_string("yes"));
    ask(k, KUBE_CREATE, &CONFIG_MAPS, NS, NULL, NULL, marked, &o);
    while (t.objects == 0 && clock_ms() < began + 30000)
        turn(k);
    must(t.objects == 1 && t.lists == 1, "the next one goes on from there: nothing is missed, nothing listed again");
    json_decref(o.body);
}

/* ---- a service account ---- */

static void set_true(void *user)
{
    *(bool *)user = true;
}

static void wait_ms(struct kube_client *k, int64_t ms)
{
    struct timer t = { .place = 0 };
    bool over = false;
    timer_set(kube_client_loop(k), &t, clock_ms() + ms, set_true, &over);
    while (!over)
        turn(k);
}

/* A role binding takes effect a moment after its creation: until then the server answers 403. */
static void get_with_new_role(struct kube_client *k, struct one *o)
{
    int64_t until = clock_ms() + 60000;
    ask(k, KUBE_GET, &CONFIG_MAPS, NS, "seen", NULL, NULL, o);
    while (o->status == 403 && clock_ms() < until) {
        wait_ms(k, 200);
        ask(k, KUBE_GET, &CONFIG_MAPS, NS, "seen", NULL, NULL, o);
    }
}

static void token_client(struct loop *l, struct kube_client *k, struct kubeconfig *admin, const char *folder)
{
    struct one o = { .over = false };
    struct err e;
    struct kubeconfig *config = NULL;
    AUTO_FINI(buf) path = BUF_INIT;

    ask(k, KUBE_CREATE, &ACCOUNTS, NS, NULL, NULL,
        json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "ServiceAccount", "metadata", "name", "trier"),
        &o);
    ask(k, KUBE_CREATE, &ROLE_BINDINGS, NS, NULL, NULL,
        json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:s}, s:[{s:s, s:s, s:s}]}", "apiVersion",
                  "rbac.authorization.k8s.io/v1", "kind", "RoleBinding", "metadata", "name", "trier", "roleRef",
                  "apiGroup", "rbac.authorization.k8s.io", "kind", "ClusterRole", "name", "view", "subjects", "kind",
                  "ServiceAccount", "name", "trier", "namespace", NS),
        &o);
    expect(&o, 201, "a role for the service account");
    ask(k, KUBE_CREATE, &ACCOUNTS, NS, "trier", "token",
        json_pack("{s:s, s:s, s:{}}", "apiVersion", "authentication.k8s.io/v1", "kind", "TokenRequest", "spec"), &o);
    expect(&o, 201, "a token of a service account");
    buf_printf(&path, "%s/token.kubeconfig", folder);
    FILE *f = fopen(path.data, "w");
    must(f != NULL, "a kubeconfig with the token");
    AUTO_FINI(buf) ca_path = BUF_INIT;
    buf_printf(&ca_path, "%s/ca.crt", folder);
    FILE *c = fopen(ca_path.data, "w");
    must(c != NULL && fputs(kubeconfig_tls(admin)->ca, c) >= 0 && fclose(c) == 0, "the authority in a file");
    fprintf(f,
            "{\"current-context\":\"x\",\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"x\",\"user\":\"x\","
            "\"namespace\":\"" NS "\"}}],\"clusters\":[{\"name\":\"x\",\"cluster\":{\"server\":\"%s\",\"certificate-"
            "authority\":\"ca.crt\"}}],\"users\":[{\"name\":\"x\",\"user\":{\"token\":\"%s\"}}]}",
            kubeconfig_server(admin), json_string_value(json_at(o.body, "status.token")));
    fclose(f);
    must(kubeconfig_load(path.data, NULL, &config, &e) == 0, "that kubeconfig is understood");
    struct kube_client *with_token = kube_client_new(l, config, &(struct kube_settings){ .field_manager = "try" });
    get_with_new_role(with_token, &o);
    expect(&o, 200, "the service account may look");
    ask(with_token, KUBE_CREATE, &CONFIG_MAPS, NS, NULL, NULL, config_map("third", "x"), &o);
    expect(&o, 403, "and may not create");
    kube_client_free(with_token);
    kubeconfig_free(config);
    json_decref(o.body);
}

/* ---- a stopped server ---- */

/* The state of a thread is the field behind the name in parentheses: T when it was stopped. */
static bool thread_is_stopped(pid_t server, const char *thread)
{
    AUTO_FINI(buf) path = BUF_INIT;
    char line[512] = "";

    buf_printf(&path, "/proc/%d/task/%s/stat", (int)server, thread);
    FILE *f = fopen(path.data, "r");
    if (f == NULL)
        return true; /* it has ended */
    const char *name_end = fgets(line, sizeof(line), f) != NULL ? strrchr(line, ')') : NULL;
    fclose(f);
    return name_end == NULL || name_end[2] == 'T';
}

static bool is_stopped(pid_t server)
{
    AUTO_FINI(buf) path = BUF_INIT;
    bool stopped = true;

    buf_printf(&path, "/proc/%d/task", (int)server);
    DIR *d = opendir(path.data);
    if (d == NULL)
        return false;
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;)
        if (entry->d_name[0] != '.')
            stopped = thread_is_stopped(server, entry->d_name) && stopped;
    closedir(d);
    return stopped;
}

/* kill() returns before all threads of the server have stopped: it may still answer a request. */
static void stop_server(struct kube_client *k, pid_t server)
{
    must(kill(server, SIGSTOP) == 0, "the server is told to stop");
    for (int64_t until = clock_ms() + 60000; !is_stopped(server) && clock_ms() < until;)
        wait_ms(k, 10);
    must(is_stopped(server), "the server stands still");
}

static void stopped(struct kube_client *k, pid_t server)
{
    struct watch w = { .events = 0 };
    struct one o = { .over = false };
    AUTO_FINI(buf) path = BUF_INIT;
    AUTO_FINI(buf) watched = BUF_INIT;

    kube_path(&path, &CONFIG_MAPS, NS, "seen", NULL);
    kube_path(&watched, &CONFIG_MAPS, NS, NULL, NULL);
    kube_query(&watched, "watch", "1");
    kube_watch(k,
               &(struct kube_stream){
                   .path = watched.data, .silence_ms = 60000, .on_line = watch_line, .on_end = watch_end, .user = &w });
    while (w.events == 0)
        turn(k);
    stop_server(k, server);
    int64_t began = clock_ms();
    kube_send(k, &(struct kube_request){ .path = path.data, .timeout_ms = 1000, .done = one_done, .user = &o });
    while (w.ended == 0 && clock_ms() < began + 10000)
        turn(k);
    must(w.ended == 1, "the watch of the dead connection ends with the request that got no answer");
    while (clock_ms() < began + 2000)
        turn(k);
    must(!o.over, "the request is tried again");
    must(kill(server, SIGCONT) == 0, "the server goes on");
    while (!o.over)
        turn(k);
    expect(&o, 200, "the request is answered");
    printf("after %.1f s\n", (double)(clock_ms() - began) / 1000);
    json_decref(o.body);
}

int main(int argc, char **argv)
{
    struct err e;
    AUTO(kubeconfig) *config = NULL;
    AUTO(loop) *l = loop_new();
    AUTO(registry) *registry = registry_new();
    struct one o = { .over = false };
    AUTO_FINI(buf) metrics = BUF_INIT;

    log_setup(LOG_DEBUG, LOG_TEXT, NULL);
    if (argc < 3 || kubeconfig_load(argv[1], NULL, &config, &e) < 0) {
        fprintf(stderr, "%s\n", argc < 3 ? "kube_try KUBECONFIG FOLDER [CREATES [PID]]" : e.msg);
        return 2;
    }
    AUTO(kube_client) *k = kube_client_new(
        l, config, &(struct kube_settings){ .user_agent = "kube_try/0", .field_manager = "try", .registry = registry });
    ask(k, KUBE_CREATE, &NAMESPACES, NULL, NULL, NULL,
        json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Namespace", "metadata", "name", NS), &o);
    expect(&o, 201, "a namespace");
    verbs(k);
    many_creates(k, argc > 3 ? atoi(argv[3]) : 500);
    printf("connections: %d\n", connections());
    must(connections() == 1, "all over one connection");
    list(k);
    watch(k);
    bookmarks(k, registry);
    token_client(l, k, config, argv[2]);
    if (argc > 4)
        stopped(k, (pid_t)atoi(argv[4]));
    registry_emit(registry, &metrics);
    must(strstr(metrics.data, "rest_client_requests_total{code=\"201\",method=\"POST\"") != NULL,
         "requests are counted");
    ask(k, KUBE_DELETE, &NAMESPACES, NULL, NS, NULL, NULL, &o);
    expect(&o, 200, "the namespace goes");
    json_decref(o.body);
    return 0;
}
