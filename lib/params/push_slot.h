/* push_slot - one request and its answer between two processes of a host, in memory that both have mapped
 * (params/shm_region.h). A push through a slot costs two futex calls instead of a gRPC call; its gradients and values
 * are in the same memory.
 *
 * The client fills `request` and `versions`, then posts `asked`. The server waits for that, fills `answer` and
 * `versions`, then posts `answered`. One request is under way at a time. Each side owns the other fields only between
 * the two posts, but trusts nothing it reads there: the server takes a copy of the request before it checks it. So no
 * field is a bool: a bool that another process has set to 7 is undefined behaviour.
 *
 * Both must be of one release: a server refuses another PUSH_SLOT_VERSION, and the bytes then travel through gRPC.
 */
#ifndef TRAINYARD_PARAMS_PUSH_SLOT_H
#define TRAINYARD_PARAMS_PUSH_SLOT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Raise PUSH_SLOT_VERSION when the structures below or the codes of base/err.h change. */
enum {
    PUSH_SLOT_VERSION = 2,
    PUSH_SLOT_ALIGNMENT = 64,
    PUSH_SLOT_TEXT_MAX = 240,
    PUSH_SLOTS_MAX = 4
}; /* PUSH_SLOTS_MAX: of a worker at one ps */

struct push_slot_request { /* as in the messages of a push, or of a pull of a step */
    int64_t ordinal;       /* -1: a pull */
    uint64_t generation;
    int64_t at;                       /* a pull: the first ordinal of the step's group */
    uint32_t wait_ms;                 /* a pull: waits so long for the step */
    uint64_t gradients_at, values_at; /* bytes from the start of the region: vectors in the model's layout */
    uint32_t first, count;            /* segments of the ps */
    uint8_t knows_versions;           /* 1: versions[] holds what the gradient was computed from */
};
struct push_slot_answer { /* of trainyard.v1.PushReply, or the error */
    uint64_t incarnation, generation;
    int32_t code; /* enum err_code */
    uint8_t duplicate;
    char text[PUSH_SLOT_TEXT_MAX];
};
struct push_slot {
    alignas(PUSH_SLOT_ALIGNMENT) _Atomic uint32_t asked;    /* number of the newest request; a futex */
    _Atomic uint32_t closed;                                /* the client does not use the slot any more */
    alignas(PUSH_SLOT_ALIGNMENT) _Atomic uint32_t answered; /* number of the newest answer; a futex */
    alignas(PUSH_SLOT_ALIGNMENT) struct push_slot_request request;
    struct push_slot_answer answer;
    int64_t versions[]; /* by segment of the request: seen, then new */
};

/* Bytes of a slot for requests of up to `segments` segments, a multiple of PUSH_SLOT_ALIGNMENT. */
size_t push_slot_size(size_t segments);
/* Copies the request of the client; the copy does not change any more. */
void push_slot_take(const struct push_slot *s, struct push_slot_request *ret);
/* Publishes all that was written before, and wakes the threads that wait for `word`. */
void push_slot_post(_Atomic uint32_t *word, uint32_t number);
/* Wakes the threads that wait for `word`, without changing it. */
void push_slot_wake(_Atomic uint32_t *word);
/* Blocks until `word` is no longer `old`, or the thread is woken, or the time-out. True: it changed. */
bool push_slot_wait(_Atomic uint32_t *word, uint32_t old, int64_t timeout_ms);

#endif
