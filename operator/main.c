/* trainyard-operator: elects a leader, and runs one controller of TrainJobs and one of TFJobs while it is the leader.
 * Losing the Lease ends the program, so that two operators never write; SIGTERM releases it. */
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/stop.h"
#include "control/controller.h"
#include "control/dispatch.h"
#include "control/identity_issuer.h"
#include "kube/event_recorder.h"
#include "kube/leader_elector.h"
#include "net/http_server.h"
#include "operator_options.h"
#include "selftest.h"
#include "training_operator_detector.h"

enum { BEAT_MS = 1000, WEDGED_MS = 60000, SETTLE_S = 30, DETECT_PATIENCE_MS = 40000, IDLE_BEATS = 5, TELL_MS = 3000 };

struct operator
{
    const struct operator_options *options;
    struct loop *loop;
    struct kubeconfig *config;
    struct kube_client *client;
    struct dispatch *dispatch;
    struct identity_issuer *issuer; /* while it leads */
    struct registry *registry;
    struct leader_elector *elector;
    struct detector *detector;
    struct event_recorder *events;
    struct event_recorder *reported[3]; /* with events that are still to be posted when the controllers have ended */
    size_t ntold, unfinished;           /* unfinished: flushes, and the release of the Lease */
    struct controller *trainjobs, *tfjobs;
    struct http_server *metrics, *health;
    struct gauge *leading, *tfjob_active;
    struct timer beat;
    char identity[300], user_agent[64];
    bool leads, leader_known, stopping;
    int64_t cpu_ms;       /* at the last heartbeat */
    int idle_beats;       /* beats in a row without work */
    struct err failure;   /* why the program exits, if not by a signal */
    atomic_llong beat_ms; /* for the probes, which another thread serves */
    atomic_bool ready;
};

/* ---- probes ---- */

static int healthz(void *user, struct buf *body, const char **content_type)
{
    struct operator* op = user;
    (void)content_type;
    int64_t silent = clock_ms() - atomic_load(&op->beat_ms);
    if (silent <= WEDGED_MS) {
        buf_str(body, "ok\n");
        return 200;
    }
    buf_printf(body, "the event loop has been blocked for %lld ms\n", (long long)silent);
    return 503;
}

static int readyz(void *user, struct buf *body, const char **content_type)
{
    struct operator* op = user;
    bool ready = atomic_load(&op->ready);
    (void)content_type;
    buf_str(body, ready ? "ok\n" : "listing objects\n");
    return ready ? 200 : 503;
}

/* Memory freed after a burst of jobs is returned to the system once the operator is idle. */
static void release_idle_memory(struct operator* op)
{
    int64_t cpu_ms = clock_cpu_ns() / 1000000;
    op->idle_beats = cpu_ms - op->cpu_ms > BEAT_MS / 100 ? 0 : op->idle_beats + 1;
    op->cpu_ms = cpu_ms;
    if (op->idle_beats == IDLE_BEATS)
        mem_give_back();
}

static void on_beat(void *user)
{
    struct operator* op = user;
    bool synced = (op->trainjobs == NULL || controller_synced(op->trainjobs)) &&
                  (op->tfjobs == NULL || controller_synced(op->tfjobs));
    atomic_store(&op->beat_ms, clock_ms());
    atomic_store(&op->ready, !op->stopping && (op->leads ? synced : op->leader_known));
    if (op->stopping && stop_count() > 1) /* a second signal: the Lease expires by itself */
        loop_stop(op->loop);
    release_idle_memory(op);
    timer_set(op->loop, &op->beat, clock_ms() + BEAT_MS, on_beat, op);
}

static int open_servers(struct operator* op, struct err *e)
{
    const struct http_route metrics[] = { http_metrics_route(op->registry) };
    const struct http_route health[] = { { .path = "/healthz", .handle = healthz, .user = op },
                                         { .path = "/readyz", .handle = readyz, .user = op } };
    if (http_server_start(op->options->metrics_address, NULL, metrics, COUNT_OF(metrics), &op->metrics, e) < 0)
        return err_wrap(e, "--metrics-bind-address");
    if (http_server_start(op->options->health_address, NULL, health, COUNT_OF(health), &op->health, e) < 0)
        return err_wrap(e, "--health-probe-bind-address");
    return 0;
}

/* ---- controllers ---- */

static struct controller_settings settings(const struct operator* op, bool tfjob)
{
    const struct operator_options *o = op->options;
    bool volcano = str_eq(o->gang_scheduler, "volcano");
    int64_t force_s = tfjob ? o->tfjob_force_delete_s : o->force_delete_s;
    return (struct controller_settings){
        .plan = { .network_policy = o->network_policy && !tfjob,
                  .gang = o->gang_scheduler[0] != '\0',
                  .gang_waits = volcano,
                  .force_delete_ms = force_s * 1000 },
        .build = { .trainer_image = o->trainer_image,
                   .pull_policy = o->pull_policy,
                   .tensorboard_image = o->tensorboard_image,
                   .cluster_domain = o->cluster_domain,
                   .gang_scheduler = o->gang_scheduler,
                   .operator_ns = kube_client_namespace(op->client),
                   .scraper_namespaces = &o->scraper_namespaces,
                   .leave_user = !o->assign_user,
                   .architecture = str_eq(o->architecture, "any") ? "" : o->architecture,
                   .lost_after_s = o->force_delete_s > 0 ? SETTLE_S : 0 },
        .namespaces = &o->namespaces,
        .default_clean = tfjob ? o->tfjob_clean : CLEAN_RUNNING,
        .workers = (int)o->workers,
        .progress_ms = o->progress_s * 1000,
        .instance = o->pod_name != NULL ? o->pod_name : op->identity,
        .registry = op->registry,
        .issuer = op->issuer,
        .dispatch = op->dispatch,
    };
}

static void record_own_event(struct operator* op, bool warning, const char *reason, const char *note)
{
    const struct event_object self = { .api_version = "v1",
                                       .kind = "Pod",
                                       .ns = op->options->pod_ns,
                                       .name = op->options->pod_name,
                                       .uid = op->options->pod_uid };
    log_msg(warning ? LOG_WARNING : LOG_INFO, "%s", note);
    if (self.name != NULL && self.ns != NULL && self.uid != NULL)
        event_record(op->events, &self, warning ? EVENT_WARNING : EVENT_NORMAL, reason, "", note);
}

static void on_training_operator(void *user, const char *why)
{
    struct operator* op = user;
    auto_free char *note =
        why != NULL ? xasprintf("TFJobs are ignored: %s. Remove training-operator, and this operator adopts them", why)
                    : xstrdup("no training-operator runs: TFJobs are managed");
    if (why != NULL) {
        controller_free(TAKE(op->tfjobs));
    } else if (op->tfjobs == NULL) {
        struct controller_settings s = settings(op, true);
        op->tfjobs = controller_new(op->client, &KIND_TFJOB, &s);
    }
    gauge_set(op->tfjob_active, why == NULL);
    record_own_event(op, why != NULL, why != NULL ? "TFJobControllerOff" : "TFJobControllerOn", note);
}

static void on_leading(void *user)
{
    struct operator* op = user;
    op->leads = true;
    gauge_set(op->leading, 1);
    log_info("%s is the leader", op->identity);
    op->events = event_recorder_new(op->client, "trainyard-operator", op->identity);
    op->issuer =
        identity_issuer_new(op->client, &(struct identity_issuer_settings){ .insecure = op->options->insecure,
                                                                            .lifetime_s = op->options->certificate_s,
                                                                            .registry = op->registry });
    if (op->options->trainjob) {
        struct controller_settings s = settings(op, false);
        op->trainjobs = controller_new(op->client, &KIND_TRAINJOB, &s);
    }
    if (op->options->tfjob)
        op->detector = detector_new(op->client, DETECT_PATIENCE_MS, on_training_operator, op);
}

static void on_leader(void *user, const char *identity)
{
    struct operator* op = user;
    op->leader_known = true;
    if (!op->leads)
        log_info("%s is the leader; waiting", identity);
}

/* ---- end ---- */

static void stop_work(struct operator* op)
{
    op->stopping = true;
    atomic_store(&op->ready, false);
    detector_free(TAKE(op->detector));
    if (op->tfjobs != NULL)
        op->reported[op->ntold++] = controller_end(TAKE(op->tfjobs));
    if (op->trainjobs != NULL)
        op->reported[op->ntold++] = controller_end(TAKE(op->trainjobs));
    if (op->events != NULL)
        op->reported[op->ntold++] = TAKE(op->events);
    identity_issuer_free(TAKE(op->issuer));
}

static void on_lost(void *user, const char *why)
{
    struct operator* op = user;
    stop_work(op);
    err_put(&op->failure, ERR_LOST, "leadership lost: %s", why);
    loop_stop(op->loop);
}

static void on_finished(void *user)
{
    struct operator* op = user;
    if (--op->unfinished == 0)
        loop_stop(op->loop);
}

static void on_signal(void *user)
{
    struct operator* op = user;
    log_info("stopping");
    loop_watch_fd(op->loop, stop_fd(), NULL, NULL);
    stop_work(op);
    op->unfinished = op->ntold + 1;
    if (op->elector != NULL)
        leader_elector_release(op->elector, on_finished, op);
    else
        on_finished(op);
    for (size_t i = 0; i < op->ntold; i++)
        event_recorder_flush(op->reported[i], TELL_MS, on_finished, op);
}

static void operator_fini(struct operator* op)
{
    http_server_free(op->metrics);
    http_server_free(op->health);
    detector_free(op->detector);
    controller_free(op->tfjobs);
    controller_free(op->trainjobs);
    event_recorder_free(op->events);
    for (size_t i = 0; i < op->ntold; i++)
        event_recorder_free(op->reported[i]);
    leader_elector_free(op->elector);
    identity_issuer_free(op->issuer);
    dispatch_free(op->dispatch);
    kube_client_free(op->client);
    kubeconfig_free(op->config);
    if (op->loop != NULL)
        timer_clear(op->loop, &op->beat);
    loop_free(op->loop);
    registry_free(op->registry);
}
DEFINE_AUTO_FINI(operator, operator_fini);

/* ---- start ---- */

static void set_identity(struct operator* op)
{
    char host[200] = "operator";
    uint32_t random = 0;
    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        random = (uint32_t)clock_ns();
    gethostname(host, sizeof(host) - 1);
    str_fmt(op->identity, sizeof(op->identity), "%s_%08x", op->options->pod_name != NULL ? op->options->pod_name : host,
            random);
    str_fmt(op->user_agent, sizeof(op->user_agent), "trainyard-operator/%s", TRAINYARD_VERSION);
}

static int connect_to_server(struct operator* op, struct err *e)
{
    const struct operator_options *o = op->options;
    if (kubeconfig_load(o->kubeconfig, o->context, &op->config, e) < 0)
        return -1;
    op->client = kube_client_new(op->loop, op->config,
                                 &(struct kube_settings){ .qps = (double)o->qps,
                                                          .burst = (int)(o->burst > 0 ? o->burst : 2 * o->qps),
                                                          .user_agent = op->user_agent,
                                                          .field_manager = "trainyard-operator",
                                                          .registry = op->registry });
    op->dispatch = dispatch_new(op->client);
    AUTO_FINI(buf) where = BUF_INIT;
    for (size_t i = 0; i < o->namespaces.n; i++)
        buf_printf(&where, "%s %s", i == 0 ? "of" : ",", o->namespaces.items[i]);
    log_info("trainyard-operator %s %s: API server %s, jobs %s", TRAINYARD_VERSION, op->identity,
             kubeconfig_server(op->config), where.len > 0 ? where.data : "of all namespaces");
    return 0;
}

static void start_leading(struct operator* op)
{
    const struct operator_options *o = op->options;
    op->leading = registry_gauge(op->registry, "leader_election_master_status", "1: this operator is the leader.",
                                 LABELS({ "name", o->lease_name }));
    op->tfjob_active = registry_gauge(
        op->registry, "trainyard_operator_tfjob_controller_active",
        "1: TFJobs are managed; 0: they are ignored, because training-operator runs or by --no-tfjob.", NULL);
    if (!o->leader_elect) {
        on_leading(op);
        return;
    }
    const struct lease_settings s = { .ns = o->lease_ns != NULL ? o->lease_ns : kube_client_namespace(op->client),
                                      .name = o->lease_name,
                                      .identity = op->identity,
                                      .duration_s = (int)o->lease_s,
                                      .renew_s = (int)MAX(o->lease_s * 2 / 3, 2),
                                      .retry_s = (int)MAX(o->lease_s * 2 / 15, 1) };
    op->elector = leader_elector_new(op->client, &s, &(struct leader_callbacks){ on_leading, on_lost, on_leader, op });
}

static int run(const struct operator_options *o, struct err *e)
{
    AUTO_FINI(operator) op = { .options = o };
    if (stop_install(e) < 0)
        return -1;
    file_raise_limit();
    set_identity(&op);
    op.loop = loop_new();
    op.registry = registry_new();
    registry_add_process(op.registry);
    atomic_store(&op.beat_ms, clock_ms());
    if (connect_to_server(&op, e) < 0 || open_servers(&op, e) < 0)
        return -1;
    loop_watch_fd(op.loop, stop_fd(), on_signal, &op);
    on_beat(&op);
    start_leading(&op);
    if (loop_run(op.loop, e) < 0)
        return -1;
    if (op.failure.code != ERR_NONE) {
        *e = op.failure;
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    AUTO_FINI(operator_options) o = { 0 };
    enum opt_result parsed;
    struct err e = { .code = ERR_NONE };
    if (argc > 1 && strcmp(argv[1], "selftest") == 0)
        return selftest_main(argc - 1, argv + 1);
    if (operator_options_parse(argc, argv, &o, &parsed, &e) < 0) {
        log_error("%s", e.msg);
        return err_exit_code(&e);
    }
    if (parsed == OPT_DONE)
        return 0;
    log_setup(o.level, o.format, "operator");
    if (o.insecure)
        log_warning("--insecure: new jobs run without certificates: nothing that their replicas send is encrypted or "
                    "authenticated");
    if (run(&o, &e) == 0)
        return 0;
    log_error("%s", e.msg);
    return err_exit_code(&e);
}
