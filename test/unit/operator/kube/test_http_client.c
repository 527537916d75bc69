/* Transfers over plain HTTP/1.1, and with certificates of their own. test/operator covers HTTP/2 and TLS with a real
 * API server. */
#include "check_main.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "identity/tls_dir.h"
#include "net/http_server.h"
#include "temp_folder.h"
#include "test/fake/api_server.h"

struct got {
    int done, status, pieces, stop_after;
    enum err_code code;
    char message[ERR_TEXT_MAX];
    double retry_after_s;
    int64_t date_ms;
    char warnings[500], peer[4096];
    struct buf body, streamed;
    struct http_client *http;
    struct http_call *call, *other;
};
#define GOT(h)                                                                                                         \
    {                                                                                                                  \
        .body = BUF_INIT, .streamed = BUF_INIT, .http = (h)                                                            \
    }

static void got_fini(struct got *g)
{
    buf_fini(&g->body);
    buf_fini(&g->streamed);
}
DEFINE_AUTO_FINI(got, got_fini);

static void on_done(void *user, const struct http_answer *a)
{
    struct got *g = user;

    g->done++;
    g->status = a->status;
    g->retry_after_s = a->retry_after_s;
    g->date_ms = a->date_ms;
    strcpy(g->warnings, a->warnings != NULL ? a->warnings : "");
    strcpy(g->peer, a->peer != NULL ? a->peer : "");
    g->code = a->err != NULL ? a->err->code : ERR_NONE;
    strcpy(g->message, a->err != NULL ? a->err->msg : "");
    buf_clear(&g->body);
    buf_add(&g->body, a->body, a->len);
}

static bool on_data(void *user, const char *data, size_t n)
{
    struct got *g = user;

    buf_add(&g->streamed, data, n);
    return ++g->pieces != g->stop_after;
}

static bool is_done(void *user)
{
    return ((struct got *)user)->done > 0;
}

static bool has_pieces(void *user)
{
    return ((struct got *)user)->streamed.len > 0;
}

static struct http_call *get(struct http_client *h, struct fake_api *api, const char *path, struct got *g,
                             struct http_transfer t)
{
    AUTO_FINI(buf) url = BUF_INIT;

    buf_printf(&url, "%s%s", fake_api_url(api), path);
    t.url = url.data;
    t.method = t.method != NULL ? t.method : "GET";
    t.max_body = t.max_body != 0 ? t.max_body : 1 << 20;
    t.timeout_ms = t.timeout_ms != 0 ? t.timeout_ms : t.on_data != NULL ? 0 : 10000;
    t.on_done = on_done;
    t.user = g;
    return http_client_start(h, &t);
}

#define SETUP                                                                                                          \
    AUTO(fake_api) *api = fake_api_new();                                                                              \
    AUTO(loop) *l = loop_new();                                                                                        \
    fake_api_share_clock(api, l);                                                                                      \
    AUTO(http_client) *h = http_client_new(l, NULL, false, 4);                                                         \
    AUTO_FINI(got) g = GOT(h)

START_TEST(method_headers_and_body_arrive_and_the_answer_comes_whole)
{
    SETUP;
    static const char *const HEADERS[] = { "Accept: application/json", "Content-Type: application/merge-patch+json",
                                           NULL };
    struct fake_request r;
    char value[256];

    fake_api_on(api, "PATCH", "/x?a=b", &(struct fake_answer){ .status = 201, .body = "{\"n\":1}" });
    get(h, api, "/x?a=b", &g,
        (struct http_transfer){ .method = "PATCH", .headers = HEADERS, .body = "{\"a\":2}", .body_len = 7 });
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.status, 201);
    ck_assert_str_eq(g.body.data, "{\"n\":1}");
    ck_assert(fake_api_request(api, "PATCH", "/x*", 0, &r));
    ck_assert_str_eq(r.body, "{\"a\":2}");
    ck_assert_str_eq(fake_header(&r, "content-type", value), "application/merge-patch+json");
    ck_assert_str_eq(fake_header(&r, "accept", value), "application/json");
    ck_assert_str_eq(fake_header(&r, "expect", value), "");

    g.done = 0; /* the same handle: nothing of the last transfer may remain in it */
    fake_api_on(api, "GET", "/y", &(struct fake_answer){ .body = "plain" });
    get(h, api, "/y", &g, (struct http_transfer){ .method = "GET" });
    fake_until(l, is_done, &g);
    ck_assert_str_eq(g.body.data, "plain");
    ck_assert(fake_api_request(api, "GET", "/y", 0, &r));
    ck_assert_uint_eq(r.body_len, 0);
    ck_assert_str_eq(fake_header(&r, "content-type", value), "");
    ck_assert_int_eq(fake_api_connections(api), 1);
}
END_TEST

START_TEST(retry_after_is_told)
{
    SETUP;
    fake_api_on(api, "*", "*", &(struct fake_answer){ .status = 429, .headers = "Retry-After: 7\r\n", .body = "busy" });
    get(h, api, "/", &g, (struct http_transfer){ .method = NULL });
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.status, 429);
    ck_assert(g.retry_after_s > 6.9 && g.retry_after_s < 7.1);
    ck_assert_str_eq(g.body.data, "busy");
}
END_TEST

START_TEST(date_and_warnings_are_told)
{
    SETUP;
    fake_api_on(api, "*", "*",
                &(struct fake_answer){
                    .status = 201,
                    .body = "made",
                    .headers =
                        "Date: Wed, 04 Mar 2026 05:06:07 GMT\r\nWarning: 299 - \"unknown field \\\"spec.x\\\"\"\r\n"
                        "warning: 110 - \"stale\"\r\nWarning: 299 kube \"two\"\r\nWarning: 299 - no quote\r\nWarning: "
                        "299 - \"open\\\r\n" });
    get(h, api, "/", &g, (struct http_transfer){ .method = NULL });
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.date_ms, INT64_C(1772600767000));
    ck_assert_str_eq(g.warnings, "unknown field \"spec.x\"\ntwo\nopen\\");
    g.done = 0;
    fake_api_on(api, "*", "/bare", &(struct fake_answer){ .body = "", .times = 1 });
    get(h, api, "/bare", &g, (struct http_transfer){ .method = NULL });
    fake_until(l, is_done, &g);
    ck_assert_str_eq(g.warnings, "");
}
END_TEST

/* How a transfer may fail, and the error that it gives. */
static const struct failure {
    const char *name;
    struct fake_answer answer;
    struct http_transfer t;
    enum err_code code;
    const char *message;
} FAILURES[] = {
    { "closed", { .drop = true }, { .method = NULL }, ERR_LOST, "" },
    { "cut", { .body = "0123456789", .cut = 4 }, { .method = NULL }, ERR_LOST, "" },
    { "late", { .silent = true }, { .timeout_ms = 80 }, ERR_TIMEOUT, "no answer within 0.1 s" },
    { "too long", { .body = "0123456789" }, { .max_body = 9 }, ERR_INPUT, "the answer is longer than 9 bytes" },
    { "silent stream", { .open = true }, { .on_data = on_data, .silence_ms = 80 }, ERR_TIMEOUT, "no data for 0.1 s" },
};

START_TEST(failures_say_what_they_are)
{
    SETUP;
    const struct failure *f = &FAILURES[_i];

    fake_api_on(api, "*", "*", &f->answer);
    get(h, api, "/", &g, f->t);
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.status, 0);
    ck_assert_msg(g.code == f->code, "%s: %s", f->name, g.message);
    ck_assert_msg(strstr(g.message, f->message) != NULL && g.message[0] != '\0', "%s: %s", f->name, g.message);
    ck_assert_int_eq(g.done, 1);

    fake_api_forget(api); /* and the next transfer succeeds */
    fake_api_on(api, "*", "*", &(struct fake_answer){ .body = "fine" });
    g.done = 0;
    get(h, api, "/", &g, (struct http_transfer){ .method = NULL });
    fake_until(l, is_done, &g);
    ck_assert_str_eq(g.body.data, "fine");
}
END_TEST

START_TEST(a_server_that_is_down_is_lost)
{
    SETUP;
    fake_api_refuse(api, true);
    get(h, api, "/", &g, (struct http_transfer){ .method = NULL });
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.code, ERR_LOST);
}
END_TEST

START_TEST(a_stream_comes_in_pieces_and_ends)
{
    SETUP;
    fake_api_on(api, "*", "*", &(struct fake_answer){ .open = true, .body = "one\n" });
    get(h, api, "/w", &g, (struct http_transfer){ .on_data = on_data });
    fake_until(l, has_pieces, &g);
    ck_assert_str_eq(g.streamed.data, "one\n");
    ck_assert_int_eq(g.done, 0);
    ck_assert_uint_eq(fake_api_push(api, "/w", "two\n"), 1);
    ck_assert_uint_eq(fake_api_end(api, "/w"), 1);
    fake_until(l, is_done, &g);
    ck_assert_str_eq(g.streamed.data, "one\ntwo\n");
    ck_assert_int_eq(g.status, 200);
    ck_assert_uint_eq(g.body.len, 0);
}
END_TEST

START_TEST(a_broken_stream_is_lost_after_what_came)
{
    SETUP;
    fake_api_on(api, "*", "*", &(struct fake_answer){ .open = true, .body = "one\n" });
    get(h, api, "/w", &g, (struct http_transfer){ .on_data = on_data });
    fake_until(l, has_pieces, &g);
    fake_api_break(api, "/w");
    fake_until(l, is_done, &g);
    ck_assert_str_eq(g.streamed.data, "one\n");
    ck_assert_int_eq(g.status, 0);
    ck_assert_int_eq(g.code, ERR_LOST);
}
END_TEST

START_TEST(a_reader_may_end_its_stream)
{
    SETUP;
    g.stop_after = 1;
    fake_api_on(api, "*", "*", &(struct fake_answer){ .open = true, .body = "one\n" });
    get(h, api, "/w", &g, (struct http_transfer){ .on_data = on_data });
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.code, ERR_STOPPED);
}
END_TEST

/* A status other than 200 is an ordinary answer, even where a stream was requested. */
START_TEST(a_refused_stream_has_a_body)
{
    SETUP;
    fake_api_on(api, "*", "*", &(struct fake_answer){ .status = 410, .body = "gone" });
    get(h, api, "/w", &g, (struct http_transfer){ .on_data = on_data });
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.status, 410);
    ck_assert_str_eq(g.body.data, "gone");
    ck_assert_int_eq(g.pieces, 0);
}
END_TEST

/* ---- what callbacks may do ---- */

static bool cancel_both(void *user, const char *data, size_t n)
{
    struct got *g = user;
    (void)data;
    (void)n;
    g->pieces++;
    http_client_cancel(g->call);
    http_client_cancel(g->other);
    return true;
}

static bool free_all(void *user, const char *data, size_t n)
{
    struct got *g = user;
    (void)data;
    (void)n;
    buf_str(&g->streamed, "freed");
    http_client_free(g->http);
    return true;
}

START_TEST(a_callback_may_cancel_itself_and_others)
{
    SETUP;
    AUTO_FINI(got) other = GOT(h);
    AUTO_FINI(got) third = GOT(h);

    fake_api_on(api, "*", "/w", &(struct fake_answer){ .open = true, .body = "one\n" });
    fake_api_on(api, "*", "/silent", &(struct fake_answer){ .silent = true });
    fake_api_on(api, "*", "/fine", &(struct fake_answer){ .body = "fine" });
    g.other = get(h, api, "/silent", &other, (struct http_transfer){ .method = NULL });
    fake_api_wait(api, l, "GET", "/silent", 1);
    g.call = get(h, api, "/w", &g, (struct http_transfer){ .on_data = cancel_both });
    for (g.pieces = 0; g.pieces == 0;) {
        struct err e = { .code = ERR_NONE };
        ck_ok_e(loop_turn(l, 100, &e));
    }
    get(h, api, "/fine", &third, (struct http_transfer){ .method = NULL });
    fake_until(l, is_done, &third);
    ck_assert_int_eq(g.pieces, 1);
    ck_assert_int_eq(g.done + other.done, 0);
}
END_TEST

START_TEST(a_callback_may_free_everything)
{
    AUTO(fake_api) *api = fake_api_new();
    AUTO(loop) *l = loop_new();
    fake_api_share_clock(api, l);
    struct http_client *h = http_client_new(l, NULL, false, 4);
    AUTO_FINI(got) g = GOT(h);
    AUTO_FINI(got) other = GOT(h);

    fake_api_on(api, "*", "*", &(struct fake_answer){ .open = true, .body = "one\n" });
    get(h, api, "/w", &g, (struct http_transfer){ .on_data = free_all });
    get(h, api, "/v", &other, (struct http_transfer){ .on_data = on_data });
    fake_until(l, has_pieces, &g);
    ck_assert_int_eq(g.done + other.done, 0);
}
END_TEST

static bool change_certificates(void *user, const char *data, size_t n)
{
    struct got *g = user;
    (void)data;
    (void)n;
    g->pieces++;
    http_client_set_tls(g->http, &(struct http_tls){ .insecure = true });
    return true;
}

/* All connections are closed, including that of the stream whose data is being read. The stream ends once, and its
 * handle can be used again afterwards. */
START_TEST(certificates_may_change_while_data_is_read)
{
    SETUP;
    AUTO_FINI(got) one = GOT(h);
    AUTO_FINI(got) two = GOT(h);

    fake_api_on(api, "*", "/w", &(struct fake_answer){ .open = true, .body = "one\n" });
    fake_api_on(api, "*", "/fine", &(struct fake_answer){ .body = "fine", .delay_ms = 20 });
    get(h, api, "/w", &g, (struct http_transfer){ .on_data = change_certificates });
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.code, ERR_LOST);
    get(h, api, "/fine", &one, (struct http_transfer){ .method = NULL });
    get(h, api, "/fine", &two, (struct http_transfer){ .method = NULL });
    fake_until(l, is_done, &one);
    fake_until(l, is_done, &two);
    ck_assert_str_eq(one.body.data, "fine");
    ck_assert_str_eq(two.body.data, "fine");
    ck_assert_int_eq(g.pieces * 100 + g.done, 101);
}
END_TEST

/* ---- many ---- */

static bool all_done(void *user)
{
    struct got *many = user;
    int done = 0;
    for (int i = 0; i < 12; i++)
        done += many[i].done;
    return done == 12;
}

START_TEST(no_more_than_at_once_run_and_the_rest_follows)
{
    AUTO(fake_api) *api = fake_api_new();
    AUTO(loop) *l = loop_new();
    fake_api_share_clock(api, l);
    AUTO(http_client) *h = http_client_new(l, NULL, false, 4);
    struct got many[12];

    fake_api_on(api, "*", "*", &(struct fake_answer){ .body = "fine", .delay_ms = 20 });
    for (int i = 0; i < 12; i++) {
        many[i] = (struct got)GOT(h);
        get(h, api, "/", &many[i], (struct http_transfer){ .method = NULL });
    }
    fake_until(l, all_done, many);
    ck_assert_int_eq(fake_api_connections(api), 4);
    for (int i = 0; i < 12; i++) {
        ck_assert_str_eq(many[i].body.data, "fine");
        got_fini(&many[i]);
    }
}
END_TEST

/* As with a shared connection: when nothing arrives on any of them all end, and the next transfer opens a new one. */
START_TEST(a_connection_over_which_nothing_comes_is_given_up)
{
    AUTO(fake_api) *api = fake_api_new();
    AUTO(loop) *l = loop_new();
    fake_api_share_clock(api, l);
    AUTO(http_client) *h = http_client_new(l, NULL, true, 4);
    AUTO_FINI(got) stream = GOT(h);
    AUTO_FINI(got) g = GOT(h);

    fake_api_on(api, "*", "/w", &(struct fake_answer){ .open = true, .body = "one\n" });
    fake_api_on(api, "*", "/late", &(struct fake_answer){ .silent = true });
    get(h, api, "/w", &stream, (struct http_transfer){ .on_data = on_data });
    fake_until(l, has_pieces, &stream);
    get(h, api, "/late", &g, (struct http_transfer){ .timeout_ms = 100 });
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.code, ERR_TIMEOUT);
    fake_until(l, is_done, &stream);
    ck_assert_int_eq(stream.code, ERR_LOST);
    fake_api_on(api, "*", "/fine", &(struct fake_answer){ .body = "fine" });
    int before = fake_api_connections(api);
    g.done = 0;
    get(h, api, "/fine", &g, (struct http_transfer){ .method = NULL });
    fake_until(l, is_done, &g);
    ck_assert_str_eq(g.body.data, "fine");
    ck_assert_int_eq(fake_api_connections(api), before + 1);
}
END_TEST

/* One slow answer does not close the connection of those that make progress. */
START_TEST(a_connection_over_which_something_comes_is_kept)
{
    AUTO(fake_api) *api = fake_api_new();
    AUTO(loop) *l = loop_new();
    fake_api_share_clock(api, l);
    AUTO(http_client) *h = http_client_new(l, NULL, true, 4);
    AUTO_FINI(got) stream = GOT(h);
    AUTO_FINI(got) g = GOT(h);

    fake_api_on(api, "*", "/w", &(struct fake_answer){ .open = true, .body = "one\n" });
    fake_api_on(api, "*", "/late", &(struct fake_answer){ .silent = true });
    get(h, api, "/w", &stream, (struct http_transfer){ .on_data = on_data });
    fake_until(l, has_pieces, &stream);
    get(h, api, "/late", &g, (struct http_transfer){ .timeout_ms = 1000 });
    fake_api_wait(api, l, "GET", "/late", 1);
    fake_pass(l, 50); /* later than it began */
    fake_api_push(api, "/w", "two\n");
    fake_until(l, is_done, &g);
    ck_assert_int_eq(g.code, ERR_TIMEOUT);
    ck_assert_int_eq(stream.done, 0);
    ck_assert_str_eq(stream.streamed.data, "one\ntwo\n");
}
END_TEST

/* ---- certificates of one transfer ---- */

enum { HOUR = 3600 };

struct member { /* a server with the certificate of a replica, in a folder of its own */
    char folder[64];
    atomic_int answered;
    struct http_server *server;
};

static int answer_member(void *user, struct buf *body, const char **content_type UNUSED)
{
    struct member *m = user;
    atomic_fetch_add(&m->answered, 1);
    buf_str(body, "page");
    return 200;
}

static void member_start(struct member *m, const struct ca *c, enum role role, int index)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(leaf) leaf = { 0 };
    const struct http_route route = { "/progress", answer_member, m, HTTP_ANY_MEMBER };

    strcpy(m->folder, "/tmp/trainyard-http.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(m->folder));
    auto_free char *dir = path_join(m->folder, "tls");
    ck_ok_e(ca_issue(c, (int)role, index, (int64_t)clock_wall(), HOUR, &leaf, &e));
    ck_ok_e(tls_dir_write(dir, ca_pem(c), &leaf, &e));
    ck_ok_e(http_server_start("127.0.0.1:0", dir, &route, 1, &m->server, &e));
}

static void member_fini(struct member *m)
{
    http_server_free(m->server);
    remove_tree(m->folder);
}
DEFINE_AUTO_FINI(member, member_fini);

static void get_from(struct http_client *h, struct loop *l, const struct member *m, const struct http_own_tls *tls,
                     struct got *g)
{
    auto_free char *url = xasprintf("https://127.0.0.1:%d/progress", http_server_port(m->server));

    g->done = 0;
    g->call = http_client_start(h, &(struct http_transfer){ .method = "GET",
                                                            .url = url,
                                                            .tls = tls,
                                                            .timeout_ms = 10000,
                                                            .max_body = 1000,
                                                            .on_done = on_done,
                                                            .user = g });
    fake_until(l, is_done, g);
}

/* The same handle is used for all: nothing of an earlier transfer may be left in it. A server with a certificate of
 * another job never sees the request. */
START_TEST(a_transfer_has_its_own_certificates)
{
    SETUP;
    struct err e = { .code = ERR_NONE };
    int64_t now_s = (int64_t)clock_wall();
    AUTO(ca) *ours = NULL;
    AUTO(ca) *other = NULL;
    AUTO_FINI(member) chief = { .server = NULL };
    AUTO_FINI(member) stranger = { .server = NULL };
    AUTO_FINI(leaf) leaf = { 0 };
    AUTO_FINI(leaf) foreign = { 0 };
    struct certificate_info info;

    ck_ok_e(ca_new("a", "u-1", now_s, &ours, &e));
    ck_ok_e(ca_new("a", "u-2", now_s, &other, &e));
    ck_ok_e(ca_issue(ours, IDENTITY_OPERATOR, 0, now_s, HOUR, &leaf, &e));
    ck_ok_e(ca_issue(other, IDENTITY_OPERATOR, 0, now_s, HOUR, &foreign, &e));
    member_start(&chief, ours, ROLE_CHIEF, 0);
    member_start(&stranger, other, ROLE_CHIEF, 0);
    const struct http_own_tls tls = { ca_pem(ours), leaf.certificate, leaf.key };
    for (int again = 0; again < 2; again++) {
        get_from(h, l, &chief, &tls, &g);
        ck_assert_msg(g.status == 200, "%d: %s", g.status, g.message);
        ck_assert_str_eq(g.body.data, "page");
        ck_ok_e(certificate_read(g.peer, &info, &e));
        ck_assert_str_eq(info.identity.job_uid, "u-1");
        ck_assert_int_eq(info.identity.role, ROLE_CHIEF);
        get_from(h, l, &stranger, &tls, &g);
        ck_assert_int_eq(g.status, 0);
        ck_assert_int_eq(g.code, ERR_INPUT);
        ck_assert_str_eq(g.peer, "");
    }
    ck_assert_int_eq(atomic_load(&stranger.answered), 0);

    /* with another job's certificate the server refuses us */
    get_from(h, l, &chief, &(struct http_own_tls){ ca_pem(ours), foreign.certificate, foreign.key }, &g);
    ck_assert_int_ne(g.status, 200);
    get_from(h, l, &chief, NULL, &g); /* nothing is left: neither its CA nor our certificate */
    ck_assert_int_eq(g.status, 0);
    ck_assert_int_eq(g.code, ERR_INPUT);
    ck_assert_int_eq(atomic_load(&chief.answered), 2);

    fake_api_on(api, "GET", "/y", &(struct fake_answer){ .body = "plain" });
    g.done = 0;
    get(h, api, "/y", &g, (struct http_transfer){ .method = "GET" });
    fake_until(l, is_done, &g);
    ck_assert_str_eq(g.body.data, "plain");
    ck_assert_str_eq(g.peer, "");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("http");
    TCase *c = tcase_create("http");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, method_headers_and_body_arrive_and_the_answer_comes_whole);
    tcase_add_test(c, retry_after_is_told);
    tcase_add_test(c, date_and_warnings_are_told);
    tcase_add_loop_test(c, failures_say_what_they_are, 0, (int)COUNT_OF(FAILURES));
    tcase_add_test(c, a_server_that_is_down_is_lost);
    tcase_add_test(c, a_stream_comes_in_pieces_and_ends);
    tcase_add_test(c, a_broken_stream_is_lost_after_what_came);
    tcase_add_test(c, a_reader_may_end_its_stream);
    tcase_add_test(c, a_refused_stream_has_a_body);
    tcase_add_test(c, a_callback_may_cancel_itself_and_others);
    tcase_add_test(c, a_callback_may_free_everything);
    tcase_add_test(c, certificates_may_change_while_data_is_read);
    tcase_add_test(c, no_more_than_at_once_run_and_the_rest_follows);
    tcase_add_test(c, a_connection_over_which_nothing_comes_is_given_up);
    tcase_add_test(c, a_connection_over_which_something_comes_is_kept);
    tcase_add_test(c, a_transfer_has_its_own_certificates);
    suite_add_tcase(s, c);
    return s;
}
