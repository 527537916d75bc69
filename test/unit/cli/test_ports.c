/* Ports that launchers reserve beside each other, and the servers that listen on them. */
#include "cli/ports.h"

#include "check_main.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/address.h"

enum { N = 40, SEED = 12345 };

START_TEST(ports_are_different_and_not_ephemeral)
{
    struct err e = { 0 };
    AUTO_FINI(ports) p = { 0 };
    ck_ok_e(ports_reserve(&p, N, SEED, &e));
    ck_assert_uint_eq(p.n, N);
    for (size_t i = 0; i < N; i++) {
        ck_assert_int_ge(p.number[i], 1024);
        ck_assert_int_lt(p.number[i], 32768);
        for (size_t k = 0; k < i; k++)
            ck_assert_int_ne(p.number[i], p.number[k]);
    }
}
END_TEST

START_TEST(two_launchers_never_have_the_same_port)
{
    struct err e = { 0 };
    AUTO_FINI(ports) one = { 0 }, other = { 0 };
    ck_ok_e(ports_reserve(&one, N, SEED, &e));
    ck_ok_e(ports_reserve(&other, N, SEED, &e));
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            ck_assert_int_ne(one.number[i], other.number[k]);
}
END_TEST

START_TEST(a_replica_listens_on_a_reserved_port_again_and_again)
{
    struct err e = { 0 };
    AUTO_FINI(ports) p = { 0 }, other = { 0 };
    char address[32];
    ck_ok_e(ports_reserve(&p, 1, SEED, &e));
    str_fmt(address, sizeof(address), "127.0.0.1:%d", p.number[0]);
    for (int start = 0; start < 3; start++) {
        auto_close int fd = -1;
        uint16_t port;
        ck_ok_e(address_listen(address, &fd, &port, &e));
        ck_assert_int_eq(port, p.number[0]);
    }
    /* Between two starts too, nobody else gets it. */
    ck_ok_e(ports_reserve(&other, 1, SEED, &e));
    ck_assert_int_ne(other.number[0], p.number[0]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("ports");
    TCase *t = tcase_create("ports");
    tcase_add_test(t, ports_are_different_and_not_ephemeral);
    tcase_add_test(t, two_launchers_never_have_the_same_port);
    tcase_add_test(t, a_replica_listens_on_a_reserved_port_again_and_again);
    suite_add_tcase(s, t);
    return s;
}
