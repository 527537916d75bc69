/* Builds the merge patch (RFC 7386) that turns an existing object into the wanted one. Members that others added are
 * kept, except below paths that the operator owns completely. */
#include <string.h>

#include "build/json_fill.h"
#include "build/objects.h"

/* Does `is` have all members of `wanted`? Members that are not in `wanted` do not matter; lists must be equal. */
static bool contains(const json_t *is, const json_t *wanted)
{
    const char *key;
    const json_t *v;
    size_t i;

    if (json_is_array(wanted)) {
        if (json_array_size(is) != json_array_size(wanted))
            return false;
        json_array_foreach(wanted, i, v) if (!contains(json_array_get(is, i), v)) return false;
        return true;
    }
    if (!json_is_object(wanted))
        return json_is_null(wanted) ? is == NULL || json_is_null(is) : json_equal(is, wanted);
    json_object_foreach((json_t *)(uintptr_t)wanted, key, v) if (!contains(json_object_get(is, key), v)) return false;
    return true;
}

/* null for each member of `is` that `wanted` lacks. */
static void drop_rest(json_t *wanted, const json_t *is)
{
    const char *key;
    const json_t *v;
    json_object_foreach((json_t *)(uintptr_t)is, key, v)
    {
        json_t *w = json_object_get(wanted, key);
        if (w == NULL)
            json_object_set_new(wanted, key, json_null());
        else if (json_is_object(w) && json_is_object(v))
            drop_rest(w, v);
    }
}

static void drop_rest_at(json_t *wanted, const json_t *is, const char *path)
{
    const char *dot = strrchr(path, '.'), *last = dot != NULL ? dot + 1 : path;
    auto_free char *before = xstrndup(path, dot != NULL ? (size_t)(dot - path) : 0);
    json_t *in = json_at(wanted, before), *w = json_object_get(in, last);
    const json_t *v = json_at(is, path);

    if (v == NULL || in == NULL)
        return;
    if (w == NULL)
        json_object_set_new(in, last, json_null());
    else if (json_is_object(w) && json_is_object(v))
        drop_rest(w, v);
}

static void keep_at(json_t *wanted, const json_t *is, const char *path)
{
    const char *value = json_string_value(json_at(is, path)), *dot = strrchr(path, '.');
    auto_free char *before = xstrndup(path, (size_t)(dot - path));
    if (value != NULL && *value != '\0')
        json_object_del(json_at(wanted, before), dot + 1);
}

json_t *build_merge_patch(const json_t *object, const json_t *current, const struct merge_patch_rules *rules)
{
    const json_t *now = json_object_get(current, "metadata"), *meta = json_object_get(object, "metadata");
    json_t *patch = json_deep_copy(object), *about = json_object();

    json_object_del(patch, "apiVersion");
    json_object_del(patch, "kind");
    json_object_set_new(patch, "metadata", about);
    json_object_set_new(about, "labels", json_deep_copy(json_object_get(meta, "labels")));
    if (json_has(meta, "annotations"))
        json_object_set_new(about, "annotations", json_deep_copy(json_object_get(meta, "annotations")));
    for (size_t i = 0; i < COUNT_OF(rules->whole) && rules->whole[i] != NULL; i++)
        drop_rest_at(patch, current, rules->whole[i]);
    if (rules->keep != NULL)
        keep_at(patch, current, rules->keep);
    if (contains(current, patch)) {
        json_decref(patch);
        return NULL;
    }
    json_object_set(about, "uid", json_object_get(now, "uid"));
    json_object_set(about, "resourceVersion", json_object_get(now, "resourceVersion"));
    return patch;
}

/* A Service's ports are the only list of these kinds that a strategic patch would merge. */
void build_strategic_patch(json_t *change)
{
    json_t *ports = json_at(change, "spec.ports");
    if (json_is_array(ports))
        json_array_append_new(ports, json_pack("{s:s}", "$patch", "replace"));
}
