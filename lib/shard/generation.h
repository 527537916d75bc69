/* generation - which chief is in charge of an output folder.
 *
 *   <output>/generation       "12 00d1...": the newest generation, and the incarnation of the chief that it belongs to
 *   <output>/generation.12    the claim of that number: the same line, made once (file_write_new)
 *
 * A chief leads while its own generation stands in the file; it reads the file before it publishes anything. To take a
 * new one it claims the number, which only one process can do, and then replaces the file. Two chiefs that start at the
 * same moment thus never have the same generation: one of them finds the number claimed, waits until it stands in the
 * file, and is fenced. A claim whose chief died before that is passed over after a few seconds. A claim is removed when
 * a higher number stands in the file.
 *
 * Hard links, exclusive creation and renames are all that a volume must have; locks are not needed. The ps are the
 * second judge: each gives a generation to one incarnation only (shard/shard.h).
 */
#ifndef TRAINYARD_SHARD_GENERATION_H
#define TRAINYARD_SHARD_GENERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"

/* The largest number that a chief may name: far below overflow, and far above what a job reaches. */
#define GENERATION_MAX ((uint64_t)INT64_MAX / 2)

struct generation {
    uint64_t number;      /* 0: none */
    uint64_t incarnation; /* 0: the file is of an older release, which wrote the number only */
};

static inline bool generation_eq(const struct generation *a, const struct generation *b)
{
    return a->number == b->number && a->incarnation == b->incarnation;
}

/* What the file says; number 0 when there is none. */
MUST_USE int generation_read(const char *dir, struct generation *ret, struct err *e);

/* Claims a number above all that are known. held: what this process leads in, number 0 when it does not lead yet; a
 * chief whose own generation is no longer in the file may not go on to the next. above: the largest number seen
 * elsewhere. ERR_FENCED: another chief is in charge. Waits a few seconds at most, for a chief that has claimed a number
 * just now, and explains that in report (NULL: nowhere). */
MUST_USE int generation_claim(const char *dir, const struct generation *held, uint64_t incarnation, uint64_t above,
                              const struct report *report, struct generation *ret, struct err *e);
/* Makes a claimed generation the one of the file: held is as above. ERR_FENCED: another chief came first. */
MUST_USE int generation_publish(const char *dir, const struct generation *held, const struct generation *claimed,
                                struct err *e);
/* Gives up a claim that was not published. */
void generation_withdraw(const char *dir, const struct generation *claimed);
/* The folder was emptied under the chief that leads in `held`: writes the file again. ERR_FENCED: another chief came
 * first. */
MUST_USE int generation_put_back(const char *dir, const struct generation *held, struct err *e);

#endif
