/* trainyard export PATH -o FILE: the variables of a checkpoint as a file that other programs read. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "checkpoint_path.h"
#include "cli.h"
#include "tensors.h"
#include "train/bundle.h"

/* Parallel to enum tensor_type. */
static const enum dtype DTYPE_OF[TENSOR_TYPES] = {
    [TENSOR_F32] = DT_FLOAT,  [TENSOR_F64] = DT_DOUBLE, [TENSOR_I8] = DT_INT8,      [TENSOR_I16] = DT_INT16, [TENSOR_I32] = DT_INT32,
    [TENSOR_I64] = DT_INT64,  [TENSOR_U8] = DT_UINT8,   [TENSOR_U16] = DT_UINT16,   [TENSOR_U32] = DT_UINT32,
    [TENSOR_U64] = DT_UINT64, [TENSOR_F16] = DT_HALF,   [TENSOR_BF16] = DT_BFLOAT16, [TENSOR_BOOL] = DT_BOOL,
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

/* A slot of an optimizer is named after its variable: "dense/kernel/Adam_1". Counters stand alone. */
static bool is_bookkeeping(const struct bundle *b, const char *name)
{
    static const char *const COUNTERS[] = { "global_step", "beta1_power", "beta2_power" };
    const char *slash = strrchr(name, '/');

    for (size_t i = 0; i < COUNT_OF(COUNTERS); i++)
        if (str_eq(name, COUNTERS[i]))
            return true;
    if (str_starts(name, "_trainyard/"))
        return true;
    if (slash == NULL)
        return false;
    auto_free char *variable = xstrndup(name, (size_t)(slash - name));
    return bundle_find(b, variable) != NULL;
}

struct chosen { /* what of the bundle is exported */
    struct bundle *bundle;
    struct tensor_entry *entries;
    const struct bundle_entry **from;
    size_t n;
    char step[32];
};

static void chosen_fini(struct chosen *c)
{
    free(c->entries);
    free(c->from);
}
DEFINE_AUTO_FINI(chosen, chosen_fini)

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
        if (!exportable(t, &to->type) || (!all && is_bookkeeping(b, t->name)))
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

static int to_file(void *user, const void *data, size_t n, struct err *e)
{
    return file_out_write(user, data, n, e);
}

static int to_stdout(void *user UNUSED, const void *data, size_t n, struct err *e)
{
    if (fd_write(STDOUT_FILENO, data, n, e) < 0)
        return err_wrap(e, "standard output");
    return 0;
}

typedef int writer_fn(const struct tensor_source *source, const struct tensor_sink *sink, struct err *e);

/* Bytes of a model do a terminal no good. */
static int check_output(const char *file, const char *format, struct err *e)
{
    if (!str_eq(file, "-") || isatty(STDOUT_FILENO) != 1)
        return 0;
    return err_set(e, ERR_INPUT, "standard output is a terminal, and %s is binary; write it into a file (-o model.%s) or a pipe",
                   format, format);
}

static int pick_writer(const char *format, const char *file, writer_fn **ret, struct err *e)
{
    static const char *const FORMATS[] = { "safetensors", "npz" };
    char hint[64];

    if (format == NULL)
        format = str_ends(file, ".npz") ? "npz" : "safetensors";
    if (!str_eq(format, FORMATS[0]) && !str_eq(format, FORMATS[1]))
        return err_set(e, ERR_INPUT, "--format: '%s' is not known; it must be safetensors or npz%s", format,
                       str_did_you_mean(format, FORMATS, COUNT_OF(FORMATS), hint, sizeof(hint)));
    *ret = str_eq(format, FORMATS[1]) ? npz_write : safetensors_write;
    return check_output(file, format, e);
}

static int write_out(const struct tensor_source *source, writer_fn *write, const char *file, struct err *e)
{
    AUTO(file_out) *out = NULL;

    if (str_eq(file, "-"))
        return write(source, &(struct tensor_sink){ .write = to_stdout }, e);
    if (file_out_open(file, &out, e) < 0 || write(source, &(struct tensor_sink){ .write = to_file, .user = out }, e) < 0)
        return -1;
    return file_out_commit(out, e);
}

static int tell(const char *prefix, const struct chosen *c, const char *file, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    uint64_t bytes = 0;
    char size[32];

    if (str_eq(file, "-"))
        return 0;
    for (size_t i = 0; i < c->n; i++)
        bytes += c->entries[i].bytes;
    buf_printf(&text, "%s: %zu tensors, %s, from %s\n", file, c->n, str_bytes(bytes, size), prefix);
    return cli_print(&text, e);
}

int export_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard export",
        .usage = "[flags] PATH -o FILE",
        .about = "Writes the variables of a checkpoint as safetensors or npz. PATH is an output folder or a checkpoints folder (its "
                 "newest checkpoint), or a checkpoint's prefix. The file appears whole or not at all.",
    };
    AUTO_FINI(strlist) args = { 0 };
    AUTO(bundle) *b = NULL;
    AUTO_FINI(chosen) chosen = { 0 };
    auto_free char *prefix = NULL;
    const char *file = NULL, *format = NULL;
    bool all = false;
    writer_fn *write;
    enum opt_result result;
    struct opt opts[] = {
        OPT_STR("output", NULL, "FILE", &file, "where to, - for standard output"),
        OPT_STR("format", NULL, "FORMAT", &format, "safetensors (default) or npz (default for a FILE that ends so)"),
        OPT_BOOL("all", &all, "also the optimizer's slots and counters"),
        OPT_END,
    };
    opts[0].short_name = 'o';

    if (opt_parse(&PROGRAM, opts, argc, argv, &args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &args, 1, 1, e) < 0)
        return -1;
    if (file == NULL)
        return err_set(e, ERR_INPUT, "%s needs -o FILE (- for standard output)", PROGRAM.name);
    if (pick_writer(format, file, &write, e) < 0 || checkpoint_path(args.items[0], &prefix, e) < 0 ||
        bundle_open(prefix, &b, e) < 0 || choose(b, all, &chosen, e) < 0)
        return -1;
    struct tensor_source source = { .entries = chosen.entries, .n = chosen.n, .read = read_chosen, .user = &chosen,
                                    .step = chosen.step[0] != '\0' ? chosen.step : NULL };
    if (write_out(&source, write, file, e) < 0)
        return -1;
    return tell(prefix, &chosen, file, e);
}
