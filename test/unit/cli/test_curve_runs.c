#include "check_main.h"
#include "cli/curve_runs.h"

#include <string.h>

#include "base/buf.h"

/* Folders of event files, and the legend. */
static const struct {
    const char *folders[6];
    const char *legend;
} CASES[] = {
    { { "train", "validation" }, "train | validation" },
    { { "train" }, "train" },
    { { "." }, "train" },
    { { ".", "eval" }, "train | validation" }, /* TensorFlow's estimators */
    { { "runs/b/train", "runs/a/train", "runs/a/validation" }, "a b | validation" },
    { { "runs/a/x/train", "runs/b/x/train" }, "a/x b/x" },
    { { "runs/a", "runs/a/train", "runs/ab/train" }, "a ab" },
    { { "a/b", "a" }, "a a/b" },
    { { "a/summaries/train", "a/summaries/validation", "b/train" }, "a b | validation" },
    { { "summaries/train" }, "train" },
    { { "runs/0123456789012345678901234567890123456789x" }, "...456789012345678901234567890123456789x" },
};

START_TEST(the_legend_is_short)
{
    AUTO_FINI(curve_runs) r = { .validation = false };
    AUTO_FINI(buf) got = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(CASES[_i].folders) && CASES[_i].folders[i] != NULL; i++)
        curve_runs_add(&r, CASES[_i].folders[i]);
    curve_runs_settle(&r);
    for (size_t i = 0; i < r.names.n; i++)
        buf_printf(&got, "%s%s", i > 0 ? " " : "", r.names.items[i]);
    if (r.validation)
        buf_str(&got, " | validation");
    ck_assert_str_eq(got.data, CASES[_i].legend);
    for (size_t i = 0; i < COUNT_OF(CASES[_i].folders) && CASES[_i].folders[i] != NULL; i++)
        ck_assert_uint_lt(curve_runs_find(&r, CASES[_i].folders[i]), r.runs.n);
}
END_TEST

/* A name is not cut within a character. */
START_TEST(a_long_name_stays_utf8)
{
    for (size_t before = 0; before < 4; before++) {
        AUTO_FINI(curve_runs) r = { .validation = false };
        AUTO_FINI(buf) name = BUF_INIT;
        for (size_t i = 0; i < before; i++)
            buf_char(&name, 'x');
        for (size_t i = 0; i < 30; i++)
            buf_str(&name, "\xE2\x82\xAC");
        curve_runs_add(&r, name.data);
        curve_runs_settle(&r);
        ck_assert_uint_le(strlen(r.names.items[0]), 40);
        ck_assert_uint_eq((strlen(r.names.items[0]) - 3) % 3, 0);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/curve_runs");
    TCase *t = tcase_create("curve_runs");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, the_legend_is_short, 0, COUNT_OF(CASES));
    tcase_add_test(t, a_long_name_stays_utf8);
    return s;
}
