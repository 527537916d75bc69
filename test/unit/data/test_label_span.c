#include "data/label_span.h"

#include <math.h>

#include "check_main.h"

static struct label_span span_of(const double *labels, int64_t n)
{
    struct label_span s = { .n = 0 };
    for (int64_t i = 0; i < n; i++)
        label_span_add(&s, labels[i], i);
    return s;
}

START_TEST(the_first_record_of_the_least_and_the_largest_label)
{
    struct label_span s = span_of((double[]){ 2, -1, 5, -1, 5 }, 5);
    ck_assert(s.n == 5 && s.min == -1 && s.max == 5 && s.whole);
    ck_assert(s.min_at == 1 && s.max_at == 2);
    s = span_of((double[]){ 1, 0.5 }, 2);
    ck_assert(!s.whole);
}
END_TEST

START_TEST(nan_is_the_least_one)
{
    struct label_span s = span_of((double[]){ 1, (double)NAN, -3, (double)NAN, 2 }, 5);
    ck_assert(isnan(s.min) && s.min_at == 1 && s.max == 2 && s.max_at == 4 && !s.whole);
    s = span_of((double[]){ (double)NAN, 7 }, 2);
    ck_assert(isnan(s.min) && s.min_at == 0);
}
END_TEST

START_TEST(the_records_of_the_next_file_come_behind)
{
    struct label_span all = span_of((double[]){ 1, 2 }, 2);
    const struct label_span none = { .n = 0 }, next = span_of((double[]){ 1.5, 4, 0 }, 3);
    label_span_join(&all, &none, 2);
    ck_assert(all.n == 2 && all.max_at == 1 && all.whole);
    label_span_join(&all, &next, 2);
    ck_assert(all.n == 5 && all.min == 0 && all.min_at == 4 && all.max == 4 && all.max_at == 3 && !all.whole);
    struct label_span first = none;
    label_span_join(&first, &next, 0);
    ck_assert(first.n == 3 && first.min_at == 2 && first.max_at == 1 && !first.whole);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/label_span");
    TCase *t = tcase_create("label_span");
    suite_add_tcase(s, t);
    tcase_add_test(t, the_first_record_of_the_least_and_the_largest_label);
    tcase_add_test(t, nan_is_the_least_one);
    tcase_add_test(t, the_records_of_the_next_file_come_behind);
    return s;
}
