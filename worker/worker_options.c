/* Flags, environment variables and the text of --help. */
#include "worker_options.h"

static int check_options(struct worker_options *o, const struct strlist *args, struct err *e)
{
    if (replica_options_finish(&o->common, "trainyard-worker", args, e) < 0)
        return -1;
    return o->common.job != NULL ? 0 : err_set(e, ERR_INPUT, "Must specify --job FILE (the TrainJob manifest)");
}

int worker_options_parse(int argc, char **argv, struct worker_options *ret, enum opt_result *ret_result, struct err *e)
{
    struct worker_options o = { .common = REPLICA_OPTIONS_INIT, .cache_space = INT64_MAX, .share = true };
    const struct opt table[] = {
        OPT_SECTION("Job"),
        OPT_STR("job", "TRAINYARD_JOB", "FILE", &o.common.job, "TrainJob manifest, YAML or JSON"),
        OPT_STR("data-dir", "TRAINYARD_DATA_DIR", "DIR", &o.data_dir,
                "folder that paths in spec.data are relative to (default: the manifest's)"),
        OPT_STR("output-dir", "TRAINYARD_OUTPUT_DIR", "DIR", &o.output_dir,
                "checkpoints and summaries (default: ./runs/NAME)"),
        OPT_STR("cache-dir", "TRAINYARD_CACHE_DIR", "DIR", &o.cache_dir,
                "indexes and inflated files (default: OUTPUT/cache; where that cannot be written, a folder in TMPDIR "
                "or /tmp)"),
        OPT_INT("cache-space", "TRAINYARD_CACHE_SPACE", "BYTES", &o.cache_space, 0, INT64_MAX,
                "space of that folder; the numbers parsed from csv and jsonl take at most a quarter of it, and are not "
                "kept with 0 (default: what is free)"),
        OPT_SECTION("Cluster (or TF_CONFIG; nothing given: single-machine training)"),
        REPLICA_CLUSTER_OPTS(&o.common, "worker, chief or evaluator"),
        OPT_SECTION("Process"),
        OPT_STR("listen", NULL, "ADDRESS", &o.common.listen,
                "where the chief listens (default: its entry in the cluster spec)"),
        OPT_BOOL("shared-memory", &o.share,
                 "MultiWorkerMirrored: exchange gradients with workers on this host through shared memory (default)"),
        REPLICA_PROCESS_OPTS(&o.common),
        OPT_END,
    };
    const struct opt_program program = {
        .name = "trainyard-worker",
        .usage = "--job FILE [flags]",
        .about = "Trains a model: computes gradients as a worker, leads the job as its chief, or both. Without a "
                 "cluster it trains on this machine alone.",
        .epilog =
            "Exit codes: 0 the job has finished; 2 bad input; 3 training diverged; 138 a peer or storage was lost;\n"
            "143 stopped by a signal after saving.",
    };
    AUTO_FINI(strlist) args = { 0 };
    if (opt_parse(&program, table, argc, argv, &args, ret_result, e) < 0)
        return -1;
    if (*ret_result == OPT_OK && check_options(&o, &args, e) < 0)
        return -1;
    *ret = o;
    return 0;
}
