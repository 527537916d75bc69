/* pool - buffers for replies that are made once and used again: a fresh megabyte costs more in page faults than
 * in copying. A buffer is taken by one thread and given back by any other, also after pool_free (the transport may
 * hold replies a little longer than the server lives). At most POOL_KEEP idle ones are kept; taking never blocks.
 */
#ifndef TRAINYARD_TRAIN_POOL_H
#define TRAINYARD_TRAIN_POOL_H

#include <stdatomic.h>

#include "base/mem.h"

enum { POOL_KEEP = 16 };

struct pool;
struct pool_buffer {
    struct pool *pool;
    size_t size;
    void *data;     /* size bytes, 64-byte aligned, of any content */
    atomic_bool lent;
};
struct pool *pool_new(void);
void pool_free(struct pool *p);
DEFINE_AUTO(pool, pool_free)
MUST_USE int pool_take(struct pool *p, size_t size, struct pool_buffer **ret, struct err *e);
/* Before another thread is to give it back: what was written is seen by who takes it next. */
void pool_lend(struct pool_buffer *b);
void pool_give(void *buffer); /* struct pool_buffer *: fits rpc_piece.done */

#endif
