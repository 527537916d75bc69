/* Names the cause of a csv file that cannot be read. What a field could mean is tried in the order of a table, so that
 * the first cause that fits is the one that is told. */
#include "data/csv_cause.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "data/date.h"

enum { SHOWN_MAX = 40, LINE_MAX = 80, WORDS_MAX = 200, CAUSE_MAX = 400 };

int csv_error_at(const struct data_file *f, const unsigned char *p, struct err *e, const char *fmt, ...)
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

int csv_quote_error(const struct data_file *f, const unsigned char *p, enum text_result r, struct err *e)
{
    return csv_error_at(f, p, e, "%s",
                        r == TEXT_OPEN_QUOTE ? "this quote is never closed"
                                             : "a closing quote must be the end of its field");
}

/* The start of a text, fit for a terminal. */
static const char *shown(const struct text_field *field, char *out, size_t out_size)
{
    size_t n = 0;
    const unsigned char *p = field->p;
    for (; p < field->end && n + 1 < out_size; p += field->doubled && *p == '"' ? 2 : 1)
        out[n++] = *p < ' ' || *p == 0x7f ? '?' : (char)*p;
    out[n] = '\0';
    if (p < field->end)
        memcpy(out + out_size - 4, "...", 4);
    return out;
}

static const unsigned char *end_of(const struct data_file *f)
{
    return f->map->data + f->map->size;
}

static struct text_field line_at(const struct data_file *f, const unsigned char *p)
{
    const unsigned char *end = memchr(p, '\n', (size_t)(end_of(f) - p));
    struct text_field line = { .p = p, .end = end != NULL ? end : end_of(f) };
    if (line.end > line.p && line.end[-1] == '\r')
        line.end--;
    return line;
}

/* ---- a field that is not a number ---- */

struct number_style { /* a way to write numbers, and how a data set says so */
    char decimal, thousands;
    const char *fields;
};

static const struct number_style READINGS[] = {
    { '.', ',', "thousands: \",\"" },
    { ',', '\0', "decimal: \",\"" },
    { ',', '.', "decimal: \",\" and thousands: \".\"" },
    { '.', ' ', "thousands: \" \"" },
    { ',', ' ', "decimal: \",\" and thousands: \" \"" },
    { '.', '\'', "thousands: \"'\"" },
    { '.', '_', "thousands: \"_\"" },
    { '.', '\0', "decimal: \".\"" },
};

static bool has(const struct text_field *field, char c)
{
    return memchr(field->p, c, (size_t)(field->end - field->p)) != NULL;
}

/* What sets a reading apart from the data set's own occurs in the field. */
static bool differs_here(const struct csv_dialect *d, const struct number_style *r, const struct text_field *field)
{
    return (r->thousands == '\0' || has(field, r->thousands)) && (r->decimal == d->decimal || has(field, r->decimal));
}

/* A number that is written in another way: "it is 0.2 with decimal: ','". */
static bool another_reading(const struct csv_dialect *d, const struct text_field *field, char out[CAUSE_MAX])
{
    char number[32];
    AUTO_FINI(buf) text = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(READINGS); i++) {
        const struct number_style *r = &READINGS[i];
        double v;
        if (differs_here(d, r, field) &&
            csv_dialect_number(&(struct csv_dialect){ .decimal = r->decimal, .thousands = r->thousands }, field, &v))
            buf_printf(&text, "%s%s with %s", text.len > 0 ? ", or " : "", str_double(v, number), r->fields);
    }
    return text.len > 0 && str_fmt(out, CAUSE_MAX, "is not a number as the data set writes them; it is %s", text.data);
}

static bool spaces_before_quote(const struct text_field *field, char out[CAUSE_MAX])
{
    return *field->p == '"' &&
           str_fmt(out, CAUSE_MAX, "has spaces before its quote: remove them, so that the quotes enclose the field");
}

/* "NA", "-": a text that often stands for a missing value, but not in this data set. */
static bool missing_elsewhere(const struct text_field *field, char out[CAUSE_MAX])
{
    static const char *const WORDS[] = { "NA", "N/A", "nan", "NULL", "None", "missing", "unknown" };
    char text[SHOWN_MAX];
    text_copy(field, text, sizeof(text));
    bool is_one = true; /* of signs only */
    for (const char *p = text; *p != '\0'; p++)
        is_one = is_one && ispunct((unsigned char)*p) != 0;
    for (size_t i = 0; i < COUNT_OF(WORDS); i++)
        is_one = is_one || strcasecmp(text, WORDS[i]) == 0;
    return is_one && str_fmt(out, CAUSE_MAX, "is not a number; if it stands for a missing value, list it in naValues");
}

static bool number_of_c(const struct text_field *field, char out[CAUSE_MAX])
{
    char text[SHOWN_MAX], *end;
    if (!text_copy(field, text, sizeof(text)))
        return false;
    double v = strtod(text, &end);
    if (*end != '\0')
        return false;
    return str_fmt(out, CAUSE_MAX, "%s",
                   isinf(v) ? "is not a finite number" : "is a hexadecimal number; write it as a decimal one");
}

/* How a date may be written besides ISO 8601, alone and before a time. The first ones are tried first. */
static const char *const DATE_FORMATS[] = { "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
                                            "%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y",
                                            "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%H:%M",    "%H:%M:%S" };
static const char *const TIME_FORMATS[] = { "", " %H:%M", " %H:%M:%S" };

/* format: "%d.%m.%Y"; when another one reads another date, both with their dates. "": none reads it. */
static void find_formats(const struct text_field *field, struct buf *out)
{
    char first[32] = "", format[32], day[32], other_day[32];
    double v, first_v = 0;
    for (size_t i = 0; i < COUNT_OF(DATE_FORMATS) * COUNT_OF(TIME_FORMATS); i++) {
        str_fmt(format, sizeof(format), "%s%s", DATE_FORMATS[i / COUNT_OF(TIME_FORMATS)],
                TIME_FORMATS[i % COUNT_OF(TIME_FORMATS)]);
        if (!date_parse(field, format, &v) || (first[0] != '\0' && v == first_v))
            continue;
        if (first[0] != '\0') {
            buf_printf(out, "format: \"%s\" (%s) or format: \"%s\" (%s)", first, date_text(first_v, day), format,
                       date_text(v, other_day));
            return;
        }
        str_fmt(first, sizeof(first), "%s", format);
        first_v = v;
    }
    if (first[0] != '\0')
        buf_printf(out, "format: \"%s\"", first);
}

static bool date(const struct text_field *field, char out[CAUSE_MAX])
{
    AUTO_FINI(buf) formats = BUF_INIT;
    double v;
    find_formats(field, &formats);
    return (formats.len > 0 || date_parse(field, NULL, &v)) &&
           str_fmt(out, CAUSE_MAX, "is a date or a time; describe the column with type: date%s%s",
                   formats.len > 0 ? " and " : "", formats.len > 0 ? formats.data : "");
}

/* A label has no encoding. */
static bool truth_value(const struct data_column *c, const struct text_field *field, char out[CAUSE_MAX])
{
    static const char *const PAIRS[][2] = { { "False", "True" }, { "false", "true" }, { "FALSE", "TRUE" },
                                            { "no", "yes" },     { "No", "Yes" },     { "NO", "YES" } };
    char text[SHOWN_MAX];
    text_copy(field, text, sizeof(text));
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++)
        if (str_eq(text, PAIRS[i][0]) || str_eq(text, PAIRS[i][1]))
            return str_fmt(out, CAUSE_MAX,
                           "is a truth value; for 0 and 1 describe the column as {type: category, vocabulary: [\"%s\", "
                           "\"%s\"]%s}",
                           PAIRS[i][0], PAIRS[i][1], c->is_label ? "" : ", encoding: int");
    return false;
}

/* "12 %", "$5", "3.5kg": a number behind or before something short. */
static bool has_unit(const struct text_field *field, char out[CAUSE_MAX])
{
    enum { UNIT_MAX = 4 };
    double v;
    struct text_field part = *field;
    bool found = false;
    for (int cut = 1; !found && cut <= UNIT_MAX && field->p + cut < field->end; cut++) {
        part = text_trim((struct text_field){ .p = field->p, .end = field->end - cut });
        found = text_number(&part, &v);
        bool sign = field->p[0] == '$' || field->p[0] >= 0x80;
        if (!found && sign) {
            part = text_trim((struct text_field){ .p = field->p + cut, .end = field->end });
            found = text_number(&part, &v);
        }
    }
    return found && str_fmt(out, CAUSE_MAX, "has a unit or a sign beside its number: remove it from the file");
}

typedef bool cause_fn(const struct text_field *field, char out[CAUSE_MAX]);
static cause_fn *const CAUSES[] = { spaces_before_quote, missing_elsewhere, number_of_c, date, has_unit };

/* Where nothing is known of the cause, the line may show it. */
static const char *unknown_cause(const struct csv_place *place, const struct text_field *field, char out[CAUSE_MAX])
{
    char start[LINE_MAX];
    const unsigned char *p = place->at;
    while (p > place->file->map->data && p[-1] != '\n')
        p--;
    struct text_field line = line_at(place->file, p);
    bool more = line.p < field->p || field->end < line.end;
    str_fmt(out, CAUSE_MAX, "is not a number (words need type: category and vocabulary: auto, or a list)%s%s%s",
            more ? "; the line is '" : "", more ? shown(&line, start, sizeof(start)) : "", more ? "'" : "");
    return out;
}

static const char *not_a_number(const struct csv_dialect *d, const struct csv_place *place,
                                const struct text_field *field, char out[CAUSE_MAX])
{
    const struct data_column *c = place->column;
    if (another_reading(d, field, out) || truth_value(c, field, out))
        return out;
    for (size_t i = 0; i < COUNT_OF(CAUSES); i++)
        if (CAUSES[i](field, out))
            return out;
    return unknown_cause(place, field, out);
}

/* Of a column of type date. */
static const char *not_a_date(const struct data_column *c, const struct text_field *field, char out[CAUSE_MAX])
{
    AUTO_FINI(buf) formats = BUF_INIT;
    find_formats(field, &formats);
    str_fmt(out, CAUSE_MAX, "is not a date as %s%s%s%s%s", c->format != NULL ? "\"" : "2020-01-31",
            c->format != NULL ? c->format : " or 2020-01-31 12:30:01", c->format != NULL ? "\"" : "",
            formats.len > 0 ? "; set " : "", formats.len > 0 ? formats.data : "");
    return out;
}

/* ---- a field that is not among the words ---- */

static const char *not_a_word(const struct data_column *c, const struct text_field *field, char out[CAUSE_MAX])
{
    AUTO_FINI(strlist) words = { 0 };
    char text[SHOWN_MAX], list[WORDS_MAX], hint[128];
    const struct map_slot *word;
    if (spaces_before_quote(field, out))
        return out;
    for (size_t i = 0; words.n < 1000 && (word = map_next(&c->vocabulary, &i)) != NULL;)
        strlist_add(&words, word->key);
    str_did_you_mean(shown(field, text, sizeof(text)), (const char *const *)words.items, words.n, hint, sizeof(hint));
    str_fmt(out, CAUSE_MAX, "is not in the vocabulary%s", hint[0] != '\0' ? hint : "");
    if (hint[0] == '\0')
        str_fmt(out, CAUSE_MAX, "is not in the vocabulary; it has %s", column_names_text(&words, list, sizeof(list)));
    return out;
}

/* ---- a header that is read as an example ---- */

static bool is_in_a_header(const struct csv_dialect *d, const struct csv_place *place)
{
    const unsigned char *p = place->at;
    size_t line, column;
    enum text_result more = TEXT_MORE;
    text_place(place->file->map->data, p, &line, &column);
    while (p > place->file->map->data && p[-1] != '\n')
        p--;
    for (double v; line == d->first_example && more == TEXT_MORE;) {
        struct text_field field;
        more = text_field(&p, end_of(place->file), d->delimiter, &field);
        field = text_trim(field);
        if (more > TEXT_LAST || csv_dialect_number(d, &field, &v))
            return false;
    }
    return line == d->first_example;
}

/* ---- errors ---- */

int csv_bad_value(const struct csv_dialect *d, const struct csv_place *place, const struct text_field *field,
                  struct err *e)
{
    const struct data_column *c = place->column;
    char text[SHOWN_MAX], cause[CAUSE_MAX];
    double v;
    const char *what = cause;
    if (c->type == COLUMN_CATEGORY)
        what = not_a_word(c, field, cause);
    else if (c->type == COLUMN_DATE)
        what = not_a_date(c, field, cause);
    else if (is_in_a_header(d, place))
        what = "is not a number, and no field of the first line is; if they are names of columns, remove header: false";
    else if (!csv_dialect_number(d, field, &v))
        what = not_a_number(d, place, field, cause);
    else
        what = fabs(v) > (double)FLT_MAX ? "is too large for a float" : "is not a whole number";
    return csv_error_at(place->file, place->at, e, "column '%s': '%s' %s", c->name, shown(field, text, sizeof(text)),
                        what);
}

static const char *cure_of_no_value(const struct data_column *c)
{
    if (c->is_label)
        return "set missing: drop to leave out such examples";
    if (c->is_weight)
        return "set the column's 'default' in columns, or missing: drop to leave out such examples";
    if (c->length > 0)
        return "set the column's 'default', which makes it an empty list, or missing: drop to leave out such examples";
    if (c->type == COLUMN_TEXT)
        return "set the column's 'default', such as \"\", or missing: drop to leave out such examples";
    return "set missing: mean or mode, the column's 'default', or missing: drop to leave out such examples";
}

int csv_no_value(const struct csv_place *place, const struct text_field *field, struct err *e)
{
    const struct data_column *c = place->column;
    char text[SHOWN_MAX];
    bool empty = field->p == field->end;
    const char *word = empty || c->type != COLUMN_CATEGORY ? "" : "; if this is a word, set naValues: []";
    return csv_error_at(place->file, place->at, e, "column '%s': the %s is missing%s%s%s; %s%s", c->name,
                        c->is_label    ? "label"
                        : c->is_weight ? "weight"
                                       : "value",
                        empty ? "" : " ('", empty ? "" : shown(field, text, sizeof(text)), empty ? "" : "')",
                        cure_of_no_value(c), word);
}

static size_t count_fields(const struct data_file *f, const unsigned char *p, char delimiter)
{
    size_t n = 1;
    struct text_field ignored;
    while (text_field(&p, end_of(f), delimiter, &ignored) == TEXT_MORE)
        n++;
    return n;
}

int csv_wrong_count(const struct csv_dialect *d, const struct data_file *f, const unsigned char *p, size_t n,
                    const char *as_in, struct err *e)
{
    size_t line, column, has = count_fields(f, p, d->delimiter);
    struct text_field text = line_at(f, p);
    char start[LINE_MAX];
    text_place(f->map->data, p, &line, &column);
    bool open_end = has == n + 1 && text.end > text.p && text.end[-1] == (unsigned char)d->delimiter;
    return err_set(e, ERR_INPUT, "%s:%zu: %zu field%s, expected %zu as in the %s: '%s'%s", f->path, line, has,
                   has == 1 ? "" : "s", n, as_in, shown(&text, start, sizeof(start)),
                   open_end ? "; the line ends with a delimiter, which the other line does not" : "");
}

/* ---- the first line ---- */

/* A delimiter that divides both lines into the same number of fields; NUL: none does. */
static char other_delimiter(const struct data_file *f, const unsigned char *first, const unsigned char *second)
{
    static const char DELIMITERS[] = ";\t|,";
    for (const char *one = DELIMITERS; *one != '\0'; one++) {
        size_t n = count_fields(f, first, *one);
        if (n > 1 && (second == end_of(f) || count_fields(f, second, *one) == n))
            return *one;
    }
    return '\0';
}

/* Excel writes "sep=;" to say which delimiter follows. */
static bool is_excels(const struct text_field *line)
{
    return line->end - line->p == 5 && strncasecmp((const char *)line->p, "sep=", 4) == 0;
}

static int check_lines(const struct data_file *f, struct err *e)
{
    const unsigned char *start = f->map->data;
    if (memchr(start, '\n', f->map->size) != NULL || f->map->size == 0)
        return 0;
    const unsigned char *cr = memchr(start, '\r', f->map->size - 1);
    if (cr == NULL)
        return 0;
    return err_set(e, ERR_INPUT,
                   "%s: its lines end with CR alone; end them with LF, for example: tr '\\r' '\\n' < FILE > NEW",
                   f->path);
}

int csv_check_first_line(const struct csv_dialect *d, const struct data_file *f, const unsigned char *p, struct err *e)
{
    size_t line, column;
    char start[LINE_MAX], other[8];
    struct text_field first = line_at(f, p);
    if (check_lines(f, e) < 0)
        return -1;
    text_place(f->map->data, p, &line, &column);
    if (is_excels(&first))
        return err_set(e, ERR_INPUT,
                       "%s:%zu: '%s' is Excel's note of the delimiter; set delimiter: \"%c\" and skipRows: %zu",
                       f->path, line, shown(&first, start, sizeof(start)), first.p[4], line);
    if (count_fields(f, p, d->delimiter) > 1)
        return 0;
    const unsigned char *second = text_record(text_skip(p, end_of(f), d->delimiter), end_of(f));
    char delimiter = other_delimiter(f, p, second);
    if (delimiter != '\0')
        return err_set(e, ERR_INPUT, "%s:%zu: '%s' is one column with the delimiter '%c'; set delimiter: \"%s\"",
                       f->path, line, shown(&first, start, sizeof(start)), d->delimiter,
                       delimiter == '\t' ? "\\t" : (other[0] = delimiter, other[1] = '\0', other));
    size_t next = second == end_of(f) ? 1 : count_fields(f, second, d->delimiter);
    if (next > 1)
        return err_set(e, ERR_INPUT,
                       "%s:%zu: '%s' is one column, but the next line has %zu; set skipRows: %zu if it is a title or a "
                       "comment",
                       f->path, line, shown(&first, start, sizeof(start)), next, line);
    return 0;
}
