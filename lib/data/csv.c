/* CSV (RFC 4180): one record a line, read through an index (indexed.h). The pass that makes the index decodes every
 * record, so a bad field in the last line is found before training begins. It also determines whether a label column
 * without a type holds class numbers (all whole). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/rng.h"
#include "data/columns.h"
#include "data/indexed.h"
#include "data/text.h"

enum { HEADER_NAME_MAX = 1024, HEADER_TEXT = 200, SHOWN_MAX = 40 };

struct csv {
    struct records records;
    const struct data_place *at; /* while it is opened */
    bool header;
    char delimiter;
    struct strlist names;
    const char *first_path; /* while it is opened: the file that has these names */
    struct data_columns columns;
    struct indexed indexed;
    float *scratch; /* features of the record that the pass reads, followed by its labels */
};

static void csv_free(struct records *r)
{
    struct csv *c = (struct csv *)r;
    indexed_fini(&c->indexed);
    columns_fini(&c->columns);
    column_names_fini(&r->names);
    strlist_fini(&c->names);
    free(c->scratch);
    free(c);
}

static int __attribute__((format(printf, 4, 5)))
error_at(const struct data_file *f, const unsigned char *p, struct err *e, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    size_t line, column;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    text_place(f->map->data, p, &line, &column);
    return err_set(e, ERR_INPUT, "%s:%zu:%zu: %s", f->path, line, column, text);
}

static const unsigned char *end_of(const struct data_file *f)
{
    return f->map->data + f->map->size;
}

static const unsigned char *start_of(const struct data_file *f)
{
    bool bom = f->map->size >= 3 && memcmp(f->map->data, "\xEF\xBB\xBF", 3) == 0;
    return f->map->data + (bom ? 3 : 0);
}

static int quote_error(const struct data_file *f, const unsigned char *p, enum text_result r, struct err *e)
{
    return error_at(f, p, e, "%s",
                    r == TEXT_OPEN_QUOTE ? "this quote is never closed"
                                         : "a closing quote must be the end of its field");
}

/* ---- the header ---- */

static int read_header(const struct csv *c, const struct data_file *f, const unsigned char **p, struct strlist *ret,
                       struct err *e)
{
    enum text_result more;
    *p = text_record(*p, end_of(f));
    if (*p == end_of(f))
        return err_set(e, ERR_INPUT, "%s: is empty", f->path);
    do {
        struct text_field field;
        char name[HEADER_NAME_MAX];
        const unsigned char *at = *p;
        more = text_field(p, end_of(f), c->delimiter, &field);
        if (more > TEXT_LAST)
            return quote_error(f, *p, more, e);
        field = text_trim(field);
        if (!text_copy(&field, name, sizeof(name)))
            return error_at(f, at, e, "this name is too long");
        if (!c->header)
            str_fmt(name, sizeof(name), "%zu", ret->n);
        if (ret->n >= COLUMNS_MAX)
            return error_at(f, at, e, "more than %d columns", COLUMNS_MAX);
        strlist_add(ret, name);
    } while (more == TEXT_MORE);
    return 0;
}

/* A file without a header, of which the first example would be lost. Numbers in a row, such as 0, 1, 2, are names:
 * pandas writes them. */
static bool is_an_example(const struct strlist *names)
{
    bool in_a_row = true;
    double first = 0, v;
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->items[i];
        const unsigned char *p = (const unsigned char *)name;
        if (!text_number(&(struct text_field){ .p = p, .end = p + strlen(name) }, &v))
            return false;
        first = i == 0 ? v : first;
        in_a_row = in_a_row && v == floor(v) && v == first + (double)i;
    }
    return !in_a_row;
}

static int header_once(const struct csv *c, const struct data_file *f, struct err *e)
{
    AUTO_FINI(map) seen = { 0 };
    char text[HEADER_TEXT];
    if (c->header && is_an_example(&c->names))
        return err_set(
            e, ERR_INPUT,
            "%s:1: the first line has numbers where the names of the columns should be: %s; set header: false if "
            "the file has no header",
            f->path, column_names_text(&c->names, text, sizeof(text)));
    for (size_t i = 0; c->header && i < c->names.n; i++) {
        if (map_get(&seen, c->names.items[i]) != NULL)
            return err_set(e, ERR_INPUT, "%s:1: two columns are named '%s'", f->path, c->names.items[i]);
        map_put(&seen, c->names.items[i], &seen);
    }
    return 0;
}

/* After the header, which must be equal to that of the first file. */
static int csv_begin(void *user, const struct data_file *f, const unsigned char **ret, struct err *e)
{
    struct csv *c = user;
    const unsigned char *p = start_of(f);
    AUTO_FINI(strlist) names = { .items = NULL };
    if (c->header) {
        if (read_header(c, f, &p, &names, e) < 0)
            return -1;
        for (size_t i = 0; i < names.n && i < c->names.n; i++)
            if (!str_eq(names.items[i], c->names.items[i]))
                return err_set(e, ERR_INPUT, "%s:1: column %zu is '%s', in %s it is '%s'", f->path, i + 1,
                               names.items[i], c->first_path, c->names.items[i]);
        if (names.n != c->names.n)
            return err_set(e, ERR_INPUT, "%s:1: %zu columns, %s has %zu", f->path, names.n, c->first_path, c->names.n);
    }
    *ret = p;
    return 0;
}

/* ---- a record ---- */

/* The start of a field, fit for a terminal. */
static const char *shown(const struct text_field *field, char out[SHOWN_MAX])
{
    bool whole = text_copy(field, out, SHOWN_MAX);
    for (char *p = out; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    if (!whole)
        memcpy(out + SHOWN_MAX - 4, "...", 4);
    return out;
}

static int bad_value(const struct data_column *c, const struct data_file *f, const unsigned char *at,
                     const struct text_field *field, struct err *e)
{
    static const char *const MUST[] = {
        [COLUMN_FLOAT] = "is not a number (words need type: category and a vocabulary)",
        [COLUMN_INT] = "is not a whole number",
        [COLUMN_CATEGORY] = "is not in the vocabulary",
    };
    char text[SHOWN_MAX];
    double v;
    if (field->p == field->end)
        return error_at(f, at, e, "column '%s' is empty; set its 'default' in columns to allow that", c->name);
    bool large = c->type != COLUMN_CATEGORY && text_number(field, &v) && fabs(v) > (double)FLT_MAX;
    return error_at(f, at, e, "column '%s': '%s' %s", c->name, shown(field, text),
                    large ? "is too large for a float" : MUST[c->type]);
}

/* The number that a field counts as. */
static int take_value(const struct data_column *c, const struct data_file *f, const unsigned char *at,
                      const struct text_field *raw, double *ret, struct err *e)
{
    struct text_field field = text_trim(*raw);
    double v;
    if (field.p == field.end && c->has_default) {
        *ret = c->fallback;
        return 0;
    }
    if (c->type == COLUMN_CATEGORY) {
        char word[VOCABULARY_WORD_MAX + 1];
        v = text_copy(&field, word, sizeof(word)) ? (double)column_word(c, word) : -1;
        if (v < 0)
            return bad_value(c, f, at, &field, e);
    } else if (!text_number(&field, &v) || fabs(v) > (double)FLT_MAX || (c->type == COLUMN_INT && v != floor(v))) {
        return bad_value(c, f, at, &field, e);
    }
    *ret = v;
    return 0;
}

static int wrong_count(const struct csv *c, const struct data_file *f, const unsigned char *record, struct err *e)
{
    const unsigned char *p = record;
    struct text_field field;
    size_t n = 1, line, column;
    while (text_field(&p, end_of(f), c->delimiter, &field) == TEXT_MORE)
        n++;
    text_place(f->map->data, record, &line, &column);
    return err_set(e, ERR_INPUT, "%s:%zu: %zu field%s, expected %zu%s", f->path, line, n, n == 1 ? "" : "s",
                   c->columns.n, c->header ? " as in the header" : " as in the first line");
}

static void put_feature(const struct data_column *column, double v, float *x)
{
    if (!column->one_hot) {
        x[column->place] = (float)v;
        return;
    }
    memset(x + column->place, 0, column->count * sizeof(*x));
    x[column->place + (size_t)v] = 1;
}

static int bad_weight(const struct data_column *c, const struct data_file *f, const unsigned char *at, double v,
                      struct err *e)
{
    return error_at(f, at, e, "column '%s': the weight of an example must be 0 or more, not %g", c->name, v);
}

/* The record at *p, which is not blank: features to x, several labels to y, the only one to *label, the weight to *w.
 */
static int take_record(const struct csv *c, const struct data_file *f, const unsigned char **p, float *x, float *y,
                       double *label, float *w, struct err *e)
{
    const unsigned char *record = *p, *end = end_of(f);
    enum text_result more = TEXT_MORE;
    for (size_t i = 0; i < c->columns.n; i++) {
        const struct data_column *column = &c->columns.c[i];
        const unsigned char *at = *p;
        struct text_field field;
        double v = 0;
        if (more == TEXT_LAST)
            return wrong_count(c, f, record, e);
        more = text_field(p, end, c->delimiter, &field);
        if (more > TEXT_LAST)
            return quote_error(f, *p, more, e);
        if (!column->used)
            continue;
        if (take_value(column, f, at, &field, &v, e) < 0)
            return -1;
        if (column->is_weight && !(v >= 0))
            return bad_weight(column, f, at, v, e);
        if (column->is_weight)
            *w = (float)v;
        else if (column->is_label && c->columns.n_labels > 1)
            y[column->place] = (float)v;
        else if (column->is_label)
            *label = v;
        else
            put_feature(column, v, x);
    }
    return more == TEXT_MORE ? wrong_count(c, f, record, e) : 0;
}

static int csv_survey(void *user, const struct data_file *f, int64_t number UNUSED, const unsigned char **p,
                      struct index_notes *notes, struct err *e)
{
    const struct csv *c = user;
    double label = 0;
    float weight;
    *p = text_record(*p, end_of(f));
    if (*p == end_of(f))
        return 0;
    const unsigned char *record = *p;
    if (take_record(c, f, p, c->scratch, c->scratch + c->columns.features, &label, &weight, e) < 0)
        return -1;
    if (c->columns.n_labels > 1)
        return 1;
    bool fits = label == floor(label) && label >= INT32_MIN && label <= INT32_MAX;
    if (!fits && c->columns.label >= 0 && c->columns.c[c->columns.label].type == COLUMN_INT)
        return error_at(f, record, e, "label %.0f does not fit 32 bits", label);
    notes->labels_whole = notes->labels_whole && fits;
    if (fits)
        notes->label_max = MAX(notes->label_max, (int64_t)label);
    return 1;
}

static int csv_skip(const void *user, const struct data_file *f, int64_t number UNUSED, const unsigned char **p,
                    struct err *e UNUSED)
{
    const struct csv *c = user;
    *p = text_skip(*p, end_of(f), c->delimiter);
    return 0;
}

static int csv_decode(const void *user, const struct data_file *f, int64_t number UNUSED, const unsigned char **p,
                      float *x, void *y, float *w, struct err *e)
{
    const struct csv *c = user;
    double label = 0;
    *p = text_record(*p, end_of(f));
    if (take_record(c, f, p, x, y, &label, w, e) < 0)
        return -1;
    if (c->records.integer_labels)
        *(int32_t *)y = (int32_t)label;
    else if (c->columns.n_labels == 1)
        *(float *)y = (float)label;
    return 0;
}

static int csv_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w, struct err *e)
{
    const struct csv *c = (const struct csv *)r;
    return indexed_read(&c->indexed, which, n, x, c->columns.features, y, c->columns.labels, w, e);
}

static const struct records_ops CSV_OPS = { .free = csv_free, .read = csv_read };
static const struct indexed_ops CSV_INDEXED = {
    .begin = csv_begin, .survey = csv_survey, .skip = csv_skip, .decode = csv_decode
};

/* ---- opening ---- */

static int open_columns(struct csv *c, const struct data_files *files, struct err *e)
{
    const struct data_file *first = &files->file[0];
    const unsigned char *p = start_of(first);
    c->first_path = first->path;
    if (read_header(c, first, &p, &c->names, e) < 0 || header_once(c, first, e) < 0 ||
        columns_of_names(c->at, first->path, &c->names, &c->columns, e) < 0)
        return -1;
    void *scratch;
    if (mem_alloc((c->columns.features + c->columns.labels) * sizeof(float), "a CSV record", &scratch, e) < 0)
        return -1;
    c->scratch = scratch;
    return 0;
}

static void describe(struct csv *c, uint64_t options)
{
    struct records *r = &c->records;
    r->n = c->indexed.n;
    r->x = shape_of(1, (int64_t[]){ (int64_t)c->columns.features });
    r->fingerprint = hash64_mix(indexed_fingerprint(&c->indexed), options);
    r->has_weights = c->columns.weighted;
    if (c->header)
        columns_names(&c->columns, &r->names);
    if (c->columns.label < 0)
        return;
    const struct data_column *label = &c->columns.c[c->columns.label];
    r->has_labels = true;
    if (c->columns.n_labels > 1) {
        r->y = shape_of(1, (int64_t[]){ (int64_t)c->columns.labels });
        return;
    }
    r->integer_labels = label->described ? label->type != COLUMN_FLOAT : c->indexed.notes.labels_whole;
    r->label_max = r->integer_labels ? c->indexed.notes.label_max : -1;
    r->y = r->integer_labels ? shape_of(0, NULL) : shape_of(1, (int64_t[]){ 1 });
}

static int open_files(struct csv *c, struct data_files *files, struct err *e)
{
    if (open_columns(c, files, e) < 0)
        return -1;
    uint64_t options = hash64_mix(columns_hash(&c->columns), (uint64_t)(unsigned char)c->delimiter * 2 + c->header);
    if (indexed_open(c->at, &CSV_INDEXED, c, options, files, &c->indexed, e) < 0)
        return -1;
    describe(c, options);
    return 0;
}

int csv_open(const struct data_place *at, struct records **ret, struct err *e)
{
    struct csv *c = xcalloc(1, sizeof(*c));
    AUTO(records) *r = &c->records;
    r->ops = &CSV_OPS;
    r->x_type = DT_FLOAT;
    r->label_max = -1;
    c->at = at;
    c->header = at->spec->header;
    c->delimiter = at->spec->delimiter != '\0' ? at->spec->delimiter : ',';

    struct data_place by_order = *at;
    by_order.like = NULL;
    if (!c->header) /* only a header has names */
        c->at = &by_order;

    struct data_files files;
    if (data_files_open(at, &files, e) < 0)
        return -1;
    int rc = open_files(c, &files, e);
    data_files_fini(&files);
    c->at = NULL;
    c->first_path = NULL;
    if (rc < 0)
        return -1;
    *ret = TAKE(r);
    return 0;
}
