/* trainyard validate FILE...: judges manifests without running anything. */
#include "base/file.h"
#include "base/log.h"
#include "cli.h"
#include "nn/model.h"

static void describe(const char *file, const struct job *job, const struct model *model, struct buf *out)
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
    buf_str(out, ")\n");
}

static int validate(const char *file, const struct strlist *sets, const char *data_dir, struct buf *out, struct err *e)
{
    AUTO(job) *job = NULL;
    AUTO(model) *model = NULL;
    auto_free char *base = data_dir != NULL ? xstrdup(data_dir) : path_dir(file);

    if (job_load_with(file, sets, &job, e) < 0)
        return -1;
    if (job->has_model && model_build(&job->model, &job->compile, base, &model, e) < 0)
        return -1;
    describe(file, job, model, out);
    return 0;
}

int validate_command(int argc, char **argv, int *ret_exit, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard validate",
        .usage = "[flags] FILE...",
        .about = "Checks TrainJob manifests: every key, type and range, the model's layers and shapes, loss, metrics and "
                 "optimizer. Faults are named with file, line and column. Data files are not read.",
        .epilog = "Exit codes: 0 all are good; 2 at least one is not.",
    };
    AUTO_FINI(strlist) sets = { 0 }, files = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    const char *data_dir = NULL;
    enum opt_result result;
    const struct opt opts[] = {
        OPT_LIST("set", "PATH=VALUE", &sets, "a field below spec, as in fit.epochs=1"),
        OPT_STR("data-dir", NULL, "DIR", &data_dir, "where a kerasFile is looked for (default: the manifest's folder)"),
        OPT_END,
    };

    if (opt_parse(&PROGRAM, opts, argc, argv, &files, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &files, 1, SIZE_MAX, e) < 0)
        return -1;
    for (size_t i = 0; i < files.n; i++) {
        struct err bad = { 0 };
        if (validate(files.items[i], &sets, data_dir, &text, &bad) < 0) {
            log_error("%s", bad.msg);
            *ret_exit = 2;
        }
    }
    return cli_print(&text, e);
}
