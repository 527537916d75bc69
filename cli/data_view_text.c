/* A data_view as text for a terminal: the columns of its tables are aligned by their characters. */
#include <string.h>

#include "data_view.h"

static size_t characters(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static void print_cell(const struct view_table *t, size_t i, size_t width, struct buf *out)
{
    size_t column = i % t->columns, spaces = width - characters(t->cells.items[i]);
    bool right = (t->numbers >> column & 1) != 0, last = column + 1 == t->columns;
    buf_str(out, "  ");
    if (right)
        buf_printf(out, "%*s", (int)spaces, "");
    buf_str(out, t->cells.items[i]);
    if (!right && !last)
        buf_printf(out, "%*s", (int)spaces, "");
    if (!last)
        return;
    while (out->data[out->len - 1] == ' ') /* the last cells may be empty */
        out->data[--out->len] = '\0';
    buf_char(out, '\n');
}

static void print_table(const struct view_table *t, struct buf *out)
{
    size_t widths[VIEW_COLUMNS_MAX] = { 0 };
    if (t->cells.n == 0)
        return;
    for (size_t i = 0; i < t->cells.n; i++)
        widths[i % t->columns] = MAX(widths[i % t->columns], characters(t->cells.items[i]));
    buf_printf(out, "\n%s:\n", t->title);
    for (size_t i = 0; i < t->cells.n; i++)
        print_cell(t, i, widths[i % t->columns], out);
    if (t->more > 0)
        buf_printf(out, "  ... and %zu more\n", t->more);
}

static void print_pictures(const struct data_view *v, bool colors, size_t width, struct buf *out)
{
    if (v->npictures == 0)
        return;
    bool one = v->npictures == 1;
    buf_str(out, "\nThe first ");
    if (!one)
        buf_printf(out, "%zu ", v->npictures);
    buf_printf(out, "example%s%s:\n", one ? "" : "s",
               colors ? ""
               : one  ? " (a terminal shows the image, and so does a page made with --html FILE)"
                      : " (a terminal shows the images, and so does a page made with --html FILE)");
    for (size_t i = 0; i < v->captions.n; i++)
        buf_printf(out, "  %s\n", v->captions.items[i]);
    if (colors)
        thumbnail_ansi(v->pictures, v->npictures, width, out);
}

void data_view_text(const struct data_view *v, bool colors, size_t width, struct buf *out)
{
    buf_printf(out, "%s\n", v->title);
    for (size_t i = 0; i < v->lines.n; i++)
        buf_printf(out, "  %s\n", v->lines.items[i]);
    for (size_t i = 0; i < COUNT_OF(v->tables); i++)
        print_table(&v->tables[i], out);
    print_pictures(v, colors, width, out);
    for (size_t i = 0; i < v->warnings.n; i++)
        buf_printf(out, "%swarning: %s\n", i == 0 ? "\n" : "", v->warnings.items[i]);
}
