/* libcurl's multi interface on the event loop. User callbacks never run inside curl: data and results are kept until
 * curl has returned, so a callback may start and cancel any transfer. */
#include "kube/http_client_internal.h"

enum {
    STREAMS_MAX = 250,
    SPARE_MAX = 64,        /* handles kept for the next transfers */
    SPARE_BODY_MAX = 8192, /* the memory of a larger body is freed */
    STREAM_BODY_MAX = 65536,
};

/* ---- lists ---- */

static void list_add(struct http_call_list *l, struct http_call *c)
{
    c->next = NULL;
    c->prev = l->last;
    if (l->last != NULL)
        l->last->next = c;
    else
        l->first = c;
    l->last = c;
    l->n++;
}

static void list_remove(struct http_call_list *l, struct http_call *c)
{
    *(c->prev != NULL ? &c->prev->next : &l->first) = c->next;
    *(c->next != NULL ? &c->next->prev : &l->last) = c->prev;
    c->prev = c->next = NULL;
    l->n--;
}

/* ---- from curl to the loop ---- */

static void deliver_and_finish(struct http_client *h);
static void on_call_timer(void *user);

static void on_ready(void *user, int fd, int ready)
{
    struct http_client *h = user;
    int mask = ((ready & LOOP_READ) != 0 ? CURL_CSELECT_IN : 0) | ((ready & LOOP_WRITE) != 0 ? CURL_CSELECT_OUT : 0), n;

    curl_multi_socket_action(h->multi, fd, mask, &n);
    deliver_and_finish(h);
}

static void on_timer(void *user)
{
    struct http_client *h = user;
    int n;

    curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &n);
    deliver_and_finish(h);
}

static int curl_timer(CURLM *multi, long timeout_ms, void *user)
{
    struct http_client *h = user;
    (void)multi;

    if (timeout_ms < 0)
        timer_clear(h->loop, &h->timer);
    else
        timer_set(h->loop, &h->timer, loop_now(h->loop) + timeout_ms, on_timer, h);
    return 0;
}

static void socket_remove(struct http_client *h, struct socket_watch *s)
{
    loop_fd_clear(h->loop, &s->on);
    *(s->prev != NULL ? &s->prev->next : &h->sockets) = s->next;
    if (s->next != NULL)
        s->next->prev = s->prev;
    free(s);
}

static int curl_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *of_socket)
{
    struct http_client *h = user;
    struct socket_watch *s = of_socket;
    struct err e;
    (void)easy;

    if (what == CURL_POLL_REMOVE) {
        if (s != NULL)
            socket_remove(h, s);
        return 0;
    }
    if (s == NULL) {
        s = xcalloc(1, sizeof(*s));
        s->on = (struct loop_fd){ .fd = fd, .fn = on_ready, .user = h };
        s->next = h->sockets;
        if (s->next != NULL)
            s->next->prev = s;
        h->sockets = s;
        curl_multi_assign(h->multi, fd, s);
    }
    s->on.wanted = ((what & CURL_POLL_IN) != 0 ? LOOP_READ : 0) | ((what & CURL_POLL_OUT) != 0 ? LOOP_WRITE : 0);
    if (loop_fd_set(h->loop, &s->on, &e) < 0)
        loop_fail(h->loop, &e);
    return 0;
}

static CURLM *multi_new(struct http_client *h)
{
    CURLM *m = curl_multi_init();

    if (m == NULL)
        abort(); /* out of memory for a few hundred bytes */
    curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, curl_socket);
    curl_multi_setopt(m, CURLMOPT_SOCKETDATA, h);
    curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, curl_timer);
    curl_multi_setopt(m, CURLMOPT_TIMERDATA, h);
    curl_multi_setopt(m, CURLMOPT_PIPELINING, h->http2 ? (long)CURLPIPE_MULTIPLEX : (long)CURLPIPE_NOTHING);
    curl_multi_setopt(m, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS_MAX);
    if (h->at_once > 0)
        curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, (long)MAX(h->at_once, 4));
    return m;
}

static void multi_free(struct http_client *h)
{
    curl_multi_cleanup(h->multi);
    while (h->sockets != NULL)
        socket_remove(h, h->sockets);
    timer_clear(h->loop, &h->timer);
}

/* ---- received data ---- */

static void note_activity(struct http_call *c)
{
    c->heard_ms = c->http->heard_ms = loop_now(c->http->loop);
}

static bool is_streaming(const struct http_call *c)
{
    long status = 0;
    return c->t.on_data != NULL && curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
           status == 200;
}

static size_t curl_write(char *data, size_t size, size_t n, void *user)
{
    struct http_call *c = user;
    (void)size;

    note_activity(c);
    if (is_streaming(c)) {
        if (!c->fresh) {
            c->fresh = true;
            c->next_fresh = c->http->fresh;
            c->http->fresh = c;
        }
    } else if (n > c->t.max_body - MIN(c->body.len, c->t.max_body)) {
        c->too_large = true;
        return 0;
    }
    buf_add(&c->body, data, n);
    return n;
}

static size_t curl_header(char *data, size_t size, size_t n, void *user)
{
    (void)data;
    (void)size;
    note_activity(user);
    return n;
}

/* ---- handles ---- */

static struct http_call *acquire_handle(struct http_client *h)
{
    struct http_call *c = h->spare.last;

    if (c != NULL) {
        list_remove(&h->spare, c);
        return c;
    }
    c = xcalloc(1, sizeof(*c));
    c->head = c->to = c->sent = c->body = c->warnings = (struct buf)BUF_INIT;
    c->http = h;
    c->easy = http_easy_new(c, curl_write, curl_header);
    return c;
}

static void call_free(struct http_call *c)
{
    curl_easy_cleanup(c->easy);
    buf_fini(&c->head);
    buf_fini(&c->to);
    buf_fini(&c->sent);
    buf_fini(&c->body);
    buf_fini(&c->warnings);
    free(c);
}

static void limit_capacity(struct buf *b, size_t most)
{
    if (b->cap > most)
        buf_fini(b);
}

static void recycle_handle(struct http_call *c)
{
    limit_capacity(&c->sent, SPARE_BODY_MAX);
    limit_capacity(&c->body, SPARE_BODY_MAX);
    if (c->http->spare.n < SPARE_MAX)
        list_add(&c->http->spare, c);
    else
        call_free(c);
}

/* ---- requests ---- */

static void start_transfer(struct http_client *h, struct http_call *c)
{
    list_remove(&h->queued, c);
    list_add(&h->running, c);
    c->state = RUNNING;
    c->set_of_connections = h->set_of_connections;
    c->began_ms = c->heard_ms = loop_now(h->loop);
    if (c->tls_version != h->tls_version && !c->own_tls)
        http_set_tls_of(c);
    c->tls_version = h->tls_version;
    if (c->t.timeout_ms > 0 || c->t.silence_ms > 0)
        timer_set(h->loop, &c->timer, c->began_ms, on_call_timer, c);
    c->attached = curl_multi_add_handle(h->multi, c->easy) == CURLM_OK;
    if (!c->attached)
        abort(); /* no memory, or a bug */
    loop_clock(h->loop)->transfers++;
}

static void start_queued(struct http_client *h)
{
    while (!h->dead && h->queued.first != NULL && (h->at_once <= 0 || h->running.n < (size_t)h->at_once))
        start_transfer(h, h->queued.first);
}

struct http_call *http_client_start(struct http_client *h, const struct http_transfer *t)
{
    struct http_call *c = acquire_handle(h);

    if (t->tls != NULL)
        http_set_own_tls(c, t->tls);
    else if (c->own_tls)
        http_set_tls_of(c);
    c->own_tls = t->tls != NULL;
    c->t = *t;
    c->t.method = c->t.url = c->t.body = NULL;
    c->t.headers = NULL;
    c->t.tls = NULL;
    c->too_large = false;
    c->trouble[0] = '\0';
    buf_clear(&c->body);
    http_set_request(c, t);
    c->state = QUEUED;
    list_add(&h->queued, c);
    start_queued(h);
    return c;
}

/* ---- ends ---- */

static void unlist_fresh(struct http_call *c)
{
    struct http_call **p = &c->http->fresh;

    if (!c->fresh)
        return;
    while (*p != c)
        p = &(*p)->next_fresh;
    *p = c->next_fresh;
    c->fresh = false;
}

/* Removes it from its list and from curl; the caller recycles the handle. */
static void detach_call(struct http_call *c)
{
    struct http_client *h = c->http;

    list_remove(c->state == RUNNING ? &h->running : &h->queued, c);
    loop_clock(h->loop)->transfers -= c->state == RUNNING;
    c->state = OVER;
    timer_clear(h->loop, &c->timer);
    unlist_fresh(c);
    if (c->attached)
        curl_multi_remove_handle(h->multi, c->easy);
    c->attached = false;
}

static void callbacks_begin(struct http_client *h)
{
    h->depth++;
}

static void client_destroy(struct http_client *h);

static void callbacks_end(struct http_client *h)
{
    start_queued(h);
    if (--h->depth == 0 && h->dead)
        client_destroy(h);
}

static void report_done(struct http_call *c, const struct http_answer *a)
{
    c->t.on_done(c->t.user, a);
    if (!c->busy) /* else deliver_data() does */
        recycle_handle(c);
}

#define fail_call(c, code, ...)                                                                                        \
    do {                                                                                                               \
        struct err why_;                                                                                               \
        err_put(&why_, (code), __VA_ARGS__);                                                                           \
        detach_call(c);                                                                                                \
        report_done((c), &(struct http_answer){ .status = 0, .body = "", .err = &why_ });                              \
    } while (0)

static const struct {
    CURLcode result;
    enum err_code code;
} RESULTS[] = {
    /* everything else is ERR_LOST */
    { CURLE_OPERATION_TIMEDOUT, ERR_TIMEOUT },
    { CURLE_OUT_OF_MEMORY, ERR_NOMEM },
    { CURLE_PEER_FAILED_VERIFICATION, ERR_INPUT },
    { CURLE_SSL_CERTPROBLEM, ERR_INPUT },
    { CURLE_SSL_CACERT_BADFILE, ERR_INPUT },
    { CURLE_SSL_ISSUER_ERROR, ERR_INPUT },
    { CURLE_URL_MALFORMAT, ERR_INPUT },
    { CURLE_UNSUPPORTED_PROTOCOL, ERR_INPUT },
    { CURLE_BAD_CONTENT_ENCODING, ERR_INPUT },
};

static enum err_code error_code_of(CURLcode result)
{
    for (size_t i = 0; i < COUNT_OF(RESULTS); i++)
        if (RESULTS[i].result == result)
            return RESULTS[i].code;
    return ERR_LOST;
}

static void finish_call(struct http_call *c, CURLcode result)
{
    long status = 0;
    const char *body = c->t.on_data != NULL && is_streaming(c) ? "" : c->body.data;

    if (c->too_large) {
        fail_call(c, ERR_INPUT, "the answer is longer than %zu bytes", c->t.max_body);
        return;
    }
    if (result != CURLE_OK) {
        fail_call(c, error_code_of(result), "%s", c->trouble[0] != '\0' ? c->trouble : curl_easy_strerror(result));
        return;
    }
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    struct http_answer answer = { .status = (int)status, .body = body, .len = *body != '\0' ? c->body.len : 0 };
    answer.peer = http_peer_of(c);
    http_read_headers(c, &answer);
    detach_call(c);
    report_done(c, &answer);
}

static void deliver_data(struct http_client *h)
{
    while (h->fresh != NULL) {
        struct http_call *c = h->fresh;
        h->fresh = c->next_fresh;
        c->fresh = false;
        c->busy = true;
        bool go_on = c->t.on_data(c->t.user, c->body.data, c->body.len);
        c->busy = false;
        if (c->state == OVER) { /* cancelled, or its connection was closed */
            recycle_handle(c);
            continue;
        }
        buf_clear(&c->body);
        limit_capacity(&c->body, STREAM_BODY_MAX);
        if (!go_on)
            fail_call(c, ERR_STOPPED, "ended by its reader");
    }
}

/* curl has returned: the callbacks may run now. */
static void deliver_and_finish(struct http_client *h)
{
    int left;

    callbacks_begin(h);
    deliver_data(h);
    for (const CURLMsg *m; !h->dead && (m = curl_multi_info_read(h->multi, &left)) != NULL;) {
        char *user = NULL;
        CURLcode result = m->data.result;
        if (m->msg != CURLMSG_DONE || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &user) != CURLE_OK)
            continue;
        struct http_call *c = (struct http_call *)(void *)user;
        finish_call(c, result);
    }
    callbacks_end(h);
}

/* ---- timeouts and dead connections ---- */

/* Closes all connections; their transfers have no connection afterwards. */
static void renew_connections(struct http_client *h)
{
    for (struct http_call *c = h->running.first; c != NULL; c = c->next) {
        curl_multi_remove_handle(h->multi, c->easy);
        c->attached = false;
    }
    multi_free(h);
    h->multi = multi_new(h);
    h->set_of_connections++;
}

/* New transfers are added at the end of the list. */
static void fail_lost_calls(struct http_client *h)
{
    for (struct http_call *c; (c = h->running.first) != NULL && c->set_of_connections != h->set_of_connections;)
        fail_call(c, ERR_LOST, "the connection was closed: no data arrived over it");
}

static void on_call_timer(void *user)
{
    struct http_call *c = user;
    struct http_client *h = c->http;
    int64_t now_ms = loop_now(h->loop), out_ms = c->t.timeout_ms > 0 ? c->began_ms + c->t.timeout_ms : INT64_MAX,
            silent_ms = c->t.silence_ms > 0 ? c->heard_ms + c->t.silence_ms : INT64_MAX;

    if (now_ms < MIN(out_ms, silent_ms)) {
        timer_set(h->loop, &c->timer, MIN(out_ms, silent_ms), on_call_timer, c);
        return;
    }
    bool out = now_ms >= out_ms, dead = h->http2 && h->heard_ms <= (out ? c->began_ms : c->heard_ms);
    callbacks_begin(h);
    if (dead)
        renew_connections(h);
    if (out)
        fail_call(c, ERR_TIMEOUT, "no answer within %.1f s", (double)c->t.timeout_ms / 1000);
    else
        fail_call(c, ERR_TIMEOUT, "no data for %.1f s", (double)c->t.silence_ms / 1000);
    fail_lost_calls(h);
    callbacks_end(h);
}

/* ---- life ---- */

static char *copy(const char *s)
{
    return s != NULL ? xstrdup(s) : NULL;
}

static void tls_fini(struct http_client *h)
{
    free(h->ca);
    free(h->cert);
    free(h->key);
    free(h->server_name);
}

static void tls_init(struct http_client *h, const struct http_tls *tls)
{
    h->ca = copy(tls->ca);
    h->cert = copy(tls->cert);
    h->key = copy(tls->key);
    h->server_name = copy(tls->server_name);
    h->insecure = tls->insecure;
    h->tls_version++;
}

struct http_client *http_client_new(struct loop *l, const struct http_tls *tls, bool http2, int at_once)
{
    struct http_client *h = xcalloc(1, sizeof(*h));

    h->loop = l;
    h->http2 = http2;
    h->at_once = at_once;
    if (tls != NULL)
        tls_init(h, tls);
    h->multi = multi_new(h);
    return h;
}

void http_client_set_tls(struct http_client *h, const struct http_tls *tls)
{
    callbacks_begin(h);
    renew_connections(h);
    tls_fini(h);
    tls_init(h, tls);
    fail_lost_calls(h);
    callbacks_end(h);
}

void http_client_cancel(struct http_call *c)
{
    if (c == NULL || c->state == OVER)
        return;
    detach_call(c);
    struct http_client *h = c->http;
    if (!c->busy)
        recycle_handle(c);
    if (h->depth == 0)
        start_queued(h);
}

static void client_destroy(struct http_client *h)
{
    for (struct http_call *c; (c = h->spare.first) != NULL;) {
        list_remove(&h->spare, c);
        call_free(c);
    }
    multi_free(h);
    tls_fini(h);
    free(h);
}

void http_client_free(struct http_client *h)
{
    if (h == NULL)
        return;
    callbacks_begin(h);
    h->dead = true;
    for (struct http_call *c; (c = h->running.first != NULL ? h->running.first : h->queued.first) != NULL;)
        http_client_cancel(c);
    callbacks_end(h);
}
