#include "check_main.h"

#include <string.h>

#include "job/job.h"

START_TEST(roles_have_names_and_keys)
{
    struct err e = { .code = ERR_NONE };
    for (int r = 0; r < ROLE_COUNT; r++) {
        enum role back;
        ck_ok_e(role_parse(role_name((enum role)r), &back, &e));
        ck_assert_int_eq((int)back, r);
    }
    ck_assert_str_eq(role_key(ROLE_PS), "PS");
    ck_assert_str_eq(role_key(ROLE_EVALUATOR), "Evaluator");
}
END_TEST

START_TEST(master_is_the_old_name_of_chief)
{
    struct err e = { .code = ERR_NONE };
    enum role r;
    ck_ok_e(role_parse("master", &r, &e));
    ck_assert_int_eq(r, ROLE_CHIEF);
}
END_TEST

START_TEST(an_unknown_role_gets_a_suggestion)
{
    struct err e = { .code = ERR_NONE };
    enum role r;
    ck_assert_int_eq(role_parse("wroker", &r, &e), -1);
    ck_assert_str_eq(e.msg, "role 'wroker' is not known; did you mean 'worker'?");
    ck_assert_int_eq(role_parse("scheduler", &r, &e), -1);
    ck_assert_str_eq(e.msg, "role 'scheduler' is not known; it must be ps, worker, chief or evaluator");
}
END_TEST

static const struct {
    enum restart_policy policy;
    int code;
    bool wanted;
} RESTARTS[] = {
    { RESTART_EXIT_CODE, 0, false },  { RESTART_EXIT_CODE, 1, false },  { RESTART_EXIT_CODE, 127, false },
    { RESTART_EXIT_CODE, 128, true }, { RESTART_EXIT_CODE, 137, true }, { RESTART_EXIT_CODE, 255, true },
    { RESTART_ON_FAILURE, 0, false }, { RESTART_ON_FAILURE, 2, true },  { RESTART_ON_FAILURE, 143, true },
    { RESTART_ALWAYS, 0, true },      { RESTART_ALWAYS, 2, true },      { RESTART_NEVER, 137, false },
};
START_TEST(a_replica_restarts_by_its_policy)
{
    ck_assert_msg(restart_wanted(RESTARTS[_i].policy, RESTARTS[_i].code) == RESTARTS[_i].wanted, "%s, exit code %d",
                  restart_policy_name(RESTARTS[_i].policy), RESTARTS[_i].code);
}
END_TEST

static const struct {
    const char *name, *error; /* NULL: good */
} JOB_NAMES[] = {
    { "mnist", NULL },
    { "a", NULL },
    { "a-1-b", NULL },
    { "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwx", NULL }, /* 51 */
    { "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxy",
      "'abcdefghijklmnopqrst...' has 52 characters; at most 51, so that its replicas' names fit" },
    { "", "the name is empty" },
    { "Mnist", "'Mnist' is not a valid job name: only a-z, 0-9 and '-'" },
    { "my_job", "'my_job' is not a valid job name: only a-z, 0-9 and '-'" },
    { "a.b", "'a.b' is not a valid job name: only a-z, 0-9 and '-'" },
    { "a/../b", "'a/../b' is not a valid job name: only a-z, 0-9 and '-'" },
    { "1st", "'1st' is not a valid job name: it must begin with a letter and must not end with '-'" },
    { "-a", "'-a' is not a valid job name: it must begin with a letter and must not end with '-'" },
    { "a-", "'a-' is not a valid job name: it must begin with a letter and must not end with '-'" },
};
START_TEST(a_name_must_do_for_kubernetes)
{
    struct err e = { .code = ERR_NONE };
    int r = job_check_name(JOB_NAMES[_i].name, &e);
    ck_assert_int_eq(r, JOB_NAMES[_i].error == NULL ? 0 : -1);
    if (JOB_NAMES[_i].error != NULL)
        ck_assert_str_eq(e.msg, JOB_NAMES[_i].error);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("role");
    TCase *t = tcase_create("role");
    tcase_add_test(t, roles_have_names_and_keys);
    tcase_add_test(t, master_is_the_old_name_of_chief);
    tcase_add_test(t, an_unknown_role_gets_a_suggestion);
    tcase_add_loop_test(t, a_replica_restarts_by_its_policy, 0, (int)COUNT_OF(RESTARTS));
    tcase_add_loop_test(t, a_name_must_do_for_kubernetes, 0, (int)COUNT_OF(JOB_NAMES));
    suite_add_tcase(s, t);
    return s;
}
