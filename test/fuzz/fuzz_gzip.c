/* Any bytes as gzip, as zlib and as bare deflate data. */
#include <stdlib.h>

#include "data/gzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 4 << 20 };

static int count(void *user, const void *data, size_t n, struct err *e)
{
    size_t *total = user;
    const unsigned char *p = data;
    *total += n;
    if (n == 0 || p[0] + p[n - 1] < 0) /* touches both ends */
        abort();
    return *total > OUT_MAX ? err_set(e, ERR_INPUT, "enough") : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int how = PACKED_GZIP; how <= PACKED_DEFLATE; how++) {
        struct err e = { .code = ERR_NONE };
        size_t total = 0;
        if (decompress_pieces((enum packing)how, data, size, "fuzz", count, &total, &e) < 0 &&
            (e.code != ERR_INPUT || e.msg[0] == '\0'))
            abort();
    }
    return 0;
}
