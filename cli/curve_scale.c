/* Chooses ranges and round ticks. */
#include "curve_scale.h"

#include <math.h>

#include "base/str.h"

enum {
    DECADES_SHOWN = 7,   /* labels of a logarithmic axis with more decades leave some out */
    DECADES_DIVIDED = 3, /* one with fewer has ticks at 2 and 5 times a power of ten */
};

struct curve_scale curve_scale_new(double from, double to)
{
    return (struct curve_scale){ .from = from, .to = to, .low = HUGE_VAL, .high = -HUGE_VAL };
}

void curve_scale_include(struct curve_scale *s, double v)
{
    if (!isfinite(v))
        return;
    v = MAX(MIN(v, 1e300), -1e300); /* the range must be finite too */
    s->low = MIN(s->low, v);
    s->high = MAX(s->high, v);
}

bool curve_scale_spans_decades(const struct curve_scale *s)
{
    return s->low > 0 && s->low <= s->high && s->high / 100 >= s->low;
}

/* 1, 2 or 5 times a power of ten, so that about n of them fill the range. */
static double round_tick(double range, int n)
{
    double raw = range / n, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

void curve_scale_settle(struct curve_scale *s, double margin, int ticks)
{
    if (!(s->low <= s->high)) {
        s->low = 0;
        s->high = 1;
    }
    double range = s->high - s->low, size = MAX(fabs(s->low), fabs(s->high));
    if (!(range > size * 1e-9) || range < 1e-300) {
        s->low -= size > 1e-300 ? size / 10 : 0.5;
        s->high += size > 1e-300 ? size / 10 : 0.5;
        range = s->high - s->low;
    }
    s->low -= range * margin;
    s->high += range * margin;
    s->tick = round_tick(s->high - s->low, ticks);
}

void curve_scale_settle_log(struct curve_scale *s, double margin)
{
    s->log = true;
    s->low = log10(s->low);
    s->high = log10(s->high);
    double range = s->high - s->low;
    s->low -= range * margin;
    s->high += range * margin;
}

double curve_scale_place(const struct curve_scale *s, double v)
{
    double at = s->log ? log10(v) : v;
    return s->from + (at - s->low) / (s->high - s->low) * (s->to - s->from);
}

/* ---- ticks ---- */

static bool linear_tick(const struct curve_scale *s, size_t i, double *ret)
{
    *ret = (ceil(s->low / s->tick) + (double)i) * s->tick;
    return *ret <= s->high;
}

/* Powers of ten, or 1, 2 and 5 times those. */
static bool log_tick(const struct curve_scale *s, size_t i, double *ret)
{
    static const double DIGITS[] = { 1, 2, 5 };
    double decades = s->high - s->low;
    size_t digits = decades < DECADES_DIVIDED ? COUNT_OF(DIGITS) : 1;
    double step = MAX(ceil(decades / DECADES_SHOWN), 1), first = floor(s->low / step) * step;
    size_t before = 0; /* ticks below the range */
    while (log10(DIGITS[before % digits]) + first + step * (double)(before / digits) < s->low)
        before++;
    i += before;
    double at = first + step * (double)(i / digits);
    *ret = DIGITS[i % digits] * pow(10, at);
    return at + log10(DIGITS[i % digits]) <= s->high;
}

bool curve_scale_tick(const struct curve_scale *s, size_t i, double *ret)
{
    return s->log ? log_tick(s, i, ret) : linear_tick(s, i, ret);
}

const char *curve_scale_text(const struct curve_scale *s, double v, char out[32])
{
    static const struct {
        double size;
        const char *letter;
    } UNITS[] = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } };
    double tick = s->log ? fabs(v) : s->tick;
    if (fabs(v) < tick / 1000)
        v = 0;
    for (size_t i = 0; i < COUNT_OF(UNITS); i++)
        if (fabs(v) >= UNITS[i].size && fabs(v) < 1e15 && tick >= UNITS[i].size / 100) {
            str_fmt(out, 32, "%g%s", v / UNITS[i].size, UNITS[i].letter);
            return out;
        }
    int digits = tick > 0 && v != 0 ? (int)ceil(log10(fabs(v) / tick)) + 1 : 1;
    str_fmt(out, 32, "%.*g", MAX(MIN(digits, 15), 6), v);
    return out;
}
