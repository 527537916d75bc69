/* Sums of quantities: suffixes, decimal exponents, rounding, and texts that are not quantities. */
#include "check_main.h"

#include <string.h>

#include "base/str.h"
#include "build/quantity_sum.h"

START_TEST(quantities_are_summed_as_kubernetes_does)
{
    static const struct {
        const char *list, *want; /* NULL: something in the list is not a quantity */
    } ROWS[] = {
        { "[]", "0" },
        { "[1, 2]", "3" },
        { "[\"500m\", \"1\"]", "1500m" },
        { "[\"500m\", 0.5]", "1" },
        { "[\"0.1\", \"0.2\"]", "300m" },
        { "[\"100u\"]", "1m" }, /* rounded up */
        { "[\"512Mi\", \"0.5Gi\"]", "1Gi" },
        { "[\"1Gi\", \"1\"]", "1073741825" },
        { "[\"1500Mi\"]", "1500Mi" },
        { "[\"1G\", \"1M\"]", "1001000000" },
        { "[\"1e3\", \"1E3\", \"2E+2\"]", "2200" },
        { "[\"1k\"]", "1000" },
        { "[\"\"]", NULL },
        { "[\"Mi\"]", NULL },
        { "[\"1mi\"]", NULL },
        { "[\"-1\"]", NULL },
        { "[-1]", NULL },
        { "[\"0x10\"]", NULL },
        { "[\"1E\"]", NULL }, /* too much */
        { "[\"nan\"]", NULL },
        { "[true]", NULL },
        { "[null]", NULL },
    };
    for (size_t i = 0; i < COUNT_OF(ROWS); i++) {
        struct err e = { .code = ERR_NONE };
        struct quantity_sum sum = { .milli = 0 };
        json_auto_t *list = NULL;
        size_t n;
        const json_t *v;
        bool good = true;

        ck_ok_e(json_parse(ROWS[i].list, strlen(ROWS[i].list), "list", &list, &e));
        json_array_foreach(list, n, v) good = quantity_sum_add(&sum, v, 1) == 0 && good;
        json_auto_t *text = quantity_sum_value(&sum);
        ck_assert_msg(good == (ROWS[i].want != NULL), "%s", ROWS[i].list);
        ck_assert_msg(!good || str_eq(json_string_value(text), ROWS[i].want), "%s is %s, not %s", ROWS[i].list,
                      json_string_value(text), ROWS[i].want);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("quantity_sum");
    TCase *t = tcase_create("quantity");
    tcase_add_test(t, quantities_are_summed_as_kubernetes_does);
    suite_add_tcase(s, t);
    return s;
}
