/* A gzip file of the user, unpacked once into the cache folder and mapped from there. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "data/gzip.h"
#include "data/unpack.h"

enum { POLL_MS = 20, SAY_EVERY_MS = 10000, WAIT_MAX_MS = 1800000 };

static int write_piece(void *user, const void *data, size_t n, struct err *e)
{
    struct file_out *out = user;
    return file_out_write(out, data, n, e);
}

static int unpack_to(const struct file_map *packed, const char *path, struct err *e)
{
    AUTO(file_out) *out = NULL;
    if (file_out_open(path, &out, e) < 0 ||
        gzip_unpack(packed->data, packed->size, packed->path, write_piece, out, e) < 0)
        return -1;
    return file_out_commit(out, e);
}

/* Waits while another process unpacks the same file. The lock only saves work: without it (a file system that
 * has none, or a holder that hangs) each unpacks for itself and the last rename wins with equal content. */
static void wait_for_lock(int fd, const char *path)
{
    int64_t start = clock_ms(), said = start;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        int64_t now = clock_ms();
        if (file_exists(path) || now - start > WAIT_MAX_MS)
            return;
        if (now - said >= SAY_EVERY_MS) {
            log_debug("waiting %lld s for another process that unpacks %s", (long long)(now - start) / 1000, path);
            said = now;
        }
        clock_sleep_ms(POLL_MS);
    }
}

int unpack_gzip(const struct data_place *at, const struct file_map *packed, const char *name, uint64_t key,
                struct file_map **ret, struct err *e)
{
    if (at->cache_dir == NULL)
        return err_set(e, ERR_INPUT, "%s: is gzip, and there is no cache folder to unpack it into", packed->path);

    auto_free char *path = cache_path(at, name, key, "raw");
    if (!file_exists(path)) {
        auto_free char *lock_path = xasprintf("%s.lock", path);
        if (dir_make(at->cache_dir, e) < 0)
            return err_wrap(e, "cache folder");
        auto_close int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (lock >= 0)
            wait_for_lock(lock, path);
        if (!file_exists(path) && unpack_to(packed, path, e) < 0)
            return -1;
        unlink(lock_path); /* a waiter that still holds the old one finds the file */
    }
    return file_map_open(path, ret, e);
}
