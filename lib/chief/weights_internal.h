/* weights_internal - the two halves of weights: reading files (weights_file.c), matching (weights.c). */
#ifndef TRAINYARD_CHIEF_WEIGHTS_INTERNAL_H
#define TRAINYARD_CHIEF_WEIGHTS_INTERNAL_H

#include "base/file.h"
#include "data/named_array.h"
#include "data/zip.h"
#include "tfio/bundle.h"

struct weights_file {
    char *path;
    struct file_map *map;
    struct zip_archive zip;     /* npz, .keras */
    void *unpacked;             /* model.weights.h5 of a .keras */
    struct bundle *bundle;      /* a checkpoint */
    struct named_arrays arrays; /* all of the file; those of npz and of a checkpoint have no bytes yet */
    size_t *source;             /* npz, checkpoint: which member or entry each one is */
};

MUST_USE int weights_open(const char *path, struct weights_file *ret, struct err *e);
void weights_file_fini(struct weights_file *f);
DEFINE_AUTO_FINI(weights_file, weights_file_fini);
/* Array i with its bytes; *ret_owned: free() it. */
MUST_USE int weights_array(const struct weights_file *f, size_t i, struct array *ret, void **ret_owned, struct err *e);

#endif
