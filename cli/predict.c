/* trainyard evaluate RUN, trainyard predict RUN: a run's model on other data. Both only read the run. */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "chief/checkpoint.h"
#include "chief/checkpoint_path.h"
#include "chief/previous_run.h"
#include "cli.h"
#include "new_data.h"
#include "predictions.h"
#include "train/evaluate.h"

enum { PIECE = 1 << 16 };
#define INPUT_PATH "/proc/self/fd/%d"
enum { INPUT_PATH_MAX = 64 };

struct ask { /* what both commands have in common */
    const char *run, *job_file, *checkpoint, *data_dir, *cache_dir;
    struct new_data data;
    struct strlist args, files;
    int64_t batch_size;
    int input; /* standard input as a file, or -1 */
};

static void ask_fini(struct ask *a)
{
    strlist_fini(&a->args);
    strlist_fini(&a->files);
    fd_close(a->input);
}
DEFINE_AUTO_FINI(ask, ask_fini);

struct loaded {
    struct job *job;
    struct model *model;
    struct dataset *data;
    float *vector;
    struct column_names columns; /* that it was trained with */
    char *data_dir, *prefix;
    int64_t step, batch_size;
    int input; /* standard input as a file, or -1 */
};

static void loaded_fini(struct loaded *l)
{
    dataset_free(l->data);
    model_free(l->model);
    job_free(l->job);
    column_names_fini(&l->columns);
    free(l->vector);
    free(l->data_dir);
    free(l->prefix);
}
DEFINE_AUTO_FINI(loaded, loaded_fini);

/* ---- what is read ---- */

/* Files are mapped, so standard input is kept in memory first. */
static int take_input(struct ask *a, struct err *e)
{
    auto_free char *piece = xmalloc(PIECE);
    ssize_t n;
    a->input = memfd_create("standard input", MFD_CLOEXEC);
    if (a->input < 0)
        return err_errno(e, ERR_IO, "memfd_create");
    while ((n = read(STDIN_FILENO, piece, PIECE)) > 0)
        if (fd_write(a->input, piece, (size_t)n, e) < 0)
            return err_wrap(e, "standard input");
    return n < 0 ? err_errno(e, ERR_IO, "standard input") : 0;
}

static int take_files(struct ask *a, struct err *e)
{
    for (size_t i = 1; i < a->args.n; i++) {
        const char *name = a->args.items[i];
        if (!str_eq(name, "-")) {
            strlist_add(&a->files, name);
            continue;
        }
        if (a->input >= 0)
            return err_set(e, ERR_INPUT, "standard input (-) can be read once");
        if (take_input(a, e) < 0)
            return -1;
        auto_free char *path = xasprintf(INPUT_PATH, a->input);
        strlist_add(&a->files, path);
    }
    a->run = a->args.items[0];
    a->data.files = &a->files;
    return 0;
}

static int read_job(const struct ask *a, struct job **ret, struct err *e)
{
    AUTO(job) *job = NULL;
    if (a->job_file != NULL ? job_load(a->job_file, &job, e) < 0 : previous_run_read_job(a->run, &job, e) < 0)
        return -1;
    if (job == NULL)
        return err_set(e, ERR_INPUT, "%s has no job.yaml: use a run's output folder, or set the manifest with --job",
                       a->run);
    if (!job->has_model)
        return err_set(e, ERR_INPUT, "%s: spec.model is missing", job->file);
    *ret = TAKE(job);
    return 0;
}

static int read_values(const struct ask *a, struct loaded *l, struct err *e)
{
    AUTO(checkpoint) *c = NULL;
    void *memory;
    if (checkpoint_path(a->checkpoint != NULL ? a->checkpoint : a->run, &l->prefix, e) < 0 ||
        checkpoint_open(l->prefix, &c, e) < 0 ||
        mem_alloc(model_size(l->model) * sizeof(float), "the model's values", &memory, e) < 0)
        return -1;
    l->vector = memory;
    l->step = checkpoint_step(c);
    if (checkpoint_columns(c, &l->columns, e) < 0)
        return -1;
    return checkpoint_values(c, l->model, l->vector, e);
}

/* Indexes and unpacked files must not be written into the run. NULL: they are kept in memory. */
static char *cache_folder(const struct ask *a)
{
    const char *temporary = getenv("TMPDIR");
    struct stat st;
    if (a->cache_dir != NULL)
        return xstrdup(a->cache_dir);
    auto_free char *path = xasprintf(
        "%s/trainyard-cache-%u", temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp", (unsigned)geteuid());
    return lstat(path, &st) == 0 && (st.st_uid != geteuid() || !S_ISDIR(st.st_mode)) ? NULL : TAKE(path);
}

/* The run's own data are where they were when it was trained. */
static char *data_folder(const struct ask *a, const struct job *job)
{
    char *own = a->files.n == 0 && a->data.data == NULL && a->data_dir == NULL ? previous_run_data_dir(job) : NULL;
    return own != NULL ? own : xstrdup(a->data_dir != NULL ? a->data_dir : ".");
}

/* Predictions have no lines for examples that are left out. */
static void warn_left_out(const struct dataset *d)
{
    AUTO_FINI(strlist) sentences = { 0 };
    dataset_left_out(d, &sentences);
    for (size_t i = 0; i < sentences.n; i++)
        log_warning("%s", sentences.items[i]);
}

/* The file of standard input has a path that means nothing to a user. */
static void name_input_ids(int input, struct strlist *ids)
{
    char path[INPUT_PATH_MAX];
    str_fmt(path, sizeof(path), INPUT_PATH, input);
    for (size_t i = 0; input >= 0 && i < ids->n; i++)
        if (str_eq(ids->items[i], path))
            str_fmt(ids->items[i], sizeof("-"), "-");
}

/* The same in a message. Returns rc. */
static int name_input(const struct ask *a, int rc, struct err *e)
{
    char path[INPUT_PATH_MAX];
    str_fmt(path, sizeof(path), INPUT_PATH, a->input);
    char *at = rc < 0 && a->input >= 0 ? strstr(e->msg, path) : NULL;
    if (at != NULL) {
        auto_free char *rest = xstrdup(at + strlen(path));
        str_fmt(at, sizeof(e->msg) - (size_t)(at - e->msg), "standard input%s", rest);
    }
    return rc;
}

static int load(const struct ask *a, struct loaded *ret, struct err *e)
{
    AUTO_FINI(loaded) l = { 0 };
    auto_free char *cache = cache_folder(a);
    if (read_job(a, &l.job, e) < 0)
        return -1;
    l.data_dir = data_folder(a, l.job);
    const struct node *compile = a->data.wants_labels ? &l.job->compile : NULL;
    struct new_data data = a->data;
    data.columns = &l.columns;
    if (model_build(&l.job->model, compile, l.data_dir, &l.model, e) < 0 || read_values(a, &l, e) < 0 ||
        new_data_open(l.job, l.model, &data, l.data_dir, cache, &l.data, e) < 0)
        return -1;
    warn_left_out(l.data);
    l.input = a->input;
    l.batch_size = a->batch_size > 0 ? a->batch_size : l.job->fit.validation_batch_size;
    *ret = l;
    l = (struct loaded){ 0 };
    return 0;
}

static bool interrupted(void *user UNUSED)
{
    return stop_count() > 0;
}

/* ---- evaluate ---- */

static int print_result(const struct loaded *l, const double *values, bool json, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v = json_object();
    for (size_t i = 0; i < model_metrics(l->model); i++) {
        const char *name = model_metric_name(l->model, i);
        buf_printf(&text, "%s%s %.4g", i > 0 ? ", " : "", name, values[i]);
        json_object_set_new(v, name, json_number(values[i]));
    }
    buf_printf(&text, " (%lld examples, %s)\n", (long long)dataset_size(l->data), l->prefix);
    if (!json)
        return cli_print(&text, e);
    json_object_set_new(v, "examples", json_integer(dataset_size(l->data)));
    json_object_set_new(v, "step", json_integer(l->step));
    json_object_set_new(v, "checkpoint", json_string(l->prefix));
    buf_clear(&text);
    json_emit(v, &text);
    buf_char(&text, '\n');
    return cli_print(&text, e);
}

static int evaluate(const struct loaded *l, bool json, struct err *e)
{
    AUTO(evaluator) *v = NULL;
    auto_free double *values = xcalloc(model_metrics(l->model), sizeof(*values));
    if (evaluator_new(l->model, l->data, l->batch_size, &v, e) < 0 ||
        evaluator_run(v, l->vector, interrupted, NULL, values, e) < 0)
        return -1;
    return print_result(l, values, json, e);
}

#define COMMON_OPTS(a)                                                                                                 \
    OPT_STR("data", NULL, "MAP", &(a).data.data,                                                                       \
            "the data set, with the fields of spec.data: '{format: csv, files: new.csv}'"),                            \
        OPT_STR("data-dir", NULL, "DIR", &(a).data_dir, "folder of the data files (default: the current folder)"),     \
        OPT_STR("checkpoint", NULL, "PATH", &(a).checkpoint, "a checkpoint other than the run's result"),              \
        OPT_STR("job", NULL, "FILE", &(a).job_file, "the manifest (default: RUN/job.yaml)"),                           \
        OPT_INT("batch-size", NULL, "N", &(a).batch_size, 1, 1 << 24, "batch size; does not change the result"),       \
        OPT_STR("cache-dir", NULL, "DIR", &(a).cache_dir,                                                              \
                "indexes and decompressed files (default: a folder in TMPDIR or /tmp)")

int evaluate_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard evaluate",
        .usage = "[flags] RUN [FILE...]",
        .about =
            "Prints loss and metrics of a run's model, like Keras's Model.evaluate. RUN is an output folder. FILE "
            "replaces the files of the run's validation data: the features for idx and npy, the archive for npz, "
            "the directory for images, the files for other formats, or - for standard input. The run is not changed.",
    };
    AUTO_FINI(ask) a = { .input = -1, .data = { .wants_labels = true } };
    AUTO_FINI(loaded) l = { 0 };
    bool json = false;
    enum opt_result result;
    const struct opt opts[] = {
        OPT_STR("labels", NULL, "FILE", &a.data.labels,
                "idx, npy: the labels of FILE; npz: the name of their array in it"),
        OPT_STR("sample-weight", NULL, "FILE", &a.data.weights,
                "idx, npy: the weights of the examples of FILE; npz: the name of their array in it"),
        OPT_BOOL("json", &json, "one JSON object"),
        COMMON_OPTS(a),
        OPT_END,
    };
    if (opt_parse(&PROGRAM, opts, argc, argv, &a.args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &a.args, 1, SIZE_MAX, e) < 0 || stop_install(e) < 0 || take_files(&a, e) < 0)
        return -1;
    return name_input(&a, load(&a, &l, e) < 0 ? -1 : evaluate(&l, json, e), e);
}

/* ---- predict ---- */

static int write_all(const struct loaded *l, const struct predictions *p, struct err *e)
{
    AUTO(exec) *x = NULL;
    AUTO(loader) *loader = NULL;
    const float *values[MODEL_OUTPUTS_MAX];
    const struct ordinal_space space = { .fingerprint = dataset_fingerprint(l->data),
                                         .examples = p->examples,
                                         .batch_size = l->batch_size };
    if (exec_new(l->model, ordinal_space_rows(&space), 0, &x, e) < 0 ||
        loader_new(l->data, &space, NULL, &loader, e) < 0)
        return -1;
    if (p->id != NULL && dataset_texts(l->data, p->id, 0, 0, NULL, e) < 0)
        return err_wrap(e, "--id");
    if (predictions_begin(p, e) < 0)
        return -1;
    for (int64_t i = 0, n = ordinal_space_batches(&space); i < n; i++) {
        AUTO_FINI(strlist) ids = { 0 };
        struct batch b;
        if (stop_count() > 0)
            return err_set(e, ERR_STOPPED, "stopped by a signal");
        if (loader_get(loader, i, &b, e) < 0)
            return -1;
        loader_hint(loader, i + 1 < n ? i + 1 : -1);
        if (p->id != NULL && dataset_texts(l->data, p->id, i * l->batch_size, b.n, &ids, e) < 0)
            return err_wrap(e, "--id");
        name_input_ids(l->input, &ids);
        exec_predict(x, l->vector, &b);
        for (size_t k = 0; k < p->noutputs; k++)
            values[k] = exec_output(x, k);
        if (predictions_write(p, values, &ids, b.n, e) < 0)
            return -1;
    }
    return 0;
}

struct wish { /* of the output */
    const char *file, *format_name, *id;
    bool classes;
    enum prediction_format format;
};

static int write_to(const struct loaded *l, const char *file, struct predictions *p, struct err *e)
{
    AUTO(file_out) *out = NULL;
    struct tensor_sink sink = { .write = cli_write };
    p->sink = &sink;
    if (str_eq(file, "-"))
        return write_all(l, p, e);
    if (file_out_open(file, &out, e) < 0)
        return -1;
    sink = (struct tensor_sink){ .write = cli_write_file, .user = out };
    return write_all(l, p, e) < 0 ? -1 : file_out_commit(out, e);
}

static int predict(const struct loaded *l, const struct wish *w, struct err *e)
{
    AUTO_FINI(classifier) classes = { .output = CLASS_NONE };
    struct named_shape outputs[MODEL_OUTPUTS_MAX];
    struct predictions p = { .format = w->format,
                             .outputs = outputs,
                             .noutputs = model_outputs(l->model),
                             .examples = dataset_size(l->data),
                             .id = w->id };
    for (size_t i = 0; i < p.noutputs; i++)
        outputs[i] = *model_output(l->model, i);
    AUTO(model) *trained = NULL; /* with its loss */
    if (w->classes && (model_build(&l->job->model, &l->job->compile, l->data_dir, &trained, e) < 0 ||
                       classifier_open(l->job, trained, &l->columns.classes, &classes, e) < 0))
        return -1;
    p.classes = w->classes ? &classes : NULL;
    return write_to(l, w->file, &p, e);
}

static int check_wish(struct wish *w, struct err *e)
{
    if (prediction_format(w->format_name, w->file, &w->format, e) < 0)
        return -1;
    if (w->format == PREDICTION_NPY && (w->id != NULL || w->classes))
        return err_set(e, ERR_INPUT, "npy has numbers only: --id and --classes need csv or jsonl");
    if (w->format == PREDICTION_NPY && str_eq(w->file, "-") && isatty(STDOUT_FILENO) == 1)
        return err_set(e, ERR_INPUT,
                       "standard output is a terminal, and npy is binary; write it to a file (-o predictions.npy)");
    bool taken = w->id != NULL &&
                 (w->classes ? str_eq(w->id, "class") || str_eq(w->id, "probability") : str_eq(w->id, "prediction"));
    if (taken && w->format == PREDICTION_JSONL)
        return err_set(e, ERR_INPUT, "--id: an object has its own '%s'; use --format csv", w->id);
    return 0;
}

int predict_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard predict",
        .usage = "[flags] RUN [FILE...]",
        .about =
            "Writes the outputs of a run's model for each example, in the order of the files, like Keras's "
            "Model.predict. RUN is an output folder. FILE replaces the files of the run's data set: the features for "
            "idx and npy, the archive for npz, files and directories for images, the files for other formats, with or "
            "without the label column, or - for standard input. Without FILE it reads the run's validation data. The "
            "run is not changed.",
    };
    AUTO_FINI(ask) a = { .input = -1 };
    AUTO_FINI(loaded) l = { 0 };
    struct wish w = { .file = "-" };
    enum opt_result result;
    struct opt opts[] = {
        OPT_STR("output", NULL, "FILE", &w.file, "output file (default: -, standard output); it is complete or absent"),
        OPT_STR("format", NULL, "FORMAT", &w.format_name,
                PREDICTION_NAMES ": (default: by the extension of FILE, else csv)"),
        OPT_STR("id", NULL, "COLUMN", &w.id, "csv, jsonl: this column of FILE goes before the outputs; images: path"),
        OPT_BOOL("classes", &w.classes, "the most probable class and its probability, in place of the outputs"),
        COMMON_OPTS(a),
        OPT_END,
    };
    opts[0].short_name = 'o';
    if (opt_parse(&PROGRAM, opts, argc, argv, &a.args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &a.args, 1, SIZE_MAX, e) < 0 || check_wish(&w, e) < 0 || stop_install(e) < 0 ||
        take_files(&a, e) < 0)
        return -1;
    return name_input(&a, load(&a, &l, e) < 0 ? -1 : predict(&l, &w, e), e);
}
