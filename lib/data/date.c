/* Dates: a small strptime that has one meaning in all languages and zones, and is bounded by the field. Days are
 * counted as in H. Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
#include "data/date.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum { DAY_SECONDS = 86400 };

struct moment {
    int64_t year, month, day, hour, minute;
    double second;
};

struct date_cursor {
    const unsigned char *p, *end;
};

/* min to max digits. */
static bool take_digits(struct date_cursor *c, int min, int max, int64_t *ret)
{
    int n = 0;
    int64_t v = 0;
    for (; n < max && c->p < c->end && *c->p >= '0' && *c->p <= '9'; n++)
        v = v * 10 + (*c->p++ - '0');
    *ret = v;
    return n >= min;
}

static bool take_char(struct date_cursor *c, char want)
{
    if (c->p == c->end || *c->p != (unsigned char)want)
        return false;
    c->p++;
    return true;
}

/* Seconds, with a fraction when there is one. */
static bool take_second(struct date_cursor *c, double *ret)
{
    int64_t whole, digit;
    double scale = 1;
    if (!take_digits(c, 1, 2, &whole))
        return false;
    *ret = (double)whole;
    if (c->p == c->end || *c->p != '.')
        return true;
    for (c->p++; take_digits(c, 1, 1, &digit);)
        *ret += (double)digit * (scale /= 10);
    return scale < 1;
}

static bool take_month(struct date_cursor *c, int64_t *ret)
{
    static const char *const MONTHS[] = { "jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec" };
    for (size_t i = 0; c->end - c->p >= 3 && i < COUNT_OF(MONTHS); i++)
        if (strncasecmp((const char *)c->p, MONTHS[i], 3) == 0) {
            c->p += 3;
            *ret = (int64_t)i + 1;
            return true;
        }
    return false;
}

/* ---- formats ---- */

static bool take_directive(struct date_cursor *c, char directive, struct moment *m)
{
    switch (directive) {
    case 'Y':
        return take_digits(c, 4, 4, &m->year);
    case 'y': /* as POSIX: 69 to 99 are of the last century */
        if (!take_digits(c, 2, 2, &m->year))
            return false;
        m->year += m->year < 69 ? 2000 : 1900;
        return true;
    case 'm':
        return take_digits(c, 1, 2, &m->month);
    case 'b':
        return take_month(c, &m->month);
    case 'd':
        return take_digits(c, 1, 2, &m->day);
    case 'H':
        return take_digits(c, 1, 2, &m->hour);
    case 'M':
        return take_digits(c, 1, 2, &m->minute);
    case 'S':
        return take_second(c, &m->second);
    default:
        return directive == '%' && take_char(c, '%');
    }
}

bool date_format_check(const char *format)
{
    bool any = false;
    for (const char *p = format; *p != '\0'; p++) {
        if (*p != '%')
            continue;
        if (*++p == '\0' || strchr("YymbdHMS%", *p) == NULL)
            return false;
        any = any || *p != '%';
    }
    return any;
}

static bool take_format(struct date_cursor *c, const char *format, struct moment *m)
{
    for (const char *p = format; *p != '\0'; p++)
        if (*p == '%' ? !take_directive(c, *++p, m) : !take_char(c, *p))
            return false;
    return true;
}

/* "Z", "+02", "+0200" or "+02:00", or nothing. */
static bool take_zone(struct date_cursor *c)
{
    int64_t ignored;
    if (c->p == c->end || take_char(c, 'Z'))
        return true;
    if (!take_char(c, '+') && !take_char(c, '-'))
        return false;
    if (!take_digits(c, 2, 2, &ignored))
        return false;
    bool colon = take_char(c, ':');
    return (!colon && c->p == c->end) || take_digits(c, 2, 2, &ignored);
}

static bool take_iso(struct date_cursor *c, struct moment *m)
{
    if (!take_format(c, "%Y-%m-%d", m))
        return false;
    if (c->p == c->end)
        return true;
    if ((!take_char(c, 'T') && !take_char(c, ' ')) || !take_format(c, "%H:%M", m))
        return false;
    return (!take_char(c, ':') || take_second(c, &m->second)) && take_zone(c);
}

/* ---- the calendar ---- */

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool is_valid(const struct moment *m)
{
    static const int64_t DAYS[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (m->year < 1 || m->month < 1 || m->month > 12 || m->day < 1)
        return false;
    return m->day <= DAYS[m->month - 1] + (m->month == 2 && is_leap(m->year)) && m->hour < 24 && m->minute < 60 &&
           m->second < 60;
}

/* Since 1970-01-01. Years begin in March here, so that a leap day is the last of its year. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = year - (month <= 2), era = y / 400, of_era = y % 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct moment moment_of(double seconds)
{
    int64_t days = (int64_t)floor(seconds / DAY_SECONDS);
    double rest = seconds - (double)days * DAY_SECONDS;
    int64_t z = days + 719468, era = z / 146097, of_era = z % 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100), shifted = (5 * of_year + 2) / 153;
    struct moment m = { .day = of_year - (153 * shifted + 2) / 5 + 1,
                        .month = shifted < 10 ? shifted + 3 : shifted - 9,
                        .hour = (int64_t)(rest / 3600),
                        .minute = (int64_t)(rest / 60) % 60,
                        .second = rest };
    m.year = y + era * 400 + (m.month <= 2);
    return m;
}

bool date_parse(const struct text_field *field, const char *format, double *ret_seconds)
{
    struct moment m = { .year = 1970, .month = 1, .day = 1 };
    struct date_cursor c = { .p = field->p, .end = field->end };
    if (!(format != NULL ? take_format(&c, format, &m) : take_iso(&c, &m)) || c.p != c.end || !is_valid(&m))
        return false;
    *ret_seconds =
        (double)days_of(m.year, m.month, m.day) * DAY_SECONDS + (double)(m.hour * 3600 + m.minute * 60) + m.second;
    return true;
}

static float part_of(const struct moment *m, enum date_part part)
{
    int64_t days = days_of(m->year, m->month, m->day);
    switch (part) {
    case DATE_YEAR:
        return (float)m->year;
    case DATE_MONTH:
        return (float)m->month;
    case DATE_DAY:
        return (float)m->day;
    case DATE_DAY_OF_WEEK: /* 1970-01-01 was a Thursday; the first day of year 1 is 719162 before it, a Monday */
        return (float)((days + 719162) % 7);
    case DATE_DAY_OF_YEAR:
        return (float)(days - days_of(m->year, 1, 1) + 1);
    case DATE_HOUR:
        return (float)m->hour;
    case DATE_MINUTE:
        return (float)m->minute;
    case DATE_SECONDS:
    case DATE_PART_COUNT:
        break;
    }
    return (float)m->second;
}

void date_parts(double seconds, const enum date_part *parts, size_t n, float *ret)
{
    const struct moment m = moment_of(seconds);
    for (size_t i = 0; i < n; i++)
        ret[i] = part_of(&m, parts[i]);
}

const char *date_text(double seconds, char out[32])
{
    struct moment m = moment_of(seconds);
    if (m.second > 0)
        str_fmt(out, 32, "%04d-%02d-%02d %02d:%02d:%02d", (int)m.year, (int)m.month, (int)m.day, (int)m.hour,
                (int)m.minute, (int)m.second % 60);
    else
        str_fmt(out, 32, "%04d-%02d-%02d", (int)m.year, (int)m.month, (int)m.day);
    return out;
}
