/* CSV (RFC 4180), JSON Lines, and texts, which are made into those: one record a line, read through an index
 * (indexed.h). The pass that makes the index decodes every record, so a bad field in the last line is found before
 * training begins. It also determines whether a label column without a type holds class numbers (all whole), and passes
 * over the records that the job leaves out. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/rng.h"
#include "data/column_row.h"
#include "data/csv_layout.h"
#include "data/csv_value.h"
#include "data/indexed.h"
#include "data/jsonl.h"
#include "data/values.h"

enum { NAMES_TEXT = 400 }; /* of columns in a message */

struct csv {
    struct records records;
    const struct data_place *at; /* while it is opened */
    struct csv_layout layout;
    bool drops; /* records that lack a value in one of the columns are left out */
    struct indexed indexed;
    struct strlist notes; /* of texts */
    float *scratch;       /* features of the record that the pass reads, followed by its labels */
};

static void csv_free(struct records *r)
{
    struct csv *c = (struct csv *)r;
    indexed_fini(&c->indexed);
    csv_layout_fini(&c->layout);
    column_names_fini(&r->names);
    strlist_fini(&c->notes);
    free(c->scratch);
    free(c);
}

static int csv_begin(void *user, const struct data_file *f, const unsigned char **ret, struct err *e)
{
    const struct csv *c = user;
    return csv_layout_begin(&c->layout, f, ret, e);
}

/* ---- a record ---- */

/* 1: the value is missing, and the record is left out. */
static int take_missing(const struct csv_place *place, const struct text_field *field, double *ret, struct err *e)
{
    if (place->column->has_default) {
        *ret = place->column->fallback;
        return 0;
    }
    return place->column->missing == MISSING_DROP ? 1 : csv_no_value(place, field, e);
}

/* What a field counts as. 1: as take_missing(). */
static int take_field(const struct csv *c, const struct csv_place *place, const struct text_field *raw,
                      struct column_value *ret, struct err *e)
{
    const char *fallback = place->column->fallback_text;
    struct text_field field = text_trim(*raw);
    enum csv_found found = csv_value(&c->layout.dialect, place, &field, &ret->number);
    ret->text = *raw;
    if (found == CSV_NO_VALUE)
        return csv_bad_value(&c->layout.dialect, place, &field, e);
    if (found == CSV_MISSING && fallback != NULL) {
        const unsigned char *p = (const unsigned char *)fallback;
        ret->text = (struct text_field){ .p = p, .end = p + strlen(fallback) };
    }
    return found == CSV_MISSING ? take_missing(place, &field, &ret->number, e) : 0;
}

/* The label is one number, and not those of several columns or of a list. */
static bool one_label(const struct csv *c)
{
    const struct data_columns *all = &c->layout.columns;
    return all->n_labels == 1 && all->c[all->label].shape.rank == 0;
}

/* What a record holds. */
struct csv_row {
    const unsigned char *start; /* where it begins in the file */
    bool wanted;                /* its values are put into `row` */
    struct column_row row;
};

/* A list of numbers. 1: as take_missing(). */
static int take_list(const struct csv_place *place, const struct text_field *field, struct csv_row *row, struct err *e)
{
    const struct data_column *column = place->column;
    auto_free double *v = xcalloc(jsonl_numbers_max(column, field), sizeof(*v));
    double padding = column->fallback; /* what follows the end of a list */
    size_t n = 0;
    int rc = place->missing ? take_missing(place, field, &padding, e) : jsonl_numbers(place, field, v, &n, e);
    for (size_t i = 0; rc == 0 && row->wanted && i < column->count; i++)
        column_row_put_number(column, i, i < n ? v[i] : padding, &row->row);
    return rc;
}

/* What take_example() does with a field. */
struct taking {
    const struct csv *csv;
    struct csv_row *row;
};

/* 1: as take_missing(). */
static int take_value(void *user, const struct csv_place *place, const struct text_field *field, struct err *e)
{
    const struct taking *taking = user;
    const struct csv *c = taking->csv;
    struct csv_row *row = taking->row;
    const struct data_column *column = place->column;
    struct column_value v = { .number = 0 };
    if (column->shape.rank > 0)
        return take_list(place, field, row, e);
    int rc = take_field(c, place, field, &v, e);
    if (rc != 0)
        return rc;
    if (column->is_weight && !(v.number >= 0))
        return csv_error_at(place->file, place->at, e,
                            "column '%s': the weight of an example must be 0 or more, not %g", column->name, v.number);
    if (row->wanted)
        column_row_put(&c->layout.columns, column, &v, &row->row);
    return 0;
}

/* False: take_value() shall say what is wrong with it. */
static bool take_number(void *user, const struct data_column *column, double v)
{
    const struct taking *taking = user;
    const struct csv *c = taking->csv;
    const struct column_value value = { .number = v };
    if (column->shape.rank > 0 || (column->is_weight && !(v >= 0)) ||
        csv_value_number(&c->layout.dialect, column, v) != CSV_VALUE)
        return false;
    if (taking->row->wanted)
        column_row_put(&c->layout.columns, column, &value, &taking->row->row);
    return true;
}

/* The next record that is not left out. 1: there is one, 0: there is none. */
static int take_example(const struct csv *c, const struct data_file *f, const unsigned char **p, struct csv_row *row,
                        int64_t *left_out, struct err *e)
{
    struct taking taking = { .csv = c, .row = row };
    const struct csv_visit visit = { .value = take_value, .number = take_number, .user = &taking };
    int rc = 1;
    while (rc == 1) {
        *p = csv_layout_next(&c->layout, f, *p);
        if (*p == csv_end_of(f))
            return 0;
        row->start = *p;
        row->row.rounded = NULL;
        rc = csv_layout_record(&c->layout, f, p, &visit, e);
        *left_out += rc == 1;
    }
    return rc < 0 ? -1 : 1;
}

static bool fits_int32(double v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

static int csv_survey(void *user, const struct data_file *f, int64_t number, const unsigned char **p,
                      struct index_notes *notes, struct err *e)
{
    const struct csv *c = user;
    struct csv_row row = { .wanted = true, .row = { .x = c->scratch, .y = c->scratch + c->layout.columns.features } };
    int rc = take_example(c, f, p, &row, &notes->left_out, e);
    if (rc <= 0)
        return rc;
    if (row.row.rounded != NULL && notes->rounded_at < 0) {
        notes->rounded_at = number;
        notes->rounded = (int64_t)row.row.rounded->place;
        notes->rounded_from = row.row.rounded_from;
    }
    if (!one_label(c))
        return 1;
    if (c->layout.columns.c[c->layout.columns.label].type == COLUMN_INT && !fits_int32(row.row.label))
        return csv_error_at(f, row.start, e, "label %.0f does not fit 32 bits", row.row.label);
    label_span_add(&notes->labels, row.row.label, number);
    return 1;
}

static int skip_example(const struct csv *c, const struct data_file *f, const unsigned char **p, struct err *e)
{
    struct csv_row row = { .wanted = false };
    int64_t ignored = 0;
    return take_example(c, f, p, &row, &ignored, e) < 0 ? -1 : 0;
}

static int csv_skip(const void *user, const struct data_file *f, int64_t number UNUSED, const unsigned char **p,
                    struct err *e)
{
    const struct csv *c = user;
    if (c->drops)
        return skip_example(c, f, p, e);
    *p = csv_layout_skip(&c->layout, f, *p);
    return 0;
}

static int csv_decode(const void *user, const struct data_file *f, int64_t number, const unsigned char **p, float *x,
                      void *y, float *w, struct err *e)
{
    const struct csv *c = user;
    struct csv_row row = { .wanted = true, .row = { .x = x, .y = y } };
    int64_t ignored = 0;
    int rc = take_example(c, f, p, &row, &ignored, e);
    if (rc == 0)
        return err_set(e, ERR_INPUT, "%s: ends before its record %" PRId64 ": it was changed while it was open",
                       f->path, number);
    if (rc < 0)
        return -1;
    if (w != NULL)
        *w = row.row.weight;
    if (c->records.integer_labels)
        *(int32_t *)y = (int32_t)row.row.label;
    else if (one_label(c))
        *(float *)y = (float)row.row.label;
    return 0;
}

static int csv_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w, struct err *e)
{
    const struct csv *c = (const struct csv *)r;
    return indexed_read(&c->indexed, which, n, x, c->layout.columns.features, y, c->layout.columns.labels, w, e);
}

struct finding { /* where a record has the value of a column */
    const struct data_column *column;
    const unsigned char *at;
};

static int find_value(void *user, const struct csv_place *place, const struct text_field *field UNUSED,
                      struct err *e UNUSED)
{
    struct finding *finding = user;
    if (place->column == finding->column)
        finding->at = place->at;
    return 0;
}

/* The path of a text. */
static void place_text(const struct data_file *f, const unsigned char *record, struct buf *out)
{
    AUTO_FINI(buf) name = BUF_INIT;
    struct err ignored;
    if (jsonl_text(f, &record, "path", &name, &ignored) < 0)
        return;
    auto_free char *path = path_join(f->path, name.data);
    buf_str(out, path);
}

static void csv_place(const struct records *r, int64_t record, enum record_part part, size_t i, struct buf *out)
{
    const struct csv *c = (const struct csv *)r;
    const struct indexed_file *f;
    const unsigned char *start;
    struct csv_row row = { .wanted = false };
    int64_t left_out = 0;
    struct err ignored;
    const struct data_column *of = columns_find(&c->layout.columns, part == RECORD_LABELS, i);
    struct finding finding = { .column = of };
    const struct csv_visit visit = { .value = find_value, .user = &finding };
    size_t line, column;
    if (of == NULL || indexed_find(&c->indexed, record, &f, &start, &ignored) < 0 ||
        take_example(c, &f->file, &start, &row, &left_out, &ignored) <= 0)
        return;
    if (c->layout.texts) {
        place_text(&f->file, row.start, out);
        return;
    }
    if (csv_layout_record(&c->layout, &f->file, &row.start, &visit, &ignored) < 0)
        return;
    text_place(f->file.map->data, finding.at, &line, &column);
    buf_printf(out, "%s:%zu:%zu: column '%s'", f->file.path, line, column, of->name);
    if (of->shape.rank > 0)
        buf_printf(out, ", number %zu", i - of->place);
}

static int text_key(const struct csv *c, const char *key, struct err *e)
{
    size_t i = 0;
    while (c->indexed.file[i].index.n == 0)
        i++;
    return jsonl_find_key(&c->indexed.file[i].file, key, e);
}

static int text_column(const struct csv *c, const char *name, size_t *ret, struct err *e)
{
    *ret = 0;
    if (c->layout.json)
        return text_key(c, name, e);
    char list[NAMES_TEXT], hint[NAMES_TEXT];
    const struct strlist *names = &c->layout.names;
    for (size_t i = 0; i < names->n; i++)
        if (str_eq(names->items[i], name)) {
            *ret = i;
            return 0;
        }
    str_did_you_mean(name, (const char *const *)names->items, names->n, hint, sizeof(hint));
    return err_set(e, ERR_INPUT, "%s has no column '%s'%s%s", c->layout.first_path, name,
                   hint[0] != '\0' ? hint : "; the columns are ",
                   hint[0] != '\0' ? "" : column_names_text(names, list, sizeof(list)));
}

/* A column in the texts of records. */
struct text_of {
    const char *name;
    size_t column; /* of csv */
};

static int add_key(const struct data_file *f, const unsigned char *at, const char *key, struct strlist *ret,
                   struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (jsonl_text(f, &at, key, &text, e) < 0)
        return -1;
    strlist_add(ret, text.data);
    return 0;
}

/* The field of the record at *p, which moves behind the record. */
static int take_text(const struct csv *c, const struct data_file *f, const unsigned char **p, const struct text_of *of,
                     struct strlist *ret, struct err *e)
{
    const unsigned char *at = *p = csv_layout_next(&c->layout, f, *p);
    struct csv_row row = { .wanted = false };
    int64_t left_out = 0;
    struct text_field field;
    if (c->drops) {
        if (take_example(c, f, p, &row, &left_out, e) < 0)
            return -1;
        at = row.start;
    } else {
        *p = csv_layout_skip(&c->layout, f, *p);
    }
    if (c->layout.json)
        return add_key(f, at, of->name, ret, e);
    int64_t place = csv_layout_field(&c->layout, f, of->column);
    if (place < 0)
        return err_set(e, ERR_INPUT, "%s has no column '%s'", f->path, of->name);
    do
        text_field(&at, csv_end_of(f), c->layout.dialect.delimiter, &field);
    while (place-- > 0);
    field = text_trim(field);
    auto_free char *text = xmalloc((size_t)(field.end - field.p) + 1);
    text_copy(&field, text, (size_t)(field.end - field.p) + 1);
    strlist_add(ret, text);
    return 0;
}

static int csv_texts(const struct records *r, const char *column, int64_t first, size_t n, struct strlist *ret,
                     struct err *e)
{
    const struct csv *c = (const struct csv *)r;
    const struct indexed_file *f = NULL;
    const unsigned char *p = NULL;
    struct text_of of = { .name = column };
    if (text_column(c, column, &of.column, e) < 0)
        return -1;
    for (int64_t i = first; i < first + (int64_t)n; i++) {
        bool next = f == NULL || i == f->first + f->index.n;
        if ((next && indexed_find(&c->indexed, i, &f, &p, e) < 0) || take_text(c, &f->file, &p, &of, ret, e) < 0)
            return -1;
    }
    return 0;
}

/* The name by which people call the column that the label is not. */
static const char *better_label(const struct csv *c)
{
    static const char *const NAMES[] = { "label", "labels", "target", "class", "y" };
    for (size_t i = 0; c->layout.header && i < COUNT_OF(NAMES); i++)
        for (size_t j = 0; j < c->layout.columns.n; j++)
            if (!c->layout.columns.c[j].is_label && !c->layout.columns.c[j].is_weight &&
                strcasecmp(c->layout.columns.c[j].name, NAMES[i]) == 0)
                return c->layout.columns.c[j].name;
    return NULL;
}

static void csv_warn(const struct records *r, struct strlist *ret)
{
    const struct csv *c = (const struct csv *)r;
    const struct index_notes *notes = &c->indexed.notes;
    const char *name = better_label(c);
    auto_free char *so = name != NULL ? xasprintf(NOTHING_TO_LEARN "; if '%s' is the label, set label: %s", name, name)
                                      : xstrdup(NOTHING_TO_LEARN "; 'label' chooses another column");
    if (notes->rounded_at >= 0)
        values_warn_rounded(r, notes->rounded_at, (size_t)notes->rounded, notes->rounded_from, ret);
    values_warn_equal(r, c->layout.texts ? NOTHING_TO_LEARN : so, ret);
    for (size_t i = 0; i < c->notes.n; i++)
        strlist_add(ret, c->notes.items[i]);
    if (c->layout.ignored != NULL)
        strlist_add(ret, c->layout.ignored);
}

static const struct records_ops CSV_OPS = {
    .free = csv_free, .read = csv_read, .place = csv_place, .texts = csv_texts, .warn = csv_warn
};
static const struct indexed_ops CSV_INDEXED = {
    .begin = csv_begin, .survey = csv_survey, .skip = csv_skip, .decode = csv_decode
};

/* ---- opening ---- */

static int open_layout(struct csv *c, const struct data_files *files, struct err *e)
{
    void *scratch;
    if (csv_layout_open(c->at, files, &c->layout, e) < 0)
        return -1;
    for (size_t i = 0; i < c->layout.columns.n; i++) {
        const struct data_column *one = &c->layout.columns.c[i];
        if (column_learns(one))
            return data_error(
                c->at, "columns", e,
                "column '%s' asks for words or a value that data.train would have to show; write them here", one->name);
        c->drops = c->drops || (one->used && one->missing == MISSING_DROP);
    }
    if (mem_alloc((c->layout.columns.features + c->layout.columns.labels) * sizeof(float), "a CSV record", &scratch,
                  e) < 0)
        return -1;
    c->scratch = scratch;
    return 0;
}

static void describe(struct csv *c, uint64_t options)
{
    struct records *r = &c->records;
    const struct indexed *ix = &c->indexed;
    r->n = ix->n;
    r->left_out = ix->notes.left_out;
    r->x = columns_shape(&c->layout.columns);
    r->fingerprint = hash64_mix(indexed_fingerprint(ix), options);
    r->has_weights = c->layout.columns.weighted;
    columns_names(&c->layout.columns, &r->names);
    r->names.by_place = !c->layout.header;
    r->x_fields = columns_fields(&c->layout.columns, false);
    r->y_fields = columns_fields(&c->layout.columns, true);
    if (c->layout.columns.label < 0)
        return;
    const struct data_column *label = &c->layout.columns.c[c->layout.columns.label];
    r->has_labels = true;
    if (!one_label(c)) {
        bool list = c->layout.columns.n_labels == 1;
        r->y = list ? label->shape : shape_of(1, (int64_t[]){ (int64_t)c->layout.columns.labels });
        return;
    }
    r->labels = ix->notes.labels;
    r->integer_labels = label->described ? label->type != COLUMN_FLOAT
                                         : r->labels.whole && fits_int32(r->labels.min) && fits_int32(r->labels.max);
    r->y = r->integer_labels ? shape_of(0, NULL) : shape_of(1, (int64_t[]){ 1 });
}

/* For the cache of rows, which hold labels as whole numbers or as floats. */
static void describe_files(struct csv *c)
{
    struct records *r = &c->records;
    r->path = c->indexed.file[0].file.path;
    r->cache_key = hash64_mix(r->fingerprint, r->integer_labels);
    for (size_t i = 0; i < c->indexed.n_files; i++) {
        const struct data_file *f = &c->indexed.file[i].file;
        r->cache_key = hash64_mix(r->cache_key, hash64_mix(f->cache_key, f->changed));
        r->bytes += f->map->size;
    }
}

static int open_files(struct csv *c, struct data_files *files, struct err *e)
{
    if (open_layout(c, files, e) < 0)
        return -1;
    uint64_t options = csv_layout_hash(&c->layout, c->at->spec);
    if (indexed_open(c->at, &CSV_INDEXED, c, options, files, &c->indexed, e) < 0)
        return -1;
    describe(c, options);
    describe_files(c);
    return 0;
}

int csv_open(const struct data_place *at, struct records **ret, struct err *e)
{
    struct csv *c = xcalloc(1, sizeof(*c));
    AUTO(records) *r = &c->records;
    r->ops = &CSV_OPS;
    r->cost = READ_PARSES_TEXT;
    r->x_type = DT_FLOAT;
    c->at = at;

    struct data_files files;
    if (data_files_open(at, &files, e) < 0)
        return -1;
    int rc = open_files(c, &files, e);
    r->names.classes = files.classes;
    c->notes = files.notes;
    files.classes = files.notes = (struct strlist){ .items = NULL };
    data_files_fini(&files);
    c->at = NULL;
    if (rc < 0)
        return -1;
    *ret = TAKE(r);
    return 0;
}
