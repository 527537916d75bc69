/* map - a hash table from strings to pointers that keeps the order of insertion. Keys are copied, values belong to the
 * user.
 *
 * The entries are stored in an array in insertion order. An open-addressed index finds an entry by its key in O(1).
 * Entries may be removed during a walk with map_next(), but not added. At most 2^32 - 1 entries.
 */
#ifndef TRAINYARD_BASE_MAP_H
#define TRAINYARD_BASE_MAP_H

#include "base/mem.h"

struct map_slot {
    char *key; /* NULL: removed */
    void *value;
    uint64_t hash;
};
struct map {
    struct map_slot *slots; /* in order of insertion */
    uint32_t *index;        /* 0: free, else the index of a slot + 1 */
    size_t n, used,
        cap; /* used: slots, including removed ones; cap: size of the index, which is at most three quarters full */
};

void map_fini(struct map *m); /* values are not freed */
DEFINE_AUTO_FINI(map, map_fini);
void *map_get(const struct map *m, const char *key);        /* NULL: not there */
void *map_put(struct map *m, const char *key, void *value); /* the value it replaces, which keeps its place, or NULL */
void *map_remove(struct map *m, const char *key);
/* In order of insertion: for (size_t i = 0; (slot = map_next(&m, &i)) != NULL;) */
struct map_slot *map_next(const struct map *m, size_t *i);

#endif
