/* Sends requests and keeps their state: waiting, running, paused before a retry. The decisions are pure functions in
 * client_limits.c and client_queue.c. A callback may send, cancel, and free the client itself. */
#include "kube/client_calls.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/str.h"
#include "codec/json_prune.h"
#include "kube/kubeconfig_internal.h"

enum {
    AT_ONCE = 64, /* curl checks every handle when data arrives, and further requests would only wait in the server */
    TIMEOUT_MS = 30000,
    RETRY_MS = 60000,
    BODY_MAX = 64 << 20, /* a page of a hundred large objects */
    LINE_MAX_BYTES = 8 << 20,
    SPARE_MAX = 64,
    SPARE_BUF_MAX = 16384,
    WORDS_MAX = 300
};

#define PARTIAL(kind) "Accept: application/json;as=" kind ";g=meta.k8s.io;v=v1,application/json"

static const struct {
    const char *method, *type;
    bool manager; /* the query names the field manager */
} VERBS[] = {
    [KUBE_GET] = { "GET", NULL, false },
    [KUBE_CREATE] = { "POST", "Content-Type: application/json", true },
    [KUBE_MERGE_PATCH] = { "PATCH", "Content-Type: application/merge-patch+json", true },
    [KUBE_STRATEGIC_PATCH] = { "PATCH", "Content-Type: application/strategic-merge-patch+json", true },
    [KUBE_JSON_PATCH] = { "PATCH", "Content-Type: application/json-patch+json", true },
    [KUBE_DELETE] = { "DELETE", "Content-Type: application/json", false },
    [KUBE_UPDATE] = { "PUT", "Content-Type: application/json", true },
};

/* ---- lists of calls ---- */

static struct call_list *call_list_of(struct kube_call *c)
{
    struct kube_client *k = c->k;
    return c->state == WAITING ? &k->waiting[c->priority] : c->state == RUNNING ? &k->running : &k->paused;
}

static void list_add(struct call_list *l, struct kube_call *c, bool in_front)
{
    c->prev = in_front ? NULL : l->last;
    c->next = in_front ? l->first : NULL;
    *(c->prev != NULL ? &c->prev->next : &l->first) = c;
    *(c->next != NULL ? &c->next->prev : &l->last) = c;
}

static void list_remove(struct call_list *l, struct kube_call *c)
{
    *(c->prev != NULL ? &c->prev->next : &l->first) = c->next;
    *(c->next != NULL ? &c->next->prev : &l->last) = c->prev;
}

static bool is_limited(const struct kube_call *c)
{
    return !c->stream && c->priority != KUBE_URGENT;
}

static void call_move(struct kube_call *c, enum call_state to, bool in_front)
{
    if (c->state != OVER)
        list_remove(call_list_of(c), c);
    if (c->state == RUNNING && is_limited(c)) {
        c->k->limited--;
        c->k->shares.running[c->priority]--;
    }
    c->state = to;
    if (to != OVER)
        list_add(call_list_of(c), c, in_front);
    if (to == RUNNING && is_limited(c)) {
        c->k->limited++;
        c->k->shares.running[c->priority]++;
    }
}

static struct kube_call *call_new(struct kube_client *k)
{
    struct kube_call *c = k->spare.last;

    if (c != NULL) {
        list_remove(&k->spare, c);
        k->nspare--;
    } else {
        c = xcalloc(1, sizeof(*c));
        c->url = c->body = c->line = (struct buf)BUF_INIT;
    }
    struct buf url = c->url, body = c->body, line = c->line;
    *c = (struct kube_call){ .k = k, .state = OVER, .url = url, .body = body, .line = line };
    buf_clear(&c->url);
    buf_clear(&c->body);
    buf_clear(&c->line);
    return c;
}

static void call_free(struct kube_call *c)
{
    buf_fini(&c->url);
    buf_fini(&c->body);
    buf_fini(&c->line);
    free(c);
}

static void call_recycle(struct kube_call *c)
{
    struct kube_client *k = c->k;

    if (k->nspare >= SPARE_MAX || c->url.cap + c->body.cap + c->line.cap > SPARE_BUF_MAX) {
        call_free(c);
        return;
    }
    list_add(&k->spare, c, false);
    k->nspare++;
}

/* No longer waiting, running or paused. */
static void call_unlist(struct kube_call *c)
{
    call_move(c, OVER, false);
    timer_clear(c->k->loop, &c->pause);
    if (!c->stream)
        c->k->pending[c->priority]--;
}

/* ---- callbacks may call any function of the client ---- */

static void start_waiting_calls(struct kube_client *k);
static void client_destroy(struct kube_client *k);

static void callbacks_begin(struct kube_client *k)
{
    k->depth++;
}

static void callbacks_end(struct kube_client *k)
{
    if (k->depth == 1 && !k->dead)
        start_waiting_calls(k);
    if (--k->depth == 0 && k->dead)
        client_destroy(k);
}

static void on_pump(void *user)
{
    struct kube_client *k = user;
    callbacks_begin(k);
    callbacks_end(k);
}

void client_pump_soon(struct kube_client *k)
{
    if (k->depth == 0 && !(timer_is_set(&k->pump) && k->pump.due_ms <= loop_now(k->loop)))
        timer_set(k->loop, &k->pump, loop_now(k->loop), on_pump, k);
}

/* ---- answers ---- */

static const char *string_member(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s != NULL ? s : "";
}

/* The beginning of an error body that is not a Status, for example from a proxy. */
static const char *plain_text_of(const struct http_answer *a, char out[WORDS_MAX])
{
    size_t n = 0;

    for (const char *p = a->body; *p != '\0' && n < WORDS_MAX - 1; p++)
        if (*p > ' ' || n > 0)
            out[n++] = (char)(*p >= ' ' && *p <= '~' ? *p : ' ');
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    if (n == 0)
        str_fmt(out, WORDS_MAX, "the API server answered with status %d and no message", a->status);
    return out;
}

/* NULL: not JSON. */
static json_t *parse_body(const struct kube_call *c, const struct http_answer *a)
{
    AUTO_FINI(buf) shorter = BUF_INIT;
    const char *text = a->body;
    size_t n = a->len;
    json_t *body = NULL;

    if (n == 0 || (text[0] != '{' && text[0] != '['))
        return NULL;
    if (c->prune != NULL) {
        json_prune(text, n, c->prune, &shorter);
        text = shorter.data;
        n = shorter.len;
    }
    return json_parse_any(text, n, "answer", &body, NULL) == 0 ? body : NULL;
}

static void call_finish(struct kube_call *c, const struct http_answer *a)
{
    json_auto_t *body = NULL;
    char words[WORDS_MAX];
    struct kube_answer answer = { .status = a->status,
                                  .reason = "",
                                  .message = "",
                                  .err = a->err,
                                  .warnings = a->warnings != NULL ? a->warnings : "",
                                  .retry_after_s = MIN(a->retry_after_s, RETRY_AFTER_MAX_S) };

    if (!c->discard_body || !kube_ok(&answer))
        answer.body = body = parse_body(c, a);
    if (a->status == 0)
        answer.message = a->err->msg;
    else if (!kube_ok(&answer) && body != NULL) {
        answer.reason = string_member(body, "reason");
        answer.message = string_member(body, "message");
    }
    if (!kube_ok(&answer) && answer.message[0] == '\0')
        answer.message = plain_text_of(a, words);
    call_unlist(c);
    c->done(c->user, &answer);
    call_recycle(c);
}

static void call_fail(struct kube_call *c, const struct err *e)
{
    call_finish(c, &(struct http_answer){ .status = 0, .body = "", .err = e });
}

static double random_fraction(struct kube_client *k)
{
    k->random = hash64_mix(k->random, 1);
    return (double)(k->random >> 11) / (double)(UINT64_C(1) << 53);
}

static void on_pause_over(void *user)
{
    struct kube_call *c = user;
    struct kube_client *k = c->k;

    callbacks_begin(k);
    call_move(c, WAITING, true);
    callbacks_end(k);
}

/* true: the call will be retried, and waits or is in its back-off. */
static bool schedule_retry(struct kube_call *c, const struct http_answer *a, int64_t now_ms)
{
    if (a->status == 401 && !c->renewed) {
        c->refused = c->renewed = true;
        call_move(c, WAITING, true);
        return true;
    }
    if (c->stream || c->retry_ms < 0 || !retry_wanted(a))
        return false;
    int64_t pause = retry_pause_ms(c->tries, a->retry_after_s, random_fraction(c->k));
    if (now_ms + pause > c->first_ms + c->retry_ms)
        return false;
    log_debug("%s %s: %s, try %d in %lld ms", VERBS[c->verb].method, c->url.data, a->status != 0 ? "busy" : a->err->msg,
              c->tries + 1, (long long)pause);
    call_move(c, PAUSED, false);
    timer_set(c->k->loop, &c->pause, now_ms + pause, on_pause_over, c);
    return true;
}

static void adjust_concurrency(struct kube_client *k, const struct kube_call *c, int status, int64_t now_ms)
{
    if (is_limited(c) && concurrency_limit_answer(&k->concurrency, status, k->limited, c->began_ms, now_ms))
        log_debug("API server %s is overloaded (429): %d concurrent requests", kubeconfig_server(k->config),
                  concurrency_limit_now(&k->concurrency));
}

static void on_answer(void *user, const struct http_answer *a)
{
    struct kube_call *c = user;
    struct kube_client *k = c->k;
    int64_t now_ms = loop_now(k->loop);

    callbacks_begin(k);
    c->http = NULL;
    client_metrics_request(k->metrics, VERBS[c->verb].method, a->status);
    if (!c->stream)
        client_metrics_duration(k->metrics, VERBS[c->verb].method, now_ms - c->began_ms);
    adjust_concurrency(k, c, a->status, now_ms);
    if (!c->stream && a->date_ms > 0)
        server_time_observe(&k->time, a->date_ms, c->began_ms, now_ms);
    if (!schedule_retry(c, a, now_ms)) {
        if (a->status == 0 && !err_is(a->err, ERR_STOPPED)) {
            struct err e = *a->err;
            err_prefix(&e, "API server %s", kubeconfig_server(k->config));
            call_fail(c, &e);
        } else {
            call_finish(c, a);
        }
    }
    callbacks_end(k);
}

/* ---- lines of a stream ---- */

/* false: the stream ends. */
static bool deliver_line(struct kube_call *c, const char *line, size_t n)
{
    return n == 0 || (c->on_line(c->user, line, n) && c->state != OVER);
}

static bool deliver_lines(struct kube_call *c, const char *data, size_t n)
{
    for (const char *end; n > 0 && (end = memchr(data, '\n', n)) != NULL;) {
        size_t len = (size_t)(end - data);
        bool go_on;
        if (c->line.len > 0) {
            buf_add(&c->line, data, len);
            go_on = deliver_line(c, c->line.data, c->line.len);
            buf_clear(&c->line);
        } else {
            go_on = deliver_line(c, data, len);
        }
        if (!go_on)
            return false;
        data += len + 1;
        n -= len + 1;
    }
    if (n > LINE_MAX_BYTES - c->line.len)
        return false;
    buf_add(&c->line, data, n);
    return true;
}

static bool on_stream_data(void *user, const char *data, size_t n)
{
    struct kube_call *c = user;
    struct kube_client *k = c->k;

    callbacks_begin(k);
    c->busy = true;
    bool go_on = deliver_lines(c, data, n);
    c->busy = false;
    if (c->state == OVER) { /* cancelled by the callback */
        call_recycle(c);
        go_on = false;
    }
    callbacks_end(k);
    return go_on;
}

/* ---- sending ---- */

static const char *accept_header(const struct kube_call *c)
{
    if (!c->metadata_only)
        return "Accept: application/json";
    const char *path = c->url.data + strlen(kubeconfig_server(c->k->config));
    bool list = c->verb == KUBE_GET && !c->stream && kube_path_is_list(path);
    return list ? PARTIAL("PartialObjectMetadataList") : PARTIAL("PartialObjectMetadata");
}

/* Sets the token, and new certificates if a plugin returned any. */
static int authorize(struct kube_client *k, struct kube_call *c, int64_t now_ms, struct err *e)
{
    const char *token = NULL;
    bool refused = c->refused && c->began_ms >= k->renewed_ms;

    c->refused = false;
    if (kubeconfig_token(k->config, now_ms, refused, &token, e) < 0)
        return -1;
    if (refused)
        k->renewed_ms = loop_now(k->loop);
    if (k->tls_version != kubeconfig_tls_version(k->config)) {
        k->tls_version = kubeconfig_tls_version(k->config);
        http_client_set_tls(k->http, kubeconfig_tls(k->config));
    }
    buf_clear(&k->authorization);
    if (token != NULL) {
        buf_str(&k->authorization, "Authorization: Bearer ");
        buf_str(&k->authorization, token);
    }
    return 0;
}

static void start_call(struct kube_client *k, struct kube_call *c, int64_t now_ms)
{
    struct err e;
    const char *headers[8];
    size_t n = 0;

    call_move(c, RUNNING, false);
    c->busy = true;
    int authorized = authorize(k, c, now_ms, &e);
    c->busy = false;
    if (c->state == OVER) { /* certificates changed and all running requests failed; a callback cancelled this one */
        call_recycle(c);
        return;
    }
    if (authorized < 0) {
        call_fail(c, &e);
        return;
    }
    c->began_ms = loop_now(k->loop);
    if (c->tries++ == 0) {
        c->first_ms = c->began_ms;
        if (is_limited(c) && k->bucket.qps > 0)
            client_metrics_waited(k->metrics, VERBS[c->verb].method, c->began_ms - c->queued_ms);
    }
    headers[n++] = accept_header(c);
    headers[n++] = k->agent;
    if (k->authorization.len > 0)
        headers[n++] = k->authorization.data;
    if (c->has_body)
        headers[n++] = VERBS[c->verb].type;
    if (c->verb == KUBE_GET && !c->stream)
        headers[n++] = "Accept-Encoding: gzip";
    headers[n] = NULL;
    c->http = http_client_start(k->http, &(struct http_transfer){ .method = VERBS[c->verb].method,
                                                                  .url = c->url.data,
                                                                  .headers = headers,
                                                                  .body = c->has_body ? c->body.data : NULL,
                                                                  .body_len = c->body.len,
                                                                  .timeout_ms = c->stream ? 0 : c->timeout_ms,
                                                                  .silence_ms = c->stream ? c->timeout_ms : 0,
                                                                  .max_body = BODY_MAX,
                                                                  .on_data = c->stream ? on_stream_data : NULL,
                                                                  .on_done = on_answer,
                                                                  .user = c });
}

static void start_waiting_calls(struct kube_client *k)
{
    int64_t now_ms = loop_now(k->loop), wait = 0;

    for (struct kube_call *c; !k->dead && (c = client_next(k, now_ms, &wait)) != NULL;)
        start_call(k, c, now_ms);
    if (k->dead)
        return;
    if (wait > 0)
        timer_set(k->loop, &k->pump, now_ms + wait, on_pump, k);
    else
        timer_clear(k->loop, &k->pump);
}

static struct kube_call *enqueue(struct kube_call *c, const char *path, void *user)
{
    struct kube_client *k = c->k;

    buf_str(&c->url, kubeconfig_server(k->config));
    buf_str(&c->url, path);
    if (VERBS[c->verb].manager && k->manager != NULL)
        kube_query(&c->url, "fieldManager", k->manager);
    c->user = user;
    c->queued_ms = loop_now(k->loop);
    if (!c->stream)
        k->pending[c->priority]++;
    call_move(c, WAITING, false);
    client_pump_soon(k);
    return c;
}

struct kube_call *kube_send(struct kube_client *k, const struct kube_request *r)
{
    struct kube_call *c = call_new(k);

    c->verb = r->verb;
    c->priority = r->priority;
    c->metadata_only = r->metadata_only;
    c->discard_body = r->discard_body;
    c->prune = r->prune;
    c->timeout_ms = r->timeout_ms > 0 ? r->timeout_ms : TIMEOUT_MS;
    c->retry_ms = r->retry_ms != 0 ? r->retry_ms : RETRY_MS;
    c->has_body = r->body != NULL;
    if (c->has_body)
        json_emit(r->body, &c->body);
    c->done = r->done;
    return enqueue(c, r->path, r->user);
}

struct kube_call *kube_watch(struct kube_client *k, const struct kube_stream *s)
{
    struct kube_call *c = call_new(k);

    c->verb = KUBE_GET;
    c->priority = KUBE_URGENT; /* no rate limit */
    c->stream = true;
    c->metadata_only = s->metadata_only;
    c->timeout_ms = s->silence_ms;
    c->on_line = s->on_line;
    c->done = s->on_end;
    return enqueue(c, s->path, s->user);
}

void kube_cancel(struct kube_call *c)
{
    if (c == NULL || c->state == OVER)
        return;
    struct kube_client *k = c->k;
    http_client_cancel(TAKE(c->http));
    call_unlist(c);
    if (!c->busy)
        call_recycle(c);
    if (!k->dead)
        client_pump_soon(k);
}

size_t kube_call_bytes(const struct kube_call *c)
{
    return c->body.len;
}

size_t kube_pending(const struct kube_client *k, enum kube_priority priority)
{
    return k->pending[priority];
}

/* ---- life ---- */

struct kube_client *kube_client_new(struct loop *l, struct kubeconfig *config, const struct kube_settings *s)
{
    struct kube_client *k = xcalloc(1, sizeof(*k));
    const char *server = kubeconfig_server(config);

    k->loop = l;
    k->config = config;
    k->concurrency = concurrency_limit_of(s->at_once > 0 ? s->at_once : AT_ONCE);
    k->http = http_client_new(l, kubeconfig_tls(config), str_starts(server, "https:"),
                              0); /* the number of watches is not limited */
    k->tls_version = kubeconfig_tls_version(config);
    k->metrics = client_metrics_new(s->registry, server);
    k->manager = s->field_manager != NULL ? xstrdup(s->field_manager) : NULL;
    k->agent = xasprintf("User-Agent: %s", s->user_agent != NULL ? s->user_agent : "trainyard");
    k->authorization = (struct buf)BUF_INIT;
    k->bucket = bucket_of(s->qps, s->burst, loop_now(k->loop));
    k->random = hash64_mix((uint64_t)clock_ns(), (uint64_t)(uintptr_t)k);
    k->time = server_time_of((int64_t)(clock_wall() * 1000), loop_now(k->loop));
    k->renewed_ms = INT64_MIN;
    return k;
}

static struct kube_call *first_call(const struct kube_client *k)
{
    for (int u = 0; u < KUBE_PRIORITIES; u++)
        if (k->waiting[u].first != NULL)
            return k->waiting[u].first;
    return k->running.first != NULL ? k->running.first : k->paused.first;
}

static void client_destroy(struct kube_client *k)
{
    for (struct kube_call *c; (c = k->spare.first) != NULL;) {
        list_remove(&k->spare, c);
        call_free(c);
    }
    for (int u = 0; u < KUBE_PRIORITIES; u++)
        while (k->tickets[u].first != NULL)
            kube_ticket_cancel(k->tickets[u].first);
    timer_clear(k->loop, &k->pump);
    client_metrics_free(k->metrics);
    free(k->manager);
    free(k->agent);
    buf_fini(&k->authorization);
    free(k);
}

void kube_client_free(struct kube_client *k)
{
    if (k == NULL)
        return;
    k->dead = true;
    callbacks_begin(k);
    for (struct kube_call *c; (c = first_call(k)) != NULL;)
        kube_cancel(c);
    http_client_free(k->http);
    callbacks_end(k);
}

struct loop *kube_client_loop(const struct kube_client *k)
{
    return k->loop;
}

int64_t kube_client_time(const struct kube_client *k)
{
    return server_time_at(&k->time, loop_now(k->loop));
}

const char *kube_client_namespace(const struct kube_client *k)
{
    return kubeconfig_namespace(k->config);
}
