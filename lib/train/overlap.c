#include "train/overlap.h"

#include "base/mem.h"

/* Three workers have 5 with and 2 without, four have 7 and 3: neither pair crosses both bounds, so nobody goes back and forth. */
static const double OFF_ABOVE = 6, ON_BELOW = 2.5;
enum { MEMORY = 32 }; /* pushes */

struct overlap overlap_init(bool allowed)
{
    return (struct overlap){ .allowed = allowed, .on = allowed };
}

void overlap_observe(struct overlap *o, int64_t staleness)
{
    o->pushes = MIN(o->pushes + 1, MEMORY);
    o->staleness += ((double)staleness - o->staleness) / o->pushes;
    if (o->staleness > OFF_ABOVE)
        o->on = false;
    else if (o->staleness < ON_BELOW)
        o->on = o->allowed;
}
