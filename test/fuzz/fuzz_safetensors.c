#include "data/safetensors.h"
/* Any bytes as a file of weights: safetensors. */
#include "fuzz_arrays.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_arrays(safetensors_read, data, size);
}
