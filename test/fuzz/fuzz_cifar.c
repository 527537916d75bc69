/* The bytes as a file of CIFAR-10 or CIFAR-100. */
#include "fuzz_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_file("{format: cifar, files: t}", data, size);
    fuzz_file("{format: cifar, files: t, label: coarse}", data, size);
    return 0;
}
