/* Any bytes as an npz file with two arrays. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file("{format: npz, files: t, features: x, labels: y, sampleWeight: y}", data, size);
    return 0;
}
