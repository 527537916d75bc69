/* sweep_run - trains the runs of a sweep one after the other and compares them: a table on standard output, and the
 * curves of the best ones in FOLDER/curves.svg. One thread; blocks until the last run has ended.
 */
#ifndef TRAINYARD_CLI_SWEEP_RUN_H
#define TRAINYARD_CLI_SWEEP_RUN_H

#include "sweep.h"

struct sweep_ops { /* sets: PATH=VALUE of one run */
    /* What can be found without training. */
    int (*check)(void *user, const struct strlist *sets, struct err *e);
    /* Trains into the folder; *ret_exit as that of `trainyard run`. A run that has finished before is not repeated. */
    int (*train)(void *user, const struct strlist *sets, const char *folder, int *ret_exit, struct err *e);
};

/* Each run has a folder of its own below `folder`. All runs are checked before the first one trains. A run that fails
 * does not end the sweep, unless the first one cannot start; a stop by the user does. *ret_exit: 0 when at least one
 * run has finished, 143 after a stop, else that of the first run. */
MUST_USE int sweep_run(const struct sweep *s, const char *folder, const struct sweep_ops *ops, void *user,
                       int *ret_exit, struct err *e);

#endif
