/* curves - scalar series drawn as an SVG picture like TensorBoard's: a panel for each tag, a colour for each run with
 * dashes for its validation, the raw line faint behind the smoothed one, axes with round ticks, a legend. Pure: series
 * in, text out.
 */
#ifndef TRAINYARD_CLI_CURVES_H
#define TRAINYARD_CLI_CURVES_H

#include "base/str.h"

/* The points of one tag in one run, ascending by step. NaN and Inf are gaps. */
struct scalar_series {
    char *run, *tag;
    double *steps, *values;
    size_t n, cap;
};
struct series_set {
    struct scalar_series *items;
    size_t n, cap;
};
#define SERIES_SET_INIT                                                                                                \
    {                                                                                                                  \
        .items = NULL                                                                                                  \
    }
void series_set_fini(struct series_set *s);
DEFINE_AUTO_FINI(series_set, series_set_fini);
/* Appends a point; a step at or before the last one first removes the points from that step on (a resumed run). */
void series_add(struct series_set *s, const char *run, const char *tag, double step, double value);
/* Adds all lines of `from`; their runs get the prefix "<name>/", or the name `name` when they have none. */
void series_merge(struct series_set *s, const char *name, const struct series_set *from);
/* For the START of a resumed session: removes the run's points from `step` on. */
void series_purge(struct series_set *s, const char *run, double step);

/* All scalars of the event files below a path. Damaged files are skipped and listed in *ret_warnings (may be NULL). */
MUST_USE int series_load(const char *path, struct series_set *ret, struct strlist *ret_warnings, struct err *e);

struct svg_options {
    double smoothing;              /* TensorBoard's slider, [0, 1): debiased exponential moving average. Negative, the
                                    * default: 0.6 for lines of 20 points or more, none for shorter ones */
    int columns;                   /* panels per row; default 2 */
    int panel_width, panel_height; /* default 460 x 314 */
    const char *title;             /* or NULL */
    const char *tag;               /* only tags that contain it, or NULL */
};
struct svg_options svg_options_default(void);
/* Appends a whole SVG document to *ret. No series: a picture with a message. */
void curves_svg(const struct series_set *s, const struct svg_options *look, struct buf *ret);

#endif
