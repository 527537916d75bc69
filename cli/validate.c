/* trainyard validate FILE...: validates manifests without running anything. */
#include "base/file.h"
#include "base/log.h"
#include "cli.h"
#include "data/job_data.h"
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

/* Each data set of the job: opened as a worker does it, and compared with the model. `out`: how large they are. */
static void judge_data(const struct job *job, const struct model *model, const char *data_dir, const char *cache,
                       struct strlist *faults, struct buf *out)
{
    static __typeof__(&job_data_open_train) const OPEN[] = { job_data_open_train, job_data_open_validation };
    AUTO_FINI(job_data) data = { .train = NULL };

    for (size_t i = 0; i < COUNT_OF(OPEN); i++) {
        struct err why = { 0 };
        if (OPEN[i](job, model, data_dir, cache, &data, &why) < 0 && !strlist_has(faults, why.msg))
            strlist_add(faults, why.msg);
    }
    AUTO_FINI(strlist) warnings = { 0 };
    job_data_warnings(job, &data, &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        log_warning("%s", warnings.items[i]);
    if (faults->n == 0)
        buf_printf(out, ", %lld examples, %lld for validation", (long long)dataset_size(data.train),
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

    int result = job_load_all(file, sets, faults, &job, &why);
    if (result == 0 && faults->n == 0 && job->has_model)
        result = job_check_devices(job, job_ps_count(job), &why);
    bool open = result == 0 && job->has_model && model_input_is_open(&job->model);
    if (open)
        result = model_check(&job->model, &job->compile, &why);
    else if (result == 0 && job->has_model)
        result = model_build(&job->model, &job->compile, base, &model, &why);
    bool looks = result == 0 && faults->n == 0 && (data_dir != NULL || job_data_found(job, base));
    if (looks)
        result = cli_learn(job, NULL, base, cache, &why);
    if (looks && open && result == 0)
        result = model_build(&job->model, &job->compile, base, &model, &why);
    if (result == 0 && model != NULL)
        result =
            callbacks_check(&job->callbacks, model, job_evaluates(job), &why) < 0 ? -1 : sync_check(job, model, &why);
    if (result < 0 && !strlist_has(faults, why.msg))
        strlist_add(faults, why.msg);
    if (model != NULL && class_weights_check(&job->class_weight, model, &why) < 0 && !strlist_has(faults, why.msg))
        strlist_add(faults, why.msg);
    if (faults->n == 0 && model != NULL && looks)
        judge_data(job, model, base, cache, faults, &data);
    if (faults->n > 0)
        return -1;
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
