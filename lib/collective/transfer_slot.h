/* transfer_slot - a gradient for another member of this host (params/shm_slot.h), and the sum in the answer, as
 * Transfer of lib/rpc/peer.proto. The gradient and the sums are in the same memory, as vectors in the model's layout.
 *
 * Both must be of one release: a member refuses another TRANSFER_SLOT_VERSION, and the bytes then travel through gRPC.
 */
#ifndef TRAINYARD_COLLECTIVE_TRANSFER_SLOT_H
#define TRAINYARD_COLLECTIVE_TRANSFER_SLOT_H

#include "params/slot_server.h"

/* Raise TRANSFER_SLOT_VERSION when struct shm_slot, the structures below or the codes of base/err.h change. */
enum { TRANSFER_SLOT_VERSION = 1, TRANSFER_SLOTS = 2 /* of a member at another one */ };

struct transfer_slot_request {
    uint64_t generation, view;
    int64_t at, ordinal;
    uint32_t chunk, wait_ms;
    uint8_t want_sum;
    uint64_t gradient_at, sums_at; /* bytes from the start of the region: vectors */
};
struct transfer_slot {
    struct shm_slot base;
    alignas(SHM_SLOT_ALIGNMENT) struct transfer_slot_request request;
};

/* The memory of a member, for a vector of so many floats: slots for SLOT_CLIENTS_MAX others, the gradient, the sums. */
struct transfer_memory {
    size_t slots_at, gradient_at, sums_at, size; /* bytes from the start of the region; of all of it */
};
/* size 0: it would be larger than TRANSFER_MEMORY_MAX. */
enum { TRANSFER_MEMORY_MAX = 1 << 30 };
struct transfer_memory transfer_memory_plan(size_t floats);
/* The slots of other member number i. */
size_t transfer_slots_at(const struct transfer_memory *m, size_t i);

#endif
