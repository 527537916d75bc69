/* Reads, checks and writes numbers that a layer keeps. */
#include "nn/layers/layer_values.h"

#include <float.h>
#include <math.h>

#include "base/str.h"

/* {"class_name": "__numpy__", "config": {"value": [...], "dtype": ...}}; "__tensor__" likewise. */
static struct node array_of(const struct node *n)
{
    struct node class_name = node_get(n, "class_name"), config = node_get(n, "config"),
                value = node_get(&config, "value");
    const char *name = json_string_value(class_name.v);
    return str_eq(name, "__numpy__") || str_eq(name, "__tensor__") ? value : *n;
}

static int read_value(const struct node *n, int range, double *ret, struct err *e)
{
    double v = 0;
    if (node_f64(n, &v, e) < 0)
        return -1;
    if (range == VALUES_NOT_NEGATIVE && v < 0)
        return node_error(n, e, "a variance cannot be negative");
    if (fabs(v) > (double)FLT_MAX)
        return node_error(n, e, "%.9g is more than a 32-bit float holds", v);
    *ret = v;
    return 0;
}

int values_read(const struct node *n, int range, struct values *ret, struct err *e)
{
    struct node list = array_of(n);
    *ret = (struct values){ .n = 0 };
    if (!node_present(&list))
        return 0;
    while (json_is_array(list.v) && node_size(&list) == 1 && json_is_array(json_array_get(list.v, 0)))
        list = node_item(&list, 0);
    size_t count = json_is_array(list.v) ? node_size(&list) : 1;
    if (count == 0)
        return node_error(n, e, "is empty");
    auto_free double *values = xcalloc(count, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        struct node item = json_is_array(list.v) ? node_item(&list, i) : list;
        if (read_value(&item, range, &values[i], e) < 0)
            return -1;
    }
    *ret = (struct values){ .v = TAKE(values), .n = count };
    return 0;
}

int values_fit(const struct values *v, const char *name, size_t channels, const struct node *at, struct err *e)
{
    if (v->n <= 1 || v->n == channels)
        return 0;
    if (channels == 1)
        return node_error(at, e, "%s has %zu values, where only one fits", name, v->n);
    return node_error(at, e, "%s has %zu values, the last axis of the input %zu", name, v->n, channels);
}

/* As it was given. What another program wrote as the double of a float32 is written as short as the float. */
static json_t *value_json(double v)
{
    return json_real((double)(float)v == v ? str_float_decimal((float)v) : v);
}

json_t *values_json(const struct values *given, bool single)
{
    if (given->n == 0)
        return json_null();
    if (single && given->n == 1)
        return value_json(given->v[0]);
    json_t *list = json_array();
    for (size_t i = 0; i < given->n; i++)
        json_array_append_new(list, value_json(given->v[i]));
    return list;
}
