/* Splits CSV records and parses numbers. Numbers give the same float as strtod; common lengths take an exact fast
 * path, and all others use strtod. */
#include "data/text.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_DIGITS = 15 }; /* whole numbers below 10^15 are doubles */

/* The end of a field that is followed by p: a delimiter, a line end or the end of the file. */
static enum text_result end_field(const unsigned char **p, const unsigned char *end, char delimiter)
{
    const unsigned char *at = *p;
    if (at < end && *at == '\r' && (at + 1 == end || at[1] == '\n'))
        at++;
    if (at == end || *at == '\n') {
        *p = at == end ? at : at + 1;
        return TEXT_LAST;
    }
    if (at == *p && *at == (unsigned char)delimiter) {
        *p = at + 1;
        return TEXT_MORE;
    }
    return TEXT_BEHIND_QUOTE;
}

static enum text_result quoted_field(const unsigned char **p, const unsigned char *end, char delimiter,
                                     struct text_field *ret)
{
    const unsigned char *open = *p;
    struct text_field f = { .p = open + 1 };
    for (const unsigned char *at = f.p;; at += 2) {
        at = memchr(at, '"', (size_t)(end - at));
        if (at == NULL)
            return TEXT_OPEN_QUOTE; /* *p is the quote that opens */
        if (at + 1 < end && at[1] == '"') {
            f.doubled = true;
            continue;
        }
        f.end = at;
        *p = at + 1;
        *ret = f;
        return end_field(p, end, delimiter);
    }
}

enum text_result text_field(const unsigned char **p, const unsigned char *end, char delimiter, struct text_field *ret)
{
    const unsigned char *at = *p;
    if (at < end && *at == '"')
        return quoted_field(p, end, delimiter, ret);

    while (at < end && *at != (unsigned char)delimiter && *at != '\n')
        at++;
    struct text_field f = { .p = *p, .end = at };
    bool last = at == end || *at == '\n';
    if (last && f.end > f.p && f.end[-1] == '\r')
        f.end--;
    *p = at == end ? at : at + 1;
    *ret = f;
    return last ? TEXT_LAST : TEXT_MORE;
}

const unsigned char *text_record(const unsigned char *p, const unsigned char *end)
{
    for (;;) {
        const unsigned char *at = p;
        if (at < end && *at == '\r')
            at++;
        if (at == end)
            return end;
        if (*at != '\n')
            return p;
        p = at + 1;
    }
}

const unsigned char *text_skip(const unsigned char *p, const unsigned char *end, char delimiter)
{
    p = text_record(p, end);
    const unsigned char *line_end = memchr(p, '\n', (size_t)(end - p));
    if (line_end == NULL)
        line_end = end;
    if (memchr(p, '"', (size_t)(line_end - p)) == NULL)
        return line_end == end ? end : line_end + 1;

    struct text_field f;
    while (p < end && text_field(&p, end, delimiter, &f) == TEXT_MORE)
        ;
    return p;
}

bool text_copy(const struct text_field *f, char *out, size_t out_size)
{
    size_t n = 0;
    const unsigned char *p = f->p;
    for (; p < f->end && *p != '\0' && n + 1 < out_size; p++) {
        out[n++] = (char)*p;
        if (f->doubled && *p == '"')
            p++;
    }
    out[n] = '\0';
    return p >= f->end;
}

/* Digits with an optional point: adds them to *mantissa (up to 19) and counts the power of ten. */
struct decimal {
    uint64_t mantissa;
    int digits, exponent;
    bool any, negative, exact;
};

static const unsigned char *take_digits(const unsigned char *p, const unsigned char *end, struct decimal *d,
                                        int exponent_step)
{
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        d->any = true;
        if (d->digits == 19) {
            d->exact = false; /* strtod shall decide */
            continue;
        }
        d->mantissa = d->mantissa * 10 + (uint64_t)(*p - '0');
        d->digits += d->mantissa > 0;
        d->exponent += exponent_step;
    }
    return p;
}

static const unsigned char *take_exponent(const unsigned char *p, const unsigned char *end, struct decimal *d)
{
    if (p == end || (*p | 0x20) != 'e')
        return p;
    const unsigned char *at = p + 1;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    if (at == end || *at < '0' || *at > '9')
        return p;
    int v = 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        v = v < 100000 ? v * 10 + (*at - '0') : v;
    d->exponent += negative ? -v : v;
    return at;
}

/* What strtod makes of a text that is known to be a decimal number. */
static bool slow_number(const struct text_field *f, double *ret)
{
    char text[512];
    if (!text_copy(f, text, sizeof(text)))
        return false;
    double v = strtod(text, NULL);
    if (!isfinite(v))
        return false;
    *ret = v;
    return true;
}

/* Both operands exact, so one operation rounds right (Clinger, "How to read floating point numbers accurately", PLDI
 * 1990). */
static const double TEN[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

bool text_number(const struct text_field *f, double *ret)
{
    struct decimal d = { .exact = true };
    const unsigned char *p = f->p;

    if (p < f->end && (*p == '-' || *p == '+'))
        d.negative = *p++ == '-';
    p = take_digits(p, f->end, &d, 0);
    if (p < f->end && *p == '.')
        p = take_digits(p + 1, f->end, &d, -1);
    if (!d.any)
        return false;
    p = take_exponent(p, f->end, &d);
    if (p != f->end)
        return false;
    if (!d.exact || d.mantissa > (uint64_t)1 << 53 || d.exponent > 22 || d.exponent < -22)
        return slow_number(f, ret);
    double v = (double)d.mantissa;
    v = d.exponent < 0 ? v / TEN[-d.exponent] : v * TEN[d.exponent];
    *ret = d.negative ? -v : v;
    return true;
}

static const unsigned char *add_digits(const unsigned char *p, const unsigned char *end, uint64_t *mantissa)
{
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        *mantissa = *mantissa * 10 + (uint64_t)(*p - '0');
    return p;
}

bool text_short_number(const unsigned char **p, const unsigned char *end, char delimiter, double *ret,
                       enum text_result *ret_more)
{
    bool negative = *p < end && **p == '-';
    const unsigned char *first = *p + negative;
    const unsigned char *limit = end - first > SHORT_DIGITS + 1 ? first + SHORT_DIGITS + 1 : end;
    uint64_t mantissa = 0;
    const unsigned char *at = add_digits(first, limit, &mantissa);
    ptrdiff_t digits = at - first, behind_point = 0;
    if (at < limit && *at == '.') {
        const unsigned char *point = ++at;
        at = add_digits(point, limit, &mantissa);
        behind_point = at - point;
    }
    bool last = at == end || *at == '\n';
    if (digits + behind_point == 0 || digits + behind_point > SHORT_DIGITS ||
        (!last && *at != (unsigned char)delimiter))
        return false;
    double v = behind_point > 0 ? (double)mantissa / TEN[behind_point] : (double)mantissa;
    *ret = negative ? -v : v;
    *ret_more = last ? TEXT_LAST : TEXT_MORE;
    *p = at == end ? at : at + 1;
    return true;
}

void text_place(const unsigned char *start, const unsigned char *p, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1;
    const unsigned char *line_start = start;
    for (const unsigned char *at = start; (at = memchr(at, '\n', (size_t)(p - at))) != NULL; line++)
        line_start = ++at;
    *ret_line = line;
    *ret_column = (size_t)(p - line_start) + 1;
}
