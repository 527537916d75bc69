/* group_sums - numbers of all batches of a group, added in the order of their ordinals: the statistics of layers that
 * are computed over the whole group (BatchNormalization with synchronized).
 *
 * A step has phases, from 0 on, and what a batch gives in a phase depends on the sums of the phases before. So a phase
 * begins when all before it are complete. The sums of all phases stay until a later step begins: a batch of a worker
 * that is lost is computed again, and asks for them. Numbers that come twice count once. Pure; not thread-safe.
 */
#ifndef TRAINYARD_SHARD_GROUP_SUMS_H
#define TRAINYARD_SHARD_GROUP_SUMS_H

#include "base/err.h"
#include "base/mem.h"

enum {
    GROUP_SUMS_ORDINALS_MAX = 64,   /* batches of a group */
    GROUP_SUMS_WIDTH_MAX = 1 << 16, /* numbers of a batch in a phase */
    GROUP_SUMS_KEPT_MAX = 1 << 22,  /* sums of a step */
};

/* Numbers of some batches of the group that begins with the ordinal `at`. n 0: only the sums are asked for. numbers
 * NULL: so too, and they were given before. */
struct group_part {
    int64_t at;
    uint32_t phase;
    const int64_t *ordinals; /* n of them; the numbers of each follow those of the one before */
    size_t n;
    const double *numbers; /* n * width */
    size_t width;
};

enum group_answer {
    GROUP_TOTALS, /* the sums of all batches, width of them */
    GROUP_AGAIN,  /* sums of earlier phases are not here: all begin again with phase 0 */
};
/* A request for the sums. totals: memory for part.width numbers. */
struct group_request {
    struct group_part part;
    int64_t wait_ms; /* at most, for numbers of other batches */
    enum group_answer answer;
    double *totals;
};

struct group_sums;
struct group_sums *group_sums_new(void);
void group_sums_free(struct group_sums *g);
/* The group [at, end) begins; what was there is forgotten. */
void group_sums_begin(struct group_sums *g, int64_t at, int64_t end);
/* The first ordinal of the group; -1: none has begun. */
int64_t group_sums_at(const struct group_sums *g);

/* The part is of the group that has begun. *ret_totals: valid until the next call. *ret_new: with this part the phase
 * is complete. ERR_PENDING: the part is taken, and others are missing. ERR_LOST: what was given before is not here, and
 * must be given again. ERR_INPUT. */
MUST_USE int group_sums_add(struct group_sums *g, const struct group_part *p, enum group_answer *ret,
                            const double **ret_totals, bool *ret_new, struct err *e);

#endif
