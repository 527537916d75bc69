/* curve_scale - an axis of a picture of curves: values to positions, round ticks and their texts, linear or
 * logarithmic. Pure.
 */
#ifndef TRAINYARD_CLI_CURVE_SCALE_H
#define TRAINYARD_CLI_CURVE_SCALE_H

#include <stdbool.h>
#include <stddef.h>

struct curve_scale {
    double from, to;  /* positions in the picture of both ends */
    double low, high; /* values there; with `log` their decimal logarithms */
    double tick;      /* linear: distance of the ticks, a round number */
    bool log;
};

/* Without values. */
struct curve_scale curve_scale_new(double from, double to);
/* Widens the range; a value that is not finite does not count. */
void curve_scale_include(struct curve_scale *s, double v);
/* All values are above 0, and the largest is at least 100 times the least. */
bool curve_scale_spans_decades(const struct curve_scale *s);
/* After all values: a margin keeps lines off the frame, a range of one value is widened; about so many ticks. */
void curve_scale_settle(struct curve_scale *s, double margin, int ticks);
/* The same, logarithmic, for a scale that spans decades. */
void curve_scale_settle_log(struct curve_scale *s, double margin);

double curve_scale_place(const struct curve_scale *s, double v);
/* Tick i from the lower end; false: there are no more. */
bool curve_scale_tick(const struct curve_scale *s, size_t i, double *ret);
/* "1.5k", "0.002", "3e-07": the fewest characters that distinguish neighbours. */
const char *curve_scale_text(const struct curve_scale *s, double v, char out[32]);

#endif
