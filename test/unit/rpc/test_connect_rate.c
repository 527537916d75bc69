/* How often addresses may connect, with a given clock. */
#include <arpa/inet.h>
#include <string.h>

#include "base/mem.h"
#include "check_main.h"
#include "rpc/connect_rate.h"

static struct connect_rate rate;

static struct sockaddr_in6 v6(const char *address)
{
    struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = 1234 };
    ck_assert_int_eq(inet_pton(AF_INET6, address, &a.sin6_addr), 1);
    return a;
}

/* As getpeername() writes it. */
static struct sockaddr_in6 v4(const char *address)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = 1234 };
    struct sockaddr_in6 ret = { .sin6_family = AF_UNSPEC };
    ck_assert_int_eq(inet_pton(AF_INET, address, &a.sin_addr), 1);
    memcpy(&ret, &a, sizeof(a));
    return ret;
}

/* How many of n connections are admitted. */
static int admitted(const struct sockaddr_in6 *client, int n, int64_t now_ms)
{
    int ret = 0;
    for (int i = 0; i < n; i++)
        ret += connect_rate_add(&rate, client, 1, now_ms);
    return ret;
}

static void begin(void)
{
    memset(&rate, 0, sizeof(rate));
}

START_TEST(a_client_that_connects_in_a_loop)
{
    struct sockaddr_in6 client = v4("10.0.0.7");
    ck_assert_int_eq(admitted(&client, CONNECT_MAX, 5000), CONNECT_MAX);
    ck_assert_int_eq(admitted(&client, 10000, 5999), 0);
    ck_assert_int_eq(admitted(&client, 10000, 6000), CONNECT_MAX);
}
END_TEST

START_TEST(other_addresses_are_not_held_up)
{
    static const char *const OTHERS[] = { "10.0.0.8", "10.0.1.7", "11.0.0.7" };
    struct sockaddr_in6 client = v4("10.0.0.7");
    admitted(&client, 2000, 5000);
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++) {
        struct sockaddr_in6 other = v4(OTHERS[i]);
        ck_assert_int_eq(admitted(&other, CONNECT_MAX, 5000), CONNECT_MAX);
    }
}
END_TEST

/* A client has all addresses of its network, and may connect with its IPv4 address to a socket of IPv6. */
START_TEST(one_client_by_several_addresses)
{
    static const struct {
        const char *a, *b;
        bool same;
    } PAIRS[] = {
        { "fd00:1:2:3::1", "fd00:1:2:3:ffff::9", true },
        { "fd00:1:2:3::1", "fd00:1:2:4::1", false },
        { "::ffff:10.0.0.7", "::ffff:10.0.0.8", false },
    };
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        struct sockaddr_in6 a = v6(PAIRS[i].a), b = v6(PAIRS[i].b);
        begin();
        admitted(&a, CONNECT_MAX, 5000);
        ck_assert_int_eq(admitted(&b, 1, 5000), PAIRS[i].same ? 0 : 1);
    }
    struct sockaddr_in6 mapped = v6("::ffff:10.0.0.7"), plain = v4("10.0.0.7");
    begin();
    admitted(&mapped, CONNECT_MAX, 5000);
    ck_assert_int_eq(admitted(&plain, 1, 5000), 0);
}
END_TEST

START_TEST(a_connection_that_was_cut_off_counts_for_more)
{
    struct sockaddr_in6 client = v4("10.0.0.7");
    int connections = 0;
    while (connect_rate_add(&rate, &client, 1, 5000)) {
        connections++;
        connect_rate_add(&rate, &client, CONNECT_CUT_OFF, 5000);
    }
    ck_assert_int_eq(connections, 10);
}
END_TEST

/* More clients than the table has places: those that connected last are remembered. */
START_TEST(many_clients)
{
    struct sockaddr_in6 loud = v4("10.0.0.7");
    for (int i = 0; i < 100000; i++) {
        char address[INET_ADDRSTRLEN];
        uint32_t bits = htonl(0x0b000000U + (uint32_t)i);
        struct sockaddr_in6 client = v4(inet_ntop(AF_INET, &bits, address, sizeof(address)));
        ck_assert_int_eq(admitted(&client, 1, 1000 + i), 1);
    }
    ck_assert_int_eq(admitted(&loud, 1000, 101000), CONNECT_MAX);
}
END_TEST

START_TEST(a_local_socket)
{
    struct sockaddr_in6 local = { .sin6_family = AF_UNIX };
    ck_assert_int_eq(admitted(&local, 2000, 5000), 2000);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("connect_rate");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_test(t, a_client_that_connects_in_a_loop);
    tcase_add_test(t, other_addresses_are_not_held_up);
    tcase_add_test(t, one_client_by_several_addresses);
    tcase_add_test(t, a_connection_that_was_cut_off_counts_for_more);
    tcase_add_test(t, many_clients);
    tcase_add_test(t, a_local_socket);
    suite_add_tcase(s, t);
    return s;
}
