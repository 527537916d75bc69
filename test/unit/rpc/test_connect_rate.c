/* How often addresses may connect, with a given clock. */
#include <arpa/inet.h>
#include <string.h>

#include "base/mem.h"
#include "check_main.h"
#include "rpc/connect_rate.h"

static struct connect_rate rate;

static struct peer_address of(sa_family_t family, const char *address)
{
    struct peer_address a = { .family = family, .port = 1234 };
    ck_assert_int_eq(inet_pton(family, address, a.address), 1);
    return a;
}
static struct peer_address v6(const char *address)
{
    return of(AF_INET6, address);
}
static struct peer_address v4(const char *address)
{
    return of(AF_INET, address);
}

/* How many of n connections are admitted. */
static int admitted(const struct peer_address *client, int n, int64_t now_ms)
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
    struct peer_address client = v4("10.0.0.7");
    ck_assert_int_eq(admitted(&client, CONNECT_MAX, 5000), CONNECT_MAX);
    ck_assert_int_eq(admitted(&client, 10000, 5999), 0);
    ck_assert_int_eq(admitted(&client, 10000, 6000), CONNECT_MAX);
}
END_TEST

START_TEST(other_addresses_are_not_held_up)
{
    static const char *const OTHERS[] = { "10.0.0.8", "10.0.1.7", "11.0.0.7" };
    struct peer_address client = v4("10.0.0.7");
    admitted(&client, 2000, 5000);
    for (size_t i = 0; i < COUNT_OF(OTHERS); i++) {
        struct peer_address other = v4(OTHERS[i]);
        ck_assert_int_eq(admitted(&other, CONNECT_MAX, 5000), CONNECT_MAX);
    }
}
END_TEST

/* A client has all addresses of its network of IPv6. */
START_TEST(one_client_by_several_addresses)
{
    static const struct {
        const char *a, *b;
        bool same;
    } PAIRS[] = {
        { "fd00:1:2:3::1", "fd00:1:2:3:ffff::9", true },
        { "fd00:1:2:3::1", "fd00:1:2:4::1", false },
        { "10.0.0.7", "10.0.0.7", true },
        { "10.0.0.7", "10.0.0.8", false },
    };
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        bool is_v6 = strchr(PAIRS[i].a, ':') != NULL;
        struct peer_address a = is_v6 ? v6(PAIRS[i].a) : v4(PAIRS[i].a), b = is_v6 ? v6(PAIRS[i].b) : v4(PAIRS[i].b);
        begin();
        admitted(&a, CONNECT_MAX, 5000);
        ck_assert_int_eq(admitted(&b, 1, 5000), PAIRS[i].same ? 0 : 1);
    }
}
END_TEST

START_TEST(a_connection_that_was_cut_off_counts_for_more)
{
    struct peer_address client = v4("10.0.0.7");
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
    struct peer_address loud = v4("10.0.0.7");
    for (int i = 0; i < 100000; i++) {
        char address[INET_ADDRSTRLEN];
        uint32_t bits = htonl(0x0b000000U + (uint32_t)i);
        struct peer_address client = v4(inet_ntop(AF_INET, &bits, address, sizeof(address)));
        ck_assert_int_eq(admitted(&client, 1, 1000 + i), 1);
    }
    ck_assert_int_eq(admitted(&loud, 1000, 101000), CONNECT_MAX);
    for (int i = 99900; i < 100000; i++) {
        char address[INET_ADDRSTRLEN];
        uint32_t bits = htonl(0x0b000000U + (uint32_t)i);
        struct peer_address client = v4(inet_ntop(AF_INET, &bits, address, sizeof(address)));
        ck_assert_int_eq(admitted(&client, CONNECT_MAX, 100999), CONNECT_MAX - 1); /* one was there */
    }
}
END_TEST

START_TEST(a_client_without_an_address)
{
    struct peer_address local = { .family = AF_UNSPEC };
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
    tcase_add_test(t, a_client_without_an_address);
    suite_add_tcase(s, t);
    return s;
}
