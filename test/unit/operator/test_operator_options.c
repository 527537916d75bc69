#include "check_main.h"

#include <stdlib.h>
#include <string.h>

#include "operator_options.h"

enum { ARGS_MAX = 8 };

static int parse(const char *const args[], struct operator_options *o, struct err *e)
{
    char *argv[ARGS_MAX + 2] = { (char[]){ "trainyard-operator" } };
    enum opt_result result;
    int n = 1, got;
    for (; args[n - 1] != NULL; n++)
        argv[n] = xstrdup(args[n - 1]);
    got = operator_options_parse(n, argv, o, &result, e);
    for (int i = 1; i < n; i++)
        free(argv[i]);
    return got;
}

START_TEST(defaults)
{
    AUTO_FINI(operator_options) o = { 0 };
    struct err e = { .code = ERR_NONE };
    ck_ok_e(parse((const char *const[]){ NULL }, &o, &e));
    ck_assert(o.leader_elect && o.trainjob && o.tfjob && o.network_policy && !o.insecure);
    ck_assert_uint_eq(o.namespaces.n, 0);
    ck_assert_uint_eq(o.scraper_namespaces.n, 1);
    ck_assert_int_eq(o.tfjob_clean, CLEAN_NONE);
    ck_assert_int_eq(o.force_delete_s, 60);
    ck_assert_int_eq(o.tfjob_force_delete_s, 0);
}
END_TEST

START_TEST(lists_and_switches)
{
    AUTO_FINI(operator_options) o = { 0 };
    struct err e = { .code = ERR_NONE };
    ck_ok_e(parse((const char *const[]){ "--namespace=a", "--namespace=b", "--no-tfjob", "--no-leader-elect",
                                         "--tfjob-clean-pod-policy=All", "--scraper-namespace=m", NULL },
                  &o, &e));
    ck_assert_uint_eq(o.namespaces.n, 2);
    ck_assert(!o.tfjob && !o.leader_elect);
    ck_assert_int_eq(o.tfjob_clean, CLEAN_ALL);
    ck_assert_uint_eq(o.scraper_namespaces.n, 1);
}
END_TEST

static const struct {
    const char *args[ARGS_MAX];
    const char *says;
} BAD[] = {
    { { "job.yaml", NULL }, "job.yaml" },
    { { "--no-trainjob", "--no-tfjob", NULL }, "nothing to do" },
    { { "--image-pull-policy=Sometimes", NULL }, "Sometimes" },
    { { "--tfjob-clean-pod-policy=none", NULL }, "none" },
    { { "--lease-seconds=2", NULL }, "lease-seconds" },
    { { "--progress-seconds=0", NULL }, "progress-seconds" },
    { { "--workers=-1", NULL }, "workers" },
    { { "--log-level=loud", NULL }, "loud" },
    { { "--bogus", NULL }, "bogus" },
};
START_TEST(what_is_wrong_is_named)
{
    AUTO_FINI(operator_options) o = { 0 };
    struct err e = { .code = ERR_NONE };
    ck_assert_int_lt(parse(BAD[_i].args, &o, &e), 0);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_msg(strstr(e.msg, BAD[_i].says) != NULL, "%s", e.msg);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("options");
    TCase *t = tcase_create("options");

    tcase_add_test(t, defaults);
    tcase_add_test(t, lists_and_switches);
    tcase_add_loop_test(t, what_is_wrong_is_named, 0, COUNT_OF(BAD));
    suite_add_tcase(s, t);
    return s;
}
