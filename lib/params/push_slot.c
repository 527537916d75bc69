/* The size of a slot. */
#include "params/push_slot.h"

size_t push_slot_size(size_t segments)
{
    size_t bytes = sizeof(struct push_slot) + segments * sizeof(int64_t);
    return (bytes + SHM_SLOT_ALIGNMENT - 1) / SHM_SLOT_ALIGNMENT * SHM_SLOT_ALIGNMENT;
}
