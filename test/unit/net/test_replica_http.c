/* Which page is on which port of a replica, by its flags. */
#include "net/replica_http.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "identity/tls_dir.h"
#include "net/address.h"
#include "temp_folder.h"

static char folder[64];

static int show(void *user UNUSED, struct buf *body, const char **content_type UNUSED)
{
    buf_str(body, "page\n");
    return 200;
}

static void start(void)
{
    AUTO(ca) *c = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    struct err e = { 0 };
    snprintf(folder, sizeof(folder), "/tmp/trainyard-http.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_ok_e(ca_new("local", "u-1", (int64_t)clock_wall(), &c, &e));
    ck_ok_e(ca_issue(c, ROLE_WORKER, 0, (int64_t)clock_wall(), 3600, &leaf, &e));
    ck_ok_e(tls_dir_write(folder, ca_pem(c), &leaf, &e));
}

static void stop(void)
{
    remove_tree(folder);
}

static int free_port(void)
{
    auto_close int fd = -1;
    uint16_t port;
    struct err e = { 0 };
    ck_ok_e(address_listen("127.0.0.1:0", &fd, &port, &e));
    return port;
}

/* The status of a page; 0: the port is closed. */
static int status_of(const char *scheme, int port, const char *certificate, const char *path)
{
    auto_free char *line = xasprintf("curl -sk --max-time 50 -o /dev/null -w '%%{http_code}' %s %s://127.0.0.1:%d%s",
                                     certificate, scheme, port, path);
    char text[16] = "";
    FILE *f = popen(line, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
    (void)pclose(f);
    return atoi(text);
}

/* flags; then the status of /readyz, /metrics and /progress on the plain port, and of the last two on the HTTPS port,
 * with a certificate */
static const struct {
    bool plain, identity, https, metrics_tls;
    int ready, metrics, progress, tls_metrics, tls_progress;
} CASES[] = {
    { true, false, false, false, 200, 200, 200, 0, 0 },   { true, true, false, false, 200, 200, 404, 0, 0 },
    { true, true, true, false, 200, 200, 404, 404, 200 }, { true, true, true, true, 200, 404, 404, 200, 200 },
    { false, true, true, true, 0, 0, 0, 200, 200 },
};
START_TEST(each_page_is_on_its_port)
{
    struct replica_options o = { .http_port = CASES[_i].plain ? free_port() : 0,
                                 .https_port = CASES[_i].https ? free_port() : 0,
                                 .tls_dir = CASES[_i].identity ? folder : NULL,
                                 .metrics_tls = CASES[_i].metrics_tls };
    AUTO(registry) *registry = registry_new();
    AUTO(replica_http) *h = NULL;
    const struct replica_pages pages = { .registry = registry,
                                         .ready = { .path = "/readyz", .handle = show },
                                         .progress = { .path = "/progress", .handle = show } };
    auto_free char *with = xasprintf("--cert %s/tls.crt --key %s/tls.key", folder, folder);
    struct err e = { 0 };
    ck_ok_e(replica_http_start(&o, "127.0.0.1:2222", &pages, &h, &e));
    int plain = (int)o.http_port, tls = (int)o.https_port;
    ck_assert_int_eq(status_of("http", plain, "", "/readyz"), CASES[_i].ready);
    ck_assert_int_eq(status_of("http", plain, "", "/healthz"), CASES[_i].ready);
    ck_assert_int_eq(status_of("http", plain, "", "/metrics"), CASES[_i].metrics);
    ck_assert_int_eq(status_of("http", plain, "", "/progress"), CASES[_i].progress);
    ck_assert_int_eq(status_of("https", tls, with, "/metrics"), CASES[_i].tls_metrics);
    ck_assert_int_eq(status_of("https", tls, with, "/progress"), CASES[_i].tls_progress);
    if (CASES[_i].tls_progress != 200)
        return;
    ck_assert_int_eq(status_of("https", tls, "", "/progress"), 403);
    AUTO_FINI(buf) metrics = BUF_INIT;
    registry_emit(registry, &metrics);
    ck_assert_ptr_nonnull(strstr(metrics.data, "\ntrainyard_http_refused_total 1\n"));
}
END_TEST

static int show_object(void *user UNUSED, struct buf *body, const char **content_type)
{
    buf_str(body, "{\"step\":3,\"loss\":0.25}\n");
    *content_type = "application/json";
    return 200;
}

/* The text of a page. */
static void page_of(int port, const char *path, struct buf *ret)
{
    auto_free char *line = xasprintf("curl -s --max-time 50 http://127.0.0.1:%d%s", port, path);
    char text[256];
    FILE *f = popen(line, "re");
    ck_assert_ptr_nonnull(f);
    buf_clear(ret);
    while (fgets(text, sizeof(text), f) != NULL)
        buf_str(ret, text);
    (void)pclose(f);
}

START_TEST(a_missing_identity_is_an_error)
{
    bool insecure = _i == 1;
    struct replica_options o = { .http_port = free_port(), .insecure = insecure };
    AUTO(registry) *registry = registry_new();
    AUTO(replica_http) *h = NULL;
    AUTO_FINI(buf) text = BUF_INIT;
    const struct replica_pages pages = { .registry = registry,
                                         .ready = { .path = "/readyz", .handle = show },
                                         .progress = { .path = "/progress", .handle = show_object } };
    struct err e = { 0 };
    ck_ok_e(replica_http_start(&o, "127.0.0.1:2222", &pages, &h, &e));
    page_of((int)o.http_port, "/progress", &text);
    ck_assert_str_eq(text.data,
                     insecure ? "{\"step\":3,\"loss\":0.25,\"insecure\":true}\n" : "{\"step\":3,\"loss\":0.25}\n");
    page_of((int)o.http_port, "/metrics", &text);
    ck_assert_ptr_nonnull(strstr(text.data, insecure ? "trainyard_insecure 1\n" : "trainyard_insecure 0\n"));
}
END_TEST

START_TEST(no_port_is_no_server)
{
    const struct replica_options o = { .tls_dir = folder };
    const struct replica_pages pages = { .ready = { .path = "/readyz" } };
    struct replica_http *h = (struct replica_http *)folder;
    struct err e = { 0 };
    ck_ok_e(replica_http_start(&o, "127.0.0.1:2222", &pages, &h, &e));
    ck_assert_ptr_null(h);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("replica_http");
    TCase *t = tcase_create("replica_http");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_loop_test(t, each_page_is_on_its_port, 0, COUNT_OF(CASES));
    tcase_add_loop_test(t, a_missing_identity_is_an_error, 0, 2);
    tcase_add_test(t, no_port_is_no_server);
    suite_add_tcase(s, t);
    return s;
}
