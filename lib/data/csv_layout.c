/* Reads the headers of a csv data set and resolves its columns: those of the first file, which others have by name. */
#include "data/csv_layout.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "data/jsonl.h"

enum { HEADER_NAME_MAX = 1024, HEADER_TEXT = 200 };

void csv_layout_fini(struct csv_layout *l)
{
    columns_fini(&l->columns);
    csv_dialect_fini(&l->dialect);
    strlist_fini(&l->names);
    free(l->first_path);
    free(l->ignored);
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&l->orders, &i)) != NULL;) {
        free(((struct csv_order *)slot->value)->column);
        free(slot->value);
    }
    map_fini(&l->orders);
}

/* Behind the byte order mark and the lines that are skipped. */
static const unsigned char *start_of(const struct csv_layout *l, const struct data_file *f)
{
    bool bom = f->map->size >= 3 && memcmp(f->map->data, "\xEF\xBB\xBF", 3) == 0;
    const unsigned char *p = f->map->data + (bom ? 3 : 0);
    for (int64_t i = 0; i < l->skip_rows && p < csv_end_of(f); i++) {
        const unsigned char *line_end = memchr(p, '\n', (size_t)(csv_end_of(f) - p));
        p = line_end != NULL ? line_end + 1 : csv_end_of(f);
    }
    return p;
}

/* ---- the header ---- */

static int read_header(const struct csv_layout *l, const struct data_file *f, const unsigned char **p,
                       struct strlist *ret, struct err *e)
{
    enum text_result more;
    *p = text_record(*p, csv_end_of(f));
    if (*p == csv_end_of(f))
        return err_set(e, ERR_INPUT, "%s: %s", f->path,
                       l->skip_rows > 0 ? "has no lines behind those of skipRows" : "is empty");
    do {
        struct text_field field;
        char name[HEADER_NAME_MAX];
        const unsigned char *at = *p;
        more = text_field(p, csv_end_of(f), l->dialect.delimiter, &field);
        if (more > TEXT_LAST)
            return csv_quote_error(f, *p, more, e);
        field = text_trim(field);
        if (!text_copy(&field, name, sizeof(name)))
            return csv_error_at(f, at, e, "this name is too long");
        if (!l->header)
            str_fmt(name, sizeof(name), "%zu", ret->n);
        if (ret->n >= COLUMNS_MAX)
            return csv_error_at(f, at, e, "more than %d columns", COLUMNS_MAX);
        strlist_add(ret, name);
    } while (more == TEXT_MORE);
    return 0;
}

/* A delimiter at the end of a header is not a column without a name. */
static bool take_open_end(const struct csv_layout *l, struct strlist *names)
{
    if (!l->header || names->n < 2 || names->items[names->n - 1][0] != '\0')
        return false;
    free(names->items[--names->n]);
    return true;
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

/* Blank lines before the header are not counted. */
static long long header_line(const struct csv_layout *l)
{
    return (long long)l->skip_rows + 1;
}

static int header_once(const struct csv_layout *l, const struct data_file *f, const struct strlist *names,
                       struct err *e)
{
    AUTO_FINI(map) seen = { 0 };
    char text[HEADER_TEXT];
    if (is_an_example(names))
        return err_set(
            e, ERR_INPUT,
            "%s:%lld: the first line has numbers where the names of the columns should be: %s; set header: false if "
            "the file has no header",
            f->path, header_line(l), column_names_text(names, text, sizeof(text)));
    for (size_t i = 0; i < names->n; i++) {
        if (map_get(&seen, names->items[i]) != NULL)
            return err_set(e, ERR_INPUT, "%s:%lld: two columns are named '%s'", f->path, header_line(l),
                           names->items[i]);
        map_put(&seen, names->items[i], &seen);
    }
    return 0;
}

int csv_layout_begin(const struct csv_layout *l, const struct data_file *f, const unsigned char **ret, struct err *e)
{
    const unsigned char *p = start_of(l, f);
    AUTO_FINI(strlist) names = { .items = NULL };
    if (l->json)
        return jsonl_begin(f, ret, e);
    if (l->header && read_header(l, f, &p, &names, e) < 0)
        return -1;
    *ret = p;
    return 0;
}

static int open_header(struct csv_layout *l, const struct data_file *first, struct err *e)
{
    const unsigned char *p = text_record(start_of(l, first), csv_end_of(first));
    if (csv_check_first_line(&l->dialect, first, p, e) < 0 || read_header(l, first, &p, &l->names, e) < 0)
        return -1;
    l->open_end = take_open_end(l, &l->names);
    return l->header ? header_once(l, first, &l->names, e) : 0;
}

/* ---- the other files ---- */

static bool same_names(const struct strlist *a, const struct strlist *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = str_eq(a->items[i], b->items[i]);
    return same;
}

/* All columns that the job uses must be there. */
static int check_used(const struct csv_layout *l, const struct data_file *f, const struct strlist *names,
                      const struct csv_order *order, struct err *e)
{
    AUTO_FINI(strlist) missing = { 0 };
    auto_free bool *has = xcalloc(l->columns.n, sizeof(*has));
    char lacking[HEADER_TEXT], first[HEADER_TEXT], here[HEADER_TEXT];
    for (size_t i = 0; i < order->n; i++)
        if (order->column[i] >= 0)
            has[order->column[i]] = true;
    for (size_t i = 0; i < l->columns.n; i++)
        if (l->columns.c[i].used && !has[i])
            strlist_add(&missing, l->names.items[i]);
    if (missing.n == 0)
        return 0;
    return err_set(e, ERR_INPUT, "%s:%lld: no column %s; the columns of %s are %s; here are %s", f->path,
                   header_line(l), column_names_text(&missing, lacking, sizeof(lacking)), l->first_path,
                   column_names_text(&l->names, first, sizeof(first)), column_names_text(names, here, sizeof(here)));
}

static void number_names(const struct strlist *names, struct map *ret)
{
    bool done = ret->n > 0;
    for (size_t i = 0; !done && i < names->n; i++)
        map_put(ret, names->items[i], (void *)(uintptr_t)(i + 1));
}

/* A sentence about the first file that has more. */
static void note_ignored(struct csv_layout *l, const struct data_file *f, const struct strlist *names,
                         const struct csv_order *order)
{
    AUTO_FINI(strlist) ignored = { 0 };
    char text[HEADER_TEXT];
    for (size_t i = 0; l->ignored == NULL && i < names->n; i++)
        if (order->column[i] < 0)
            strlist_add(&ignored, names->items[i]);
    if (ignored.n > 0)
        l->ignored = xasprintf("%s:%lld: columns that %s does not have are ignored: %s", f->path, header_line(l),
                               l->first_path, column_names_text(&ignored, text, sizeof(text)));
}

/* `places`: of the names of the first file, counted from 1. */
static int order_columns(struct csv_layout *l, const struct data_file *f, const struct map *places,
                         const struct strlist *names, struct err *e)
{
    struct csv_order *order = xcalloc(1, sizeof(*order));
    *order = (struct csv_order){ .n = names->n, .column = xcalloc(names->n, sizeof(*order->column)) };
    for (size_t i = 0; i < names->n; i++)
        order->column[i] = (int32_t)(uintptr_t)map_get(places, names->items[i]) - 1;
    map_put(&l->orders, f->path, order);
    note_ignored(l, f, names, order);
    return check_used(l, f, names, order, e);
}

static int open_others(struct csv_layout *l, const struct data_files *files, struct err *e)
{
    AUTO_FINI(map) places = { 0 };
    for (size_t i = 1; l->header && i < files->n; i++) {
        const struct data_file *f = &files->file[i];
        const unsigned char *p = start_of(l, f);
        AUTO_FINI(strlist) names = { .items = NULL };
        if (read_header(l, f, &p, &names, e) < 0)
            return -1;
        take_open_end(l, &names);
        if (same_names(&names, &l->names) || map_get(&l->orders, f->path) != NULL)
            continue;
        number_names(&l->names, &places);
        if (header_once(l, f, &names, e) < 0 || order_columns(l, f, &places, &names, e) < 0)
            return -1;
    }
    return 0;
}

int csv_layout_open(const struct data_place *at, const struct data_files *files, struct csv_layout *ret, struct err *e)
{
    const struct data_file *first = &files->file[0];
    AUTO_FINI(csv_layout) l = { .json = at->spec->format != DATA_CSV,
                                .texts = at->spec->format == DATA_TEXT,
                                .header = at->spec->header,
                                .skip_rows = at->spec->skip_rows };
    csv_dialect_init(&l.dialect, at->spec);
    l.first_path = xstrdup(first->path);
    if ((l.json ? jsonl_names(at, files, &l.names, e) : open_header(&l, first, e)) < 0 ||
        columns_of_names(at, first->path, &l.names, &l.columns, e) < 0 || (!l.json && open_others(&l, files, e) < 0))
        return -1;
    *ret = l;
    l = (struct csv_layout){ .header = false };
    return 0;
}

/* ---- a record ---- */

struct csv_record {
    const struct data_file *file;
    const unsigned char *start;
    const struct csv_order *order; /* NULL: that of the first file */
};

static const struct csv_order *order_of(const struct csv_layout *l, const struct data_file *f)
{
    return l->orders.n > 0 ? map_get(&l->orders, f->path) : NULL;
}

int64_t csv_layout_field(const struct csv_layout *l, const struct data_file *f, size_t column)
{
    const struct csv_order *order = order_of(l, f);
    for (size_t i = 0; order != NULL && i < order->n; i++)
        if (order->column[i] == (int32_t)column)
            return (int64_t)i;
    return order != NULL ? -1 : (int64_t)column;
}

static size_t fields_of(const struct csv_layout *l, const struct csv_record *r)
{
    return r->order != NULL ? r->order->n : l->columns.n;
}

/* NULL: the field is ignored. */
static const struct data_column *column_of(const struct csv_layout *l, const struct csv_record *r, size_t field)
{
    int64_t i = r->order != NULL ? r->order->column[field] : (int64_t)field;
    return i >= 0 ? &l->columns.c[i] : NULL;
}

static int wrong_count(const struct csv_layout *l, const struct csv_record *r, struct err *e)
{
    return csv_wrong_count(&l->dialect, r->file, r->start, fields_of(l, r), l->header ? "header" : "first line", e);
}

/* The field behind the last column, which has no name. */
static int take_nameless(const struct csv_layout *l, const struct csv_record *r, const unsigned char **p,
                         bool *ret_ends, struct err *e)
{
    struct text_field rest;
    const unsigned char *at = *p;
    enum text_result more = text_field(p, csv_end_of(r->file), l->dialect.delimiter, &rest);
    if (more > TEXT_LAST)
        return csv_quote_error(r->file, *p, more, e);
    *ret_ends = more == TEXT_LAST;
    rest = text_trim(rest);
    if (*ret_ends && rest.p < rest.end)
        return csv_error_at(
            r->file, at, e,
            "there is a value behind the last column that has a name: the header ends with a delimiter");
    return 0;
}

/* Behind the last column of a record, whose text_field() was `more`: moves *p to the next line. */
static int end_record(const struct csv_layout *l, const struct csv_record *r, const unsigned char **p,
                      enum text_result more, struct err *e)
{
    bool ends = more == TEXT_LAST;
    if (!ends && l->open_end && take_nameless(l, r, p, &ends, e) < 0)
        return -1;
    return ends ? 0 : wrong_count(l, r, e);
}

static bool take_number(const struct csv_layout *l, const struct csv_visit *visit, const struct csv_place *place,
                        const unsigned char **p, enum text_result *ret_more)
{
    const struct data_column *c = place->column;
    const unsigned char *at = *p;
    double v;
    if (visit->number == NULL || !l->dialect.plain || c == NULL || !column_is_number(c) || !c->used ||
        !text_short_number(&at, csv_end_of(place->file), l->dialect.delimiter, &v, ret_more) ||
        !visit->number(visit->user, c, v))
        return false;
    *p = at;
    return true;
}

static int read_record(const struct csv_layout *l, const struct data_file *f, const unsigned char **p,
                       const struct csv_visit *visit, struct err *e)
{
    const struct csv_record at = { .file = f, .start = *p, .order = order_of(l, f) };
    const size_t n = fields_of(l, &at);
    enum text_result more = TEXT_MORE;
    int left_out = 0;
    for (size_t i = 0; i < n; i++) {
        const struct csv_place place = { .file = f, .at = *p, .column = column_of(l, &at, i) };
        struct text_field field;
        if (more == TEXT_LAST)
            return wrong_count(l, &at, e);
        if (take_number(l, visit, &place, p, &more))
            continue;
        more = text_field(p, csv_end_of(f), l->dialect.delimiter, &field);
        if (more > TEXT_LAST)
            return csv_quote_error(f, *p, more, e);
        bool wanted = place.column != NULL && (place.column->used || visit->all);
        int rc = wanted ? visit->value(visit->user, &place, &field, e) : 0;
        if (rc < 0)
            return -1;
        left_out |= rc;
    }
    return end_record(l, &at, p, more, e) < 0 ? -1 : left_out;
}

int csv_layout_record(const struct csv_layout *l, const struct data_file *f, const unsigned char **p,
                      const struct csv_visit *visit, struct err *e)
{
    return (l->json ? jsonl_record : read_record)(l, f, p, visit, e);
}

const unsigned char *csv_layout_next(const struct csv_layout *l, const struct data_file *f, const unsigned char *p)
{
    return l->json ? jsonl_next(f, p) : text_record(p, csv_end_of(f));
}

const unsigned char *csv_layout_skip(const struct csv_layout *l, const struct data_file *f, const unsigned char *p)
{
    return l->json ? jsonl_skip(f, p) : text_skip(p, csv_end_of(f), l->dialect.delimiter);
}

uint64_t csv_layout_hash(const struct csv_layout *l, const struct data_spec *spec)
{
    uint64_t written = csv_dialect_hash(&l->dialect, spec);
    uint64_t h = hash64_mix(columns_hash(&l->columns), (uint64_t)(unsigned char)l->dialect.delimiter * 2 + l->header);
    h = written != 0 ? hash64_mix(h, written) : h;
    return l->json ? hash64_mix(h, DATA_JSONL) : h;
}
