/* ordinal_set - a set of batch ordinals: a low-water mark (everything below is in) and a bitmap above it.
 *
 * Each segment keeps one to apply every batch exactly once, and the ledger intersects them. Pure, not thread-safe.
 * Cost: add and has O(1); memory: a bit for each ordinal between the low-water mark and the highest one added. An
 * ordinal is at most ORDINAL_SET_SPAN_MAX above the low-water mark (bounds memory against a wrong or hostile sender).
 */
#ifndef TRAINYARD_SHARD_ORDINAL_SET_H
#define TRAINYARD_SHARD_ORDINAL_SET_H

#include "base/buf.h"

enum { ORDINAL_SET_SPAN_MAX = 1 << 24 };

struct ordinal_set {
    int64_t low;    /* all ordinals below are in */
    uint64_t *bits; /* ring: ordinal o is bit o % 64 of word (o / 64) % words; all else is 0 */
    size_t words;   /* a power of two, or 0 */
    int64_t high;   /* one above the highest ordinal in; low when none is above low */
};
#define ORDINAL_SET_INIT                                                                                               \
    {                                                                                                                  \
        .low = 0                                                                                                       \
    }

void ordinal_set_fini(struct ordinal_set *a);
DEFINE_AUTO_FINI(ordinal_set, ordinal_set_fini);
bool ordinal_set_has(const struct ordinal_set *a, int64_t ordinal);
/* 1 when it was new, 0 when it was in, -1 with ERR_INPUT when negative or out of span. */
int ordinal_set_add(struct ordinal_set *a, int64_t ordinal, struct err *e);
int64_t ordinal_set_count(const struct ordinal_set *a); /* members */
void ordinal_set_copy(struct ordinal_set *to, const struct ordinal_set *from);
void ordinal_set_intersect(struct ordinal_set *to, const struct ordinal_set *with); /* to = to AND with */
bool ordinal_set_equal(const struct ordinal_set *a, const struct ordinal_set *b);
/* Half-open ranges above low, ascending: returns their number; ret holds two values for each (xmalloc'ed). */
size_t ordinal_set_ranges(const struct ordinal_set *a, int64_t **ret);
/* The inverse, from nvalues = 2 x ranges values; ERR_INPUT unless sorted, disjoint, not empty and in span. ret is
 * overwritten, not released. */
MUST_USE int ordinal_set_from(int64_t low, const int64_t *ranges, size_t nvalues, struct ordinal_set *ret,
                              struct err *e);

#endif
