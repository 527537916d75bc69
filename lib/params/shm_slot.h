/* shm_slot - one request and its answer between two processes of a host, in memory that both have mapped
 * (params/shm_region.h): a call costs two futex calls instead of a gRPC call. What a request and an answer are is the
 * protocol's (params/push_slot.h, collective/transfer_slot.h), whose structure begins with a shm_slot.
 *
 * The client fills the request, then posts `asked`. The server waits for that, fills the answer, then posts
 * `answered`. One request is under way at a time. Each side owns the other fields only between the two posts, but
 * trusts nothing it reads there: the server takes a copy of the request before it checks it. So no field is a bool: a
 * bool that another process has set to 7 is undefined behaviour.
 */
#ifndef TRAINYARD_PARAMS_SHM_SLOT_H
#define TRAINYARD_PARAMS_SHM_SLOT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SHM_SLOT_ALIGNMENT = 64, SHM_SLOT_TEXT_MAX = 240 };
struct shm_slot {
    alignas(SHM_SLOT_ALIGNMENT) _Atomic uint32_t asked;    /* number of the newest request; a futex */
    _Atomic uint32_t closed;                               /* the client does not use the slot any more */
    alignas(SHM_SLOT_ALIGNMENT) _Atomic uint32_t answered; /* number of the newest answer; a futex */
    int32_t code;                                          /* of the answer: enum err_code */
    char text[SHM_SLOT_TEXT_MAX];                          /* with an error: its message */
};

/* Copies n bytes of a request; the copy does not change any more. */
void shm_slot_take(void *to, const void *request, size_t n);
/* The server: the answer is there, or *error takes its place (NULL: none). */
void shm_slot_answer(struct shm_slot *s, uint32_t number, const struct err *error);
/* The client, once it is answered: the error of the answer, if there is one. */
MUST_USE int shm_slot_error(const struct shm_slot *s, struct err *e);
/* Publishes all that was written before, and wakes the threads that wait for `word`. */
void shm_slot_post(_Atomic uint32_t *word, uint32_t number);
/* Wakes the threads that wait for `word`, without changing it. */
void shm_slot_wake(_Atomic uint32_t *word);
/* Blocks until `word` differs from `old`, the thread is woken, or the time-out. True: it differs. */
bool shm_slot_wait(_Atomic uint32_t *word, uint32_t old, int64_t timeout_ms);
/* The client does not use the slot any more: the server unmaps the memory when it sees this. */
void shm_slot_close(struct shm_slot *s);

#endif
