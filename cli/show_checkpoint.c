/* trainyard show checkpoint PATH: the tensors of a TensorFlow V2 checkpoint, written by Trainyard or TensorFlow. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "chief/checkpoint_path.h"
#include "cli.h"
#include "outdir.h"
#include "tensor_element.h"
#include "tfio/bundle.h"

enum { ELEMENTS_SHOWN = 1000, COLUMN_MAX = 72, TEXT_SHOWN = 64 << 10 };

static int list_tensors(struct bundle *b, const char *prefix, bool check, struct buf *out, struct err *e)
{
    uint64_t total = 0;
    int column = 8;
    char bytes[32], shape[128];

    for (size_t i = 0; i < bundle_count(b); i++) {
        const struct bundle_entry *t = bundle_entry(b, i);
        if (check && bundle_check(b, t, e) < 0)
            return -1;
        column = MAX(column, (int)MIN(strlen(t->name), COLUMN_MAX));
        total += t->size;
    }
    buf_printf(out, "%s: %zu tensors, %s%s\n", prefix, bundle_count(b), str_bytes(total, bytes),
               check ? ", all checksums are correct" : "");
    for (size_t i = 0; i < bundle_count(b); i++) {
        const struct bundle_entry *t = bundle_entry(b, i);
        buf_printf(out, "  %-*s  %-10s %-16s %s\n", column, t->name, dtype_name(t->dtype), shape_text(&t->shape, shape),
                   str_bytes(t->size, bytes));
    }
    return 0;
}

static int show_strings(struct bundle *b, const struct bundle_entry *t, struct buf *out, struct err *e)
{
    size_t n = MIN(shape_elements(&t->shape), ELEMENTS_SHOWN);
    for (size_t i = 0; i < n; i++) {
        AUTO_FINI(buf) s = BUF_INIT;
        if (bundle_read_string(b, t, i, &s, e) < 0)
            return -1;
        tensor_element_string(s.data, s.len, n == 1 ? TEXT_SHOWN : 200, out);
        buf_char(out, '\n');
    }
    return 0;
}

static void statistics(enum dtype dtype, const void *data, size_t n, struct buf *out)
{
    double sum = 0, squares = 0, min = (double)INFINITY, max = -(double)INFINITY;
    size_t odd = 0;

    for (size_t i = 0; i < n; i++) {
        double v = tensor_element_number(dtype, data, i);
        if (!isfinite(v)) {
            odd++;
            continue;
        }
        sum += v;
        squares += v * v;
        min = fmin(min, v);
        max = fmax(max, v);
    }
    if (n > odd) {
        double mean = sum / (double)(n - odd);
        buf_printf(out, "  min %.6g  max %.6g  mean %.6g  standard deviation %.6g", min, max, mean,
                   sqrt(fmax(squares / (double)(n - odd) - mean * mean, 0)));
    }
    if (odd > 0)
        buf_printf(out, "  NaN or Inf %zu", odd);
    buf_char(out, '\n');
}

/* One line for each row of the last axis. */
static void values(const struct bundle_entry *t, const void *data, size_t n, struct buf *out)
{
    size_t row = t->shape.rank > 0 ? (size_t)MAX(t->shape.dim[t->shape.rank - 1], 1) : 1;
    for (size_t i = 0; i < MIN(n, ELEMENTS_SHOWN); i++) {
        tensor_element_text(t->dtype, data, i, out);
        buf_char(out, (i + 1) % row == 0 || i + 1 == MIN(n, ELEMENTS_SHOWN) ? '\n' : ' ');
    }
    if (n > ELEMENTS_SHOWN)
        buf_printf(out, "... (%zu of %zu elements)\n", (size_t)ELEMENTS_SHOWN, n);
}

static int show_tensor(struct bundle *b, const char *name, struct buf *out, struct err *e)
{
    const struct bundle_entry *t = bundle_find(b, name);
    char shape[128];

    if (t == NULL) {
        auto_free const char **names = xcalloc(bundle_count(b), sizeof(names[0]));
        char hint[300];
        for (size_t i = 0; i < bundle_count(b); i++)
            names[i] = bundle_entry(b, i)->name;
        return err_set(e, ERR_NOT_FOUND, "no tensor '%s'%s", name,
                       str_did_you_mean(name, names, bundle_count(b), hint, sizeof(hint)));
    }
    buf_printf(out, "%s  %s %s\n", t->name, dtype_name(t->dtype), shape_text(&t->shape, shape));
    if (t->dtype == DT_STRING)
        return show_strings(b, t, out, e);
    if (dtype_size(t->dtype) == 0)
        return err_set(e, ERR_INPUT, "'%s' has a type that cannot be shown", name);

    auto_free void *data = NULL;
    if (mem_alloc(t->size, name, &data, e) < 0 || bundle_read(b, t, 0, t->size, data, e) < 0)
        return -1;
    size_t n = t->size / dtype_size(t->dtype);
    statistics(t->dtype, data, n, out);
    values(t, data, n, out);
    return 0;
}

int show_checkpoint_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard show checkpoint",
        .usage = "[flags] PATH",
        .about = "Lists the tensors of a checkpoint (TensorFlow's V2 format, written by Trainyard or TensorFlow) and "
                 "verifies their checksums. PATH is an output folder (the job's result), a checkpoints folder (its "
                 "newest checkpoint), or a checkpoint's prefix.",
    };
    AUTO_FINI(strlist) args = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(bundle) *b = NULL;
    auto_free char *prefix = NULL;
    const char *tensor = NULL;
    bool check = true;
    enum opt_result result;
    const struct opt opts[] = {
        OPT_STR("tensor", NULL, "NAME", &tensor, "show the values of this tensor"),
        OPT_BOOL("check", &check, "verify the checksums of all bytes (default; --no-check reads the index only)"),
        OPT_END,
    };

    if (opt_parse(&PROGRAM, opts, argc, argv, &args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &args, 1, 1, e) < 0 || checkpoint_path(args.items[0], &prefix, e) < 0 ||
        bundle_open(prefix, &b, e) < 0)
        return -1;
    if ((tensor != NULL ? show_tensor(b, tensor, &text, e) : list_tensors(b, prefix, check, &text, e)) < 0)
        return -1;
    if (tensor == NULL)
        outdir_kept(args.items[0], &text);
    return cli_print(&text, e);
}
