/* Adds members to JSON objects only where they are absent: values of the user always take precedence. */
#include "build/json_fill.h"

#include "base/str.h"

bool json_has(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return v != NULL && !json_is_null(v);
}

void json_fill(json_t *object, const char *key, json_t *value)
{
    if (json_has(object, key))
        json_decref(value);
    else
        json_object_set_new(object, key, value);
}

json_t *json_fill_object(json_t *parent, const char *key)
{
    json_fill(parent, key, json_object());
    json_t *v = json_object_get(parent, key);
    return json_is_object(v) ? v : NULL;
}

json_t *json_fill_array(json_t *parent, const char *key)
{
    json_fill(parent, key, json_array());
    json_t *v = json_object_get(parent, key);
    return json_is_array(v) ? v : NULL;
}

json_t *json_find_named(const json_t *array, const char *name)
{
    size_t i;
    json_t *v;

    json_array_foreach(array, i, v) if (str_eq(json_string_value(json_object_get(v, "name")), name)) return v;
    return NULL;
}
