#include "base/rng.h"
#include "check_main.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* kat_vectors of the Random123 library, philox4x32 with 10 rounds */
static const struct {
    uint32_t counter[4], key[2], want[4];
} KNOWN[] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};
START_TEST(philox_known_answers)
{
    struct philox got = philox4x32(KNOWN[_i].counter, KNOWN[_i].key);
    ck_assert_mem_eq(got.v, KNOWN[_i].want, sizeof(got.v));
}
END_TEST

START_TEST(a_draw_is_a_function_of_its_name)
{
    struct rng a = rng_at(7, RNG_DROPOUT, 1234567890123, 5), b = a;
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(rng_u32(&a), rng_u32(&b));

    /* every part of the name matters */
    struct rng base = rng_at(7, RNG_DROPOUT, 1, 5);
    struct rng others[] = { rng_at(8, RNG_DROPOUT, 1, 5), rng_at(7, RNG_SHUFFLE, 1, 5), rng_at(7, RNG_DROPOUT, 2, 5),
                            rng_at(7, RNG_DROPOUT, 1 + (1ULL << 32), 5), rng_at(7, RNG_DROPOUT, 1, 6) };
    uint64_t first = rng_u64(&base);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        ck_assert_uint_ne(first, rng_u64(&others[i]));
}
END_TEST

START_TEST(uniform_is_uniform)
{
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    double sum = 0;
    int buckets[10] = { 0 };
    for (int i = 0; i < 100000; i++) {
        float u = rng_uniform(&r);
        ck_assert(u >= 0 && u < 1);
        sum += (double)u;
        buckets[(int)(u * 10)]++;
    }
    ck_assert_double_eq_tol(sum / 100000, 0.5, 0.005);
    for (int i = 0; i < 10; i++)
        ck_assert_int_gt(buckets[i], 9500);
}
END_TEST

START_TEST(normal_is_normal)
{
    struct rng r = rng_at(1, RNG_TEST, 1, 0);
    double sum = 0, squares = 0;
    int within_one = 0;
    for (int i = 0; i < 100000; i++) {
        double z = rng_normal(&r);
        ck_assert(isfinite(z));
        sum += z;
        squares += z * z;
        within_one += fabs(z) < 1;
    }
    ck_assert_double_eq_tol(sum / 100000, 0, 0.02);
    ck_assert_double_eq_tol(squares / 100000, 1, 0.03);
    ck_assert_double_eq_tol(within_one / 100000.0, 0.6827, 0.01);
}
END_TEST

START_TEST(below_stays_below_and_reaches_all)
{
    struct rng r = rng_at(1, RNG_TEST, 2, 0);
    int seen[7] = { 0 };
    for (int i = 0; i < 7000; i++) {
        uint64_t v = rng_below(&r, 7);
        ck_assert_uint_lt(v, 7);
        seen[v]++;
    }
    for (int i = 0; i < 7; i++)
        ck_assert_int_gt(seen[i], 800);
    ck_assert_uint_eq(rng_below(&r, 1), 0);
    ck_assert_uint_eq(rng_below(&r, 0), 0);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_lt(rng_below(&r, (1ULL << 63) + 1), (1ULL << 63) + 1);
}
END_TEST

START_TEST(hashes_tell_apart_and_never_change)
{
    char text[64];
    memset(text, 'a', sizeof(text));
    for (size_t n = 0; n < sizeof(text); n++)
        for (size_t m = 0; m < n; m++)
            ck_assert_uint_ne(hash64(text, n, 0), hash64(text, m, 0));
    ck_assert_uint_ne(hash64("a", 1, 0), hash64("a", 1, 1));
    ck_assert_uint_ne(hash64_mix(1, 2), hash64_mix(2, 1));
    ck_assert_uint_ne(hash64_mix(0, 0), 0);
    /* fingerprints are kept in checkpoints: these values must never change */
    ck_assert_uint_eq(hash64("trainyard", 9, 0), 0x43f57415e47a4b3aULL);
    ck_assert_uint_eq(hash64("", 0, 7), 0x154cea59e786c62cULL);
}
END_TEST

START_TEST(an_incarnation_is_not_0_and_never_twice_the_same)
{
    uint64_t before = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t v = random_incarnation();
        ck_assert(v != 0 && v <= INT64_MAX && v != before);
        before = v;
    }
}
END_TEST

/* The first bits are the time in milliseconds since 2020. */
START_TEST(a_later_incarnation_is_higher)
{
    double before = clock_wall();
    uint64_t v = random_incarnation();
    double time = (double)(v >> 22) / 1000 + 1577836800.0;
    ck_assert(time >= before - 0.001 && time <= clock_wall() + 0.001);
    for (int i = 0; i < 1000; i++) {
        uint64_t next = random_incarnation();
        ck_assert_uint_gt(next, v);
        v = next;
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("rng");
    TCase *t = tcase_create("rng");
    tcase_add_loop_test(t, philox_known_answers, 0, COUNT_OF(KNOWN));
    tcase_add_test(t, an_incarnation_is_not_0_and_never_twice_the_same);
    tcase_add_test(t, a_later_incarnation_is_higher);
    tcase_add_test(t, a_draw_is_a_function_of_its_name);
    tcase_add_test(t, uniform_is_uniform);
    tcase_add_test(t, normal_is_normal);
    tcase_add_test(t, below_stays_below_and_reaches_all);
    tcase_add_test(t, hashes_tell_apart_and_never_change);
    suite_add_tcase(s, t);
    return s;
}
