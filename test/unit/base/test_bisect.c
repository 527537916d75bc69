/* The place of every number among ascending ones, of every length, also as members of structures. */
#include "base/bisect.h"

#include "../check_main.h"

struct item {
    char name;
    int64_t from;
};

/* 0, 2, 2, 4, 6, ...: below, between, equal, twice and above. */
START_TEST(counts_what_is_not_above)
{
    enum { N = 9 };
    int64_t plain[N];
    struct item items[N];
    for (int i = 0; i < N; i++)
        plain[i] = items[i].from = i == 0 ? 0 : i == 1 ? 2 : 2 * (i - 1);
    for (size_t n = 0; n <= N; n++)
        for (int64_t x = -1; x < 2 * N; x++) {
            size_t want = 0;
            while (want < n && plain[want] <= x)
                want++;
            ck_assert_uint_eq(bisect_right(plain, sizeof(plain[0]), n, x), want);
            ck_assert_uint_eq(bisect_right(&items[0].from, sizeof(items[0]), n, x), want);
        }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("base/bisect");
    TCase *t = tcase_create("bisect");
    suite_add_tcase(s, t);
    tcase_add_test(t, counts_what_is_not_above);
    return s;
}
