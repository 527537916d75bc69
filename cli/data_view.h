/* data_view - what `trainyard show data` shows, before it is written as text or as HTML: lines, tables and pictures of
 * a described data set. Pure.
 */
#ifndef TRAINYARD_CLI_DATA_VIEW_H
#define TRAINYARD_CLI_DATA_VIEW_H

#include "data/describe.h"
#include "thumbnail.h"

enum { VIEW_COLUMNS_MAX = 16, VIEW_ROWS_MAX = 200, VIEW_VALUES_MAX = 100 };

struct view_table {
    char *title;
    struct strlist cells; /* row by row, the first one has the names; none: nothing is shown */
    size_t columns;
    unsigned numbers; /* a bit for each column that is aligned to the right */
    size_t more;      /* rows that are left out */
};

struct data_view {
    char *title;
    struct strlist lines;        /* at the top */
    struct view_table tables[3]; /* columns, classes, first examples */
    struct thumbnail *pictures;  /* of the first examples */
    struct strlist captions;     /* of the pictures */
    size_t npictures;
    struct strlist warnings;
};
void data_view_fini(struct data_view *v);
DEFINE_AUTO_FINI(data_view, data_view_fini);

/* At most max characters of a text from a file or of its name. Control characters become spaces, and bytes that are not
 * UTF-8 question marks, so that it cannot write to a terminal. */
void data_view_clean(const char *text, size_t max, struct buf *out);
/* The labels are whole numbers, but so many different ones that they cannot be classes: they do not have a table. */
bool data_view_many_values(const struct data_description *d);
/* Adds the tables and, of at most max_side pixels, the pictures. d: the data set that `what` describes. */
MUST_USE int data_view_fill(const struct dataset *d, const struct data_description *what, size_t max_side,
                            struct data_view *v, struct err *e);

/* colors: the pictures are drawn; else a line says how to see them. width: columns of the terminal. */
void data_view_text(const struct data_view *v, bool colors, size_t width, struct buf *out);
/* One page that needs no other file. */
void data_view_html(const struct data_view *v, struct buf *out);

#endif
