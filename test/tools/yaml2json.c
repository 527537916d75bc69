/* Reads YAML documents from standard input and writes each as one line of JSON, so that jq can look at them. */
#include <stdio.h>

#include "base/file.h"
#include "codec/yaml.h"

enum { INPUT_MAX = 64 << 20 };

static int each(void *user UNUSED, json_t *v, const struct source *s UNUSED, struct err *e)
{
    AUTO_FINI(buf) line = BUF_INIT;

    json_emit(v, &line);
    return puts(line.data) < 0 ? err_errno(e, ERR_IO, "standard output") : 0;
}

int main(void)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { .code = ERR_NONE };

    if (file_read("-", INPUT_MAX, &text, &e) < 0 ||
        yaml_parse_all(text.data, text.len, "standard input", each, NULL, &e) < 0) {
        fprintf(stderr, "yaml2json: %s\n", e.msg);
        return err_exit_code(&e);
    }
    return 0;
}
