/* The table of trainyard-ps' flags; --help comes from it. */
#include "options.h"

enum { THREADS_MAX = 256 };

int options_parse(int argc, char **argv, struct options *ret, enum opt_result *ret_result, struct err *e)
{
    struct options o = { .common = REPLICA_OPTIONS_INIT, .job_uid = "", .share = true };
    const char *ignored = NULL; /* a launcher may pass all replicas the same flags */
    const struct opt table[] = {
        OPT_SECTION("Cluster (or TF_CONFIG)"),
        REPLICA_CLUSTER_OPTS(&o.common, "ps"),
        OPT_SECTION("Job"),
        OPT_STR("job", "TRAINYARD_JOB", "FILE", &o.common.job,
                "TrainJob manifest; a ps reads only fit.maxWaitSeconds of it"),
        OPT_STR("job-uid", "TRAINYARD_JOB_UID", "UID", &o.job_uid,
                "serve only this job (default: the first that initialises it)"),
        OPT_STR("data-dir", "TRAINYARD_DATA_DIR", "DIR", &ignored, "not used by a ps"),
        OPT_STR("output-dir", "TRAINYARD_OUTPUT_DIR", "DIR", &ignored, "not used by a ps"),
        OPT_SECTION("Process"),
        OPT_STR("listen", NULL, "ADDRESS", &o.common.listen,
                "host:port or :port to listen on (default: the port of its entry in the cluster spec)"),
        OPT_INT("threads", NULL, "N", &o.threads, 0, THREADS_MAX,
                "that serve requests; 0 (default): one a core, 2 to 8"),
        OPT_BOOL("shared-memory", &o.share, "take gradients of workers on this host through shared memory (default)"),
        REPLICA_PROCESS_OPTS(&o.common),
        OPT_END,
    };
    const struct opt_program program = {
        .name = "trainyard-ps",
        .usage = "[flags]",
        .about = "Holds a part of a model's parameters, applies the gradients of the workers to it and hands out its "
                 "values.",
        .epilog = "Exit codes: 0 the job has finished; 2 bad input; 138 the chief was lost; 143 stopped by a signal "
                  "after its state was saved.",
    };
    AUTO_FINI(strlist) args = { 0 };
    if (opt_parse(&program, table, argc, argv, &args, ret_result, e) < 0)
        return -1;
    if (*ret_result == OPT_OK && replica_options_finish(&o.common, "trainyard-ps", &args, e) < 0)
        return -1;
    if (*ret_result == OPT_OK && o.job_uid[0] != '\0' && job_check_uid(o.job_uid, e) < 0)
        return err_wrap(e, "--job-uid");
    *ret = o;
    return 0;
}
