/* Reads the entries of a checkpoint index: types, shapes, offsets and the slices of partitioned tensors. Everything
 * is checked against the sizes of the data files before it is used. */
#include "tfio/bundle_index.h"

#include <inttypes.h>
#include <string.h>

#include "codec/crc32c.h"
#include "codec/pb.h"
#include "tfio/bundle_table.h"

enum { PRODUCER = 1, CONSUMER = 1 }; /* versions of the bundle format that this reader and writer are */

/* ---- keys of parts ---- */

static void put_number(struct buf *b, uint64_t v)
{
    unsigned bytes = v == 0 ? 0 : (unsigned)(64 - __builtin_clzll(v) + 7) / 8;
    buf_char(b, (char)bytes);
    for (unsigned i = bytes; i > 0; i--)
        buf_char(b, (char)(v >> (8 * (i - 1))));
}

static void put_string(struct buf *b, const char *s)
{
    for (; *s != '\0'; s++) {
        buf_char(b, *s);
        if ((unsigned char)*s == 0xff)
            buf_char(b, 0);
    }
    buf_char(b, 0);
    buf_char(b, 1);
}

/* As many leading ones as there are bytes, then the sign bit, then the value; all inverted when negative. */
void bundle_put_signed(struct buf *b, int64_t v)
{
    uint64_t magnitude = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    unsigned bits = magnitude == 0 ? 0 : 64 - (unsigned)__builtin_clzll(magnitude), bytes = (bits + 1 + 6) / 7;
    unsigned char raw[10];

    memset(raw, v < 0 ? 0xff : 0, sizeof(raw));
    for (unsigned i = 0; i < 8; i++)
        raw[9 - i] = (unsigned char)((uint64_t)v >> (8 * i));
    unsigned char *begin = raw + sizeof(raw) - bytes;
    for (unsigned i = 0; i < bytes; i++)
        begin[i / 8] ^= (unsigned char)(0x80 >> (i % 8));
    buf_add(b, begin, bytes);
}

void bundle_slice_key(const char *name, const struct shape *shape, const struct bundle_slice *s, struct buf *ret)
{
    put_number(ret, 0);
    put_string(ret, name);
    put_number(ret, (uint64_t)shape->rank);
    for (int i = 0; i < shape->rank; i++) {
        bundle_put_signed(ret, s->start[i]);
        bundle_put_signed(ret, s->length[i]);
    }
}

/* ---- writing ---- */

void bundle_put_header(struct buf *b, uint32_t nshards)
{
    AUTO_FINI(buf) version = BUF_INIT;
    pb_put_varint(&version, 1, PRODUCER);
    pb_put_varint(b, 1, nshards);
    pb_put_bytes(b, 3, version.data, version.len);
}

static void put_shape(struct buf *b, const struct shape *shape)
{
    AUTO_FINI(buf) dims = BUF_INIT;
    for (int i = 0; i < shape->rank; i++) {
        AUTO_FINI(buf) dim = BUF_INIT;
        if (shape->dim[i] != 0)
            pb_put_varint(&dim, 1, (uint64_t)shape->dim[i]);
        pb_put_bytes(&dims, 2, dim.data, dim.len);
    }
    pb_put_bytes(b, 2, dims.data, dims.len);
}

void bundle_put_entry(struct buf *b, const struct bundle_item *item)
{
    pb_put_varint(b, 1, item->entry.dtype);
    put_shape(b, &item->entry.shape);
    if (item->shard != 0)
        pb_put_varint(b, 3, item->shard);
    if (item->offset != 0)
        pb_put_varint(b, 4, item->offset);
    if (item->entry.size != 0)
        pb_put_varint(b, 5, item->entry.size);
    pb_put_fixed32(b, 6, crc32c_mask(item->crc));
}

/* ---- reading ---- */

static int take_version(struct reader r, struct err *e)
{
    struct pb_field f;
    int more;

    while ((more = pb_next(&r, &f)) == 1)
        if (f.number == 2 && f.type == PB_VARINT && f.u > CONSUMER)
            return err_set(e, ERR_INPUT, "needs a reader of bundle version %" PRIu64 ", this is version %d", f.u,
                           CONSUMER);
    return more < 0 ? err_set(e, ERR_INPUT, "the header is malformed") : 0;
}

static int take_header(const void *value, size_t n, uint32_t *ret_shards, struct err *e)
{
    struct reader r = reader_of(value, n);
    struct pb_field f;
    uint64_t shards = 0;
    int more;

    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == 1 && f.type == PB_VARINT)
            shards = f.u;
        else if (f.number == 2 && f.type == PB_VARINT && f.u != 0)
            return err_set(e, ERR_INPUT, "was written on a big-endian machine, which is not supported");
        else if (f.number == 3 && f.type == PB_BYTES && take_version(reader_of(f.data, f.size), e) < 0)
            return -1;
    }
    if (more < 0 || shards == 0 || shards > BUNDLE_SHARDS_MAX)
        return err_set(e, ERR_INPUT, "the header is malformed");
    *ret_shards = (uint32_t)shards;
    return 0;
}

static int take_dim(struct reader r, int64_t *ret)
{
    struct pb_field f;
    uint64_t size = 0;
    int more;

    while ((more = pb_next(&r, &f)) == 1)
        if (f.number == 1 && f.type == PB_VARINT)
            size = f.u;
    *ret = (int64_t)size;
    return more < 0 || size > INT64_MAX ? -1 : 0;
}

static int take_shape(struct reader r, struct shape *ret, struct err *e)
{
    struct shape shape = { .rank = 0 };
    struct pb_field f;
    int more;

    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == 3 && f.type == PB_VARINT && f.u != 0)
            return err_set(e, ERR_INPUT, "its rank is unknown");
        if (f.number != 2 || f.type != PB_BYTES)
            continue;
        if (shape.rank == SHAPE_MAX_RANK)
            return err_set(e, ERR_INPUT, "it has more than %d dimensions", SHAPE_MAX_RANK);
        if (take_dim(reader_of(f.data, f.size), &shape.dim[shape.rank++]) < 0)
            return err_set(e, ERR_INPUT, "its shape is malformed");
    }
    if (more < 0)
        return err_set(e, ERR_INPUT, "its shape is malformed");
    *ret = shape;
    return 0;
}

static int take_extent(struct reader r, int64_t *ret_start, int64_t *ret_length)
{
    struct pb_field f;
    int more;

    *ret_start = 0;
    *ret_length = -1; /* the whole axis */
    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == 1 && f.type == PB_VARINT)
            *ret_start = (int64_t)f.u;
        else if (f.number == 2 && f.type == PB_VARINT)
            *ret_length = (int64_t)f.u;
    }
    return more;
}

static int take_slice(struct reader r, struct bundle_item *item)
{
    struct bundle_slice s = { .part = SIZE_MAX };
    struct pb_field f;
    int more, rank = 0;

    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number != 1 || f.type != PB_BYTES)
            continue;
        if (rank == SHAPE_MAX_RANK || take_extent(reader_of(f.data, f.size), &s.start[rank], &s.length[rank]) < 0)
            return -1;
        rank++;
    }
    if (more < 0 || rank != item->entry.shape.rank)
        return -1;
    if ((item->nslices & (item->nslices + 1)) == 0) /* grows at 2^k - 1 */
        item->slices = xrealloc(item->slices, (2 * item->nslices + 1) * sizeof(s));
    item->slices[item->nslices++] = s;
    return 0;
}

static int take_slices(struct reader r, struct bundle_item *item, struct err *e)
{
    struct pb_field f;
    while (pb_next(&r, &f) == 1)
        if (f.number == 7 && f.type == PB_BYTES && take_slice(reader_of(f.data, f.size), item) < 0)
            return err_set(e, ERR_INPUT, "a slice of it is malformed");
    return 0;
}

/* Fields of a fixed number; slices need the shape and come after. */
static int take_entry(const void *value, size_t n, struct bundle_item *item, struct err *e)
{
    struct reader r = reader_of(value, n);
    struct pb_field f;
    uint64_t shard = 0, dtype = 0;
    int more;

    while ((more = pb_next(&r, &f)) == 1) {
        if (f.number == 2 && f.type == PB_BYTES) {
            if (take_shape(reader_of(f.data, f.size), &item->entry.shape, e) < 0)
                return -1;
        } else if (f.number == 6 && f.type == PB_FIXED32) {
            item->crc = crc32c_unmask((uint32_t)f.u);
        } else if (f.type == PB_VARINT) {
            uint64_t *const to[] = { [1] = &dtype, [3] = &shard, [4] = &item->offset, [5] = &item->entry.size };
            if (f.number < COUNT_OF(to) && to[f.number] != NULL)
                *to[f.number] = f.u;
        }
    }
    if (more < 0 || dtype == 0 || dtype > INT32_MAX || shard >= BUNDLE_SHARDS_MAX)
        return err_set(e, ERR_INPUT, "its entry is malformed");
    item->entry.dtype = (enum dtype)dtype;
    item->shard = (uint32_t)shard;
    return take_slices(reader_of(value, n), item, e);
}

/* The size that follows from the shape, for elements of fixed size. */
static int check_size(struct bundle_item *item, struct err *e)
{
    size_t count, bytes, each = dtype_size(item->entry.dtype);

    if (shape_count(&item->entry.shape, &count, e) < 0 || size_mul(count, MAX(each, 1), &bytes, e) < 0)
        return -1;
    if (item->nslices > 0)
        item->entry.size = each > 0 ? bytes : 0;
    else if (each > 0 && bytes != item->entry.size)
        return err_set(e, ERR_INPUT, "its shape needs %zu bytes, the file has %" PRIu64, bytes, item->entry.size);
    return 0;
}

static void item_fini(struct bundle_item *item)
{
    free(item->key);
    free(item->slices);
}

void bundle_index_fini(struct bundle_index *x)
{
    for (size_t i = 0; i < x->n; i++)
        item_fini(&x->items[i]);
    free(x->items);
}

static int take_item(void *user, const char *key, size_t nkey, const void *value, size_t nvalue, struct err *e)
{
    struct bundle_index *x = user;
    struct bundle_item item = { .key_size = nkey };
    bool is_part = nkey > 0 && key[0] == '\0';

    if (nkey == 0)
        return take_header(value, nvalue, &x->nshards, e);
    if (x->nshards == 0)
        return err_set(e, ERR_INPUT, "it has no header");
    if (!is_part && strlen(key) != nkey)
        return err_set(e, ERR_INPUT, "a tensor's name has a NUL character");
    bool failed = take_entry(value, nvalue, &item, e) < 0 || check_size(&item, e) < 0;
    if (!failed && is_part && item.nslices > 0)
        failed = err_set(e, ERR_INPUT, "it has parts itself") < 0;
    if (failed) {
        free(item.slices);
        return err_wrap(e, is_part ? "tensor '%s' (a part)" : "tensor '%s'", is_part ? key + 1 : key);
    }
    item.key = xmemdup(key, nkey + 1);
    item.entry.name = is_part ? "" : item.key;
    if (x->n == x->cap)
        x->items = xrealloc(x->items, (x->cap = x->cap * 2 + 16) * sizeof(*x->items));
    x->items[x->n++] = item;
    x->first += is_part;
    return 0;
}

static size_t find_key(const struct bundle_index *x, const struct buf *key)
{
    size_t low = 0, high = x->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct bundle_item *item = &x->items[mid];
        int order = memcmp(item->key, key->data, MIN(item->key_size, key->len));
        if (order == 0 && item->key_size == key->len)
            return mid;
        if (order < 0 || (order == 0 && item->key_size < key->len))
            low = mid + 1;
        else
            high = mid;
    }
    return SIZE_MAX;
}

/* The part's entry, and whole axes as numbers. */
static int resolve_slice(const struct bundle_index *x, const struct bundle_item *item, struct bundle_slice *s,
                         struct err *e)
{
    const struct shape *shape = &item->entry.shape;
    AUTO_FINI(buf) key = BUF_INIT;

    bundle_slice_key(item->entry.name, shape, s, &key);
    s->part = find_key(x, &key);
    if (s->part == SIZE_MAX)
        return err_set(e, ERR_INPUT, "tensor '%s': a slice of it is missing", item->entry.name);
    const struct bundle_item *part = &x->items[s->part];
    bool fits = part->nslices == 0 && part->entry.dtype == item->entry.dtype && part->entry.shape.rank == shape->rank;
    for (int i = 0; fits && i < shape->rank; i++) {
        if (s->length[i] == -1)
            s->length[i] = shape->dim[i];
        fits = s->start[i] >= 0 && s->start[i] <= shape->dim[i] && s->length[i] >= 0 &&
               s->length[i] <= shape->dim[i] - s->start[i] && s->length[i] == part->entry.shape.dim[i];
    }
    return fits ? 0 : err_set(e, ERR_INPUT, "tensor '%s': a slice does not fit into it", item->entry.name);
}

static bool slices_overlap(const struct bundle_slice *a, const struct bundle_slice *b, int rank)
{
    for (int i = 0; i < rank; i++)
        if (a->start[i] >= b->start[i] + b->length[i] || b->start[i] >= a->start[i] + a->length[i])
            return false;
    return true;
}

/* Slices that do not overlap and have as many bytes as the tensor cover it. */
static int check_cover(const struct bundle_index *x, const struct bundle_item *item, struct err *e)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < item->nslices; i++) {
        for (size_t j = 0; j < i; j++)
            if (slices_overlap(&item->slices[i], &item->slices[j], item->entry.shape.rank))
                return err_set(e, ERR_INPUT, "tensor '%s': its slices overlap", item->entry.name);
        bytes += x->items[item->slices[i].part].entry.size;
    }
    if (item->nslices > 0 && dtype_size(item->entry.dtype) > 0 && bytes != item->entry.size)
        return err_set(e, ERR_INPUT, "tensor '%s': its slices do not cover it", item->entry.name);
    return 0;
}

static int resolve_slices(struct bundle_index *x, struct err *e)
{
    for (size_t i = x->first; i < x->n; i++) {
        struct bundle_item *item = &x->items[i];
        for (size_t j = 0; j < item->nslices; j++)
            if (resolve_slice(x, item, &item->slices[j], e) < 0)
                return -1;
        if (check_cover(x, item, e) < 0)
            return -1;
    }
    return 0;
}

int bundle_index_read(const void *data, size_t n, bool check_crc, struct bundle_index *ret, struct err *e)
{
    AUTO_FINI(bundle_index) x = { .n = 0 };

    if (table_read(data, n, check_crc, take_item, &x, e) < 0)
        return -1;
    if (x.nshards == 0)
        return err_set(e, ERR_INPUT, "it has no header");
    for (size_t i = 0; i < x.n; i++)
        if (x.items[i].shard >= x.nshards)
            return err_set(e, ERR_INPUT, "tensor '%s' is in shard %u of %u", x.items[i].entry.name, x.items[i].shard,
                           x.nshards);
    if (resolve_slices(&x, e) < 0)
        return -1;
    *ret = x;
    x = (struct bundle_index){ .n = 0 };
    return 0;
}
