/* generation - which chief is in charge of an output folder.
 *
 *   <output>/generation       "12 00d1...": the newest generation, and the incarnation of the chief to which it belongs
 *   <output>/generation.12    the claim of that number: the same line, made once (file_write_new)
 *
 * A chief leads while its own generation is in the file; it reads the file before it publishes anything. To acquire a
 * new one it claims the number, which only one process can do, and then replaces the file. Two chiefs that start at the
 * same moment thus never have the same generation: one of them finds the number claimed, waits until it is in the file,
 * and is fenced. A claim whose chief died before that is passed over after a few seconds. A claim is removed when a
 * higher number is in the file.
 *
 * A volume must support only hard links, exclusive creation and renames; locks are not needed. The ps are the second
 * check: each accepts a generation from one incarnation only (shard/shard.h).
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

/* The content of the file; number 0 when there is none. */
MUST_USE int generation_read(const char *dir, struct generation *ret, struct err *e);

/* Claims a number above all known ones. held: the generation in which this process leads, number 0 when it does not
 * lead yet. A chief whose own generation is no longer in the file may not claim the next one. above: the largest
 * number seen elsewhere. ERR_FENCED: another chief is in charge. Waits a few seconds at most for a chief that has
 * just claimed a number, and reports that (report NULL: no lines). */
MUST_USE int generation_claim(const char *dir, const struct generation *held, uint64_t incarnation, uint64_t above,
                              const struct report *report, struct generation *ret, struct err *e);
/* Makes a claimed generation the one of the file: held is as above. ERR_FENCED: another chief came first. */
MUST_USE int generation_publish(const char *dir, const struct generation *held, const struct generation *claimed,
                                struct err *e);
/* Releases a claim that was not published. */
void generation_withdraw(const char *dir, const struct generation *claimed);
/* The folder was emptied while the chief leads in `held`: writes the file again. ERR_FENCED: another chief came
 * first. */
MUST_USE int generation_put_back(const char *dir, const struct generation *held, struct err *e);

#endif
