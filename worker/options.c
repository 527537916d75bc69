#include "options.h"

static int finish(struct options *o, const struct strlist *args, struct err *e)
{
    if (args->n > 0)
        return err_set(e, ERR_INPUT, "unexpected argument '%s': trainyard-worker takes only flags", args->items[0]);
    if (o->job == NULL)
        return err_set(e, ERR_INPUT, "Must specify --job FILE (the TrainJob manifest)");
    return log_level_parse(o->log_level, &o->level, e) < 0 || log_format_parse(o->log_format, &o->format, e) < 0 ? -1 : 0;
}

int options_parse(int argc, char **argv, struct options *ret, enum opt_result *ret_result, struct err *e)
{
    struct options o = { .log_level = "info", .log_format = "text", .overlap = true };
    const struct opt table[] = {
        OPT_SECTION("Job"),
        OPT_STR("job", "TRAINYARD_JOB", "FILE", &o.job, "TrainJob manifest, YAML or JSON"),
        OPT_STR("data-dir", "TRAINYARD_DATA_DIR", "DIR", &o.data_dir, "folder that paths in spec.data are relative to (default: the manifest's)"),
        OPT_STR("output-dir", "TRAINYARD_OUTPUT_DIR", "DIR", &o.output_dir, "checkpoints and summaries (default: ./runs/NAME)"),
        OPT_STR("cache-dir", "TRAINYARD_CACHE_DIR", "DIR", &o.cache_dir, "indexes and inflated files (default: OUTPUT/cache)"),
        OPT_SECTION("Cluster (or TF_CONFIG; nothing given: single-machine training)"),
        OPT_STR("job-name", NULL, "ROLE", &o.cluster.job_name, "worker, chief or evaluator; environment JOB_NAME"),
        OPT_STR("task-index", NULL, "N", &o.cluster.task_index, "index within the role; environment TASK_INDEX"),
        OPT_STR("ps-hosts", NULL, "HOSTS", &o.cluster.ps_hosts, "host:port,...; environment PS_HOSTS"),
        OPT_STR("worker-hosts", NULL, "HOSTS", &o.cluster.worker_hosts, "host:port,...; environment WORKER_HOSTS"),
        OPT_STR("chief-host", NULL, "HOST", &o.cluster.chief_host, "host:port; environment CHIEF_HOST"),
        OPT_STR("tls-dir", NULL, "DIR", &o.tls_dir, "reserved for certificates (ca.crt, tls.crt, tls.key)"),
        OPT_SECTION("Process"),
        OPT_STR("listen", NULL, "ADDRESS", &o.listen, "where the chief listens (default: its entry in the cluster spec)"),
        OPT_INT("http-port", "TRAINYARD_HTTP_PORT", "PORT", &o.http_port, 0, 65535, "/metrics /healthz /readyz /progress; 0: none"),
        OPT_BOOL("overlap", &o.overlap, "compute the next batch while a push is in flight (default)"),
        OPT_STR("log-level", "TRAINYARD_LOG_LEVEL", "LEVEL", &o.log_level, "debug, info, warning or error"),
        OPT_STR("log-format", "TRAINYARD_LOG_FORMAT", "FORMAT", &o.log_format, "text or json"),
        OPT_END,
    };
    const struct opt_program program = {
        .name = "trainyard-worker",
        .usage = "--job FILE [flags]",
        .about = "Trains a model: computes gradients as a worker, leads the job as its chief, or both. Without a cluster it "
                 "trains on this machine alone.",
        .epilog = "Exit codes: 0 the job has finished; 2 bad input; 3 training diverged; 138 a peer or storage was lost;\n"
                  "143 stopped by a signal after saving.",
    };
    AUTO_FINI(strlist) args = { 0 };
    if (opt_parse(&program, table, argc, argv, &args, ret_result, e) < 0)
        return -1;
    if (*ret_result == OPT_OK && finish(&o, &args, e) < 0)
        return -1;
    *ret = o;
    return 0;
}
