/* trainyard validate FILE...: validates manifests without running anything. */
#include "base/file.h"
#include "base/log.h"
#include "cli.h"
#include "data/job_data.h"
#include "job/replica_file.h"
#include "nn/callback.h"
#include "nn/class_weight.h"
#include "nn/sync_check.h"

static void describe(const char *file, const struct job *job, const struct model *model, const char *data,
                     struct buf *out)
{
    char params[32];
    buf_printf(out, "%s: ok (TrainJob %s, ", file, job->name);
    if (model != NULL)
        buf_printf(out, "%s parameters, ", cli_count(model_params(model), params));
    cli_replicas(job, out);
    if (job->fit.epochs > 0)
        buf_printf(out, ", %lld epoch%s", (long long)job->fit.epochs, job->fit.epochs == 1 ? "" : "s");
    else if (job->fit.steps > 0)
        buf_printf(out, ", %lld steps", (long long)job->fit.steps);
    buf_printf(out, "%s)\n", data);
}

struct subject {
    struct job *job;
    const char *base, *cache; /* the folder of the data, and one of our own */
    struct strlist *faults;
};

static bool is_well(const struct subject *s, int result, const struct err *why)
{
    if (result < 0 && !strlist_has(s->faults, why->msg))
        strlist_add(s->faults, why->msg);
    return result >= 0;
}

/* What the columns and an open input get from data.train. */
static bool learn(const struct subject *s)
{
    struct err why = { 0 };
    return is_well(s, cli_learn(s->job, NULL, s->base, s->cache, &why), &why);
}

/* NULL: it has a fault, or its input is open and not learned. */
static struct model *judge_model(const struct subject *s, bool learned)
{
    struct job *j = s->job;
    AUTO(model) *model = NULL;
    struct err why = { 0 };

    if (s->faults->n == 0 && !is_well(s, job_check_devices(j, job_ps_count(j), &why), &why))
        return NULL;
    if (model_input_is_open(&j->model) && !learned)
        (void)is_well(s, model_check(&j->model, &j->compile, &why), &why);
    else if (is_well(s, model_build(&j->model, &j->compile, s->base, &model, &why), &why)) {
        if (is_well(s, callbacks_check(&j->callbacks, model, job_evaluates(j), &why), &why))
            (void)is_well(s, sync_check(j, model, &why), &why);
        (void)is_well(s, class_weights_check(&j->class_weight, model, &why), &why);
    }
    return TAKE(model);
}

/* Each data set of the job: opened as a worker does it, and compared with the model. `out`: how large they are. */
static void judge_data(const struct subject *s, const struct model *model, struct buf *out)
{
    AUTO_FINI(job_data) data = { .train = NULL };
    AUTO_FINI(strlist) warnings = { 0 };
    struct err why = { 0 };

    if (s->job->train.present)
        (void)is_well(s, job_data_open_train(s->job, model, s->base, s->cache, &data, &why), &why);
    (void)is_well(s, job_data_open_validation(s->job, model, s->base, s->cache, &data, &why), &why);
    job_data_warnings(s->job, &data, &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        log_warning("%s", warnings.items[i]);
    if (data.train != NULL)
        buf_printf(out, ", %lld example%s, %lld for validation", (long long)dataset_size(data.train),
                   dataset_size(data.train) == 1 ? "" : "s",
                   data.validation != NULL ? (long long)dataset_size(data.validation) : 0);
}

/* -1: at least one error was added. */
static int validate(const char *file, const struct strlist *sets, const char *data_dir, const char *cache,
                    struct strlist *faults, struct buf *out)
{
    AUTO(job) *job = NULL;
    AUTO(model) *model = NULL;
    AUTO_FINI(buf) data = BUF_INIT;
    struct err why = { 0 };
    auto_free char *base = data_dir != NULL ? xstrdup(data_dir) : path_dir(file);
    struct subject s = { .base = base, .cache = cache, .faults = faults };

    if (!is_well(&s, job_load_all(file, sets, faults, &job, &why), &why))
        return -1;
    s.job = job;
    bool looks = data_dir != NULL || job_data_found(job, base);
    bool learned = looks && job->train.present && learn(&s);
    if (job->has_model)
        model = judge_model(&s, learned);
    if (looks && (learned || !job->train.present))
        judge_data(&s, model, &data);
    if (faults->n > 0)
        return -1;
    if (job->has_model && job_replica_file_fits(job->doc, &why) < 0)
        log_warning("%s: on a cluster it is refused: %s", file, why.msg);
    describe(file, job, model, data.data != NULL ? data.data : "", out);
    return 0;
}

int validate_command(int argc, char **argv, int *ret_exit, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard validate",
        .usage = "[flags] FILE...",
        .about =
            "Checks TrainJob manifests: every key, type and range, the model's layers and shapes, loss, metrics and "
            "optimizer. The data files are read, too, if they are there. All errors are reported, with file, line and "
            "column.",
        .epilog = "Exit codes: 0 all are valid; 2 at least one is not.",
    };
    AUTO_FINI(strlist) sets = { 0 }, files = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    const char *data_dir = NULL;
    enum opt_result result;
    const struct opt opts[] = {
        OPT_LIST("set", "PATH=VALUE", &sets, "a field below spec, such as fit.epochs=1"),
        OPT_STR("data-dir", NULL, "DIR", &data_dir,
                "the folder of the data and of a kerasFile; without it (the manifest's folder) the data may be absent"),
        OPT_END,
    };

    if (opt_parse(&PROGRAM, opts, argc, argv, &files, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &files, 1, SIZE_MAX, e) < 0)
        return -1;
    auto_free char *cache = cli_cache_new();
    for (size_t i = 0; i < files.n; i++) {
        AUTO_FINI(strlist) faults = { 0 };
        if (validate(files.items[i], &sets, data_dir, cache, &faults, &text) < 0)
            *ret_exit = 2;
        for (size_t k = 0; k < faults.n; k++)
            log_error("%s", faults.items[k]);
    }
    cli_cache_remove(cache);
    return cli_print(&text, e);
}
