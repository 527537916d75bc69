/* Reading of tfio/bundle.h. */
#include "tfio/bundle.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "codec/crc32c.h"
#include "tfio/bundle_index.h"

struct bundle {
    char *prefix, *index_path;
    struct bundle_index index;
    struct file_map **shards;
    size_t nshards;
};

void bundle_free(struct bundle *b)
{
    if (b == NULL)
        return;
    for (size_t i = 0; i < b->nshards; i++)
        file_map_free(b->shards[i]);
    free(b->shards);
    bundle_index_fini(&b->index);
    free(b->prefix);
    free(b->index_path);
    free(b);
}

static int read_index(struct bundle *b, struct err *e)
{
    AUTO(file_map) *m = NULL;
    if (file_map_open(b->index_path, &m, e) < 0)
        return -1;
    if (bundle_index_read(m->data, m->size, true, &b->index, e) < 0)
        return err_wrap(e, "%s", b->index_path);
    return 0;
}

static int open_shards(struct bundle *b, struct err *e)
{
    b->shards = xcalloc(b->index.nshards, sizeof(struct file_map *));
    for (uint32_t i = 0; i < b->index.nshards; i++) {
        auto_free char *path = xasprintf("%s.data-%05u-of-%05u", b->prefix, i, b->index.nshards);
        if (file_map_open(path, &b->shards[i], e) < 0)
            return -1;
        b->nshards++;
    }
    return 0;
}

static int check_ranges(const struct bundle *b, struct err *e)
{
    for (size_t i = 0; i < b->index.n; i++) {
        const struct bundle_item *item = &b->index.items[i];
        const struct file_map *m = b->shards[item->shard];
        if (item->nslices > 0)
            continue;
        if (item->offset > m->size || item->entry.size > m->size - item->offset)
            return err_set(e, ERR_INPUT, "%s: tensor '%s' ends beyond the end of the file: the file is truncated",
                           m->path, item->entry.name);
    }
    return 0;
}

int bundle_open(const char *prefix, struct bundle **ret, struct err *e)
{
    AUTO(bundle) *b = xcalloc(1, sizeof(*b));
    b->prefix = xstrdup(prefix);
    b->index_path = xasprintf("%s.index", prefix);
    if (read_index(b, e) < 0 || open_shards(b, e) < 0 || check_ranges(b, e) < 0)
        return -1;
    *ret = TAKE(b);
    return 0;
}

size_t bundle_count(const struct bundle *b)
{
    return b->index.n - b->index.first;
}

const struct bundle_entry *bundle_entry(const struct bundle *b, size_t i)
{
    return &b->index.items[b->index.first + i].entry;
}

const struct bundle_entry *bundle_find(const struct bundle *b, const char *name)
{
    size_t low = b->index.first, high = b->index.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(b->index.items[mid].key, name);
        if (order == 0)
            return &b->index.items[mid].entry;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* Entries are returned as const; the bundle caches what it finds out about them. */
static struct bundle_item *item_of(const struct bundle_entry *entry)
{
    return (struct bundle_item *)((uintptr_t)entry - offsetof(struct bundle_item, entry));
}

static const unsigned char *bytes_of(const struct bundle *b, const struct bundle_item *item)
{
    return b->shards[item->shard]->data + item->offset;
}

/* ---- strings ---- */

/* Walks over the lengths. *ret_begin, *ret_size: the place of string `want` in the item's bytes (not for SIZE_MAX).
 * *ret_crc: CRC of the lengths and their checksum; *ret_head: bytes of both. */
static int walk_lengths(const unsigned char *p, const struct bundle_item *item, size_t want, size_t *ret_begin,
                        size_t *ret_size, uint32_t *ret_crc, size_t *ret_head)
{
    size_t count = shape_elements(&item->entry.shape), begin = 0, size = 0, total = 0;
    struct reader r = reader_of(p, (size_t)item->entry.size);
    uint32_t crc = 0, stored;

    for (size_t i = 0; i < count; i++) {
        uint64_t length;
        if (reader_varint(&r, &length) < 0 || length > item->entry.size - total)
            return -1;
        uint32_t narrow = (uint32_t)length;
        crc = length <= UINT32_MAX ? crc32c(crc, &narrow, sizeof(narrow)) : crc32c(crc, &length, sizeof(length));
        if (i == want) {
            begin = total;
            size = (size_t)length;
        }
        total += (size_t)length;
    }
    if (reader_u32le(&r, &stored) < 0 || crc32c_unmask(stored) != crc || reader_left(&r) != total)
        return -1;
    *ret_head = (size_t)(r.p - p);
    *ret_begin = *ret_head + begin;
    *ret_size = size;
    *ret_crc = crc32c(crc, &stored, sizeof(stored));
    return 0;
}

static bool crc_is_right(const struct bundle *b, const struct bundle_item *item)
{
    const unsigned char *p = bytes_of(b, item);
    size_t n = (size_t)item->entry.size, head = 0, ignored;
    uint32_t crc = 0;

    if (item->entry.dtype == DT_STRING && walk_lengths(p, item, SIZE_MAX, &ignored, &ignored, &crc, &head) < 0)
        return false;
    return crc32c(crc, p + head, n - head) == item->crc;
}

static int check_item(const struct bundle *b, struct bundle_item *item, const char *name, struct err *e)
{
    if (!item->checked && !crc_is_right(b, item))
        return err_set(e, ERR_INPUT, "%s: checksum of tensor '%s' is wrong: the file is damaged",
                       b->shards[item->shard]->path, name);
    item->checked = true;
    return 0;
}

int bundle_check(struct bundle *b, const struct bundle_entry *entry, struct err *e)
{
    struct bundle_item *item = item_of(entry);

    if (item->nslices == 0)
        return check_item(b, item, entry->name, e);
    for (size_t i = 0; i < item->nslices; i++)
        if (check_item(b, &b->index.items[item->slices[i].part], entry->name, e) < 0)
            return -1;
    return 0;
}

int bundle_read_string(struct bundle *b, const struct bundle_entry *entry, size_t i, struct buf *ret, struct err *e)
{
    const struct bundle_item *item = item_of(entry);
    size_t begin, size, head;
    uint32_t crc;

    if (entry->dtype != DT_STRING || item->nslices > 0)
        return err_set(e, ERR_INPUT, "%s: tensor '%s' has type %s, not string", b->index_path, entry->name,
                       dtype_name(entry->dtype));
    if (bundle_check(b, entry, e) < 0)
        return -1;
    if (i >= shape_elements(&entry->shape) || walk_lengths(bytes_of(b, item), item, i, &begin, &size, &crc, &head) < 0)
        return err_set(e, ERR_INTERNAL, "%s: tensor '%s' has no string %zu", b->index_path, entry->name, i);
    buf_add(ret, bytes_of(b, item) + begin, size);
    return 0;
}

/* ---- partitioned variables ---- */

/* A requested range of bytes of a tensor, and its destination. */
struct byte_range {
    uint64_t offset;
    size_t n;
    unsigned char *to;
};

static void copy_run(const struct byte_range *range, uint64_t at, const unsigned char *from, uint64_t n)
{
    uint64_t begin = MAX(at, range->offset), end = MIN(at + n, range->offset + range->n);
    if (begin < end)
        memcpy(range->to + (begin - range->offset), from + (begin - at), (size_t)(end - begin));
}

/* Copies the bytes of one part that are in the range. A part is runs of contiguous bytes: trailing axes that it has
 * whole belong to one run; the others are counted through like an odometer. */
static void copy_part(const struct shape *shape, size_t each, const struct bundle_slice *s, const unsigned char *from,
                      const struct byte_range *range)
{
    uint64_t stride[SHAPE_MAX_RANK] = { 0 }, run = each, at = 0;
    int64_t counter[SHAPE_MAX_RANK] = { 0 };
    int axis = shape->rank - 1;

    for (int i = shape->rank - 1; i >= 0; i--) {
        stride[i] = i == shape->rank - 1 ? each : stride[i + 1] * (uint64_t)shape->dim[i + 1];
        at += (uint64_t)s->start[i] * stride[i];
    }
    for (; axis >= 0 && s->length[axis] == shape->dim[axis]; axis--)
        run *= (uint64_t)shape->dim[axis];
    if (axis >= 0)
        run *= (uint64_t)s->length[axis--];
    for (;; from += run) {
        copy_run(range, at, from, run);
        int i = axis;
        while (i >= 0 && ++counter[i] == s->length[i]) {
            at -= (uint64_t)(s->length[i] - 1) * stride[i];
            counter[i--] = 0;
        }
        if (i < 0)
            return;
        at += stride[i];
    }
}

static void read_parts(const struct bundle *b, const struct bundle_item *item, const struct byte_range *range)
{
    for (size_t i = 0; i < item->nslices; i++) {
        const struct bundle_slice *s = &item->slices[i];
        const struct bundle_item *part = &b->index.items[s->part];
        if (part->entry.size > 0)
            copy_part(&item->entry.shape, dtype_size(item->entry.dtype), s, bytes_of(b, part), range);
    }
}

int bundle_read(struct bundle *b, const struct bundle_entry *entry, size_t offset, size_t n, void *ret, struct err *e)
{
    const struct bundle_item *item = item_of(entry);

    if (dtype_size(entry->dtype) == 0)
        return err_set(e, ERR_INPUT, "%s: tensor '%s' has elements of type %d (%s), which cannot be read as numbers",
                       b->index_path, entry->name, (int)entry->dtype, dtype_name(entry->dtype));
    if (offset > entry->size || n > entry->size - offset)
        return err_set(e, ERR_INTERNAL, "%s: tensor '%s' has %" PRIu64 " bytes, wanted %zu at %zu", b->index_path,
                       entry->name, entry->size, n, offset);
    if (n == entry->size && bundle_check(b, entry, e) < 0)
        return -1;
    if (n == 0)
        return 0;
    const struct byte_range range = { .offset = offset, .n = n, .to = ret };
    if (item->nslices > 0)
        read_parts(b, item, &range);
    else
        memcpy(ret, bytes_of(b, item) + offset, n);
    return 0;
}

bool bundle_is_bookkeeping(const struct bundle *b, const char *name)
{
    static const char *const COUNTERS[] = { "global_step", "beta1_power", "beta2_power" };
    const char *slash = strrchr(name, '/');

    for (size_t i = 0; i < COUNT_OF(COUNTERS); i++)
        if (str_eq(name, COUNTERS[i]))
            return true;
    if (str_starts(name, "_trainyard/") || str_eq(name, "_CHECKPOINTABLE_OBJECT_GRAPH"))
        return true;
    if (slash == NULL)
        return false;
    auto_free char *variable = xstrndup(name, (size_t)(slash - name));
    return bundle_find(b, variable) != NULL;
}
