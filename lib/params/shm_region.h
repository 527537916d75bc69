/* shm_region - memory that a worker and a ps of one host share, for pushes (params/push_slot.h): copying through the
 * kernel's network costs more CPU than the optimizer (test/bench/bench_params.c).
 *
 * The worker creates it as a memfd: it has no name in any file system, and the kernel frees it when its last user ends,
 * also after kill -9. It is sealed against shrinking, so a worker cannot make the ps fault. It begins with a random
 * nonce: a process that knows the nonce offers its own memory and not that of another process. When the two cannot see
 * each other's processes (another host or container), shm_region_open fails, and pushes are gRPC messages.
 */
#ifndef TRAINYARD_PARAMS_SHM_REGION_H
#define TRAINYARD_PARAMS_SHM_REGION_H

#include "base/mem.h"

enum { SHM_REGION_NONCE = 16, SHM_REGION_START = 4096 }; /* data begins at SHM_REGION_START */

struct shm_region {
    int fd;
    unsigned char *data; /* size bytes; shared */
    size_t size;
};
void shm_region_free(struct shm_region *r);
DEFINE_AUTO(shm_region, shm_region_free);

/* SHM_REGION_START + bytes, zeroed; a page uses memory when it is first written. ERR_NOMEM or ERR_IO. */
MUST_USE int shm_region_make(size_t bytes, struct shm_region **ret, struct err *e);
/* The region that process `pid` has as descriptor fd. ERR_REFUSED if that is not exactly such a region. */
MUST_USE int shm_region_open(int pid, int fd, size_t size, const void *nonce, size_t nonce_size,
                             struct shm_region **ret, struct err *e);
/* n bytes at `at`, at a multiple of 4; NULL when they are not within the region. */
void *shm_region_at(const struct shm_region *r, uint64_t at, size_t n);

#endif
