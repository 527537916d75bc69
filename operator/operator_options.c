/* The table of flags and their defaults, and the checks that need several flags. */
#include "operator_options.h"

#include <stdlib.h>

#include "identity/certificate.h"

/* Both images are built together, so the trainer's image has the architecture of this program. */
#if defined(__x86_64__)
#define OWN_ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define OWN_ARCHITECTURE "arm64"
#else
#define OWN_ARCHITECTURE "any"
#endif

void operator_options_fini(struct operator_options *o)
{
    strlist_fini(&o->namespaces);
    strlist_fini(&o->scraper_namespaces);
}

static int clean_policy(const char *text, enum clean_pod_policy *ret, struct err *e)
{
    static const struct {
        const char *name;
        enum clean_pod_policy policy;
    } POLICIES[] = { { "None", CLEAN_NONE }, { "Running", CLEAN_RUNNING }, { "All", CLEAN_ALL } };
    for (size_t i = 0; i < COUNT_OF(POLICIES); i++)
        if (str_eq(text, POLICIES[i].name)) {
            *ret = POLICIES[i].policy;
            return 0;
        }
    return err_set(e, ERR_INPUT, "--tfjob-clean-pod-policy: '%s' is not None, Running or All", text);
}

static int check_values(struct operator_options *o, const struct strlist *args, struct err *e)
{
    static const char *const PULL_POLICIES[] = { "", "Always", "IfNotPresent", "Never" };
    bool known = false;
    for (size_t i = 0; i < COUNT_OF(PULL_POLICIES); i++)
        known |= str_eq(o->pull_policy, PULL_POLICIES[i]);
    if (args->n > 0)
        return err_set(e, ERR_INPUT, "unexpected argument '%s': trainyard-operator takes only flags, or `selftest`",
                       args->items[0]);
    if (!known)
        return err_set(e, ERR_INPUT, "--image-pull-policy: '%s' is not Always, IfNotPresent or Never", o->pull_policy);
    if (!o->trainjob && !o->tfjob)
        return err_set(e, ERR_INPUT, "--no-trainjob and --no-tfjob together leave nothing to do");
    if (o->scraper_namespaces.n == 0)
        strlist_add(&o->scraper_namespaces, "monitoring");
    return clean_policy(o->clean_policy_text, &o->tfjob_clean, e) < 0 ||
                   log_level_parse(o->log_level, &o->level, e) < 0 || log_format_parse(o->log_format, &o->format, e) < 0
               ? -1
               : 0;
}

static const struct operator_options DEFAULTS = {
    .workers = 32,
    .leader_elect = true,
    .lease_name = "trainyard-operator",
    .lease_s = 15,
    .trainer_image = "trainyard/trainer:0.1.0",
    .pull_policy = "",
    .tensorboard_image = "tensorflow/tensorflow:2.21.0",
    .gang_scheduler = "",
    .cluster_domain = "",
    .architecture = OWN_ARCHITECTURE,
    .assign_user = true,
    .trainjob = true,
    .tfjob = true,
    .network_policy = true,
    .certificate_s = LEAF_SECONDS,
    .force_delete_s = 60,
    .progress_s = 15,
    .clean_policy_text = "None",
    .metrics_address = ":8080",
    .health_address = ":8081",
    .log_level = "info",
    .log_format = "text",
};

int operator_options_parse(int argc, char **argv, struct operator_options *ret, enum opt_result *ret_result,
                           struct err *e)
{
    AUTO_FINI(operator_options) o = DEFAULTS;
    o.pod_name = getenv("POD_NAME");
    o.pod_ns = getenv("POD_NAMESPACE");
    o.pod_uid = getenv("POD_UID");
    const struct opt table[] = {
        OPT_SECTION("API server"),
        OPT_STR("kubeconfig", "KUBECONFIG", "FILE", &o.kubeconfig,
                "kubeconfig file (default: the pod's service account, or ~/.kube/config)"),
        OPT_STR("context", NULL, "NAME", &o.context, "context of the kubeconfig (default: its current context)"),
        OPT_LIST("namespace", "NAMESPACE", &o.namespaces,
                 "manage jobs of this namespace; may be repeated (default: all)"),
        OPT_INT("kube-api-qps", NULL, "N", &o.qps, 0, 100000,
                "requests per second; 0: only the API server limits them (default)"),
        OPT_INT("kube-api-burst", NULL, "N", &o.burst, 0, 100000,
                "burst of requests above that (default: twice --kube-api-qps)"),
        OPT_INT("workers", NULL, "N", &o.workers, 1, 10000, "jobs reconciled between two rounds of I/O (default 32)"),
        OPT_SECTION("Leader election"),
        OPT_BOOL("leader-elect", &o.leader_elect, "elect a leader among several operators (default)"),
        OPT_STR("leader-election-id", NULL, "NAME", &o.lease_name, "the Lease's name (default trainyard-operator)"),
        OPT_STR("leader-election-namespace", NULL, "NAMESPACE", &o.lease_ns,
                "the Lease's namespace (default: the pod's)"),
        OPT_INT("lease-seconds", NULL, "N", &o.lease_s, 3, 3600,
                "how long a leader may go without renewing its Lease (default 15)"),
        OPT_SECTION("TrainJob"),
        OPT_BOOL("trainjob", &o.trainjob, "manage trainyard.dev TrainJobs (default)"),
        OPT_STR("trainer-image", NULL, "IMAGE", &o.trainer_image,
                "image of replicas that do not name one (default trainyard/trainer:0.1.0)"),
        OPT_STR("trainer-architecture", NULL, "ARCH", &o.architecture,
                "architecture of that image, amd64 or arm64; any: all nodes (default: that of this program)"),
        OPT_BOOL("assign-user", &o.assign_user,
                 "pods run as user 65532; --no-assign-user leaves runAsUser and fsGroup to the platform, as OpenShift "
                 "wants it (default)"),
        OPT_STR("image-pull-policy", NULL, "POLICY", &o.pull_policy,
                "Always, IfNotPresent or Never, for such replicas (default: the cluster's)"),
        OPT_STR("tensorboard-image", NULL, "IMAGE", &o.tensorboard_image,
                "image with the program tensorboard, for spec.tensorboard"),
        OPT_BOOL("network-policy", &o.network_policy,
                 "a NetworkPolicy for each job: only its own replicas, this operator and scrapers reach it (default)"),
        OPT_LIST("scraper-namespace", "NAMESPACE", &o.scraper_namespaces,
                 "namespace whose pods may read the replicas' /metrics; may be repeated (default monitoring)"),
        OPT_INT("force-delete-seconds", NULL, "N", &o.force_delete_s, 0, 86400,
                "force-delete pods still terminating this long after their grace period (unresponsive node); 0: never "
                "(default 60)"),
        OPT_INT("progress-seconds", NULL, "N", &o.progress_s, 1, 3600,
                "shortest interval between two polls of a chief's /progress (default 15)"),
        OPT_SECTION("TFJob"),
        OPT_BOOL("tfjob", &o.tfjob, "manage kubeflow.org TFJobs while no training-operator runs (default)"),
        OPT_INT("tfjob-force-delete-seconds", NULL, "N", &o.tfjob_force_delete_s, 0, 86400,
                "as --force-delete-seconds, for TFJobs (default 0: never, as training-operator)"),
        OPT_STR("tfjob-clean-pod-policy", NULL, "POLICY", &o.clean_policy_text,
                "cleanPodPolicy of jobs without one: None, Running or All (default None, as training-operator)"),
        OPT_SECTION("Both"),
        OPT_BOOL("insecure", &o.insecure, "new jobs run without certificates and without encryption; only for tests"),
        OPT_INT("certificate-seconds", NULL, "N", &o.certificate_s, 10, 30 * 86400,
                "how long a certificate of a replica lives; renewed when a third of it remains (default 86400)"),
        OPT_STR("gang-scheduler-name", NULL, "NAME", &o.gang_scheduler,
                "volcano, or the schedulerName of scheduler-plugins' coscheduling (default: none)"),
        OPT_STR("cluster-domain", "CUSTOM_CLUSTER_DOMAIN", "DOMAIN", &o.cluster_domain,
                "appended to replicas' addresses, for example cluster.local"),
        OPT_SECTION("Process"),
        OPT_STR("metrics-bind-address", NULL, "ADDRESS", &o.metrics_address, "/metrics (default :8080, all addresses)"),
        OPT_STR("health-probe-bind-address", NULL, "ADDRESS", &o.health_address,
                "/healthz and /readyz (default :8081, all addresses)"),
        OPT_STR("log-level", "TRAINYARD_LOG_LEVEL", "LEVEL", &o.log_level, "debug, info, warning or error"),
        OPT_STR("log-format", "TRAINYARD_LOG_FORMAT", "FORMAT", &o.log_format, "text or json"),
        OPT_END,
    };
    const struct opt_program program = {
        .name = "trainyard-operator",
        .usage = "[flags] | selftest [flags]",
        .about =
            "Runs TrainJobs and TFJobs on Kubernetes: creates their pods, supervises them, and reports in status and "
            "events.",
        .epilog =
            "Exit codes: 0 stopped by a signal; 2 bad flags or kubeconfig; 138 leadership or the API server lost.",
    };
    AUTO_FINI(strlist) args = { 0 };
    if (opt_parse(&program, table, argc, argv, &args, ret_result, e) < 0 ||
        (*ret_result == OPT_OK && check_values(&o, &args, e) < 0))
        return -1;
    *ret = o;
    o.namespaces = o.scraper_namespaces = (struct strlist){ 0 };
    return 0;
}
