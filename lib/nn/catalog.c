/* Finds rows by name and reads their arguments. Every fault is a placed error, with a suggestion for a misspelt name.
 */
#include "nn/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static bool in_range(enum arg_range range, double v)
{
    switch (range) {
#define X(name, condition, text)                                                                                       \
    case name:                                                                                                         \
        return condition;
        ARG_RANGES(X)
#undef X
    }
    return false;
}

static const char *range_text(enum arg_range range)
{
    static const char *const TEXT[] = {
#define X(name, condition, text) [name] = text,
        ARG_RANGES(X)
#undef X
    };
    return TEXT[range];
}

const struct kind *catalog_row(const struct catalog *c, size_t i)
{
    return (const struct kind *)(const void *)((const char *)c->rows + i * c->size);
}

static bool kind_is_called(const struct kind *k, const char *word, bool any_case)
{
    for (size_t i = 0; i < KIND_NAMES_MAX && k->names[i] != NULL; i++)
        if (any_case ? strcasecmp(k->names[i], word) == 0 : strcmp(k->names[i], word) == 0)
            return true;
    return false;
}

static int unknown(const struct catalog *c, const struct node *at, const char *word, struct err *e)
{
    for (size_t i = 0; c->later != NULL && c->later[i] != NULL; i++)
        if (strcasecmp(c->later[i], word) == 0)
            return node_error(at, e, "%s '%s' is not supported yet", c->what, word);
    for (size_t i = 0; c->elsewhere != NULL && c->elsewhere[i].name != NULL; i++)
        if (strcasecmp(c->elsewhere[i].name, word) == 0)
            return node_error(at, e, "%s '%s' is not a part of the model here: %s", c->what, word,
                              c->elsewhere[i].where);
    size_t n = c->count * KIND_NAMES_MAX, also = 0;
    while (c->also != NULL && c->also[also] != NULL)
        also++;
    auto_free const char **names = xcalloc(n + also, sizeof(*names));
    for (size_t i = 0; i < c->count; i++)
        memcpy(names + i * KIND_NAMES_MAX, catalog_row(c, i)->names, sizeof(catalog_row)(c, i)->names);
    for (size_t i = 0; i < also; i++)
        names[n++] = c->also[i];
    char hint[256];
    return node_error(at, e, "%s '%s' is not known%s", c->what, word,
                      str_did_you_mean(word, names, n, hint, sizeof(hint)));
}

/* NULL: none. */
static const struct kind *row_called(const struct catalog *c, const char *word)
{
    for (size_t i = 0; i < c->count; i++)
        if (kind_is_called(catalog_row(c, i), word, c->any_case))
            return catalog_row(c, i);
    return NULL;
}

bool catalog_knows(const struct catalog *c, const char *word)
{
    return row_called(c, word) != NULL;
}

int catalog_find(const struct catalog *c, const struct node *at, const char *word, const struct kind **ret,
                 struct err *e)
{
    const struct kind *k = row_called(c, word);
    if (k == NULL)
        return unknown(c, at, word, e);
    *ret = k;
    return 0;
}

int catalog_parse(const struct catalog *c, const struct node *n, const struct kind **ret, double *ret_values,
                  struct node *ret_config, struct err *e)
{
    const char *word = NULL;
    struct node config;
    const struct kind *k = NULL;
    if (node_named(n, &word, &config, e) < 0 || catalog_find(c, n, word, &k, e) < 0 ||
        args_parse(k, &config, ret_values, e) < 0)
        return -1;
    if (ret_config != NULL)
        *ret_config = config;
    *ret = k;
    return 0;
}

static int parse_choice(const struct arg *a, const struct node *n, double *ret, struct err *e)
{
    size_t count = 0, chosen = 0;
    while (a->choices[count] != NULL)
        count++;
    if (node_enum(n, a->choices, count, &chosen, e) < 0)
        return -1;
    *ret = (double)chosen;
    return 0;
}

static int parse_number(const struct arg *a, const struct node *n, double *ret, struct err *e)
{
    double v = 0;
    int64_t whole = 0;
    if (a->kind == ARG_INTEGER) {
        if (node_i64(n, -(1LL << 52), 1LL << 52, &whole, e) < 0)
            return -1;
        v = (double)whole;
    } else if (node_f64(n, &v, e) < 0) {
        return -1;
    }
    if (fabs(v) > (double)FLT_MAX)
        return node_error(n, e, "%.9g is more than a 32-bit float holds", v);
    if (!in_range(a->range, v))
        return node_error(n, e, "must be %s, not %.9g", range_text(a->range), v);
    *ret = v;
    return 0;
}

/* Is v what Python writes as `text`: 'nearest', 1, False? False and 0 are the same to Python. */
static bool is_literal(const json_t *v, const char *text)
{
    if (text[0] == '\'')
        return json_is_string(v) && strlen(text) == json_string_length(v) + 2 &&
               strncmp(json_string_value(v), text + 1, json_string_length(v)) == 0;
    double only = str_eq(text, "False") ? 0 : strtod(text, NULL);
    return json_is_false(v) ? only == 0 : json_is_number(v) && json_number_value(v) == only;
}

/* Absent, null, or the default; where that is None, also false and 0. */
static int check_unused(const struct arg *a, const struct node *n, struct err *e)
{
    const char *text = a->text != NULL ? a->text : "0";
    if (is_literal(n->v, text))
        return 0;
    if (str_eq(text, "0") || str_eq(text, "False"))
        return node_error(n, e, "'%s' is not supported yet; leave it out", a->name);
    return node_error(n, e, "only %s is supported yet", text);
}

static int parse_entry(const struct arg *a, const struct node *n, int64_t *ret, struct err *e)
{
    int64_t v = 0;
    if (node_i64(n, INT64_MIN, INT64_MAX, &v, e) < 0)
        return -1;
    if (!in_range(a->range, (double)v))
        return node_error(n, e, "must be %s, not %lld", range_text(a->range), (long long)v);
    if (v < -INT32_MAX || v > INT32_MAX)
        return node_error(n, e, "%lld is too large", (long long)v);
    *ret = v;
    return 0;
}

static int parse_list(const struct arg *a, const struct node *n, struct arg_list *ret, struct err *e)
{
    struct arg_list list = { .n = MAX(a->least, 1) };
    bool single = !json_is_array(n->v);
    if (single && !a->or_one && a->most > 1 && a->least != a->most && node_array(n, e) < 0)
        return -1;
    if (!single && node_size(n) != (size_t)a->least && a->least == a->most)
        return node_error(n, e, "has %zu entries; it must have %d", node_size(n), a->least);
    if (!single && (node_size(n) < (size_t)a->least || node_size(n) > (size_t)a->most))
        return node_error(n, e, "has %zu entries; it must have %d to %d", node_size(n), a->least, a->most);
    if (!single)
        list.n = (int)node_size(n);
    for (int i = 0; i < list.n; i++) {
        struct node item = single ? *n : node_item(n, (size_t)i);
        if (parse_entry(a, &item, &list.v[i], e) < 0)
            return -1;
    }
    *ret = list;
    return 0;
}

int arg_list_read(const struct kind *k, const char *name, const struct node *config, struct arg_list *ret,
                  struct err *e)
{
    struct node n = node_get(config, name);
    size_t i = 0;
    while (i < k->nargs && strcmp(k->args[i].name, name) != 0)
        i++;
    if (i == k->nargs || k->args[i].kind != ARG_LIST)
        return err_set(e, ERR_INTERNAL, "%s has no list '%s'", k->names[0], name);
    if (node_present(&n))
        return parse_list(&k->args[i], &n, ret, e);
    *ret = (struct arg_list){ 0 };
    return 0;
}

static int arg_parse(const struct arg *a, const struct node *n, double *ret, struct err *e)
{
    struct arg_list list;
    bool flag = false;
    switch (a->kind) {
    case ARG_LIST:
        return parse_list(a, n, &list, e);
    case ARG_NUMBER:
    case ARG_INTEGER:
        return parse_number(a, n, ret, e);
    case ARG_FLAG:
        if (node_bool(n, &flag, e) < 0)
            return -1;
        *ret = flag ? 1 : 0;
        return 0;
    case ARG_CHOICE:
        return parse_choice(a, n, ret, e);
    case ARG_UNSUPPORTED:
        return check_unused(a, n, e);
    case ARG_IGNORED:
    case ARG_OTHER:
        break;
    }
    return 0;
}

void args_defaults(const struct kind *k, double *ret_values)
{
    for (size_t i = 0; i < k->nargs; i++)
        ret_values[i] = k->args[i].fallback;
}

int args_parse(const struct kind *k, const struct node *config, double *ret_values, struct err *e)
{
    auto_free double *values = xcalloc(k->nargs + 1, sizeof(*values));
    auto_free const char **names = xcalloc(k->nargs + 2, sizeof(*names));
    args_defaults(k, values);
    for (size_t i = 0; i < k->nargs; i++)
        names[i] = k->args[i].name;
    names[k->nargs] = "name"; /* every Keras object has these two */
    names[k->nargs + 1] = "dtype";
    if (node_present(config) && node_object(config, e) < 0)
        return -1;
    bool failed = node_present(config) && node_only(config, names, k->nargs + 2, e) < 0;
    for (size_t i = 0; i < k->nargs && (!failed || node_collects(config)); i++) {
        struct node n = node_get(config, names[i]);
        if (!node_present(&n) && k->args[i].required)
            failed |= node_error(config, e, "%s needs '%s'", k->names[0], names[i]) < 0;
        else if (node_present(&n))
            failed |= arg_parse(&k->args[i], &n, &values[i], e) < 0;
    }
    if (failed)
        return -1;
    memcpy(ret_values, values, k->nargs * sizeof(*values));
    return 0;
}

/* New reference. */
static json_t *literal_json(const char *text)
{
    if (text[0] == '\'')
        return json_stringn(text + 1, strlen(text) - 2);
    return str_eq(text, "False") ? json_false() : json_integer((json_int_t)strtod(text, NULL));
}

static json_t *arg_config(const struct arg *a, double v)
{
    if (a->kind == ARG_FLAG)
        return json_boolean(v != 0);
    if (a->kind == ARG_UNSUPPORTED && a->text != NULL)
        return literal_json(a->text);
    if (a->kind == ARG_UNSUPPORTED || isnan(v))
        return json_null();
    if (a->kind == ARG_CHOICE)
        return json_string(a->choices[(size_t)v]);
    return a->kind == ARG_INTEGER ? json_integer((json_int_t)v) : json_real(v);
}

json_t *args_config(const struct kind *k, const double *values)
{
    json_t *config = json_object();
    for (size_t i = 0; i < k->nargs; i++) {
        const struct arg *a = &k->args[i];
        if (a->kind != ARG_IGNORED && a->kind != ARG_OTHER && a->kind != ARG_LIST && !a->unwritten)
            json_object_set_new(config, a->name, arg_config(a, values[i]));
    }
    return config;
}

json_t *kind_serialized(const char *module, const char *class_name, json_t *config)
{
    return json_pack("{s:s, s:s, s:o, s:n}", "module", module, "class_name", class_name, "config", config,
                     "registered_name");
}

const char *arg_default_text(const struct arg *a, char out[32])
{
    if (a->required)
        return "required";
    if (a->kind == ARG_OTHER || a->kind == ARG_LIST)
        return a->text != NULL ? a->text : "None";
    if (a->kind == ARG_FLAG)
        snprintf(out, 32, "%s", a->fallback != 0 ? "True" : "False");
    else if (a->kind == ARG_CHOICE)
        snprintf(out, 32, "'%s'", a->choices[(size_t)a->fallback]);
    else if (isnan(a->fallback) || a->kind == ARG_UNSUPPORTED)
        snprintf(out, 32, "None");
    else
        snprintf(out, 32, "%.9g", a->fallback);
    return out;
}
