/* Futexes of memory that processes share: without FUTEX_PRIVATE_FLAG the kernel knows them by the page, not by the
 * address. */
#include "params/push_slot.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

size_t push_slot_size(size_t segments)
{
    size_t bytes = sizeof(struct push_slot) + segments * sizeof(int64_t);
    return (bytes + PUSH_SLOT_ALIGNMENT - 1) / PUSH_SLOT_ALIGNMENT * PUSH_SLOT_ALIGNMENT;
}

void push_slot_take(const struct push_slot *s, struct push_slot_request *ret)
{
    memcpy(ret, &s->request, sizeof(*ret));
    atomic_signal_fence(memory_order_seq_cst); /* the compiler may not read it again */
}

void push_slot_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void push_slot_post(_Atomic uint32_t *word, uint32_t number)
{
    atomic_store_explicit(word, number, memory_order_release);
    push_slot_wake(word);
}

bool push_slot_wait(_Atomic uint32_t *word, uint32_t old, int64_t timeout_ms)
{
    struct timespec timeout = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000 };
    if (atomic_load_explicit(word, memory_order_acquire) == old)
        (void)syscall(SYS_futex, word, FUTEX_WAIT, old, &timeout, NULL, 0);
    return atomic_load_explicit(word, memory_order_acquire) != old;
}
