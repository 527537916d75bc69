/* Nothing that the other process states is trusted: the descriptor must be a memfd with the expected name, sealed,
 * of the size that was stated, with the nonce that was stated. */
#include "params/shm_region.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define SHM_REGION_NAME "trainyard"

void shm_region_free(struct shm_region *r)
{
    if (r == NULL)
        return;
    if (r->data != NULL)
        munmap(r->data, r->size);
    fd_close(r->fd);
    free(r);
}

static int map(struct shm_region *r, size_t size, struct err *e)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (p == MAP_FAILED)
        return err_errno(e, ERR_NOMEM, "shared memory of %zu bytes", size);
    r->data = p;
    r->size = size;
    return 0;
}

static struct shm_region *shm_region_new(int fd)
{
    struct shm_region *r = xcalloc(1, sizeof(*r));
    r->fd = fd;
    return r;
}

int shm_region_make(size_t bytes, struct shm_region **ret, struct err *e)
{
    size_t size;
    if (size_add(bytes, SHM_REGION_START, &size, e) < 0)
        return -1;
    AUTO(shm_region) *r = shm_region_new(memfd_create(SHM_REGION_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (r->fd < 0 || ftruncate(r->fd, (off_t)size) < 0 ||
        fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return err_errno(e, ERR_IO, "shared memory of %zu bytes", size);
    if (map(r, size, e) < 0)
        return -1;
    if (getrandom(r->data, SHM_REGION_NONCE, 0) != SHM_REGION_NONCE)
        return err_errno(e, ERR_IO, "random numbers");
    *ret = TAKE(r);
    return 0;
}

/* Reads the name first: opening something else than a memfd may have side effects. */
static int open_memfd(int pid, int fd)
{
    char path[64], target[64];
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n < 0)
        return -1;
    target[n] = '\0';
    if (!str_starts(target, "/memfd:" SHM_REGION_NAME))
        return -1;
    return open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static bool is_whole(int fd, size_t size)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == size;
}

int shm_region_open(int pid, int fd, size_t size, const void *nonce, size_t nonce_size, struct shm_region **ret,
                    struct err *e)
{
    if (pid <= 0 || fd < 0 || nonce_size != SHM_REGION_NONCE || size < SHM_REGION_START)
        return err_set(e, ERR_REFUSED, "not a valid offer of shared memory");
    AUTO(shm_region) *r = shm_region_new(open_memfd(pid, fd));
    if (r->fd < 0 || !is_whole(r->fd, size) || map(r, size, NULL) < 0)
        return err_set(e, ERR_REFUSED, "the memory of process %d cannot be shared from here", pid);
    if (memcmp(r->data, nonce, SHM_REGION_NONCE) != 0)
        return err_set(e, ERR_REFUSED, "the memory of process %d has another nonce", pid);
    *ret = TAKE(r);
    return 0;
}

void *shm_region_at(const struct shm_region *r, uint64_t at, size_t n)
{
    if (at < SHM_REGION_START || at % sizeof(float) != 0 || at > r->size || n > r->size - at)
        return NULL;
    return r->data + at;
}
