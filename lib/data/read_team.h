/* read_team - threads that read the records of batches, for formats whose records are decoded one by one. Inside of
 * lib/data.
 *
 * The caller of read_team_read() reads, too, so that a batch is read where no thread could be started. A result does
 * not depend on who read which record. One team serves all loaders of a data set; its threads start with the first
 * batch.
 */
#ifndef TRAINYARD_DATA_READ_TEAM_H
#define TRAINYARD_DATA_READ_TEAM_H

#include "data/records.h"

enum { READ_TEAM_MAX = 8 }; /* threads, besides the callers */

/* `threads` besides the callers; r must outlive it. */
struct read_team;
struct read_team *read_team_new(const struct records *r, size_t threads);
void read_team_free(struct read_team *t); /* no call is in progress */
DEFINE_AUTO(read_team, read_team_free);

/* The rows of a batch, as for records_ops.read. */
struct read_rows {
    const int64_t *which;
    size_t n;
    void *x, *y;
    float *w;
};
/* As records_ops.read: of several damaged records the error is that of the first. Any thread. Blocks until all is read.
 */
MUST_USE int read_team_read(struct read_team *t, const struct read_rows *rows, struct err *e);

#endif
