#include "codec/yaml.h"

#include <ctype.h>
#include <string.h>
#include <yaml.h>

#include "base/str.h"
#include "codec/node.h"
#include "codec/source.h"
#include "codec/yaml_plain.h"

/* What aliases and merges may copy, in bytes (a value counts VALUE_COST): "a billion laughs" ends here. */
enum { EXPANSION_MAX = 16 << 20, VALUE_COST = 64 };

/* One document under way. */
struct parse {
    yaml_parser_t lib;
    yaml_event_t event;    /* the current one; owned */
    const char *text, *name;
    size_t size;
    struct source *src;    /* of the current document */
    struct strmap *anchors; /* name -> json_t, owned references */
    struct buf path;       /* of the value being read, as in codec/node.h */
    size_t expanded;
    int depth;
};

static struct place place_of(const yaml_mark_t *m)
{
    return (struct place){ .line = (int)MIN(m->line, (size_t)INT32_MAX - 1) + 1,
                           .column = (int)MIN(m->column, (size_t)INT32_MAX - 1) + 1 };
}

static struct place here(const struct parse *p)
{
    return place_of(&p->event.start_mark);
}

#define error_at(p, at, e, ...) (put_error((p), (at), (e), __VA_ARGS__), -1)

static void PRINTF_LIKE(4, 5)
    put_error(const struct parse *p, struct place at, struct err *e, const char *fmt, ...)
{
    AUTO_FINI(buf) text = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    err_put(e, ERR_INPUT, "%s:%d:%d: %s", p->name, at.line, at.column, text.data);
}

/* libyaml counts characters, so this finds the byte only in text that is ASCII up to there. */
static bool is_tab_at(const struct parse *p, const yaml_mark_t *m)
{
    return m->index < p->size && p->text[m->index] == '\t';
}

static int library_error(const struct parse *p, struct err *e)
{
    const yaml_parser_t *lib = &p->lib;
    const char *problem = lib->problem != NULL ? lib->problem : "cannot be read as YAML";

    if (lib->error == YAML_MEMORY_ERROR)
        return err_set(e, ERR_NOMEM, "%s: no memory to read it", p->name);
    if (lib->error == YAML_READER_ERROR)
        return err_set(e, ERR_INPUT, "%s: byte %zu: %s", p->name, lib->problem_offset + 1, problem);
    const char *context = lib->context != NULL ? lib->context : "";
    return error_at(p, place_of(&lib->problem_mark), e, "%s%s%s%s", problem, *context != '\0' ? " " : "", context,
                    is_tab_at(p, &lib->problem_mark) ? "; indent with spaces, not tabs" : "");
}

/* Moves on to the next event. */
static int next(struct parse *p, struct err *e)
{
    yaml_event_delete(&p->event);
    if (!yaml_parser_parse(&p->lib, &p->event))
        return library_error(p, e);
    return 0;
}

static int read_value(struct parse *p, json_t **ret, struct err *e);

static void path_add_key(struct parse *p, const char *key)
{
    buf_printf(&p->path, "%s%s", p->path.len > 0 ? "." : "", key);
}

static void path_cut(struct parse *p, size_t n)
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

    json_array_foreach (v, i, item) {
        if (cost >= limit)
            break;
        cost += cost_of(item, limit - cost);
    }
    json_object_foreach ((json_t *)(uintptr_t)v, key, item) {
        if (cost >= limit)
            break;
        cost += strlen(key) + cost_of(item, limit - cost);
    }
    return cost;
}

/* A copy of what an anchor or a merge names, so that a change of one does not change the other. */
static int expand(struct parse *p, const json_t *v, struct place at, json_t **ret, struct err *e)
{
    p->expanded += cost_of(v, EXPANSION_MAX + 1);
    if (p->expanded > EXPANSION_MAX)
        return error_at(p, at, e, "aliases expand to too much");
    if (p->depth + json_depth(v) > JSON_DEPTH_MAX)
        return error_at(p, at, e, "nested deeper than %d", JSON_DEPTH_MAX);
    *ret = json_deep_copy(v);
    return *ret != NULL ? 0 : err_set(e, ERR_NOMEM, "%s: no memory to read it", p->name);
}

static int read_alias(struct parse *p, json_t **ret, struct err *e)
{
    const char *name = (const char *)p->event.data.alias.anchor;
    const json_t *v = strmap_get(p->anchors, name);
    if (v == NULL)
        return error_at(p, here(p), e, "alias '*%s' names no anchor that ended above it", name);
    return expand(p, v, here(p), ret, e);
}

static int no_tag(const struct parse *p, const yaml_char_t *tag, struct err *e)
{
    if (tag != NULL)
        return error_at(p, here(p), e, "tag '%s' is not supported", (const char *)tag);
    return 0;
}

static int read_scalar(struct parse *p, json_t **ret, struct err *e)
{
    const char *text = (const char *)p->event.data.scalar.value;
    size_t n = p->event.data.scalar.length;
    struct err why = { .code = ERR_NONE };

    if (no_tag(p, p->event.data.scalar.tag, e) < 0)
        return -1;
    if (strlen(text) != n)
        return error_at(p, here(p), e, "text with a NUL character");
    if (p->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (yaml_plain(text, ret, &why) < 0)
            return error_at(p, here(p), e, "%s", why.msg);
        return 0;
    }
    *ret = json_stringn(text, n);
    return *ret != NULL ? 0 : error_at(p, here(p), e, "text that is not UTF-8");
}

static int read_sequence(struct parse *p, json_t **ret, struct err *e)
{
    json_auto_t *list = json_array();
    size_t path = p->path.len;

    if (no_tag(p, p->event.data.sequence_start.tag, e) < 0)
        return -1;
    for (;;) {
        json_t *item;
        if (next(p, e) < 0)
            return -1;
        if (p->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        buf_printf(&p->path, "[%zu]", json_array_size(list));
        source_note(p->src, p->path.data, here(p), here(p));
        if (read_value(p, &item, e) < 0)
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

static int read_key(struct parse *p, const struct mapping *m, bool *ret_merge, char **ret, struct err *e)
{
    if (p->event.type != YAML_SCALAR_EVENT)
        return error_at(p, here(p), e, "a key must be a word or text, not %s",
                        p->event.type == YAML_ALIAS_EVENT ? "an alias" : "a map or list");

    const char *text = (const char *)p->event.data.scalar.value;
    size_t n = p->event.data.scalar.length;
    bool plain = p->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (no_tag(p, p->event.data.scalar.tag, e) < 0)
        return -1;
    if (strlen(text) != n)
        return error_at(p, here(p), e, "a key with a NUL character");
    if (plain && n == 0)
        return error_at(p, here(p), e, "a key is missing before ':'");
    *ret_merge = plain && strcmp(text, "<<") == 0;
    if (*ret_merge ? m->merge != NULL : json_object_get(m->object, text) != NULL)
        return error_at(p, here(p), e, "key '%s' is given twice", text);
    *ret = xstrdup(text);
    return 0;
}

static int read_member(struct parse *p, struct mapping *m, struct err *e)
{
    auto_free char *key = NULL;
    bool merge;
    struct place key_at = here(p);
    json_t *v;

    if (read_key(p, m, &merge, &key, e) < 0 || next(p, e) < 0)
        return -1;
    struct place value_at = here(p);
    path_add_key(p, key);
    source_note(p->src, p->path.data, value_at, key_at);
    if (read_value(p, &v, e) < 0)
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
static int merge_one(struct parse *p, struct mapping *m, json_t *from, struct err *e)
{
    const char *key;
    json_t *item, *copy;
    size_t path = p->path.len;

    if (!json_is_object(from))
        return error_at(p, m->merged, e, "'<<' merges a map or a list of maps");
    json_object_foreach (from, key, item) {
        if (json_object_get(m->object, key) != NULL)
            continue;
        if (expand(p, item, m->merged, &copy, e) < 0)
            return -1;
        json_object_set_new(m->object, key, copy);
        path_add_key(p, key);
        source_note(p->src, p->path.data, m->merged, m->merged);
        path_cut(p, path);
    }
    return 0;
}

static int merge_all(struct parse *p, struct mapping *m, struct err *e)
{
    size_t i;
    json_t *from;

    if (m->merge == NULL)
        return 0;
    if (!json_is_array(m->merge))
        return merge_one(p, m, m->merge, e);
    json_array_foreach (m->merge, i, from)
        if (merge_one(p, m, from, e) < 0)
            return -1;
    return 0;
}

static int fill_mapping(struct parse *p, struct mapping *m, struct err *e)
{
    size_t path = p->path.len;

    for (;;) {
        if (next(p, e) < 0)
            return -1;
        if (p->event.type == YAML_MAPPING_END_EVENT)
            return merge_all(p, m, e);
        if (read_member(p, m, e) < 0)
            return -1;
        path_cut(p, path);
    }
}

static int read_mapping(struct parse *p, json_t **ret, struct err *e)
{
    struct mapping m = { .object = json_object() };

    int failed = no_tag(p, p->event.data.mapping_start.tag, e) < 0 || fill_mapping(p, &m, e) < 0;
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

static int read_by_type(struct parse *p, json_t **ret, struct err *e)
{
    switch ((int)p->event.type) {
    case YAML_ALIAS_EVENT:
        return read_alias(p, ret, e);
    case YAML_SCALAR_EVENT:
        return read_scalar(p, ret, e);
    case YAML_SEQUENCE_START_EVENT:
        return read_sequence(p, ret, e);
    case YAML_MAPPING_START_EVENT:
        return read_mapping(p, ret, e);
    default:
        return error_at(p, here(p), e, "a value is missing");
    }
}

/* The value that begins with the current event; afterwards the current event is its last. */
static int read_value(struct parse *p, json_t **ret, struct err *e)
{
    const char *name = anchor_of(&p->event);
    auto_free char *anchor = name != NULL ? xstrdup(name) : NULL;
    bool nests = p->event.type == YAML_SEQUENCE_START_EVENT || p->event.type == YAML_MAPPING_START_EVENT;
    json_t *v;

    if (nests && p->depth >= JSON_DEPTH_MAX)
        return error_at(p, here(p), e, "nested deeper than %d", JSON_DEPTH_MAX);
    p->depth += nests;
    int r = read_by_type(p, &v, e);
    p->depth -= nests;
    if (r < 0)
        return -1;
    if (anchor != NULL) {
        json_decref(strmap_get(p->anchors, anchor));
        strmap_set(p->anchors, anchor, json_incref(v));
    }
    *ret = v;
    return 0;
}

/* ---- documents ---- */

struct document {
    json_t *v;
    struct source *src;
};

/* The callback may take what it wants to keep out of the document. */
typedef int document_fn(void *user, struct document *d, struct err *e);

static void forget_anchors(struct parse *p)
{
    for (size_t i = 0; i < strmap_size(p->anchors); i++)
        json_decref(strmap_value(p->anchors, i));
    strmap_free(p->anchors);
    p->anchors = NULL;
}

/* The current event is the document's start; afterwards it is its end. */
static int read_document(struct parse *p, struct document *d, struct err *e)
{
    d->src = p->src = source_new(p->name);
    p->anchors = strmap_new();
    p->expanded = 0;
    buf_clear(&p->path);
    int r = next(p, e);
    if (r == 0) {
        source_note(p->src, "", here(p), here(p));
        r = read_value(p, &d->v, e);
    }
    forget_anchors(p);
    return r < 0 ? -1 : next(p, e);
}

static int deliver(struct parse *p, document_fn *each, void *user, struct err *e)
{
    struct document d = { .v = NULL };
    int r = read_document(p, &d, e);
    if (r == 0 && !json_is_null(d.v))
        r = each(user, &d, e);
    json_decref(d.v);
    source_free(d.src);
    return r;
}

static int read_stream(struct parse *p, document_fn *each, void *user, size_t *ret_documents, struct err *e)
{
    for (*ret_documents = 0;;) {
        if (next(p, e) < 0)
            return -1;
        if (p->event.type == YAML_STREAM_END_EVENT)
            return 0;
        if (p->event.type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (deliver(p, each, user, e) < 0)
            return -1;
        ++*ret_documents;
    }
}

/* JSON that libyaml refuses (escaped surrogate pairs) is read as JSON, without places. */
static bool read_as_json(const struct parse *p, struct document *d)
{
    size_t i = 0;
    while (i < p->size && isspace((unsigned char)p->text[i]))
        i++;
    if (i == p->size || p->text[i] != '{' || json_parse(p->text, p->size, p->name, &d->v, NULL) < 0)
        return false;
    d->src = source_new(p->name);
    return true;
}

static int read_all(const char *text, size_t n, const char *name, document_fn *each, void *user, struct err *e)
{
    struct parse p = { .text = text, .size = n, .name = name, .path = BUF_INIT };
    size_t documents;
    bool refused = false;

    if (!yaml_parser_initialize(&p.lib))
        return err_set(e, ERR_NOMEM, "%s: no memory to read it", name);
    yaml_parser_set_input_string(&p.lib, (const unsigned char *)text, n);
    int r = read_stream(&p, each, user, &documents, e);
    refused = r < 0 && documents == 0 && p.lib.error != YAML_NO_ERROR;
    yaml_event_delete(&p.event);
    yaml_parser_delete(&p.lib);
    buf_fini(&p.path);

    struct document d = { .v = NULL };
    if (refused && read_as_json(&p, &d)) {
        r = each(user, &d, e);
        json_decref(d.v);
        source_free(d.src);
    }
    return r;
}

/* What a document must be, and the first one that was. */
struct choice {
    bool (*wanted)(void *user, const json_t *v);
    void *user;
    struct document kept;
};

static int keep_first(void *user, struct document *d, struct err *e UNUSED)
{
    struct choice *c = user;
    if (c->kept.v == NULL && json_is_object(d->v) && (c->wanted == NULL || c->wanted(c->user, d->v))) {
        c->kept.v = TAKE(d->v);
        c->kept.src = TAKE(d->src);
    }
    return 0;
}

int yaml_parse_wanted(const char *text, size_t n, const char *name, bool (*wanted)(void *user, const json_t *v),
                      void *user, json_t **ret, struct source **ret_source, struct err *e)
{
    struct choice c = { .wanted = wanted, .user = user };

    if (read_all(text, n, name, keep_first, &c, e) < 0) {
        json_decref(c.kept.v);
        source_free(c.kept.src);
        return -1;
    }
    *ret = c.kept.v;
    *ret_source = c.kept.src;
    return 0;
}

int yaml_parse(const char *text, size_t n, const char *name, json_t **ret, struct source **ret_source, struct err *e)
{
    json_t *v;
    struct source *src;

    if (yaml_parse_wanted(text, n, name, NULL, NULL, &v, &src, e) < 0)
        return -1;
    if (v == NULL)
        return err_set(e, ERR_INPUT, "%s: no map (key: value) in it", name);
    *ret = v;
    *ret_source = src;
    return 0;
}

struct lender {
    int (*each)(void *user, json_t *v, const struct source *s, struct err *e);
    void *user;
};

static int lend(void *user, struct document *d, struct err *e)
{
    const struct lender *l = user;
    return l->each(l->user, d->v, d->src, e);
}

int yaml_parse_all(const char *text, size_t n, const char *name,
                   int (*each)(void *user, json_t *v, const struct source *s, struct err *e), void *user, struct err *e)
{
    struct lender l = { .each = each, .user = user };
    return read_all(text, n, name, lend, &l, e);
}
