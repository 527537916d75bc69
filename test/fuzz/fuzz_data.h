/* fuzz_data - what the targets for whole data files share: any bytes become a file, which is opened as the data set
 * that a manifest describes and then read in two ways that must agree. */
#ifndef TRAINYARD_TEST_FUZZ_DATA_H
#define TRAINYARD_TEST_FUZZ_DATA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/yaml.h"
#include "data/dataset_internal.h"
#include "job/fields.h"

static inline void fuzz_compare(const struct dataset *d, const struct batch *a, const struct batch *b)
{
    size_t y = dataset_records(d)->has_labels ? shape_elements(&b->y[0].shape) * sizeof(float) : 0;
    if (memcmp(a->x[0].data, b->x[0].data, shape_elements(&b->x[0].shape) * dtype_size(b->x[0].dtype)) != 0 ||
        a->x[0].dtype != b->x[0].dtype || (y > 0 && memcmp(a->y[0].data, b->y[0].data, y) != 0))
        abort();
}

/* Every example alone, backwards, against all at once. */
static inline void fuzz_read(const struct dataset *d)
{
    struct err e = { .code = ERR_NONE };
    struct ordinal_space one = { .examples = dataset_size(d), .batch_size = 1 }, all = one;
    all.batch_size = all.examples;
    AUTO(loader) *l = NULL, *whole = NULL;
    struct batch b, w;
    if (loader_new(d, &one, NULL, &l, &e) < 0 || loader_new(d, &all, NULL, &whole, &e) < 0)
        abort();
    bool read = loader_get(whole, 0, &w, &e) == 0;
    bool each = true;
    size_t x_count = shape_elements(&dataset_records(d)->x);
    size_t y_bytes = dataset_records(d)->has_labels ? shape_elements(&dataset_records(d)->y) * sizeof(float) : 0;
    for (int64_t i = one.examples - 1; i >= 0; i--) {
        each = loader_get(l, i, &b, &e) == 0 && each;
        if (!read || !each)
            continue;
        struct batch row = w;
        row.x[0].data = (char *)w.x[0].data + (size_t)i * x_count * dtype_size(w.x[0].dtype);
        row.y[0].data = y_bytes > 0 ? (char *)w.y[0].data + (size_t)i * y_bytes : NULL;
        fuzz_compare(d, &row, &b);
    }
    if (each != read)
        abort();
}

static inline void fuzz_file(const char *yaml, const void *data, size_t size)
{
    static char path[64]; /* one process, one file */
    if (path[0] == '\0')
        snprintf(path, sizeof(path), "/dev/shm/trainyard-fuzz-%d", (int)getpid());
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();

    struct err e = { .code = ERR_NONE };
    json_auto_t *doc = NULL;
    AUTO(source) *src = NULL;
    AUTO(dataset) *d = NULL;
    struct data_spec spec = { .present = false };
    if (yaml_parse(yaml, strlen(yaml), "fuzz", &doc, &src, &e) < 0)
        abort();
    struct node root = node_root(doc, src);
    if (fields_read(&DATA_FIELDS, &root, &spec, &e) < 0)
        abort();
    strlist_fini(&spec.files);
    strlist_add(&spec.files, path);
    int rc = dataset_open(&spec, "/dev/shm", NULL, NULL, &d, &e);
    if (rc == 0)
        fuzz_read(d);
    else if (e.code != ERR_INPUT || e.msg[0] == '\0')
        abort();
    data_spec_fini(&spec);
    unlink(path);
}

#endif
