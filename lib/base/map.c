/* A removed entry stays in its slot, without a key, until the next rebuild: so the others keep their places, and a
 * walk may remove the entries that it visits. */
#include "base/map.h"

#include <string.h>

#include "base/rng.h"

enum { CAP_MIN = 8 };

void map_fini(struct map *m)
{
    for (size_t i = 0; i < m->used; i++)
        free(m->slots[i].key);
    free(m->slots);
    free(m->index);
    *m = (struct map){ 0 };
}

static uint64_t hash_of(const char *key)
{
    return hash64(key, strlen(key), 0);
}

/* The entry of `key`, or NULL. The index always has a free place to end at. */
static struct map_slot *find_slot(const struct map *m, const char *key, uint64_t hash)
{
    if (m->n == 0)
        return NULL;
    for (size_t i = hash & (m->cap - 1); m->index[i] != 0; i = (i + 1) & (m->cap - 1)) {
        struct map_slot *s = &m->slots[m->index[i] - 1];
        if (s->hash == hash && s->key != NULL && strcmp(s->key, key) == 0)
            return s;
    }
    return NULL;
}

void *map_get(const struct map *m, const char *key)
{
    const struct map_slot *s = find_slot(m, key, hash_of(key));
    return s != NULL ? s->value : NULL;
}

static void append_slot(struct map *m, const struct map_slot *s)
{
    size_t i = s->hash & (m->cap - 1);

    while (m->index[i] != 0)
        i = (i + 1) & (m->cap - 1);
    m->slots[m->used++] = *s;
    m->index[i] = (uint32_t)m->used;
}

/* A new index, at most half full with one more entry, and slots without the removed ones. */
static void rebuild(struct map *m)
{
    struct map old = *m;

    m->cap = CAP_MIN;
    while ((old.n + 1) * 2 > m->cap)
        m->cap *= 2;
    m->slots = xcalloc(m->cap / 4 * 3, sizeof(*m->slots));
    m->index = xcalloc(m->cap, sizeof(*m->index));
    m->used = 0;
    for (size_t i = 0; i < old.used; i++)
        if (old.slots[i].key != NULL)
            append_slot(m, &old.slots[i]);
    free(old.slots);
    free(old.index);
}

void *map_put(struct map *m, const char *key, void *value)
{
    uint64_t hash = hash_of(key);
    struct map_slot *s = find_slot(m, key, hash);

    if (s != NULL) {
        void *before = s->value;
        s->value = value;
        return before;
    }
    if ((m->used + 1) * 4 > m->cap * 3)
        rebuild(m);
    append_slot(m, &(struct map_slot){ .key = xstrdup(key), .value = value, .hash = hash });
    m->n++;
    return NULL;
}

void *map_remove(struct map *m, const char *key)
{
    struct map_slot *s = find_slot(m, key, hash_of(key));

    if (s == NULL)
        return NULL;
    free(s->key);
    s->key = NULL;
    m->n--;
    return s->value;
}

struct map_slot *map_next(const struct map *m, size_t *i)
{
    while (*i < m->used) {
        struct map_slot *s = &m->slots[(*i)++];
        if (s->key != NULL)
            return s;
    }
    return NULL;
}
