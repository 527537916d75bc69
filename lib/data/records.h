/* records - the seam between formats and the rest of lib/data: examples in the order of their files.
 *
 * A reader (arrays.c for idx, npy and npz, cifar.c, csv.c, images.c, tfrecord.c) makes one of these. dataset.c and
 * loader.c use nothing else of a reader. Immutable once open: read() may be called by any number of threads.
 * test/unit/data/test_formats.c runs one suite over every reader.
 */
#ifndef TRAINYARD_DATA_RECORDS_H
#define TRAINYARD_DATA_RECORDS_H

#include "data/column_names.h"
#include "data/label_span.h"
#include "job/job.h"
#include "tensor/tensor.h"

/* A named part of an example's features or labels: a column, or one of several arrays. */
struct record_field {
    const char *name;
    size_t at; /* its first number in the row */
    struct shape shape;
    bool integer;   /* labels: class numbers may stand in it, as whole floats */
    size_t numbers; /* its values are the numbers of words, of which there are so many, from 0; 0: others may occur */
};
struct record_fields {
    struct record_field *v; /* owned */
    size_t n;               /* 0: the row has no parts */
};

/* What reading a record is: a copy; or parsing, so that batches are prepared ahead, and of text, so that the rows are
 * kept (row_cache.h); or decoding an image, so that several threads share a batch. */
enum read_cost { READ_COPIES, READ_PARSES, READ_PARSES_TEXT, READ_DECODES };

struct records {
    const struct records_ops *ops;
    int64_t n;          /* examples, at least one */
    bool random_access; /* every record costs the same; else they are read best in the order of the files */
    enum read_cost cost;
    struct shape x, y; /* of one example */
    enum dtype x_type; /* what read() writes to x: DT_FLOAT, or DT_UINT8 where the file holds that */
    bool has_labels;
    bool integer_labels; /* y is () and read() writes int32_t, else float */
    bool has_weights;
    struct column_names names; /* owned; none where the file has no names */
    struct record_fields x_fields, y_fields;
    struct label_span labels;
    int64_t left_out;     /* examples of the files that are not among the n: they lack a value */
    uint64_t fingerprint; /* of the names and contents of the files and of the options that affect values */
    /* READ_PARSES_TEXT */
    uint64_t cache_key; /* of the fingerprint, and of when the files were written, or touched otherwise */
    uint64_t bytes;     /* of the files */
    const char *path;   /* of the first file */
};

enum record_part { RECORD_FEATURES, RECORD_LABELS };

struct records_ops {
    void (*free)(struct records *r); /* accepts partly built ones */
    /* Records which[0..n) in this order to rows of x (of x_type), of y (int32_t or float; ignored without
     * labels), and their weights to w (ignored without weights). A damaged record, or a weight that is negative or not
     * finite, is ERR_INPUT naming file and place. */
    int (*read)(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w, struct err *e);
    /* Where number i of an example's features or labels stands, for messages: "t.csv:7: column 'age'". */
    void (*place)(const struct records *r, int64_t record, enum record_part part, size_t i, struct buf *out);
    /* Adds the texts of a column in the records first .. first + n, also of a column that is not read otherwise. An
     * unknown column is ERR_INPUT also with n = 0. NULL: the format has no columns of text. */
    int (*texts)(const struct records *r, const char *column, int64_t first, size_t n, struct strlist *ret,
                 struct err *e);
    /* Adds what a user should know of the values, each a sentence with its place; NULL: nothing is known. */
    void (*warn)(const struct records *r, struct strlist *ret);
};

static inline void records_free(struct records *r)
{
    if (r == NULL)
        return;
    free(r->x_fields.v);
    free(r->y_fields.v);
    r->ops->free(r);
}
DEFINE_AUTO(records, records_free);

/* The context in which a data set is opened, passed to every reader. */
struct data_place {
    const struct data_spec *spec;
    const char *base_dir, *cache_dir; /* cache_dir NULL: nothing can be cached */
    const struct column_names *like;  /* csv with a header: the names by which to read; images: the classes; NULL:
                                       * those of the files, in their order */
};
MUST_USE int arrays_open(const struct data_place *at, struct records **ret, struct err *e); /* idx, npy, npz */
MUST_USE int cifar_open(const struct data_place *at, struct records **ret, struct err *e);
MUST_USE int images_open(const struct data_place *at, struct records **ret, struct err *e);
MUST_USE int csv_open(const struct data_place *at, struct records **ret, struct err *e); /* csv, jsonl */
MUST_USE int tfrecord_open(const struct data_place *at, struct records **ret, struct err *e);
bool tfrecord_is(const void *data, size_t n); /* begins with the length of a record and its CRC */

#endif
