/* Writes docs/manifest.md to standard output; `make docs` runs it. */
#include <stdio.h>

#include "job/manual.h"

int main(void)
{
    AUTO_FINI(buf) page = BUF_INIT;
    job_manual(&page);
    return fwrite(page.data, 1, page.len, stdout) == page.len ? 0 : 1;
}
