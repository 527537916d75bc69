/* map - a hash table from strings to pointers. Keys are copied, values belong to the user.
 *
 * Open addressing, at most three quarters full; adding and looking up cost O(1), 16 bytes a slot beside the key. The
 * order of map_next() is that of the table; entries may be removed while walking, not added.
 */
#ifndef TRAINYARD_BASE_MAP_H
#define TRAINYARD_BASE_MAP_H

#include "base/mem.h"

struct map_slot {
    char *key;
    void *value;
};
struct map {
    struct map_slot *slots;
    size_t n, used, cap; /* used: with removed ones */
};

void map_fini(struct map *m); /* values are not freed */
DEFINE_AUTO_FINI(map, map_fini);
void *map_get(const struct map *m, const char *key);        /* NULL: not there */
void *map_put(struct map *m, const char *key, void *value); /* the value it replaces, or NULL */
void *map_remove(struct map *m, const char *key);
/* for (size_t i = 0; (slot = map_next(&m, &i)) != NULL;) */
struct map_slot *map_next(const struct map *m, size_t *i);

#endif
