/* Paths and queries of the API, with every variable part percent-encoded, and the body of deletes. */
#include "kube/client_internal.h"

#include <string.h>

#include "base/str.h"

static void append_escaped(struct buf *out, const char *s)
{
    static const char KEPT[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (; *s != '\0'; s++)
        if (strchr(KEPT, *s) != NULL)
            buf_char(out, *s);
        else
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)*s);
}

static void append_segment(struct buf *out, const char *s)
{
    buf_char(out, '/');
    append_escaped(out, s);
}

void kube_path(struct buf *out, const struct kube_resource *r, const char *ns, const char *name, const char *sub)
{
    buf_str(out, r->group[0] == '\0' ? "/api" : "/apis");
    if (r->group[0] != '\0')
        append_segment(out, r->group);
    append_segment(out, r->version);
    if (ns != NULL) {
        buf_str(out, "/namespaces");
        append_segment(out, ns);
    }
    append_segment(out, r->plural);
    if (name != NULL)
        append_segment(out, name);
    if (sub != NULL)
        append_segment(out, sub);
}

void kube_query(struct buf *path, const char *key, const char *value)
{
    buf_char(path, strchr(path->data, '?') == NULL ? '?' : '&');
    append_escaped(path, key);
    buf_char(path, '=');
    append_escaped(path, value);
}

json_t *kube_delete_options(const char *uid, int64_t version, int grace_s)
{
    json_t *o =
        json_pack("{s:s, s:s, s:s}", "apiVersion", "v1", "kind", "DeleteOptions", "propagationPolicy", "Background");

    if (uid != NULL)
        json_object_set_new(o, "preconditions", json_pack("{s:s}", "uid", uid));
    if (uid != NULL && version > 0)
        json_object_set_new(json_object_get(o, "preconditions"), "resourceVersion",
                            json_sprintf("%lld", (long long)version));
    if (grace_s >= 0)
        json_object_set_new(o, "gracePeriodSeconds", json_integer(grace_s));
    return o;
}

bool kube_path_is_list(const char *path)
{
    size_t n = strcspn(path, "?"), parts = 0;

    for (size_t i = 0; i < n; i++)
        parts += path[i] == '/';
    return (parts - (str_starts(path, "/apis/") ? 3 : 2)) % 2 == 1; /* [namespaces NS] plural [NAME] */
}
