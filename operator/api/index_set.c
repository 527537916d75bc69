/* Sorted ranges of indexes and counts by index, with binary search; texts that are read are bounded. */
#include <limits.h>
#include <string.h>

#include "api/index_set.h"
#include "base/str.h"

enum { INDEX_MAX = 1 << 24, ITEMS_MAX = 1 << 17 }; /* of what is read from an object */

void index_set_fini(struct index_set *s)
{
    free(s->ranges);
    *s = (struct index_set){ 0 };
}

/* The first range that ends at or after index; s->n: none. */
static size_t range_at(const struct index_set *s, int index)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->ranges[middle].last < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool index_set_has(const struct index_set *s, int index)
{
    size_t at = range_at(s, index);
    return at < s->n && s->ranges[at].first <= index;
}

static void range_insert(struct index_set *s, size_t at, int first, int last)
{
    s->ranges = xrealloc(s->ranges, (s->n + 1) * sizeof(*s->ranges));
    memmove(s->ranges + at + 1, s->ranges + at, (s->n - at) * sizeof(*s->ranges));
    s->ranges[at].first = first;
    s->ranges[at].last = last;
    s->n++;
}

static void range_join_next(struct index_set *s, size_t at)
{
    s->ranges[at].last = s->ranges[at + 1].last;
    memmove(s->ranges + at + 1, s->ranges + at + 2, (s->n - at - 2) * sizeof(*s->ranges));
    s->n--;
}

bool index_set_add(struct index_set *s, int index)
{
    if (index < 0 || index >= INT_MAX || index_set_has(s, index))
        return false;
    size_t at = range_at(s, index);
    bool after = at > 0 && s->ranges[at - 1].last + 1 == index;
    bool before = at < s->n && s->ranges[at].first - 1 == index;
    if (after) {
        s->ranges[at - 1].last = index;
        if (before)
            range_join_next(s, at - 1);
    } else if (before) {
        s->ranges[at].first = index;
    } else {
        range_insert(s, at, index, index);
    }
    return true;
}

bool index_set_remove(struct index_set *s, int index)
{
    size_t at = range_at(s, index);
    if (!index_set_has(s, index))
        return false;
    int first = s->ranges[at].first, last = s->ranges[at].last;
    memmove(s->ranges + at, s->ranges + at + 1, (s->n - at - 1) * sizeof(*s->ranges));
    s->n--;
    if (last > index)
        range_insert(s, at, index + 1, last);
    if (first < index)
        range_insert(s, at, first, index - 1);
    return true;
}

int index_set_count(const struct index_set *s)
{
    int n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->ranges[i].last - s->ranges[i].first + 1;
    return n;
}

void index_set_emit(const struct index_set *s, struct buf *out)
{
    for (size_t i = 0; i < s->n; i++) {
        buf_printf(out, "%s%d", i > 0 ? "," : "", s->ranges[i].first);
        if (s->ranges[i].last > s->ranges[i].first)
            buf_printf(out, "-%d", s->ranges[i].last);
    }
}

/* Parses "3" or "0-2" at *p and advances *p. */
static bool take_index(const char **p, int *ret)
{
    const char *start = *p;
    int n = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++)
        if ((n = 10 * n + (**p - '0')) > INDEX_MAX)
            return false;
    *ret = n;
    return *p > start;
}

static bool take_range(const char **p, int *ret_first, int *ret_last)
{
    if (!take_index(p, ret_first))
        return false;
    *ret_last = *ret_first;
    if (**p != '-')
        return true;
    (*p)++;
    return take_index(p, ret_last) && *ret_last >= *ret_first;
}

int index_set_parse(const char *text, struct index_set *ret, struct err *e)
{
    AUTO_FINI(index_set) s = { 0 };
    int first, last;

    for (const char *p = text; *p != '\0'; p += *p == ',') {
        if (!take_range(&p, &first, &last) || (*p != ',' && *p != '\0') || s.n >= ITEMS_MAX)
            return err_set(e, ERR_INPUT, "'%.40s' is not a list of indexes such as 0-2,5", text);
        if (s.n > 0 && s.ranges[s.n - 1].last >= first)
            return err_set(e, ERR_INPUT, "'%.40s': the indexes are not in order", text);
        if (s.n > 0 && s.ranges[s.n - 1].last + 1 == first)
            s.ranges[s.n - 1].last = last;
        else
            range_insert(&s, s.n, first, last);
    }
    *ret = s;
    s = (struct index_set){ 0 };
    return 0;
}

/* ---- counts ---- */

static size_t count_at(const struct index_counts *c, int index)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->items[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int index_counts_get(const struct index_counts *c, int index)
{
    size_t at = count_at(c, index);
    return at < c->n && c->items[at].index == index ? c->items[at].count : 0;
}

void index_counts_set(struct index_counts *c, int index, int count)
{
    size_t at = count_at(c, index);
    if (at == c->n || c->items[at].index != index) {
        c->items = xrealloc(c->items, (c->n + 1) * sizeof(*c->items));
        memmove(c->items + at + 1, c->items + at, (c->n - at) * sizeof(*c->items));
        c->n++;
    }
    c->items[at].index = index;
    c->items[at].count = count;
}

void index_counts_emit(const struct index_counts *c, struct buf *out)
{
    for (size_t i = 0; i < c->n; i++)
        buf_printf(out, "%s%d:%d", i > 0 ? "," : "", c->items[i].index, c->items[i].count);
}

void index_counts_parse(const char *text, struct index_counts *ret)
{
    int index, count;
    for (const char *p = text; *p != '\0'; p += *p == ',') {
        if (!take_index(&p, &index) || *p++ != ':' || !take_index(&p, &count) || (*p != ',' && *p != '\0') ||
            ret->n >= ITEMS_MAX)
            return;
        if (ret->n > 0 && index <= ret->items[ret->n - 1].index) /* it was not written by index_counts_emit() */
            return;
        index_counts_set(ret, index, count);
    }
}
