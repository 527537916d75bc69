/* indexed - files of records whose lengths are known only after reading (csv, tfrecord), with an index of where they
 * begin.
 *
 * One pass over each file at the first open notes the place of every INDEX_STRIDE-th record; the cache folder keeps it,
 * named by content, modification time and options, so that a file which was changed is never read with an old index. To
 * find a record is to step over less than INDEX_STRIDE others. Half a byte of index a record.
 */
#ifndef TRAINYARD_DATA_INDEXED_H
#define TRAINYARD_DATA_INDEXED_H

#include "data/files.h"

enum { INDEX_STRIDE = 16 };

/* What the pass found besides the places; kept in the cache with them. */
struct index_notes {
    struct label_span labels;
    int64_t rounded_at;  /* the first record with a whole number that a float does not hold; -1: none */
    int64_t rounded;     /* which of its features that is */
    double rounded_from; /* that number */
    int64_t left_out;    /* records that the pass did not count: they lack a value */
};

struct record_index {
    int64_t n;
    struct index_notes notes;
    const uint64_t *offset; /* of records 0, INDEX_STRIDE, 2 INDEX_STRIDE, ...; in map or in own */
    struct file_map *map;
    uint64_t *own;
};
void record_index_fini(struct record_index *x);

/* The index in the file at `path`, if there is a complete one with this key for a file of `size` bytes; else -1. */
MUST_USE int record_index_load(const char *path, uint64_t key, size_t size, struct record_index *ret);
MUST_USE int record_index_save(const char *path, uint64_t key, const struct record_index *x, struct err *e);

struct indexed_file {
    struct data_file file;
    struct record_index index;
    int64_t first; /* number of its first record within the data set */
};

/* The functions of a format. `user` is its reader. `p` moves from the start of a record to the start of the next.
 * `record` counts within the file from 0, for messages. */
struct indexed_ops {
    /* Place of the first record (after a header). */
    int (*begin)(void *user, const struct data_file *f, const unsigned char **ret, struct err *e);
    /* The pass: steps over one record and checks what is cheap to check. 1: done, 0: none left, -1: damaged. */
    int (*survey)(void *user, const struct data_file *f, int64_t record, const unsigned char **p,
                  struct index_notes *notes, struct err *e);
    /* Steps over a record that the pass has checked. */
    int (*skip)(const void *user, const struct data_file *f, int64_t record, const unsigned char **p, struct err *e);
    /* One record to a row of x and of y, its weight to w. */
    int (*decode)(const void *user, const struct data_file *f, int64_t record, const unsigned char **p, float *x,
                  void *y, float *w, struct err *e);
};

struct indexed {
    const struct indexed_ops *ops;
    void *user;
    struct indexed_file *file;
    size_t n_files;
    int64_t n;                /* records */
    struct index_notes notes; /* over all files */
};
/* Opens the indexes of the files and takes ownership of the files, also when it fails. `options` hashes everything that
 * affects the result of the pass. */
MUST_USE int indexed_open(const struct data_place *at, const struct indexed_ops *ops, void *user, uint64_t options,
                          struct data_files *take, struct indexed *ret, struct err *e);
void indexed_fini(struct indexed *ix);
DEFINE_AUTO_FINI(indexed, indexed_fini);
/* The file of a record and where it starts. ERR_INPUT when the file is damaged there. */
MUST_USE int indexed_find(const struct indexed *ix, int64_t record, const struct indexed_file **ret,
                          const unsigned char **ret_start, struct err *e);
uint64_t indexed_fingerprint(const struct indexed *ix);

/* records_ops.read for them: rows of x_count floats and of y_count 4-byte labels; w NULL: no weights. */
MUST_USE int indexed_read(const struct indexed *ix, const int64_t *which, size_t n, float *x, size_t x_count, void *y,
                          size_t y_count, float *w, struct err *e);

#endif
