/* The two containers of str.h: a list of strings and a map from strings. */
#include <ctype.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"

void strlist_fini(struct strlist *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
    *l = (struct strlist){ 0 };
}

static void list_take(struct strlist *l, char *owned)
{
    if (l->n == l->cap) {
        l->cap = MAX(8, l->cap * 2);
        l->items = xrealloc(l->items, l->cap * sizeof(l->items[0]));
    }
    l->items[l->n++] = owned;
}

void strlist_add(struct strlist *l, const char *s)
{
    list_take(l, xstrdup(s));
}

void strlist_split(struct strlist *l, const char *s, char separator)
{
    for (;;) {
        const char *end = strchr(s, separator);
        size_t n = end != NULL ? (size_t)(end - s) : strlen(s);
        while (n > 0 && isspace((unsigned char)*s)) {
            s++;
            n--;
        }
        while (n > 0 && isspace((unsigned char)s[n - 1]))
            n--;
        if (n > 0)
            list_take(l, xstrndup(s, n));
        if (end == NULL)
            return;
        s = end + 1;
    }
}

bool strlist_has(const struct strlist *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->items[i], s))
            return true;
    return false;
}

/* Entries in insertion order; slots is an open-addressed index of them, 0 = free, else entry + 1. */
struct entry {
    char *key;
    void *value;
    uint64_t hash;
};
struct strmap {
    struct entry *entries;
    size_t n, cap;
    size_t *slots;
    size_t nslots; /* a power of two, at least twice n */
};

struct strmap *strmap_new(void)
{
    struct strmap *m = xcalloc(1, sizeof(*m));
    m->nslots = 16;
    m->slots = xcalloc(m->nslots, sizeof(m->slots[0]));
    return m;
}

void strmap_free(struct strmap *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n; i++)
        free(m->entries[i].key);
    free(m->entries);
    free(m->slots);
    free(m);
}

/* The slot that holds the key, or the free one where it belongs. */
static size_t *find_slot(const struct strmap *m, const char *key, uint64_t hash)
{
    size_t i = hash & (m->nslots - 1);
    while (m->slots[i] != 0) {
        const struct entry *entry = &m->entries[m->slots[i] - 1];
        if (entry->hash == hash && str_eq(entry->key, key))
            break;
        i = (i + 1) & (m->nslots - 1);
    }
    return &m->slots[i];
}

static void grow_slots(struct strmap *m)
{
    free(m->slots);
    m->nslots *= 2;
    m->slots = xcalloc(m->nslots, sizeof(m->slots[0]));
    for (size_t i = 0; i < m->n; i++)
        *find_slot(m, m->entries[i].key, m->entries[i].hash) = i + 1;
}

void strmap_set(struct strmap *m, const char *key, void *value)
{
    uint64_t hash = hash64(key, strlen(key), 0);
    size_t *slot = find_slot(m, key, hash);

    if (*slot != 0) {
        m->entries[*slot - 1].value = value;
        return;
    }
    if (m->n == m->cap) {
        m->cap = MAX(8, m->cap * 2);
        m->entries = xrealloc(m->entries, m->cap * sizeof(m->entries[0]));
    }
    m->entries[m->n] = (struct entry){ .key = xstrdup(key), .value = value, .hash = hash };
    *slot = ++m->n;
    if (m->n * 2 > m->nslots)
        grow_slots(m);
}

void *strmap_get(const struct strmap *m, const char *key)
{
    size_t slot = *find_slot(m, key, hash64(key, strlen(key), 0));
    return slot != 0 ? m->entries[slot - 1].value : NULL;
}

size_t strmap_size(const struct strmap *m)
{
    return m->n;
}

const char *strmap_key(const struct strmap *m, size_t i)
{
    return i < m->n ? m->entries[i].key : NULL;
}

void *strmap_value(const struct strmap *m, size_t i)
{
    return i < m->n ? m->entries[i].value : NULL;
}
