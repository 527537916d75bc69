/* curve_runs - which lines of a picture belong to one run. A run has the lines below its folder: "runs/a/train" and
 * "runs/a/validation" are the training and the validation of the run "runs/a". Pure.
 */
#ifndef TRAINYARD_CLI_CURVE_RUNS_H
#define TRAINYARD_CLI_CURVE_RUNS_H

#include "base/str.h"

enum { CURVE_RUNS_MAX = 12 };

struct curve_runs {
    struct strlist runs;  /* in the order of their names; "": the only folder that was named */
    struct strlist names; /* of the same, short enough for a legend */
    bool validation;      /* at least one line is of a validation */
};
void curve_runs_fini(struct curve_runs *r);
DEFINE_AUTO_FINI(curve_runs, curve_runs_fini);

/* The folder of a line of events. */
void curve_runs_add(struct curve_runs *r, const char *folder);
/* After all lines. */
void curve_runs_settle(struct curve_runs *r);

size_t curve_runs_shown(const struct curve_runs *r); /* the first CURVE_RUNS_MAX are drawn */
size_t curve_runs_find(const struct curve_runs *r, const char *folder);
bool curve_runs_is_validation(const char *folder);

#endif
