/* Reads the header of a csv data set and resolves its columns. All files must have the header of the first one. */
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

static int header_once(const struct csv_layout *l, const struct data_file *f, struct err *e)
{
    AUTO_FINI(map) seen = { 0 };
    char text[HEADER_TEXT];
    if (l->header && is_an_example(&l->names))
        return err_set(
            e, ERR_INPUT,
            "%s:%lld: the first line has numbers where the names of the columns should be: %s; set header: false if "
            "the file has no header",
            f->path, header_line(l), column_names_text(&l->names, text, sizeof(text)));
    for (size_t i = 0; l->header && i < l->names.n; i++) {
        if (map_get(&seen, l->names.items[i]) != NULL)
            return err_set(e, ERR_INPUT, "%s:%lld: two columns are named '%s'", f->path, header_line(l),
                           l->names.items[i]);
        map_put(&seen, l->names.items[i], &seen);
    }
    return 0;
}

int csv_layout_begin(const struct csv_layout *l, const struct data_file *f, const unsigned char **ret, struct err *e)
{
    const unsigned char *p = start_of(l, f);
    AUTO_FINI(strlist) names = { .items = NULL };
    if (l->json)
        return jsonl_begin(f, ret, e);
    if (l->header) {
        if (read_header(l, f, &p, &names, e) < 0)
            return -1;
        take_open_end(l, &names);
        for (size_t i = 0; i < names.n && i < l->names.n; i++)
            if (!str_eq(names.items[i], l->names.items[i]))
                return err_set(e, ERR_INPUT, "%s:%lld: column %zu is '%s', in %s it is '%s'", f->path, header_line(l),
                               i + 1, names.items[i], l->first_path, l->names.items[i]);
        if (names.n != l->names.n)
            return err_set(e, ERR_INPUT, "%s:%lld: %zu columns, %s has %zu", f->path, header_line(l), names.n,
                           l->first_path, l->names.n);
    }
    *ret = p;
    return 0;
}

static int open_header(struct csv_layout *l, const struct data_file *first, struct err *e)
{
    const unsigned char *p = text_record(start_of(l, first), csv_end_of(first));
    if (csv_check_first_line(&l->dialect, first, p, e) < 0 || read_header(l, first, &p, &l->names, e) < 0)
        return -1;
    l->open_end = take_open_end(l, &l->names);
    return header_once(l, first, e);
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
        columns_of_names(at, first->path, &l.names, &l.columns, e) < 0)
        return -1;
    *ret = l;
    l = (struct csv_layout){ .header = false };
    return 0;
}

/* ---- a record ---- */

struct csv_record {
    const struct data_file *file;
    const unsigned char *start;
};

static int wrong_count(const struct csv_layout *l, const struct csv_record *r, struct err *e)
{
    return csv_wrong_count(&l->dialect, r->file, r->start, l->columns.n, l->header ? "header" : "first line", e);
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
    if (visit->number == NULL || !l->dialect.plain || !column_is_number(c) || !c->used ||
        !text_short_number(&at, csv_end_of(place->file), l->dialect.delimiter, &v, ret_more) ||
        !visit->number(visit->user, c, v))
        return false;
    *p = at;
    return true;
}

static int read_record(const struct csv_layout *l, const struct data_file *f, const unsigned char **p,
                       const struct csv_visit *visit, struct err *e)
{
    const struct csv_record at = { .file = f, .start = *p };
    enum text_result more = TEXT_MORE;
    int left_out = 0;
    for (size_t i = 0; i < l->columns.n; i++) {
        const struct csv_place place = { .file = f, .at = *p, .column = &l->columns.c[i] };
        struct text_field field;
        if (more == TEXT_LAST)
            return wrong_count(l, &at, e);
        if (take_number(l, visit, &place, p, &more))
            continue;
        more = text_field(p, csv_end_of(f), l->dialect.delimiter, &field);
        if (more > TEXT_LAST)
            return csv_quote_error(f, *p, more, e);
        int rc = place.column->used || visit->all ? visit->value(visit->user, &place, &field, e) : 0;
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
