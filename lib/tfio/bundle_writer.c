/* Writing of tfio/bundle.h. */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "codec/crc32c.h"
#include "codec/pb.h"
#include "tfio/bundle_index.h"
#include "tfio/bundle_table.h"

/* A tensor under way. */
struct tensor_column {
    struct bundle_item item; /* its key is the name, owned */
    uint64_t written;        /* bytes so far; crc covers them */
};

struct bundle_writer {
    char *prefix, *index_path;
    struct file_out *data;
    uint64_t end; /* of the data file: where the next tensor goes */
    struct tensor_column *columns;
    size_t n, cap;
    struct map names; /* name -> anything */
};

static int refuse_existing(const struct bundle_writer *w, struct err *e)
{
    if (file_exists(w->index_path))
        return err_set(e, ERR_REFUSED, "%s: exists; a checkpoint is never replaced", w->index_path);
    return 0;
}

int bundle_writer_open(const char *prefix, struct bundle_writer **ret, struct err *e)
{
    AUTO(bundle_writer) *w = xcalloc(1, sizeof(*w));
    auto_free char *data = xasprintf("%s.data-00000-of-00001", prefix);

    w->prefix = xstrdup(prefix);
    w->index_path = xasprintf("%s.index", prefix);
    if (refuse_existing(w, e) < 0 || file_out_open(data, &w->data, e) < 0)
        return -1;
    *ret = TAKE(w);
    return 0;
}

void bundle_writer_name(struct bundle_writer *w, const char *prefix)
{
    auto_free char *data = xasprintf("%s.data-00000-of-00001", prefix);
    file_out_name(w->data, data);
    free(w->prefix);
    free(w->index_path);
    w->prefix = xstrdup(prefix);
    w->index_path = xasprintf("%s.index", prefix);
}

void bundle_writer_free(struct bundle_writer *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->n; i++)
        free(w->columns[i].item.key);
    free(w->columns);
    map_fini(&w->names);
    file_out_free(w->data);
    free(w->prefix);
    free(w->index_path);
    free(w);
}

static int check_name(const struct bundle_writer *w, const char *name, struct err *e)
{
    if (name[0] == '\0' || strlen(name) > TABLE_KEY_MAX)
        return err_set(e, ERR_INPUT, "%s: a tensor's name must have 1 to %d characters", w->prefix, TABLE_KEY_MAX);
    if (map_get(&w->names, name) != NULL)
        return err_set(e, ERR_INPUT, "%s: tensor '%s' is given twice", w->prefix, name);
    return 0;
}

/* Reserves `size` bytes at the end of the data file. */
static int add_entry(struct bundle_writer *w, const char *name, enum dtype dtype, const struct shape *shape,
                     uint64_t size, struct tensor_column **ret, struct err *e)
{
    if (check_name(w, name, e) < 0)
        return -1;
    if (size > (uint64_t)INT64_MAX - w->end)
        return err_set(e, ERR_INPUT, "%s: tensor '%s' makes the file too large", w->prefix, name);
    if (w->n == w->cap)
        w->columns = xrealloc(w->columns, (w->cap = w->cap * 2 + 16) * sizeof(*w->columns));
    struct tensor_column *c = &w->columns[w->n++];
    *c = (struct tensor_column){ .item = { .entry = { .dtype = dtype, .shape = *shape, .size = size },
                                           .key = xstrdup(name),
                                           .key_size = strlen(name),
                                           .offset = w->end } };
    c->item.entry.name = c->item.key;
    map_put(&w->names, name, w);
    w->end += size;
    *ret = c;
    return 0;
}

int bundle_writer_add(struct bundle_writer *w, const char *name, enum dtype dtype, const struct shape *shape,
                      size_t *ret_id, struct err *e)
{
    struct tensor_column *c;
    size_t count, bytes;

    if (dtype_size(dtype) == 0)
        return err_set(e, ERR_INPUT, "%s: tensor '%s' of type %s has no fixed size", w->prefix, name,
                       dtype_name(dtype));
    if (shape_count(shape, &count, e) < 0 || size_mul(count, dtype_size(dtype), &bytes, e) < 0)
        return err_wrap(e, "%s: tensor '%s'", w->prefix, name);
    if (add_entry(w, name, dtype, shape, bytes, &c, e) < 0)
        return -1;
    *ret_id = w->n - 1;
    return 0;
}

static int append_data(struct bundle_writer *w, struct tensor_column *c, const void *data, size_t n, struct err *e)
{
    if (file_out_pwrite(w->data, data, n, c->item.offset + c->written, e) < 0)
        return -1;
    c->item.crc = crc32c(c->item.crc, data, n);
    c->written += n;
    return 0;
}

int bundle_writer_put(struct bundle_writer *w, size_t id, size_t offset, const void *data, size_t n, struct err *e)
{
    if (id >= w->n)
        return err_set(e, ERR_INTERNAL, "%s: there is no tensor %zu", w->prefix, id);
    struct tensor_column *c = &w->columns[id];
    if (offset != c->written || n > c->item.entry.size - c->written)
        return err_set(e, ERR_INTERNAL, "%s: tensor '%s' has %" PRIu64 " of %" PRIu64 " bytes, then %zu at %zu",
                       w->prefix, c->item.key, c->written, c->item.entry.size, n, offset);
    return append_data(w, c, data, n, e);
}

int bundle_writer_add_all(struct bundle_writer *w, const char *name, enum dtype dtype, const struct shape *shape,
                          const void *data, struct err *e)
{
    size_t id;
    if (bundle_writer_add(w, name, dtype, shape, &id, e) < 0)
        return -1;
    return bundle_writer_put(w, id, 0, data, (size_t)w->columns[id].item.entry.size, e);
}

/* What a string tensor's bytes begin with: the lengths as varints and their checksum. In the CRC each length counts as
 * a u32le (tensor_bundle.cc WriteStringTensor). *ret_crc: of the lengths and that checksum. */
static void put_lengths(struct buf *b, const size_t lengths[], size_t n, uint32_t *ret_crc)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t wide = lengths[i];
        uint32_t narrow = (uint32_t)wide;
        pb_raw_varint(b, wide);
        crc = wide <= UINT32_MAX ? crc32c(crc, &narrow, sizeof(narrow)) : crc32c(crc, &wide, sizeof(wide));
    }
    uint32_t masked = crc32c_mask(crc);
    buf_u32le(b, masked);
    *ret_crc = crc32c(crc, &masked, sizeof(masked));
}

int bundle_writer_add_strings(struct bundle_writer *w, const char *name, const struct shape *shape,
                              const char *const strings[], const size_t lengths[], size_t n, struct err *e)
{
    AUTO_FINI(buf) head = BUF_INIT;
    struct tensor_column *c;
    uint32_t crc;
    size_t count, size;

    if (shape_count(shape, &count, e) < 0)
        return err_wrap(e, "%s: tensor '%s'", w->prefix, name);
    if (count != n)
        return err_set(e, ERR_INTERNAL, "%s: tensor '%s' has %zu elements, %zu were given", w->prefix, name, count, n);
    put_lengths(&head, lengths, n, &crc);
    size = head.len;
    for (size_t i = 0; i < n; i++)
        if (size_add(size, lengths[i], &size, e) < 0)
            return err_wrap(e, "%s: tensor '%s'", w->prefix, name);
    if (add_entry(w, name, DT_STRING, shape, size, &c, e) < 0 || append_data(w, c, head.data, head.len, e) < 0)
        return -1;
    c->item.crc = crc;
    for (size_t i = 0; i < n; i++)
        if (append_data(w, c, strings[i], lengths[i], e) < 0)
            return -1;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct tensor_column *left = a, *right = b;
    return strcmp(left->item.key, right->item.key);
}

static int check_complete(const struct bundle_writer *w, struct err *e)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct tensor_column *c = &w->columns[i];
        if (c->written != c->item.entry.size)
            return err_set(e, ERR_INTERNAL, "%s: tensor '%s' has only %" PRIu64 " of %" PRIu64 " bytes", w->prefix,
                           c->item.key, c->written, c->item.entry.size);
    }
    return 0;
}

static void make_index(struct bundle_writer *w, struct buf *ret)
{
    AUTO(table_writer) *t = table_writer_new();
    AUTO_FINI(buf) value = BUF_INIT;

    qsort(w->columns, w->n, sizeof(*w->columns), by_name);
    bundle_put_header(&value, 1);
    table_writer_add(t, "", 0, &value);
    for (size_t i = 0; i < w->n; i++) {
        const struct bundle_item *item = &w->columns[i].item;
        buf_clear(&value);
        bundle_put_entry(&value, item);
        table_writer_add(t, item->key, item->key_size, &value);
    }
    table_writer_finish(t, ret);
}

int bundle_writer_finish(struct bundle_writer *w, struct err *e)
{
    AUTO_FINI(buf) index = BUF_INIT;

    if (check_complete(w, e) < 0 || refuse_existing(w, e) < 0)
        return -1;
    make_index(w, &index);
    auto_free char *data = xasprintf("%s.data-00000-of-00001", w->prefix);
    struct err cause = { 0 };
    if (file_out_commit_new(w->data, &cause) == 0 && file_write_new(w->index_path, index.data, index.len, &cause) == 0)
        return 0;
    if (!err_is(&cause, ERR_REFUSED)) { /* they may have their names, but may not be on disk */
        (void)!file_remove(w->index_path, NULL);
        (void)!file_remove(data, NULL);
    }
    return err_set(e, cause.code, "%s", cause.msg);
}
