/* Reads records through an index of every 16th offset. The first pass over a file builds and validates the index,
 * which the cache folder keeps. */
#include "data/indexed.h"

#include <string.h>

#include "base/bisect.h"
#include "base/log.h"
#include "base/rng.h"

static const size_t SAY_EVERY = 256 << 20; /* bytes of an index pass */

/* The pass over one file. */
static int build_index(struct indexed *ix, const struct data_file *f, struct record_index *ret, struct err *e)
{
    AUTO_FINI(buf) places = BUF_INIT;
    struct record_index x = { .notes = ix->notes };
    const unsigned char *p;
    size_t say_at = SAY_EVERY;

    if (ix->ops->begin(ix->user, f, &p, e) < 0)
        return -1;
    for (;; x.n++) {
        uint64_t offset = (uint64_t)(p - f->map->data);
        int rc = ix->ops->survey(ix->user, f, x.n, &p, &x.notes, e);
        if (rc < 0)
            return -1;
        if (rc == 0)
            break;
        if (x.n % INDEX_STRIDE == 0)
            buf_add(&places, &offset, sizeof(offset));
        if (offset >= say_at) {
            log_debug("indexing %s: %zu of %zu MiB", f->path, (size_t)offset >> 20, f->map->size >> 20);
            say_at += SAY_EVERY;
        }
    }
    x.own = xmalloc(MAX(places.len, sizeof(uint64_t)));
    memcpy(x.own, places.data, places.len);
    x.offset = x.own;
    *ret = x;
    return 0;
}

/* From the cache, or by a pass whose result is then kept there. Without a cache it lives in memory. */
static int open_index(const struct data_place *at, struct indexed *ix, uint64_t options, const struct data_file *f,
                      struct record_index *ret, struct err *e)
{
    uint64_t key = hash64_mix(f->cache_key, options);
    auto_free char *path = at->cache_dir != NULL ? cache_path(at, f->path, key, "index") : NULL;
    if (path != NULL && record_index_load(path, key, f->map->size, ret) == 0)
        return 0;
    if (build_index(ix, f, ret, e) < 0)
        return -1;

    struct err why = { .code = ERR_NONE };
    if (path != NULL && (dir_make(at->cache_dir, &why) < 0 || record_index_save(path, key, ret, &why) < 0))
        log_debug("the index of %s stays in memory: %s", f->path, why.msg);
    return 0;
}

/* `first`: the number of the next file's first record. */
static void add_notes(struct index_notes *sum, const struct index_notes *next, int64_t first)
{
    label_span_join(&sum->labels, &next->labels, first);
    sum->left_out += next->left_out;
    if (sum->rounded_at < 0 && next->rounded_at >= 0) {
        sum->rounded_at = first + next->rounded_at;
        sum->rounded = next->rounded;
        sum->rounded_from = next->rounded_from;
    }
}

int indexed_open(const struct data_place *at, const struct indexed_ops *ops, void *user, uint64_t options,
                 struct data_files *take, struct indexed *ret, struct err *e)
{
    const struct index_notes none = { .rounded_at = -1 };
    AUTO_FINI(indexed) ix = { .ops = ops, .user = user, .notes = none };
    ix.file = xcalloc(take->n, sizeof(*ix.file));
    ix.n_files = take->n;
    for (size_t i = 0; i < take->n; i++) /* all first: a failure below leaves them to indexed_fini */
        ix.file[i].file = take->file[i];
    take->n = 0;

    struct index_notes sum = none;
    for (size_t i = 0; i < ix.n_files; i++) {
        struct indexed_file *f = &ix.file[i];
        if (open_index(at, &ix, options, &f->file, &f->index, e) < 0)
            return -1;
        f->first = ix.n;
        ix.n += f->index.n;
        add_notes(&sum, &f->index.notes, f->first);
    }
    ix.notes = sum;
    if (ix.n == 0)
        return err_set(e, ERR_INPUT, "%s: holds no examples%s", ix.file[0].file.path,
                       sum.left_out > 0 ? " without a missing value" : "");
    *ret = ix;
    ix = (struct indexed){ .n = 0 };
    return 0;
}

void indexed_fini(struct indexed *ix)
{
    for (size_t i = 0; i < ix->n_files; i++) {
        record_index_fini(&ix->file[i].index);
        data_file_fini(&ix->file[i].file);
    }
    free(ix->file);
    *ix = (struct indexed){ .n = 0 };
}

uint64_t indexed_fingerprint(const struct indexed *ix)
{
    uint64_t h = ix->n_files;
    for (size_t i = 0; i < ix->n_files; i++)
        h = hash64_mix(h, ix->file[i].file.fingerprint);
    return h;
}

/* The last file whose first record is not behind `record`; empty files share a first with the next. */
static const struct indexed_file *file_of(const struct indexed *ix, int64_t record)
{
    return &ix->file[bisect_right(&ix->file[0].first, sizeof(ix->file[0]), ix->n_files, record) - 1];
}

/* Steps from the indexed place before it to record number `at` of the file. */
static int seek(const struct indexed *ix, const struct indexed_file *f, int64_t at, const unsigned char **ret,
                struct err *e)
{
    const unsigned char *p = f->file.map->data + f->index.offset[at / INDEX_STRIDE];
    for (int64_t i = at - at % INDEX_STRIDE; i < at; i++)
        if (ix->ops->skip(ix->user, &f->file, i, &p, e) < 0)
            return -1;
    *ret = p;
    return 0;
}

int indexed_find(const struct indexed *ix, int64_t record, const struct indexed_file **ret,
                 const unsigned char **ret_start, struct err *e)
{
    const struct indexed_file *f = file_of(ix, record);
    *ret = f;
    return seek(ix, f, record - f->first, ret_start, e);
}

int indexed_read(const struct indexed *ix, const int64_t *which, size_t n, float *x, size_t x_count, void *y,
                 size_t y_count, float *w, struct err *e)
{
    const unsigned char *p = NULL;
    int64_t next = -1; /* the record that p stands at */
    for (size_t i = 0; i < n; i++) {
        const struct indexed_file *f = file_of(ix, which[i]);
        int64_t at = which[i] - f->first;
        if ((which[i] != next || at == 0) && seek(ix, f, at, &p, e) < 0)
            return -1;
        void *label = y_count > 0 ? (char *)y + i * y_count * sizeof(float) : NULL;
        if (ix->ops->decode(ix->user, &f->file, at, &p, x + i * x_count, label, w != NULL ? w + i : NULL, e) < 0)
            return -1;
        next = which[i] + 1;
    }
    return 0;
}
