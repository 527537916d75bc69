/* pool - buffers for replies that are made once and used again: a fresh megabyte costs more in page faults than
 * in copying. A buffer is taken by one thread and given back by any other, also after pool_free (the transport may
 * hold replies a little longer than the server lives). At most POOL_KEEP idle ones are kept.
 *
 * What is taken and not given back has a limit, since callers that do not read their replies would else fill the
 * memory. Each caller has a share of it, so that one of them does not keep the others from being served.
 */
#ifndef TRAINYARD_PARAMS_POOL_H
#define TRAINYARD_PARAMS_POOL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/mem.h"

enum { POOL_KEEP = 16 };

struct pool;
struct pool_buffer {
    struct pool *pool;
    size_t size, taken; /* bytes it has; that were asked for */
    uint64_t caller;
    void *data; /* size bytes, 64-byte aligned, of any content */
    atomic_bool lent;
};
struct pool *pool_new(void);
void pool_free(struct pool *p);
DEFINE_AUTO(pool, pool_free);
/* Until the buffer is taken at most `budget` bytes may be out, this one among them; a buffer that is alone may be
 * larger. Waits for room for wait_ms at most, then ERR_NOT_READY: ask again. */
struct pool_limit {
    size_t budget;
    int64_t wait_ms;
    uint64_t caller; /* who asks; 0: not known, so that `share` does not count */
    size_t share;    /* bytes that the caller may have; one buffer in any case */
};
MUST_USE int pool_take(struct pool *p, size_t size, struct pool_limit limit, struct pool_buffer **ret, struct err *e);
/* Only counts: size bytes of the caller's own memory. */
MUST_USE int pool_reserve(struct pool *p, size_t size, struct pool_limit limit, struct err *e);
void pool_release(struct pool *p, size_t size, uint64_t caller);
/* Before another thread is to give it back: what was written is seen by who takes it next. */
void pool_lend(struct pool_buffer *b);
void pool_give(void *buffer); /* struct pool_buffer *: fits rpc_piece.done */

#endif
