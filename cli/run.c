/* trainyard run JOB: load, check, prepare the output folder, launch, print the result. */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "chief/previous_run.h"
#include "chief/weights.h"
#include "cli.h"
#include "data/job_data.h"
#include "data/job_learn.h"
#include "launcher.h"
#include "nn/callback.h"
#include "nn/class_weight.h"
#include "nn/sync_check.h"
#include "outdir.h"
#include "sweep_run.h"

struct run {
    const char *job_path, *output_dir, *data_dir, *log_level, *log_format, *tls_dir;
    bool resume, rebase, fresh, insecure;
    struct strlist sets, sweeps, replicas, args;
    enum log_format format;
};

static void run_fini(struct run *r)
{
    strlist_fini(&r->sets);
    strlist_fini(&r->sweeps);
    strlist_fini(&r->replicas);
    strlist_fini(&r->args);
}
DEFINE_AUTO_FINI(run, run_fini);

static int parse(struct run *r, int argc, char **argv, enum opt_result *result, struct err *e)
{
    const struct opt opts[] = {
        OPT_SECTION("Job"),
        OPT_LIST("replicas", "ROLE=N,...", &r->replicas,
                 "numbers of ps, worker, chief or evaluator replicas, such as ps=2,worker=4"),
        OPT_LIST("set", "PATH=VALUE", &r->sets, "a field below spec, such as fit.epochs=1"),
        OPT_LIST("sweep", "PATH=V,V,...", &r->sweeps,
                 "a run for each value of a field below spec, and of several fields for each combination; a table and "
                 "curves.svg compare them. A value with a comma needs brackets or quotes"),
        OPT_SECTION("Files"),
        OPT_STR("data-dir", NULL, "DIR", &r->data_dir, "folder of the data files (default: the manifest's folder)"),
        OPT_STR("output-dir", NULL, "DIR", &r->output_dir,
                "checkpoints, summaries, model (default: ./runs/NAME; with --sweep ./runs/NAME-sweep, with a folder "
                "for each run)"),
        OPT_BOOL("resume", &r->resume,
                 "continue the run in the output folder, even if it has finished or the optimizer's hyperparameters "
                 "differ; an error if the folder has no run. Without this flag an interrupted run is resumed, and a "
                 "finished one is not changed"),
        OPT_BOOL("rebase", &r->rebase,
                 "like --resume, also with other training data, batch size or seed: from the next epoch on"),
        OPT_BOOL("fresh", &r->fresh, "start from scratch; an earlier run is renamed to NAME.old-1, NAME.old-2, ..."),
        OPT_SECTION("Security"),
        OPT_STR("tls-dir", NULL, "DIR", &r->tls_dir,
                "keep the certificates of the replicas there, one folder for each (default: a temporary folder)"),
        OPT_BOOL("insecure", &r->insecure,
                 "no certificates: everything travels in plain text, and any local process can call a replica"),
        OPT_SECTION("Log"),
        OPT_STR("log-level", "TRAINYARD_LOG_LEVEL", "LEVEL", &r->log_level, "debug, info (default), warning or error"),
        OPT_STR("log-format", "TRAINYARD_LOG_FORMAT", "FORMAT", &r->log_format, "text (default) or json"),
        OPT_END,
    };
    static const struct opt_program PROGRAM = {
        .name = "trainyard run",
        .usage = "[flags] JOB",
        .about = "Trains a job on this machine. The replicas in its manifest run as local processes; those that fail "
                 "are restarted according to their restartPolicy. Ctrl-C saves a checkpoint and stops; a second Ctrl-C "
                 "stops at once. JOB is a YAML or JSON file, or - for standard input.",
        .epilog = "Exit codes: 0 finished; 2 bad input; 3 training diverged; 124 runPolicy.activeDeadlineSeconds "
                  "exceeded;\n138 peer or storage lost; 143 stopped.\nTRAINYARD_BIN_DIR names the folder of "
                  "trainyard-ps and trainyard-worker (default: this "
                  "program's, then PATH).",
    };
    enum log_level level;

    r->log_level = "info";
    r->log_format = "text";
    if (opt_parse(&PROGRAM, opts, argc, argv, &r->args, result, e) < 0)
        return -1;
    if (*result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &r->args, 1, 1, e) < 0)
        return -1;
    if ((r->resume || r->rebase) && r->fresh)
        return err_set(e, ERR_INPUT, "--%s and --fresh are mutually exclusive", r->rebase ? "rebase" : "resume");
    if (r->tls_dir != NULL && r->insecure)
        return err_set(e, ERR_INPUT, "--tls-dir and --insecure are mutually exclusive");
    if (log_level_parse(r->log_level, &level, e) < 0 || log_format_parse(r->log_format, &r->format, e) < 0)
        return -1;
    log_setup(level, r->format, r->format == LOG_JSON ? "launcher" : NULL);
    r->job_path = r->args.items[0];
    return 0;
}

static int load(const struct run *r, struct job **ret, struct err *e)
{
    AUTO_FINI(strlist) sets = { 0 };
    AUTO(job) *job = NULL;

    for (size_t i = 0; i < r->replicas.n; i++)
        if (cli_replicas_to_set(r->replicas.items[i], &sets, e) < 0)
            return -1;
    for (size_t i = 0; i < r->sets.n; i++)
        strlist_add(&sets, r->sets.items[i]);
    if (r->resume) /* the chief decides by the manifest, as on a cluster */
        strlist_add(&sets, "fit.resume=true");
    if (r->rebase)
        strlist_add(&sets, "fit.rebase=true");
    if (job_load_with(r->job_path, &sets, &job, e) < 0)
        return -1;
    if (!job->has_model)
        return err_set(e, ERR_INPUT, "%s: job '%s' has no model; replicas with their own image run only on a cluster",
                       job->file, job->name);
    *ret = TAKE(job);
    return 0;
}

/* The replicas get the completed job. A run that is continued keeps its words; whether its job can be read is judge()'s
 * to say. */
static int learn(const struct run *r, struct job *job, const char *data_dir, const char *output_dir, struct err *e)
{
    AUTO(job) *run = NULL;
    struct err ignored;
    if (!job_learns(job))
        return 0;
    auto_free char *cache = path_join(output_dir, "cache");
    if (!r->fresh)
        (void)!previous_run_read_job(output_dir, &run, &ignored);
    return cli_learn(job, run, data_dir, cache, e);
}

static int build_model(const struct job *job, const char *data_dir, struct model **ret, struct err *e)
{
    AUTO(model) *m = NULL;
    if (model_build(&job->model, &job->compile, data_dir, &m, e) < 0 || sync_check(job, m, e) < 0 ||
        callbacks_check(&job->callbacks, m, job_evaluates(job), e) < 0 ||
        class_weights_check(&job->class_weight, m, e) < 0)
        return -1;
    *ret = TAKE(m);
    return 0;
}

/* *ret stays NULL when the model's input is open: the data has to be read first. */
static int check_model(const struct job *job, const char *data_dir, struct model **ret, struct err *e)
{
    if (job_check_devices(job, job_ps_count(job), e) < 0)
        return -1;
    return model_input_is_open(&job->model) ? model_check(&job->model, &job->compile, e)
                                            : build_model(job, data_dir, ret, e);
}

static char *data_folder(const struct run *r)
{
    return r->data_dir != NULL ? xstrdup(r->data_dir) : path_dir(r->job_path);
}

/* Opens the data as the replicas will. So an error is reported once, with its place in the user's own file, and an
 * index is built once instead of by every replica. `ret` must be empty. */
static int check_data(const struct job *job, const struct model *model, const char *data_dir, const char *output_dir,
                      struct job_data *ret, struct err *e)
{
    auto_free char *cache = path_join(output_dir, "cache");

    if (dir_check(data_dir, e) < 0)
        return err_wrap(e, "data folder (--data-dir)");
    return job_data_open_train(job, model, data_dir, cache, ret, e) < 0 ||
                   job_data_open_validation(job, model, data_dir, cache, ret, e) < 0
               ? -1
               : 0;
}

/* The chief will read them; here an error is reported before anything is created. */
static int check_weights(const struct job *job, const struct model *model, const char *data_dir, struct err *e)
{
    AUTO_FINI(buf) report = BUF_INIT;
    auto_free void *vector = NULL;
    if (job->fit.initial_weights == NULL)
        return 0;
    auto_free char *path = path_join(data_dir, job->fit.initial_weights);
    if (mem_alloc(model_size(model) * sizeof(float), "initial weights", &vector, e) < 0 ||
        weights_load(path, model, vector, &report, e) < 0)
        return err_wrap(e, "fit.initialWeights");
    return 0;
}

/* ---- the earlier run in the output folder ---- */

static int refuse_changes(const char *dir, const struct previous_run *was, enum rerun allowed, struct err *e)
{
    AUTO_FINI(buf) differs = BUF_INIT;
    enum rerun need = rerun_need(&was->changes);
    rerun_text(&was->changes, allowed, &differs);
    return err_set(e, ERR_INPUT, "%s has a%s run with other settings: %s; %s--fresh starts from scratch", dir,
                   was->finished ? " finished" : "n interrupted", differs.data,
                   need == RERUN_RESUME   ? "--resume continues with the new ones, "
                   : need == RERUN_REBASE ? "--rebase continues with the new ones from the next epoch, "
                                          : "");
}

/* Checks the existing run by the chief's rules, before anything is changed. *ret: the changes of the job. */
static int judge(const struct job *job, const struct model *model, const char *data_dir, const struct job_data *data,
                 const char *dir, enum rerun *ret, struct err *e)
{
    AUTO(layout) *layout = layout_new(model);
    AUTO(checkpoint) *newest = NULL;
    AUTO_FINI(previous_run) was = { 0 };
    AUTO_FINI(buf) taken = BUF_INIT;
    const struct run_spec now = { .job = job,
                                  .model = model,
                                  .layout = layout,
                                  .space = &data->space,
                                  .columns = dataset_columns(data->train),
                                  .data_dir = data_dir,
                                  .workers = job->replicas[ROLE_WORKER].count };
    auto_free char *checkpoints = path_join(dir, "checkpoints"), *warning = NULL;
    enum rerun allowed = previous_run_allowed(job);
    struct rebase rebase = { 0 };
    struct run_length length;
    if (checkpoint_open_whole(checkpoints, &newest, &warning, e) < 0 ||
        previous_run_read(dir, &now, newest, &was, e) < 0)
        return -1;
    *ret = rerun_need(&was.changes);
    if (*ret > allowed)
        return refuse_changes(dir, &was, allowed, e);
    if (newest != NULL && (previous_run_check(&now, newest, &rebase, e) < 0 ||
                           previous_run_length(&now, &was, newest, &rebase, &length, e) < 0))
        return -1;
    rerun_text(&was.changes, RERUN_FREE, &taken);
    if (taken.len > 0)
        log_info("continuing %s: %s", dir, taken.data);
    return 0;
}

static void log_start(const struct job *job, const struct model *model, const struct outdir *out)
{
    AUTO_FINI(buf) replicas = BUF_INIT;
    char params[32];

    if (out->moved_to != NULL)
        log_info("the earlier run is now %s", out->moved_to);
    cli_replicas(job, &replicas);
    log_info("%s %s: %s, %s parameters, output in %s",
             out->plan == OUTDIR_CONTINUE || out->plan == OUTDIR_REOPEN ? "resuming" : "running", job->name,
             replicas.data, cli_count(model_params(model), params), out->path);
    if (job->run_policy.suspend)
        log_info("runPolicy.suspend is ignored by trainyard run; the job runs");
}

static void print_end(const struct job *job, const struct outdir *out, const struct launch_end *end, double seconds)
{
    AUTO_FINI(buf) text = BUF_INIT;
    char time[32];

    if (end->exit_code == 0) {
        buf_printf(&text, "%s finished in %s\n", job->name, str_duration(seconds, time));
        outdir_summary(out->path, &text);
    } else if (end->exit_code == 143) {
        buf_printf(&text, "%s stopped after %s; the same command continues it\n", job->name,
                   str_duration(seconds, time));
    } else {
        buf_printf(&text, "%s failed after %s with exit code %d%s%s\n", job->name, str_duration(seconds, time),
                   end->exit_code, end->reason[0] != '\0' ? ": " : "", end->reason);
    }
    cli_note(&text);
}

static void print_already_finished(const struct job *job, const struct outdir *out)
{
    AUTO_FINI(buf) text = BUF_INIT;
    buf_printf(
        &text,
        "%s has already finished, at step %lld; --fresh starts from scratch, --resume continues (with more epochs)\n",
        job->name, (long long)out->finished_step);
    outdir_summary(out->path, &text);
    cli_note(&text);
}

static int run_once(const struct run *r, int *ret_exit, struct err *e)
{
    AUTO_FINI(outdir) out = { .lock = -1 };
    AUTO(job) *job = NULL;
    AUTO(model) *model = NULL;
    int64_t begun = clock_ms();

    if (load(r, &job, e) < 0)
        return -1;
    auto_free char *data_dir = data_folder(r);
    auto_free char *output_dir = r->output_dir != NULL ? xstrdup(r->output_dir) : path_join("runs", job->name);
    if (check_model(job, data_dir, &model, e) < 0)
        return -1;
    enum outdir_wish wish = r->fresh ? OUTDIR_FRESH : r->resume || r->rebase ? OUTDIR_RESUME : OUTDIR_ANY;
    AUTO_FINI(job_data) data = { .train = NULL };
    enum rerun need = RERUN_FREE;
    if (outdir_open(output_dir, wish, &out, e) < 0 || launcher_check(job, e) < 0 ||
        learn(r, job, data_dir, output_dir, e) < 0 || (model == NULL && build_model(job, data_dir, &model, e) < 0) ||
        check_data(job, model, data_dir, output_dir, &data, e) < 0)
        return -1;
    bool earlier = !r->fresh && (out.seen.ours || out.seen.checkpoints);
    if ((earlier && judge(job, model, data_dir, &data, output_dir, &need, e) < 0) || outdir_plan(&out, need, e) < 0)
        return -1;
    if (out.plan == OUTDIR_DONE) {
        print_already_finished(job, &out);
        return 0;
    }
    if (!(earlier && out.seen.checkpoints) && check_weights(job, model, data_dir, e) < 0)
        return -1;

    job_data_fini(&data);             /* the replicas open it themselves */
    const struct groups none = { 0 }; /* the chief adds them */
    auto_free char *job_file = path_join(output_dir, "job.yaml");
    if (stop_install(e) < 0 || outdir_make(&out, job->uid, e) < 0 ||
        previous_run_write_job(output_dir, job, data_dir, &none, e) < 0)
        return -1;
    log_start(job, model, &out);
    struct launch launch = { .job = job,
                             .job_file = job_file,
                             .data_dir = data_dir,
                             .output_dir = output_dir,
                             .uid = out.uid,
                             .log_level = r->log_level,
                             .log_format = r->log_format,
                             .json = r->format == LOG_JSON,
                             .tls_dir = r->tls_dir,
                             .insecure = r->insecure };
    struct launch_end end;
    if (launcher_run(&launch, &end, e) < 0)
        return -1;
    *ret_exit = end.exit_code;
    print_end(job, &out, &end, (double)(clock_ms() - begun) / 1000);
    return 0;
}

/* ---- a sweep ---- */

/* The run with further fields. The texts in `sets` stay the caller's. */
static struct run with_sets(const struct run *r, const struct strlist *sets, const char *output_dir)
{
    struct run one = *r;
    one.sets = (struct strlist){ 0 };
    for (size_t i = 0; i < r->sets.n; i++)
        strlist_add(&one.sets, r->sets.items[i]);
    for (size_t i = 0; i < sets->n; i++)
        strlist_add(&one.sets, sets->items[i]);
    one.output_dir = output_dir;
    return one;
}

static int check_one(void *user, const struct strlist *sets, struct err *e)
{
    const struct run *r = user;
    AUTO(job) *job = NULL;
    AUTO(model) *model = NULL;
    struct run one = with_sets(r, sets, NULL);
    int rc = load(&one, &job, e);
    strlist_fini(&one.sets);
    if (rc < 0)
        return -1;
    auto_free char *data_dir = data_folder(r);
    return check_model(job, data_dir, &model, e);
}

static int train_one(void *user, const struct strlist *sets, const char *folder, int *ret_exit, struct err *e)
{
    struct run one = with_sets(user, sets, folder);
    int rc = run_once(&one, ret_exit, e);
    strlist_fini(&one.sets);
    return rc;
}

static int run_sweep(struct run *r, int *ret_exit, struct err *e)
{
    static const struct sweep_ops OPS = { .check = check_one, .train = train_one };
    AUTO_FINI(sweep) sweep = { .n = 0 };
    AUTO(job) *job = NULL;
    if (str_eq(r->job_path, "-"))
        return err_set(e, ERR_INPUT, "--sweep reads the manifest for each run: write it to a file");
    if (sweep_parse(&r->sweeps, &sweep, e) < 0 || load(r, &job, e) < 0 || stop_install(e) < 0)
        return -1;
    auto_free char *own = xasprintf("runs/%s-sweep", job->name);
    return sweep_run(&sweep, r->output_dir != NULL ? r->output_dir : own, &OPS, r, ret_exit, e);
}

int run_command(int argc, char **argv, int *ret_exit, struct err *e)
{
    AUTO_FINI(run) r = { 0 };
    enum opt_result result;
    if (parse(&r, argc, argv, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    return r.sweeps.n > 0 ? run_sweep(&r, ret_exit, e) : run_once(&r, ret_exit, e);
}
