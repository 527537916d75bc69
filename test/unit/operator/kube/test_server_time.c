/* The estimate of the server's time: its precision after many answers, and clocks that are set. */
#include "check_main.h"

#include "kube/server_time.h"

/* A server 130 s behind, whose Date has whole seconds; answers take 4 to 40 ms. */
START_TEST(the_servers_time_is_found_to_some_milliseconds)
{
    const int64_t behind = 130000 + 321, wall = INT64_C(1772600767456);
    struct server_time t = server_time_of(wall, 5000);
    ck_assert_int_eq(server_time_at(&t, 5000), wall - 1); /* no estimate yet */
    for (int64_t at = 5000, i = 0; i < 300; i++, at += 237 + i % 7 * 31) {
        int64_t sent = at, got = at + 4 + i % 10 * 4, there = wall - 5000 + (sent + got) / 2 - behind;
        server_time_observe(&t, there / 1000 * 1000, sent, got);
        int64_t off = server_time_at(&t, got) - (wall - 5000 + got - behind);
        ck_assert_int_le(off < 0 ? -off : off, i < 100 ? 1100 : 50);
    }
}
END_TEST

/* Clocks that agree are not corrected, and a clock that was set is followed at once. */
START_TEST(the_servers_time_changes_when_it_must)
{
    struct server_time t = server_time_of(1000000500, 500);
    server_time_observe(&t, 1000001000, 1400, 1410);
    ck_assert_int_eq(server_time_at(&t, 1410), 1000001409);
    server_time_observe(&t, 1000062000, 2400, 2410);
    ck_assert_int_ge(server_time_at(&t, 2410), 1000061999);
    ck_assert_int_le(server_time_at(&t, 2410), 1000063010);
}
END_TEST

/* On the server's own host, in microseconds: the estimate is never ahead, and three milliseconds behind at most. */
START_TEST(the_servers_time_is_never_early)
{
    const int64_t difference = INT64_C(1772600767123456);
    for (int64_t began = 5000000; began < 5002000; began += 37) {
        struct server_time t = server_time_of((difference + began) / 1000, began / 1000);
        for (int64_t sent = began, i = 0; i < 50; i++, sent += 300017) {
            int64_t answered = sent + 150 + i % 7 * 90, got = answered + 60 + i % 5 * 110;
            server_time_observe(&t, (difference + answered) / 1000000 * 1000, sent / 1000, got / 1000);
            ck_assert_int_le(server_time_at(&t, got / 1000) * 1000, difference + got);
            ck_assert_int_ge(server_time_at(&t, got / 1000) * 1000, difference + got - 3000);
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("server_time");
    TCase *t = tcase_create("all");

    tcase_add_test(t, the_servers_time_is_found_to_some_milliseconds);
    tcase_add_test(t, the_servers_time_changes_when_it_must);
    tcase_add_test(t, the_servers_time_is_never_early);
    suite_add_tcase(s, t);
    return s;
}
