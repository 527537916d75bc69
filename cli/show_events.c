/* trainyard show events PATH: the content of TensorBoard's event files, as text or as a picture. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "cli.h"
#include "curves.h"
#include "tfio/event_reader.h"
#include "tfio/event_writer.h"

struct point {
    int64_t step;
    double value; /* of a scalar; values in a histogram */
    size_t nbuckets;
    char *text;
};
struct tag_row { /* one tag of one run */
    enum event_kind kind;
    char run[128];
    char *tag;
    struct point *points; /* ascending by step */
    size_t n, cap;
};
struct tag_table {
    struct map index; /* "run\ttag" -> row; rows are owned */
};

/* Removes the points from `step` on: training went back behind it. */
static void cut(struct tag_row *row, int64_t step)
{
    while (row->n > 0 && row->points[row->n - 1].step >= step)
        free(row->points[--row->n].text);
}

static void tag_table_fini(struct tag_table *t)
{
    const struct map_slot *slot;

    for (size_t i = 0; (slot = map_next(&t->index, &i)) != NULL;) {
        struct tag_row *row = slot->value;
        cut(row, INT64_MIN);
        free(row->points);
        free(row->tag);
        free(row);
    }
    map_fini(&t->index);
}
DEFINE_AUTO_FINI(tag_table, tag_table_fini);

static const char *const KINDS[] = { [EVENT_SCALAR] = "scalar",
                                     [EVENT_HISTOGRAM] = "histogram",
                                     [EVENT_TEXT] = "text",
                                     [EVENT_SESSION] = "session",
                                     [EVENT_OTHER] = "other" };

static void note(struct tag_table *t, const char *run, const struct event *event)
{
    auto_free char *key = xasprintf("%s\t%s", run, event->tag);
    struct tag_row *row = map_get(&t->index, key);

    if (row == NULL) {
        row = xcalloc(1, sizeof(*row));
        *row = (struct tag_row){ .kind = event->kind, .tag = xstrdup(event->tag) };
        str_fmt(row->run, sizeof(row->run), "%s", run);
        map_put(&t->index, key, row);
    }
    cut(row, event->step);
    if (row->n == row->cap) {
        row->cap = row->cap * 2 + 16;
        row->points = xrealloc(row->points, row->cap * sizeof(*row->points));
    }
    row->points[row->n++] = (struct point){
        .step = event->step, .value = event->value, .nbuckets = event->nbuckets, .text = xstrdup(event->text)
    };
}

/* The START of a session that continues an earlier one. */
static void begin_again(struct tag_table *t, const char *run, int64_t step)
{
    const struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&t->index, &i)) != NULL;) {
        struct tag_row *row = slot->value;
        if (str_eq(row->run, run))
            cut(row, step);
    }
}

static void print_point(const struct tag_row *row, const struct point *point, struct buf *out)
{
    char number[32];
    buf_printf(out, "%s\t%s\t%lld\t", row->run, row->tag, (long long)point->step);
    if (row->kind == EVENT_SCALAR)
        buf_printf(out, "%s\n", str_float((float)point->value, number));
    else if (row->kind == EVENT_HISTOGRAM)
        buf_printf(out, "%.0f values in %zu buckets\n", point->value, point->nbuckets);
    else
        buf_printf(out, "%s\n", point->text);
}

/* The error of --tag when nothing has such a tag. */
static int no_such_tag(const char *tag, const struct strlist *tags, struct err *e)
{
    AUTO_FINI(buf) list = BUF_INIT;
    for (size_t i = 0; i < tags->n; i++)
        buf_printf(&list, "%s%s", i > 0 ? ", " : "", tags->items[i]);
    return err_set(e, ERR_NOT_FOUND, "--tag: no tag contains '%s'; there are %s", tag, list.data);
}

static int print_points(const struct tag_table *t, const char *tag, struct buf *out, struct err *e)
{
    AUTO_FINI(strlist) tags = { 0 };
    const struct map_slot *slot;
    bool any = false;
    for (size_t i = 0; (slot = map_next(&t->index, &i)) != NULL;) {
        const struct tag_row *row = slot->value;
        bool wanted = strstr(row->tag, tag) != NULL;
        any = any || wanted;
        if (!strlist_has(&tags, row->tag))
            strlist_add(&tags, row->tag);
        for (size_t k = 0; wanted && k < row->n; k++)
            print_point(row, &row->points[k], out);
    }
    return any ? 0 : no_such_tag(tag, &tags, e);
}

/* The name of a path's runs when other paths are shown, too: "runs/a" also for runs/a/ and runs/a/summaries. */
static char *name_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    const size_t tail = strlen("/summaries");
    if (n > tail && strncmp(path + n - tail, "/summaries", tail) == 0)
        n -= tail;
    return xstrndup(path, n);
}

/* name: prefix of the runs, or NULL. */
static int read_all(const char *path, const char *name, struct tag_table *table, struct err *e)
{
    AUTO(event_reader) *reader = NULL;
    struct event event;
    char run[128], own[128];
    bool any = false;

    if (event_reader_open(path, &reader, e) < 0)
        return -1;
    for (;;) {
        struct err damaged = { 0 };
        int got = event_reader_next(reader, &event, &damaged);
        if (got == 0)
            break;
        any = true;
        if (got < 0) {
            log_warning("%s", damaged.msg);
            continue;
        }
        event_reader_run(reader, &event, own, sizeof(own));
        str_fmt(run, sizeof(run), "%s%s%s", name != NULL ? name : "", name != NULL ? "/" : "", own);
        if (event.kind == EVENT_SESSION && event.value == SESSION_START)
            begin_again(table, run, event.step);
        else if (event.kind != EVENT_OTHER && event.kind != EVENT_SESSION)
            note(table, run, &event);
    }
    return any ? 0 : err_set(e, ERR_NOT_FOUND, "%s: no event files (events.out.tfevents.*) below it", path);
}

static void print_row(const struct tag_row *row, int run_width, int tag_width, struct buf *out)
{
    const struct point *last = &row->points[row->n - 1];
    double min = (double)INFINITY, max = -(double)INFINITY;
    char steps[48];
    for (size_t i = 0; i < row->n; i++) {
        min = fmin(min, row->points[i].value);
        max = fmax(max, row->points[i].value);
    }
    str_fmt(steps, sizeof(steps), "%lld..%lld", (long long)row->points[0].step, (long long)last->step);
    buf_printf(out, "%-*s  %-*s  %-9s %6zu  %-17s", run_width, row->run, tag_width, row->tag, KINDS[row->kind], row->n,
               steps);
    if (row->kind == EVENT_SCALAR)
        buf_printf(out, " %12.6g %12.6g %12.6g", last->value, min, max);
    buf_char(out, '\n');
}

static void print_table(const struct tag_table *t, struct buf *out)
{
    int run_width = 3, tag_width = 3;
    const struct map_slot *slot;

    for (size_t i = 0; (slot = map_next(&t->index, &i)) != NULL;) {
        const struct tag_row *row = slot->value;
        run_width = MAX(run_width, (int)MIN(strlen(row->run), 40));
        tag_width = MAX(tag_width, (int)MIN(strlen(row->tag), 60));
    }
    buf_printf(out, "%-*s  %-*s  %-9s %6s  %-17s %12s %12s %12s\n", run_width, "RUN", tag_width, "TAG", "KIND",
               "POINTS", "STEPS", "LAST", "MIN", "MAX");
    for (size_t i = 0; (slot = map_next(&t->index, &i)) != NULL;) {
        const struct tag_row *row = slot->value;
        if (row->n > 0)
            print_row(row, run_width, tag_width, out);
    }
}

static int load_series(const struct strlist *paths, struct series_set *ret, struct err *e)
{
    AUTO_FINI(strlist) warnings = { 0 };

    for (size_t i = 0; i < paths->n; i++) {
        AUTO_FINI(series_set) series = SERIES_SET_INIT;
        auto_free char *name = name_of(paths->items[i]);
        if (series_load(paths->items[i], paths->n == 1 ? ret : &series, &warnings, e) < 0)
            return -1;
        series_merge(ret, name, &series);
    }
    for (size_t i = 0; i < warnings.n; i++)
        log_warning("%s", warnings.items[i]);
    return 0;
}

static int check_tag(const struct series_set *s, const char *tag, struct err *e)
{
    AUTO_FINI(strlist) tags = { 0 };
    for (size_t i = 0; i < s->n; i++) {
        if (strstr(s->items[i].tag, tag) != NULL)
            return 0;
        if (!strlist_has(&tags, s->items[i].tag))
            strlist_add(&tags, s->items[i].tag);
    }
    return no_such_tag(tag, &tags, e);
}

static int plot(const struct strlist *paths, const char *file, const struct svg_options *look, struct buf *out,
                struct err *e)
{
    AUTO_FINI(series_set) series = SERIES_SET_INIT;
    AUTO_FINI(buf) svg = BUF_INIT;

    if (load_series(paths, &series, e) < 0)
        return -1;
    if (look->tag != NULL && check_tag(&series, look->tag, e) < 0)
        return -1;
    curves_svg(&series, look, &svg);
    if (str_eq(file, "-")) {
        buf_add(out, svg.data, svg.len);
        return 0;
    }
    if (file_write(file, svg.data, svg.len, e) < 0)
        return -1;
    buf_str(out, "curves of");
    for (size_t i = 0; i < paths->n; i++)
        buf_printf(out, " %s", paths->items[i]);
    buf_printf(out, " drawn to %s\n", file);
    return 0;
}

static int list(const struct strlist *paths, const char *tag, struct buf *out, struct err *e)
{
    AUTO_FINI(tag_table) table = { .index = { 0 } };
    for (size_t i = 0; i < paths->n; i++) {
        auto_free char *name = paths->n > 1 ? name_of(paths->items[i]) : NULL;
        if (read_all(paths->items[i], name, &table, e) < 0)
            return -1;
    }
    if (tag != NULL)
        return print_points(&table, tag, out, e);
    print_table(&table, out);
    return 0;
}

int show_events_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard show events",
        .usage = "[flags] PATH...",
        .about = "Shows TensorBoard event files. PATH is a file, or a folder that is searched recursively. Without "
                 "flags it prints a line for each run and tag, with --tag every point, and with --plot it draws the "
                 "scalars. Several PATHs are shown together, as runs of one picture.",
    };
    AUTO_FINI(strlist) args = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    struct svg_options look = svg_options_default();
    const char *file = NULL, *smoothing = NULL;
    enum opt_result result;
    const struct opt opts[] = {
        OPT_STR("tag", NULL, "TEXT", &look.tag, "only tags that contain this text"),
        OPT_STR("plot", NULL, "FILE", &file, "draw the curves into this SVG file, - for standard output"),
        OPT_STR("smoothing", NULL, "X", &smoothing,
                "of the curves, 0 to 0.99, like TensorBoard's slider (default: 0.6 for lines of 20 points or more)"),
        OPT_STR("title", NULL, "TEXT", &look.title, "title of the picture"),
        OPT_END,
    };

    if (opt_parse(&PROGRAM, opts, argc, argv, &args, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &args, 1, SIZE_MAX, e) < 0)
        return -1;
    if (smoothing != NULL && str_f64(smoothing, &look.smoothing, e) < 0)
        return err_wrap(e, "--smoothing");
    if (smoothing != NULL && !(look.smoothing >= 0 && look.smoothing < 1))
        return err_set(e, ERR_INPUT, "--smoothing: %s is out of range; it must be at least 0 and below 1", smoothing);
    if ((file != NULL ? plot(&args, file, &look, &text, e) : list(&args, look.tag, &text, e)) < 0)
        return -1;
    if (file == NULL || str_eq(file, "-"))
        return cli_print(&text, e);
    cli_note(&text);
    return 0;
}
