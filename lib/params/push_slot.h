/* push_slot - a push, or the pull of a step, between a worker and a ps of one host (params/shm_slot.h). The gradients
 * and values are in the same memory.
 *
 * Both must be of one release: a server refuses another PUSH_SLOT_VERSION, and the bytes then travel through gRPC.
 */
#ifndef TRAINYARD_PARAMS_PUSH_SLOT_H
#define TRAINYARD_PARAMS_PUSH_SLOT_H

#include "params/slot_server.h"

/* Raise PUSH_SLOT_VERSION when struct shm_slot, the structures below or the codes of base/err.h change. */
enum { PUSH_SLOT_VERSION = 3 };

struct push_slot_request { /* as in the messages of a push, or of a pull of a step */
    int64_t ordinal;       /* -1: a pull */
    uint64_t generation;
    int64_t at;                       /* a pull: the first ordinal of the step's group */
    uint32_t wait_ms;                 /* a pull: waits so long for the step */
    uint64_t gradients_at, values_at; /* bytes from the start of the region: vectors in the model's layout */
    uint32_t first, count;            /* segments of the ps */
    uint8_t knows_versions;           /* 1: versions[] holds what the gradient was computed from */
};
struct push_slot_answer { /* of trainyard.v1.PushReply */
    uint64_t incarnation, generation;
    uint8_t duplicate;
};
struct push_slot {
    struct shm_slot base;
    alignas(SHM_SLOT_ALIGNMENT) struct push_slot_request request;
    struct push_slot_answer answer;
    int64_t versions[]; /* by segment of the request: seen, then new */
};

/* Bytes of a slot for requests of up to `segments` segments, a multiple of SHM_SLOT_ALIGNMENT. */
size_t push_slot_size(size_t segments);

#endif
