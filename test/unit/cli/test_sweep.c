#include "check_main.h"
#include "cli/sweep.h"

#include <string.h>

#include "base/buf.h"

static int parse(const char *const *texts, size_t n, struct sweep *ret, struct err *e)
{
    AUTO_FINI(strlist) list = { 0 };
    for (size_t i = 0; i < n && texts[i] != NULL; i++)
        strlist_add(&list, texts[i]);
    return sweep_parse(&list, ret, e);
}

/* Each run: its folder and what it sets. */
static const struct {
    const char *texts[3];
    const char *runs;
} CASES[] = {
    { { "fit.batchSize=32,64" }, "batchSize=32: fit.batchSize=32\nbatchSize=64: fit.batchSize=64\n" },
    { { "fit.seed=1" }, "seed=1: fit.seed=1\n" },
    { { "fit.seed=1,2", "a.b=x,y" },
      "seed=1,b=x: fit.seed=1 a.b=x\nseed=1,b=y: fit.seed=1 a.b=y\n"
      "seed=2,b=x: fit.seed=2 a.b=x\nseed=2,b=y: fit.seed=2 a.b=y\n" },
    { { "compile.optimizer=SGD,{Adam: {learning_rate: 0.1, beta_1: 0.5}}" },
      "optimizer=SGD: compile.optimizer=SGD\n"
      "optimizer=_Adam___learning_rate__0.1__beta_1__0.5_: "
      "compile.optimizer={Adam: {learning_rate: 0.1, beta_1: 0.5}}\n" },
    { { "x='a,b',\"c]\",[1, 2]" }, "x=_a_b_: x='a,b'\nx=_c__: x=\"c]\"\nx=_1__2_: x=[1, 2]\n" },
    { { "x=[1],(1)" }, "x=_1_-1: x=[1]\nx=_1_-2: x=(1)\n" }, /* no two runs in one folder */
    { { "x=../../etc" }, "x=.._.._etc: x=../../etc\n" },
};

START_TEST(a_run_for_each_combination)
{
    AUTO_FINI(sweep) s = { .n = 0 };
    AUTO_FINI(buf) got = BUF_INIT;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(parse(CASES[_i].texts, COUNT_OF(CASES[_i].texts), &s, &e));
    for (size_t i = 0; i < sweep_runs(&s); i++) {
        AUTO_FINI(strlist) sets = { 0 };
        auto_free char *name = sweep_name(&s, i);
        sweep_sets(&s, i, &sets);
        buf_printf(&got, "%s:", name);
        for (size_t k = 0; k < sets.n; k++)
            buf_printf(&got, " %s", sets.items[k]);
        buf_char(&got, '\n');
    }
    ck_assert_str_eq(got.data, CASES[_i].runs);
}
END_TEST

static const struct {
    const char *texts[9];
    const char *error;
} WRONG[] = {
    { { "fit.seed" }, "--sweep: 'fit.seed' must be PATH=VALUE,VALUE..., such as fit.batchSize=32,64" },
    { { "=1" }, "--sweep: '=1' must be PATH=VALUE,VALUE..., such as fit.batchSize=32,64" },
    { { "fit.seed=" }, "--sweep: 'fit.seed=' has an empty value" },
    { { "fit.seed=1," }, "--sweep: 'fit.seed=1,' has an empty value" },
    { { "fit.seed=1,,2" }, "--sweep: 'fit.seed=1,,2' has an empty value" },
    { { "fit.seed=1,1" }, "--sweep: 'fit.seed=1,1' has the value 1 twice" },
    { { "fit.seed=1", "fit.seed=2" }, "--sweep: fit.seed is given twice; list its values after one" },
    { { "a=0,1,2,3,4,5", "b=0,1,2,3,4,5", "c=0,1,2,3,4,5" }, "--sweep: these are more than 200 runs" },
    { { "a=1", "b=1", "c=1", "d=1", "e=1", "f=1", "g=1", "h=1", "i=1" }, "--sweep: at most 8 fields" },
};

START_TEST(an_error_says_what_is_wrong)
{
    AUTO_FINI(sweep) s = { .n = 0 };
    struct err e = { .code = ERR_NONE };
    ck_assert_int_eq(parse(WRONG[_i].texts, COUNT_OF(WRONG[_i].texts), &s, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_str_eq(e.msg, WRONG[_i].error);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/sweep");
    TCase *t = tcase_create("sweep");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, a_run_for_each_combination, 0, COUNT_OF(CASES));
    tcase_add_loop_test(t, an_error_says_what_is_wrong, 0, COUNT_OF(WRONG));
    return s;
}
