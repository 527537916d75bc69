/* bundle - TensorFlow's V2 checkpoint ("tensor bundle"), what tf.train.load_checkpoint reads and
 * tf.compat.v1.train.Saver and tf.train.Checkpoint write.
 *
 *     <prefix>.data-00000-of-00001    bytes of the tensors, little endian, row-major, packed
 *     <prefix>.index                  a LevelDB table: tensor name -> type, shape, place, CRC32C of the bytes
 *     <dir>/checkpoint                names the newest prefix and those kept (text)
 *
 * Format: tensorflow core/protobuf/tensor_bundle.proto, core/util/tensor_bundle/tensor_bundle.cc,
 * core/lib/io/format.cc.
 *
 * Errors name the file and the tensor. Nothing here is thread-safe; all calls block on storage. Names are C strings.
 */
#ifndef TRAINYARD_TFIO_BUNDLE_H
#define TRAINYARD_TFIO_BUNDLE_H

#include "base/str.h"
#include "tensor/tensor.h"

/* ---- writing ----
 *
 * The files appear complete or not at all. They are written as temporaries, and bundle_writer_finish fsyncs and
 * renames them (data first: a bundle without an index does not count). Files that exist are never replaced, also
 * when another process makes them at the same moment: ERR_REFUSED. */
struct bundle_writer;
MUST_USE int bundle_writer_open(const char *prefix, struct bundle_writer **ret, struct err *e);
/* Without finish: removes what was written. */
void bundle_writer_free(struct bundle_writer *w);
DEFINE_AUTO(bundle_writer, bundle_writer_free);

/* Reserves the place of a tensor of fixed-size elements; its bytes come by bundle_writer_put. A name given twice is
 * ERR_INPUT. */
MUST_USE int bundle_writer_add(struct bundle_writer *w, const char *name, enum dtype dtype, const struct shape *shape,
                               size_t *ret_id, struct err *e);
/* n bytes at `offset` (bytes from the tensor's begin). The ranges of one tensor come in ascending order without gaps
 * (its CRC is computed on the way); those of different tensors may alternate. */
MUST_USE int bundle_writer_put(struct bundle_writer *w, size_t id, size_t offset, const void *data, size_t n,
                               struct err *e);
/* Both at once. */
MUST_USE int bundle_writer_add_all(struct bundle_writer *w, const char *name, enum dtype dtype,
                                   const struct shape *shape, const void *data, struct err *e);
/* n strings, as many as the shape has elements. */
MUST_USE int bundle_writer_add_strings(struct bundle_writer *w, const char *name, const struct shape *shape,
                                       const char *const strings[], const size_t lengths[], size_t n, struct err *e);
/* finish will use this prefix instead, of the same folder. */
void bundle_writer_name(struct bundle_writer *w, const char *prefix);
/* Every tensor must be complete, else ERR_INTERNAL. */
MUST_USE int bundle_writer_finish(struct bundle_writer *w, struct err *e);

/* ---- reading ----
 *
 * Bundles of any number of data shards; partitioned variables appear as one tensor. The whole index is checked at
 * open (every CRC, size, order and range); data bytes are checked when read, as described below. */
struct bundle;
struct bundle_entry {
    const char *name;
    enum dtype dtype; /* may be a TensorFlow number that has no name here: then only listed, not read */
    struct shape shape;
    uint64_t size; /* bytes: of the elements, or of the stored strings */
};

/* Without an index: ERR_NOT_FOUND. Damaged or unsupported (compressed, big-endian, ...): ERR_INPUT. */
MUST_USE int bundle_open(const char *prefix, struct bundle **ret, struct err *e);
void bundle_free(struct bundle *b);
DEFINE_AUTO(bundle, bundle_free);

size_t bundle_count(const struct bundle *b);
const struct bundle_entry *bundle_entry(const struct bundle *b, size_t i);        /* ascending by name */
const struct bundle_entry *bundle_find(const struct bundle *b, const char *name); /* NULL when absent */

/* Not a variable: a counter, or a slot of an optimizer, which is named after its variable ("dense/kernel/Adam_1"). */
bool bundle_is_bookkeeping(const struct bundle *b, const char *name);

/* Verifies the CRC of all bytes of the tensor. */
MUST_USE int bundle_check(struct bundle *b, const struct bundle_entry *entry, struct err *e);
/* n bytes from `offset` of the tensor in row-major order. A read of the whole tensor verifies its CRC; one of a part
 * does not: call bundle_check before the first. ERR_INPUT for strings. */
MUST_USE int bundle_read(struct bundle *b, const struct bundle_entry *entry, size_t offset, size_t n, void *ret,
                         struct err *e);
/* String i, row-major (CRC verified once a tensor). Appends to *ret. Cost O(i). */
MUST_USE int bundle_read_string(struct bundle *b, const struct bundle_entry *entry, size_t i, struct buf *ret,
                                struct err *e);

#endif
