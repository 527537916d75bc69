/* Draws the SVG picture of cli/curves.h: ranges, ticks, smoothed lines and legends. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "codec/json.h"
#include "curves.h"

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

static const char *const COLOURS[] = { "#ff7043", "#0077bb", "#009988", "#cc3311",
                                       "#33bbee", "#ee3377", "#997700", "#7e57c2" };

struct svg_options svg_options_default(void)
{
    return (struct svg_options){ .smoothing = -1, .columns = 2, .panel_width = 460, .panel_height = 314 };
}

/* ---- names ---- */

/* The text with XML's characters escaped, and without what XML forbids. */
static void put_text(struct buf *out, const char *s)
{
    json_auto_t *valid = json_string(s); /* NULL when it is not UTF-8 */
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '<' || c == '>' || c == '&' || c == '"')
            buf_printf(out, "&#%d;", c);
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && valid == NULL))
            buf_char(out, '?');
        else
            buf_char(out, (char)c);
    }
}

static bool is_shown(const struct scalar_series *line, const struct svg_options *look)
{
    return line->n > 0 && (look->tag == NULL || strstr(line->tag, look->tag) != NULL);
}

/* Tags and runs in order of their names. */
static void collect_names(const struct series_set *s, const struct svg_options *look, struct strlist *tags,
                          struct strlist *runs)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!is_shown(&s->items[i], look))
            continue;
        if (!strlist_has(tags, s->items[i].tag))
            strlist_add(tags, s->items[i].tag);
        if (!strlist_has(runs, s->items[i].run))
            strlist_add(runs, s->items[i].run);
    }
    strlist_sort(tags);
    strlist_sort(runs);
}

static size_t index_of(const struct strlist *l, const char *s)
{
    size_t i = 0;
    while (i < l->n && !str_eq(l->items[i], s))
        i++;
    return i;
}

static const char *colour_of(const struct strlist *runs, const char *run)
{
    return COLOURS[index_of(runs, run) % COUNT_OF(COLOURS)];
}

/* ---- scales ---- */

struct scale {
    double low, high; /* values */
    double from, to;  /* their positions in the picture */
    double tick;      /* distance of the ticks, a round number */
};

static double place(const struct scale *s, double v)
{
    return s->from + (v - s->low) / (s->high - s->low) * (s->to - s->from);
}

/* 1, 2 or 5 times a power of ten, so that about n of them fill the range. */
static double round_tick(double range, int n)
{
    double raw = range / n, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static void include(struct scale *s, double v)
{
    if (!isfinite(v))
        return;
    v = MAX(MIN(v, 1e300), -1e300); /* the range must be finite too */
    s->low = MIN(s->low, v);
    s->high = MAX(s->high, v);
}

/* A range of one value is widened around it. A margin keeps lines off the frame. */
static void settle(struct scale *s, double margin, int ticks)
{
    if (!(s->low <= s->high)) {
        s->low = 0;
        s->high = 1;
    }
    double range = s->high - s->low, size = MAX(fabs(s->low), fabs(s->high));
    if (!(range > size * 1e-9) || range < 1e-300) {
        s->low -= size > 1e-300 ? size / 10 : 0.5;
        s->high += size > 1e-300 ? size / 10 : 0.5;
        range = s->high - s->low;
    }
    s->low -= range * margin;
    s->high += range * margin;
    s->tick = round_tick(s->high - s->low, ticks);
}

/* "1.5k", "0.002", "3e-7": the fewest characters that distinguish neighbours. */
static const char *tick_text(double v, double tick, char out[32])
{
    if (fabs(v) < tick / 1000)
        v = 0;
    double size = fabs(v);
    if (tick >= 1000 && size >= 1e6 && tick >= 1e5)
        str_fmt(out, 32, "%gM", v / 1e6);
    else if (tick >= 100 && size >= 1e3)
        str_fmt(out, 32, "%gk", v / 1e3);
    else
        str_fmt(out, 32, "%.6g", v);
    return out;
}

/* ---- panels ---- */

struct panel {
    const char *tag;
    double x, y; /* upper left corner */
    double width, height;
    struct scale across, up;
};

#define GRID_LINE(direction) "<path class=\"grid\" d=\"M%.1f %.1f" direction "%.1f\"/>"
#define TICK(anchor)         "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"" anchor "\">%s</text>\n"

static void put_axes(struct buf *out, const struct panel *p)
{
    const struct scale *a = &p->across, *u = &p->up;
    char text[32];

    for (double v = ceil(u->low / u->tick) * u->tick; v <= u->high; v += u->tick)
        buf_printf(out, GRID_LINE("H") TICK("end"), a->from, place(u, v), a->to, a->from - 6, place(u, v) + 3.5,
                   tick_text(v, u->tick, text));
    for (double v = ceil(a->low / a->tick) * a->tick; v <= a->high; v += a->tick)
        buf_printf(out, GRID_LINE("V") TICK("middle"), place(a, v), u->from, u->to, place(a, v), u->from + 15,
                   tick_text(v, a->tick, text));
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

static void put_axis_titles(struct buf *out, const struct panel *p)
{
    const struct scale *a = &p->across, *u = &p->up;
    double x = p->x + 16, y = (u->from + u->to) / 2;
    buf_printf(out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>",
               (a->from + a->to) / 2, u->from + 32, str_starts(p->tag, "epoch_") ? "epoch" : "step");
    buf_printf(out,
               "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" transform=\"rotate(-90 %.1f %.1f)\">",
               x, y, x, y);
    put_text(out, quantity(p->tag));
    buf_str(out, "</text>\n");
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
    double x = round(place(&p->panel->across, step) * 2) / 2, y = place(&p->panel->up, value);
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

static void put_line(struct buf *out, const struct panel *p, const struct scalar_series *line, double weight,
                     const char *colour, const char *style)
{
    struct pen pen = { .out = out, .panel = p };
    struct smoother s = { .weight = weight, .decay = 1 };
    size_t begin = out->len;

    buf_printf(out, "<path class=\"%s\" stroke=\"%s\" d=\"", style, colour);
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

/* A single point is drawn as a dot. */
static void put_dot(struct buf *out, const struct panel *p, const struct scalar_series *line, const char *colour)
{
    if (line->n == 1 && isfinite(line->values[0]))
        buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", place(&p->across, line->steps[0]),
                   place(&p->up, line->values[0]), colour);
}

static void measure(struct panel *p, const struct series_set *s)
{
    const double none = HUGE_VAL;
    p->across =
        (struct scale){ .low = none, .high = -none, .from = p->x + PAD_LEFT, .to = p->x + p->width - PAD_RIGHT };
    p->up = (struct scale){ .low = none, .high = -none, .from = p->y + p->height - PAD_BOTTOM, .to = p->y + PAD_TOP };
    for (size_t i = 0; i < s->n; i++) {
        const struct scalar_series *line = &s->items[i];
        if (!str_eq(line->tag, p->tag))
            continue;
        for (size_t k = 0; k < line->n; k++) {
            include(&p->across, line->steps[k]);
            include(&p->up, line->values[k]);
        }
    }
    settle(&p->across, 0, TICKS_X);
    p->across.tick = MAX(p->across.tick, 1); /* steps and epochs are whole */
    settle(&p->up, 0.05, TICKS_Y);
}

static void put_panel(struct buf *out, struct panel *p, const struct series_set *s, const struct strlist *runs,
                      double weight)
{
    measure(p, s);
    buf_printf(out, "<g><rect class=\"panel\" x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"4\"/>\n", p->x,
               p->y, p->width, p->height);
    buf_printf(out, "<text class=\"tag\" x=\"%.0f\" y=\"%.0f\">", p->x + 14, p->y + 23);
    put_text(out, p->tag);
    buf_str(out, "</text>\n");
    put_axes(out, p);
    put_axis_titles(out, p);
    for (size_t r = 0; r < runs->n; r++) {
        for (size_t i = 0; i < s->n; i++) {
            const struct scalar_series *line = &s->items[i];
            if (!str_eq(line->tag, p->tag) || !str_eq(line->run, runs->items[r]))
                continue;
            const char *colour = colour_of(runs, line->run);
            double own = weight >= 0 ? weight : line->n >= SMOOTHED_FROM ? SMOOTHING : 0;
            if (own > 0)
                put_line(out, p, line, 0, colour, "raw");
            put_line(out, p, line, own, colour, "line");
            put_dot(out, p, line, colour);
        }
    }
    buf_str(out, "</g>\n");
}

/* ---- the whole ---- */

static double put_legend(struct buf *out, const struct strlist *runs, double y, double width)
{
    double x = GAP;
    for (size_t i = 0; i < runs->n; i++) {
        double size = 34 + NAME_WIDTH * (double)strlen(runs->items[i]);
        if (x > GAP && x + size > width - GAP) {
            x = GAP;
            y += LEGEND_LINE;
        }
        buf_printf(out, "<rect x=\"%.0f\" y=\"%.0f\" width=\"14\" height=\"4\" rx=\"2\" fill=\"%s\"/>", x, y + 8,
                   colour_of(runs, runs->items[i]));
        buf_printf(out, "<text class=\"run\" x=\"%.0f\" y=\"%.0f\">", x + 20, y + 14);
        put_text(out, runs->items[i]);
        buf_str(out, "</text>\n");
        x += size;
    }
    return runs->n > 0 ? y + LEGEND_LINE : y;
}

static const char STYLE[] =
    "<style>text{font-family:Roboto,'Helvetica "
    "Neue',Arial,sans-serif;fill:#3c4043}.title{font-size:18px}.tag{font-size:14px}.run{font-size:13px}.tick{font-size:"
    "10.5px;fill:#757575}.name{font-size:11.5px;fill:#5f6368}.panel{fill:#fff;stroke:#e0e0e0}.grid{stroke:#eee;fill:"
    "none}.axis{stroke:#9e9e9e;fill:none}.line{fill:none;stroke-width:2;stroke-linejoin:round}.raw{fill:none;stroke-"
    "width:1.2;stroke-opacity:.28;stroke-linejoin:round}</style>\n";

static double put_head(struct buf *out, const struct svg_options *look, const struct strlist *runs, double width)
{
    double y = GAP;
    if (look->title != NULL) {
        buf_printf(out, "<text class=\"title\" x=\"%d\" y=\"%.0f\">", GAP, y + 18);
        put_text(out, look->title);
        buf_str(out, "</text>\n");
        y += TITLE_LINE;
    }
    return put_legend(out, runs, y, width);
}

static bool is_constant(const struct series_set *s, const char *tag)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 1; str_eq(s->items[i].tag, tag) && k < s->items[i].n; k++)
            if (s->items[i].values[k] != s->items[i].values[0])
                return false;
    return true;
}

void curves_svg(const struct series_set *s, const struct svg_options *look, struct buf *ret)
{
    AUTO_FINI(strlist) tags = { 0 };
    AUTO_FINI(strlist) runs = { 0 };
    AUTO_FINI(buf) body = BUF_INIT;

    collect_names(s, look, &tags, &runs);
    size_t columns = (size_t)MAX(look->columns, 1);
    columns = MAX(MIN(columns, tags.n), 1);
    double width = GAP + (double)columns * (look->panel_width + GAP), y = put_head(&body, look, &runs, width) + 4;

    for (size_t i = 0; i < tags.n; i++) {
        struct panel p = { .tag = tags.items[i],
                           .x = GAP + (double)(i % columns) * (look->panel_width + GAP),
                           .y = y + (double)(i / columns) * (look->panel_height + GAP),
                           .width = look->panel_width,
                           .height = look->panel_height };
        put_panel(&body, &p, s, &runs, is_constant(s, p.tag) ? 0 : look->smoothing);
    }
    if (tags.n == 0)
        buf_printf(&body, "<text class=\"tag\" x=\"%d\" y=\"%.0f\">no scalars yet</text>\n", GAP, y + 20);

    double rows = (double)((tags.n + columns - 1) / columns), height = y + MAX(rows * (look->panel_height + GAP), 40);
    buf_str(ret, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    buf_printf(ret, " width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n", width, height, width, height);
    buf_str(ret, STYLE);
    buf_printf(ret, "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fafafa\"/>\n", width, height);
    buf_add(ret, body.data, body.len);
    buf_str(ret, "</svg>\n");
}
