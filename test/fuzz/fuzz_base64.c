/* Any text as base64; encoding the bytes of an accepted text must give the same text, apart from line ends. */
#include <stdlib.h>
#include <string.h>

#include "codec/base64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FINI(buf) bytes = BUF_INIT;
    AUTO_FINI(buf) again = BUF_INIT;
    AUTO_FINI(buf) plain = BUF_INIT;
    struct err e = { .code = ERR_NONE };

    if (base64_decode((const char *)data, size, &bytes, &e) < 0) {
        if (e.msg[0] == '\0' || bytes.len != 0)
            abort();
        return 0;
    }
    for (size_t i = 0; i < size; i++)
        if (data[i] != '\n' && data[i] != '\r')
            buf_char(&plain, (char)data[i]);
    base64_encode(bytes.data, bytes.len, &again);
    if (again.len != plain.len || memcmp(again.data, plain.data, plain.len) != 0)
        abort();
    return 0;
}
