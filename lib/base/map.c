#include "base/map.h"

#include <string.h>

#include "base/rng.h"

enum { CAP_MIN = 8 };

/* A slot is empty (no key, no value), removed (no key, this value), or taken. */
static char removed_mark;
#define REMOVED ((void *)&removed_mark)

static bool is_empty(const struct map_slot *s)
{
    return s->key == NULL && s->value == NULL;
}

static bool is_removed(const struct map_slot *s)
{
    return s->key == NULL && s->value == REMOVED;
}

void map_fini(struct map *m)
{
    for (size_t i = 0; i < m->cap; i++)
        free(m->slots[i].key);
    free(m->slots);
    *m = (struct map){ 0 };
}

static size_t home(const struct map *m, const char *key)
{
    return (size_t)hash64(key, strlen(key), 0) & (m->cap - 1);
}

/* The slot of `key`, or NULL; there is always an empty slot to end at. */
static struct map_slot *find(const struct map *m, const char *key)
{
    if (m->n == 0)
        return NULL;
    for (size_t i = home(m, key);; i = (i + 1) & (m->cap - 1)) {
        struct map_slot *s = &m->slots[i];
        if (is_empty(s))
            return NULL;
        if (s->key != NULL && strcmp(s->key, key) == 0)
            return s;
    }
}

void *map_get(const struct map *m, const char *key)
{
    struct map_slot *s = find(m, key);
    return s != NULL ? s->value : NULL;
}

static struct map_slot *first_free(const struct map *m, const char *key)
{
    size_t i = home(m, key);
    while (m->slots[i].key != NULL)
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

/* New slots, at most half full with one more entry, without the removed ones. */
static void rebuild(struct map *m)
{
    struct map old = *m;

    m->cap = CAP_MIN;
    while ((old.n + 1) * 2 > m->cap)
        m->cap *= 2;
    m->slots = xcalloc(m->cap, sizeof(*m->slots));
    m->used = m->n;
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].key != NULL)
            *first_free(m, old.slots[i].key) = old.slots[i];
    free(old.slots);
}

void *map_put(struct map *m, const char *key, void *value)
{
    struct map_slot *s = find(m, key);

    if (s != NULL) {
        void *before = s->value;
        s->value = value;
        return before;
    }
    if ((m->used + 1) * 4 > m->cap * 3)
        rebuild(m);
    s = first_free(m, key);
    if (!is_removed(s))
        m->used++;
    *s = (struct map_slot){ .key = xstrdup(key), .value = value };
    m->n++;
    return NULL;
}

/* Removed slots before an empty one are empty as well: no search has to pass them. */
static void clear_run(struct map *m, size_t i)
{
    if (!is_empty(&m->slots[(i + 1) & (m->cap - 1)]))
        return;
    for (; is_removed(&m->slots[i]); i = (i - 1) & (m->cap - 1)) {
        m->slots[i].value = NULL;
        m->used--;
    }
}

void *map_remove(struct map *m, const char *key)
{
    struct map_slot *s = find(m, key);

    if (s == NULL)
        return NULL;
    void *value = s->value;
    free(s->key);
    *s = (struct map_slot){ .value = REMOVED };
    m->n--;
    clear_run(m, (size_t)(s - m->slots));
    return value;
}

struct map_slot *map_next(const struct map *m, size_t *i)
{
    while (*i < m->cap) {
        struct map_slot *s = &m->slots[(*i)++];
        if (s->key != NULL)
            return s;
    }
    return NULL;
}
