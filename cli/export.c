/* trainyard export PATH -o FILE: the variables of a checkpoint as a file that other programs read. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "chief/checkpoint_path.h"
#include "cli.h"
#include "export_keras.h"
#include "tensors.h"
#include "tfio/bundle.h"

/* Parallel to enum tensor_type. */
static const enum dtype DTYPE_OF[TENSOR_TYPES] = {
    [TENSOR_F32] = DT_FLOAT,  [TENSOR_F64] = DT_DOUBLE, [TENSOR_I8] = DT_INT8,  [TENSOR_I16] = DT_INT16,
    [TENSOR_I32] = DT_INT32,  [TENSOR_I64] = DT_INT64,  [TENSOR_U8] = DT_UINT8, [TENSOR_U16] = DT_UINT16,
    [TENSOR_U32] = DT_UINT32, [TENSOR_U64] = DT_UINT64, [TENSOR_F16] = DT_HALF, [TENSOR_BF16] = DT_BFLOAT16,
    [TENSOR_BOOL] = DT_BOOL,
};

static bool exportable(const struct bundle_entry *t, enum tensor_type *ret)
{
    for (int k = 0; k < TENSOR_TYPES; k++) {
        if (DTYPE_OF[k] == t->dtype) {
            *ret = (enum tensor_type)k;
            return true;
        }
    }
    return false;
}

struct chosen { /* the variables of the bundle that are exported */
    struct bundle *bundle;
    struct tensor_entry *entries;
    const struct bundle_entry **from;
    size_t n;
    char step[32];
};

static int choose(struct bundle *b, bool all, struct chosen *c, struct err *e)
{
    const struct bundle_entry *step = bundle_find(b, "global_step");
    int64_t number;

    c->bundle = b;
    c->entries = xcalloc(bundle_count(b), sizeof(c->entries[0]));
    c->from = xcalloc(bundle_count(b), sizeof(c->from[0]));
    for (size_t i = 0; i < bundle_count(b); i++) {
        const struct bundle_entry *t = bundle_entry(b, i);
        struct tensor_entry *to = &c->entries[c->n];
        if (!exportable(t, &to->type) || (!all && bundle_is_bookkeeping(b, t->name)))
            continue;
        to->name = t->name;
        to->rank = t->shape.rank;
        memcpy(to->dims, t->shape.dim, sizeof(to->dims));
        to->bytes = t->size;
        c->from[c->n++] = t;
    }
    if (step != NULL && step->dtype == DT_INT64 && step->size == sizeof(number)) {
        if (bundle_read(b, step, 0, sizeof(number), &number, e) < 0)
            return -1;
        str_fmt(c->step, sizeof(c->step), "%lld", (long long)number);
    }
    return c->n > 0 ? 0 : err_set(e, ERR_INPUT, "the checkpoint has no variables to export");
}

static int read_chosen(void *user, size_t i, void *ret, struct err *e)
{
    const struct chosen *c = user;
    return bundle_read(c->bundle, c->from[i], 0, c->entries[i].bytes, ret, e);
}

struct export_job {
    const char *file; /* path of the output */
    const char *prefix;
    struct bundle *bundle;
    bool all;
    bool preprocessing; /* the model takes the columns of the data */
    struct chosen chosen;
};

static void export_job_fini(struct export_job *j)
{
    free(j->chosen.entries);
    free(j->chosen.from);
}
DEFINE_AUTO_FINI(export_job, export_job_fini);

static int write_tensors(struct export_job *j, const struct tensor_sink *sink, struct err *e,
                         int (*write)(const struct tensor_source *, const struct tensor_sink *, struct err *))
{
    const char *step = j->chosen.step[0] != '\0' ? j->chosen.step : NULL;
    struct tensor_source source = {
        .entries = j->chosen.entries, .n = j->chosen.n, .read = read_chosen, .user = &j->chosen, .step = step
    };
    return write(&source, sink, e);
}

static int write_safetensors(struct export_job *j, const struct tensor_sink *sink, struct err *e)
{
    return write_tensors(j, sink, e, safetensors_write);
}

static int write_npz(struct export_job *j, const struct tensor_sink *sink, struct err *e)
{
    return write_tensors(j, sink, e, npz_write);
}

static int write_keras(struct export_job *j, const struct tensor_sink *sink, struct err *e)
{
    return keras_archive_write(j->bundle, j->prefix, j->preprocessing, sink, e);
}

static int write_weights(struct export_job *j, const struct tensor_sink *sink, struct err *e)
{
    return keras_weights_write(j->bundle, j->prefix, sink, e);
}

static const struct format {
    const char *name; /* the extension without its dot */
    int (*write)(struct export_job *j, const struct tensor_sink *sink, struct err *e);
    bool keras; /* only the model's variables */
} FORMATS[] = {
    { "safetensors", write_safetensors, false },
    { "npz", write_npz, false },
    { "keras", write_keras, true },
    { "weights.h5", write_weights, true },
};
#define FORMAT_NAMES "safetensors, npz, keras or weights.h5"

/* The format whose extension the file has; NULL: none. */
static const struct format *format_of_file(const char *file)
{
    for (size_t i = 0; i < COUNT_OF(FORMATS); i++) {
        auto_free char *extension = xasprintf(".%s", FORMATS[i].name);
        if (str_ends(file, extension))
            return &FORMATS[i];
    }
    return NULL;
}

static int format_by_name(const char *name, const struct format **ret, struct err *e)
{
    const char *names[COUNT_OF(FORMATS)];
    char hint[64];

    for (size_t i = 0; i < COUNT_OF(FORMATS); i++) {
        names[i] = FORMATS[i].name;
        if (str_eq(name, names[i])) {
            *ret = &FORMATS[i];
            return 0;
        }
    }
    return err_set(e, ERR_INPUT, "--format: '%s' is not known; it must be " FORMAT_NAMES "%s", name,
                   str_did_you_mean(name, names, COUNT_OF(FORMATS), hint, sizeof(hint)));
}

/* Binary data must not be written to a terminal. */
static int check_output(const char *file, const struct format *f, struct err *e)
{
    if (!str_eq(file, "-") || isatty(STDOUT_FILENO) != 1)
        return 0;
    return err_set(e, ERR_INPUT,
                   "standard output is a terminal, and %s is binary; write it to a file (-o model.%s) or a pipe",
                   f->name, f->name);
}

/* A file is never written in a format other than that of its extension. */
static int pick_format(const char *name, const char *file, const struct format **ret, struct err *e)
{
    const struct format *by_file = format_of_file(file), *f = by_file;

    if (name != NULL && format_by_name(name, &f, e) < 0)
        return -1;
    if (by_file != NULL && f != by_file)
        return err_set(e, ERR_INPUT, "%s has the extension of %s, not %s; remove --format or change the extension",
                       file, by_file->name, f->name);
    const char *base = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file, *dot = strrchr(base, '.');
    if (f == NULL && dot != NULL && dot != base)
        return err_set(e, ERR_INPUT,
                       "-o %s: '%s' is not known; the extension must be .safetensors, .npz, .keras or .weights.h5",
                       file, dot);
    *ret = f != NULL ? f : &FORMATS[0];
    return check_output(file, *ret, e);
}

static int write_out(struct export_job *j, const struct format *f, struct err *e)
{
    AUTO(file_out) *out = NULL;

    if (str_eq(j->file, "-"))
        return f->write(j, &(struct tensor_sink){ .write = cli_write }, e);
    if (file_out_open(j->file, &out, e) < 0 ||
        f->write(j, &(struct tensor_sink){ .write = cli_write_file, .user = out }, e) < 0)
        return -1;
    return file_out_commit(out, e);
}

static void export_tell(const char *prefix, const struct chosen *c, const char *file)
{
    AUTO_FINI(buf) text = BUF_INIT;
    uint64_t bytes = 0;
    char size[32];

    if (str_eq(file, "-"))
        return;
    for (size_t i = 0; i < c->n; i++)
        bytes += c->entries[i].bytes;
    buf_printf(&text, "%s: %zu tensors, %s, from %s\n", file, c->n, str_bytes(bytes, size), prefix);
    cli_note(&text);
}

static int run_export(const struct format *f, const char *path, struct export_job *j, struct err *e)
{
    auto_free char *prefix = NULL;
    AUTO(bundle) *b = NULL;

    if (f->keras && j->all)
        return err_set(
            e, ERR_INPUT,
            "--all: a %s file holds the model's variables only; the optimizer's slots go into safetensors or npz",
            f->name);
    if (j->preprocessing && f->write != write_keras)
        return err_set(e, ERR_INPUT,
                       "--preprocessing: a %s file has no layers; only a .keras file holds a model that takes the "
                       "columns of the data",
                       f->name);
    if (checkpoint_path(path, &prefix, e) < 0 || bundle_open(prefix, &b, e) < 0 || choose(b, j->all, &j->chosen, e) < 0)
        return -1;
    j->prefix = prefix;
    j->bundle = b;
    if (write_out(j, f, e) < 0)
        return -1;
    export_tell(prefix, &j->chosen, j->file);
    return 0;
}

int export_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard export",
        .usage = "[flags] PATH -o FILE",
        .about = "Writes the variables of a checkpoint as safetensors or npz, or the model in Keras's formats (.keras, "
                 ".weights.h5). PATH is an output folder (its result), a checkpoints folder (its newest checkpoint), "
                 "or a checkpoint's prefix. The extension of FILE selects the format. The file is complete or absent.",
    };
    AUTO_FINI(strlist) args = { 0 };
    AUTO_FINI(export_job) j = { 0 };
    const char *name = NULL;
    const struct format *format = NULL;
    enum opt_result result;
    struct opt opts[] = {
        OPT_STR("output", NULL, "FILE", &j.file, "output file, - for standard output"),
        OPT_STR("format", NULL, "FORMAT", &name, FORMAT_NAMES ": for a FILE without such an extension (safetensors)"),
        OPT_BOOL("all", &j.all, "include the optimizer's slots and counters"),
        OPT_BOOL("preprocessing", &j.preprocessing,
                 "keras: a model that takes the columns of the run's csv or jsonl data"),
        OPT_END,
    };
    opts[0].short_name = 'o';

    if (opt_parse(&PROGRAM, opts, argc, argv, &args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &args, 1, 1, e) < 0)
        return -1;
    if (j.file == NULL)
        return err_set(e, ERR_INPUT, "%s needs -o FILE (- for standard output)", PROGRAM.name);
    if (pick_format(name, j.file, &format, e) < 0)
        return -1;
    return run_export(format, args.items[0], &j, e);
}
