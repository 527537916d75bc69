#include "options.h"

enum { THREADS_MAX = 256 };

static int finish(struct options *o, const struct strlist *args, struct err *e)
{
    if (args->n > 0)
        return err_set(e, ERR_INPUT, "unexpected argument '%s': trainyard-ps takes only flags", args->items[0]);
    return log_level_parse(o->log_level, &o->level, e) < 0 || log_format_parse(o->log_format, &o->format, e) < 0 ? -1 : 0;
}

int options_parse(int argc, char **argv, struct options *ret, enum opt_result *ret_result, struct err *e)
{
    struct options o = { .job_uid = "", .log_level = "info", .log_format = "text", .share = true };
    const char *ignored = NULL; /* a launcher may give all replicas the same flags */
    const struct opt table[] = {
        OPT_SECTION("Cluster (or TF_CONFIG)"),
        OPT_STR("job-name", NULL, "ROLE", &o.cluster.job_name, "ps; environment JOB_NAME"),
        OPT_STR("task-index", NULL, "N", &o.cluster.task_index, "index within the role; environment TASK_INDEX"),
        OPT_STR("ps-hosts", NULL, "HOSTS", &o.cluster.ps_hosts, "host:port,...; environment PS_HOSTS"),
        OPT_STR("worker-hosts", NULL, "HOSTS", &o.cluster.worker_hosts, "host:port,...; environment WORKER_HOSTS"),
        OPT_STR("chief-host", NULL, "HOST", &o.cluster.chief_host, "host:port; environment CHIEF_HOST"),
        OPT_STR("tls-dir", NULL, "DIR", &o.tls_dir, "reserved for certificates (ca.crt, tls.crt, tls.key)"),
        OPT_SECTION("Job"),
        OPT_STR("job", "TRAINYARD_JOB", "FILE", &o.job, "TrainJob manifest; a ps reads only fit.maxWaitSeconds of it"),
        OPT_STR("job-uid", "TRAINYARD_JOB_UID", "UID", &o.job_uid, "serve only this job (default: the first that initialises it)"),
        OPT_STR("data-dir", "TRAINYARD_DATA_DIR", "DIR", &ignored, "not used by a ps"),
        OPT_STR("output-dir", "TRAINYARD_OUTPUT_DIR", "DIR", &ignored, "not used by a ps"),
        OPT_SECTION("Process"),
        OPT_STR("listen", NULL, "ADDRESS", &o.listen, "host:port to listen on (default: the port of its entry in the cluster spec)"),
        OPT_INT("http-port", "TRAINYARD_HTTP_PORT", "PORT", &o.http_port, 0, 65535, "/metrics /healthz /readyz /progress; 0: none"),
        OPT_INT("threads", NULL, "N", &o.threads, 0, THREADS_MAX, "that serve requests; 0 (default): one a core, 2 to 8"),
        OPT_BOOL("shared-memory", &o.share, "take gradients of workers on this host through shared memory (default)"),
        OPT_STR("log-level", "TRAINYARD_LOG_LEVEL", "LEVEL", &o.log_level, "debug, info, warning or error"),
        OPT_STR("log-format", "TRAINYARD_LOG_FORMAT", "FORMAT", &o.log_format, "text or json"),
        OPT_END,
    };
    const struct opt_program program = {
        .name = "trainyard-ps",
        .usage = "[flags]",
        .about = "Holds a part of a model's parameters, applies the gradients of the workers to it and hands out its values.",
        .epilog = "Exit codes: 0 the job has finished; 2 bad input; 138 the chief was lost; 143 stopped by a signal after "
                  "its state was saved.",
    };
    AUTO_FINI(strlist) args = { 0 };
    if (opt_parse(&program, table, argc, argv, &args, ret_result, e) < 0)
        return -1;
    if (*ret_result == OPT_OK && finish(&o, &args, e) < 0)
        return -1;
    *ret = o;
    return 0;
}
