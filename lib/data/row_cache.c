/* A file of a header, the stamps of the rows, and the rows: features, labels and weight one behind the other. A stamp
 * that is not there yet is claimed by the one thread that writes the row. */
#include "data/row_cache.h"

#include <stdatomic.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/rng.h"
#include "codec/crc32c.h"
#include "data/files.h"

static const char ROWS_MAGIC[8] = { 'T', 'Y', 'r', 'o', 'w', 's', ' ', '1' };
enum { BYTES_MAX = 1 << 30, MEMORY_MAX = 64 << 20, GROWTH_MAX = 4, FREE_PART = 4, ALIGNMENT = 64 };

enum { STAMP_NONE, STAMP_CLAIMED, STAMP_FIRST }; /* then stamps of rows */

struct rows_header {
    char magic[8];
    uint64_t key, rows, row_bytes, reserved[4];
};
_Static_assert(sizeof(struct rows_header) == ALIGNMENT, "the layout of cached files");

enum { PARTS = 3 };

struct row_cache {
    const struct records *records;
    int64_t first; /* record of the first row */
    uint64_t rows;
    size_t size[PARTS]; /* bytes of the features, labels and weight of a row */
    size_t row_bytes;
    struct file_map *map;
    _Atomic uint32_t *stamps; /* in the map */
    unsigned char *row;       /* the first; in the map */
};

/* ---- sizes ---- */

static size_t part_sizes(const struct records *r, size_t size[PARTS])
{
    size[0] = shape_elements(&r->x) * dtype_size(r->x_type);
    size[1] = r->has_labels ? shape_elements(&r->y) * sizeof(float) : 0;
    size[2] = r->has_weights ? sizeof(float) : 0;
    return size[0] + size[1] + size[2];
}

size_t row_cache_rows(const struct records *r, size_t n, uint64_t free_bytes, bool memory)
{
    size_t size[PARTS], one = part_sizes(r, size) + sizeof(uint32_t);
    uint64_t limit = MIN((uint64_t)(memory ? MEMORY_MAX : BYTES_MAX), free_bytes / FREE_PART);
    if (r->cost != READ_PARSES_TEXT || n == 0 || one > r->bytes / (uint64_t)r->n * GROWTH_MAX)
        return 0;
    return (size_t)MIN((uint64_t)n, limit / one);
}

/* Of the header and the stamps. */
static size_t rows_at(uint64_t rows)
{
    return (sizeof(struct rows_header) + rows * sizeof(uint32_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- the file ---- */

/* Another process may make it at the same time. */
static int make_file(const char *path, const struct rows_header *h, struct err *e)
{
    AUTO(file_out) *out = NULL;
    size_t size = rows_at(h->rows) + h->rows * h->row_bytes;
    if (file_out_open(path, &out, e) < 0 || file_out_write(out, h, sizeof(*h), e) < 0 ||
        file_out_pwrite(out, "", 1, size - 1, e) < 0)
        return -1;
    return file_out_commit_new(out, e) < 0 && e->code != ERR_REFUSED ? -1 : 0;
}

/* The number of rows that have a place was decided by the process that made the file. */
static int map_file(struct row_cache *c, const char *path, const struct rows_header *mine, struct err *e)
{
    struct rows_header h;
    if (file_map_open_shared(path, &c->map, e) < 0)
        return -1;
    size_t size = c->map->size;
    if (size < sizeof(h))
        return err_set(e, ERR_INPUT, "%s: no header", path);
    memcpy(&h, c->map->data, sizeof(h));
    if (memcmp(h.magic, mine->magic, sizeof(h.magic)) != 0 || h.key != mine->key || h.row_bytes != mine->row_bytes ||
        h.rows > size / sizeof(uint32_t) || size < rows_at(h.rows) || (size - rows_at(h.rows)) / c->row_bytes != h.rows)
        return err_set(e, ERR_INPUT, "%s: holds other rows", path);
    c->rows = h.rows;
    c->stamps = (void *)(c->map->shared + sizeof(h));
    c->row = c->map->shared + rows_at(h.rows);
    return 0;
}

/* A file that cannot be mapped is removed: it may be damaged, or it may have taken the last blocks of a full disk. */
static int map_or_remove(struct row_cache *c, const char *path, const struct rows_header *h, struct err *e)
{
    struct err ignored;
    if (map_file(c, path, h, e) == 0)
        return 0;
    (void)!file_remove(path, &ignored);
    return -1;
}

/* The files of the same records as they were before; a process that uses one keeps it. */
static void remove_old(const char *dir, const char *path)
{
    AUTO_FINI(strlist) names = { .items = NULL };
    size_t same = strlen(path) - strlen("0123456789abcdef.rows"); /* the key */
    struct err ignored;
    if (dir_list(dir, &names, &ignored) < 0)
        return;
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *other = path_join(dir, names.items[i]);
        if (strlen(other) == strlen(path) && strncmp(other, path, same) == 0 && str_ends(other, ".rows"))
            (void)!file_remove(other, &ignored);
    }
}

static int open_file(struct row_cache *c, const struct row_space *space, size_t n, struct err *e)
{
    const struct records *r = c->records;
    const struct data_place at = { .cache_dir = space->dir };
    uint64_t range = hash64_mix((uint64_t)c->first, n), free_bytes;
    bool memory;
    struct rows_header h = { .key = hash64_mix(r->cache_key, range), .row_bytes = c->row_bytes };
    /* of this file, and which part of a split */
    auto_free char *name =
        xasprintf("%s-%016llx", r->path, (unsigned long long)hash64(r->path, strlen(r->path), c->first > 0));
    auto_free char *path = cache_path(&at, name, h.key, "rows");
    memcpy(h.magic, ROWS_MAGIC, sizeof(h.magic));
    if (space->bytes == 0)
        return err_set(e, ERR_INPUT, "no space is given to the rows of %s", r->path);
    if (file_exists(path))
        return map_or_remove(c, path, &h, e);
    remove_old(space->dir, path);
    if (dir_make(space->dir, e) < 0 || dir_space(space->dir, &free_bytes, &memory, e) < 0)
        return -1;
    h.rows = row_cache_rows(r, n, MIN(free_bytes, space->bytes), memory);
    if (h.rows == 0)
        return err_set(e, ERR_INPUT, "the rows of %s would take too much space", r->path);
    if (make_file(path, &h, e) < 0)
        return -1;
    return map_or_remove(c, path, &h, e);
}

int row_cache_open(const struct records *r, const struct row_space *space, int64_t first, size_t n,
                   struct row_cache **ret, struct err *e)
{
    AUTO(row_cache) *c = xcalloc(1, sizeof(*c));
    c->records = r;
    c->first = first;
    c->row_bytes = part_sizes(r, c->size);
    if (open_file(c, space, n, e) < 0)
        return -1;
    *ret = TAKE(c);
    return 0;
}

void row_cache_free(struct row_cache *c)
{
    if (c == NULL)
        return;
    file_map_free(c->map);
    free(c);
}

/* ---- rows ---- */

/* The row of a record; false: it has no place. */
static bool find_row(const struct row_cache *c, int64_t record, _Atomic uint32_t **ret_stamp, unsigned char **ret)
{
    uint64_t at = (uint64_t)(record - c->first);
    if (record < c->first || at >= c->rows)
        return false;
    *ret_stamp = &c->stamps[at];
    *ret = c->row + at * c->row_bytes;
    return true;
}

static uint32_t stamp_of(const struct row_cache *c, const unsigned char *row)
{
    return MAX(crc32c(0, row, c->row_bytes), (uint32_t)STAMP_FIRST);
}

/* Where row i of a batch has its parts; NULL: it has none. */
static void parts_of(const struct row_cache *c, const struct read_rows *rows, size_t i, void *ret[PARTS])
{
    void *const part[PARTS] = { rows->x, rows->y, rows->w };
    for (int k = 0; k < PARTS; k++)
        ret[k] = c->size[k] > 0 ? (char *)part[k] + i * c->size[k] : NULL;
}

static bool is_kept(const struct row_cache *c, int64_t record)
{
    _Atomic uint32_t *stamp;
    unsigned char *row;
    return find_row(c, record, &stamp, &row) && atomic_load_explicit(stamp, memory_order_acquire) >= STAMP_FIRST;
}

static bool take_row(const struct row_cache *c, const struct read_rows *rows, size_t i)
{
    _Atomic uint32_t *stamp;
    unsigned char *row;
    void *part[PARTS];
    if (!find_row(c, rows->which[i], &stamp, &row))
        return false;
    uint32_t has = atomic_load_explicit(stamp, memory_order_acquire);
    if (has < STAMP_FIRST || stamp_of(c, row) != has)
        return false;
    parts_of(c, rows, i, part);
    for (int k = 0; k < PARTS; row += c->size[k], k++)
        if (part[k] != NULL)
            memcpy(part[k], row, c->size[k]);
    return true;
}

static void keep_row(const struct row_cache *c, const struct read_rows *rows, size_t i)
{
    _Atomic uint32_t *stamp;
    unsigned char *row;
    void *part[PARTS];
    uint32_t none = STAMP_NONE;
    if (!find_row(c, rows->which[i], &stamp, &row) || !atomic_compare_exchange_strong(stamp, &none, STAMP_CLAIMED))
        return;
    parts_of(c, rows, i, part);
    unsigned char *to = row;
    for (int k = 0; k < PARTS; to += c->size[k], k++)
        if (part[k] != NULL)
            memcpy(to, part[k], c->size[k]);
    atomic_store_explicit(stamp, stamp_of(c, row), memory_order_release);
}

/* Rows i .. i + n of a batch, none of which is kept. */
static int parse_rows(const struct row_cache *c, const struct read_rows *rows, size_t i, size_t n, struct err *e)
{
    void *part[PARTS];
    parts_of(c, rows, i, part);
    if (c->records->ops->read(c->records, rows->which + i, n, part[0], part[1], part[2], e) < 0)
        return -1;
    for (size_t k = i; k < i + n; k++)
        keep_row(c, rows, k);
    return 0;
}

int row_cache_read(struct row_cache *c, const struct read_rows *rows, struct err *e)
{
    for (size_t i = 0, n; i < rows->n; i += n) {
        n = 1;
        if (take_row(c, rows, i))
            continue;
        while (i + n < rows->n && !is_kept(c, rows->which[i + n]))
            n++;
        if (parse_rows(c, rows, i, n, e) < 0)
            return -1;
    }
    return 0;
}
