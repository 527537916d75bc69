/* When a job may create again after a refusal, and how many objects. The test has its own clock. */
#include "check_main.h"

#include "base/mem.h"
#include "control/create_backoff.h"

START_TEST(creates_start_slowly_after_a_refusal)
{
    struct create_backoff p = { .failures = 0 };
    int64_t now = 1000;
    p.in_flight = 500;
    ck_assert(create_backoff_allows(&p, now)); /* any number before that */
    ck_assert(create_backoff_refused(&p, 900, now));
    for (int i = 0; i < 499; i++)
        ck_assert(!create_backoff_refused(&p, 900 + i % 90, now + i)); /* the others of that round */
    ck_assert_int_eq(p.failures, 1);
    create_backoff_accepted(&p, 950); /* of that round, too */
    ck_assert_int_eq(p.max_in_flight, 1);
    p.in_flight = 0;
    ck_assert(!create_backoff_allows(&p, now + 999));
    now += 1000;
    static const int WANT[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 };
    for (size_t i = 0; i < COUNT_OF(WANT); i++) {
        for (p.in_flight = 0; create_backoff_allows(&p, now) && p.in_flight < 5000;)
            p.in_flight++;
        ck_assert_int_eq(p.in_flight, WANT[i]);
        for (; p.in_flight > 0; p.in_flight--)
            create_backoff_accepted(&p, now);
        now += 10;
    }
    p.in_flight = 5000;
    ck_assert(create_backoff_allows(&p, now)); /* without a limit again */
}
END_TEST

START_TEST(pauses_grow_and_end_with_the_first_that_is_accepted)
{
    static const int64_t WANT[] = { 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000 };
    struct create_backoff p = { .failures = 0 };
    int64_t now = 5;
    for (size_t i = 0; i < COUNT_OF(WANT); i++) {
        ck_assert(create_backoff_refused(&p, now, now + 3));
        ck_assert(!create_backoff_allows(&p, now + 3 + WANT[i] - 1));
        ck_assert(create_backoff_allows(&p, now + 3 + WANT[i]));
        now += 3 + WANT[i];
    }
    create_backoff_accepted(&p, now);
    ck_assert(create_backoff_refused(&p, now + 1, now + 2));
    ck_assert(create_backoff_allows(&p, now + 2 + WANT[0]));
    p.in_flight = 7;
    create_backoff_reset(&p);
    ck_assert(create_backoff_allows(&p, 0) && p.in_flight == 7 && p.max_in_flight == 0);
    create_backoff_delay(&p, 100, 5000); /* another owner's object has the name: the caller says when to retry */
    ck_assert(!create_backoff_allows(&p, 5099) && create_backoff_allows(&p, 5100) && p.max_in_flight == 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("create_backoff");
    TCase *t = tcase_create("create_backoff");
    tcase_add_test(t, creates_start_slowly_after_a_refusal);
    tcase_add_test(t, pauses_grow_and_end_with_the_first_that_is_accepted);
    suite_add_tcase(s, t);
    return s;
}
