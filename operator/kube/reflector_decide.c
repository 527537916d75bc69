/* Parses watch events and list pages, and decides after each end whether to watch or list, and after which delay. */
#include "kube/reflector_internal.h"

#include <string.h>

/* ---- reading ---- */

static const char *text_of(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s != NULL ? s : "";
}

struct object_names object_names_of(const json_t *object)
{
    const json_t *meta = json_object_get(object, "metadata");
    return (struct object_names){ text_of(meta, "namespace"), text_of(meta, "name"), text_of(meta, "uid"),
                                  text_of(meta, "resourceVersion") };
}

void watch_event_fini(struct watch_event *w)
{
    json_decref(w->root);
    *w = (struct watch_event){ 0 };
}

static enum watch_type type_of(const char *s)
{
    static const char *const NAMES[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };
    size_t i = 0;
    while (i < COUNT_OF(NAMES) && strcmp(NAMES[i], s) != 0)
        i++;
    return (enum watch_type)i; /* past the end: WATCH_STRANGE */
}

static int check_event(const struct watch_event *w, struct err *e)
{
    if (w->type == WATCH_ERROR || w->type == WATCH_STRANGE)
        return 0;
    if (w->version[0] == '\0')
        return err_set(e, ERR_INPUT, "a watch event without resourceVersion");
    if (w->type != WATCH_BOOKMARK && w->name[0] == '\0')
        return err_set(e, ERR_INPUT, "a watch event without name");
    return 0;
}

int watch_parse(const char *line, size_t n, struct watch_event *ret, struct err *e)
{
    AUTO_FINI(watch_event) w = { 0 };

    if (n > WATCH_LINE_MAX)
        return err_set(e, ERR_INPUT, "a watch event of %zu bytes, at most %d", n, WATCH_LINE_MAX);
    if (json_parse_any(line, n, "watch event", &w.root, e) < 0)
        return -1;
    w.object = json_object_get(w.root, "object");
    if (!json_is_object(w.object) || !json_is_string(json_object_get(w.root, "type")))
        return err_set(e, ERR_INPUT, "a watch event without type or object");
    struct object_names names = object_names_of(w.object);
    json_int_t code = json_integer_value(json_object_get(w.object, "code"));
    w.type = type_of(text_of(w.root, "type"));
    w.ns = names.ns;
    w.name = names.name;
    w.uid = names.uid;
    w.version = names.version;
    w.code = code < 0 || code > 999 ? 0 : (int)code;
    w.reason = text_of(w.object, "reason");
    w.message = text_of(w.object, "message");
    if (check_event(&w, e) < 0)
        return -1;
    *ret = w;
    w = (struct watch_event){ 0 };
    return 0;
}

int list_page_read(const json_t *body, struct list_page *ret, struct err *e)
{
    const json_t *items = json_object_get(body, "items"), *meta = json_object_get(body, "metadata");
    const char *version = text_of(meta, "resourceVersion");

    if (!json_is_array(items) && !json_is_null(items)) /* Go writes an empty list as null */
        return err_set(e, ERR_INPUT, "the answer is not a list");
    if (version[0] == '\0')
        return err_set(e, ERR_INPUT, "a list without resourceVersion");
    *ret = (struct list_page){ items, version, text_of(meta, "continue") };
    return 0;
}

/* ---- deciding ---- */

int64_t backoff_next(struct backoff *b, int64_t now_ms, double chance)
{
    if (b->failures > 0 && now_ms - b->last_ms > HEALTHY_MS)
        b->failures = 0;
    int64_t pause = b->failures < 6 ? (int64_t)PAUSE_FIRST_MS << b->failures : PAUSE_MAX_MS;
    b->failures = MIN(b->failures + 1, 6);
    b->last_ms = now_ms;
    return MIN(pause + (int64_t)((double)pause * chance), PAUSE_MAX_MS);
}

static struct reflector_next after_list(const struct reflector_end *end)
{
    if (end->status == 410 && end->partial) /* the snapshot of its pages has expired */
        return (struct reflector_next){ REFLECTOR_LIST, PAUSE_NONE_ONCE };
    return (struct reflector_next){ REFLECTOR_LIST, PAUSE_FAILURE };
}

static struct reflector_next after_watch(const struct reflector_end *end)
{
    bool short_lived = end->events == 0 && end->lived_ms < SHORT_WATCH_MS;

    if (end->status == 410)
        return (struct reflector_next){ REFLECTOR_LIST, PAUSE_NONE_ONCE };
    if (end->futile >= FUTILE_MAX)
        return (struct reflector_next){ REFLECTOR_LIST, PAUSE_FAILURE };
    if (!end->in_stream && (end->status == 200 || end->status == 0)) /* ended or broken: continue where it stopped */
        return (struct reflector_next){ REFLECTOR_WATCH, short_lived ? PAUSE_FAILURE : PAUSE_NONE };
    if (end->in_stream && end->status == 0)
        return (struct reflector_next){ REFLECTOR_WATCH, PAUSE_FAILURE };
    if (!end->in_stream && (end->status == 429 || end->status == 503))
        return (struct reflector_next){ REFLECTOR_WATCH, PAUSE_FAILURE };
    return (struct reflector_next){ REFLECTOR_LIST, PAUSE_FAILURE };
}

struct reflector_next reflector_decide(const struct reflector_end *end)
{
    return end->watching ? after_watch(end) : after_list(end);
}
