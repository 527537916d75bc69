/* trainyard show data JOB: what the examples of a job's data set look like, as text or as one HTML page. The model is
 * not needed: data can be looked at before there is one that fits. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli.h"
#include "console.h"
#include "data/files.h"
#include "data/job_data.h"
#include "data_view.h"

enum {
    ROWS_DEFAULT = 5,
    ROWS_MAX = 1000,
    TERMINAL_SIDE = 32,
    PAGE_SIDE = 256,
    TERMINAL_WIDTH = 80,
    NAMES_TEXT = 100,
    WARNING_TEXT = 1000
};

struct look {
    const char *data_dir, *html;
    bool validation;
    int64_t rows, limit;
};

/* ---- the lines at the top ---- */

static void name_parts(const struct data_parts *parts, const char *one, struct strlist *names)
{
    if (one != NULL)
        strlist_add(names, one);
    for (size_t i = 0; one == NULL && i < parts->n; i++)
        for (size_t k = 0; k < parts->v[i].from.n; k++)
            strlist_add(names, parts->v[i].from.items[k]);
}

/* The files as the job names them; patterns are expanded. */
static int name_files(const struct describe_options *o, struct strlist *names, struct err *e)
{
    const struct data_spec *spec = o->spec;
    const struct data_place at = { .spec = spec, .base_dir = o->base_dir };
    AUTO_FINI(strlist) paths = { 0 };
    size_t base = strlen(o->base_dir);
    if (spec->format == DATA_IDX || spec->format == DATA_NPY) {
        name_parts(&spec->inputs, spec->features, names);
        name_parts(&spec->outputs, spec->labels, names);
        return 0;
    }
    if (data_has_classes(spec->format) && spec->images.directory != NULL) {
        strlist_add(names, spec->images.directory);
        return 0;
    }
    if (data_files_paths(&at, &paths, e) < 0)
        return -1;
    for (size_t i = 0; i < paths.n; i++) {
        const char *path = paths.items[i];
        bool below = strncmp(path, o->base_dir, base) == 0 && path[base] == '/';
        strlist_add(names, below ? path + base + 1 : path);
    }
    return 0;
}

static void add_line(struct strlist *lines, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_line(struct strlist *lines, const char *fmt, ...)
{
    AUTO_FINI(buf) line = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&line, fmt, ap);
    va_end(ap);
    strlist_add(lines, line.data);
}

static void add_example(const struct dataset *d, const struct data_description *what, struct strlist *lines)
{
    char x[128], y[128], n[32];
    AUTO_FINI(buf) labels = BUF_INIT;
    if (!what->has_labels)
        buf_str(&labels, "no labels");
    else if (what->integer_labels)
        buf_str(&labels, "labels: class numbers");
    else
        buf_printf(&labels, "labels: numbers of shape %s", shape_text(&what->y_shape, y));
    add_line(lines, "%s example%s of shape %s (%s), %s", cli_count((uint64_t)what->examples, n),
             what->examples == 1 ? "" : "s", shape_text(dataset_example(d), x), what->is_uint8 ? "uint8" : "float32",
             labels.data);
}

static void add_scope(const struct data_description *what, struct strlist *lines)
{
    char seen[32], all[32];
    if (what->seen == what->examples)
        return;
    add_line(lines, "the statistics are over %s%s of %s examples%s (--limit N sets how many)",
             what->spread ? "" : "the first ", cli_count((uint64_t)what->seen, seen),
             cli_count((uint64_t)what->examples, all), what->spread ? ", at equal distances" : "");
}

/* d is split: nothing may be read from it afterwards. */
static void add_split(const struct job *job, struct dataset *d, struct strlist *lines)
{
    AUTO(dataset) *rest = NULL;
    char n[32];
    if (job->fit.validation_split > 0 && dataset_split(d, job->fit.validation_split, &rest, NULL) == 0)
        add_line(lines, "fit.validationSplit reserves the last %s for validation",
                 cli_count((uint64_t)dataset_size(rest), n));
}

static int add_lines(const struct describe_options *o, const struct dataset *d, const struct data_description *what,
                     struct strlist *lines, struct err *e)
{
    AUTO_FINI(strlist) names = { 0 };
    AUTO_FINI(buf) clean = BUF_INIT;
    char list[NAMES_TEXT];
    if (name_files(o, &names, e) < 0)
        return -1;
    data_view_clean(column_names_text(&names, list, sizeof(list)), sizeof(list), &clean);
    if (data_has_classes(o->spec->format) && o->spec->images.directory != NULL)
        add_line(lines, "%s, 1 directory: %s", DATA_FORMAT_NAMES[o->spec->format], clean.data);
    else
        add_line(lines, "%s, %zu file%s: %s", DATA_FORMAT_NAMES[o->spec->format], names.n, names.n == 1 ? "" : "s",
                 clean.data);
    add_example(d, what, lines);
    dataset_left_out(d, lines);
    if (data_view_many_values(what))
        add_line(lines, "the labels have more than %d different values; the table of the numbers has their range",
                 VIEW_VALUES_MAX);
    add_scope(what, lines);
    return 0;
}

/* ---- the command ---- */

static int write_view(const struct look *look, const struct data_view *v, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT, note = BUF_INIT;
    const struct console terminal =
        console_for(isatty(STDOUT_FILENO) == 1, getenv("NO_COLOR"), getenv("TERM"), TERMINAL_WIDTH, false);
    if (look->html == NULL)
        data_view_text(v, terminal.terminal, terminal.width, &text);
    else
        data_view_html(v, &text);
    if (look->html == NULL || str_eq(look->html, "-"))
        return cli_print(&text, e);
    if (file_write(look->html, text.data, text.len, e) < 0)
        return -1;
    buf_printf(&note, "%s written to %s\n", v->title, look->html);
    cli_note(&note);
    return 0;
}

/* They may have names of files. */
static void add_warnings(const struct dataset *d, struct strlist *ret)
{
    AUTO_FINI(strlist) warnings = { 0 };
    dataset_warnings(d, &warnings);
    for (size_t i = 0; i < warnings.n; i++) {
        AUTO_FINI(buf) clean = BUF_INIT;
        data_view_clean(warnings.items[i], WARNING_TEXT, &clean);
        strlist_add(ret, clean.data);
    }
}

static int describe_set(const struct job *job, const struct look *look, struct describe_options *o, struct dataset *d,
                        struct err *e)
{
    AUTO_FINI(data_description) what = { .n = 0 };
    AUTO_FINI(data_view) v = { .title = NULL };
    o->limit = look->limit;
    o->first = (size_t)look->rows;
    v.title = xasprintf("data.%s of job '%s'", look->validation ? "validation" : "train", job->name);
    if (describe_dataset(d, o, &what, e) < 0 || add_lines(o, d, &what, &v.lines, e) < 0 ||
        data_view_fill(d, &what, look->html != NULL ? PAGE_SIDE : TERMINAL_SIDE, &v, e) < 0)
        return -1;
    add_warnings(d, &v.warnings);
    if (!look->validation)
        add_split(job, d, &v.lines);
    return write_view(look, &v, e);
}

static int no_data(const struct job *job, const struct look *look, struct err *e)
{
    if (look->validation && job->fit.validation_split > 0)
        return err_set(e, ERR_INPUT,
                       "%s: job '%s' has no data.validation: fit.validationSplit reserves a part of data.train, which "
                       "is shown without --validation",
                       job->file, job->name);
    return err_set(e, ERR_INPUT, "%s: job '%s' has no data.%s", job->file, job->name,
                   look->validation ? "validation" : "train");
}

/* The validation data are read by the names of the training data, as in training. */
static int look_at(const struct job *job, const struct look *look, const char *base, const char *cache, struct err *e)
{
    const struct data_spec *spec = look->validation ? &job->validation : &job->train;
    struct describe_options o = { .spec = spec, .base_dir = base, .cache_dir = cache };
    AUTO(dataset) *train = NULL, *d = NULL;
    if (look->validation && job->train.present && dataset_open(&job->train, base, cache, NULL, &train, e) < 0)
        return -1;
    o.like = train != NULL ? dataset_columns(train) : NULL;
    if (dataset_open(spec, base, cache, o.like, &d, e) < 0)
        return -1;
    return describe_set(job, look, &o, d, e);
}

static int show_data(const char *file, const struct look *look, struct err *e)
{
    AUTO(job) *job = NULL;
    auto_free char *base = look->data_dir != NULL ? xstrdup(look->data_dir) : path_dir(file);
    if (job_load(file, &job, e) < 0)
        return -1;
    if (!(look->validation ? job->validation.present : job->train.present))
        return no_data(job, look, e);
    auto_free char *cache = cli_cache_new();
    int rc = cli_learn(job, NULL, base, cache, e);
    if (rc == 0)
        rc = look_at(job, look, base, cache, e);
    cli_cache_remove(cache);
    return rc;
}

int show_data_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard show data",
        .usage = "[flags] JOB",
        .about = "Prints what the training data of a TrainJob manifest look like, as pandas' describe() and head() do: "
                 "the range and the missing values of each column, how often each class occurs, and the first "
                 "examples. A terminal with 24-bit colors shows images.",
    };
    AUTO_FINI(strlist) args = { 0 };
    struct look look = { .rows = ROWS_DEFAULT };
    enum opt_result result;
    const struct opt opts[] = {
        OPT_BOOL("validation", &look.validation, "data.validation instead of data.train"),
        OPT_INT("rows", NULL, "N", &look.rows, 0, ROWS_MAX, "how many of the first examples to show (default: 5)"),
        OPT_INT("limit", NULL, "N", &look.limit, 1, INT64_MAX,
                "describe N examples only (default: all; at most 10000 if images must be decoded)"),
        OPT_STR("html", NULL, "FILE", &look.html, "write one HTML page with images instead, - for standard output"),
        OPT_STR("data-dir", NULL, "DIR", &look.data_dir, "the folder of the data (default: the manifest's folder)"),
        OPT_END,
    };

    if (opt_parse(&PROGRAM, opts, argc, argv, &args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &args, 1, 1, e) < 0)
        return -1;
    return show_data(args.items[0], &look, e);
}
