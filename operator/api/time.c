/* RFC 3339 times by the civil-calendar algorithm: no time zone database, no locale, every input bounded. */
#include "api/time.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum {
    MS_PER_S = 1000,
    S_PER_DAY = 86400,
    DAYS_TO_1970 = 719468 /* from March 1st of year 0 */,
    DAYS_PER_ERA = 146097
};

/* ---- days, by the proleptic Gregorian calendar; years begin in March, so that the leap day is the last ---- */

static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400, in_era = year % 400; /* from 0000-03-01; earlier years are refused */
    int64_t in_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * DAYS_PER_ERA + in_era * 365 + in_era / 4 - in_era / 100 + in_year - DAYS_TO_1970;
}

static void date_of(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    int64_t z = days + DAYS_TO_1970, era = z / DAYS_PER_ERA, in_era = z % DAYS_PER_ERA;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100), month = (5 * in_year + 2) / 153;

    *ret_day = (int)(in_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = (int)(year + era * 400 + (*ret_month <= 2));
}

static int days_in(int64_t year, int64_t month)
{
    static const int DAYS[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : DAYS[month - 1];
}

/* ---- text to time ---- */

/* Removes n digits and then the character `then` (0: none) from the front; -1 if the text begins otherwise. */
static int take(const char **s, int n, char then, int64_t min, int64_t max, int64_t *ret)
{
    int64_t v = 0;
    for (int i = 0; i < n; i++, (*s)++) {
        if (**s < '0' || **s > '9')
            return -1;
        v = v * 10 + (**s - '0');
    }
    if (v < min || v > max || (then != '\0' && **s != then))
        return -1;
    *s += then != '\0';
    *ret = v;
    return 0;
}

/* ".123456": milliseconds, the rest is cut. */
static int take_fraction(const char **s, int64_t *ret_ms)
{
    int digits = 0;

    *ret_ms = 0;
    if (**s != '.')
        return 0;
    for ((*s)++; **s >= '0' && **s <= '9'; (*s)++, digits++)
        if (digits < 3)
            *ret_ms = *ret_ms * 10 + (**s - '0');
    for (int i = digits; i < 3; i++)
        *ret_ms *= 10;
    return digits > 0 ? 0 : -1;
}

/* "Z", "+02:00": seconds to subtract. Nothing may follow. */
static int take_offset(const char *s, int64_t *ret_s)
{
    int64_t hours, minutes;
    int sign = *s == '-' ? -1 : 1;

    *ret_s = 0;
    if (strcmp(s, "Z") == 0 || strcmp(s, "z") == 0)
        return 0;
    if (*s != '+' && *s != '-')
        return -1;
    s++;
    if (take(&s, 2, ':', 0, 23, &hours) < 0 || take(&s, 2, '\0', 0, 59, &minutes) < 0 || *s != '\0')
        return -1;
    *ret_s = sign * (hours * 3600 + minutes * 60);
    return 0;
}

int64_t time_parse(const char *s)
{
    int64_t year, month, day, hour, minute, second, ms, offset;

    if (s == NULL || take(&s, 4, '-', 1, 9999, &year) < 0 || take(&s, 2, '-', 1, 12, &month) < 0 ||
        take(&s, 2, '\0', 1, days_in(year, month), &day) < 0 || (*s != 'T' && *s != 't' && *s != ' '))
        return 0;
    s++;
    if (take(&s, 2, ':', 0, 23, &hour) < 0 || take(&s, 2, ':', 0, 59, &minute) < 0 ||
        take(&s, 2, '\0', 0, 60 /* a leap second */, &second) < 0 || take_fraction(&s, &ms) < 0 ||
        take_offset(s, &offset) < 0)
        return 0;
    return ((days_of(year, month, day) * S_PER_DAY) + hour * 3600 + minute * 60 + second - offset) * MS_PER_S + ms;
}

/* ---- time to text ---- */

struct civil {
    int year, month, day, hour, minute, second;
};

/* Times outside the years 1 to 9999 become the nearest time inside, so that the text is always a valid time. */
static struct civil civil_of(int64_t ms)
{
    static const int64_t FIRST = INT64_C(-62135596800000), LAST = INT64_C(253402300799999);
    struct civil c;

    ms = MIN(MAX(ms, FIRST), LAST);
    int64_t seconds = ms / MS_PER_S - (ms % MS_PER_S < 0), days = seconds / S_PER_DAY - (seconds % S_PER_DAY < 0);
    unsigned in_day = (unsigned)(seconds - days * S_PER_DAY);
    date_of(days, &c.year, &c.month, &c.day);
    c.hour = (int)(in_day / 3600 % 24);
    c.minute = (int)(in_day / 60 % 60);
    c.second = (int)(in_day % 60);
    return c;
}

const char *time_text(int64_t ms, char out[32])
{
    struct civil c = civil_of(ms);
    snprintf(out, 32, "%04d-%02d-%02dT%02d:%02d:%02dZ", c.year % 10000, c.month, c.day, c.hour, c.minute, c.second);
    return out;
}
