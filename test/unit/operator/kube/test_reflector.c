#include "kube/reflector.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "check_main.h"
#include "kube/reflector_internal.h"
#include "test/fake/api_server.h"

/* ---- lines, pages, decisions: pure ---- */

static const struct {
    const char *line;
    int type; /* -1: refused */
} LINES[] = {
    { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}}", WATCH_ADDED },
    { "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}}", WATCH_MODIFIED },
    { "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}}", WATCH_DELETED },
    { "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}", WATCH_BOOKMARK },
    { "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}", WATCH_ERROR },
    { "{\"type\":\"PATCHED\",\"object\":{}}", WATCH_STRANGE },
    { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}", -1 },
    { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}", -1 },
    { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":5}}}", -1 },
    { "{\"type\":\"BOOKMARK\",\"object\":{}}", -1 },
    { "{\"type\":\"ADDED\",\"object\":[]}", -1 },
    { "{\"type\":7,\"object\":{}}", -1 },
    { "{\"object\":{}}", -1 },
    { "[]", -1 },
    { "", -1 },
    { "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVer", -1 },
};
START_TEST(a_line_is_an_event_or_refused)
{
    AUTO_FINI(watch_event) w = { 0 };
    struct err e;
    int got = watch_parse(LINES[_i].line, strlen(LINES[_i].line), &w, &e) < 0 ? -1 : (int)w.type;
    ck_assert_int_eq(got, LINES[_i].type);
}
END_TEST

START_TEST(an_error_says_its_code)
{
    static const struct {
        const char *line;
        int code;
    } ERRORS[] = {
        { "{\"type\":\"ERROR\",\"object\":{\"code\":410}}", 410 },
        { "{\"type\":\"ERROR\",\"object\":{\"code\":4294967706}}", 0 }, /* 410 + 2^32 */
        { "{\"type\":\"ERROR\",\"object\":{\"code\":-1}}", 0 },
        { "{\"type\":\"ERROR\",\"object\":{}}", 0 },
    };
    for (size_t i = 0; i < COUNT_OF(ERRORS); i++) {
        AUTO_FINI(watch_event) w = { 0 };
        struct err e;
        ck_ok_e(watch_parse(ERRORS[i].line, strlen(ERRORS[i].line), &w, &e));
        ck_assert_int_eq(w.code, ERRORS[i].code);
    }
}
END_TEST

START_TEST(a_page_is_a_list_with_a_version)
{
    static const struct {
        const char *body;
        bool ok;
    } PAGES[] = {
        { "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}", true },
        { "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}", true }, /* as Go writes an empty one */
        { "{\"metadata\":{\"resourceVersion\":\"5\"}}", false },
        { "{\"metadata\":{},\"items\":[]}", false },
        { "[]", false },
    };
    for (size_t i = 0; i < COUNT_OF(PAGES); i++) {
        json_auto_t *body = NULL;
        struct list_page page;
        struct err e;
        ck_ok_e(json_parse_any(PAGES[i].body, strlen(PAGES[i].body), "page", &body, &e));
        ck_assert_msg((list_page_read(body, &page, &e) == 0) == PAGES[i].ok, "%s", PAGES[i].body);
    }
}
END_TEST

#define WATCHED .watching = true
static const struct {
    const char *what;
    struct reflector_end end;
    enum reflector_act act;
    enum reflector_pause pause;
} ENDS[] = {
    { "its time is over", { WATCHED, .status = 200, .events = 3, .lived_ms = 400000 }, REFLECTOR_WATCH, PAUSE_NONE },
    { "quiet, its time is over", { WATCHED, .status = 200, .lived_ms = 400000 }, REFLECTOR_WATCH, PAUSE_NONE },
    { "over at once", { WATCHED, .status = 200, .lived_ms = 20 }, REFLECTOR_WATCH, PAUSE_FAILURE },
    { "cut after events", { WATCHED, .status = 0, .events = 1, .lived_ms = 20 }, REFLECTOR_WATCH, PAUSE_NONE },
    { "no connection", { WATCHED, .status = 0, .lived_ms = 3 }, REFLECTOR_WATCH, PAUSE_FAILURE },
    { "410", { WATCHED, .status = 410 }, REFLECTOR_LIST, PAUSE_NONE_ONCE },
    { "ERROR 410", { WATCHED, .in_stream = true, .status = 410, .events = 9 }, REFLECTOR_LIST, PAUSE_NONE_ONCE },
    { "ERROR 500", { WATCHED, .in_stream = true, .status = 500, .futile = 1 }, REFLECTOR_LIST, PAUSE_FAILURE },
    { "broken line", { WATCHED, .in_stream = true, .status = 0, .futile = 1 }, REFLECTOR_WATCH, PAUSE_FAILURE },
    { "always broken", { WATCHED, .in_stream = true, .status = 0, .futile = 5 }, REFLECTOR_LIST, PAUSE_FAILURE },
    { "429", { WATCHED, .status = 429 }, REFLECTOR_WATCH, PAUSE_FAILURE },
    { "503", { WATCHED, .status = 503 }, REFLECTOR_WATCH, PAUSE_FAILURE },
    { "500", { WATCHED, .status = 500 }, REFLECTOR_LIST, PAUSE_FAILURE },
    { "the kind is gone", { WATCHED, .status = 404 }, REFLECTOR_LIST, PAUSE_FAILURE },
    { "list: no connection", { .status = 0 }, REFLECTOR_LIST, PAUSE_FAILURE },
    { "list: 410 of a later page", { .status = 410, .partial = true }, REFLECTOR_LIST, PAUSE_NONE_ONCE },
    { "list: 410", { .status = 410 }, REFLECTOR_LIST, PAUSE_FAILURE },
    { "list: forbidden", { .status = 403 }, REFLECTOR_LIST, PAUSE_FAILURE },
    { "list: no such kind", { .status = 404 }, REFLECTOR_LIST, PAUSE_FAILURE },
};
START_TEST(what_follows_each_end)
{
    struct reflector_next next = reflector_decide(&ENDS[_i].end);
    ck_assert_msg(next.act == ENDS[_i].act && next.pause == ENDS[_i].pause, "%s: act %d, pause %d", ENDS[_i].what,
                  (int)next.act, (int)next.pause);
}
END_TEST

/* The server is unavailable for ten minutes: delays grow to 30 s and stay there. After two good minutes they are
 * short. */
START_TEST(pauses_grow_and_begin_again_after_two_good_minutes)
{
    static const int64_t PAUSES[] = { 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000 };
    struct backoff b = { 0 };
    int64_t now = 1000000, last = 0;
    for (size_t i = 0; i < COUNT_OF(PAUSES); i++) {
        int64_t pause = backoff_next(&b, now, 0);
        ck_assert_int_eq(pause, PAUSES[i]);
        last = now;
        now += pause;
    }
    ck_assert_int_eq(backoff_next(&b, last + 120000, 0.5), 30000);
    last += 120000;
    ck_assert_int_eq(backoff_next(&b, last + 120001, 0.5), 1200); /* jitter: up to as much again */
    ck_assert_int_eq(backoff_next(&b, last + 120001, 0), 1600);
}
END_TEST

/* ---- against a server ---- */

/* What a user of the reflector keeps, and the order in which it was notified: "+a@5 -b sync ". */
struct world {
    struct fake_api *api;
    struct kubeconfig *config;
    struct loop *loop;
    struct kube_client *client;
    struct reflector *reflector;
    struct map have; /* name -> uid */
    struct buf told;
    int synced;
    bool free_on_object, another; /* another one: it has an object of another namespace */
};

static void put(struct world *w, const char *name, const char *uid)
{
    free(map_put(&w->have, name, xstrdup(uid)));
}

static void on_object(void *user, const json_t *object)
{
    struct world *w = user;
    struct object_names o = object_names_of(object);
    buf_printf(&w->told, "+%s@%s ", o.name, o.version);
    put(w, o.name, o.uid);
    if (w->free_on_object)
        reflector_free(TAKE(w->reflector));
}

static void on_gone(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    struct world *w = user;
    (void)ns;
    buf_printf(&w->told, "-%s%s ", name, last == NULL ? "?" : "");
    if (str_eq(map_get(&w->have, name), uid))
        free(map_remove(&w->have, name));
}

static void each(void *user, void (*tell)(void *reflector, const char *ns, const char *name, const char *uid),
                 void *reflector)
{
    struct world *w = user;
    struct map_slot *s;
    for (size_t i = 0; (s = map_next(&w->have, &i)) != NULL;)
        tell(reflector, "default", s->key, s->value);
    if (w->another)
        tell(reflector, "other", "x", "9");
}

static void on_synced(void *user)
{
    struct world *w = user;
    buf_str(&w->told, "sync ");
    w->synced++;
}

static void world_init(struct world *w)
{
    *w = (struct world){ .api = fake_api_new(), .loop = loop_new(), .told = BUF_INIT };
    fake_api_share_clock(w->api, w->loop);
    w->config = fake_api_config(w->api, NULL);
    w->client = kube_client_new(w->loop, w->config, &(struct kube_settings){ .user_agent = "test" });
}

static void reflect(struct world *w)
{
    const struct reflector_spec pods = {
        .resource = { "", "v1", "pods", "Pod" }, .ns = "default", .label_selector = "a=b", .name = "pods"
    };
    w->reflector = reflector_new(w->client, &pods, &(struct reflector_user){ on_object, on_gone, each, on_synced, w });
}

static void world_fini(struct world *w)
{
    struct map_slot *s;
    reflector_free(w->reflector);
    kube_client_free(w->client);
    kubeconfig_free(w->config);
    loop_free(w->loop);
    fake_api_free(w->api);
    for (size_t i = 0; (s = map_next(&w->have, &i)) != NULL;)
        free(s->value);
    map_fini(&w->have);
    buf_fini(&w->told);
}
DEFINE_AUTO_FINI(world, world_fini);

#define ITEM(name, uid, rv)                                                                                            \
    "{\"metadata\":{\"namespace\":\"default\",\"name\":\"" name "\",\"uid\":\"" uid "\",\"resourceVersion\":\"" rv     \
    "\"}}"
#define LIST_OF(rv, next, items)                                                                                       \
    "{\"metadata\":{\"resourceVersion\":\"" rv "\",\"continue\":\"" next "\"},\"items\":[" items "]}"
#define EVENT_OF(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(rv)           EVENT_OF("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" rv "\"}}")
#define LISTS                  "/api/v1/namespaces/default/pods[?]limit=100*"
#define FIRST_PAGE             "/api/v1/namespaces/default/pods[?]limit=100&labelSelector*"
#define NEXT_PAGE(token)       "/api/v1/namespaces/default/pods[?]limit=100&continue=" token "&*"
#define WATCHES                "*watch=true*"
#define WATCH_FROM(rv)         "*watch=true&resourceVersion=" rv "&*"

static void answer(struct world *w, const char *pattern, const char *body, int times)
{
    fake_api_on(w->api, "GET", pattern, &(struct fake_answer){ .body = body, .times = times });
}

static void stream(struct world *w, const char *pattern, const char *body)
{
    fake_api_on(w->api, "GET", pattern, &(struct fake_answer){ .body = body, .open = true });
}

struct wanted {
    struct world *w;
    const char *told;
};
static bool was_told(void *user)
{
    const struct wanted *want = user;
    return strlen(want->w->told.data) >= strlen(want->told);
}
static void expect(struct world *w, const char *told)
{
    fake_until(w->loop, was_told, &(struct wanted){ w, told });
    ck_assert_str_eq(w->told.data, told);
}

#define START()                                                                                                        \
    AUTO_FINI(world) w;                                                                                                \
    world_init(&w)

START_TEST(pages_are_listed_and_then_watched)
{
    START();
    answer(&w, FIRST_PAGE, LIST_OF("7", "x/=1", ITEM("a", "1", "3") "," ITEM("b", "2", "4")), 0);
    answer(&w, NEXT_PAGE("x%2F%3D1"), LIST_OF("7", "", ITEM("c", "3", "2")), 0);
    stream(&w, WATCH_FROM("7"), EVENT_OF("MODIFIED", ITEM("b", "2", "8")));
    reflect(&w);
    ck_assert(!reflector_synced(w.reflector));
    expect(&w, "+a@3 +b@4 +c@2 sync +b@8 ");
    ck_assert(reflector_synced(w.reflector));
    ck_assert_ptr_null(reflector_trouble(w.reflector));

    fake_api_push(w.api, WATCHES, EVENT_OF("DELETED", ITEM("a", "1", "9")) EVENT_OF("ADDED", ITEM("d", "4", "10")));
    expect(&w, "+a@3 +b@4 +c@2 sync +b@8 -a +d@10 ");
    struct fake_request r;
    ck_assert(fake_api_request(w.api, "GET", WATCHES, 0, &r));
    ck_assert_msg(strstr(r.path, "allowWatchBookmarks=true") != NULL, "%s", r.path);
    ck_assert_msg(strstr(r.path, "labelSelector=a%3Db") != NULL, "%s", r.path);
    int seconds = 0;
    ck_assert_int_eq(sscanf(strstr(r.path, "timeoutSeconds="), "timeoutSeconds=%d", &seconds), 1);
    ck_assert_msg(seconds >= 300 && seconds <= 600, "%s", r.path);
    ck_assert(fake_api_request(w.api, "GET", LISTS, 0, &r));
    ck_assert_ptr_null(strstr(r.path, "resourceVersion"));
}
END_TEST

static void keep_object(void *user, const json_t *object)
{
    json_emit(object, user);
}
static void keep_last(void *user, const char *ns, const char *name, const char *uid, const json_t *last)
{
    (void)ns, (void)name, (void)uid;
    json_emit(last, user);
}
static void has_none(void *user, void (*tell)(void *reflector, const char *ns, const char *name, const char *uid),
                     void *reflector)
{
    (void)user, (void)tell, (void)reflector;
}
static bool kept_three(void *user)
{
    const struct buf *kept = user;
    size_t n = 0;
    for (const char *p = kept->data; (p = strstr(p, "nodeName")) != NULL; p++)
        n++;
    return n == 3;
}

#define LARGE(rv)                                                                                                      \
    "{\"metadata\":{\"name\":\"a\",\"managedFields\":[{\"f:spec\":{}}],\"resourceVersion\":\"" rv "\"},"               \
    "\"spec\":{\"volumes\":[{}],\"nodeName\":\"n\"}}"
#define SMALL(rv) "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"" rv "\"},\"spec\":{\"nodeName\":\"n\"}}"

START_TEST(what_nobody_looks_at_does_not_come)
{
    AUTO_FINI(buf) kept = BUF_INIT;
    static const char *const UNREAD[] = { "spec.volumes", NULL };
    const struct reflector_spec pods = {
        .resource = { "", "v1", "pods", "Pod" }, .ns = "default", .prune = UNREAD, .name = "pods"
    };
    START();
    fake_api_on(w.api, "GET", "*limit=100", &(struct fake_answer){ .body = LIST_OF("7", "", LARGE("3")) });
    stream(&w, WATCHES, EVENT_OF("MODIFIED", LARGE("8")) EVENT_OF("DELETED", LARGE("9")));
    w.reflector =
        reflector_new(w.client, &pods, &(struct reflector_user){ keep_object, keep_last, has_none, NULL, &kept });
    fake_until(w.loop, kept_three, &kept);
    ck_assert_str_eq(kept.data, SMALL("3") SMALL("8") SMALL("9"));
}
END_TEST

START_TEST(a_watch_cut_in_mid_event_goes_on_from_the_last_whole_one)
{
    START();
    answer(&w, LISTS, LIST_OF("7", "", ITEM("a", "1", "3")), 0);
    stream(&w, WATCH_FROM("7"), EVENT_OF("MODIFIED", ITEM("a", "1", "8")) "{\"type\":\"MODIFIED\",\"object\":{\"meta");
    stream(&w, WATCH_FROM("8"), EVENT_OF("MODIFIED", ITEM("a", "1", "8")) EVENT_OF("MODIFIED", ITEM("a", "1", "9")));
    reflect(&w);
    expect(&w, "+a@3 sync +a@8 ");
    fake_api_break(w.api, WATCHES);
    expect(&w, "+a@3 sync +a@8 +a@9 "); /* 8 was sent again, but not delivered again */
    ck_assert_uint_eq(fake_api_count(w.api, "GET", LISTS), 1);
}
END_TEST

START_TEST(bookmarks_move_the_place_to_go_on_from)
{
    START();
    answer(&w, LISTS, LIST_OF("7", "", ""), 0);
    stream(&w, WATCH_FROM("7"), BOOKMARK("20") BOOKMARK("31"));
    stream(&w, WATCH_FROM("31"), EVENT_OF("ADDED", ITEM("a", "1", "32")));
    reflect(&w);
    fake_api_wait(w.api, w.loop, "GET", WATCH_FROM("7"), 1);
    fake_pass(w.loop, 30);
    fake_api_end(w.api, WATCHES);
    expect(&w, "sync +a@32 ");
    ck_assert_uint_eq(fake_api_count(w.api, "GET", LISTS), 1);
}
END_TEST

/* While there was no watch, a was deleted, b was re-created under its name, c stayed, and d was created. */
static const char AFTER[] = LIST_OF("50", "", ITEM("b", "22", "40") "," ITEM("c", "3", "5") "," ITEM("d", "4", "41"));
#define BEFORE     LIST_OF("7", "", ITEM("a", "1", "3") "," ITEM("b", "2", "4") "," ITEM("c", "3", "5"))
#define TOLD_AFTER "+a@3 +b@4 +c@5 sync -b? +b@40 +c@5 +d@41 -a? sync "
static void check_after(struct world *w)
{
    expect(w, TOLD_AFTER);
    ck_assert_uint_eq(w->have.n, 3);
    ck_assert_str_eq(map_get(&w->have, "b"), "22");
    fake_api_wait(w->api, w->loop, "GET", WATCH_FROM("50"), 1);
}

START_TEST(gone_as_an_event_means_listing_again)
{
    START();
    answer(&w, LISTS, BEFORE, 1);
    answer(&w, LISTS, AFTER, 0);
    stream(&w, WATCH_FROM("50"), "");
    stream(&w, WATCH_FROM("7"),
           EVENT_OF("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"));
    reflect(&w);
    check_after(&w);
}
END_TEST

START_TEST(gone_as_an_answer_means_listing_again)
{
    START();
    answer(&w, LISTS, BEFORE, 1);
    answer(&w, LISTS, AFTER, 0);
    stream(&w, WATCH_FROM("50"), "");
    fake_api_on(w.api, "GET", WATCH_FROM("7"),
                &(struct fake_answer){ .status = 410, .body = "{\"kind\":\"Status\",\"code\":410}" });
    reflect(&w);
    check_after(&w);
}
END_TEST

START_TEST(gone_in_the_middle_of_the_pages_begins_the_list_anew)
{
    START();
    answer(&w, FIRST_PAGE, LIST_OF("7", "p2", ITEM("a", "1", "3") "," ITEM("b", "2", "4")), 1);
    fake_api_on(w.api, "GET", NEXT_PAGE("p2"),
                &(struct fake_answer){ .status = 410, .body = "{\"kind\":\"Status\",\"reason\":\"Expired\"}" });
    answer(&w, FIRST_PAGE, LIST_OF("9", "", ITEM("b", "2", "4")), 0);
    stream(&w, WATCH_FROM("9"), "");
    reflect(&w);
    expect(&w, "+a@3 +b@4 +b@4 -a? sync "); /* synced once, after the whole list */
    ck_assert_int_eq(w.synced, 1);
}
END_TEST

START_TEST(a_busy_server_is_asked_again_when_it_says)
{
    START();
    int64_t began = loop_now(w.loop);
    fake_api_on(w.api, "GET", LISTS,
                &(struct fake_answer){ .status = 429, .headers = "Retry-After: 1\r\n", .times = 1 });
    answer(&w, LISTS, LIST_OF("7", "", ITEM("a", "1", "3")), 0);
    stream(&w, WATCHES, "");
    reflect(&w);
    expect(&w, "+a@3 sync ");
    ck_assert_int_ge(loop_now(w.loop) - began, 1000);
    ck_assert_uint_eq(fake_api_count(w.api, "GET", LISTS), 2);
}
END_TEST

/* A watch as well; its own first delay is less than two seconds. */
START_TEST(a_server_too_busy_for_a_watch_is_asked_again_when_it_says)
{
    START();
    answer(&w, LISTS, LIST_OF("7", "", ""), 0);
    fake_api_on(w.api, "GET", WATCHES,
                &(struct fake_answer){ .status = 429, .headers = "Retry-After: 2\r\n", .times = 1 });
    stream(&w, WATCH_FROM("7"), EVENT_OF("ADDED", ITEM("a", "1", "8")));
    reflect(&w);
    expect(&w, "sync ");
    int64_t began = loop_now(w.loop);
    expect(&w, "sync +a@8 ");
    ck_assert_int_ge(loop_now(w.loop) - began, 1950);
    ck_assert_uint_eq(fake_api_count(w.api, "GET", LISTS), 1);
}
END_TEST

static bool has_trouble(void *user)
{
    return reflector_trouble(((struct world *)user)->reflector) != NULL;
}
START_TEST(a_missing_kind_is_said_in_words)
{
    START();
    fake_api_on(w.api, "GET", "/apis/kubeflow.org/v1/tfjobs*",
                &(struct fake_answer){ .status = 404, .body = "404 page not found" });
    const struct reflector_spec jobs = { .resource = { "kubeflow.org", "v1", "tfjobs", "TFJob" }, .name = "tfjobs" };
    w.reflector = reflector_new(w.client, &jobs, &(struct reflector_user){ on_object, on_gone, each, on_synced, &w });
    fake_until(w.loop, has_trouble, &w);
    ck_assert_str_eq(reflector_trouble(w.reflector),
                     "the kind tfjobs.kubeflow.org is not installed in the cluster (404); will keep retrying");
    ck_assert(!reflector_synced(w.reflector));
    fake_pass(w.loop, 30);
    ck_assert_uint_eq(fake_api_count(w.api, "GET", "*tfjobs*"), 1);
}
END_TEST

/* An API server that has just started does not have its roles for a moment; soon after, requests succeed. */
START_TEST(a_missing_right_is_said_in_words_until_it_is_there)
{
    START();
    answer(&w, LISTS, LIST_OF("7", "", ITEM("a", "1", "3")), 0);
    stream(&w, WATCHES, "");
    fake_api_on(w.api, "GET", LISTS,
                &(struct fake_answer){
                    .status = 403, .times = 1, .body = "{\"kind\":\"Status\",\"message\":\"pods is forbidden: no\"}" });
    reflect(&w);
    fake_until(w.loop, has_trouble, &w);
    ck_assert_str_eq(reflector_trouble(w.reflector),
                     "pods may not be listed (403): pods is forbidden: no; will keep retrying");
    expect(&w, "+a@3 sync ");
    ck_assert_ptr_null(reflector_trouble(w.reflector));
}
END_TEST

/* The user keeps what other reflectors of other namespaces delivered as well. */
START_TEST(what_is_in_another_namespace_is_not_gone)
{
    START();
    w.another = true;
    answer(&w, LISTS, LIST_OF("7", "", ITEM("a", "1", "3")), 0);
    stream(&w, WATCHES, "");
    reflect(&w);
    expect(&w, "+a@3 sync ");
    fake_pass(w.loop, 30);
    ck_assert_str_eq(w.told.data, "+a@3 sync ");
}
END_TEST

static bool is_quiet(void *user)
{
    return fake_api_streams(user, "*") == 0;
}
START_TEST(the_user_may_free_it_when_it_is_told)
{
    START();
    answer(&w, LISTS, LIST_OF("7", "", ITEM("a", "1", "3") "," ITEM("b", "2", "4")), 0);
    w.free_on_object = true;
    reflect(&w);
    expect(&w, "+a@3 ");
    ck_assert_uint_eq(fake_api_count(w.api, "GET", WATCHES), 0);

    w.told.len = 0; /* now by an event */
    w.free_on_object = false;
    answer(&w, LISTS, LIST_OF("7", "", ""), 0);
    stream(&w, WATCHES, EVENT_OF("ADDED", ITEM("c", "1", "8")) EVENT_OF("ADDED", ITEM("d", "1", "9")));
    buf_clear(&w.told);
    free(map_remove(&w.have, "a"));
    w.free_on_object = true;
    reflect(&w);
    expect(&w, "sync +c@8 ");
    fake_until(w.loop, is_quiet, w.api);
    ck_assert_str_eq(w.told.data, "sync +c@8 ");
}
END_TEST

/* The server stops and starts again: nothing is listed again, nothing is delivered twice. */
START_TEST(a_server_that_was_away_is_found_again)
{
    START();
    answer(&w, LISTS, LIST_OF("7", "", ITEM("a", "1", "3")), 0);
    stream(&w, WATCH_FROM("7"), EVENT_OF("MODIFIED", ITEM("a", "1", "8")));
    stream(&w, WATCH_FROM("8"), EVENT_OF("MODIFIED", ITEM("a", "1", "9")));
    reflect(&w);
    expect(&w, "+a@3 sync +a@8 ");
    fake_api_refuse(w.api, true);
    fake_pass(w.loop, 50);
    fake_api_refuse(w.api, false);
    expect(&w, "+a@3 sync +a@8 +a@9 ");
    ck_assert_uint_eq(fake_api_count(w.api, "GET", LISTS), 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("reflector");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, a_line_is_an_event_or_refused, 0, (int)COUNT_OF(LINES));
    tcase_add_test(t, an_error_says_its_code);
    tcase_add_test(t, a_page_is_a_list_with_a_version);
    tcase_add_loop_test(t, what_follows_each_end, 0, (int)COUNT_OF(ENDS));
    tcase_add_test(t, pauses_grow_and_begin_again_after_two_good_minutes);
    tcase_add_test(t, pages_are_listed_and_then_watched);
    tcase_add_test(t, what_nobody_looks_at_does_not_come);
    tcase_add_test(t, a_watch_cut_in_mid_event_goes_on_from_the_last_whole_one);
    tcase_add_test(t, bookmarks_move_the_place_to_go_on_from);
    tcase_add_test(t, gone_as_an_event_means_listing_again);
    tcase_add_test(t, gone_as_an_answer_means_listing_again);
    tcase_add_test(t, gone_in_the_middle_of_the_pages_begins_the_list_anew);
    tcase_add_test(t, a_busy_server_is_asked_again_when_it_says);
    tcase_add_test(t, a_server_too_busy_for_a_watch_is_asked_again_when_it_says);
    tcase_add_test(t, a_missing_kind_is_said_in_words);
    tcase_add_test(t, a_missing_right_is_said_in_words_until_it_is_there);
    tcase_add_test(t, what_is_in_another_namespace_is_not_gone);
    tcase_add_test(t, the_user_may_free_it_when_it_is_told);
    tcase_add_test(t, a_server_that_was_away_is_found_again);
    suite_add_tcase(s, t);
    return s;
}
