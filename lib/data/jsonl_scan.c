/* Scans JSON by recursive descent with a limit on nesting. Everything that a strict parser refuses is refused, in
 * values that no column reads, too. */
#include "data/jsonl_scan.h"

#include <string.h>

#include "base/utf8.h"
#include "codec/json.h"
#include "data/csv_cause.h"

static const char ONE_LINE[] = "the line ends within the record, which must be on one line; convert the file: "
                               "pandas.read_json(...).to_json(..., orient='records', lines=True)";

void jsonl_scan_fini(struct jsonl_scan *s)
{
    buf_fini(&s->path);
}

const unsigned char *jsonl_space(const unsigned char *p, const unsigned char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

static void skip_space(struct jsonl_scan *s)
{
    s->p = jsonl_space(s->p, s->end);
}

/* What stands at p is not what JSON has there. */
static int expected(const struct jsonl_scan *s, const char *what, struct err *e)
{
    if (s->p == s->end)
        return csv_error_at(s->file, s->p, e, ONE_LINE);
    return csv_error_at(s->file, s->p, e, "is not JSON: %s is expected here", what);
}

static bool take(struct jsonl_scan *s, char c)
{
    bool is = s->p < s->end && *s->p == (unsigned char)c;
    s->p += is;
    return is;
}

/* ---- strings ---- */

static int hex_of(const unsigned char *p, const unsigned char *end)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = end - p > i && p[i] != '\0' ? strchr("0123456789abcdef", p[i] | 0x20) : NULL;
        if (digit == NULL || (p[i] < '0'))
            return -1;
        v = v * 16 + (int)(digit - "0123456789abcdef");
    }
    return v;
}

static bool is_high(int v)
{
    return v >= 0xD800 && v < 0xDC00;
}

static bool is_low(int v)
{
    return v >= 0xDC00 && v < 0xE000;
}

/* The character of \uXXXX at p, behind the u; *ret_n: the bytes read. -1: none; 0: NUL. */
static int32_t unicode_at(const unsigned char *p, const unsigned char *end, size_t *ret_n)
{
    int first = hex_of(p, end);
    *ret_n = 4;
    if (!is_high(first))
        return is_low(first) ? -1 : first;
    int second = end - p >= 6 && p[4] == '\\' && p[5] == 'u' ? hex_of(p + 6, end) : -1;
    *ret_n = 10;
    return is_low(second) ? 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00) : -1;
}

/* At the character behind a backslash. */
static int scan_escape(struct jsonl_scan *s, struct err *e)
{
    const unsigned char *start = s->p - 1;
    size_t n;
    if (s->p < s->end && *s->p != 'u' && *s->p != '\0' && strchr("\"\\/bfnrt", *s->p) != NULL) {
        s->p++;
        return 0;
    }
    if (!take(s, 'u'))
        return csv_error_at(s->file, start, e, "is not JSON: a backslash must be written as \\\\");
    int32_t c = unicode_at(s->p, s->end, &n);
    if (c == 0)
        return csv_error_at(s->file, start, e, "a text cannot have the character \\u0000; remove it");
    if (c < 0)
        return csv_error_at(s->file, start, e, "is not JSON: \\u must have four digits, and surrogates must be pairs");
    s->p += n;
    return 0;
}

/* At its quote. */
static int scan_string(struct jsonl_scan *s, struct err *e)
{
    for (s->p++; s->p < s->end && *s->p != '"';) {
        size_t n = *s->p < 0x80 ? 1 : utf8_length(s->p, (size_t)(s->end - s->p));
        if (n == 0)
            return csv_error_at(s->file, s->p, e, "is not valid UTF-8; convert the file, for example with iconv");
        if (*s->p < ' ')
            return csv_error_at(s->file, s->p, e, "is not JSON: a control character in a text is written as \\u%04x",
                                *s->p);
        bool escape = *s->p == '\\';
        s->p += n;
        if (escape && scan_escape(s, e) < 0)
            return -1;
    }
    return take(s, '"') ? 0 : expected(s, "a quote", e);
}

static void put_utf8(int32_t c, struct buf *ret)
{
    if (c < 0x80) {
        buf_char(ret, (char)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const int MARK[] = { 0, 0xC0, 0xE0, 0xF0 };
    buf_char(ret, (char)(MARK[more] | c >> (6 * more)));
    while (more-- > 0)
        buf_char(ret, (char)(0x80 | (c >> (6 * more) & 0x3F)));
}

void jsonl_unescape(const struct text_field *string, struct buf *ret)
{
    static const char WRITTEN[] = "bfnrt", MEANT[] = "\b\f\n\r\t";
    for (const unsigned char *p = string->p; p < string->end;) {
        const unsigned char *escape = memchr(p, '\\', (size_t)(string->end - p));
        buf_add(ret, p, (size_t)((escape != NULL ? escape : string->end) - p));
        if (escape == NULL)
            return;
        p = escape + 2;
        const char *which = strchr(WRITTEN, escape[1]);
        size_t n;
        if (escape[1] == 'u') {
            put_utf8(unicode_at(p, string->end, &n), ret);
            p += n;
        } else {
            buf_char(ret, which != NULL ? MEANT[which - WRITTEN] : (char)escape[1]);
        }
    }
}

/* ---- numbers and names of values ---- */

static bool scan_digits(struct jsonl_scan *s)
{
    const unsigned char *start = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return s->p > start;
}

static int scan_number(struct jsonl_scan *s, struct err *e)
{
    const unsigned char *start = s->p;
    take(s, '-');
    bool valid = take(s, '0') || scan_digits(s);
    if (valid && take(s, '.'))
        valid = scan_digits(s);
    if (valid && (take(s, 'e') || take(s, 'E'))) {
        if (!take(s, '-'))
            take(s, '+');
        valid = scan_digits(s);
    }
    if (!valid || (s->p < s->end && strchr(" \t,]}", *s->p) == NULL))
        return csv_error_at(s->file, start, e, "is not a number as JSON writes them");
    return 0;
}

static int scan_name(struct jsonl_scan *s, struct err *e)
{
    static const char *const NAMES[] = { "null", "true", "false" };
    static const char *const OTHERS[] = { "NaN", "Infinity", "None", "nan" };
    size_t left = (size_t)(s->end - s->p);
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (left >= strlen(NAMES[i]) && memcmp(s->p, NAMES[i], strlen(NAMES[i])) == 0) {
            s->p += strlen(NAMES[i]);
            return 0;
        }
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++)
        if (left >= strlen(OTHERS[i]) && memcmp(s->p, OTHERS[i], strlen(OTHERS[i])) == 0)
            return csv_error_at(s->file, s->p, e, "%s is not JSON; write null for a missing value", OTHERS[i]);
    return expected(s, "a value", e);
}

/* ---- objects and lists ---- */

static int scan_value(struct jsonl_scan *s, bool named, struct err *e);

/* Appends a key to the path of its object, which is `base` bytes long. */
static void enter(struct jsonl_scan *s, size_t base, const struct text_field *key)
{
    s->path.len = base;
    if (s->depth > 1)
        buf_char(&s->path, '.');
    jsonl_unescape(key, &s->path);
    s->path.data[s->path.len] = '\0';
}

static int keep(struct jsonl_scan *s, size_t which, const unsigned char *key, const unsigned char *value, struct err *e)
{
    struct jsonl_found *f = &s->found[which];
    if (f->p != NULL && f->depth == s->depth)
        return csv_error_at(s->file, key, e, "the record has this key twice; remove one of the two");
    if (f->p == NULL || f->depth > s->depth)
        *f = (struct jsonl_found){ .p = value, .end = s->p, .depth = s->depth };
    return 0;
}

/* named: what is in it can have a path. */
static int scan_member(struct jsonl_scan *s, size_t base, bool named, struct err *e)
{
    const unsigned char *start = s->p;
    if (s->p == s->end || *s->p != '"')
        return expected(s, "a key in quotes", e);
    if (scan_string(s, e) < 0)
        return -1;
    const struct text_field key = { .p = start + 1, .end = s->p - 1 };
    if (named)
        enter(s, base, &key);
    if (named && s->depth == 1 && s->keys != NULL)
        strlist_add(s->keys, s->path.data);
    intptr_t which = named && s->found != NULL ? (intptr_t)map_get(s->wanted, s->path.data) : 0;
    skip_space(s);
    if (!take(s, ':'))
        return expected(s, "':'", e);
    skip_space(s);
    const unsigned char *value = s->p;
    if (scan_value(s, named && s->path.len < s->longest, e) < 0)
        return -1;
    return which > 0 ? keep(s, (size_t)which - 1, start, value, e) : 0;
}

static int scan_object(struct jsonl_scan *s, bool named, struct err *e)
{
    size_t base = s->path.len;
    skip_space(s);
    if (take(s, '}'))
        return 0;
    do {
        skip_space(s);
        if (scan_member(s, base, named, e) < 0)
            return -1;
        skip_space(s);
    } while (take(s, ','));
    s->path.len = base;
    return take(s, '}') ? 0 : expected(s, "',' or '}'", e);
}

static int scan_list(struct jsonl_scan *s, struct err *e)
{
    skip_space(s);
    if (take(s, ']'))
        return 0;
    do {
        skip_space(s);
        if (scan_value(s, false, e) < 0)
            return -1;
        skip_space(s);
    } while (take(s, ','));
    return take(s, ']') ? 0 : expected(s, "',' or ']'", e);
}

static int scan_value(struct jsonl_scan *s, bool named, struct err *e)
{
    int c = s->p < s->end ? *s->p : '\0', rc;
    if (c == '"')
        return scan_string(s, e);
    if (c == '-' || (c >= '0' && c <= '9'))
        return scan_number(s, e);
    if (c != '{' && c != '[')
        return scan_name(s, e);
    if (s->depth == JSON_DEPTH_MAX)
        return csv_error_at(s->file, s->p, e, "is nested deeper than %d", JSON_DEPTH_MAX);
    s->p++;
    s->depth++;
    rc = c == '{' ? scan_object(s, named, e) : scan_list(s, e);
    s->depth--;
    return rc;
}

int jsonl_scan_record(struct jsonl_scan *s, struct err *e)
{
    if (s->end - s->p > JSONL_RECORD_MAX)
        return csv_error_at(s->file, s->p, e, "the record has %td bytes, at most %d", s->end - s->p, JSONL_RECORD_MAX);
    buf_reserve(&s->path, 1);
    skip_space(s);
    if (s->p == s->end || *s->p != '{')
        return csv_error_at(s->file, s->p, e, "each line must be a JSON object, such as {\"age\": 29, \"label\": 1}");
    if (scan_value(s, true, e) < 0)
        return -1;
    skip_space(s);
    if (s->p < s->end)
        return csv_error_at(s->file, s->p, e, "text follows the record; each record needs a line of its own");
    return 0;
}
