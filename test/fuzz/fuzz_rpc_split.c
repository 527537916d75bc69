/* fuzz_rpc_split - head and payload of a received message, cut into runs as the first bytes define. Checks what the
 * splitter promises: the places are in order, and head and payload make up the message. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rpc/split.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t cuts = size > 0 ? data[0] % 5U : 0;
    if (size < 1 + cuts)
        return 0;
    const uint8_t *p = data + 1 + cuts;
    size_t n = size - 1 - cuts, used = 0;
    struct rpc_span spans[6];
    for (size_t i = 0; i < cuts; i++) {
        size_t step = MIN(data[1 + i], n - used);
        spans[i] = (struct rpc_span){ p + used, step };
        used += step;
    }
    spans[cuts] = (struct rpc_span){ p + used, n - used };

    struct rpc_split at, whole;
    struct err e;
    struct rpc_span one = { p, n };
    int rc = rpc_split(spans, cuts + 1, &at, &e);
    if (rc != rpc_split(&one, 1, &whole, &e))
        abort();
    if (rc == 0 && (memcmp(&at, &whole, sizeof(at)) != 0 || at.field > at.payload || at.payload > at.end ||
                    at.end > at.total || at.total != n))
        abort();
    return 0;
}
