/* bundle_index - inside of tfio/bundle.h: the content of an index file, checked without reading data files.
 *
 * Messages: BundleHeaderProto and BundleEntryProto of core/protobuf/tensor_bundle.proto, TensorShapeProto,
 * TensorSliceProto.
 */
#ifndef TRAINYARD_TFIO_BUNDLE_INDEX_H
#define TRAINYARD_TFIO_BUNDLE_INDEX_H

#include "tfio/bundle.h"

enum { BUNDLE_SHARDS_MAX = 100000 };

/* A part of a partitioned variable. */
struct bundle_slice {
    int64_t start[SHAPE_MAX_RANK], length[SHAPE_MAX_RANK];
    size_t part; /* its entry in bundle_index.items */
};

struct bundle_item {
    struct bundle_entry entry; /* name is owned; "" for the parts of a partitioned variable */
    char *key;                 /* as in the table, owned; key_size bytes */
    size_t key_size;
    uint32_t shard;
    uint64_t offset;
    uint32_t crc; /* unmasked */
    struct bundle_slice *slices;
    size_t nslices;
    bool checked; /* the CRC of its bytes was verified */
};

struct bundle_index {
    uint32_t nshards;
    struct bundle_item *items; /* ascending by key; parts come first */
    size_t n, cap, first;      /* first: the first that is a tensor with a name */
};
MUST_USE int bundle_index_read(const void *data, size_t n, bool check_crc, struct bundle_index *ret, struct err *e);
void bundle_index_fini(struct bundle_index *x);
DEFINE_AUTO_FINI(bundle_index, bundle_index_fini);

/* Key of a part: OrderedCode of 0, the name, and start and length of every axis, a whole axis as (0, -1)
 * (core/util/saved_tensor_slice_util.cc EncodeTensorNameSlice). */
void bundle_slice_key(const char *name, const struct shape *shape, const struct bundle_slice *s, struct buf *ret);
/* OrderedCode::WriteSignedNumIncreasing (core/lib/strings/ordered_code.cc). */
void bundle_put_signed(struct buf *b, int64_t v);

/* The encoding of a header and an entry in the table. */
void bundle_put_header(struct buf *b, uint32_t nshards);
void bundle_put_entry(struct buf *b, const struct bundle_item *item);

#endif
