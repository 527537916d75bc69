/* tensors - named tensors written as one file that other programs read: safetensors (huggingface/safetensors, README)
 * or npz (numpy: a zip of .npy members, stored). One tensor is in memory at a time.
 */
#ifndef TRAINYARD_CLI_TENSORS_H
#define TRAINYARD_CLI_TENSORS_H

#include "base/buf.h"

enum tensor_type {
    TENSOR_F32,
    TENSOR_F64,
    TENSOR_I8,
    TENSOR_I16,
    TENSOR_I32,
    TENSOR_I64,
    TENSOR_U8,
    TENSOR_U16,
    TENSOR_U32,
    TENSOR_U64,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_BOOL,
    TENSOR_TYPES
};
enum { TENSOR_RANK_MAX = 8 };

struct tensor_entry {
    const char *name;
    enum tensor_type type;
    int rank;
    int64_t dims[TENSOR_RANK_MAX];
    size_t bytes;
};
struct tensor_source {
    const struct tensor_entry *entries;
    size_t n;
    /* Fills entries[i].bytes bytes, little endian, C order. */
    int (*read)(void *user, size_t i, void *ret, struct err *e);
    void *user;
    const char *step; /* kept as metadata: the training step, or NULL */
};
struct tensor_sink {
    int (*write)(void *user, const void *data, size_t n, struct err *e);
    void *user;
};

MUST_USE int safetensors_write(const struct tensor_source *source, const struct tensor_sink *sink, struct err *e);
/* The header of a .npy file of this tensor. */
void npy_header(const struct tensor_entry *t, struct buf *out);
/* Each tensor and the file must be smaller than 4 GiB (no ZIP64), and numpy has no bfloat16: both are ERR_INPUT. */
MUST_USE int npz_write(const struct tensor_source *source, const struct tensor_sink *sink, struct err *e);

#endif
