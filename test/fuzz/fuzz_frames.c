/* fuzz_frames - what a client sends, cut into two pieces as the first byte says. Checks that a meter comes to the same
 * verdict about the pieces, about single bytes and about the whole. */
#include <stdlib.h>

#include "base/mem.h"
#include "rpc/frame_meter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *verdict(const uint8_t *p, size_t n, size_t first, size_t step)
{
    struct frame_meter m;
    frame_meter_init(&m);
    const char *excess = frame_meter_add(&m, p, first, 5);
    for (size_t at = first; at < n && excess == NULL; at += step)
        excess = frame_meter_add(&m, p + at, MIN(step, n - at), 5);
    return excess;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const uint8_t *p = data + 1;
    size_t n = size - 1;
    const char *whole = verdict(p, n, n, 1);
    if (verdict(p, n, MIN(data[0], n), n) != whole || verdict(p, n, 0, 1) != whole)
        abort();
    return 0;
}
