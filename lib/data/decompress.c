/* A compressed file of the user, or a member of an archive, unpacked once into the cache folder and mapped from there.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "data/decompress.h"

enum { POLL_MS = 20, SAY_EVERY_MS = 10000, WAIT_MAX_MS = 1800000 };

/* Data sets shrink at most to a hundredth. A file that becomes larger than that is damaged, or made to fill a disk. */
enum { RATIO_MAX = 100, ALWAYS_MAX = 256 << 20 };

struct unpacking {
    struct file_out *out;
    const char *name;
    uint64_t left, max;
    bool sized;
    uint32_t crc;
};

static int too_large(const char *name, uint64_t max, struct err *e)
{
    char text[32];
    return err_set(e, ERR_INPUT,
                   "%s: is larger than %s when decompressed; if this is correct, set "
                   "maxUnpackedBytes",
                   name, str_bytes(max, text));
}

static int write_piece(void *user, const void *data, size_t n, struct err *e)
{
    struct unpacking *u = user;
    if (n > u->left)
        return too_large(u->name, u->max, e);
    u->left -= n;
    if (u->sized)
        u->crc = crc32_update(u->crc, data, n);
    return file_out_write(u->out, data, n, e);
}

static uint64_t unpacked_max(const struct data_place *at, const struct packed *p)
{
    if (at->spec->max_unpacked > 0)
        return (uint64_t)at->spec->max_unpacked;
    return MAX((uint64_t)MIN(p->n, SIZE_MAX / RATIO_MAX) * RATIO_MAX, (uint64_t)ALWAYS_MAX);
}

static int unpack_to(const struct data_place *at, const struct packed *p, const char *path, struct err *e)
{
    AUTO(file_out) *out = NULL;
    uint64_t max = unpacked_max(at, p);
    if (p->sized && p->size > max)
        return too_large(p->path, max, e);
    if (file_out_open(path, &out, e) < 0)
        return -1;
    struct unpacking u = { .out = out, .name = p->path, .left = max, .max = max, .sized = p->sized };
    if (decompress_pieces(p->how, p->data, p->n, p->path, write_piece, &u, e) < 0)
        return -1;
    if (p->sized && (max - u.left != p->size || u.crc != p->crc))
        return err_set(e, ERR_INPUT, "%s: damaged: %s", p->path,
                       max - u.left != p->size ? "its decompressed size differs from that in the archive"
                                               : "its checksum is wrong");
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

int decompress_cached(const struct data_place *at, const struct packed *p, struct file_map **ret, struct err *e)
{
    if (at->cache_dir == NULL)
        return err_set(e, ERR_INPUT, "%s: is %s, but there is no cache folder to decompress it into", p->path, p->what);

    auto_free char *path = cache_path(at, p->name, p->key, "raw");
    if (!file_exists(path)) {
        auto_free char *lock_path = xasprintf("%s.lock", path);
        if (dir_make(at->cache_dir, e) < 0)
            return err_wrap(e, "cache folder");
        auto_close int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (lock >= 0)
            wait_for_lock(lock, path);
        if (!file_exists(path) && unpack_to(at, p, path, e) < 0)
            return -1;
        unlink(lock_path); /* a waiter that still holds the old one finds the file */
    }
    return file_map_open(path, ret, e);
}
