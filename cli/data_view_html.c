/* A data_view as one HTML page, with the pictures in it. All texts are escaped, and the page has no scripts. */
#include <string.h>

#include "codec/base64.h"
#include "data_view.h"

static const char STYLE[] =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:.4em 0 1.5em}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;"
    "text-align:left;vertical-align:top}th{border-bottom:2px solid #999}"
    ".n{text-align:right;font-variant-numeric:tabular-nums}.bar{height:.8em;background:#4a7fb5}"
    "figure{display:inline-block;margin:0 1em 1em 0;max-width:10em}img{width:8em;image-rendering:pixelated}"
    "figcaption{font-size:85%;overflow-wrap:anywhere}.warning{color:#9a4b00}";

static void escape(const char *text, struct buf *out)
{
    for (; *text != '\0'; text++)
        if (*text == '&')
            buf_str(out, "&amp;");
        else if (*text == '<')
            buf_str(out, "&lt;");
        else if (*text == '>')
            buf_str(out, "&gt;");
        else if (*text == '"')
            buf_str(out, "&quot;");
        else
            buf_char(out, *text);
}

static void element(const char *begin, const char *text, const char *end, struct buf *out)
{
    buf_str(out, begin);
    escape(text, out);
    buf_str(out, end);
}

/* A column without a name holds the bars of the text. */
static void html_cell(const struct view_table *t, size_t i, struct buf *out)
{
    size_t column = i % t->columns;
    bool head = i < t->columns, right = (t->numbers >> column & 1) != 0;
    const char *text = t->cells.items[i], *name = t->cells.items[column];
    buf_printf(out, "%s<%s%s>", column == 0 ? "<tr>" : "", head ? "th" : "td", right ? " class=\"n\"" : "");
    if (!head && name[0] == '\0' && text[0] == '#')
        buf_printf(out, "<div class=\"bar\" style=\"width:%zuem\"></div>", strlen(text) / 2 + 1);
    else
        escape(text, out);
    buf_printf(out, "</%s>%s", head ? "th" : "td", column + 1 == t->columns ? "</tr>\n" : "");
}

static void html_table(const struct view_table *t, struct buf *out)
{
    if (t->cells.n == 0)
        return;
    element("<h2>", t->title, "</h2>\n<table>\n", out);
    for (size_t i = 0; i < t->cells.n; i++)
        html_cell(t, i, out);
    buf_str(out, "</table>\n");
    if (t->more > 0)
        buf_printf(out, "<p>... and %zu more</p>\n", t->more);
}

static void html_pictures(const struct data_view *v, struct buf *out)
{
    if (v->npictures > 0)
        buf_str(out, "<h2>The first examples</h2>\n");
    for (size_t i = 0; i < v->npictures; i++) {
        AUTO_FINI(buf) png = BUF_INIT;
        thumbnail_png(&v->pictures[i], &png);
        element("<figure><img alt=\"", v->captions.items[i], "\" src=\"data:image/png;base64,", out);
        base64_encode(png.data, png.len, out);
        element("\"><figcaption>", v->captions.items[i], "</figcaption></figure>\n", out);
    }
}

void data_view_html(const struct data_view *v, struct buf *out)
{
    element("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", v->title, "</title>\n<style>",
            out);
    buf_str(out, STYLE);
    element("</style></head>\n<body>\n<h1>", v->title, "</h1>\n", out);
    for (size_t i = 0; i < v->lines.n; i++)
        element("<div>", v->lines.items[i], "</div>\n", out);
    for (size_t i = 0; i < v->warnings.n; i++)
        element("<p class=\"warning\">warning: ", v->warnings.items[i], "</p>\n", out);
    for (size_t i = 0; i < COUNT_OF(v->tables); i++)
        html_table(&v->tables[i], out);
    html_pictures(v, out);
    buf_str(out, "</body></html>\n");
}
