/* sweep - the runs of `trainyard run --sweep PATH=VALUE,VALUE...`: one for each combination of the values. Pure.
 */
#ifndef TRAINYARD_CLI_SWEEP_H
#define TRAINYARD_CLI_SWEEP_H

#include "base/err.h"
#include "base/str.h"

enum { SWEEP_FIELDS_MAX = 8, SWEEP_RUNS_MAX = 200 };

struct sweep_field {
    char *path; /* "compile.optimizer.Adam.learning_rate" */
    struct strlist values;
};
struct sweep {
    struct sweep_field fields[SWEEP_FIELDS_MAX];
    size_t n;
};
void sweep_fini(struct sweep *s);
DEFINE_AUTO_FINI(sweep, sweep_fini);

/* Each text is PATH=VALUE,VALUE...; a comma within brackets or quotes is part of a value. ERR_INPUT: no value, a path
 * twice, too many runs. `ret` must be empty. */
MUST_USE int sweep_parse(const struct strlist *texts, struct sweep *ret, struct err *e);

size_t sweep_runs(const struct sweep *s);
/* Adds PATH=VALUE for each field of run i; the values of the last field change first. */
void sweep_sets(const struct sweep *s, size_t i, struct strlist *ret);
/* The value of a field in run i. */
const char *sweep_value(const struct sweep *s, size_t i, size_t field);
/* The end of a field's path: "learning_rate". */
const char *sweep_field_name(const struct sweep *s, size_t field);
/* A name for the run's folder, another one for each run: "learning_rate=0.1,units=8". xmalloc'ed. */
char *sweep_name(const struct sweep *s, size_t i);

#endif
