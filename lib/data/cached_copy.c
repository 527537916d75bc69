/* Files of the cache folder that one process writes while the others wait. A copy is complete or absent. */
#include "data/cached_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { POLL_MS = 20, SAY_EVERY_MS = 10000, WAIT_MAX_MS = 1800000 };

/* Waits while another process writes the same copy. The lock only saves work: without it (a file system that
 * has none, or a holder that hangs) each writes for itself and the last rename wins with equal content. */
static void wait_for_lock(int fd, const char *path)
{
    int64_t start = clock_ms(), said = start;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
        int64_t now = clock_ms();
        if (file_exists(path) || now - start > WAIT_MAX_MS)
            return;
        if (now - said >= SAY_EVERY_MS) {
            log_debug("waiting %lld s for another process that writes %s", (long long)(now - start) / 1000, path);
            said = now;
        }
        clock_sleep_ms(POLL_MS);
    }
}

static int write_copy(const char *path, cached_copy_writer *write, void *user, struct err *e)
{
    AUTO(file_out) *out = NULL;
    if (file_out_open(path, &out, e) < 0 || write(user, out, e) < 0)
        return -1;
    return file_out_commit(out, e);
}

static char *copy_path(const struct data_place *at, const struct cached_copy *c)
{
    return cache_path(at, c->name, c->key, "raw");
}

bool cached_copy_exists(const struct data_place *at, const struct cached_copy *c)
{
    auto_free char *path = at->cache_dir != NULL ? copy_path(at, c) : NULL;
    return path != NULL && file_exists(path);
}

int cached_copy_open(const struct data_place *at, const struct cached_copy *c, cached_copy_writer *write, void *user,
                     struct file_map **ret, struct err *e)
{
    if (at->cache_dir == NULL)
        return err_set(e, ERR_INPUT, "%s: is %s, but there is no cache folder to %s it into", c->path, c->what, c->how);

    auto_free char *path = copy_path(at, c);
    if (!file_exists(path)) {
        auto_free char *lock_path = xasprintf("%s.lock", path);
        if (dir_make(at->cache_dir, e) < 0)
            return err_wrap(e, "cache folder");
        auto_close int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (lock >= 0)
            wait_for_lock(lock, path);
        if (!file_exists(path) && write_copy(path, write, user, e) < 0)
            return -1;
        unlink(lock_path); /* a waiter that still holds the old one finds the file */
    }
    return file_map_open(path, ret, e);
}
