/* Each ordinal of a step is claimed by one thread. */
#include "check_main.h"

#include <stdatomic.h>

#include "base/thread.h"
#include "train/claims.h"

START_TEST(an_ordinal_is_claimed_once)
{
    AUTO(claims) *c = claims_new(4);
    ck_assert(claims_take(c, 8, 9));
    ck_assert(!claims_take(c, 8, 9));
    ck_assert(claims_take(c, 8, 8));
    ck_assert(claims_take(c, 8, 11));
    ck_assert(claims_take(c, 12, 12)); /* the next step */
    ck_assert(!claims_take(c, 12, 12));
    ck_assert(!claims_take(c, 8, 10)); /* of a step that is over */
    ck_assert(claims_take(c, 12, 13));
}
END_TEST

enum { THREADS = 4, SIZE = 1000 };

struct counter {
    struct claims *claims;
    atomic_int taken[SIZE];
};

static void claim_all(void *user)
{
    struct counter *c = user;
    for (int64_t i = 0; i < SIZE; i++)
        if (claims_take(c->claims, 0, i))
            atomic_fetch_add(&c->taken[i], 1);
}

START_TEST(threads_share_the_ordinals)
{
    struct counter c = { .claims = claims_new(SIZE) };
    struct thread threads[THREADS] = { 0 };
    struct err e = { 0 };
    for (int i = 0; i < THREADS; i++)
        ck_ok_e(thread_start(&threads[i], "claims", claim_all, &c, &e));
    for (int i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    for (int i = 0; i < SIZE; i++)
        ck_assert_int_eq(atomic_load(&c.taken[i]), 1);
    claims_free(c.claims);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("claims");
    TCase *c = tcase_create("all");
    tcase_add_test(c, an_ordinal_is_claimed_once);
    tcase_add_test(c, threads_share_the_ordinals);
    suite_add_tcase(s, c);
    return s;
}
