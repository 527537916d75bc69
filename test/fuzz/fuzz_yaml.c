/* Any bytes as YAML; what is read must read back the same after it was written. */
#include <stdlib.h>

#include "codec/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int write_and_read(void *user, json_t *v, const struct source *s, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *again = NULL;
    AUTO(source) *src = NULL;
    int line, column;

    (void)user;
    source_find(s, "a.b[2].c", &line, &column);
    if (!json_is_object(v))
        return 0;
    yaml_emit(v, &text);
    if (yaml_parse(text.data, text.len, "again", &again, &src, e) < 0 || !json_equal(v, again))
        abort();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { .code = ERR_NONE };
    if (yaml_parse_all((const char *)data, size, "fuzz", write_and_read, NULL, &e) < 0 && e.msg[0] == '\0')
        abort();
    return 0;
}
