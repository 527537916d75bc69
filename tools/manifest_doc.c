/* Writes docs/manifest.md to standard output; `make docs` runs it. */
#include <stdio.h>

#include "job/manifest_reference.h"

int main(void)
{
    AUTO_FINI(buf) page = BUF_INIT;
    job_manifest_reference(&page);
    return fwrite(page.data, 1, page.len, stdout) == page.len ? 0 : 1;
}
