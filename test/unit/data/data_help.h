/* data_help - shared by the tests of lib/data: a temporary folder, a spec from manifest text, files of every format
 * with the same examples. */
#ifndef TRAINYARD_TEST_DATA_HELP_H
#define TRAINYARD_TEST_DATA_HELP_H

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/thread.h"
#include "check_main.h"
#include "codec/yaml.h"
#include "data/dataset_internal.h"
#include "job/fields.h"
#include "put_example.h"
#include "put_zip.h"

/* ---- a temporary folder ---- */

struct folder {
    char path[64];
};

static inline struct folder folder_new(void)
{
    struct folder f = { .path = "/tmp/trainyard-data-XXXXXX" };
    ck_assert_ptr_nonnull(mkdtemp(f.path));
    return f;
}

static inline int folder_remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED,
                                    struct FTW *ftw UNUSED)
{
    return remove(path);
}

static inline void folder_fini(struct folder *f)
{
    nftw(f->path, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
DEFINE_AUTO_FINI(folder, folder_fini);

static inline void put_file(const struct folder *f, const char *name, const void *data, size_t n)
{
    struct err e;
    auto_free char *path = path_join(f->path, name);
    ck_ok_e(file_write(path, data, n, &e));
}

static inline void put_gzip(const struct folder *f, const char *name, const void *data, size_t n)
{
    auto_free char *path = path_join(f->path, name);
    gzFile z = gzopen(path, "wb6");
    ck_assert_ptr_nonnull(z);
    ck_assert_int_eq(gzwrite(z, data, (unsigned)n), (int)n);
    gzclose(z);
}

/* As TFRecordOptions(compression_type="ZLIB") writes it. */
static inline void put_zlib(const struct folder *f, const char *name, const void *data, size_t n)
{
    uLongf size = compressBound(n);
    auto_free unsigned char *out = xmalloc(size);
    ck_assert_int_eq(compress(out, &size, data, n), Z_OK);
    put_file(f, name, out, size);
}

/* ---- a spec, as in a manifest ---- */

struct parsed_spec {
    json_t *doc;
    struct source *source;
    struct data_spec spec;
};

static inline void parsed_spec_fini(struct parsed_spec *p)
{
    data_spec_fini(&p->spec);
    source_free(p->source);
    json_decref(p->doc);
}
DEFINE_AUTO_FINI(parsed_spec, parsed_spec_fini);

static inline int parse_spec(const char *yaml, struct parsed_spec *ret, struct err *e)
{
    if (yaml_parse(yaml, strlen(yaml), "job.yaml", &ret->doc, &ret->source, e) < 0)
        return -1;
    struct node root = node_root(ret->doc, ret->source);
    return fields_read(&DATA_FIELDS, &root, &ret->spec, e);
}

static inline int open_like(const char *yaml, const char *base, const char *cache, const struct column_names *like,
                            struct dataset **ret, struct err *e)
{
    AUTO_FINI(parsed_spec) p = { .doc = NULL };
    if (parse_spec(yaml, &p, e) < 0)
        return -1;
    return dataset_open(&p.spec, base, cache, like, ret, e);
}

static inline int open_yaml(const char *yaml, const char *base, const char *cache, struct dataset **ret, struct err *e)
{
    return open_like(yaml, base, cache, NULL, ret, e);
}

static inline struct ordinal_space space_of(const struct dataset *d, int64_t batch_size, bool shuffle)
{
    return (struct ordinal_space){ .fingerprint = dataset_fingerprint(d),
                                   .seed = 5,
                                   .examples = dataset_size(d),
                                   .batch_size = batch_size,
                                   .shuffle = shuffle };
}

/* ---- the same examples in every format: WIDTH floats with few digits, and a class number ---- */

enum { WIDTH = 3, CLASSES = 10 };

static inline float example_x(int64_t i, int j)
{
    return (float)(i * WIDTH + j) / 4 - 100;
}

static inline int32_t example_y(int64_t i)
{
    return (int32_t)(i * 7 % CLASSES);
}

static inline void put_u32be(struct buf *b, uint32_t v)
{
    buf_u32le(b, __builtin_bswap32(v));
}

static inline void make_idx(int64_t n, struct buf *x, struct buf *y)
{
    put_u32be(x, 0x00000D02);
    put_u32be(x, (uint32_t)n);
    put_u32be(x, WIDTH);
    put_u32be(y, 0x00000801);
    put_u32be(y, (uint32_t)n);
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < WIDTH; j++) {
            float v = example_x(i, j);
            uint32_t bits;
            memcpy(&bits, &v, sizeof(bits));
            put_u32be(x, bits);
        }
        buf_char(y, (char)example_y(i));
    }
}

static inline void npy_header_of(struct buf *b, const char *descr, bool fortran, const char *shape)
{
    AUTO_FINI(buf) dict = BUF_INIT;
    buf_printf(&dict, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, fortran ? "True" : "False", shape);
    while ((10 + dict.len + 1) % 64 != 0)
        buf_char(&dict, ' ');
    buf_char(&dict, '\n');
    buf_add(b, "\x93NUMPY\x01\x00", 8);
    buf_u16le(b, (uint16_t)dict.len);
    buf_add(b, dict.data, dict.len);
}

static inline void npy_header(struct buf *b, const char *descr, const char *shape)
{
    npy_header_of(b, descr, false, shape);
}

static inline void make_npy(int64_t n, struct buf *x, struct buf *y)
{
    char shape[64];
    snprintf(shape, sizeof(shape), "(%lld, %d)", (long long)n, WIDTH);
    npy_header(x, "<f4", shape);
    snprintf(shape, sizeof(shape), "(%lld,)", (long long)n);
    npy_header(y, "<i8", shape);
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < WIDTH; j++) {
            float v = example_x(i, j);
            buf_add(x, &v, sizeof(v));
        }
        buf_u64le(y, (uint64_t)example_y(i));
    }
}

/* Features in Fortran order. */
static inline void make_npy_fortran(int64_t n, struct buf *x, struct buf *y)
{
    AUTO_FINI(buf) unused = BUF_INIT;
    char shape[64];
    make_npy(n, &unused, y);
    snprintf(shape, sizeof(shape), "(%lld, %d)", (long long)n, WIDTH);
    npy_header_of(x, "<f4", true, shape);
    for (int j = 0; j < WIDTH; j++)
        for (int64_t i = 0; i < n; i++) {
            float v = example_x(i, j);
            buf_add(x, &v, sizeof(v));
        }
}

static inline void make_csv(int64_t first, int64_t n, struct buf *b)
{
    buf_str(b, "a,b,\"the class\",c\n");
    for (int64_t i = first; i < first + n; i++)
        buf_printf(b, "%.2f,%s%.2f%s,%d,%.9g%s", (double)example_x(i, 0), i % 3 == 0 ? "\"" : "",
                   (double)example_x(i, 1), i % 3 == 0 ? "\"" : "", example_y(i), (double)example_x(i, 2),
                   i % 5 == 0 ? "\r\n" : "\n");
}

/* The order of keys alternates, and some examples have another key. */
static inline void make_jsonl(int64_t first, int64_t n, struct buf *b)
{
    for (int64_t i = first; i < first + n; i++)
        if (i % 2 == 0)
            buf_printf(b, "{\"a\": %.2f, \"the class\": %d, \"b\": {\"c\": %.2f}, \"d\": %.9g}%s",
                       (double)example_x(i, 0), example_y(i), (double)example_x(i, 1), (double)example_x(i, 2),
                       i % 5 == 0 ? "\r\n" : "\n");
        else
            buf_printf(b, "{\"z\":[{}],\"d\":%.9g,\"b\":{\"c\":%.2f},\"the class\":%d,\"a\":%.2f}\n\n",
                       (double)example_x(i, 2), (double)example_x(i, 1), example_y(i), (double)example_x(i, 0));
}

/* Packed and unpacked lists alternate, and so does the map's order: all are legal. */
static inline void make_tfrecord(int64_t first, int64_t n, struct buf *b)
{
    for (int64_t i = first; i < first + n; i++) {
        AUTO_FINI(buf) floats = BUF_INIT;
        AUTO_FINI(buf) ints = BUF_INIT;
        AUTO_FINI(buf) features = BUF_INIT;
        float v[WIDTH];
        for (int j = 0; j < WIDTH; j++)
            v[j] = example_x(i, j);
        if (i % 2 == 0)
            pb_put_bytes(&floats, 1, v, sizeof(v));
        else
            for (int j = 0; j < WIDTH; j++)
                pb_put_float(&floats, 1, v[j]);
        pb_put_varint(&ints, 1, (uint64_t)example_y(i));
        if (i % 3 == 0)
            put_feature(&features, "label", 3, &ints);
        put_feature(&features, "x", 2, &floats);
        put_feature(&features, "unused", 2, &floats);
        if (i % 3 != 0)
            put_feature(&features, "label", 3, &ints);
        put_example(b, &features);
    }
}

#endif
