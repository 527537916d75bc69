#include "base/map.h"
#include "base/rng.h"
#include "check_main.h"

#include <stdio.h>
#include <string.h>

START_TEST(an_empty_map_knows_nothing)
{
    AUTO_FINI(map) m = { 0 };
    size_t i = 0;
    ck_assert_ptr_null(map_get(&m, "a"));
    ck_assert_ptr_null(map_remove(&m, "a"));
    ck_assert_ptr_null(map_next(&m, &i));
}
END_TEST

START_TEST(a_value_is_replaced_and_the_old_one_given_back)
{
    AUTO_FINI(map) m = { 0 };
    char key[] = "default/digits";
    int a, b;
    ck_assert_ptr_null(map_put(&m, key, &a));
    ck_assert_ptr_eq(map_put(&m, "default/digits", &b), &a);
    key[0] = 'x'; /* the key was copied */
    ck_assert_ptr_eq(map_get(&m, "default/digits"), &b);
    ck_assert_ptr_null(map_get(&m, key));
    ck_assert_ptr_eq(map_remove(&m, "default/digits"), &b);
    ck_assert_ptr_null(map_get(&m, "default/digits"));
    ck_assert_uint_eq(m.n, 0);
}
END_TEST

START_TEST(a_map_keeps_order_and_replaces)
{
    AUTO_FINI(map) m = { 0 };
    static int values[2000];
    const struct map_slot *s;
    char key[16];
    size_t at = 0;

    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        map_put(&m, key, &values[i]);
    }
    ck_assert_uint_eq(m.n, 2000);
    ck_assert_ptr_eq(map_get(&m, "k1234"), &values[1234]);
    ck_assert_ptr_null(map_get(&m, "nobody"));
    map_put(&m, "k5", &values[0]);
    ck_assert_uint_eq(m.n, 2000);
    ck_assert_ptr_eq(map_remove(&m, "k7"), &values[7]);
    for (int i = 0; i < 2000; i++) {
        if (i == 7)
            continue;
        ck_assert_ptr_nonnull(s = map_next(&m, &at));
        snprintf(key, sizeof(key), "k%d", i);
        ck_assert_str_eq(s->key, key);
        ck_assert_ptr_eq(s->value, &values[i == 5 ? 0 : i]);
    }
    ck_assert_ptr_null(map_next(&m, &at));
}
END_TEST

START_TEST(walking_meets_each_once_and_may_remove)
{
    AUTO_FINI(map) m = { 0 };
    static int values[1000];
    char key[32];
    struct map_slot *s;

    for (int k = 0; k < 1000; k++) {
        snprintf(key, sizeof(key), "key-%d", k);
        values[k] = 0;
        map_put(&m, key, &values[k]);
    }
    for (size_t i = 0; (s = map_next(&m, &i)) != NULL;) {
        int *v = s->value;
        (*v)++;
        if ((v - values) % 2 == 0)
            ck_assert_ptr_eq(map_remove(&m, s->key), v);
    }
    for (int k = 0; k < 1000; k++) {
        snprintf(key, sizeof(key), "key-%d", k);
        ck_assert_int_eq(values[k], 1);
        ck_assert_ptr_eq(map_get(&m, key), k % 2 == 0 ? NULL : &values[k]);
    }
    ck_assert_uint_eq(m.n, 500);
}
END_TEST

/* 200,000 random steps compared with a plain array: both hold the same keys at every step. */
START_TEST(a_map_is_like_an_array)
{
    enum { KEYS = 300 };
    AUTO_FINI(map) m = { 0 };
    static char values[2 * KEYS];
    void *known[KEYS] = { NULL };
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    size_t n = 0;

    for (int step = 0; step < 200000; step++) {
        size_t k = (size_t)rng_below(&r, KEYS);
        char key[32];
        snprintf(key, sizeof(key), "%zu", k);
        if (rng_below(&r, 2) == 0) {
            void *value = &values[2 * k + (size_t)rng_below(&r, 2)];
            ck_assert_ptr_eq(map_put(&m, key, value), known[k]);
            n += known[k] == NULL;
            known[k] = value;
        } else {
            ck_assert_ptr_eq(map_remove(&m, key), known[k]);
            n -= known[k] != NULL;
            known[k] = NULL;
        }
        ck_assert_ptr_eq(map_get(&m, key), known[k]);
        ck_assert_uint_eq(m.n, n);
        ck_assert(m.used >= m.n && m.used * 4 <= m.cap * 3);
    }
}
END_TEST

START_TEST(what_came_and_went_takes_no_room)
{
    AUTO_FINI(map) m = { 0 };
    char key[32];
    static int value;
    for (int k = 0; k < 100000; k++) {
        snprintf(key, sizeof(key), "%d", k);
        map_put(&m, key, &value);
        if (k >= 5) {
            snprintf(key, sizeof(key), "%d", k - 5);
            ck_assert_ptr_eq(map_remove(&m, key), &value);
        }
    }
    ck_assert_uint_eq(m.n, 5);
    ck_assert_uint_le(m.cap, 32);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("map");
    TCase *t = tcase_create("all");
    tcase_add_test(t, an_empty_map_knows_nothing);
    tcase_add_test(t, a_value_is_replaced_and_the_old_one_given_back);
    tcase_add_test(t, a_map_keeps_order_and_replaces);
    tcase_add_test(t, walking_meets_each_once_and_may_remove);
    tcase_add_test(t, a_map_is_like_an_array);
    tcase_add_test(t, what_came_and_went_takes_no_room);
    suite_add_tcase(s, t);
    return s;
}
