/* The ordinals of one group, under a lock: those of the newest step that a thread has begun. */
#include "train/claims.h"

#include <string.h>

#include "base/thread.h"

struct claims {
    struct mutex lock;
    int64_t size, first; /* ordinals of a group; the first one of the step; -1: none has begun */
    bool *taken;
};

struct claims *claims_new(int64_t size)
{
    struct claims *c = xcalloc(1, sizeof(*c));
    mutex_init(&c->lock);
    c->size = size;
    c->first = -1;
    c->taken = xcalloc((size_t)size, sizeof(*c->taken));
    return c;
}

void claims_free(struct claims *c)
{
    if (c == NULL)
        return;
    mutex_fini(&c->lock);
    free(c->taken);
    free(c);
}

bool claims_take(struct claims *c, int64_t first, int64_t ordinal)
{
    MUTEX_GUARD(&c->lock);
    if (first > c->first) {
        memset(c->taken, 0, (size_t)c->size * sizeof(*c->taken));
        c->first = first;
    }
    if (first < c->first || c->taken[ordinal - first])
        return false;
    c->taken[ordinal - first] = true;
    return true;
}
