/* Where each part lies. The memory of a vector is not touched until it is used. */
#include "collective/transfer_slot.h"

static size_t reserve(size_t *at, size_t bytes)
{
    size_t from = *at;
    *at += (bytes + SHM_REGION_START - 1) / SHM_REGION_START * SHM_REGION_START; /* whole pages */
    return from;
}

struct transfer_memory transfer_memory_plan(size_t floats)
{
    struct transfer_memory m = { 0 };
    size_t at = SHM_REGION_START;
    if (floats > TRANSFER_MEMORY_MAX / (2 * sizeof(float)))
        return m;
    m.slots_at = reserve(&at, SLOT_CLIENTS_MAX * TRANSFER_SLOTS * sizeof(struct transfer_slot));
    m.gradient_at = reserve(&at, floats * sizeof(float));
    m.sums_at = reserve(&at, floats * sizeof(float));
    m.size = at;
    return m;
}

size_t transfer_slots_at(const struct transfer_memory *m, size_t i)
{
    return m->slots_at + i * TRANSFER_SLOTS * sizeof(struct transfer_slot);
}
