/* Makes tables of a description: a row for each column, for each class and for each of the first examples. Texts of the
 * data are cut, and their control characters become spaces, so that a file cannot write to the terminal. */
#include "data_view.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "cli.h"
#include "data/date.h"

enum { TEXT_MAX = 32, BAR_MAX = 30, NUMBERS_SHOWN = 8, TABLE_COLUMNS = 0, TABLE_CLASSES = 1, TABLE_FIRST = 2 };

void data_view_fini(struct data_view *v)
{
    for (size_t i = 0; i < COUNT_OF(v->tables); i++) {
        free(v->tables[i].title);
        strlist_fini(&v->tables[i].cells);
    }
    for (size_t i = 0; i < v->npictures; i++)
        thumbnail_fini(&v->pictures[i]);
    free(v->pictures);
    free(v->title);
    strlist_fini(&v->lines);
    strlist_fini(&v->captions);
    strlist_fini(&v->warnings);
}

/* ---- cells ---- */

void data_view_clean(const char *text, size_t max, struct buf *out)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t left = strlen(text), shown = 0;
    for (size_t n; left > 0 && shown < max; left -= n, p += n, shown++) {
        char instead = utf8_shown(p, left, &n);
        buf_add(out, instead == '\0' ? (const void *)p : &instead, instead == '\0' ? n : 1);
    }
    if (left > 0)
        buf_str(out, "...");
}

static void add_text(const char *text, struct buf *out)
{
    data_view_clean(text, TEXT_MAX, out);
}

static void add_cell(struct view_table *t, const char *text)
{
    AUTO_FINI(buf) cell = BUF_INIT;
    add_text(text, &cell);
    strlist_add(&t->cells, cell.data);
}

static void add_whole(struct view_table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_whole(struct view_table *t, const char *fmt, ...)
{
    AUTO_FINI(buf) cell = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&cell, fmt, ap);
    va_end(ap);
    strlist_add(&t->cells, cell.data);
}

static void begin_table(struct view_table *t, const char *const *names, size_t n, unsigned numbers)
{
    t->columns = n;
    t->numbers = numbers;
    for (size_t i = 0; i < n; i++)
        add_cell(t, names[i]);
}

/* Leaves out the columns from `first` on that are empty in all rows. */
static void drop_empty(struct view_table *t, size_t first)
{
    for (size_t c = t->columns; c-- > first;) {
        bool any = false;
        size_t kept = 0;
        for (size_t i = t->columns + c; i < t->cells.n; i += t->columns)
            any = any || t->cells.items[i][0] != '\0';
        if (any)
            continue;
        for (size_t i = 0; i < t->cells.n; i++)
            if (i % t->columns == c)
                free(t->cells.items[i]);
            else
                t->cells.items[kept++] = t->cells.items[i];
        t->cells.n = kept;
        t->columns--;
        t->numbers = (t->numbers & ((1u << c) - 1)) | (t->numbers >> (c + 1) << c);
    }
}

/* ---- the columns ---- */

static void add_moments(const struct described_column *c, struct view_table *t)
{
    const struct moments *m = &c->numbers;
    char text[32];
    if (!c->has_numbers || m->n == 0) {
        for (int i = 0; i < 4; i++)
            add_cell(t, "");
        return;
    }
    if (c->is_date) {
        add_cell(t, date_text(m->min, text));
        add_cell(t, date_text(m->max, text));
        add_cell(t, "");
        add_cell(t, "");
        return;
    }
    add_whole(t, "%.6g", m->min);
    add_whole(t, "%.6g", m->max);
    add_whole(t, "%.6g", m->mean);
    if (m->n > 1)
        add_whole(t, "%.6g", moments_std(m));
    else
        add_cell(t, "-");
}

static void add_words(const struct described_column *c, struct view_table *t)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (!c->has_words) {
        add_cell(t, "");
        add_cell(t, "");
        return;
    }
    for (size_t i = 0; i < c->ntop; i++) {
        buf_str(&text, i > 0 ? ", " : "");
        add_text(c->top[i].text, &text);
        buf_printf(&text, " %" PRId64, c->top[i].n);
    }
    add_whole(t, "%s%" PRId64, c->more_words ? "over " : "", c->words);
    add_whole(t, "%s%s", text.data, (size_t)c->words > c->ntop ? ", ..." : "");
}

static void fill_columns(const struct data_description *d, struct view_table *t)
{
    static const char *const NAMES[] = { "column", "role", "type", "count", "missing",      "min",
                                         "max",    "mean", "std",  "words", "most frequent" };
    begin_table(t, NAMES, COUNT_OF(NAMES), 0x3F8);
    for (size_t i = 0; i < MIN(d->n, (size_t)VIEW_ROWS_MAX); i++) {
        const struct described_column *c = &d->columns[i];
        add_cell(t, c->name);
        add_cell(t, c->role);
        add_cell(t, c->type);
        add_whole(t, "%" PRId64, c->count);
        if (c->missing >= 0)
            add_whole(t, "%" PRId64, c->missing);
        else
            add_cell(t, "");
        add_moments(c, t);
        add_words(c, t);
    }
    t->more = d->n - MIN(d->n, (size_t)VIEW_ROWS_MAX);
    t->title = xstrdup(d->rows > 0 ? "Columns of the files" : "Numbers of the examples");
    drop_empty(t, 3);
}

/* ---- the classes ---- */

static const char *class_name(const struct data_description *d, int64_t value)
{
    return value >= 0 && value < (int64_t)d->class_names.n ? d->class_names.items[value] : "";
}

bool data_view_many_values(const struct data_description *d)
{
    return d->class_names.n == 0 && (d->nclasses > VIEW_VALUES_MAX || d->other_classes > d->seen / 2);
}

static void fill_classes(const struct data_description *d, struct view_table *t)
{
    static const char *const NAMES[] = { "class", "name", "examples", "share", "" };
    int64_t most = 1;
    if (!d->integer_labels || data_view_many_values(d))
        return;
    begin_table(t, NAMES, COUNT_OF(NAMES), 0xD);
    t->title = xstrdup("Labels");
    for (size_t i = 0; i < d->nclasses; i++)
        most = MAX(most, d->classes[i].n);
    for (size_t i = 0; i < MIN(d->nclasses, (size_t)VIEW_ROWS_MAX); i++) {
        const struct described_class *c = &d->classes[i];
        size_t bar = (size_t)lround((double)c->n / (double)most * BAR_MAX);
        auto_free char *marks = xcalloc(BAR_MAX + 1, 1);
        memset(marks, '#', MAX(bar, 1));
        add_whole(t, "%" PRId64, c->value);
        add_cell(t, class_name(d, c->value));
        add_whole(t, "%" PRId64, c->n);
        add_whole(t, "%.1f%%", 100 * (double)c->n / (double)d->seen);
        add_whole(t, "%s", marks);
    }
    if (d->other_classes > 0) {
        add_whole(t, "other");
        add_whole(t, "below 0 or above %d", DESCRIBE_CLASSES_MAX - 1);
        add_whole(t, "%" PRId64, d->other_classes);
        add_whole(t, "%.1f%%", 100 * (double)d->other_classes / (double)d->seen);
        add_cell(t, "");
    }
    t->more = d->nclasses - MIN(d->nclasses, (size_t)VIEW_ROWS_MAX);
    drop_empty(t, 1);
}

/* ---- the first examples ---- */

/* As the texts of the used columns. */
static int fill_texts(const struct dataset *d, const struct data_description *what, struct view_table *t, struct err *e)
{
    struct strlist of[VIEW_COLUMNS_MAX] = { { .n = 0 } };
    const char *names[VIEW_COLUMNS_MAX];
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; i < what->n && n < VIEW_COLUMNS_MAX && rc == 0; i++) {
        const struct described_column *c = &what->columns[i];
        if (str_eq(c->role, "unused"))
            continue;
        t->numbers |= c->has_numbers ? 1u << n : 0;
        names[n] = c->name;
        rc = dataset_texts(d, c->name, 0, what->nfirst, &of[n++], e);
    }
    begin_table(t, names, n, t->numbers);
    for (size_t row = 0; rc == 0 && row < what->nfirst; row++)
        for (size_t i = 0; i < n; i++)
            add_cell(t, of[i].items[row]);
    for (size_t i = 0; i < n; i++)
        strlist_fini(&of[i]);
    return rc;
}

static void label_text(const struct data_description *d, size_t row, struct buf *out)
{
    for (size_t i = 0; i < MIN(d->y_count, (size_t)NUMBERS_SHOWN); i++)
        buf_printf(out, "%s%.6g", i > 0 ? " " : "", (double)d->y[row * d->y_count + i]);
    buf_str(out, d->y_count > NUMBERS_SHOWN ? " ..." : "");
    if (d->integer_labels && class_name(d, (int64_t)d->y[row])[0] != '\0') {
        buf_char(out, ' ');
        add_text(class_name(d, (int64_t)d->y[row]), out);
    }
}

static void fill_numbers(const struct data_description *d, struct view_table *t)
{
    static const char *const NAMES[] = { "example", "features", "label" };
    begin_table(t, NAMES, COUNT_OF(NAMES), 1);
    for (size_t row = 0; row < d->nfirst; row++) {
        AUTO_FINI(buf) x = BUF_INIT, y = BUF_INIT;
        for (size_t i = 0; i < MIN(d->x_count, (size_t)NUMBERS_SHOWN); i++)
            buf_printf(&x, "%s%.6g", i > 0 ? " " : "", (double)d->x[row * d->x_count + i]);
        buf_str(&x, d->x_count > NUMBERS_SHOWN ? " ..." : "");
        label_text(d, row, &y);
        add_whole(t, "%zu", row);
        add_whole(t, "%s", x.data);
        add_whole(t, "%s", y.data);
    }
    drop_empty(t, 2);
}

/* ---- pictures ---- */

/* The only features are an image. */
static bool is_of_images(const struct dataset *d, const struct data_description *what)
{
    return what->rows == 0 && thumbnail_fits(dataset_example(d)) && what->n > 0 && what->columns[0].has_numbers &&
           (what->n == 1 || !str_eq(what->columns[1].role, "feature"));
}

/* Bytes are black at 0 and white at 255, and so are images of other types that look like bytes; else the range of the
 * numbers is that of the brightness. */
static void brightness(const struct moments *m, float *low, float *high)
{
    *low = (float)fmin(m->min, 0);
    *high = (float)(m->max > 127 && m->max <= 255 && m->min >= 0 ? 255 : m->max);
}

static void fill_pictures(const struct dataset *d, const struct data_description *what, size_t max_side,
                          struct data_view *v)
{
    AUTO_FINI(strlist) paths = { 0 };
    float low, high;
    if (dataset_texts(d, "path", 0, what->nfirst, &paths, NULL) < 0)
        strlist_fini(&paths);
    brightness(&what->columns[0].numbers, &low, &high);
    v->pictures = xcalloc(what->nfirst + 1, sizeof(*v->pictures));
    for (size_t i = 0; i < what->nfirst; i++) {
        AUTO_FINI(buf) caption = BUF_INIT;
        buf_printf(&caption, "%zu", i);
        if (what->y_count > 0)
            buf_str(&caption, ": label ");
        label_text(what, i, &caption);
        if (paths.n > i) {
            buf_str(&caption, ", ");
            add_text(paths.items[i], &caption);
        }
        strlist_add(&v->captions, caption.data);
        v->pictures[v->npictures++] =
            thumbnail_of(what->x + i * what->x_count, dataset_example(d), low, high, max_side);
    }
}

int data_view_fill(const struct dataset *d, const struct data_description *what, size_t max_side, struct data_view *v,
                   struct err *e)
{
    struct view_table *first = &v->tables[TABLE_FIRST];
    fill_columns(what, &v->tables[TABLE_COLUMNS]);
    fill_classes(what, &v->tables[TABLE_CLASSES]);
    if (is_of_images(d, what)) {
        fill_pictures(d, what, max_side, v);
        return 0;
    }
    if (what->nfirst == 0)
        return 0;
    first->title = what->nfirst == 1 ? xstrdup("The first example") : xasprintf("The first %zu examples", what->nfirst);
    if (what->rows > 0)
        return fill_texts(d, what, first, e);
    fill_numbers(what, first);
    return 0;
}
