/* A low-water mark and a ring of bits above it. The mark moves up as soon as the ordinals at it are in, so the ring
 * stays as short as the distance between the slowest and the fastest batch. */
#include "shard/ordinal_set.h"

#include <string.h>

enum { WORDS_MIN = 4 };

/* Far below overflow, so that low + span is always a number. */
static const int64_t LOW_MAX = INT64_MAX / 2;

void ordinal_set_fini(struct ordinal_set *a)
{
    free(a->bits);
    *a = (struct ordinal_set)ORDINAL_SET_INIT;
}

static uint64_t *slot(const struct ordinal_set *a, int64_t word)
{
    return &a->bits[(size_t)word & (a->words - 1)];
}

static int64_t word_of(int64_t ordinal)
{
    return ordinal >> 6;
}

/* Bits of word `word` that are ordinals of [from, to). */
static uint64_t mask(int64_t word, int64_t from, int64_t to)
{
    int64_t first = word * 64, last = first + 64;
    if (to <= first || from >= last)
        return 0;
    uint64_t m = UINT64_MAX;
    if (from > first)
        m &= UINT64_MAX << (from - first);
    if (to < last)
        m &= UINT64_MAX >> (last - to);
    return m;
}

/* Members among the 64 ordinals of a word: also those below low. */
static uint64_t members(const struct ordinal_set *a, int64_t word)
{
    uint64_t m = mask(word, 0, a->low);
    if (a->high > a->low && word >= word_of(a->low) && word <= word_of(a->high - 1))
        m |= *slot(a, word);
    return m;
}

/* Room for ordinals up to end - 1: the first and the last word never share a slot. */
static void reserve(struct ordinal_set *a, int64_t end)
{
    size_t need = (size_t)(word_of(end - 1) - word_of(a->low) + 1);
    if (need <= a->words)
        return;

    struct ordinal_set wider = { .low = a->low, .high = a->high, .words = MAX(a->words, WORDS_MIN) };
    while (wider.words < need)
        wider.words *= 2;
    wider.bits = xcalloc(wider.words, sizeof(*wider.bits));
    for (int64_t w = word_of(a->low); a->high > a->low && w <= word_of(a->high - 1); w++)
        *slot(&wider, w) = *slot(a, w);
    free(a->bits);
    *a = wider;
}

/* Moves low over consecutive members, and removes them from the ring. */
static void settle(struct ordinal_set *a)
{
    while (a->low < a->high) {
        uint64_t *bits = slot(a, word_of(a->low));
        unsigned at = (unsigned)a->low & 63;
        uint64_t gaps = ~*bits >> at;
        int run = gaps == 0 ? 64 : __builtin_ctzll(gaps);
        run = MIN(run, 64 - (int)at);
        *bits &= ~mask(word_of(a->low), a->low, a->low + run);
        a->low += run;
        if (at + (unsigned)run < 64)
            break;
    }
    a->high = MAX(a->high, a->low);
}

bool ordinal_set_has(const struct ordinal_set *a, int64_t ordinal)
{
    if (ordinal < a->low || ordinal >= a->high)
        return ordinal >= 0 && ordinal < a->low;
    return (*slot(a, word_of(ordinal)) >> (ordinal & 63) & 1) != 0;
}

int ordinal_set_add(struct ordinal_set *a, int64_t ordinal, struct err *e)
{
    if (ordinal < 0)
        return err_set(e, ERR_INPUT, "batch ordinal %lld is negative", (long long)ordinal);
    if (ordinal < a->low)
        return 0;
    if (ordinal - a->low >= ORDINAL_SET_SPAN_MAX || ordinal >= LOW_MAX)
        return err_set(e, ERR_INPUT, "batch ordinal %lld is too far above %lld, the first one missing",
                       (long long)ordinal, (long long)a->low);

    reserve(a, ordinal + 1);
    uint64_t *bits = slot(a, word_of(ordinal)), bit = (uint64_t)1 << (ordinal & 63);
    if ((*bits & bit) != 0)
        return 0;
    *bits |= bit;
    a->high = MAX(a->high, ordinal + 1);
    if (ordinal == a->low)
        settle(a);
    return 1;
}

int64_t ordinal_set_count(const struct ordinal_set *a)
{
    int64_t n = a->low;
    for (int64_t w = word_of(a->low); a->high > a->low && w <= word_of(a->high - 1); w++)
        n += __builtin_popcountll(*slot(a, w));
    return n;
}

void ordinal_set_copy(struct ordinal_set *to, const struct ordinal_set *from)
{
    if (to == from)
        return;
    if (to->words != from->words) {
        free(to->bits);
        to->bits = from->words > 0 ? xmalloc(from->words * sizeof(*to->bits)) : NULL;
    }
    to->words = from->words;
    to->low = from->low;
    to->high = from->high;
    if (from->words > 0)
        memcpy(to->bits, from->bits, from->words * sizeof(*to->bits));
}

/* The lower of the two lows is missing in one of them, so it is the new low. */
void ordinal_set_intersect(struct ordinal_set *to, const struct ordinal_set *with)
{
    struct ordinal_set both = { .low = MIN(to->low, with->low) };
    int64_t high = MIN(to->high, with->high);

    both.high = both.low;
    if (high > both.low) {
        reserve(&both, high);
        for (int64_t w = word_of(both.low); w <= word_of(high - 1); w++) {
            uint64_t m = members(to, w) & members(with, w) & mask(w, both.low, high);
            *slot(&both, w) = m;
            if (m != 0)
                both.high = w * 64 + 64 - __builtin_clzll(m);
        }
    }
    ordinal_set_fini(to);
    *to = both;
}

bool ordinal_set_equal(const struct ordinal_set *a, const struct ordinal_set *b)
{
    if (a->low != b->low || a->high != b->high)
        return false;
    for (int64_t w = word_of(a->low); a->high > a->low && w <= word_of(a->high - 1); w++)
        if (*slot(a, w) != *slot(b, w))
            return false;
    return true;
}

/* First ordinal at or above `from` that is (or is not) a member; high when there is none. */
static int64_t find(const struct ordinal_set *a, int64_t from, bool member)
{
    while (from < a->high) {
        uint64_t bits = *slot(a, word_of(from));
        uint64_t hits = (member ? bits : ~bits) & (UINT64_MAX << (from & 63));
        if (hits != 0)
            return MIN((from & ~(int64_t)63) + __builtin_ctzll(hits), a->high);
        from = (from & ~(int64_t)63) + 64;
    }
    return a->high;
}

size_t ordinal_set_ranges(const struct ordinal_set *a, int64_t **ret)
{
    size_t n = 0, cap = 4;
    int64_t *r = xmalloc(2 * cap * sizeof(*r));

    for (int64_t at = find(a, a->low, true); at < a->high; at = find(a, at, true)) {
        if (n == cap) {
            cap *= 2;
            r = xrealloc(r, 2 * cap * sizeof(*r));
        }
        r[2 * n] = at;
        at = find(a, at, false);
        r[2 * n + 1] = at;
        n++;
    }
    *ret = r;
    return n;
}

int ordinal_set_from(int64_t low, const int64_t *ranges, size_t nvalues, struct ordinal_set *ret, struct err *e)
{
    if (low < 0 || low >= LOW_MAX)
        return err_set(e, ERR_INPUT, "ordinal set: low-water mark %lld is out of range", (long long)low);
    if (nvalues % 2 != 0)
        return err_set(e, ERR_INPUT, "ordinal set: %zu range values, not pairs", nvalues);
    int64_t before = low;
    for (size_t i = 0; i < nvalues; i += 2) {
        if (ranges[i] < before || ranges[i + 1] <= ranges[i] || ranges[i + 1] - low > ORDINAL_SET_SPAN_MAX)
            return err_set(e, ERR_INPUT, "ordinal set: range [%lld, %lld) is empty, out of order or out of span",
                           (long long)ranges[i], (long long)ranges[i + 1]);
        before = ranges[i + 1];
    }

    struct ordinal_set a = { .low = low, .high = low };
    if (nvalues > 0)
        reserve(&a, before);
    for (size_t i = 0; i < nvalues; i += 2)
        for (int64_t w = word_of(ranges[i]); w <= word_of(ranges[i + 1] - 1); w++)
            *slot(&a, w) |= mask(w, ranges[i], ranges[i + 1]);
    a.high = before;
    settle(&a);
    *ret = a;
    return 0;
}
