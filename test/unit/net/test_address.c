/* Addresses: texts, where a replica listens, and that one listener takes both families. */
#include "check_main.h"
#include "net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(texts)
{
    static const struct {
        const char *text, *host;
        int port;
    } GOOD[] = { { ":8080", "", 8080 },
                 { "[::]:0", "::", 0 },
                 { "0.0.0.0:2222", "0.0.0.0", 2222 },
                 { "ps-0.digits:1", "ps-0.digits", 1 },
                 { "[::1]:80", "::1", 80 } };
    static const char *const BAD[] = { "", "8080", "host", "host:", "host:65536", "host:-1", "host:80x" };
    struct err e;
    for (size_t i = 0; i < COUNT_OF(GOOD); i++) {
        AUTO_FINI(address) a = { 0 };
        ck_assert_msg(address_parse(GOOD[i].text, &a, &e) == 0, "%s: %s", GOOD[i].text, e.msg);
        ck_assert_str_eq(a.host, GOOD[i].host);
        ck_assert_int_eq(a.port, GOOD[i].port);
    }
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        AUTO_FINI(address) a = { 0 };
        ck_assert_msg(address_parse(BAD[i], &a, &e) < 0, "'%s' was taken", BAD[i]);
    }
}
END_TEST

START_TEST(where_a_replica_listens)
{
    static const struct {
        const char *own;
        int port;
        const char *want;
        const char *given;
    } CASES[] = {
        { "digits-ps-0.digits.default.svc:2222", 0, "[::]:2222", NULL },
        { "digits-ps-0", 0, "[::]:2222", NULL },
        { "10.1.2.3:2223", 8080, "[::]:8080", NULL },
        { "[fd00::7]:2223", 0, "[::]:2223", NULL },
        { "localhost:2222", 0, "127.0.0.1:2222", NULL },
        { "127.0.0.1:2222", 8080, "127.0.0.1:8080", NULL },
        { "[::1]:2222", 0, "[::1]:2222", NULL },
        { "digits-ps-0:2222", 0, "10.0.0.1:7", "10.0.0.1:7" },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        char out[64];
        address_to_listen_on(CASES[i].given, CASES[i].own, CASES[i].port, out, sizeof(out));
        ck_assert_str_eq(out, CASES[i].want);
    }
}
END_TEST

static int try_connect(int family, uint16_t port)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons(port) };
    struct sockaddr_in four = { .sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons(port) };
    auto_close int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int rc = family == AF_INET6 ? connect(fd, (const struct sockaddr *)&six, sizeof(six))
                                : connect(fd, (const struct sockaddr *)&four, sizeof(four));
    return rc == 0 ? 0 : -errno;
}

/* A machine without IPv6 has no ::1 to connect to; it must still listen. */
static bool machine_has_ipv6(void)
{
    auto_close int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in6 own = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
    return fd >= 0 && bind(fd, (const struct sockaddr *)&own, sizeof(own)) == 0;
}

START_TEST(one_listener_takes_both_families)
{
    static const char *const ALL[] = { ":0", "[::]:0" };
    struct err e;
    for (size_t i = 0; i < COUNT_OF(ALL); i++) {
        auto_close int fd = -1;
        uint16_t port;
        ck_assert_msg(address_listen(ALL[i], &fd, &port, &e) == 0, "%s: %s", ALL[i], e.msg);
        ck_assert_int_eq(try_connect(AF_INET, port), 0);
        if (machine_has_ipv6())
            ck_assert_int_eq(try_connect(AF_INET6, port), 0);
    }
}
END_TEST

START_TEST(zeros_mean_ipv4_alone)
{
    auto_close int fd = -1;
    uint16_t port;
    struct err e;
    ck_assert_int_eq(address_listen("0.0.0.0:0", &fd, &port, &e), 0);
    ck_assert_int_eq(try_connect(AF_INET, port), 0);
    ck_assert_int_lt(try_connect(AF_INET6, port), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("address");
    TCase *t = tcase_create("address");
    tcase_add_test(t, texts);
    tcase_add_test(t, where_a_replica_listens);
    tcase_add_test(t, one_listener_takes_both_families);
    tcase_add_test(t, zeros_mean_ipv4_alone);
    suite_add_tcase(s, t);
    return s;
}
