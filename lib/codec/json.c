/* Parsing by jansson with a limit on nesting, and a printer of its own, because jansson's takes a microsecond to
 * start. That is long for the many small values of the operator. */
#include "codec/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

int json_depth(const json_t *v)
{
    int deepest = 0, depth;
    size_t i;
    const char *key;
    json_t *item;

    json_array_foreach(v, i, item)
    {
        depth = json_depth(item);
        deepest = MAX(deepest, depth);
    }
    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        depth = json_depth(item);
        deepest = MAX(deepest, depth);
    }
    return json_is_array(v) || json_is_object(v) ? deepest + 1 : 0;
}

static int load_text(const char *text, size_t n, const char *name, size_t flags, json_t **ret, struct err *e)
{
    json_error_t error;
    json_t *v = json_loadb(text, n, flags | JSON_DECODE_ANY, &error);

    if (v == NULL && json_error_code(&error) == json_error_out_of_memory)
        return err_set(e, ERR_NOMEM, "%s: no memory for %zu bytes of JSON", name, n);
    if (v == NULL)
        return err_set(e, ERR_INPUT, "%s:%d:%d: %s", name, error.line, error.column, error.text);
    *ret = v;
    return 0;
}

int json_parse(const char *text, size_t n, const char *name, json_t **ret, struct err *e)
{
    json_auto_t *v = NULL;
    if (load_text(text, n, name, JSON_REJECT_DUPLICATES, &v, e) < 0)
        return -1;
    if (json_depth(v) > JSON_DEPTH_MAX)
        return err_set(e, ERR_INPUT, "%s: nested deeper than %d", name, JSON_DEPTH_MAX);
    *ret = TAKE(v);
    return 0;
}

int json_parse_any(const char *text, size_t n, const char *name, json_t **ret, struct err *e)
{
    return load_text(text, n, name, JSON_ALLOW_NUL, ret, e);
}

static int emit_chunk(const char *data, size_t n, void *user)
{
    buf_add(user, data, n);
    return 0;
}

static void emit_real(double v, struct buf *out)
{
    char text[32];
    buf_str(out, str_double(v, text));
    if (strpbrk(text, ".e") == NULL) /* it shall be read as a real again */
        buf_str(out, ".0");
}

enum { COMPACT = -1 };

static void new_line(struct buf *out, int level)
{
    if (level == COMPACT)
        return;
    buf_char(out, '\n');
    for (int i = 0; i < level; i++)
        buf_str(out, "  ");
}

static void emit_value(const json_t *v, int level, struct buf *out);

/* The library's writer takes a microsecond to start: it is used only for text that must be escaped. */
static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == '"' || s[i] == '\\')
            return false;
    return true;
}

static void emit_plain(const char *s, size_t n, struct buf *out)
{
    buf_char(out, '"');
    buf_add(out, s, n);
    buf_char(out, '"');
}

static void emit_key(const char *s, struct buf *out)
{
    size_t n = strlen(s);
    if (is_plain(s, n)) {
        emit_plain(s, n, out);
        return;
    }
    json_auto_t *text = json_string(s);
    emit_value(text, COMPACT, out);
}

static void emit_object(const json_t *v, int level, struct buf *out)
{
    int inside = level == COMPACT ? COMPACT : level + 1;
    const char *separator = "", *key;
    json_t *item;

    buf_char(out, '{');
    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        buf_str(out, separator);
        new_line(out, inside);
        emit_key(key, out);
        buf_str(out, level == COMPACT ? ":" : ": ");
        emit_value(item, inside, out);
        separator = ",";
    }
    if (json_object_size(v) > 0)
        new_line(out, level);
    buf_char(out, '}');
}

static void emit_array(const json_t *v, int level, struct buf *out)
{
    int inside = level == COMPACT ? COMPACT : level + 1;
    size_t i;
    json_t *item;

    buf_char(out, '[');
    json_array_foreach(v, i, item)
    {
        if (i > 0)
            buf_char(out, ',');
        new_line(out, inside);
        emit_value(item, inside, out);
    }
    if (json_array_size(v) > 0)
        new_line(out, level);
    buf_char(out, ']');
}

static void emit_value(const json_t *v, int level, struct buf *out)
{
    if (json_is_object(v))
        emit_object(v, level, out);
    else if (json_is_array(v))
        emit_array(v, level, out);
    else if (json_is_real(v))
        emit_real(json_real_value(v), out);
    else if (json_is_integer(v))
        buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_string(v) && is_plain(json_string_value(v), json_string_length(v)))
        emit_plain(json_string_value(v), json_string_length(v), out);
    else
        json_dump_callback(v, emit_chunk, out, JSON_ENCODE_ANY | JSON_COMPACT);
}

void json_emit(const json_t *v, struct buf *out)
{
    emit_value(v, COMPACT, out);
}

void json_emit_pretty(const json_t *v, struct buf *out)
{
    emit_value(v, 0, out);
    buf_char(out, '\n');
}

/* The member of v named by the first n bytes of `name`: a key, or the index of an array. */
static json_t *member(const json_t *v, const char *name, size_t n)
{
    auto_free char *key = xstrndup(name, n);
    int64_t i;

    if (json_is_object(v))
        return json_object_get(v, key);
    if (!json_is_array(v) || str_i64(key, 0, INT32_MAX, &i, NULL) < 0)
        return NULL;
    return json_array_get(v, (size_t)i);
}

json_t *json_at(const json_t *v, const char *path)
{
    json_t *at = (json_t *)(uintptr_t)v;
    while (at != NULL && *path != '\0') {
        size_t n = strcspn(path, ".");
        at = member(at, path, n);
        path += n + (path[n] == '.' ? 1 : 0);
    }
    return at;
}

json_t *json_number(double v)
{
    if (isnan(v))
        return json_string("NaN");
    if (isinf(v))
        return json_string(v > 0 ? "Infinity" : "-Infinity");
    return json_real(v);
}
