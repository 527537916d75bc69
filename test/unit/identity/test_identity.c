/* The URI of an identity and the rule by which members of a job accept each other. */
#include "identity/identity.h"

#include <string.h>

#include "check_main.h"

static const struct identity WORKER = { .ns = "team-a", .job_uid = "5f1c-01", .role = ROLE_WORKER, .index = 3 };

START_TEST(is_written_and_read_as_one_uri)
{
    static const struct {
        int role, index;
        const char *uri, *name;
    } CASES[] = {
        { ROLE_WORKER, 3, "spiffe://trainyard/team-a/5f1c-01/worker/3", "worker-3" },
        { ROLE_PS, 0, "spiffe://trainyard/team-a/5f1c-01/ps/0", "ps-0" },
        { ROLE_CHIEF, 0, "spiffe://trainyard/team-a/5f1c-01/chief/0", "chief-0" },
        { ROLE_EVALUATOR, 1, "spiffe://trainyard/team-a/5f1c-01/evaluator/1", "evaluator-1" },
        { IDENTITY_OPERATOR, 0, "spiffe://trainyard/team-a/5f1c-01/operator/0", "operator" },
        { IDENTITY_LAUNCHER, 0, "spiffe://trainyard/team-a/5f1c-01/launcher/0", "launcher" },
    };
    char uri[IDENTITY_URI_SIZE], name[IDENTITY_NAME_SIZE];
    struct identity i = WORKER, back;
    struct err e = { 0 };
    i.role = CASES[_i].role;
    i.index = CASES[_i].index;
    ck_assert_str_eq(identity_uri(&i, uri), CASES[_i].uri);
    ck_assert_str_eq(identity_name(&i, name), CASES[_i].name);
    ck_ok_e(identity_parse(uri, &back, &e));
    ck_assert(identity_same_job(&i, &back));
    ck_assert_int_eq(back.role, i.role);
    ck_assert_int_eq(back.index, i.index);
}
END_TEST

static const char *const BAD[] = {
    "",
    "spiffe://trainyard",
    "spiffe://trainyard/team-a/5f1c-01/worker",
    "spiffe://trainyard/team-a/5f1c-01/worker/3/",
    "spiffe://trainyard/team-a/5f1c-01/worker/3/4",
    "spiffe://trainyard/team-a/5f1c-01/worker/03",
    "spiffe://trainyard/team-a/5f1c-01/worker/-1",
    "spiffe://trainyard/team-a/5f1c-01/worker/9999999",
    "spiffe://trainyard/team-a/5f1c-01/operator/1",
    "spiffe://trainyard/team-a/5f1c-01/admin/0",
    "spiffe://trainyard/team-a/5f1c-01/master/0",
    "spiffe://trainyard/team-a//worker/3",
    "spiffe://trainyard/team a/5f1c-01/worker/3",
    "spiffe://trainyard/team%2da/5f1c-01/worker/3",
    "spiffe://elsewhere/team-a/5f1c-01/worker/3",
    "https://trainyard/team-a/5f1c-01/worker/3",
    "spiffe://trainyard/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/5f1c-01/worker/3",
};

START_TEST(refuses_other_texts)
{
    struct identity i = WORKER;
    struct err e = { 0 };
    ck_assert_int_eq(identity_parse(BAD[_i], &i, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(e.msg, "spiffe://trainyard/NAMESPACE/JOB-UID/ROLE/INDEX"));
    ck_assert_int_eq(i.index, 3); /* untouched */
}
END_TEST

START_TEST(accepts_members_of_its_job_only)
{
    const struct identity ps = { .ns = "team-a", .job_uid = "5f1c-01", .role = ROLE_PS, .index = 1 };
    const struct identity other = { .ns = "team-a", .job_uid = "5f1c-02", .role = ROLE_PS, .index = 1 };
    const struct identity elsewhere = { .ns = "team-b", .job_uid = "5f1c-01", .role = ROLE_PS, .index = 1 };
    struct err e = { 0 };
    ck_ok_e(identity_accept(&WORKER, &ps, -1, 0, &e));
    ck_ok_e(identity_accept(&WORKER, &ps, ROLE_PS, 1, &e));
    ck_assert_int_eq(identity_accept(&WORKER, &ps, ROLE_PS, 0, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_assert_str_eq(e.msg, "the peer is ps-1, not ps-0");
    ck_assert_int_eq(identity_accept(&WORKER, &ps, ROLE_CHIEF, 1, &e), -1);
    ck_assert_int_eq(identity_accept(&WORKER, &other, -1, 0, &e), -1);
    ck_assert_str_eq(e.msg, "the peer is ps-1 of job team-a/5f1c-02, and this is job team-a/5f1c-01");
    ck_assert_int_eq(identity_accept(&WORKER, &elsewhere, -1, 0, &e), -1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("identity");
    TCase *t = tcase_create("identity");
    tcase_add_loop_test(t, is_written_and_read_as_one_uri, 0, 6);
    tcase_add_loop_test(t, refuses_other_texts, 0, (int)COUNT_OF(BAD));
    tcase_add_test(t, accepts_members_of_its_job_only);
    suite_add_tcase(s, t);
    return s;
}
