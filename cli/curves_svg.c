/* Draws the SVG picture of cli/curves.h: panels, axes, smoothed lines and the legend. */
#include <math.h>
#include <string.h>

#include "curve_runs.h"
#include "curve_scale.h"
#include "curves.h"
#include "svg_text.h"

enum {
    GAP = 16, /* around and between panels */
    PAD_LEFT = 72,
    PAD_RIGHT = 18,
    PAD_TOP = 38,
    PAD_BOTTOM = 44, /* within a panel, around its plot */
    LEGEND_LINE = 22,
    TITLE_LINE = 34,
    TICKS_X = 6,
    TICKS_Y = 6,        /* about as many */
    NAME_WIDTH = 7,     /* of a letter in the legend */
    SMOOTHED_FROM = 20, /* points of a line that is smoothed by default */
};
static const double SMOOTHING = 0.6; /* TensorBoard's default */

static const char *const COLOURS[CURVE_RUNS_MAX] = { "#ff7043", "#0077bb", "#009988", "#cc3311", "#33bbee", "#ee3377",
                                                     "#997700", "#7e57c2", "#5d4037", "#607d8b", "#9e9d24", "#212121" };
static const char DASHES[] = " stroke-dasharray=\"6 4\"";

struct svg_options svg_options_default(void)
{
    return (struct svg_options){ .smoothing = -1, .columns = 2, .panel_width = 460, .panel_height = 314 };
}

/* ---- names ---- */

static bool is_shown(const struct scalar_series *line, const struct svg_options *look)
{
    return line->n > 0 && (look->tag == NULL || strstr(line->tag, look->tag) != NULL);
}

struct picture {
    const struct series_set *series;
    const struct svg_options *look;
    struct strlist tags; /* in the order of their names */
    struct curve_runs runs;
    size_t *run_of; /* for each series */
};

static void picture_fini(struct picture *p)
{
    strlist_fini(&p->tags);
    curve_runs_fini(&p->runs);
    free(p->run_of);
}
DEFINE_AUTO_FINI(picture, picture_fini);

static void collect_names(struct picture *p)
{
    const struct series_set *s = p->series;
    for (size_t i = 0; i < s->n; i++) {
        if (!is_shown(&s->items[i], p->look))
            continue;
        curve_runs_add(&p->runs, s->items[i].run);
        if (!strlist_has(&p->tags, s->items[i].tag))
            strlist_add(&p->tags, s->items[i].tag);
    }
    strlist_sort(&p->tags);
    curve_runs_settle(&p->runs);
    p->run_of = xcalloc(s->n, sizeof(*p->run_of));
    for (size_t i = 0; i < s->n; i++)
        p->run_of[i] = curve_runs_find(&p->runs, s->items[i].run);
}

/* ---- panels ---- */

struct panel {
    const char *tag;
    double x, y; /* upper left corner */
    double width, height;
    struct curve_scale across, up;
};

#define GRID_LINE(direction) "<path class=\"grid\" d=\"M%.1f %.1f" direction "%.1f\"/>"
#define TICK(anchor)         "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"" anchor "\">%s</text>\n"

static void put_axes(struct buf *out, const struct panel *p)
{
    const struct curve_scale *a = &p->across, *u = &p->up;
    char text[32];
    double v;

    for (size_t i = 0; curve_scale_tick(u, i, &v); i++)
        buf_printf(out, GRID_LINE("H") TICK("end"), a->from, curve_scale_place(u, v), a->to, a->from - 6,
                   curve_scale_place(u, v) + 3.5, curve_scale_text(u, v, text));
    for (size_t i = 0; curve_scale_tick(a, i, &v); i++)
        buf_printf(out, GRID_LINE("V") TICK("middle"), curve_scale_place(a, v), u->from, u->to, curve_scale_place(a, v),
                   u->from + 15, curve_scale_text(a, v, text));
    buf_printf(out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", a->from, u->to, u->from, a->to);
}

/* The name of an epoch's value: "epoch_loss" is the loss by epochs. */
static const char *quantity(const char *tag)
{
    const char *slash = strrchr(tag, '/');
    if (str_starts(tag, "epoch_"))
        return tag + strlen("epoch_");
    return slash != NULL && !str_starts(slash, "/sec") ? slash + 1 : tag; /* "/sec" is part of a rate, not a folder */
}

/* Losses and errors, of which the first values hide all later ones on a linear axis. */
static bool is_loss(const char *tag)
{
    static const char *const NAMES[] = { "loss", "error", "mse", "mae", "mape", "msle" };
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (strstr(quantity(tag), NAMES[i]) != NULL)
            return true;
    return false;
}

static void put_axis_titles(struct buf *out, const struct panel *p)
{
    const struct curve_scale *a = &p->across, *u = &p->up;
    double x = p->x + 16, y = (u->from + u->to) / 2;
    buf_printf(out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>",
               (a->from + a->to) / 2, u->from + 32, str_starts(p->tag, "epoch_") ? "epoch" : "step");
    buf_printf(out,
               "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 %.1f %.1f)\">",
               x, y, x, y);
    svg_text(out, quantity(p->tag));
    buf_printf(out, "%s</text>\n", u->log ? " (log)" : "");
}

/* A line that is being drawn. It breaks at gaps. The points of one pixel column are reduced to the first, lowest,
 * highest and last. */
struct pen {
    struct buf *out;
    const struct panel *panel;
    bool down;
    double column, low, high, last;
    size_t points; /* of the column */
};

static void pen_point(struct pen *p, double x, double y)
{
    buf_printf(p->out, "%c%.1f %.1f", p->down ? 'L' : 'M', x, y);
    p->down = true;
}

static void pen_end_column(struct pen *p)
{
    if (p->points > 2) {
        pen_point(p, p->column, p->low);
        pen_point(p, p->column, p->high);
    }
    if (p->points > 1)
        pen_point(p, p->column, p->last);
    p->points = 0;
}

static void pen_move(struct pen *p, double step, double value)
{
    double x = round(curve_scale_place(&p->panel->across, step) * 2) / 2, y = curve_scale_place(&p->panel->up, value);
    if (!isfinite(value)) {
        pen_end_column(p);
        p->down = false;
        return;
    }
    if (p->points == 0 || x > p->column) {
        pen_end_column(p);
        pen_point(p, x, y);
        p->column = x;
        p->low = p->high = y;
    }
    p->points++;
    p->low = MIN(p->low, y);
    p->high = MAX(p->high, y);
    p->last = y;
}

/* TensorBoard's smoothing: a moving average that starts unbiased; constant series do not change. */
struct smoother {
    double weight, sum, decay;
};

static double smooth(struct smoother *s, double v)
{
    if (!isfinite(v))
        return v;
    s->sum = s->sum * s->weight + (1 - s->weight) * v;
    s->decay *= s->weight;
    return s->sum / (1 - s->decay);
}

struct pencil {
    const char *colour, *class;
    bool dashed;
    double weight; /* of the smoothing */
};

static void put_line(struct buf *out, const struct panel *p, const struct scalar_series *line,
                     const struct pencil *pencil)
{
    struct pen pen = { .out = out, .panel = p };
    struct smoother s = { .weight = pencil->weight, .decay = 1 };
    size_t begin = out->len;

    buf_printf(out, "<path class=\"%s\" stroke=\"%s\"%s d=\"", pencil->class, pencil->colour,
               pencil->dashed ? DASHES : "");
    size_t empty = out->len;
    for (size_t i = 0; i < line->n; i++)
        pen_move(&pen, line->steps[i], smooth(&s, line->values[i]));
    pen_end_column(&pen);
    if (out->len == empty) { /* nothing finite */
        out->data[out->len = begin] = '\0';
        return;
    }
    buf_str(out, "\"/>\n");
}

/* A single point is drawn as a dot, hollow for a validation. */
static void put_dot(struct buf *out, const struct panel *p, const struct scalar_series *line,
                    const struct pencil *pencil)
{
    if (line->n == 1 && isfinite(line->values[0]))
        buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\" stroke=\"%s\"/>\n",
                   curve_scale_place(&p->across, line->steps[0]), curve_scale_place(&p->up, line->values[0]),
                   pencil->dashed ? "none" : pencil->colour, pencil->colour);
}

static bool is_drawn(const struct picture *picture, size_t i, const char *tag)
{
    return str_eq(picture->series->items[i].tag, tag) && picture->run_of[i] < curve_runs_shown(&picture->runs);
}

static void measure(struct panel *p, const struct picture *picture)
{
    p->across = curve_scale_new(p->x + PAD_LEFT, p->x + p->width - PAD_RIGHT);
    p->up = curve_scale_new(p->y + p->height - PAD_BOTTOM, p->y + PAD_TOP);
    for (size_t i = 0; i < picture->series->n; i++) {
        const struct scalar_series *line = &picture->series->items[i];
        if (!is_drawn(picture, i, p->tag))
            continue;
        for (size_t k = 0; k < line->n; k++) {
            curve_scale_include(&p->across, line->steps[k]);
            curve_scale_include(&p->up, line->values[k]);
        }
    }
    curve_scale_settle(&p->across, 0, TICKS_X);
    p->across.tick = MAX(p->across.tick, 1); /* steps and epochs are whole */
    if (is_loss(p->tag) && curve_scale_spans_decades(&p->up))
        curve_scale_settle_log(&p->up, 0.05);
    else
        curve_scale_settle(&p->up, 0.05, TICKS_Y);
}

static bool is_constant(const struct series_set *s, const char *tag)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 1; str_eq(s->items[i].tag, tag) && k < s->items[i].n; k++)
            if (s->items[i].values[k] != s->items[i].values[0])
                return false;
    return true;
}

/* A learning rate is what the job set: smoothed, it would show rates that never were. */
static double smoothing_of(const struct picture *picture, const struct scalar_series *line, bool constant)
{
    double asked = picture->look->smoothing;
    if (constant || strstr(line->tag, "learning_rate") != NULL)
        return 0;
    return asked >= 0 ? asked : line->n >= SMOOTHED_FROM ? SMOOTHING : 0;
}

static void put_series(struct buf *out, const struct panel *p, const struct picture *picture, size_t i, bool constant)
{
    const struct scalar_series *line = &picture->series->items[i];
    const double weight = smoothing_of(picture, line, constant);
    struct pencil pencil = { .colour = COLOURS[picture->run_of[i]],
                             .dashed = curve_runs_is_validation(line->run),
                             .class = "raw" };
    if (weight > 0)
        put_line(out, p, line, &pencil);
    pencil.class = "line";
    pencil.weight = weight;
    put_line(out, p, line, &pencil);
    put_dot(out, p, line, &pencil);
}

static void put_panel(struct buf *out, struct panel *p, const struct picture *picture)
{
    bool constant = is_constant(picture->series, p->tag);
    measure(p, picture);
    buf_printf(out, "<g><rect class=\"panel\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"4\"/>\n", p->x,
               p->y, p->width, p->height);
    buf_printf(out, "<text class=\"tag\" x=\"%.0f\" y=\"%.0f\">", p->x + 14, p->y + 23);
    svg_text(out, p->tag);
    buf_str(out, "</text>\n");
    put_axes(out, p);
    put_axis_titles(out, p);
    for (size_t i = 0; i < picture->series->n; i++)
        if (is_drawn(picture, i, p->tag))
            put_series(out, p, picture, i, constant);
    buf_str(out, "</g>\n");
}

/* ---- the whole ---- */

struct legend {
    struct buf *out;
    double x, y, width;
};

/* An entry of so many bytes, on a new line when it does not fit. Returns its left edge. */
static double legend_place(struct legend *l, size_t bytes)
{
    double size = 34 + NAME_WIDTH * (double)bytes, x = l->x;
    if (x > GAP && x + size > l->width - GAP) {
        x = GAP;
        l->y += LEGEND_LINE;
    }
    l->x = x + size;
    return x;
}

static void legend_text(struct legend *l, double x, const char *text)
{
    buf_printf(l->out, "<text class=\"run\" x=\"%.0f\" y=\"%.0f\">", x, l->y + 14);
    svg_text(l->out, text);
    buf_str(l->out, "</text>\n");
}

static void legend_line(struct legend *l, const char *name, const char *colour, bool dashed)
{
    double x = legend_place(l, strlen(name));
    buf_printf(l->out, "<path class=\"key\" stroke=\"%s\"%s d=\"M%.0f %.0fh16\"/>", colour, dashed ? DASHES : "", x,
               l->y + 10);
    legend_text(l, x + 21, name);
}

/* The runs that are not drawn, as far as a line has room for their names. */
static void legend_rest(struct legend *l, const struct curve_runs *runs)
{
    AUTO_FINI(buf) text = BUF_INIT;
    size_t i = curve_runs_shown(runs), room = (size_t)(l->width / NAME_WIDTH);
    buf_printf(&text, "not drawn:");
    for (; i < runs->runs.n && text.len + strlen(runs->names.items[i]) + 20 < room; i++)
        buf_printf(&text, "%s %s", i > curve_runs_shown(runs) ? "," : "", runs->names.items[i]);
    if (i < runs->runs.n)
        buf_printf(&text, " and %zu more", runs->runs.n - i);
    l->x = GAP;
    l->y += LEGEND_LINE;
    legend_text(l, GAP, text.data);
}

static double put_legend(struct buf *out, const struct curve_runs *runs, double y, double width)
{
    struct legend l = { .out = out, .x = GAP, .y = y, .width = width };
    size_t shown = curve_runs_shown(runs);
    if (shown == 0)
        return y;
    for (size_t i = 0; i < shown; i++)
        legend_line(&l, runs->names.items[i], COLOURS[i], false);
    if (runs->validation)
        legend_line(&l, "validation", shown == 1 ? COLOURS[0] : "#757575", true);
    if (shown < runs->runs.n)
        legend_rest(&l, runs);
    return l.y + LEGEND_LINE;
}

static const char STYLE[] =
    "<style>text{font-family:Roboto,'Helvetica "
    "Neue',Arial,sans-serif;fill:#3c4043}.title{font-size:18px}.tag{font-size:14px}.run{font-size:13px}.tick{font-size:"
    "10.5px;fill:#757575}.name{font-size:11.5px;fill:#5f6368}.panel{fill:#fff;stroke:#e0e0e0}.grid{stroke:#eee;fill:"
    "none}.axis{stroke:#9e9e9e;fill:none}.line,.key{fill:none;stroke-width:2;stroke-linejoin:round}.raw{fill:none;"
    "stroke-"
    "width:1.2;stroke-opacity:.28;stroke-linejoin:round}</style>\n";

static double put_head(struct buf *out, const struct picture *picture, double width)
{
    double y = GAP;
    if (picture->look->title != NULL) {
        buf_printf(out, "<text class=\"title\" x=\"%d\" y=\"%.0f\">", GAP, y + 18);
        svg_text(out, picture->look->title);
        buf_str(out, "</text>\n");
        y += TITLE_LINE;
    }
    return put_legend(out, &picture->runs, y, width);
}

void curves_svg(const struct series_set *s, const struct svg_options *look, struct buf *ret)
{
    AUTO_FINI(picture) picture = { .series = s, .look = look };
    AUTO_FINI(buf) body = BUF_INIT;

    collect_names(&picture);
    const struct strlist *tags = &picture.tags;
    size_t columns = MAX(MIN((size_t)MAX(look->columns, 1), tags->n), 1);
    double width = GAP + (double)columns * (look->panel_width + GAP), y = put_head(&body, &picture, width) + 4;

    for (size_t i = 0; i < tags->n; i++) {
        struct panel p = { .tag = tags->items[i],
                           .x = GAP + (double)(i % columns) * (look->panel_width + GAP),
                           .y = y + (double)(i / columns) * (look->panel_height + GAP),
                           .width = look->panel_width,
                           .height = look->panel_height };
        put_panel(&body, &p, &picture);
    }
    if (tags->n == 0)
        buf_printf(&body, "<text class=\"tag\" x=\"%d\" y=\"%.0f\">no scalars yet</text>\n", GAP, y + 20);

    double rows = (double)((tags->n + columns - 1) / columns), height = y + MAX(rows * (look->panel_height + GAP), 40);
    buf_str(ret, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    buf_printf(ret, " width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n", width, height, width, height);
    buf_str(ret, STYLE);
    buf_printf(ret, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fafafa\"/>\n", width, height);
    buf_add(ret, body.data, body.len);
    buf_str(ret, "</svg>\n");
}
