/* Builds a JSON value from the events of libyaml. Nesting, aliases and merge keys are bounded, because the text may
 * be untrusted. */
#include "codec/yaml_value.h"

#include <string.h>
#include <yaml.h>

#include "codec/node.h"
#include "codec/yaml_plain.h"

/* What aliases and merges may copy, in bytes (a value counts VALUE_COST): "a billion laughs" ends here. */
enum { EXPANSION_MAX = 16 << 20, VALUE_COST = 64 };

static struct place place_of(const yaml_mark_t *m)
{
    return (struct place){ .line = (int)MIN(m->line, (size_t)INT32_MAX - 1) + 1,
                           .column = (int)MIN(m->column, (size_t)INT32_MAX - 1) + 1 };
}

struct place yaml_here(const struct yaml_parse *p)
{
    return place_of(&p->event->start_mark);
}

#define error_at(p, at, e, ...) (put_error((p), (at), (e), __VA_ARGS__), -1)

static void PRINTF_LIKE(4, 5)
    put_error(const struct yaml_parse *p, struct place at, struct err *e, const char *fmt, ...)
{
    AUTO_FINI(buf) text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    err_put(e, ERR_INPUT, "%s:%d:%d: %s", p->name, at.line, at.column, text.data);
}

/* libyaml counts characters, so this finds the byte only in text that is ASCII up to there. */
static bool is_tab_at(const struct yaml_parse *p, const yaml_mark_t *m)
{
    return m->index < p->size && p->text[m->index] == '\t';
}

static int library_error(const struct yaml_parse *p, struct err *e)
{
    const yaml_parser_t *lib = p->lib;
    const char *problem = lib->problem != NULL ? lib->problem : "cannot be read as YAML";

    if (lib->error == YAML_MEMORY_ERROR)
        return err_set(e, ERR_NOMEM, "%s: no memory to read it", p->name);
    if (lib->error == YAML_READER_ERROR)
        return err_set(e, ERR_INPUT, "%s: byte %zu: %s", p->name, lib->problem_offset + 1, problem);
    const char *context = lib->context != NULL ? lib->context : "";
    return error_at(p, place_of(&lib->problem_mark), e, "%s%s%s%s", problem, *context != '\0' ? " " : "", context,
                    is_tab_at(p, &lib->problem_mark) ? "; indent with spaces, not tabs" : "");
}

int yaml_next(struct yaml_parse *p, struct err *e)
{
    yaml_event_delete(p->event);
    if (!yaml_parser_parse(p->lib, p->event))
        return library_error(p, e);
    return 0;
}

static void path_add_key(struct yaml_parse *p, const char *key)
{
    buf_printf(&p->path, "%s%s", p->path.len > 0 ? "." : "", key);
}

/* Paths that are too long to be found are not recorded. That also makes the cost of a value independent of the
 * length of its path. */
static void note_place(struct yaml_parse *p, struct place value, struct place key)
{
    if (p->path.len < NODE_PATH_MAX)
        source_note(p->src, p->path.data, value, key);
}

static void path_cut(struct yaml_parse *p, size_t n)
{
    if (n < p->path.len)
        p->path.data[p->path.len = n] = '\0';
}

/* What copying v costs; at least `limit` when it is that much or more. */
static size_t cost_of(const json_t *v, size_t limit)
{
    size_t cost = VALUE_COST + json_string_length(v), i;
    const char *key;
    json_t *item;

    json_array_foreach(v, i, item)
    {
        if (cost >= limit)
            break;
        cost += cost_of(item, limit - cost);
    }
    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        if (cost >= limit)
            break;
        cost += strlen(key) + cost_of(item, limit - cost);
    }
    return cost;
}

/* A copy of what an anchor or a merge names, so that a change of one does not change the other. */
static int expand_alias(struct yaml_parse *p, const json_t *v, struct place at, json_t **ret, struct err *e)
{
    p->expanded += cost_of(v, EXPANSION_MAX + 1);
    if (p->expanded > EXPANSION_MAX)
        return error_at(p, at, e, "aliases expand to too much");
    if (p->depth + json_depth(v) > JSON_DEPTH_MAX)
        return error_at(p, at, e, "nested deeper than %d", JSON_DEPTH_MAX);
    json_t *copy = json_deep_copy(v);
    if (copy == NULL)
        return err_set(e, ERR_NOMEM, "%s: no memory to read it", p->name);
    *ret = copy;
    return 0;
}

static int read_alias(struct yaml_parse *p, json_t **ret, struct err *e)
{
    const char *name = (const char *)p->event->data.alias.anchor;
    const json_t *v = map_get(&p->anchors, name);
    if (v == NULL)
        return error_at(p, yaml_here(p), e, "alias '*%s' names no anchor that ended above it", name);
    return expand_alias(p, v, yaml_here(p), ret, e);
}

static int no_tag(const struct yaml_parse *p, const yaml_char_t *tag, struct err *e)
{
    if (tag != NULL)
        return error_at(p, yaml_here(p), e, "tag '%s' is not supported", (const char *)tag);
    return 0;
}

static int read_scalar(struct yaml_parse *p, json_t **ret, struct err *e)
{
    const char *text = (const char *)p->event->data.scalar.value;
    size_t n = p->event->data.scalar.length;
    struct err why = { .code = ERR_NONE };

    if (no_tag(p, p->event->data.scalar.tag, e) < 0)
        return -1;
    if (strlen(text) != n)
        return error_at(p, yaml_here(p), e, "text with a NUL character");
    if (p->event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (yaml_plain(text, ret, &why) < 0)
            return error_at(p, yaml_here(p), e, "%s", why.msg);
        return 0;
    }
    *ret = json_stringn(text, n);
    return *ret != NULL ? 0 : error_at(p, yaml_here(p), e, "text that is not UTF-8");
}

static int read_sequence(struct yaml_parse *p, json_t **ret, struct err *e)
{
    json_auto_t *list = json_array();
    size_t path = p->path.len;

    if (no_tag(p, p->event->data.sequence_start.tag, e) < 0)
        return -1;
    for (;;) {
        json_t *item;
        if (yaml_next(p, e) < 0)
            return -1;
        if (p->event->type == YAML_SEQUENCE_END_EVENT)
            break;
        buf_printf(&p->path, "[%zu]", json_array_size(list));
        note_place(p, yaml_here(p), yaml_here(p));
        if (yaml_read_value(p, &item, e) < 0)
            return -1;
        json_array_append_new(list, item);
        path_cut(p, path);
    }
    *ret = TAKE(list);
    return 0;
}

/* A mapping under way. */
struct mapping {
    json_t *object;
    json_t *merge;       /* value of "<<", or NULL */
    struct place merged; /* where it stands */
};

static int read_key(struct yaml_parse *p, const struct mapping *m, bool *ret_merge, char **ret, struct err *e)
{
    if (p->event->type != YAML_SCALAR_EVENT)
        return error_at(p, yaml_here(p), e, "a key must be a word or text, not %s",
                        p->event->type == YAML_ALIAS_EVENT ? "an alias" : "a map or list");

    const char *text = (const char *)p->event->data.scalar.value;
    size_t n = p->event->data.scalar.length;
    bool plain = p->event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (no_tag(p, p->event->data.scalar.tag, e) < 0)
        return -1;
    if (strlen(text) != n)
        return error_at(p, yaml_here(p), e, "a key with a NUL character");
    if (plain && n == 0)
        return error_at(p, yaml_here(p), e, "a key is missing before ':'");
    *ret_merge = plain && strcmp(text, "<<") == 0;
    if (*ret_merge ? m->merge != NULL : json_object_get(m->object, text) != NULL)
        return error_at(p, yaml_here(p), e, "key '%s' is given twice", text);
    *ret = xstrdup(text);
    return 0;
}

static int read_member(struct yaml_parse *p, struct mapping *m, struct err *e)
{
    auto_free char *key = NULL;
    bool merge;
    struct place key_at = yaml_here(p);
    json_t *v;

    if (read_key(p, m, &merge, &key, e) < 0 || yaml_next(p, e) < 0)
        return -1;
    struct place value_at = yaml_here(p);
    path_add_key(p, key);
    note_place(p, value_at, key_at);
    if (yaml_read_value(p, &v, e) < 0)
        return -1;
    if (merge) {
        m->merge = v;
        m->merged = value_at;
    } else if (json_object_set_new(m->object, key, v) < 0) {
        return error_at(p, key_at, e, "a key that is not UTF-8");
    }
    return 0;
}

/* Members of `from` that the mapping does not have itself. */
static int merge_one(struct yaml_parse *p, struct mapping *m, json_t *from, struct err *e)
{
    const char *key;
    json_t *item, *copy;
    size_t path = p->path.len;

    if (!json_is_object(from))
        return error_at(p, m->merged, e, "'<<' merges a map or a list of maps");
    json_object_foreach(from, key, item)
    {
        if (json_object_get(m->object, key) != NULL)
            continue;
        if (expand_alias(p, item, m->merged, &copy, e) < 0)
            return -1;
        json_object_set_new(m->object, key, copy);
        path_add_key(p, key);
        note_place(p, m->merged, m->merged);
        path_cut(p, path);
    }
    return 0;
}

static int merge_all(struct yaml_parse *p, struct mapping *m, struct err *e)
{
    size_t i;
    json_t *from;

    if (m->merge == NULL)
        return 0;
    if (!json_is_array(m->merge))
        return merge_one(p, m, m->merge, e);
    json_array_foreach(m->merge, i, from) if (merge_one(p, m, from, e) < 0) return -1;
    return 0;
}

static int fill_mapping(struct yaml_parse *p, struct mapping *m, struct err *e)
{
    size_t path = p->path.len;

    for (;;) {
        if (yaml_next(p, e) < 0)
            return -1;
        if (p->event->type == YAML_MAPPING_END_EVENT)
            return merge_all(p, m, e);
        if (read_member(p, m, e) < 0)
            return -1;
        path_cut(p, path);
    }
}

static int read_mapping(struct yaml_parse *p, json_t **ret, struct err *e)
{
    struct mapping m = { .object = json_object() };

    int failed = no_tag(p, p->event->data.mapping_start.tag, e) < 0 || fill_mapping(p, &m, e) < 0;
    json_decref(m.merge);
    if (failed) {
        json_decref(m.object);
        return -1;
    }
    *ret = m.object;
    return 0;
}

/* The anchor of the event that begins a value, or NULL. */
static const char *anchor_of(const yaml_event_t *ev)
{
    switch ((int)ev->type) {
    case YAML_SCALAR_EVENT:
        return (const char *)ev->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return (const char *)ev->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return (const char *)ev->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

static int read_by_type(struct yaml_parse *p, json_t **ret, struct err *e)
{
    switch ((int)p->event->type) {
    case YAML_ALIAS_EVENT:
        return read_alias(p, ret, e);
    case YAML_SCALAR_EVENT:
        return read_scalar(p, ret, e);
    case YAML_SEQUENCE_START_EVENT:
        return read_sequence(p, ret, e);
    case YAML_MAPPING_START_EVENT:
        return read_mapping(p, ret, e);
    default:
        return error_at(p, yaml_here(p), e, "a value is missing");
    }
}

int yaml_read_value(struct yaml_parse *p, json_t **ret, struct err *e)
{
    const char *name = anchor_of(p->event);
    auto_free char *anchor = name != NULL ? xstrdup(name) : NULL;
    bool nests = p->event->type == YAML_SEQUENCE_START_EVENT || p->event->type == YAML_MAPPING_START_EVENT;
    json_t *v;

    if (nests && p->depth >= JSON_DEPTH_MAX)
        return error_at(p, yaml_here(p), e, "nested deeper than %d", JSON_DEPTH_MAX);
    p->depth += nests;
    int r = read_by_type(p, &v, e);
    p->depth -= nests;
    if (r < 0)
        return -1;
    if (anchor != NULL) {
        json_decref(map_get(&p->anchors, anchor));
        map_put(&p->anchors, anchor, json_incref(v));
    }
    *ret = v;
    return 0;
}
