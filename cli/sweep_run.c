/* Trains, ranks by the loss, prints. */
#include "sweep_run.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/stop.h"
#include "cli.h"
#include "curve_runs.h"
#include "curves.h"
#include "outdir.h"

struct sweep_outcome {
    size_t run; /* of the sweep */
    char *name, *folder;
    int exit_code;
    double seconds;
    json_t *metrics; /* NULL: it has not finished */
};

struct sweep_outcomes {
    struct sweep_outcome *items;
    size_t n;
};

static void sweep_outcomes_fini(struct sweep_outcomes *o)
{
    for (size_t i = 0; i < o->n; i++) {
        free(o->items[i].name);
        free(o->items[i].folder);
        json_decref(o->items[i].metrics);
    }
    free(o->items);
}
DEFINE_AUTO_FINI(sweep_outcomes, sweep_outcomes_fini);

/* ---- training ---- */

static int check_all(const struct sweep *s, const struct sweep_ops *ops, void *user, struct err *e)
{
    for (size_t i = 0; i < sweep_runs(s); i++) {
        AUTO_FINI(strlist) sets = { 0 };
        sweep_sets(s, i, &sets);
        if (ops->check(user, &sets, e) < 0)
            return -1;
    }
    return 0;
}

static int train_one(const struct sweep *s, const struct sweep_ops *ops, void *user, struct sweep_outcome *o,
                     struct err *e)
{
    AUTO_FINI(strlist) sets = { 0 };
    int64_t begun = clock_ms();
    sweep_sets(s, o->run, &sets);
    log_info("run %zu of %zu: %s", o->run + 1, sweep_runs(s), o->name);
    if (ops->train(user, &sets, o->folder, &o->exit_code, e) < 0) {
        o->exit_code = err_exit_code(e);
        if (o->run == 0) /* perhaps none can, and nothing is lost yet */
            return -1;
        log_error("%s", e->msg);
    }
    o->seconds = (double)(clock_ms() - begun) / 1000;
    o->metrics = o->exit_code == 0 ? outdir_metrics(o->folder) : NULL;
    return 0;
}

static int train_all(const struct sweep *s, const char *folder, const struct sweep_ops *ops, void *user,
                     struct sweep_outcomes *ret, struct err *e)
{
    ret->items = xcalloc(sweep_runs(s), sizeof(*ret->items));
    for (size_t i = 0; i < sweep_runs(s); i++) {
        struct sweep_outcome *o = &ret->items[ret->n++];
        o->run = i;
        o->name = sweep_name(s, i);
        o->folder = path_join(folder, o->name);
        if (train_one(s, ops, user, o, e) < 0)
            return -1;
        if (stop_count() > 0)
            return 0;
    }
    return 0;
}

/* ---- the comparison ---- */

static double loss_of(const struct sweep_outcome *o)
{
    const json_t *loss = json_object_get(o->metrics, "loss");
    return json_is_number(loss) ? json_number_value(loss) : HUGE_VAL;
}

static int by_loss(const void *a, const void *b)
{
    const struct sweep_outcome *x = a, *y = b;
    double dx = loss_of(x), dy = loss_of(y);
    return dx < dy ? -1 : dx > dy ? 1 : x->run < y->run ? -1 : x->run > y->run;
}

struct table {
    struct strlist cells; /* row by row */
    size_t columns;
};

static void add_head(const struct sweep *s, const json_t *metrics, struct table *t)
{
    const char *name;
    json_t *v;
    for (size_t k = 0; k < s->n; k++)
        strlist_add(&t->cells, sweep_field_name(s, k));
    json_object_foreach((json_t *)(uintptr_t)metrics, name, v) strlist_add(&t->cells, name);
    strlist_add(&t->cells, "end");
    strlist_add(&t->cells, "time");
    strlist_add(&t->cells, "folder");
    t->columns = t->cells.n;
}

static void add_end(const struct sweep_outcome *o, struct table *t)
{
    auto_free char *other = xasprintf("exit code %d", o->exit_code);
    strlist_add(&t->cells, o->exit_code == 0               ? "finished"
                           : o->exit_code == EXIT_DIVERGED ? "diverged"
                           : o->exit_code == EXIT_DEADLINE ? "late"
                           : o->exit_code == EXIT_STOPPED  ? "stopped"
                                                           : other);
}

static void add_row(const struct sweep *s, const struct sweep_outcome *o, const json_t *metrics, struct table *t)
{
    char text[32];
    const char *name;
    json_t *ignored;
    for (size_t k = 0; k < s->n; k++)
        strlist_add(&t->cells, sweep_value(s, o->run, k));
    json_object_foreach((json_t *)(uintptr_t)metrics, name, ignored)
    {
        const json_t *v = json_object_get(o->metrics, name);
        str_fmt(text, sizeof(text), "%.4f", json_number_value(v));
        strlist_add(&t->cells, json_is_number(v) ? text : json_is_string(v) ? json_string_value(v) : "-");
    }
    add_end(o, t);
    strlist_add(&t->cells, str_duration(o->seconds, text));
    strlist_add(&t->cells, o->folder);
}

static void put_table(const struct table *t, struct buf *out)
{
    auto_free size_t *widths = xcalloc(t->columns, sizeof(*widths));
    for (size_t i = 0; i < t->cells.n; i++)
        widths[i % t->columns] = MAX(widths[i % t->columns], strlen(t->cells.items[i]));
    for (size_t i = 0; i < t->cells.n; i++) {
        bool last = i % t->columns == t->columns - 1;
        buf_printf(out, "  %-*s%s", last ? 0 : (int)widths[i % t->columns], t->cells.items[i], last ? "\n" : "");
    }
}

static void compare(const struct sweep *s, struct sweep_outcomes *o, struct buf *out)
{
    struct table t = { .columns = 0 };
    qsort(o->items, o->n, sizeof(*o->items), by_loss);
    const json_t *metrics = o->items[0].metrics; /* those of the best one name the columns */
    add_head(s, metrics, &t);
    for (size_t i = 0; i < o->n; i++)
        add_row(s, &o->items[i], metrics, &t);
    buf_printf(out, "%zu of %zu runs, the least loss first:\n", o->n, sweep_runs(s));
    put_table(&t, out);
    strlist_fini(&t.cells);
}

/* The curves of the best runs that have some. */
static int draw(const struct sweep_outcomes *o, const char *folder, struct buf *out, struct err *e)
{
    AUTO_FINI(series_set) all = SERIES_SET_INIT;
    AUTO_FINI(buf) svg = BUF_INIT;
    auto_free char *path = path_join(folder, "curves.svg");
    const struct svg_options look = svg_options_default();
    size_t drawn = MIN(o->n, (size_t)CURVE_RUNS_MAX);
    for (size_t i = 0; i < drawn; i++) {
        AUTO_FINI(series_set) one = SERIES_SET_INIT;
        struct err none;
        if (series_load(o->items[i].folder, &one, NULL, &none) == 0)
            series_merge(&all, o->items[i].name, &one);
    }
    if (all.n == 0)
        return 0;
    curves_svg(&all, &look, &svg);
    if (file_write(path, svg.data, svg.len, e) < 0)
        return -1;
    if (drawn < o->n)
        buf_printf(out, "curves of the best %zu: %s\n", drawn, path);
    else
        buf_printf(out, "curves of all: %s\n", path);
    return 0;
}

int sweep_run(const struct sweep *s, const char *folder, const struct sweep_ops *ops, void *user, int *ret_exit,
              struct err *e)
{
    AUTO_FINI(sweep_outcomes) o = { .n = 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    if (check_all(s, ops, user, e) < 0 || train_all(s, folder, ops, user, &o, e) < 0)
        return -1;
    int first = o.items[0].exit_code;
    compare(s, &o, &text);
    *ret_exit = stop_count() > 0 ? EXIT_STOPPED : o.items[0].metrics != NULL ? 0 : first;
    if (draw(&o, folder, &text, e) < 0)
        return -1;
    cli_note(&text);
    return 0;
}
