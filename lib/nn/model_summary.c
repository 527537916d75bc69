/* The table of Keras's model.summary() (keras/src/utils/summary_utils.py). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "nn/model_impl.h"

enum { COLUMNS = 3 };

struct summary_table {
    struct strlist cells; /* COLUMNS a row; the first row is the head */
    int width[COLUMNS];
};

/* "101,770" */
static char *with_commas(size_t n)
{
    AUTO_FINI(buf) out = BUF_INIT;
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%zu", n);
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf_char(&out, ',');
        buf_char(&out, digits[i]);
    }
    return buf_detach(&out);
}

/* "(None, 28, 28)" */
static char *batch_shape_text(const struct shape *s)
{
    AUTO_FINI(buf) out = BUF_INIT;
    buf_str(&out, "(None");
    for (int i = 0; i < s->rank; i++)
        buf_printf(&out, ", %" PRId64, s->dim[i]);
    buf_str(&out, s->rank == 0 ? ",)" : ")");
    return buf_detach(&out);
}

static size_t layer_params(const struct layer *l)
{
    size_t n = 0;
    for (int i = 0; i < l->nvars; i++)
        n += shape_elements(&l->var[i].shape);
    return n;
}

static void add_row(struct summary_table *t, const char *a, const char *b, const char *c)
{
    const char *cells[COLUMNS] = { a, b, c };
    for (int i = 0; i < COLUMNS; i++) {
        strlist_add(&t->cells, cells[i]);
        t->width[i] = MAX(t->width[i], (int)strlen(cells[i]));
    }
}

static void add_layer(struct summary_table *t, const struct layer *l)
{
    auto_free char *name = xasprintf("%s (%s)", l->name, l->row->k.names[0]);
    auto_free char *shape = batch_shape_text(&l->out);
    auto_free char *params = with_commas(layer_params(l));
    add_row(t, name, shape, params);
}

static void print_rule(const struct summary_table *t, struct buf *out, const char *left, const char *line,
                       const char *cross, const char *right)
{
    for (int i = 0; i < COLUMNS; i++) {
        buf_str(out, i == 0 ? left : cross);
        for (int k = 0; k < t->width[i] + 2; k++)
            buf_str(out, line);
    }
    buf_printf(out, "%s\n", right);
}

static void print_table(const struct summary_table *t, struct buf *out)
{
    print_rule(t, out, "┏", "━", "┳", "┓");
    for (size_t row = 0; row < t->cells.n / COLUMNS; row++) {
        char *const *cell = t->cells.items + row * COLUMNS;
        const char *bar = row == 0 ? "┃" : "│";
        if (row == 1)
            print_rule(t, out, "┡", "━", "╇", "┩");
        else if (row > 1)
            print_rule(t, out, "├", "─", "┼", "┤");
        buf_printf(out, "%s %-*s %s %-*s %s %*s %s\n", bar, t->width[0], cell[0], bar, t->width[1], cell[1], bar,
                   t->width[2], cell[2], bar);
    }
    print_rule(t, out, "└", "─", "┴", "┘");
}

/* "397.54 KB", Keras's units of 1024 */
static void print_count(struct buf *out, const char *what, size_t params)
{
    static const char *const UNITS[] = { "B", "KB", "MB", "GB", "TB", "PB" };
    auto_free char *count = with_commas(params);
    double bytes = (double)params * (double)sizeof(float);
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < COUNT_OF(UNITS); unit++)
        bytes /= 1024;
    buf_printf(out, " %s params: %s (%.2f %s)\n", what, count, bytes, UNITS[unit]);
}

void model_summary(const struct model *m, struct buf *out)
{
    struct summary_table t = { 0 };
    add_row(&t, "Layer (type)", "Output Shape", "Param #");
    for (size_t i = 0; i < m->nlayers; i++)
        add_layer(&t, &m->layers[i]);
    buf_printf(out, "Model: \"%s\"\n", m->name);
    print_table(&t, out);
    print_count(out, "Total", m->params);
    print_count(out, "Trainable", m->trainable_params);
    print_count(out, "Non-trainable", m->params - m->trainable_params);
    strlist_fini(&t.cells);
}
