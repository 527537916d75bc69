#include "test/fake/api_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

enum {
    CONNECTIONS_MAX = 256,
    REQUEST_MAX = 4 << 20,
    WAIT_MS = 20000,
    ROUND_MS = 1000,
    SHARED_MAX = 4,
    HOUR_MS = 3600000
};

struct rule {
    char *method, *pattern;
    struct fake_answer answer; /* its texts are owned */
    int left;                  /* < 0: any number */
    bool forgotten;            /* still referred to by answers that wait */
};

struct connection {
    int fd, number;
    struct buf in, out;
    size_t sent;
    const struct rule *delayed; /* answers at due_ms */
    int64_t due_ms;             /* INT64_MAX: held */
    size_t request;             /* the last one it brought */
    bool waits;                 /* a request is being answered: nothing is read */
    bool stream, closing;       /* closing: once all is sent */
};

struct fake_api {
    pthread_t thread;
    pthread_mutex_t lock; /* everything below */
    int listener, wake[2];
    char url[64];
    bool stop, frozen, refused;
    struct loop *loop; /* whose clock it shares, or NULL */
    int64_t now_ms;    /* of that clock */
    struct rule **rules;
    size_t nrules;
    struct fake_request **requests;
    size_t nrequests;
    struct connection connections[CONNECTIONS_MAX];
    int accepted;
};

#define must(condition) must_(condition, #condition, __LINE__)

static void must_(bool ok, const char *what, int line)
{
    if (ok)
        return;
    fprintf(stderr, "%s:%d: %s\n", __FILE__, line, what);
    abort();
}

static void lock(struct fake_api *f)
{
    must(pthread_mutex_lock(&f->lock) == 0);
}

static void unlock(struct fake_api *f)
{
    must(pthread_mutex_unlock(&f->lock) == 0);
}

/* Those that share the clock of a loop. For the test's thread. */
static struct fake_api *shared[SHARED_MAX];

static int64_t time_of(const struct fake_api *f)
{
    return f->loop != NULL ? f->now_ms : clock_ms();
}

static void wake(struct fake_api *f)
{
    must(write(f->wake[1], "", 1) == 1);
}

/* ---- rules ---- */

static bool matches(const char *method, const char *pattern, const struct fake_request *r)
{
    return (strcmp(method, "*") == 0 || strcmp(method, r->method) == 0) && fnmatch(pattern, r->path, 0) == 0;
}

static const struct rule *rule_for(struct fake_api *f, const struct fake_request *r)
{
    const struct rule *lasting = NULL;

    for (size_t i = 0; i < f->nrules; i++) {
        struct rule *one = f->rules[i];
        if (one->forgotten || one->left == 0 || !matches(one->method, one->pattern, r))
            continue;
        if (one->left > 0) {
            one->left--;
            return one;
        }
        lasting = one;
    }
    return lasting;
}

void fake_api_on(struct fake_api *f, const char *method, const char *pattern, const struct fake_answer *a)
{
    struct rule *one = xcalloc(1, sizeof(*one));
    const char *body = a->body != NULL ? a->body : "";

    one->method = xstrdup(method);
    one->pattern = xstrdup(pattern);
    one->answer = *a;
    one->answer.status = a->status != 0 ? a->status : 200;
    one->answer.headers = xstrdup(a->headers != NULL ? a->headers : "");
    one->answer.body_len = a->body_len != 0 ? a->body_len : strlen(body);
    one->answer.body = a->body_len != 0 ? xmemdup(body, a->body_len) : xstrdup(body);
    one->left = a->times > 0 ? a->times : -1;
    lock(f);
    f->rules = xrealloc(f->rules, (f->nrules + 1) * sizeof(*f->rules));
    f->rules[f->nrules++] = one;
    unlock(f);
}

void fake_api_forget(struct fake_api *f)
{
    lock(f);
    for (size_t i = 0; i < f->nrules; i++)
        f->rules[i]->forgotten = true;
    unlock(f);
}

void fake_api_release(struct fake_api *f)
{
    lock(f);
    for (size_t i = 0; i < f->nrules; i++)
        f->rules[i]->answer.held = false;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        if (f->connections[i].delayed != NULL && f->connections[i].due_ms == INT64_MAX)
            f->connections[i].due_ms = 0;
    unlock(f);
    wake(f);
}

/* ---- answers ---- */

static void put_head(struct connection *c, int status, const char *headers, bool chunked, size_t length)
{
    buf_printf(&c->out, "HTTP/1.1 %d Status %d\r\n", status, status);
    if (strcasestr(headers, "content-type:") == NULL)
        buf_str(&c->out, "Content-Type: application/json\r\n");
    buf_str(&c->out, headers);
    if (chunked)
        buf_str(&c->out, "Transfer-Encoding: chunked\r\n\r\n");
    else
        buf_printf(&c->out, "Content-Length: %zu\r\n\r\n", length);
}

static void put_chunk(struct connection *c, const char *data, size_t n)
{
    if (n == 0)
        return;
    buf_printf(&c->out, "%zx\r\n", n);
    buf_add(&c->out, data, n);
    buf_str(&c->out, "\r\n");
}

static void put_answer(struct fake_api *f, struct connection *c, const struct fake_answer *a)
{
    AUTO_FINI(buf) body = BUF_INIT;
    int status = a->status;

    if (a->handle != NULL)
        status = a->handle(a->user, f->requests[c->request], &body);
    else
        buf_add(&body, a->body, a->body_len);
    put_head(c, status, a->headers, a->open, body.len);
    if (a->open) {
        put_chunk(c, body.data, body.len);
        c->stream = true;
        return;
    }
    bool cut = a->cut > 0 && a->cut < body.len;
    buf_add(&c->out, body.data, cut ? a->cut : body.len);
    c->closing = cut;
    c->waits = false;
}

static void answer(struct fake_api *f, struct connection *c, const struct rule *one)
{
    static const char NONE[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":"
                               "\"NotFound\",\"message\":\"no answer was given for this request\",\"code\":404}";

    c->delayed = NULL;
    if (one == NULL)
        put_answer(f, c, &(struct fake_answer){ .status = 404, .headers = "", .body = NONE, .body_len = strlen(NONE) });
    else if (one->answer.drop)
        c->closing = true;
    else if (!one->answer.silent)
        put_answer(f, c, &one->answer);
}

/* ---- requests ---- */

static size_t content_length(const char *headers)
{
    const char *found = strcasestr(headers, "content-length:");
    return found != NULL ? strtoul(found + strlen("content-length:"), NULL, 10) : 0;
}

/* Takes one request off what was read; NULL when it is not whole yet. */
static struct fake_request *take_request(struct connection *c)
{
    const char *end = strstr(c->in.data, "\r\n\r\n"), *line_end = strstr(c->in.data, "\r\n");
    if (end == NULL)
        return NULL;
    size_t head = (size_t)(end + 4 - c->in.data);
    auto_free char *headers = xstrndup(line_end + 2, (size_t)(end - line_end));
    size_t length = content_length(headers);
    must(length < REQUEST_MAX);
    if (c->in.len < head + length)
        return NULL;
    struct fake_request *r = xcalloc(1, sizeof(*r));
    size_t method = strcspn(c->in.data, " "), path = strcspn(c->in.data + method + 1, " ");
    must(method + path + 1 < head);
    *r = (struct fake_request){ .method = xstrndup(c->in.data, method),
                                .path = xstrndup(c->in.data + method + 1, path),
                                .headers = TAKE(headers),
                                .body = xstrndup(c->in.data + head, length),
                                .body_len = length,
                                .connection = c->number };
    c->in.len -= head + length;
    memmove(c->in.data, c->in.data + head + length, c->in.len + 1);
    return r;
}

static void look_for_request(struct fake_api *f, struct connection *c)
{
    if (c->waits || c->closing)
        return;
    struct fake_request *r = take_request(c);
    if (r == NULL)
        return;
    f->requests = xrealloc(f->requests, (f->nrequests + 1) * sizeof(struct fake_request *));
    c->request = f->nrequests;
    f->requests[f->nrequests++] = r;
    c->waits = true;
    const struct rule *one = rule_for(f, r);
    if (one != NULL && (one->answer.held || one->answer.delay_ms > 0)) {
        c->delayed = one;
        c->due_ms = one->answer.held ? INT64_MAX : time_of(f) + one->answer.delay_ms;
    } else {
        answer(f, c, one);
    }
}

/* ---- connections ---- */

static void drop(struct connection *c)
{
    fd_close(c->fd);
    buf_fini(&c->in);
    buf_fini(&c->out);
    *c = (struct connection){ .fd = -1, .in = BUF_INIT, .out = BUF_INIT };
}

static void accept_one(struct fake_api *f)
{
    int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        if (f->connections[i].fd < 0) {
            f->connections[i].fd = fd;
            f->connections[i].number = f->accepted++;
            return;
        }
    must(f->accepted < 0); /* no room for another connection */
}

static void read_some(struct connection *c)
{
    char piece[65536];
    ssize_t n = recv(c->fd, piece, sizeof(piece), 0);

    if (n > 0)
        buf_add(&c->in, piece, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        drop(c);
}

static void write_some(struct connection *c)
{
    while (c->fd >= 0 && c->sent < c->out.len) {
        ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            drop(c);
            return;
        }
        c->sent += (size_t)n;
    }
    buf_clear(&c->out);
    c->sent = 0;
    if (c->closing)
        drop(c);
}

static void serve(struct fake_api *f, struct connection *c, short events, int64_t now_ms)
{
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0)
        read_some(c);
    if (c->fd >= 0 && c->delayed != NULL && now_ms >= c->due_ms)
        answer(f, c, c->delayed);
    for (size_t before = SIZE_MAX; c->fd >= 0 && before != f->nrequests;) {
        before = f->nrequests;
        look_for_request(f, c);
    }
    if (c->fd >= 0)
        write_some(c);
}

static int fill(struct fake_api *f, struct pollfd *polled)
{
    int64_t now_ms = time_of(f), wait = ROUND_MS;

    polled[0] = (struct pollfd){ .fd = f->wake[0], .events = POLLIN };
    polled[1] = (struct pollfd){ .fd = f->frozen || f->refused ? -1 : f->listener, .events = POLLIN };
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        const struct connection *c = &f->connections[i];
        polled[i + 2] = (struct pollfd){ .fd = f->frozen ? -1 : c->fd, .events = POLLIN };
        if (c->sent < c->out.len)
            polled[i + 2].events |= POLLOUT;
        if (c->delayed != NULL && !f->frozen)
            wait = MIN(wait, MAX(c->due_ms - now_ms, 0));
    }
    return (int)wait;
}

static void round_of(struct fake_api *f, const struct pollfd *polled)
{
    int64_t now_ms = time_of(f);
    char drained[256];

    if (polled[0].revents != 0)
        must(read(f->wake[0], drained, sizeof(drained)) > 0);
    for (size_t i = 0; i < CONNECTIONS_MAX && !f->frozen; i++)
        if (f->connections[i].fd >= 0)
            serve(f, &f->connections[i], polled[i + 2].fd >= 0 ? polled[i + 2].revents : 0, now_ms);
    if (polled[1].revents != 0 && !f->refused && !f->frozen)
        accept_one(f);
}

static void *run(void *user)
{
    struct fake_api *f = user;
    struct pollfd polled[CONNECTIONS_MAX + 2];

    for (;;) {
        lock(f);
        bool stop = f->stop;
        int wait = fill(f, polled);
        unlock(f);
        if (stop)
            return NULL;
        must(poll(polled, COUNT_OF(polled), wait) >= 0 || errno == EINTR);
        lock(f);
        round_of(f, polled);
        unlock(f);
    }
}

/* ---- life ---- */

static int listen_on(struct in_addr host, uint16_t *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = host, .sin_port = htons(*port) };
    socklen_t size = sizeof(address);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    must(bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, CONNECTIONS_MAX) == 0);
    must(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

struct fake_api *fake_api_new(void)
{
    struct fake_api *f = xcalloc(1, sizeof(*f));
    uint16_t port = 0;

    f->listener = listen_on((struct in_addr){ htonl(INADDR_LOOPBACK) }, &port);
    snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", port);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        f->connections[i] = (struct connection){ .fd = -1, .in = BUF_INIT, .out = BUF_INIT };
    must(pipe2(f->wake, O_CLOEXEC) == 0);
    must(pthread_mutex_init(&f->lock, NULL) == 0 && pthread_create(&f->thread, NULL, run, f) == 0);
    return f;
}

#define free_const(p) free((void *)(uintptr_t)(p))

static void rule_free(struct rule *one)
{
    free(one->method);
    free(one->pattern);
    free_const(one->answer.headers);
    free_const(one->answer.body);
    free(one);
}

static void request_free(struct fake_request *r)
{
    free_const(r->method);
    free_const(r->path);
    free_const(r->headers);
    free_const(r->body);
    free(r);
}

void fake_api_free(struct fake_api *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < SHARED_MAX; i++)
        if (shared[i] == f)
            shared[i] = NULL;
    lock(f);
    f->stop = true;
    unlock(f);
    wake(f);
    must(pthread_join(f->thread, NULL) == 0);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        drop(&f->connections[i]);
    for (size_t i = 0; i < f->nrules; i++)
        rule_free(f->rules[i]);
    for (size_t i = 0; i < f->nrequests; i++)
        request_free(f->requests[i]);
    free(f->rules);
    free(f->requests);
    fd_close(f->listener);
    fd_close(f->wake[0]);
    fd_close(f->wake[1]);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

const char *fake_api_url(const struct fake_api *f)
{
    return f->url;
}

struct kubeconfig *fake_api_config(const struct fake_api *f, const char *token)
{
    char path[] = "/tmp/fake-api-XXXXXX";
    struct kubeconfig *c = NULL;
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    int fd = mkstemp(path);

    buf_printf(
        &text,
        "apiVersion: v1\nkind: Config\ncurrent-context: fake\ncontexts:\n- name: fake\n  context: {cluster: fake, "
        "user: fake}\nclusters:\n- name: fake\n  cluster: {server: \"%s\"}\nusers:\n- name: fake\n  user: {%s%s}\n",
        f->url, token != NULL ? "token: " : "", token != NULL ? token : "");
    must(fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len);
    fd_close(fd);
    if (kubeconfig_load(path, NULL, &c, &e) < 0)
        fprintf(stderr, "%s\n", e.msg);
    unlink(path);
    must(c != NULL);
    return c;
}

/* ---- what came ---- */

static struct fake_request *nth(struct fake_api *f, const char *method, const char *pattern, size_t i,
                                size_t *ret_count)
{
    *ret_count = 0;
    for (size_t j = 0; j < f->nrequests; j++)
        if (matches(method, pattern, f->requests[j]) && (*ret_count)++ == i)
            return f->requests[j];
    return NULL;
}

size_t fake_api_count(struct fake_api *f, const char *method, const char *pattern)
{
    size_t n = 0;

    lock(f);
    nth(f, method, pattern, SIZE_MAX, &n);
    unlock(f);
    return n;
}

bool fake_api_request(struct fake_api *f, const char *method, const char *pattern, size_t i, struct fake_request *ret)
{
    size_t n = 0;

    lock(f);
    const struct fake_request *r = nth(f, method, pattern, i, &n);
    if (r != NULL)
        *ret = *r;
    unlock(f);
    return r != NULL;
}

const char *fake_header(const struct fake_request *r, const char *name, char out[256])
{
    size_t n = strlen(name);

    out[0] = '\0';
    for (const char *line = r->headers; *line != '\0'; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, name, n) == 0 && line[n] == ':') {
            const char *value = line + n + 1 + strspn(line + n + 1, " ");
            snprintf(out, 256, "%.*s", (int)strcspn(value, "\r"), value);
            break;
        }
    return out;
}

/* ---- streams ---- */

static size_t each_stream(struct fake_api *f, const char *pattern, void (*act)(struct connection *c, const char *text),
                          const char *text)
{
    size_t n = 0;

    lock(f);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct connection *c = &f->connections[i];
        if (c->fd < 0 || !c->stream || fnmatch(pattern, f->requests[c->request]->path, 0) != 0)
            continue;
        if (act != NULL)
            act(c, text);
        n++;
    }
    unlock(f);
    wake(f);
    return n;
}

static void push_one(struct connection *c, const char *text)
{
    put_chunk(c, text, strlen(text));
}

static void end_one(struct connection *c, const char *text)
{
    (void)text;
    buf_str(&c->out, "0\r\n\r\n");
    c->stream = c->waits = false;
}

static void break_one(struct connection *c, const char *text)
{
    (void)text;
    c->stream = false;
    c->closing = true;
}

size_t fake_api_push(struct fake_api *f, const char *pattern, const char *text)
{
    return each_stream(f, pattern, push_one, text);
}

size_t fake_api_end(struct fake_api *f, const char *pattern)
{
    return each_stream(f, pattern, end_one, NULL);
}

size_t fake_api_break(struct fake_api *f, const char *pattern)
{
    return each_stream(f, pattern, break_one, NULL);
}

size_t fake_api_streams(struct fake_api *f, const char *pattern)
{
    return each_stream(f, pattern, NULL, NULL);
}

/* ---- trouble ---- */

void fake_api_freeze(struct fake_api *f, bool frozen)
{
    lock(f);
    f->frozen = frozen;
    unlock(f);
    wake(f);
}

void fake_api_refuse(struct fake_api *f, bool refused)
{
    uint16_t port = (uint16_t)strtoul(strrchr(f->url, ':') + 1, NULL, 10);

    lock(f);
    if (refused && !f->refused) {
        fd_close(f->listener);
        f->listener = -1;
        for (size_t i = 0; i < CONNECTIONS_MAX; i++)
            drop(&f->connections[i]);
    } else if (!refused && f->refused) {
        f->listener = listen_on((struct in_addr){ htonl(INADDR_LOOPBACK) }, &port);
    }
    f->refused = refused;
    unlock(f);
    wake(f);
}

int fake_api_connections(struct fake_api *f)
{
    lock(f);
    int n = f->accepted;
    unlock(f);
    return n;
}

/* ---- waiting ---- */

static void turn(struct loop *l, int64_t max_wait_ms)
{
    struct err e = { .code = ERR_NONE };

    if (loop_turn(l, max_wait_ms, &e) < 0)
        fprintf(stderr, "%s\n", e.msg);
    must(e.code == ERR_NONE);
}

void fake_clock(struct loop *l)
{
    if (!loop_clock(l)->is_virtual)
        *loop_clock(l) = (struct loop_clock){ .is_virtual = true, .now_ms = clock_ms() };
}

void fake_api_share_clock(struct fake_api *f, struct loop *l)
{
    size_t i = 0;

    while (i < SHARED_MAX && shared[i] != NULL)
        i++;
    must(i < SHARED_MAX);
    shared[i] = f;
    fake_clock(l);
    lock(f);
    f->loop = l;
    f->now_ms = loop_now(l);
    unlock(f);
}

/* What a server still does by itself. */
struct under_way {
    int requests; /* that it has and has not answered */
    bool busy;    /* it has something to read or to write */
    bool frozen;
    int64_t due_ms; /* of the next delayed answer */
};

static void look_at_connection(struct connection *c, struct under_way *u, int64_t now_ms)
{
    struct pollfd in = { .fd = c->fd, .events = POLLIN };
    int unread = 0; /* by the client's system */

    u->requests += c->waits;
    u->busy |= c->sent < c->out.len || c->closing || (c->delayed != NULL && c->due_ms <= now_ms);
    u->busy |= poll(&in, 1, 0) > 0 || (ioctl(c->fd, SIOCOUTQ, &unread) == 0 && unread > 0);
    if (c->delayed != NULL)
        u->due_ms = MIN(u->due_ms, c->due_ms);
}

static struct under_way look_at(struct loop *l)
{
    struct under_way u = { .due_ms = INT64_MAX };
    for (size_t i = 0; i < SHARED_MAX; i++) {
        struct fake_api *f = shared[i];
        if (f == NULL || f->loop != l)
            continue;
        lock(f);
        struct pollfd in = { .fd = f->listener, .events = POLLIN };
        u.frozen |= f->frozen;
        u.busy |= poll(&in, 1, 0) > 0;
        for (size_t c = 0; c < CONNECTIONS_MAX; c++)
            if (f->connections[c].fd >= 0)
                look_at_connection(&f->connections[c], &u, f->now_ms);
        unlock(f);
    }
    return u;
}

/* A server that is frozen does nothing; the requests to it are sent at once. */
static bool settles(struct loop *l)
{
    struct under_way u = look_at(l);
    uint64_t before = loop_clock(l)->callbacks;
    bool quiet = u.frozen || (!u.busy && u.requests == loop_clock(l)->transfers);

    turn(l, u.frozen ? 20 : !quiet);
    return quiet && loop_clock(l)->callbacks == before;
}

void fake_settle(struct loop *l)
{
    must(loop_clock(l)->is_virtual);
    for (int64_t end = clock_ms() + WAIT_MS; !settles(l);)
        must(clock_ms() < end);
}

/* Moves the clock to what happens next, at most to end_ms; false: nothing happens before that. */
static bool move_on(struct loop *l, int64_t end_ms)
{
    struct loop_clock *clock = loop_clock(l);
    int64_t next_ms = MIN(loop_next_due(l), look_at(l).due_ms);

    clock->now_ms = MAX(clock->now_ms, MIN(next_ms, end_ms));
    for (size_t i = 0; i < SHARED_MAX; i++)
        if (shared[i] != NULL && shared[i]->loop == l) {
            lock(shared[i]);
            shared[i]->now_ms = clock->now_ms;
            unlock(shared[i]);
            wake(shared[i]);
        }
    fake_settle(l);
    return next_ms <= end_ms;
}

void fake_pass(struct loop *l, int64_t ms)
{
    fake_settle(l);
    for (int64_t end_ms = loop_now(l) + ms; move_on(l, end_ms);)
        ;
}

static int64_t begin_wait(struct loop *l)
{
    if (loop_clock(l)->is_virtual)
        fake_settle(l);
    return loop_now(l);
}

/* One step of a wait; false: it has lasted too long. */
static bool wait_on(struct loop *l, int64_t began_ms)
{
    if (loop_clock(l)->is_virtual)
        return move_on(l, began_ms + HOUR_MS);
    turn(l, 10);
    return clock_ms() < began_ms + WAIT_MS;
}

void fake_api_wait(struct fake_api *f, struct loop *l, const char *method, const char *pattern, size_t n)
{
    int64_t began_ms = begin_wait(l);
    while (fake_api_count(f, method, pattern) < n) {
        if (wait_on(l, began_ms))
            continue;
        for (size_t i = 0; i < f->nrequests; i++)
            fprintf(stderr, "came: %s %s\n", f->requests[i]->method, f->requests[i]->path);
        fprintf(stderr, "%s %s did not come %zu times\n", method, pattern, n);
        abort();
    }
}

void fake_until(struct loop *l, bool (*ready)(void *user), void *user)
{
    int64_t began_ms = begin_wait(l);
    while (!ready(user))
        must(wait_on(l, began_ms));
}
