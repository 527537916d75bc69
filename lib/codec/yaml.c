/* Reads the documents of a text: limits before libyaml sees it, then one document after the other. */
#include "codec/yaml.h"

#include <ctype.h>
#include <string.h>
#include <yaml.h>

#include "codec/yaml_value.h"

struct document {
    json_t *v;
    struct source *src;
};

/* The callback may move values that it keeps out of the document. */
typedef int document_fn(void *user, struct document *d, struct err *e);

static void forget_anchors(struct yaml_parse *p)
{
    const struct map_slot *slot;

    for (size_t i = 0; (slot = map_next(&p->anchors, &i)) != NULL;)
        json_decref(slot->value);
    map_fini(&p->anchors);
}

/* The current event is the document's start; afterwards it is its end. */
static int read_document(struct yaml_parse *p, struct document *d, struct err *e)
{
    d->src = p->src = source_new(p->name);
    p->expanded = 0;
    buf_clear(&p->path);
    int r = yaml_next(p, e);
    if (r == 0) {
        source_note(p->src, "", yaml_here(p), yaml_here(p));
        r = yaml_read_value(p, &d->v, e);
    }
    forget_anchors(p);
    return r < 0 ? -1 : yaml_next(p, e);
}

static int deliver_document(struct yaml_parse *p, document_fn *each, void *user, struct err *e)
{
    struct document d = { .v = NULL };
    int r = read_document(p, &d, e);
    if (r == 0 && !json_is_null(d.v))
        r = each(user, &d, e);
    json_decref(d.v);
    source_free(d.src);
    return r;
}

static int read_stream(struct yaml_parse *p, document_fn *each, void *user, size_t *ret_documents, struct err *e)
{
    for (*ret_documents = 0;;) {
        if (yaml_next(p, e) < 0)
            return -1;
        if (p->event->type == YAML_STREAM_END_EVENT)
            return 0;
        if (p->event->type != YAML_DOCUMENT_START_EVENT)
            continue;
        if (deliver_document(p, each, user, e) < 0)
            return -1;
        ++*ret_documents;
    }
}

/* JSON that libyaml refuses (escaped surrogate pairs) is read as JSON, without places. */
static bool read_as_json(const struct yaml_parse *p, struct document *d)
{
    size_t i = 0;
    while (i < p->size && isspace((unsigned char)p->text[i]))
        i++;
    if (i == p->size || p->text[i] != '{' || json_parse(p->text, p->size, p->name, &d->v, NULL) < 0)
        return false;
    d->src = source_new(p->name);
    return true;
}

/* libyaml compares each of these with all before it. Tags are refused anyway, so no text needs many. */
enum { TAG_DIRECTIVES_MAX = 100 };

static bool many_tag_directives(const char *text, size_t n)
{
    const char *end = text + n;
    int count = 0;

    for (const char *p = text; count <= TAG_DIRECTIVES_MAX && (p = memmem(p, (size_t)(end - p), "%TAG", 4)) != NULL;
         p++)
        count += p == text || p[-1] == '\n' || p[-1] == '\r';
    return count > TAG_DIRECTIVES_MAX;
}

static int read_all(const char *text, size_t n, const char *name, document_fn *each, void *user, struct err *e)
{
    yaml_parser_t lib;
    yaml_event_t event = { .type = YAML_NO_EVENT };
    struct yaml_parse p = { .lib = &lib, .event = &event, .text = text, .size = n, .name = name, .path = BUF_INIT };
    struct err why = { .code = ERR_NONE };
    struct document d = { .v = NULL };
    size_t documents;

    if (many_tag_directives(text, n))
        return err_set(e, ERR_INPUT, "%s: has more than %d %%TAG directives", name, TAG_DIRECTIVES_MAX);
    if (!yaml_parser_initialize(&lib))
        return err_set(e, ERR_NOMEM, "%s: no memory to read it", name);
    yaml_parser_set_input_string(&lib, (const unsigned char *)text, n);
    int r = read_stream(&p, each, user, &documents, &why);
    bool refused = r < 0 && documents == 0 && lib.error != YAML_NO_ERROR;
    yaml_event_delete(&event);
    yaml_parser_delete(&lib);
    buf_fini(&p.path);

    if (refused && read_as_json(&p, &d)) {
        r = each(user, &d, &why);
        json_decref(d.v);
        source_free(d.src);
    }
    if (r < 0 && e != NULL)
        *e = why;
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

struct document_visitor {
    int (*each)(void *user, json_t *v, const struct source *s, struct err *e);
    void *user;
};

static int pass_document(void *user, struct document *d, struct err *e)
{
    const struct document_visitor *v = user;
    return v->each(v->user, d->v, d->src, e);
}

int yaml_parse_all(const char *text, size_t n, const char *name,
                   int (*each)(void *user, json_t *v, const struct source *s, struct err *e), void *user, struct err *e)
{
    struct document_visitor v = { .each = each, .user = user };
    return read_all(text, n, name, pass_document, &v, e);
}
