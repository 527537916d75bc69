/* Creates a small TrainJob, polls its state, and deletes it: only through the API server, as a user would. */
#include "selftest.h"

#include <unistd.h>

#include "api/kind.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/stop.h"
#include "codec/yaml.h"

enum { POLL_MS = 1000 };

static const char MANIFEST[] =
    "apiVersion: trainyard.dev/v1alpha1\n"
    "kind: TrainJob\n"
    "metadata: {name: selftest}\n"
    "spec:\n"
    "  model:\n"
    "    inputShape: [8, 8]\n"
    "    layers:\n"
    "      - Rescaling: {scale: 0.0625}\n"
    "      - Flatten: {}\n"
    "      - Dense: {units: 32, activation: relu}\n"
    "      - Dense: {units: 10, activation: softmax}\n"
    "  compile: {optimizer: Adam, loss: sparse_categorical_crossentropy, metrics: [accuracy]}\n"
    "  data: {train: {format: idx, features: digits/train-images-idx3-ubyte, labels: digits/train-labels-idx1-ubyte}}\n"
    "  fit: {epochs: 1, batchSize: 30, seed: 7}\n"
    "  replicaSpecs: {Chief: {}, PS: {replicas: 1}, Worker: {replicas: 1}}\n"
    "  runPolicy: {cleanPodPolicy: All, ttlSecondsAfterFinished: 600}\n";

struct selftest {
    struct loop *loop;
    struct kube_client *client;
    struct timer poll;
    const char *ns;
    char name[64], state[64];
    int64_t deadline_ms;
    bool created, succeeded, ending;
};

static void on_deleted(void *user, const struct kube_answer *a)
{
    struct selftest *t = user;
    if (!kube_ok(a) && a->status != 404)
        log_warning("deleting %s/%s: %s", t->ns, t->name, a->message);
    loop_stop(t->loop);
}

/* Deletes the job in any state. */
static void end(struct selftest *t)
{
    AUTO_FINI(buf) path = BUF_INIT;
    if (t->ending)
        return;
    t->ending = true;
    timer_clear(t->loop, &t->poll);
    if (!t->created) {
        loop_stop(t->loop);
        return;
    }
    json_auto_t *options = kube_delete_options(NULL, 0, -1);
    kube_path(&path, &KIND_TRAINJOB.resource, t->ns, t->name, NULL);
    kube_send(t->client, &(struct kube_request){ .verb = KUBE_DELETE,
                                                 .priority = KUBE_NORMAL,
                                                 .path = path.data,
                                                 .body = options,
                                                 .timeout_ms = 5000,
                                                 .retry_ms = -1,
                                                 .done = on_deleted,
                                                 .user = t });
}

static void poll(void *user);

static void log_state(struct selftest *t, const json_t *job)
{
    const char *state = json_string_value(json_at(job, "status.state")),
               *ready = json_string_value(json_at(job, "status.ready"));
    char line[64];
    str_fmt(line, sizeof(line), "%s, ready %s", state != NULL ? state : "waiting for the operator",
            ready != NULL ? ready : "0");
    if (!str_eq(line, t->state))
        log_info("%s/%s: %s", t->ns, t->name, line);
    str_fmt(t->state, sizeof(t->state), "%s", line);
}

static void on_job(void *user, const struct kube_answer *a)
{
    struct selftest *t = user;
    if (t->ending)
        return;
    if (kube_ok(a)) {
        const char *state = json_string_value(json_at(a->body, "status.state"));
        log_state(t, a->body);
        t->succeeded = str_eq(state, "Succeeded");
        if (t->succeeded || str_eq(state, "Failed")) {
            AUTO_FINI(buf) text = BUF_INIT;
            json_emit(json_at(a->body, "status.conditions"), &text);
            log_msg(t->succeeded ? LOG_INFO : LOG_ERROR, "%s", text.data);
            end(t);
            return;
        }
    } else {
        log_warning("%s/%s: %s", t->ns, t->name, a->message);
    }
    timer_set(t->loop, &t->poll, loop_now(t->loop) + POLL_MS, poll, t);
}

static void poll(void *user)
{
    struct selftest *t = user;
    AUTO_FINI(buf) path = BUF_INIT;
    if (loop_now(t->loop) >= t->deadline_ms) {
        log_error("%s/%s has not ended in time (%s)", t->ns, t->name, t->state);
        end(t);
        return;
    }
    kube_path(&path, &KIND_TRAINJOB.resource, t->ns, t->name, NULL);
    kube_send(t->client, &(struct kube_request){ .verb = KUBE_GET,
                                                 .priority = KUBE_NORMAL,
                                                 .path = path.data,
                                                 .timeout_ms = 5000,
                                                 .retry_ms = -1,
                                                 .done = on_job,
                                                 .user = t });
}

static void on_created(void *user, const struct kube_answer *a)
{
    struct selftest *t = user;
    t->created = kube_ok(a);
    if (t->created) {
        log_info("created TrainJob %s/%s", t->ns, t->name);
        poll(t);
        return;
    }
    log_error("creating a TrainJob in %s: %s", t->ns, a->message);
    end(t);
}

static void on_signal(void *user)
{
    struct selftest *t = user;
    loop_watch_fd(t->loop, stop_fd(), NULL, NULL);
    end(t);
}

static int begin(struct selftest *t, struct err *e)
{
    AUTO_FINI(buf) path = BUF_INIT;
    json_auto_t *job = NULL;
    struct source *source = NULL;
    if (yaml_parse(MANIFEST, sizeof(MANIFEST) - 1, "selftest", &job, &source, e) < 0)
        return -1;
    source_free(source);
    json_object_set_new(json_object_get(job, "metadata"), "name", json_string(t->name));
    kube_path(&path, &KIND_TRAINJOB.resource, t->ns, NULL, NULL);
    kube_send(t->client, &(struct kube_request){ .verb = KUBE_CREATE,
                                                 .priority = KUBE_NORMAL,
                                                 .path = path.data,
                                                 .body = job,
                                                 .done = on_created,
                                                 .user = t });
    return 0;
}

static int run(const char *kubeconfig, const char *ns, int64_t timeout_s, struct err *e)
{
    AUTO(kubeconfig) *config = NULL;
    AUTO(loop) *loop = loop_new();
    if (stop_install(e) < 0 || kubeconfig_load(kubeconfig, NULL, &config, e) < 0)
        return -1;
    AUTO(kube_client) *client = kube_client_new(
        loop, config,
        &(struct kube_settings){ .user_agent = "trainyard-selftest", .field_manager = "trainyard-selftest" });
    struct selftest t = { .loop = loop,
                          .client = client,
                          .ns = ns != NULL ? ns : kube_client_namespace(client),
                          .deadline_ms = loop_now(loop) + timeout_s * 1000 };
    str_fmt(t.name, sizeof(t.name), "trainyard-selftest-%x", (unsigned)(clock_ns() ^ getpid()) & 0xffffff);
    loop_watch_fd(loop, stop_fd(), on_signal, &t);
    if (begin(&t, e) < 0 || loop_run(loop, e) < 0)
        return -1;
    return t.succeeded ? 0 : err_set(e, ERR_LOST, "the TrainJob did not succeed");
}

int selftest_main(int argc, char **argv)
{
    const char *kubeconfig = NULL, *ns = NULL;
    int64_t timeout_s = 300;
    enum opt_result parsed;
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) args = { 0 };
    const struct opt table[] = {
        OPT_STR("kubeconfig", "KUBECONFIG", "FILE", &kubeconfig,
                "kubeconfig file (default: the pod's service account, or ~/.kube/config)"),
        OPT_STR("namespace", NULL, "NAMESPACE", &ns, "namespace of the job (default: the account's)"),
        OPT_INT("timeout-seconds", NULL, "N", &timeout_s, 1, 86400, "time limit (default 300)"),
        OPT_END,
    };
    const struct opt_program program = {
        .name = "trainyard-operator selftest",
        .usage = "[flags]",
        .about = "Trains a small TrainJob on the cluster to check that all parts work together, then deletes it."
    };
    log_setup(LOG_INFO, LOG_TEXT, "selftest");
    if (opt_parse(&program, table, argc, argv, &args, &parsed, &e) < 0 ||
        (parsed == OPT_OK && run(kubeconfig, ns, timeout_s, &e) < 0)) {
        log_error("%s", e.msg);
        return err_exit_code(&e);
    }
    if (parsed == OPT_OK)
        log_info("ok");
    return 0;
}
