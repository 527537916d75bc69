/* Runs LIST and WATCH one after the other and reports each change once. reflector_decide.c parses events and decides
 * the next step after the end of a list or watch. This file sends the requests and compares a relist with the user's
 * objects.
 */
#include "kube/reflector_internal.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/str.h"
#include "codec/json_prune.h"

enum { NOTHING_LOGGED = -1 };

/* Callbacks may free the reflector: while `busy` it is only marked as freed, and destroyed when they return. */
struct reflector {
    struct kube_client *client;
    struct loop *loop;
    struct kube_resource resource;
    char *ns, *labels, *fields, *name;
    struct strlist line_prune, page_prune;
    bool metadata_only;
    struct reflector_user user;

    char *version;    /* where the next watch continues */
    char *next;       /* of the next page, NULL: the first */
    struct map stale; /* "ns/name" -> struct stale: the user's objects that no page has listed yet */
    bool synced;
    char *trouble;
    int logged_status; /* the status that was logged last */

    struct kube_call *call;
    struct timer timer;
    struct backoff backoff;
    struct reflector_end end; /* of the current list or watch, as far as known */
    int64_t began_ms;
    uint64_t seed;
    int watch_s; /* 0: random for each watch */
    int busy;
    bool freed;
};

struct stale {
    char *ns, *name, *uid;
};

static void list(void *user);
static void watch(void *user);

/* ---- log messages ---- */

static void log_failure(struct reflector *r, int status, const char *what, const char *why)
{
    log_msg(r->logged_status == status ? LOG_DEBUG : LOG_WARNING, "%s: %s failed: %s; trying again", r->name, what,
            why);
    r->logged_status = status;
}

static void clear_failure(struct reflector *r)
{
    if (r->logged_status != NOTHING_LOGGED)
        log_info("%s: list and watch work again", r->name);
    r->logged_status = NOTHING_LOGGED;
    free(TAKE(r->trouble));
}

static void log_unavailable(struct reflector *r, int status, const char *why)
{
    const char *dot = r->resource.group[0] != '\0' ? "." : "";

    free(r->trouble);
    r->trouble = status == 404 ? xasprintf("the kind %s%s%s is not installed in the cluster (404); will keep retrying",
                                           r->resource.plural, dot, r->resource.group)
                               : xasprintf("%s%s%s may not be listed (%d): %s; will keep retrying", r->resource.plural,
                                           dot, r->resource.group, status, why);
    if (r->logged_status != status)
        log_warning("%s", r->trouble);
    r->logged_status = status;
}

/* ---- callbacks of the user ---- */

static void destroy(struct reflector *r);

static void notify_gone(struct reflector *r, const char *ns, const char *name, const char *uid, const json_t *last)
{
    if (!r->freed)
        r->user.on_gone(r->user.user, ns, name, uid, last);
}

static void notify_object(struct reflector *r, const json_t *object)
{
    if (!r->freed)
        r->user.on_object(r->user.user, object);
}

/* ---- the user's objects, which a relist must confirm ---- */

static void stale_free(struct stale *s)
{
    if (s == NULL)
        return;
    free(s->ns);
    free(s->name);
    free(s->uid);
    free(s);
}

static void stale_clear(struct reflector *r)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&r->stale, &i)) != NULL;)
        stale_free(slot->value);
    map_fini(&r->stale);
}

static char *stale_key(const char *ns, const char *name)
{
    return xasprintf("%s/%s", ns != NULL ? ns : "", name);
}

static void stale_add(void *reflector, const char *ns, const char *name, const char *uid)
{
    struct reflector *r = reflector;
    if (r->ns != NULL && !str_eq(ns, r->ns)) /* another reflector watches that namespace */
        return;
    auto_free char *key = stale_key(ns, name);
    struct stale *s = xcalloc(1, sizeof(*s));

    *s = (struct stale){ xstrdup(ns != NULL ? ns : ""), xstrdup(name), xstrdup(uid != NULL ? uid : "") };
    stale_free(map_put(&r->stale, key, s));
}

/* A page lists the object. If it is a new object of the same name, the former one is reported as deleted first. */
static void stale_resolve(struct reflector *r, const struct object_names *o)
{
    if (r->stale.n == 0)
        return;
    auto_free char *key = stale_key(o->ns, o->name);
    struct stale *s = map_remove(&r->stale, key);
    if (s != NULL && s->uid[0] != '\0' && strcmp(s->uid, o->uid) != 0)
        notify_gone(r, s->ns, s->name, s->uid, NULL);
    stale_free(s);
}

static void stale_report(struct reflector *r)
{
    struct map_slot *slot;
    for (size_t i = 0; (slot = map_next(&r->stale, &i)) != NULL;) {
        const struct stale *s = slot->value;
        notify_gone(r, s->ns, s->name, s->uid, NULL);
    }
    stale_clear(r);
}

/* ---- back-off ---- */

static double random_fraction(struct reflector *r)
{
    r->seed = hash64_mix(r->seed, (uint64_t)clock_ns());
    return (double)(r->seed >> 11) / 9007199254740992.0;
}

static int64_t pause_of(struct reflector *r, enum reflector_pause pause)
{
    int64_t now = loop_now(r->loop);
    bool first = r->backoff.failures == 0 || now - r->backoff.last_ms > HEALTHY_MS;

    if (pause == PAUSE_NONE)
        return 0;
    int64_t ms = backoff_next(&r->backoff, now, random_fraction(r));
    return pause == PAUSE_NONE_ONCE && first ? 0 : ms;
}

/* Not before the server's Retry-After. */
static void schedule_next(struct reflector *r, const struct kube_answer *a)
{
    r->end.lived_ms = loop_now(r->loop) - r->began_ms;
    struct reflector_next next = reflector_decide(&r->end);
    int64_t pause = pause_of(r, next.pause), asked = (int64_t)(a->retry_after_s * 1000);

    pause = MAX(pause, asked);
    log_debug("%s: %s again in %d ms", r->name, next.act == REFLECTOR_LIST ? "list" : "watch", (int)pause);
    timer_set(r->loop, &r->timer, loop_now(r->loop) + pause, next.act == REFLECTOR_LIST ? list : watch, r);
}

/* ---- listing ---- */

static void select_objects(const struct reflector *r, struct buf *path)
{
    if (r->labels != NULL)
        kube_query(path, "labelSelector", r->labels);
    if (r->fields != NULL)
        kube_query(path, "fieldSelector", r->fields);
}

static void list_failed(struct reflector *r, const struct kube_answer *a, const char *why)
{
    r->end.status = a->status;
    r->end.partial = r->next != NULL;
    free(TAKE(r->next));
    if (a->status == 403 || a->status == 404)
        log_unavailable(r, a->status, why);
    else if (a->status != 410)
        log_failure(r, a->status, "listing", why);
    schedule_next(r, a);
}

static void list_ended(struct reflector *r)
{
    stale_report(r);
    r->synced = true;
    if (!r->freed)
        clear_failure(r);
    if (!r->freed && r->user.on_synced != NULL)
        r->user.on_synced(r->user.user);
    if (!r->freed)
        watch(r);
}

static void handle_page(struct reflector *r, const struct list_page *page)
{
    size_t i;
    const json_t *item;

    json_array_foreach(page->items, i, item)
    {
        struct object_names names = object_names_of(item);
        stale_resolve(r, &names);
        notify_object(r, item);
    }
    if (r->next == NULL) {
        free(r->version);
        r->version = xstrdup(page->version);
    }
    free(r->next);
    r->next = page->next[0] != '\0' ? xstrdup(page->next) : NULL;
}

static void on_page(void *user, const struct kube_answer *a)
{
    struct reflector *r = user;
    struct list_page page;
    struct err e = { 0 };

    r->call = NULL;
    if (!kube_ok(a) || list_page_read(a->body, &page, &e) < 0) {
        list_failed(r, a, kube_ok(a) ? e.msg : a->message);
        return;
    }
    r->busy++;
    handle_page(r, &page);
    if (r->next == NULL)
        list_ended(r);
    else if (!r->freed)
        list(r);
    r->busy--;
    if (r->freed)
        destroy(r);
}

/* The next page. The first has no resourceVersion, so that the list is not older than the objects seen before. */
static void list(void *user)
{
    struct reflector *r = user;
    AUTO_FINI(buf) path = BUF_INIT;
    char limit[16];

    if (r->next == NULL) {
        stale_clear(r);
        r->user.each(r->user.user, stale_add, r);
        r->end = (struct reflector_end){ 0 };
        r->began_ms = loop_now(r->loop);
    }
    str_fmt(limit, sizeof(limit), "%d", REFLECTOR_PAGE);
    kube_path(&path, &r->resource, r->ns, NULL, NULL);
    kube_query(&path, "limit", limit);
    if (r->next != NULL)
        kube_query(&path, "continue", r->next);
    select_objects(r, &path);
    r->call = kube_send(r->client, &(struct kube_request){ .verb = KUBE_GET,
                                                           .priority = KUBE_NORMAL,
                                                           .path = path.data,
                                                           .metadata_only = r->metadata_only,
                                                           .prune = &r->page_prune,
                                                           .retry_ms = 10 * 1000,
                                                           .done = on_page,
                                                           .user = r });
}

/* ---- watching ---- */

static void handle_event(struct reflector *r, const struct watch_event *w)
{
    bool again = strcmp(w->version, r->version) == 0; /* a repeated event: each change has its own version */

    if (w->type == WATCH_STRANGE)
        return;
    r->end.events++;
    r->end.futile = 0;
    if (again)
        return;
    free(r->version);
    r->version = xstrdup(w->version);
    if (w->type == WATCH_DELETED)
        notify_gone(r, w->ns, w->name, w->uid, w->object);
    else if (w->type != WATCH_BOOKMARK)
        notify_object(r, w->object);
}

/* Ends the stream; on_end() follows. */
static bool end_stream(struct reflector *r, int status, const char *why)
{
    r->end.in_stream = true;
    r->end.status = status;
    r->end.futile++;
    if (status != 410)
        log_failure(r, status, "watching", why);
    return false;
}

static bool on_line(void *user, const char *line, size_t n)
{
    struct reflector *r = user;
    AUTO_FINI(watch_event) w = { 0 };
    AUTO_FINI(buf) shorter = BUF_INIT;
    struct err e;

    if (r->freed || r->end.in_stream)
        return false;
    json_prune(line, n, &r->line_prune, &shorter);
    if (watch_parse(shorter.data, shorter.len, &w, &e) < 0)
        return end_stream(r, 0, e.msg);
    if (w.type == WATCH_ERROR)
        return end_stream(r, w.code, w.message);
    r->busy++;
    clear_failure(r);
    handle_event(r, &w);
    r->busy--;
    return !r->freed; /* on_end() frees it */
}

static void on_end(void *user, const struct kube_answer *a)
{
    struct reflector *r = user;

    r->call = NULL;
    if (r->freed) {
        destroy(r);
        return;
    }
    if (!r->end.in_stream && err_is(a->err, ERR_STOPPED)) {
        end_stream(r, 0, "a line is too long");
    } else if (!r->end.in_stream) {
        r->end.status = a->status;
        if (a->status != 200 && a->status != 410 && (a->status != 0 || r->end.events == 0))
            log_failure(r, a->status, "watching", a->message);
    }
    schedule_next(r, a);
}

static void watch(void *user)
{
    struct reflector *r = user;
    AUTO_FINI(buf) path = BUF_INIT;
    char seconds[16];
    int timeout_s =
        r->watch_s > 0 ? r->watch_s : WATCH_MIN_S + (int)(random_fraction(r) * (WATCH_MAX_S - WATCH_MIN_S + 1));

    str_fmt(seconds, sizeof(seconds), "%d", timeout_s);
    kube_path(&path, &r->resource, r->ns, NULL, NULL);
    kube_query(&path, "watch", "true");
    kube_query(&path, "resourceVersion", r->version);
    kube_query(&path, "allowWatchBookmarks", "true");
    kube_query(&path, "timeoutSeconds", seconds);
    select_objects(r, &path);
    r->end = (struct reflector_end){ .watching = true, .futile = r->end.futile };
    r->began_ms = loop_now(r->loop);
    r->call = kube_watch(r->client, &(struct kube_stream){ .path = path.data,
                                                           .metadata_only = r->metadata_only,
                                                           .silence_ms = (int64_t)(timeout_s + WATCH_GRACE_S) * 1000,
                                                           .on_line = on_line,
                                                           .on_end = on_end,
                                                           .user = r });
}

/* ---- the interface ---- */

static char *copy(const char *s)
{
    return s != NULL ? xstrdup(s) : NULL;
}

static void add_pruned(struct reflector *r, const char *path)
{
    auto_free char *of_line = xasprintf("object.%s", path), *of_page = xasprintf("items.*.%s", path);

    strlist_add(&r->line_prune, of_line);
    strlist_add(&r->page_prune, of_page);
}

struct reflector *reflector_new(struct kube_client *k, const struct reflector_spec *spec,
                                const struct reflector_user *user)
{
    struct reflector *r = xcalloc(1, sizeof(*r));

    r->client = k;
    r->loop = kube_client_loop(k);
    r->resource = spec->resource;
    r->ns = copy(spec->ns);
    r->labels = copy(spec->label_selector);
    r->fields = copy(spec->field_selector);
    r->name = xstrdup(spec->name);
    r->metadata_only = spec->metadata_only;
    add_pruned(r, "metadata.managedFields");
    for (size_t i = 0; spec->prune != NULL && spec->prune[i] != NULL; i++)
        add_pruned(r, spec->prune[i]);
    r->user = *user;
    r->logged_status = NOTHING_LOGGED;
    r->seed = hash64_mix((uint64_t)clock_ns(), (uint64_t)getpid() ^ (uintptr_t)r);
    timer_set(r->loop, &r->timer, loop_now(r->loop), list, r);
    return r;
}

static void destroy(struct reflector *r)
{
    timer_clear(r->loop, &r->timer);
    kube_cancel(TAKE(r->call));
    stale_clear(r);
    strlist_fini(&r->line_prune);
    strlist_fini(&r->page_prune);
    char *const owned[] = { r->ns, r->labels, r->fields, r->name, r->version, r->next, r->trouble };
    for (size_t i = 0; i < COUNT_OF(owned); i++)
        free(owned[i]);
    free(r);
}

void reflector_free(struct reflector *r)
{
    if (r == NULL)
        return;
    if (r->busy > 0)
        r->freed = true;
    else
        destroy(r);
}

bool reflector_synced(const struct reflector *r)
{
    return r->synced;
}

const char *reflector_trouble(const struct reflector *r)
{
    return r->trouble;
}

void reflector_watch_for(struct reflector *r, int seconds)
{
    r->watch_s = seconds;
}

const char *reflector_version(const struct reflector *r)
{
    return r->version;
}
