/* The LevelDB table format of a checkpoint index: blocks with prefix-compressed keys, checksums and a footer.
 * Compressed blocks are refused. */
#include "tfio/bundle_table.h"

#include <string.h>

#include "codec/crc32c.h"
#include "codec/pb.h"

enum {
    BLOCK_SIZE = 262144,   /* TensorFlow's; a block is ended when it has reached this */
    RESTART_INTERVAL = 16, /* entries that share prefixes; 1 in the index block */
    TRAILER_SIZE = 5,
    FOOTER_SIZE = 48,
    HANDLES_SIZE = 40, /* two handles of at most 20 bytes each, padded with zeros */
};
#define TABLE_MAGIC 0xdb4775248b80fb57ULL

/* The place of a block in the file; size without the trailer. */
struct handle {
    uint64_t offset, size;
};

/* ---- writing ---- */

struct block {
    struct buf entries, last_key;
    uint32_t *restarts;
    size_t nrestarts, since_restart, interval, count;
};

struct table_writer {
    struct buf file;
    struct block data, index;
    struct handle pending;  /* the block that ended; its index entry waits for the next key */
    struct buf pending_key; /* its last key */
    bool has_pending;
};

static void block_clear(struct block *b)
{
    buf_clear(&b->entries);
    buf_clear(&b->last_key);
    b->nrestarts = b->since_restart = b->count = 0;
}

static void block_fini(struct block *b)
{
    buf_fini(&b->entries);
    buf_fini(&b->last_key);
    free(b->restarts);
}

static void add_restart(struct block *b)
{
    b->restarts = xrealloc(b->restarts, (b->nrestarts + 1) * sizeof(*b->restarts));
    b->restarts[b->nrestarts++] = (uint32_t)b->entries.len;
    b->since_restart = 0;
}

static size_t common_prefix(const struct buf *a, const char *key, size_t n)
{
    size_t i = 0;
    while (i < a->len && i < n && a->data[i] == key[i])
        i++;
    return i;
}

static void block_add(struct block *b, const char *key, size_t nkey, const struct buf *value)
{
    if (b->count == 0 || b->since_restart == b->interval)
        add_restart(b);
    size_t shared = b->since_restart == 0 ? 0 : common_prefix(&b->last_key, key, nkey);
    pb_raw_varint(&b->entries, shared);
    pb_raw_varint(&b->entries, nkey - shared);
    pb_raw_varint(&b->entries, value->len);
    buf_add(&b->entries, key + shared, nkey - shared);
    buf_add(&b->entries, value->data, value->len);
    buf_clear(&b->last_key);
    buf_add(&b->last_key, key, nkey);
    b->since_restart++;
    b->count++;
}

/* Size of the block if it ended now. */
static size_t block_size(const struct block *b)
{
    return b->entries.len + (b->nrestarts + 1) * sizeof(uint32_t);
}

/* Appends the block with its trailer to the file. */
static struct handle block_write(struct block *b, struct buf *file)
{
    if (b->count == 0)
        add_restart(b);
    struct handle h = { .offset = file->len, .size = block_size(b) };
    buf_add(file, b->entries.data, b->entries.len);
    for (size_t i = 0; i < b->nrestarts; i++)
        buf_u32le(file, b->restarts[i]);
    buf_u32le(file, (uint32_t)b->nrestarts);
    buf_char(file, 0); /* not compressed */
    buf_u32le(file, crc32c_mask(crc32c(0, file->data + h.offset, h.size + 1)));
    block_clear(b);
    return h;
}

struct table_writer *table_writer_new(void)
{
    struct table_writer *t = xcalloc(1, sizeof(*t));
    t->file = t->pending_key = (struct buf)BUF_INIT;
    t->data = (struct block){ .entries = BUF_INIT, .last_key = BUF_INIT, .interval = RESTART_INTERVAL };
    t->index = (struct block){ .entries = BUF_INIT, .last_key = BUF_INIT, .interval = 1 };
    return t;
}

void table_writer_free(struct table_writer *t)
{
    if (t == NULL)
        return;
    buf_fini(&t->file);
    buf_fini(&t->pending_key);
    block_fini(&t->data);
    block_fini(&t->index);
    free(t);
}

static void put_handle(struct buf *out, struct handle h)
{
    pb_raw_varint(out, h.offset);
    pb_raw_varint(out, h.size);
}

static void add_index_entry(struct table_writer *t)
{
    AUTO_FINI(buf) value = BUF_INIT;
    put_handle(&value, t->pending);
    block_add(&t->index, t->pending_key.data, t->pending_key.len, &value);
    t->has_pending = false;
}

/* Makes pending_key a short key that is not below it but below `next` (LevelDB's FindShortestSeparator). */
static void shorten_before(struct buf *key, const char *next, size_t n)
{
    size_t at = common_prefix(key, next, n);
    if (at >= key->len || at >= n)
        return;
    unsigned char byte = (unsigned char)key->data[at];
    if (byte < 0xff && byte + 1 < (unsigned char)next[at]) {
        key->data[at]++;
        key->len = at + 1;
    }
}

/* A short key that is not below pending_key (LevelDB's FindShortSuccessor). */
static void shorten_last(struct buf *key)
{
    for (size_t i = 0; i < key->len; i++) {
        if ((unsigned char)key->data[i] != 0xff) {
            key->data[i]++;
            key->len = i + 1;
            return;
        }
    }
}

static void end_data_block(struct table_writer *t)
{
    buf_clear(&t->pending_key);
    buf_add(&t->pending_key, t->data.last_key.data, t->data.last_key.len);
    t->pending = block_write(&t->data, &t->file);
    t->has_pending = true;
}

void table_writer_add(struct table_writer *t, const void *key, size_t nkey, const struct buf *value)
{
    if (t->has_pending) {
        shorten_before(&t->pending_key, key, nkey);
        add_index_entry(t);
    }
    block_add(&t->data, key, nkey, value);
    if (block_size(&t->data) >= BLOCK_SIZE)
        end_data_block(t);
}

static void put_footer(struct buf *out, struct handle metaindex, struct handle index)
{
    size_t begin = out->len;
    put_handle(out, metaindex);
    put_handle(out, index);
    while (out->len < begin + HANDLES_SIZE)
        buf_char(out, 0);
    buf_u64le(out, TABLE_MAGIC);
}

void table_writer_finish(struct table_writer *t, struct buf *ret)
{
    if (t->data.count > 0)
        end_data_block(t);
    struct block none = { .entries = BUF_INIT, .last_key = BUF_INIT, .interval = 1 };
    struct handle metaindex = block_write(&none, &t->file);
    block_fini(&none);
    if (t->has_pending) {
        shorten_last(&t->pending_key);
        add_index_entry(t);
    }
    struct handle index = block_write(&t->index, &t->file);

    put_footer(&t->file, metaindex, index);
    buf_add(ret, t->file.data, t->file.len);
}

/* ---- reading ---- */

struct table_reader {
    const unsigned char *data;
    size_t size;
    bool check_crc;
    table_fn *each;
    void *user;
    struct buf last; /* key of the last data entry */
    bool has_last;
};

static int take_handle(struct reader *r, struct handle *ret)
{
    return reader_varint(r, &ret->offset) < 0 || reader_varint(r, &ret->size) < 0 ? -1 : 0;
}

/* The bytes of a block, checked, without its trailer. */
static int open_block(const struct table_reader *t, struct handle h, struct reader *ret, struct err *e)
{
    size_t end = t->size - FOOTER_SIZE;
    if (h.offset > end || h.size > end - h.offset || end - h.offset - h.size < TRAILER_SIZE)
        return err_set(e, ERR_INPUT, "a block lies outside of the file");

    const unsigned char *p = t->data + h.offset, *trailer = p + h.size;
    struct reader r = reader_of(trailer + 1, TRAILER_SIZE - 1);
    uint32_t stored;
    if (reader_u32le(&r, &stored) < 0)
        return err_set(e, ERR_INPUT, "a block lies outside of the file");
    if (t->check_crc && crc32c_unmask(stored) != crc32c(0, p, (size_t)h.size + 1))
        return err_set(e, ERR_INPUT, "checksum of the block at byte %llu is wrong: the file is damaged",
                       (unsigned long long)h.offset);
    if (*trailer != 0)
        return err_set(e, ERR_INPUT, "the block at byte %llu is compressed (type %d), which is not supported",
                       (unsigned long long)h.offset, *trailer);
    *ret = reader_of(p, (size_t)h.size);
    return 0;
}

/* Cuts the restart array off the end of a block. */
static int cut_restarts(struct reader *r)
{
    uint32_t count;
    struct reader tail = { .p = r->end - sizeof(count), .end = r->end };
    if (reader_left(r) < sizeof(count) || reader_u32le(&tail, &count) < 0)
        return -1;
    if (count == 0 || count > reader_left(r) / sizeof(count) - 1)
        return -1;
    r->end -= ((size_t)count + 1) * sizeof(count);
    return 0;
}

/* Rebuilds the next key in *key. */
static int take_entry(struct reader *r, struct buf *key, const void **ret_value, size_t *ret_size)
{
    uint64_t shared, rest, size;
    const void *tail;

    if (reader_varint(r, &shared) < 0 || reader_varint(r, &rest) < 0 || reader_varint(r, &size) < 0)
        return -1;
    if (shared > key->len || rest > TABLE_KEY_MAX - shared || size > reader_left(r))
        return -1;
    if (reader_bytes(r, (size_t)rest, &tail) < 0 || reader_bytes(r, (size_t)size, ret_value) < 0)
        return -1;
    if (shared < key->len)
        key->data[key->len = (size_t)shared] = '\0';
    buf_add(key, tail, (size_t)rest);
    *ret_size = (size_t)size;
    return 0;
}

static int compare(const struct buf *a, const struct buf *b)
{
    int order = memcmp(a->data, b->data, MIN(a->len, b->len));
    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

static int read_entries(struct table_reader *t, struct handle h, struct err *e)
{
    AUTO_FINI(buf) key = BUF_INIT;
    struct reader r;
    const void *value;
    size_t size;

    if (open_block(t, h, &r, e) < 0)
        return -1;
    if (cut_restarts(&r) < 0)
        return err_set(e, ERR_INPUT, "a data block is malformed");
    while (reader_left(&r) > 0) {
        if (take_entry(&r, &key, &value, &size) < 0)
            return err_set(e, ERR_INPUT, "a data block is malformed");
        if (t->has_last && compare(&t->last, &key) >= 0)
            return err_set(e, ERR_INPUT, "keys are not in order");
        buf_clear(&t->last);
        buf_add(&t->last, key.data, key.len);
        t->has_last = true;
        if (t->each(t->user, key.data, key.len, value, size, e) < 0)
            return -1;
    }
    return 0;
}

static int read_index(struct table_reader *t, struct handle index, struct err *e)
{
    AUTO_FINI(buf) key = BUF_INIT;
    struct reader r;
    const void *value;
    size_t size;

    if (open_block(t, index, &r, e) < 0)
        return -1;
    if (cut_restarts(&r) < 0)
        return err_set(e, ERR_INPUT, "the index block is malformed");
    while (reader_left(&r) > 0) {
        struct handle h;
        if (take_entry(&r, &key, &value, &size) < 0)
            return err_set(e, ERR_INPUT, "the index block is malformed");
        struct reader handle = reader_of(value, size);
        if (take_handle(&handle, &h) < 0 || reader_left(&handle) != 0)
            return err_set(e, ERR_INPUT, "the index block is malformed");
        if (read_entries(t, h, e) < 0)
            return -1;
        /* The block's key must not be below what it holds, else look-ups by others would fail. */
        if (t->has_last && compare(&t->last, &key) > 0)
            return err_set(e, ERR_INPUT, "the index block is malformed");
    }
    return 0;
}

/* The footer has no checksum: it must be, to the bit, what would be written for these handles. */
static bool footer_is(const unsigned char *footer, struct handle metaindex, struct handle index)
{
    AUTO_FINI(buf) want = BUF_INIT;
    put_footer(&want, metaindex, index);
    return want.len == FOOTER_SIZE && memcmp(footer, want.data, FOOTER_SIZE) == 0;
}

int table_read(const void *data, size_t n, bool check_crc, table_fn *each, void *user, struct err *e)
{
    struct table_reader t = {
        .data = data, .size = n, .check_crc = check_crc, .each = each, .user = user, .last = BUF_INIT
    };
    struct handle metaindex, index;
    struct reader r, ignored;
    uint64_t magic;

    if (n < FOOTER_SIZE)
        return err_set(e, ERR_INPUT, "too short for a checkpoint index");
    r = reader_of(t.data + n - sizeof(magic), sizeof(magic));
    if (reader_u64le(&r, &magic) < 0 || magic != TABLE_MAGIC)
        return err_set(e, ERR_INPUT, "not a checkpoint index (its last bytes are not those of a table), or truncated");
    r = reader_of(t.data + n - FOOTER_SIZE, HANDLES_SIZE);
    if (take_handle(&r, &metaindex) < 0 || take_handle(&r, &index) < 0 ||
        !footer_is(t.data + n - FOOTER_SIZE, metaindex, index))
        return err_set(e, ERR_INPUT, "the footer is malformed");
    int result = open_block(&t, metaindex, &ignored, e) < 0 ? -1 : read_index(&t, index, e);
    buf_fini(&t.last);
    return result;
}
