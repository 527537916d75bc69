#include "data/h5.h"
/* Any bytes as a file of weights: h5. */
#include "fuzz_arrays.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_arrays(h5_read, data, size);
}
