/* What a spec means, without what is only a way to write it: nulls, defaults that are spelled out, 1.0 for 1. */
#include <math.h>
#include <string.h>

#include "job/fields.h"

static bool is_whole(double v)
{
    return fabs(v) < 9e15 && !(fabs(v - trunc(v)) > 0);
}

/* 1.0 is 1, and a null is nothing. A list keeps its length. New reference; NULL: nothing. */
static json_t *plain(const json_t *v)
{
    json_t *copy, *one;
    const char *key;
    size_t i;

    if (v == NULL || json_is_null(v))
        return NULL;
    if (json_is_real(v) && is_whole(json_real_value(v)))
        return json_integer((json_int_t)json_real_value(v));
    if (json_is_object(v)) {
        copy = json_object();
        json_object_foreach((json_t *)(uintptr_t)v, key, one)
        {
            json_t *inner = plain(one);
            if (inner != NULL)
                json_object_set_new(copy, key, inner);
        }
        return copy;
    }
    if (!json_is_array(v))
        return json_incref((json_t *)(uintptr_t)v);
    copy = json_array();
    json_array_foreach(v, i, one)
    {
        json_t *inner = plain(one);
        json_array_append_new(copy, inner != NULL ? inner : json_null());
    }
    return copy;
}

static bool is_fallback(const struct field *f, const json_t *v)
{
    bool text = f->kind == FIELD_STRING || f->kind == FIELD_CHOICE;
    json_t *parsed = NULL;

    if (f->fallback == NULL)
        return false;
    if (text)
        return str_eq(json_string_value(v), f->fallback);
    if (json_parse(f->fallback, strlen(f->fallback), f->key, &parsed, NULL) < 0)
        return false;
    json_auto_t *fallback = plain(parsed);
    json_decref(parsed);
    return json_equal(fallback, v) != 0;
}

static json_t *table_meaning(const struct field_table *t, const json_t *given)
{
    json_t *ret = json_object();

    for (size_t i = 0; i < t->nrows; i++) {
        const struct field *f = &t->rows[i];
        const json_t *v = json_object_get(given, f->key);
        json_t *means = f->kind == FIELD_TABLE ? table_meaning(f->table, v) : plain(v);
        bool nothing =
            means == NULL || is_fallback(f, means) || (f->kind == FIELD_TABLE && json_object_size(means) == 0);
        if (nothing)
            json_decref(means);
        else
            json_object_set_new(ret, f->key, means);
    }
    return ret;
}

json_t *job_canonical(const json_t *spec)
{
    static const char *const PARTS[] = { "model", "compile", "data", "fit", "strategy", "checkpoint", "summaries" };
    const struct field_table *t = NULL;
    json_t *ret = json_object();

    for (size_t i = 0; i < JOB_FIELDS.nrows; i++)
        if (str_eq(JOB_FIELDS.rows[i].key, "spec"))
            t = JOB_FIELDS.rows[i].table;
    json_auto_t *all = t != NULL ? table_meaning(t, spec) : json_object();
    for (size_t i = 0; i < COUNT_OF(PARTS); i++)
        if (json_object_get(all, PARTS[i]) != NULL)
            json_object_set(ret, PARTS[i], json_object_get(all, PARTS[i]));
    return ret;
}
