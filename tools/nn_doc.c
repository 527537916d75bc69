/* Writes docs/layers.md to standard output; `make docs` runs it. */
#include <stdio.h>

#include "nn/layer_reference.h"

int main(void)
{
    AUTO_FINI(buf) page = BUF_INIT;
    layer_reference_write(&page);
    return fwrite(page.data, 1, page.len, stdout) == page.len ? 0 : 1;
}
