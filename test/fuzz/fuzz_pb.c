/* Any bytes as a protobuf message, and as messages inside it: every field must be within the input. */
#include <stdlib.h>

#include "codec/pb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const void *data, size_t size, int depth)
{
    struct reader r = reader_of(data, size);
    const unsigned char *begin = data;
    struct pb_field f;

    while (pb_next(&r, &f) == 1) {
        if (f.type != PB_BYTES)
            continue;
        const unsigned char *p = f.data;
        if (p < begin || f.size > size || p + f.size > begin + size)
            abort();
        if (depth < 8)
            walk(f.data, f.size, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk(data, size, 0);
    return 0;
}
