/* Operations on the lists of history.json that keep them at one length. */
#include "chief/history.h"

#include <math.h>

#include "base/str.h"

enum { NAME_LEN = 80 };

static json_t *list_of(json_t *h, const char *name)
{
    json_t *list = json_object_get(h, name);
    if (list != NULL)
        return list;
    list = json_array();
    json_object_set_new(h, name, list);
    return list;
}

json_t *history_new(const struct model *m, bool validation)
{
    json_t *h = json_object();
    list_of(h, "epoch");
    for (size_t i = 0; i < model_metrics(m); i++)
        list_of(h, model_metric_name(m, i));
    for (size_t i = 0; validation && i < model_metrics(m); i++) {
        char val[NAME_LEN];
        str_fmt(val, sizeof(val), "val_%s", model_metric_name(m, i));
        list_of(h, val);
    }
    return h;
}

int64_t history_entries(const json_t *h)
{
    return (int64_t)json_array_size(json_object_get(h, "epoch"));
}

void history_level(json_t *h, int64_t n)
{
    const char *key;
    json_t *list;
    json_object_foreach(h, key, list)
    {
        while ((int64_t)json_array_size(list) > n)
            json_array_remove(list, json_array_size(list) - 1);
        for (int64_t i = (int64_t)json_array_size(list); i < n; i++)
            json_array_append_new(list, str_eq(key, "epoch") ? json_integer(i) : json_null());
    }
}

void history_add(json_t *h, int64_t epoch)
{
    int64_t n = history_entries(h);
    history_level(h, n + 1);
    json_array_set_new(json_object_get(h, "epoch"), (size_t)n, json_integer(epoch));
}

/* The index of the epoch, or -1. */
static int64_t place_of(const json_t *h, int64_t epoch)
{
    const json_t *epochs = json_object_get(h, "epoch");
    int64_t i = history_entries(h) - 1;
    while (i >= 0 && json_integer_value(json_array_get(epochs, (size_t)i)) != epoch)
        i--;
    return i;
}

void history_set(json_t *h, int64_t epoch, const char *name, double value)
{
    int64_t at = place_of(h, epoch);
    if (at < 0)
        return;
    (void)list_of(h, name);
    history_level(h, history_entries(h));
    json_array_set_new(json_object_get(h, name), (size_t)at, json_number(value));
}

bool history_find(const json_t *h, int64_t epoch, const char *name, double *ret)
{
    int64_t at = place_of(h, epoch);
    const json_t *v = at < 0 ? NULL : json_array_get(json_object_get(h, name), (size_t)at);
    if (!json_is_number(v) && !json_is_string(v))
        return false;
    *ret = json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);
    return true;
}

double history_last(const json_t *h, const char *name)
{
    const json_t *list = json_object_get(h, name);
    size_t i = json_array_size(list);
    while (i > 0 && json_is_null(json_array_get(list, i - 1)))
        i--;
    const json_t *v = i > 0 ? json_array_get(list, i - 1) : NULL;
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

int history_take(json_t *h, const struct node *from, int64_t n, struct err *e)
{
    const char *key;
    json_t *list;
    if (from->v != NULL && node_object(from, e) < 0)
        return -1;
    json_auto_t *copy = from->v != NULL ? json_deep_copy(from->v) : json_object();
    json_object_foreach(copy, key, list) if (!json_is_array(list)) return node_key_error(from, key, e,
                                                                                         "must be a list");
    json_object_update(h, copy);
    history_level(h, n);
    return 0;
}

bool history_continues(const json_t *longer, const json_t *h)
{
    const char *key;
    json_t *list;
    json_object_foreach((json_t *)(uintptr_t)h, key, list)
    {
        const json_t *other = json_object_get(longer, key);
        if (!json_is_array(other) || json_array_size(other) < json_array_size(list))
            return false;
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *v = json_array_get(list, i);
            if (!json_is_null(v) && !json_equal(v, json_array_get(other, i)))
                return false;
        }
    }
    return true;
}
