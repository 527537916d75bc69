/* Any bytes as the index of a checkpoint, without its checksums, which the fuzzer could not pass. What is read must be
 * consistent in itself. */
#include <stdlib.h>

#include "tfio/bundle_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FINI(bundle_index) x = { .n = 0 };
    struct err e = { .code = ERR_NONE };

    if (bundle_index_read(data, size, false, &x, &e) < 0) {
        if (e.msg[0] == '\0')
            abort();
        return 0;
    }
    for (size_t i = 0; i < x.n; i++) {
        const struct bundle_item *item = &x.items[i];
        if (item->shard >= x.nshards)
            abort();
        for (size_t k = 0; k < item->nslices; k++)
            if (item->slices[k].part >= x.first)
                abort();
        size_t each = dtype_size(item->entry.dtype);
        if (each > 0 && shape_elements(&item->entry.shape) * each != item->entry.size)
            abort();
    }
    return 0;
}
