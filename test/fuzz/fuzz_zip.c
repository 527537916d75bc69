/* Any bytes as a zip archive; what its members hold as NPY files. */
#include <stdlib.h>

#include "data/arrays.h"
#include "data/zip.h"

enum { SMALL = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(zip_archive) z = { 0 };

    if (zip_open(data, size, "fuzz", &z, &e) < 0) {
        if (e.msg[0] == '\0')
            abort();
        return 0;
    }
    for (size_t i = 0; i < z.count && i < 100; i++) {
        auto_free void *owned = NULL;
        const void *bytes;
        struct array a;
        if (z.members[i].size > SMALL || zip_read(&z, i, &bytes, &owned, &e) < 0)
            continue;
        if (npy_parse(bytes, (size_t)z.members[i].size, "fuzz", &a, &e) < 0 && e.msg[0] == '\0')
            abort();
    }
    return 0;
}
