/* applied - a set of batch ordinals: a low-water mark (everything below is in) and a bitmap above it.
 *
 * What each segment keeps to apply every batch exactly once, and what the ledger intersects. Pure, not
 * thread-safe. Cost: add and has O(1); memory: a bit for each ordinal between the low-water mark and the
 * highest one added. An ordinal is at most APPLIED_SPAN_MAX above the low-water mark (bounds memory
 * against a wrong or hostile sender).
 */
#ifndef TRAINYARD_SHARD_APPLIED_H
#define TRAINYARD_SHARD_APPLIED_H

#include "base/buf.h"

enum { APPLIED_SPAN_MAX = 1 << 24 };

struct applied {
    int64_t low;    /* all ordinals below are in */
    uint64_t *bits; /* ring: ordinal o is bit o % 64 of word (o / 64) % words; all else is 0 */
    size_t words;   /* a power of two, or 0 */
    int64_t high;   /* one above the highest ordinal in; low when none is above low */
};
#define APPLIED_INIT                                                                                                   \
    {                                                                                                                  \
        .low = 0                                                                                                       \
    }

void applied_fini(struct applied *a);
DEFINE_AUTO_FINI(applied, applied_fini);
bool applied_has(const struct applied *a, int64_t ordinal);
/* 1 when it was new, 0 when it was in, -1 with ERR_INPUT when negative or out of span. */
int applied_add(struct applied *a, int64_t ordinal, struct err *e);
int64_t applied_count(const struct applied *a); /* members */
void applied_copy(struct applied *to, const struct applied *from);
void applied_intersect(struct applied *to, const struct applied *with); /* to = to AND with */
bool applied_equal(const struct applied *a, const struct applied *b);
/* Half-open ranges above low, ascending: returns how many; ret holds two values for each (xmalloc'ed). */
size_t applied_ranges(const struct applied *a, int64_t **ret);
/* And back, from nvalues = 2 x ranges values; ERR_INPUT unless sorted, disjoint, not empty and in span. ret is
 * overwritten, not released. */
MUST_USE int applied_from(int64_t low, const int64_t *ranges, size_t nvalues, struct applied *ret, struct err *e);

#endif
