/* region - memory that a worker and a ps of one host share, for pushes (params/slot.h): copying through the kernel's
 * network costs more CPU than the optimizer (test/bench/bench_params.c).
 *
 * The client makes it, as a memfd, so it has no name in any file system and goes with its last user, also by kill -9.
 * It is sealed against shrinking, so a client cannot make the ps fault. It begins with a random nonce: who knows the
 * nonce, offers memory of its own and not that of another process. Where the two cannot see each other's processes
 * (other host, other container) region_open fails and bytes travel as before.
 */
#ifndef TRAINYARD_PARAMS_REGION_H
#define TRAINYARD_PARAMS_REGION_H

#include "base/mem.h"

enum { REGION_NONCE = 16, REGION_START = 4096 }; /* data begins at REGION_START */

struct region {
    int fd;
    unsigned char *data; /* size bytes; shared */
    size_t size;
};
void region_free(struct region *r);
DEFINE_AUTO(region, region_free);

/* REGION_START + bytes, zeroed; pages are taken when they are touched first. ERR_NOMEM or ERR_IO. */
MUST_USE int region_make(size_t bytes, struct region **ret, struct err *e);
/* The region that process `pid` has as descriptor fd. ERR_REFUSED for all that is not exactly such a region. */
MUST_USE int region_open(int pid, int fd, size_t size, const void *nonce, size_t nonce_size, struct region **ret,
                         struct err *e);
/* n bytes at `at`, at a multiple of 4; NULL when they do not lie within. */
void *region_at(const struct region *r, uint64_t at, size_t n);

#endif
