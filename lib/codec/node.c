/* Typed getters whose errors name file, line, column and path, with a suggestion for a misspelt key or name. */
#include "codec/node.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { LISTED_MAX = 16 }; /* names that an error lists; if there are more, it only suggests one */

struct node node_root(const json_t *v, const struct source *src)
{
    return (struct node){ .v = v, .src = src };
}

bool node_present(const struct node *n)
{
    return n->v != NULL && !json_is_null(n->v);
}

struct node node_get(const struct node *n, const char *key)
{
    struct node member = { .v = json_object_get(n->v, key), .src = n->src, .lenient = n->lenient };
    str_fmt(member.path, sizeof(member.path), "%s%s%s", n->path, n->path[0] != '\0' ? "." : "", key);
    return member;
}

struct node node_item(const struct node *n, size_t i)
{
    struct node item = { .v = json_array_get(n->v, i), .src = n->src, .lenient = n->lenient };
    str_fmt(item.path, sizeof(item.path), "%s[%zu]", n->path, i);
    return item;
}

size_t node_size(const struct node *n)
{
    return json_is_array(n->v) ? json_array_size(n->v) : json_object_size(n->v);
}

const char *node_key(const struct node *n, size_t i)
{
    json_t *object = (json_t *)(uintptr_t)n->v;
    void *at = json_object_iter(object);
    for (; at != NULL && i > 0; i--)
        at = json_object_iter_next(object, at);
    return at != NULL ? json_object_iter_key(at) : NULL;
}

const char *node_type(const struct node *n)
{
    if (n->v == NULL)
        return "nothing";
    switch (json_typeof(n->v)) {
    case JSON_OBJECT:
        return "a map";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "nothing";
    }
    return "nothing";
}

/* ---- errors ---- */

/* "mnist.yaml:14:9: spec.fit: text"; parts that are not known are left out. `about` is the path of the value or key
 * whose place is meant. */
static void put_place(const struct source *src, const char *about, bool key, struct buf *out)
{
    int line = 0, column = 0;

    if (src == NULL)
        return;
    const char *origin = source_origin(src, about);
    buf_str(out, origin != NULL ? origin : source_name(src));
    bool known =
        origin == NULL && (key ? source_find_key(src, about, &line, &column) : source_find(src, about, &line, &column));
    if (known)
        buf_printf(out, ":%d:%d", line, column);
    buf_str(out, ": ");
}

static int PRINTF_LIKE(5, 0)
    placed_error(const struct node *n, const char *about, bool key, struct err *e, const char *fmt, va_list ap)
{
    AUTO_FINI(buf) text = BUF_INIT;

    put_place(n->src, about, key, &text);
    if (n->path[0] != '\0')
        buf_printf(&text, "%s: ", n->path);
    buf_vprintf(&text, fmt, ap);
    source_fault(n->src, text.data);
    return err_set(e, ERR_INPUT, "%s", text.data);
}

int node_error(const struct node *n, struct err *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = placed_error(n, n->path, false, e, fmt, ap);
    va_end(ap);
    return r;
}

int node_key_error(const struct node *n, const char *key, struct err *e, const char *fmt, ...)
{
    struct node member = node_get(n, key);
    va_list ap;
    va_start(ap, fmt);
    int r = placed_error(n, member.path, true, e, fmt, ap);
    va_end(ap);
    return r;
}

static bool is_one_of(const char *word, const char *const names[], size_t n, size_t *ret)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(word, names[i])) {
            *ret = i;
            return true;
        }
    }
    return false;
}

/* Names used in older releases of Keras or in other libraries. */
static const char *closest_name(const char *word, const char *const names[], size_t n)
{
    static const struct {
        const char *word, *name;
    } MEANT[] = { { "lr", "learning_rate" }, { "decay", "weight_decay" }, { "eps", "epsilon" },
                  { "betas", "beta_1" },     { "bs", "batchSize" },       { "nb_epoch", "epochs" },
                  { "batch", "batchSize" },  { "dim", "units" },          { "rho_1", "rho" },
                  { "act", "activation" } };
    size_t at;

    for (size_t i = 0; i < COUNT_OF(MEANT); i++)
        if (str_eq(word, MEANT[i].word) && is_one_of(MEANT[i].name, names, n, &at))
            return MEANT[i].name;
    return NULL;
}

/* "; did you mean 'x'?", else "; it must be a, b or c" when those are few. */
static void add_suggestion(const char *word, const char *const names[], size_t n, struct buf *out)
{
    char text[ERR_TEXT_MAX];
    const char *name = closest_name(word, names, n);
    if (name != NULL) {
        buf_printf(out, "; did you mean '%s'?", name);
        return;
    }
    if (*str_did_you_mean(word, names, n, text, sizeof(text)) != '\0' || n == 0 || n > LISTED_MAX) {
        buf_str(out, text);
        return;
    }
    buf_str(out, "; it must be ");
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", names[i]);
}

int node_only(const struct node *n, const char *const keys[], size_t nkeys, struct err *e)
{
    const char *key;
    json_t *item;
    size_t i;
    int result = 0;

    if (node_object(n, e) < 0)
        return -1;
    json_object_foreach((json_t *)(uintptr_t)n->v, key, item)
    {
        AUTO_FINI(buf) cure = BUF_INIT;
        if (is_one_of(key, keys, nkeys, &i) || (n->lenient && json_is_null(item)))
            continue;
        add_suggestion(key, keys, nkeys, &cure);
        result = node_key_error(n, key, e, "key '%s' is not known%s", key, cure.data);
        if (!node_collects(n))
            break;
    }
    return result;
}

/* ---- values ---- */

static int wrong_type(const struct node *n, const char *want, struct err *e)
{
    if (json_is_string(n->v))
        return node_error(n, e, "must be %s, not the string '%.60s'", want, json_string_value(n->v));
    if (!node_present(n))
        return node_error(n, e, "is missing; it must be %s", want);
    if (json_is_number(n->v)) {
        AUTO_FINI(buf) number = BUF_INIT;
        json_emit(n->v, &number);
        return node_error(n, e, "must be %s, not %s", want, number.data);
    }
    return node_error(n, e, "must be %s, not %s", want, node_type(n));
}

int node_object(const struct node *n, struct err *e)
{
    return json_is_object(n->v) ? 0 : wrong_type(n, "a map", e);
}

int node_array(const struct node *n, struct err *e)
{
    return json_is_array(n->v) ? 0 : wrong_type(n, "a list", e);
}

int node_str(const struct node *n, const char **ret, struct err *e)
{
    if (!json_is_string(n->v))
        return wrong_type(n, "a string", e);
    *ret = json_string_value(n->v);
    return 0;
}

/* 2^53: up to here every whole number is a double. */
#define EXACT_MAX 9007199254740992.0

int node_i64(const struct node *n, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
    double real = json_is_real(n->v) ? json_real_value(n->v) : 0;
    bool whole = json_is_integer(n->v) || (json_is_real(n->v) && real == floor(real));

    if (!whole)
        return wrong_type(n, "a whole number", e);
    bool fits = json_is_integer(n->v) || fabs(real) <= EXACT_MAX;
    int64_t v = json_is_integer(n->v) ? json_integer_value(n->v) : fits ? (int64_t)real : 0;
    if (fits && v >= min && v <= max)
        *ret = v;
    else if (max == INT64_MAX)
        return node_error(n, e, "must be at least %" PRId64, min);
    else
        return node_error(n, e, "must be %" PRId64 " to %" PRId64, min, max);
    return 0;
}

int node_f64(const struct node *n, double *ret, struct err *e)
{
    if (!json_is_number(n->v))
        return wrong_type(n, "a number", e);
    *ret = json_number_value(n->v);
    return 0;
}

int node_bool(const struct node *n, bool *ret, struct err *e)
{
    if (!json_is_boolean(n->v))
        return wrong_type(n, "true or false", e);
    *ret = json_is_true(n->v);
    return 0;
}

int node_enum(const struct node *n, const char *const names[], size_t nnames, size_t *ret_index, struct err *e)
{
    AUTO_FINI(buf) cure = BUF_INIT;
    const char *word;

    if (node_str(n, &word, e) < 0)
        return -1;
    if (is_one_of(word, names, nnames, ret_index))
        return 0;
    add_suggestion(word, names, nnames, &cure);
    return node_error(n, e, "'%.60s' is not known%s", word, cure.data);
}

int node_str_or(const struct node *n, const char *key, const char *fallback, const char **ret, struct err *e)
{
    struct node member = node_get(n, key);
    if (node_present(&member))
        return node_str(&member, ret, e);
    *ret = fallback;
    return 0;
}

int node_i64_or(const struct node *n, const char *key, int64_t fallback, int64_t min, int64_t max, int64_t *ret,
                struct err *e)
{
    struct node member = node_get(n, key);
    if (node_present(&member))
        return node_i64(&member, min, max, ret, e);
    *ret = fallback;
    return 0;
}

int node_bool_or(const struct node *n, const char *key, bool fallback, bool *ret, struct err *e)
{
    struct node member = node_get(n, key);
    if (node_present(&member))
        return node_bool(&member, ret, e);
    *ret = fallback;
    return 0;
}

/* ---- a name, or a map ---- */

/* The map of arguments: an object, or nothing. */
static int take_config(const struct node *config, const char *name, struct node *ret, struct err *e)
{
    if (node_present(config) && !json_is_object(config->v))
        return node_error(config, e, "the arguments of '%s' must be a map, not %s", name, node_type(config));
    *ret = *config;
    if (!node_present(config))
        ret->v = NULL;
    return 0;
}

/* A name alone. */
static int take_word(const struct node *n, const json_t *word, const char **ret_name, struct node *ret_config)
{
    *ret_name = json_string_value(word);
    *ret_config = *n;
    ret_config->v = NULL;
    return 0;
}

int node_named(const struct node *n, const char **ret_name, struct node *ret_config, struct err *e)
{
    struct node class_name = node_get(n, "class_name"), name = node_get(n, "name"), config;

    if (json_is_string(n->v))
        return take_word(n, n->v, ret_name, ret_config);
    if (!json_is_object(n->v))
        return wrong_type(n, "a name, or a map", e);
    if (json_is_string(class_name.v)) {
        const char *word = json_string_value(class_name.v);
        config = node_get(n, "config");
        if (str_eq(word, "function") && json_is_string(config.v))
            return take_word(n, config.v, ret_name, ret_config);
        config.lenient = true;
        if (take_config(&config, word, ret_config, e) < 0)
            return -1;
        *ret_name = word;
        return 0;
    }
    if (json_is_string(name.v)) {
        *ret_name = json_string_value(name.v);
        *ret_config = *n;
        return 0;
    }
    if (node_size(n) != 1)
        return node_error(n, e, "must be a name, or a map of one name to its arguments");
    const char *word = node_key(n, 0);
    config = node_get(n, word);
    if (take_config(&config, word, ret_config, e) < 0)
        return -1;
    *ret_name = word;
    return 0;
}
