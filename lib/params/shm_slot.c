/* Futexes of memory that processes share: without FUTEX_PRIVATE_FLAG the kernel knows them by the page, not by the
 * address. */
#include "params/shm_slot.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"

void shm_slot_take(void *to, const void *request, size_t n)
{
    memcpy(to, request, n);
    atomic_signal_fence(memory_order_seq_cst); /* the compiler may not read it again */
}

void shm_slot_answer(struct shm_slot *s, uint32_t number, const struct err *error)
{
    s->code = error != NULL ? (int32_t)error->code : ERR_NONE;
    if (error != NULL)
        str_fmt(s->text, sizeof(s->text), "%s", error->msg);
    shm_slot_post(&s->answered, number);
}

int shm_slot_error(const struct shm_slot *s, struct err *e)
{
    int32_t code;
    char text[SHM_SLOT_TEXT_MAX];
    shm_slot_take(&code, &s->code, sizeof(code));
    if (code == ERR_NONE)
        return 0;
    shm_slot_take(text, s->text, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    return err_set(e, code > ERR_NONE && code <= ERR_INTERNAL ? (enum err_code)code : ERR_INTERNAL, "%s", text);
}

void shm_slot_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shm_slot_post(_Atomic uint32_t *word, uint32_t number)
{
    atomic_store_explicit(word, number, memory_order_release);
    shm_slot_wake(word);
}

bool shm_slot_wait(_Atomic uint32_t *word, uint32_t old, int64_t timeout_ms)
{
    struct timespec timeout = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000 };
    if (atomic_load_explicit(word, memory_order_acquire) == old)
        (void)syscall(SYS_futex, word, FUTEX_WAIT, old, &timeout, NULL, 0);
    return atomic_load_explicit(word, memory_order_acquire) != old;
}

void shm_slot_close(struct shm_slot *s)
{
    atomic_store(&s->closed, 1);
    shm_slot_wake(&s->asked);
}
