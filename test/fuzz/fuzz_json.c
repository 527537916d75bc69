/* Any bytes as JSON; what is read must read back the same after it was written. Cutting members from the text must give
 * the same as removing them from the value. */
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "codec/json_prune.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop(json_t *v, const char *path)
{
    size_t n = strcspn(path, "."), i;
    json_t *item;

    json_array_foreach(v, i, item) if (strncmp(path, "*", n) == 0 && path[n] == '.') drop(item, path + n + 1);
    auto_free char *name = xstrndup(path, n);
    if (path[n] == '\0')
        json_object_del(v, name);
    else
        drop(json_object_get(v, name), path + n + 1);
}

static void cut(const char *text, size_t n)
{
    AUTO_FINI(strlist) paths = { 0 };
    AUTO_FINI(buf) out = BUF_INIT;
    json_auto_t *v = NULL, *is = NULL;

    strlist_split(&paths, "a b.c b.a.c *.a items.*.metadata.managedFields items.*.spec", ' ');
    json_prune(text, n, &paths, &out);
    if (out.len > n)
        abort();
    if (json_parse(text, n, "fuzz", &v, NULL) < 0 || memchr(text, '\\', n) != NULL)
        return; /* escaped names are not found */
    for (size_t i = 0; i < paths.n; i++)
        drop(v, paths.items[i]);
    if (json_parse(out.data, out.len, "cut", &is, NULL) < 0 || !json_equal(v, is))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cut((const char *)data, size);
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
