/* The table of Keras's model.summary() (keras/src/utils/summary_utils.py). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "nn/model_impl.h"

enum { COLUMNS_MAX = 4 };

struct summary_table {
    struct strlist cells; /* `columns` a row; the first row is the head */
    int columns, width[COLUMNS_MAX];
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

char *model_shape_text(const struct shape *s)
{
    AUTO_FINI(buf) out = BUF_INIT;
    buf_str(&out, "(None");
    for (int i = 0; i < s->rank; i++)
        buf_printf(&out, ", %" PRId64, s->dim[i]);
    buf_str(&out, s->rank == 0 ? ",)" : ")");
    return buf_detach(&out);
}

/* Letters, not bytes: names may be in any language. */
static int summary_width(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void add_row(struct summary_table *t, const char *const cells[COLUMNS_MAX])
{
    for (int i = 0; i < t->columns; i++) {
        strlist_add(&t->cells, cells[i]);
        t->width[i] = MAX(t->width[i], summary_width(cells[i]));
    }
}

/* ---- rows ---- */

static size_t layer_params(const struct layer *l)
{
    size_t n = 0;
    for (int i = 0; i < l->nvars; i++)
        n += shape_elements(&l->var[i].shape);
    return n;
}

/* Each layer once, however often it is called. */
static size_t item_params(const struct model *m, const struct graph_item *it)
{
    size_t n = 0;
    if (it->kind == ITEM_LAYER)
        return layer_params(&m->layers[it->index]);
    for (size_t i = 0; it->kind == ITEM_MODEL && i < m->graphs[it->index]->nitems; i++)
        n += item_params(m, &m->graphs[it->index]->items[i]);
    return n;
}

static const char *item_class(const struct model *m, const struct graph_item *it)
{
    return it->kind == ITEM_INPUT             ? "InputLayer"
           : it->kind == ITEM_LAYER           ? m->layers[it->index].row->k.names[0]
           : m->graphs[it->index]->sequential ? "Sequential"
                                              : "Functional";
}

/* "(None, 4)", or of a nested model with several outputs "[(None, 4), (None, 1)]": of its first call. */
static char *item_shape_text(const struct model *m, const struct model_graph *g, const struct graph_item *it)
{
    AUTO_FINI(buf) out = BUF_INIT;
    size_t n = it->kind == ITEM_MODEL ? m->graphs[it->index]->noutputs : 1;
    if (n > 1)
        buf_char(&out, '[');
    for (size_t i = 0; i < n; i++) {
        auto_free char *shape = model_shape_text(&g->calls[it->first].shapes[i]);
        buf_printf(&out, "%s%s", i > 0 ? ", " : "", shape);
    }
    if (n > 1)
        buf_char(&out, ']');
    return buf_detach(&out);
}

/* "dense[0][0], add[1][0]": layer, call and output of all tensors of its calls. */
static char *connections_text(const struct model *m, const struct model_graph *g, const struct graph_item *it)
{
    AUTO_FINI(buf) out = BUF_INIT;
    if (it->kind == ITEM_INPUT)
        return xstrdup("-");
    for (size_t c = it->first; c < it->first + it->ncalls; c++)
        for (size_t k = 0; k < g->calls[c].n; k++) {
            const struct graph_tensor *t = &g->tensors[g->calls[c].first + k];
            size_t from = g->calls[t->call].item;
            buf_printf(&out, "%s%s[%zu][%zu]", out.len > 0 ? ", " : "", model_item_name(m, g, from),
                       t->call - g->items[from].first, t->output);
        }
    return buf_detach(&out);
}

static void add_item(struct summary_table *t, const struct model *m, const struct model_graph *g, size_t item)
{
    const struct graph_item *it = &g->items[item];
    auto_free char *name = xasprintf("%s (%s)", model_item_name(m, g, item), item_class(m, it));
    auto_free char *shape = item_shape_text(m, g, it), *params = with_commas(item_params(m, it));
    auto_free char *connected = connections_text(m, g, it);
    add_row(t, (const char *const[COLUMNS_MAX]){ name, shape, params, connected });
}

/* ---- the table ---- */

static void print_rule(const struct summary_table *t, struct buf *out, const char *left, const char *line,
                       const char *cross, const char *right)
{
    for (int i = 0; i < t->columns; i++) {
        buf_str(out, i == 0 ? left : cross);
        for (int k = 0; k < t->width[i] + 2; k++)
            buf_str(out, line);
    }
    buf_printf(out, "%s\n", right);
}

/* Numbers stand at the right. */
static void print_cell(const struct summary_table *t, struct buf *out, int column, const char *cell)
{
    int space = t->width[column] - summary_width(cell);
    bool number = column == 2;
    buf_printf(out, " %*s%s%*s ", number ? space : 0, "", cell, number ? 0 : space, "");
}

static void print_table(const struct summary_table *t, struct buf *out)
{
    print_rule(t, out, "┏", "━", "┳", "┓");
    for (size_t row = 0; row < t->cells.n / (size_t)t->columns; row++) {
        char *const *cell = t->cells.items + row * (size_t)t->columns;
        const char *bar = row == 0 ? "┃" : "│";
        if (row == 1)
            print_rule(t, out, "┡", "━", "╇", "┩");
        else if (row > 1)
            print_rule(t, out, "├", "─", "┼", "┤");
        for (int i = 0; i < t->columns; i++) {
            buf_str(out, bar);
            print_cell(t, out, i, cell[i]);
        }
        buf_printf(out, "%s\n", bar);
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
    const struct model_graph *g = m->graphs[0];
    bool chain = model_is_chain(m);
    struct summary_table t = { .columns = chain ? COLUMNS_MAX - 1 : COLUMNS_MAX };
    add_row(&t, (const char *const[COLUMNS_MAX]){ "Layer (type)", "Output Shape", "Param #", "Connected to" });
    for (size_t i = 0; i < g->nitems; i++)
        if (!chain || g->items[i].kind != ITEM_INPUT) /* as Keras: Sequential.layers has no InputLayer */
            add_item(&t, m, g, i);
    buf_printf(out, "Model: \"%s\"\n", g->name);
    print_table(&t, out);
    print_count(out, "Total", m->params);
    print_count(out, "Trainable", m->trainable_params);
    print_count(out, "Non-trainable", m->params - m->trainable_params);
    strlist_fini(&t.cells);
}
