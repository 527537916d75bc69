/* Reads the directory and the members of a zip archive from memory. Every offset and size is checked before use, so
 * damaged or hostile archives give an error. */
#include "data/zip.h"

#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/str.h"

enum { END_SIZE = 22, COMMENT_MAX = 65535, LOCATOR_SIZE = 20, ENTRY_SIZE = 46, LOCAL_SIZE = 30, NAME_LONGEST = 1000 };
enum { MEMBERS_MAX = 1000000, RATIO_MAX = 1032 /* no deflated byte becomes more */ };

static uint16_t le16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t le32(const unsigned char *p)
{
    return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16;
}

static uint64_t le64(const unsigned char *p)
{
    return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32;
}

/* n bytes at `offset`, or NULL. */
static const unsigned char *bytes_at(const struct zip_archive *z, uint64_t offset, uint64_t n)
{
    return offset <= z->n && n <= z->n - offset ? z->data + offset : NULL;
}

bool zip_is(const void *data, size_t n)
{
    return n >= 4 && (memcmp(data, "PK\3\4", 4) == 0 || memcmp(data, "PK\5\6", 4) == 0);
}

/* ---- the directory ---- */

struct directory {
    uint64_t offset, size, entries;
};

/* The end record is the last thing but a comment. */
static const unsigned char *find_end(const struct zip_archive *z)
{
    for (size_t back = END_SIZE; back <= z->n && back <= END_SIZE + COMMENT_MAX; back++)
        if (memcmp(z->data + z->n - back, "PK\5\6", 4) == 0)
            return z->data + z->n - back;
    return NULL;
}

static int find_directory(const struct zip_archive *z, struct directory *ret, struct err *e)
{
    const unsigned char *end = find_end(z);
    if (end == NULL)
        return err_set(e, ERR_INPUT, "%s: is not a whole zip archive (its end record is missing)", z->label);
    struct directory d = { .entries = le16(end + 10), .size = le32(end + 12), .offset = le32(end + 16) };
    bool may_be_large = d.entries == UINT16_MAX || d.size == UINT32_MAX || d.offset == UINT32_MAX;
    const unsigned char *locator = end - z->data >= LOCATOR_SIZE ? end - LOCATOR_SIZE : NULL, *large;
    if (!may_be_large || locator == NULL || memcmp(locator, "PK\6\7", 4) != 0) {
        *ret = d; /* also with exactly that many, without ZIP64 */
        return 0;
    }
    large = bytes_at(z, le64(locator + 8), 56);
    if (large == NULL || memcmp(large, "PK\6\6", 4) != 0)
        return err_set(e, ERR_INPUT, "%s: damaged: no ZIP64 end record", z->label);
    *ret = (struct directory){ .entries = le64(large + 32), .size = le64(large + 40), .offset = le64(large + 48) };
    return 0;
}

/* Sizes that do not fit into 32 bits stand in an extra field, in this order. */
static void take_large(struct zip_member *m, const unsigned char *extra, size_t n)
{
    while (n >= 4) {
        size_t id = le16(extra), length = le16(extra + 2);
        if (length > n - 4)
            return;
        if (id == 1) {
            const unsigned char *p = extra + 4, *end = p + length;
            uint64_t *fields[] = { &m->size, &m->packed, &m->local };
            for (size_t i = 0; i < COUNT_OF(fields); i++) {
                if (*fields[i] != UINT32_MAX || end - p < 8)
                    continue;
                *fields[i] = le64(p);
                p += 8;
            }
        }
        extra += 4 + length;
        n -= 4 + length;
    }
}

static int read_entry(const struct zip_archive *z, uint64_t *offset, uint64_t end, struct zip_member *m, struct err *e)
{
    const unsigned char *p = bytes_at(z, *offset, ENTRY_SIZE);
    if (p == NULL || end - *offset < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0)
        return err_set(e, ERR_INPUT, "%s: damaged: an entry of its directory, at byte %llu", z->label,
                       (unsigned long long)*offset);
    size_t name = le16(p + 28), extra = le16(p + 30), all = ENTRY_SIZE + name + extra + le16(p + 32);
    if (all > end - *offset)
        return err_set(e, ERR_INPUT, "%s: damaged: an entry of its directory, at byte %llu", z->label,
                       (unsigned long long)*offset);
    const char *text = (const char *)p + ENTRY_SIZE;
    if (name == 0 || name > NAME_LONGEST || memchr(text, 0, name) != NULL)
        return err_set(e, ERR_INPUT, "%s: the name of a member is %zu bytes long or holds a NUL; at most %d", z->label,
                       name, NAME_LONGEST);
    m->name = xstrndup(text, name);
    m->flags = le16(p + 8);
    m->method = le16(p + 10);
    m->crc = le32(p + 16);
    m->packed = le32(p + 20);
    m->size = le32(p + 24);
    m->local = le32(p + 42);
    take_large(m, p + ENTRY_SIZE + name, extra);
    *offset += all;
    return 0;
}

static int read_directory(struct zip_archive *z, const struct directory *d, struct err *e)
{
    if (bytes_at(z, d->offset, d->size) == NULL || d->entries > d->size / ENTRY_SIZE || d->entries > MEMBERS_MAX)
        return err_set(e, ERR_INPUT, "%s: damaged: its directory lies beyond its end", z->label);
    z->members = xcalloc((size_t)d->entries + 1, sizeof(z->members[0]));
    uint64_t offset = d->offset, end = d->offset + d->size;
    while (z->count < d->entries)
        if (read_entry(z, &offset, end, &z->members[z->count++], e) < 0)
            return -1;
    return 0;
}

int zip_open(const void *data, size_t n, const char *label, struct zip_archive *ret, struct err *e)
{
    AUTO_FINI(zip_archive) z = { .data = data, .n = n, .label = xstrdup(label) };
    struct directory d;
    if (find_directory(&z, &d, e) < 0 || read_directory(&z, &d, e) < 0)
        return -1;
    *ret = z;
    z = (struct zip_archive){ 0 };
    return 0;
}

void zip_archive_fini(struct zip_archive *z)
{
    for (size_t i = 0; i < z->count; i++)
        free(z->members[i].name);
    free(z->members);
    free(z->label);
}

size_t zip_find(const struct zip_archive *z, const char *name)
{
    size_t i = 0;
    while (i < z->count && !str_eq(z->members[i].name, name))
        i++;
    return i;
}

/* ---- content ---- */

static int inflate_all(const struct zip_archive *z, const struct zip_member *m, const unsigned char *packed,
                       unsigned char *out, struct err *e)
{
    z_stream s = { .next_in = (unsigned char *)(uintptr_t)packed, .next_out = out };
    uint64_t in = m->packed, room = m->size;
    int r = inflateInit2(&s, -MAX_WBITS);
    if (r != Z_OK)
        return err_set(e, ERR_NOMEM, "%s: %s: zlib cannot be initialised (%d)", z->label, m->name, r);
    do { /* zlib counts in 32 bits */
        uInt in_now = (uInt)MIN(in, (uint64_t)1 << 30), out_now = (uInt)MIN(room, (uint64_t)1 << 30);
        s.avail_in = in_now;
        s.avail_out = out_now;
        r = inflate(&s, Z_NO_FLUSH);
        in -= in_now - s.avail_in;
        room -= out_now - s.avail_out;
        if (s.avail_in == in_now && s.avail_out == out_now)
            break; /* it does not go on */
    } while (r == Z_OK);
    inflateEnd(&s);
    if (r != Z_STREAM_END || room > 0)
        return err_set(e, ERR_INPUT, "%s: %s: damaged: its decompressed size is not %llu bytes", z->label, m->name,
                       (unsigned long long)m->size);
    return 0;
}

static uint32_t crc_of(const void *data, size_t n)
{
    return (uint32_t)crc32_z(0, data, n);
}

int zip_bytes(const struct zip_archive *z, size_t i, const unsigned char **ret, struct err *e)
{
    const struct zip_member *m = &z->members[i];
    const unsigned char *local = bytes_at(z, m->local, LOCAL_SIZE), *packed;

    if ((m->flags & 1) != 0 || (m->method != 0 && m->method != 8))
        return err_set(
            e, ERR_INPUT,
            "%s: %s: is encrypted or compressed with method %u; only stored and deflated members are supported",
            z->label, m->name, m->method);
    if (local == NULL || memcmp(local, "PK\3\4", 4) != 0 ||
        (packed = bytes_at(z, m->local + LOCAL_SIZE + le16(local + 26) + le16(local + 28), m->packed)) == NULL ||
        (m->method == 0 ? m->size != m->packed : m->size / RATIO_MAX > m->packed))
        return err_set(e, ERR_INPUT, "%s: %s: damaged: its offset or size is wrong", z->label, m->name);
    *ret = packed;
    return 0;
}

int zip_read(const struct zip_archive *z, size_t i, const void **ret, void **ret_owned, struct err *e)
{
    const struct zip_member *m = &z->members[i];
    const unsigned char *packed;
    auto_free void *owned = NULL;

    if (zip_bytes(z, i, &packed, e) < 0)
        return -1;
    if (m->method == 8) {
        if (mem_alloc((size_t)m->size, m->name, &owned, e) < 0 || inflate_all(z, m, packed, owned, e) < 0)
            return -1;
        packed = owned;
    }
    if (crc_of(packed, (size_t)m->size) != m->crc)
        return err_set(e, ERR_INPUT, "%s: %s: damaged: its checksum is wrong", z->label, m->name);
    *ret = packed;
    *ret_owned = TAKE(owned);
    return 0;
}
