/* Strict parsing of numbers (the whole text, in range), nearest names for suggestions, and sizes and durations as
 * text. */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool str_eq(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

/* strtoX skip leading spaces; a number here begins at once. */
static bool begins_number(const char *s)
{
    return *s != '\0' && !isspace((unsigned char)*s);
}

int str_i64(const char *s, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (!begins_number(s) || *end != '\0')
        return err_set(e, ERR_INPUT, "'%s' is not a whole number", s);
    if (errno == ERANGE || v < min || v > max)
        return err_set(e, ERR_INPUT, "%s is out of range; it must be %" PRId64 " to %" PRId64, s, min, max);
    *ret = v;
    return 0;
}

int str_f64(const char *s, double *ret, struct err *e)
{
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    if (!begins_number(s) || *end != '\0')
        return err_set(e, ERR_INPUT, "'%s' is not a number", s);
    if (errno == ERANGE && fabs(v) > 1)
        return err_set(e, ERR_INPUT, "%s is too large for a number", s);
    *ret = v;
    return 0;
}

int str_bool(const char *s, bool *ret, struct err *e)
{
    static const struct {
        const char *word;
        bool value;
    } WORDS[] = { { "true", true }, { "false", false }, { "yes", true }, { "no", false },
                  { "on", true },   { "off", false },   { "1", true },   { "0", false } };

    for (size_t i = 0; i < COUNT_OF(WORDS); i++) {
        if (strcasecmp(s, WORDS[i].word) == 0) {
            *ret = WORDS[i].value;
            return 0;
        }
    }
    return err_set(e, ERR_INPUT, "'%s' is neither true nor false", s);
}

enum {
    WORD_MAX = 64, /* longer words get no suggestion */
    PART_MIN = 5,  /* a shorter word is not looked for within names */
    PARTS_MAX = 5, /* suggestions of a part */
};

/* Edit distance in which two swapped neighbours count as one edit ("optimal string alignment"); case does not
 * count. Three rows of the usual table: before[] is two above row[]. */
static size_t edit_distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = MIN(above[j - 1] + (x == y ? 0 : 1), MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && tolower((unsigned char)a[i - 2]) == y)
                row[j] = MIN(row[j], before[j - 2] + 1);
        }
    }
    return row[m];
}

const char *str_nearest(const char *word, const char *const names[], size_t n)
{
    size_t len = strlen(word), best = 0;
    const char *nearest = NULL;

    if (len == 0 || len > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t m = names[i] != NULL ? strlen(names[i]) : 0;
        if (m == 0 || m > WORD_MAX)
            continue;
        size_t distance = edit_distance(word, len, names[i], m);
        if (distance <= (len + 2) / 3 && (nearest == NULL || distance < best) && distance < MAX(len, m)) {
            nearest = names[i];
            best = distance;
        }
    }
    return nearest;
}

/* Names of which the word is a part: "crossentropy" of three losses. */
static size_t str_names_with(const char *word, const char *const names[], size_t n, const char *ret[PARTS_MAX])
{
    size_t found = 0;
    for (size_t i = 0; i < n && strlen(word) >= PART_MIN && found < PARTS_MAX; i++)
        if (names[i] != NULL && strstr(names[i], word) != NULL)
            ret[found++] = names[i];
    return found;
}

const char *str_did_you_mean(const char *word, const char *const names[], size_t n, char *out, size_t out_size)
{
    const char *nearest = str_nearest(word, names, n), *meant[PARTS_MAX] = { nearest };
    size_t found = nearest != NULL ? 1 : str_names_with(word, names, n, meant), used = 0;
    bool fits = true;
    str_fmt(out, out_size, "%s", "");
    for (size_t i = 0; i < found && fits; i++, used = strlen(out)) {
        const char *before = i == 0 ? "; did you mean " : i + 1 < found ? ", " : " or ";
        fits = str_fmt(out + used, out_size - used, "%s'%s'%s", before, meant[i], i + 1 < found ? "" : "?");
    }
    if (!fits && nearest == NULL)
        str_fmt(out, out_size, "%s", "");
    return out;
}

bool str_fmt(char *out, size_t n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(out, n, fmt, ap);
    va_end(ap);
    if (len < 0 && n > 0)
        out[0] = '\0';
    return len >= 0 && (size_t)len < n;
}

const char *str_bytes(uint64_t bytes, char out[32])
{
    static const char *const UNITS[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

    if (bytes < 1024) {
        str_fmt(out, 32, "%" PRIu64 " B", bytes);
        return out;
    }
    double v = (double)bytes / 1024;
    size_t unit = 0;
    while (v >= 1023.95 && unit + 1 < COUNT_OF(UNITS)) { /* 1023.95 would print as 1024.0 */
        v /= 1024;
        unit++;
    }
    str_fmt(out, 32, "%.1f %s", v, UNITS[unit]);
    return out;
}

const char *str_duration(double seconds, char out[32])
{
    double ms = round(seconds * 1000);

    if (!(seconds >= 0) || ms > 1e14) {
        str_fmt(out, 32, "?");
        return out;
    }
    if (ms < 1000) {
        str_fmt(out, 32, "%.0f ms", ms);
        return out;
    }
    int64_t s = llround(seconds);
    if (ms < 10000 && (int64_t)(ms / 100) % 10 != 0)
        str_fmt(out, 32, "%.1f s", seconds);
    else if (s < 60)
        str_fmt(out, 32, "%" PRId64 " s", s);
    else if (s < 3600)
        str_fmt(out, 32, s % 60 != 0 ? "%" PRId64 " min %" PRId64 " s" : "%" PRId64 " min", s / 60, s % 60);
    else if (s < 86400)
        str_fmt(out, 32, s / 60 % 60 != 0 ? "%" PRId64 " h %" PRId64 " min" : "%" PRId64 " h", s / 3600, s / 60 % 60);
    else
        str_fmt(out, 32, s / 3600 % 24 != 0 ? "%" PRId64 " d %" PRId64 " h" : "%" PRId64 " d", s / 86400,
                s / 3600 % 24);
    return out;
}

/* "%.15g" and "%.6g" drop trailing zeros, so fewer need not be tried: 60, not 6e+01. */
const char *str_double(double v, char out[32])
{
    int digits = 15;
    do
        str_fmt(out, 32, "%.*g", digits, v);
    while (++digits <= 17 && strtod(out, NULL) != v);
    return out;
}

const char *str_float(float v, char out[32])
{
    int digits = 6;
    do
        str_fmt(out, 32, "%.*g", digits, (double)v);
    while (++digits <= 9 && strtof(out, NULL) != v);
    return out;
}

double str_float_decimal(float v)
{
    char text[32];
    return strtod(str_float(v, text), NULL);
}
