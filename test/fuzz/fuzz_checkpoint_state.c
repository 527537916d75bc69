/* Any bytes as a `checkpoint` file. */
#include <stdlib.h>

#include "tfio/checkpoint_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;

    if (checkpoint_state_parse((const char *)data, size, &all, &latest, NULL) == 0 && !strlist_has(&all, latest))
        abort();
    return 0;
}
