/* A compressed file of the user, or a member of an archive, unpacked once into the cache folder and mapped from there.
 */
#include "data/decompress.h"

#include "data/cached_copy.h"

/* Data sets shrink at most to a hundredth. A file that becomes larger than that is damaged, or made to fill a disk. */
enum { RATIO_MAX = 100, ALWAYS_MAX = 256 << 20 };

struct unpacking {
    const struct packed *packed;
    struct file_out *out;
    uint64_t left, max;
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
        return too_large(u->packed->path, u->max, e);
    u->left -= n;
    if (u->packed->sized)
        u->crc = crc32_update(u->crc, data, n);
    return file_out_write(u->out, data, n, e);
}

static uint64_t unpacked_max(const struct data_place *at, const struct packed *p)
{
    if (at->spec->max_unpacked > 0)
        return (uint64_t)at->spec->max_unpacked;
    return MAX((uint64_t)MIN(p->n, SIZE_MAX / RATIO_MAX) * RATIO_MAX, (uint64_t)ALWAYS_MAX);
}

static int check_content(const struct packed *p, uint64_t size, uint32_t crc, struct err *e)
{
    if (!p->sized || (size == p->size && crc == p->crc))
        return 0;
    return err_set(e, ERR_INPUT, "%s: damaged: %s", p->path,
                   size != p->size ? "its decompressed size differs from that in the archive"
                                   : "its checksum is wrong");
}

static int unpack_to(void *user, struct file_out *out, struct err *e)
{
    struct unpacking *u = user;
    const struct packed *p = u->packed;
    u->out = out;
    if (p->sized && p->size > u->max)
        return too_large(p->path, u->max, e);
    if (decompress_pieces(p->how, p->data, p->n, p->path, write_piece, u, e) < 0)
        return -1;
    return check_content(p, u->max - u->left, u->crc, e);
}

int decompress_cached(const struct data_place *at, const struct packed *p, struct file_map **ret, struct err *e)
{
    struct cached_copy copy = { .name = p->name, .key = p->key, .path = p->path, .what = p->what, .how = "decompress" };
    uint64_t max = unpacked_max(at, p);
    struct unpacking u = { .packed = p, .left = max, .max = max };
    return cached_copy_open(at, &copy, unpack_to, &u, ret, e);
}
