/* dataset - examples on disk: opened once, immutable, read by any number of threads.
 *
 * Files are mapped, never read completely into memory; arrays are never held twice. Formats without random access
 * (gzip, zlib, compressed npz) are inflated once into the cache folder and mapped from there. Formats with records of
 * unknown length (CSV, TFRecord) get an index pass, which is also cached, with progress in the log.
 *
 * Order (design invariant 2): which examples a batch holds is a pure function of (fingerprint, seed, epoch, position).
 * A keyed Feistel permutation over all examples where access is random (idx, npy, npz, cifar); over blocks of records,
 * then within a window of blocks, where it is not.
 */
#ifndef TRAINYARD_DATA_DATASET_H
#define TRAINYARD_DATA_DATASET_H

#include "data/column_names.h"
#include "data/label_span.h"
#include "data/ordinal_space.h"
#include "job/job.h"
#include "nn/model.h"
#include "tensor/batch.h"

struct dataset;

/* base_dir: spec paths are relative to it. cache_dir: for indexes and inflated files, made when needed; may be
 * shared by processes. like: the names of another data set, whose columns a csv with a header must have: they are read
 * in that order wherever they stand; NULL or without names: the order of the file counts. Checks everything it can
 * without reading all data; errors name file and offset or line. */
MUST_USE int dataset_open(const struct data_spec *spec, const char *base_dir, const char *cache_dir,
                          const struct column_names *like, struct dataset **ret, struct err *e);
void dataset_free(struct dataset *d);
DEFINE_AUTO(dataset, dataset_free);

/* Splits off its last examples, like Keras's validation_split: d keeps the first int(n * (1 - fraction)), *ret has
 * the others. Both read the same files, which are closed with the second of them. d keeps the identity of the whole.
 * One thread. ERR_INPUT, without a place in the manifest, when one of the two would be empty. */
MUST_USE int dataset_split(struct dataset *d, double fraction, struct dataset **ret, struct err *e);

/* The loaders made from now on keep what they parsed from text in a file of the cache folder, and need not parse it
 * again. For data that are read several times. Without a place for it everything works as before. One thread. */
struct row_space {
    const char *dir; /* the cache folder; NULL: there is none */
    uint64_t bytes;  /* that it may have, if there are as many; a part of them is used */
};
void dataset_keep_rows(struct dataset *d, const struct row_space *space);

int64_t dataset_size(const struct dataset *d);                /* examples */
const struct shape *dataset_example(const struct dataset *d); /* the features of one */
const struct column_names *dataset_columns(const struct dataset *d);
/* Identity of the content: names, sizes, headers and sampled bytes of the files, format and column options.
 * Cheap (no full read), stable across machines, independent of folder and modification time. */
uint64_t dataset_fingerprint(const struct dataset *d);
/* Adds what the user should know, each a sentence with its place: values that are rounded, labels that are all equal.
 * Cost: a pass over the integer features of arrays of at most 64 MiB; of a part, values_warn_part(). */
void dataset_warnings(const struct dataset *d, struct strlist *ret);
/* Adds a sentence if the labels of data that do not train are all equal. */
void dataset_one_label(const struct dataset *d, struct strlist *ret);
/* csv: adds the texts of a column in the examples first .. first + n, without quotes and the spaces around them; also
 * of a column that is not a feature. ERR_INPUT for another format, and for a column that is not there, also with n = 0.
 */
MUST_USE int dataset_texts(const struct dataset *d, const char *column, int64_t first, size_t n, struct strlist *ret,
                           struct err *e);
/* Adds a sentence when examples of the files are not among its own, because they lack a value. */
void dataset_left_out(const struct dataset *d, struct strlist *ret);
/* Binds the data to the inputs and outputs of the model, which must outlive d, by the names in `spec`. ERR_INPUT, with
 * the place in the file where there is one, when the model cannot be trained on them or tested with them. Before
 * dataset_split(); a data set of a model with several inputs or outputs cannot be read without it. */
MUST_USE int dataset_bind(struct dataset *d, const struct data_spec *spec, const struct model *m, struct err *e);

/* loader - returns batches of one dataset by ordinal. One per thread; its buffers are made once. labels_of: the model
 * whose losses say which labels may occur; NULL: all finite numbers. A batch has the tensors of the model to which the
 * data set is bound, in its order. */
struct loader;
MUST_USE int loader_new(const struct dataset *d, const struct ordinal_space *space, const struct model *labels_of,
                        struct loader **ret, struct err *e);
void loader_free(struct loader *l);
DEFINE_AUTO(loader, loader_free);
/* ordinal = epoch * batches_per_epoch + index. The batch's memory is valid until the next-but-one call.
 * Features of a uint8 file stay uint8, all others are float. A damaged record, or a number
 * that is not finite or not among the labels, is ERR_INPUT naming file and place. */
MUST_USE int loader_get(struct loader *l, int64_t ordinal, struct batch *ret, struct err *e);
/* Records must be parsed, so hints are useful. */
bool loader_prefetches(const struct loader *l);
/* Sets the ordinal that will be requested next (negative: unknown), so that a background thread prepares it. Does
 * nothing where hints are not useful. Never changes results: an error is returned with the batch to which it
 * belongs. */
void loader_hint(struct loader *l, int64_t next_ordinal);

#endif
