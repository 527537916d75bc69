/* fuzz_watch - lines of a watch and pages of a list, as the API server sends them. Events are read as the reflector
 * reads them. */
#include <stdlib.h>
#include <string.h>

#include "codec/json_prune.h"
#include "kube/reflector_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void line(const char *line, size_t len)
{
    AUTO_FINI(watch_event) w = { 0 };
    AUTO_FINI(strlist) paths = { 0 };
    AUTO_FINI(buf) shorter = BUF_INIT;
    struct err e;

    strlist_split(&paths, "object.metadata.managedFields object.spec.volumes", ' ');
    json_prune(line, len, &paths, &shorter);
    const char *text = shorter.data;
    size_t n = shorter.len;
    must(n <= len);
    if (watch_parse(text, n, &w, &e) < 0) {
        must(e.code == ERR_INPUT && e.msg[0] != '\0' && w.root == NULL);
        return;
    }
    bool told = w.type == WATCH_ADDED || w.type == WATCH_MODIFIED || w.type == WATCH_DELETED;
    must(json_is_object(w.object));
    must(!told || w.name[0] != '\0');
    must((!told && w.type != WATCH_BOOKMARK) || w.version[0] != '\0');
    must(w.code >= 0 && w.code <= 999 && strlen(w.ns) + strlen(w.uid) + strlen(w.reason) + strlen(w.message) <= n);
}

static void page(const char *text, size_t n)
{
    json_auto_t *v = NULL;
    struct list_page page;
    struct err e;
    size_t i;
    const json_t *item;

    if (json_parse(text, n, "page", &v, &e) < 0 || list_page_read(v, &page, &e) < 0)
        return;
    must(page.version[0] != '\0' && page.next != NULL);
    json_array_foreach(page.items, i, item)
    {
        struct object_names o = object_names_of(item);
        must(o.ns != NULL && o.name != NULL && o.uid != NULL && o.version != NULL);
    }
}

/* Each line as the client splits them; the whole as a page. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;

    page(text, size);
    for (const char *end; size > 0 && (end = memchr(text, '\n', size)) != NULL;) {
        line(text, (size_t)(end - text));
        size -= (size_t)(end - text) + 1;
        text = end + 1;
    }
    line(text, size);
    return 0;
}
