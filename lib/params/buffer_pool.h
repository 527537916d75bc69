/* buffer_pool - buffers for replies that are allocated once and used again: a new megabyte costs more in page faults
 * than in copying. A buffer is taken by one thread and returned by any other, also after buffer_pool_free, because the
 * transport may hold replies a little longer than the server exists. At most BUFFER_POOL_KEEP idle ones are kept.
 *
 * Buffers that are taken and not returned have a limit, because callers that do not read their replies would otherwise
 * fill the memory. Each caller has a share of it, so that one caller does not block the others.
 */
#ifndef TRAINYARD_PARAMS_BUFFER_POOL_H
#define TRAINYARD_PARAMS_BUFFER_POOL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/mem.h"

enum { BUFFER_POOL_KEEP = 16 };

struct buffer_pool;
struct pooled_buffer {
    struct buffer_pool *pool;
    size_t size, taken; /* bytes allocated; bytes requested */
    uint64_t caller;
    void *data; /* size bytes, 64-byte aligned, content undefined */
    atomic_bool handed_over;
};
struct buffer_pool *buffer_pool_new(void);
void buffer_pool_free(struct buffer_pool *p);
DEFINE_AUTO(buffer_pool, buffer_pool_free);
/* At most `budget` bytes may be taken, including this buffer; a buffer that is the only one may be larger. Waits for
 * room for wait_ms at most, then ERR_NOT_READY: retry later. */
struct buffer_pool_limit {
    size_t budget;
    int64_t wait_ms;
    uint64_t caller; /* 0: not known, so that `share` does not apply */
    size_t share;    /* bytes that the caller may have; one buffer in any case */
};
MUST_USE int buffer_pool_take(struct buffer_pool *p, size_t size, struct buffer_pool_limit limit,
                              struct pooled_buffer **ret, struct err *e);
/* Only counts: size bytes of the caller's own memory. */
MUST_USE int buffer_pool_reserve(struct buffer_pool *p, size_t size, struct buffer_pool_limit limit, struct err *e);
void buffer_pool_release(struct buffer_pool *p, size_t size, uint64_t caller);
/* Call it before another thread returns the buffer: the thread that takes it next then sees what was written. */
void buffer_pool_hand_over(struct pooled_buffer *b);
void buffer_pool_give(void *buffer); /* struct pooled_buffer *: fits rpc_piece.done */

#endif
