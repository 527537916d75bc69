/* h5_write - an HDF5 file in memory, written by libhdf5 (its header is included by h5_write.c alone): groups, datasets,
 * text attributes, in the oldest version of the format, as h5py writes it.
 */
#ifndef TRAINYARD_CLI_H5_WRITE_H
#define TRAINYARD_CLI_H5_WRITE_H

#include "base/buf.h"
#include "tensor/tensor.h"

struct h5_writer;
MUST_USE int h5_writer_new(struct h5_writer **ret, struct err *e);
void h5_writer_free(struct h5_writer *w);
DEFINE_AUTO(h5_writer, h5_writer_free);

/* Paths are like "layers/dense/vars"; missing intermediate groups are created. */
MUST_USE int h5_writer_group(struct h5_writer *w, const char *path, struct err *e);
MUST_USE int h5_writer_attribute(struct h5_writer *w, const char *group, const char *name, const char *text,
                                 struct err *e);
MUST_USE int h5_writer_floats(struct h5_writer *w, const char *path, const struct shape *shape, const float *data,
                              struct err *e);
MUST_USE int h5_writer_integer(struct h5_writer *w, const char *path, int64_t value,
                               struct err *e); /* a scalar int64 */
/* The bytes of the file; nothing can be added afterwards. free() them. */
MUST_USE int h5_writer_finish(struct h5_writer *w, void **ret, size_t *ret_n, struct err *e);

#endif
