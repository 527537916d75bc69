/* The members as a table without order; jobs have few enough of them. */
#include "coord/members.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

void leased_ranges_add(struct leased_ranges *l, int64_t first, int64_t end)
{
    unsigned last = (l->next + LEASED_RANGES - 1) % LEASED_RANGES;
    if (l->range[last].end == first && l->range[last].first < first) { /* the next lease of a job's only worker */
        l->range[last].end = end;
        return;
    }
    l->range[l->next].first = first;
    l->range[l->next].end = end;
    l->next = (l->next + 1) % LEASED_RANGES;
}

bool leased_ranges_has(const struct leased_ranges *l, int64_t ordinal)
{
    for (int i = 0; i < LEASED_RANGES; i++)
        if (l->range[i].first <= ordinal && ordinal < l->range[i].end)
            return true;
    return false;
}

void members_fini(struct members *l)
{
    free(l->items);
}

struct member *members_find(const struct members *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].name, name) == 0)
            return &l->items[i];
    return NULL;
}

struct member *members_numbered(const struct members *l, int number)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].number == number)
            return &l->items[i];
    return NULL;
}

/* The entry of a member that has left, whose leases are free. */
static struct member *members_reuse(const struct members *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!l->items[i].alive)
            return &l->items[i];
    return NULL;
}

struct member *members_add(struct members *l, const char *name)
{
    struct member *m = l->n >= l->max ? members_reuse(l) : NULL;
    if (m == NULL && l->n >= l->max)
        return NULL;
    if (m == NULL) {
        l->items = xrealloc(l->items, (l->n + 1) * sizeof(*l->items));
        m = &l->items[l->n++];
    }
    *m = (struct member){ .number = -1, .suspect = -1, .claims_any = true, .reports_any = true };
    str_fmt(m->name, sizeof(m->name), "%s", name);
    return m;
}

size_t members_alive(const struct members *l, bool workers_only)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        n += l->items[i].alive && !(workers_only && l->items[i].role == ROLE_EVALUATOR);
    return n;
}
