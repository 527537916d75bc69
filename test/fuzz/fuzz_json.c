/* Any bytes as JSON; what is read must read back the same after it was written. */
#include <stdlib.h>

#include "codec/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_auto_t *v = NULL, *again = NULL;
    AUTO_FINI(buf) text = BUF_INIT;

    if (json_parse((const char *)data, size, "fuzz", &v, NULL) < 0)
        return 0;
    json_emit(v, &text);
    if (json_parse(text.data, text.len, "again", &again, NULL) < 0 || !json_equal(v, again))
        abort();
    buf_clear(&text);
    json_emit_pretty(v, &text);
    return 0;
}
