/* burst - how long an operator takes to create the pods of many jobs, and the resources that it uses.
 *
 *     burst --jobs 1000 --kind TFJob --pid OPERATOR
 *         applies the jobs and measures what the operator with this process id does
 *     burst --bare --kind TFJob
 *         replaces the operator until it is killed: creates the same objects as fast as the API server accepts them,
 *         and does nothing else. This is the limit with which the operator is compared.
 *
 * Both hold the watches that an operator has (jobs, pods, services). Each job has 1 chief, 1 ps and 2 workers. The last
 * line of a measurement is JSON.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/job_spec.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/opt.h"
#include "build/objects.h"
#include "kube/reflector.h"

enum { PODS_A_JOB = 4, APPLIES_AT_ONCE = 4, LIMIT_MS = 1800000, QUIET_S = 3, QUIET_CPU_MS = 20, QUIET_LIMIT_S = 120 };

struct flags {
    const char *kubeconfig, *ns, *kind, *prefix;
    int64_t jobs, singles, idle_s, pid;
    bool bare, finish;
};

struct one { /* a job of the measurement */
    int64_t applied_ms, pods_ms;
    int pods;
};

struct burst {
    struct flags flags;
    const struct job_kind *kind;
    struct loop *loop;
    struct kube_client *client;
    struct reflector *jobs_watch, *pods_watch, *services_watch;
    struct map jobs, pods; /* by name: struct one; struct one of the pod's job */
    struct map begun;      /* by the bare client: names of jobs */
    int64_t sent, acked, failed, running, succeeded;
    int64_t wanted_pods;
    int64_t first_ms, last_apply_ms, last_pod_ms, running_ms, succeeded_ms, finished_ms;
};

static const struct kube_resource PODS_R = { "", "v1", "pods", "Pod" },
                                  SERVICES_R = { "", "v1", "services", "Service" };

/* ---- applying ---- */

static json_t *manifest(const struct burst *b, const char *name)
{
    static const char *const ROLES_OF_JOB[] = { "Chief", "PS", "Worker" };
    json_t *roles = json_object();
    for (size_t i = 0; i < COUNT_OF(ROLES_OF_JOB); i++)
        json_object_set_new(roles, ROLES_OF_JOB[i],
                            json_pack("{s:i, s:s, s:{s:{s:[{s:s, s:s}]}}}", "replicas", i == 2 ? 2 : 1, "restartPolicy",
                                      "Never", "template", "spec", "containers", "name", b->kind->container, "image",
                                      "example/none"));
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:o, s:{s:s}}}", "apiVersion", b->kind->api_version, "kind",
                     b->kind->resource.kind, "metadata", "name", name, "spec", b->kind->replica_specs, roles,
                     "runPolicy", "cleanPodPolicy", "None");
}

static void apply_next(struct burst *b);

static void on_applied(void *user, const struct kube_answer *a)
{
    struct burst *b = user;
    if (!kube_ok(a)) {
        b->failed++;
        log_error("a job was not taken: %s", a->message);
    }
    b->acked++;
    b->last_apply_ms = clock_ms();
    apply_next(b);
}

static void apply_one(struct burst *b, int64_t i)
{
    char name[128];
    AUTO_FINI(buf) path = BUF_INIT;
    str_fmt(name, sizeof(name), "%s-%lld", b->flags.prefix, (long long)i);
    struct one *o = xcalloc(1, sizeof(*o));
    o->applied_ms = clock_ms();
    map_put(&b->jobs, name, o);
    json_auto_t *job = manifest(b, name);
    kube_path(&path, &b->kind->resource, b->flags.ns, NULL, NULL);
    kube_send(b->client, &(struct kube_request){ .verb = KUBE_CREATE,
                                                 .priority = KUBE_NORMAL,
                                                 .path = path.data,
                                                 .body = job,
                                                 .done = on_applied,
                                                 .user = b });
}

static void apply_next(struct burst *b)
{
    if (b->sent < b->flags.jobs)
        apply_one(b, b->sent++);
}

/* ---- the bare client: the requests that an operator must at least send ---- */

static void on_made(void *user, const struct kube_answer *a)
{
    (void)user;
    if (!kube_ok(a) && a->status != 409)
        log_error("an object was not taken: %s", a->message);
}

static void make(struct burst *b, const struct kube_resource *r, json_t *object)
{
    AUTO_FINI(buf) path = BUF_INIT;
    json_auto_t *owned = object;
    kube_path(&path, r, b->flags.ns, NULL, NULL);
    kube_send(b->client, &(struct kube_request){ .verb = KUBE_CREATE,
                                                 .priority = KUBE_NORMAL,
                                                 .path = path.data,
                                                 .body = owned,
                                                 .done = on_made,
                                                 .user = b });
}

static void make_all(struct burst *b, const json_t *object)
{
    AUTO_FINI(job_spec) v = { 0 };
    AUTO_FINI(strlist) none = { 0 };
    const struct build_settings s = { .trainer_image = "example/none",
                                      .pull_policy = "",
                                      .tensorboard_image = "",
                                      .cluster_domain = "",
                                      .gang_scheduler = "",
                                      .operator_ns = "default",
                                      .scraper_namespaces = &none };
    job_spec_parse(b->kind, object, CLEAN_NONE, &v);
    json_auto_t *spec = job_spec_json(&v);
    if (!b->kind->service_per_replica) {
        static const struct kube_resource POLICIES = { "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy" };
        make(b, &POLICIES, build_network_policy(&v, &s));
        make(b, &SERVICES_R, build_service(&v, spec, ROLE_WORKER, -1));
    }
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; v.roles[r].present && i < v.roles[r].replicas; i++) {
            make(b, &PODS_R, build_pod(&v, spec, (enum role)r, i, 0, NULL, 0, NULL, &s, NULL));
            if (b->kind->service_per_replica)
                make(b, &SERVICES_R, build_service(&v, spec, (enum role)r, i));
        }
}

/* ---- watching ---- */

static const char *meta(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(json_object_get(object, "metadata"), key));
    return s != NULL ? s : "";
}

static void begin(struct burst *b, const json_t *object)
{
    if (map_get(&b->begun, meta(object, "name")) != NULL)
        return;
    map_put(&b->begun, meta(object, "name"), b);
    make_all(b, object);
}

static void on_job(void *user, const json_t *object)
{
    struct burst *b = user;
    struct one *o = map_get(&b->jobs, meta(object, "name"));
    if (b->flags.bare)
        begin(b, object);
    if (o == NULL)
        return;
    const json_t *list = json_at(object, "status.conditions"), *last = json_array_get(list, json_array_size(list) - 1);
    if (str_eq(json_string_value(json_object_get(last, "type")), "Succeeded") && o->pods != -2) {
        o->pods = -2; /* counted */
        b->succeeded++;
        b->succeeded_ms = clock_ms();
    }
}

static void on_pod(void *user, const json_t *object)
{
    struct burst *b = user;
    char label[100];
    str_fmt(label, sizeof(label), "%sjob-name", b->kind->label_prefix);
    const char *job =
        json_string_value(json_object_get(json_object_get(json_object_get(object, "metadata"), "labels"), label));
    struct one *o = job != NULL ? map_get(&b->jobs, job) : NULL;
    if (o == NULL)
        return;
    if (map_get(&b->pods, meta(object, "name")) == NULL) {
        map_put(&b->pods, meta(object, "name"), o);
        b->last_pod_ms = o->pods_ms = clock_ms();
    }
    const char *phase = json_string_value(json_at(object, "status.phase"));
    AUTO_FINI(buf) key = BUF_INIT;
    buf_printf(&key, "%s %s", phase != NULL ? phase : "", meta(object, "name"));
    if (map_get(&b->pods, key.data) != NULL)
        return;
    map_put(&b->pods, key.data, o);
    if (str_eq(phase, "Running")) {
        b->running++;
        b->running_ms = clock_ms();
    } else if (str_eq(phase, "Succeeded")) {
        b->finished_ms = clock_ms();
    }
}

static void ignore_object(void *user, const json_t *object)
{
    (void)user, (void)object;
}
static void ignore_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    (void)user, (void)ns, (void)name, (void)uid, (void)last;
}
static void ignore_each(void *user, void (*tell)(void *reflector, const char *ns, const char *name, const char *uid),
                        void *reflector)
{
    (void)user, (void)tell, (void)reflector;
}
static void ignore_synced(void *user)
{
    (void)user;
}

static void watch(struct burst *b)
{
    const char *ns = b->flags.ns;
    b->jobs_watch =
        reflector_new(b->client, &(struct reflector_spec){ .resource = b->kind->resource, .ns = ns, .name = "jobs" },
                      &(struct reflector_user){ on_job, ignore_gone, ignore_each, ignore_synced, b });
    b->pods_watch = reflector_new(b->client, &(struct reflector_spec){ .resource = PODS_R, .ns = ns, .name = "pods" },
                                  &(struct reflector_user){ on_pod, ignore_gone, ignore_each, ignore_synced, b });
    b->services_watch = reflector_new(
        b->client,
        &(struct reflector_spec){ .resource = SERVICES_R, .ns = ns, .metadata_only = true, .name = "services" },
        &(struct reflector_user){ ignore_object, ignore_gone, ignore_each, ignore_synced, b });
}

/* Runs the loop until the condition holds; false after LIMIT_MS. */
#define TURN_UNTIL(b, condition)                                                                                       \
    __extension__({                                                                                                    \
        int64_t until_ = clock_ms() + LIMIT_MS;                                                                        \
        while (!(condition) && clock_ms() < until_ && loop_turn((b)->loop, 100, NULL) == 0) {                          \
        }                                                                                                              \
        (condition);                                                                                                   \
    })

/* ---- the operator's resource use ---- */

struct spent {
    double cpu_ms, rss_mb, peak_mb;
};

static struct spent look(int64_t pid)
{
    struct spent s = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    long long of = pid != 0 ? (long long)pid : (long long)getpid();
    auto_free char *stat = xasprintf("/proc/%lld/stat", of), *status = xasprintf("/proc/%lld/status", of);
    unsigned long user = 0, system = 0;
    if (file_read(stat, 65536, &text, NULL) == 0) {
        const char *p = strrchr(text.data, ')');
        if (p != NULL && sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) == 2)
            s.cpu_ms = (double)(user + system) * 1000 / (double)sysconf(_SC_CLK_TCK);
    }
    buf_clear(&text);
    if (file_read(status, 65536, &text, NULL) == 0) {
        const char *rss = strstr(text.data, "VmRSS:"), *peak = strstr(text.data, "VmHWM:");
        s.rss_mb = rss != NULL ? strtod(rss + 6, NULL) / 1000 : 0;
        s.peak_mb = peak != NULL ? strtod(peak + 6, NULL) / 1000 : 0;
    }
    if (pid == 0)
        s.cpu_ms = (double)clock_cpu_ns() * 1e-6; /* finer than clock ticks */
    return s;
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- the parts of a run ---- */

/* When a part began and ended, to find its requests in the API server's audit log. */
static void stamp(json_t *out, const char *key)
{
    char text[32];
    json_object_set_new(out, key, json_string(clock_rfc3339(clock_wall(), text)));
}

static void turn_for(struct burst *b, int64_t ms)
{
    int64_t until = clock_ms() + ms;
    while (clock_ms() < until && loop_turn(b->loop, 100, NULL) == 0) {
    }
}

/* Waits for the last status and events: until the operator has been almost idle for some seconds. */
static void turn_until_quiet(struct burst *b)
{
    for (int quiet = 0, s = 0; quiet < QUIET_S && s < QUIET_LIMIT_S; s++) {
        double before = look(b->flags.pid).cpu_ms;
        turn_for(b, 1000);
        quiet = look(b->flags.pid).cpu_ms - before <= QUIET_CPU_MS ? quiet + 1 : 0;
    }
}

static void run_idle(struct burst *b, json_t *out)
{
    const struct spent before = look(b->flags.pid);
    stamp(out, "idle_from");
    turn_for(b, b->flags.idle_s * 1000);
    stamp(out, "idle_to");
    json_object_set_new(out, "idle_rss_mb", json_real(look(b->flags.pid).rss_mb));
    json_object_set_new(out, "idle_cpu_ms_a_second",
                        json_real((look(b->flags.pid).cpu_ms - before.cpu_ms) / (double)b->flags.idle_s));
}

static void run_burst(struct burst *b, json_t *out)
{
    const struct spent before = look(b->flags.pid);
    b->wanted_pods = b->flags.jobs * PODS_A_JOB;
    b->first_ms = clock_ms();
    stamp(out, "burst_from");
    for (int i = 0; i < APPLIES_AT_ONCE; i++)
        apply_next(b);
    bool all = TURN_UNTIL(b, b->acked == b->flags.jobs && b->running >= b->wanted_pods);
    turn_until_quiet(b);
    stamp(out, "burst_to");
    const struct spent after = look(b->flags.pid);
    json_object_set_new(out, "complete", json_boolean(all));
    json_object_set_new(out, "last_apply_s", json_real((double)(b->last_apply_ms - b->first_ms) / 1000));
    json_object_set_new(out, "all_pods_s", json_real((double)(b->last_pod_ms - b->first_ms) / 1000));
    json_object_set_new(out, "after_last_apply_s", json_real((double)(b->last_pod_ms - b->last_apply_ms) / 1000));
    json_object_set_new(out, "all_running_s", json_real((double)(b->running_ms - b->first_ms) / 1000));
    json_object_set_new(out, "cpu_ms_a_job", json_real((after.cpu_ms - before.cpu_ms) / (double)MAX(b->flags.jobs, 1)));
    json_object_set_new(out, "rss_mb", json_real(after.rss_mb));
    json_object_set_new(out, "peak_mb", json_real(after.peak_mb));
}

/* One more job at a time, besides all existing jobs. */
static void run_singles(struct burst *b, json_t *out)
{
    int64_t took[1000];
    size_t n = 0;
    for (int64_t i = 0; i < MIN(b->flags.singles, (int64_t)COUNT_OF(took)); i++) {
        int64_t pods = b->wanted_pods + PODS_A_JOB, began = clock_ms();
        b->wanted_pods = pods;
        apply_one(b, b->flags.jobs + i);
        if (!TURN_UNTIL(b, b->running >= pods))
            break;
        took[n++] = b->last_pod_ms - began;
        turn_for(b, 200);
    }
    qsort(took, n, sizeof(took[0]), by_time);
    json_object_set_new(out, "singles", json_integer((json_int_t)n));
    if (n > 0) {
        json_object_set_new(out, "single_p50_ms", json_integer(took[n / 2]));
        json_object_set_new(out, "single_p99_ms", json_integer(took[MIN(n - 1, n * 99 / 100)]));
    }
}

static void on_patched(void *user, const struct kube_answer *a)
{
    (void)user;
    if (!kube_ok(a))
        log_error("a chief could not be ended: %s", a->message);
}

/* The chiefs end, by the annotation that the fake nodes read. */
static void run_finish(struct burst *b, json_t *out)
{
    const struct spent before = look(b->flags.pid);
    json_auto_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "test.trainyard.dev/exit-code", "0");
    int64_t total = b->flags.jobs;
    for (int64_t i = 0; i < total; i++) {
        char name[128];
        AUTO_FINI(buf) path = BUF_INIT;
        str_fmt(name, sizeof(name), "%s-%lld-chief-0", b->flags.prefix, (long long)i);
        kube_path(&path, &PODS_R, b->flags.ns, name, NULL);
        kube_send(b->client, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                     .priority = KUBE_NORMAL,
                                                     .path = path.data,
                                                     .body = patch,
                                                     .metadata_only = true,
                                                     .done = on_patched,
                                                     .user = b });
    }
    bool all = TURN_UNTIL(b, b->succeeded >= total);
    json_object_set_new(out, "all_succeeded", json_boolean(all));
    json_object_set_new(out, "succeeded_after_last_chief_s",
                        json_real((double)(b->succeeded_ms - b->finished_ms) / 1000));
    json_object_set_new(out, "finish_cpu_ms_a_job",
                        json_real((look(b->flags.pid).cpu_ms - before.cpu_ms) / (double)MAX(total, 1)));
}

static int run(struct burst *b, struct err *e)
{
    AUTO(kubeconfig) *config = NULL;
    AUTO(loop) *loop = loop_new();
    json_auto_t *out = json_object();
    AUTO_FINI(buf) line = BUF_INIT;
    if (kubeconfig_load(b->flags.kubeconfig, NULL, &config, e) < 0)
        return -1;
    AUTO(kube_client) *client = kube_client_new(
        loop, config, &(struct kube_settings){ .user_agent = "bench", .field_manager = "bench", .at_once = 64 });
    b->loop = loop;
    b->client = client;
    watch(b);
    if (!TURN_UNTIL(b, reflector_synced(b->jobs_watch) && reflector_synced(b->pods_watch) &&
                           reflector_synced(b->services_watch)))
        return err_set(e, ERR_TIMEOUT, "the watches do not begin");
    if (b->flags.bare) {
        printf("watching\n");
        fflush(stdout);
        return loop_run(loop, e); /* until it is killed */
    }
    run_burst(b, out);
    if (b->flags.idle_s > 0)
        run_idle(b, out);
    if (b->flags.singles > 0)
        run_singles(b, out);
    if (b->flags.finish)
        run_finish(b, out);
    json_emit(out, &line);
    printf("%s\n", line.data);
    reflector_free(b->jobs_watch);
    reflector_free(b->pods_watch);
    reflector_free(b->services_watch);
    return json_is_true(json_object_get(out, "complete")) ? 0 : err_set(e, ERR_TIMEOUT, "not all pods ran");
}

int main(int argc, char **argv)
{
    struct burst b = { .flags = { .ns = "default", .kind = "TFJob", .prefix = "burst", .jobs = 100 } };
    struct err e = { .code = ERR_NONE };
    enum opt_result parsed;
    AUTO_FINI(strlist) args = { 0 };
    const struct opt table[] = {
        OPT_STR("kubeconfig", "KUBECONFIG", "FILE", &b.flags.kubeconfig, "the cluster"),
        OPT_STR("namespace", NULL, "NAMESPACE", &b.flags.ns, "where the jobs are made (default default)"),
        OPT_STR("kind", NULL, "KIND", &b.flags.kind, "TFJob (default) or TrainJob"),
        OPT_STR("prefix", NULL, "NAME", &b.flags.prefix, "of the jobs' names (default burst)"),
        OPT_INT("jobs", NULL, "N", &b.flags.jobs, 0, 100000, "in one burst (default 100)"),
        OPT_INT("idle", NULL, "SECONDS", &b.flags.idle_s, 0, 3600, "then nothing at all for so long"),
        OPT_INT("singles", NULL, "N", &b.flags.singles, 0, 1000, "then one at a time"),
        OPT_INT("pid", NULL, "PID", &b.flags.pid, 0, INT32_MAX, "the operator's process, or the bare client's"),
        OPT_BOOL("bare", &b.flags.bare, "make the pods and services of jobs that others apply, until killed"),
        OPT_BOOL("finish", &b.flags.finish, "end all chiefs and wait for Succeeded"),
        OPT_END,
    };
    const struct opt_program program = { .name = "burst",
                                         .usage = "[flags]",
                                         .about = "Measures an operator with many jobs at once." };
    if (opt_parse(&program, table, argc, argv, &args, &parsed, &e) == 0 && parsed == OPT_OK) {
        b.kind = str_eq(b.flags.kind, "TrainJob") ? &KIND_TRAINJOB : &KIND_TFJOB;
        if (run(&b, &e) == 0)
            return 0;
    }
    if (e.code != ERR_NONE)
        log_error("%s", e.msg);
    return err_exit_code(&e);
}
