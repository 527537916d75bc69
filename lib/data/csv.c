/* CSV (RFC 4180): one record a line, read through an index (indexed.h). The pass that makes the index decodes every
 * record, so a bad field in the last line is found before training begins. It also determines whether a label column
 * without a type holds class numbers (all whole). */
#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "base/rng.h"
#include "data/columns.h"
#include "data/indexed.h"
#include "data/text.h"
#include "data/values.h"

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

/* What a record holds. */
struct csv_row {
    float *x, *y; /* y: of several labels */
    double label; /* the only one */
    float weight;
    const struct data_column *rounded; /* the first `type: int` feature that a float does not hold; NULL: none */
    double rounded_from;
};

static inline void put_feature(const struct data_column *column, double v, struct csv_row *row)
{
    float *x = row->x + column->place;
    if (column->one_hot) {
        memset(x, 0, column->count * sizeof(*x));
        x[(size_t)v] = 1;
        return;
    }
    *x = (float)v;
    if (column->type == COLUMN_INT && row->rounded == NULL && (double)*x != v) {
        row->rounded = column;
        row->rounded_from = v;
    }
}

static int bad_weight(const struct data_column *c, const struct data_file *f, const unsigned char *at, double v,
                      struct err *e)
{
    return error_at(f, at, e, "column '%s': the weight of an example must be 0 or more, not %g", c->name, v);
}

static inline void put_row(const struct csv *c, const struct data_column *column, double v, struct csv_row *row)
{
    if (column->is_weight)
        row->weight = (float)v;
    else if (column->is_label && c->columns.n_labels > 1)
        row->y[column->place] = (float)v;
    else if (column->is_label)
        row->label = v;
    else
        put_feature(column, v, row);
}

/* The record at *p, which is not blank. */
static int take_record(const struct csv *c, const struct data_file *f, const unsigned char **p, struct csv_row *row,
                       struct err *e)
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
        put_row(c, column, v, row);
    }
    return more == TEXT_MORE ? wrong_count(c, f, record, e) : 0;
}

static bool fits_int32(double v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

static int csv_survey(void *user, const struct data_file *f, int64_t number, const unsigned char **p,
                      struct index_notes *notes, struct err *e)
{
    const struct csv *c = user;
    struct csv_row row = { .x = c->scratch, .y = c->scratch + c->columns.features };
    *p = text_record(*p, end_of(f));
    if (*p == end_of(f))
        return 0;
    const unsigned char *record = *p;
    if (take_record(c, f, p, &row, e) < 0)
        return -1;
    if (row.rounded != NULL && notes->rounded_at < 0) {
        notes->rounded_at = number;
        notes->rounded = (int64_t)row.rounded->place;
        notes->rounded_from = row.rounded_from;
    }
    if (c->columns.n_labels != 1)
        return 1;
    if (c->columns.c[c->columns.label].type == COLUMN_INT && !fits_int32(row.label))
        return error_at(f, record, e, "label %.0f does not fit 32 bits", row.label);
    label_span_add(&notes->labels, row.label, number);
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
    struct csv_row row = { .x = x, .y = y };
    *p = text_record(*p, end_of(f));
    if (take_record(c, f, p, &row, e) < 0)
        return -1;
    if (w != NULL)
        *w = row.weight;
    if (c->records.integer_labels)
        *(int32_t *)y = (int32_t)row.label;
    else if (c->columns.n_labels == 1)
        *(float *)y = (float)row.label;
    return 0;
}

static int csv_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w, struct err *e)
{
    const struct csv *c = (const struct csv *)r;
    return indexed_read(&c->indexed, which, n, x, c->columns.features, y, c->columns.labels, w, e);
}

static const unsigned char *field_at(const struct csv *c, const struct data_file *f, const unsigned char *record,
                                     size_t column)
{
    struct text_field ignored;
    for (size_t i = 0; i < column; i++)
        text_field(&record, end_of(f), c->delimiter, &ignored);
    return record;
}

static void csv_place(const struct records *r, int64_t record, enum record_part part, size_t i, struct buf *out)
{
    const struct csv *c = (const struct csv *)r;
    const struct indexed_file *f;
    const unsigned char *start;
    struct err ignored;
    const struct data_column *of = columns_find(&c->columns, part == RECORD_LABELS, i);
    size_t line, column;
    if (of == NULL || indexed_find(&c->indexed, record, &f, &start, &ignored) < 0)
        return;
    const unsigned char *record_start = text_record(start, end_of(&f->file)); /* behind blank lines */
    text_place(f->file.map->data, field_at(c, &f->file, record_start, (size_t)(of - c->columns.c)), &line, &column);
    buf_printf(out, "%s:%zu:%zu: column '%s'", f->file.path, line, column, of->name);
}

/* The name by which people call the column that the label is not. */
static const char *better_label(const struct csv *c)
{
    static const char *const NAMES[] = { "label", "labels", "target", "class", "y" };
    for (size_t i = 0; c->header && i < COUNT_OF(NAMES); i++)
        for (size_t j = 0; j < c->columns.n; j++)
            if (!c->columns.c[j].is_label && !c->columns.c[j].is_weight &&
                strcasecmp(c->columns.c[j].name, NAMES[i]) == 0)
                return c->columns.c[j].name;
    return NULL;
}

static void csv_warn(const struct records *r, struct strlist *ret)
{
    const struct csv *c = (const struct csv *)r;
    const struct index_notes *notes = &c->indexed.notes;
    const char *name = better_label(c);
    auto_free char *cure = name != NULL ? xasprintf("; if '%s' is the label, set label: %s", name, name)
                                        : xstrdup("; 'label' chooses another column");
    if (notes->rounded_at >= 0)
        values_warn_rounded(r, notes->rounded_at, (size_t)notes->rounded, notes->rounded_from, ret);
    values_warn_equal(r, cure, ret);
}

static const struct records_ops CSV_OPS = { .free = csv_free, .read = csv_read, .place = csv_place, .warn = csv_warn };
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
    r->labels = c->indexed.notes.labels;
    r->integer_labels = label->described ? label->type != COLUMN_FLOAT
                                         : r->labels.whole && fits_int32(r->labels.min) && fits_int32(r->labels.max);
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
    c->at = at;
    c->header = at->spec->header;
    c->delimiter = at->spec->delimiter != '\0' ? at->spec->delimiter : ',';

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
