#include "check_main.h"

#include <stdlib.h>
#include <string.h>

#include "api/job_identity.h"

#define T0 INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static void parse(const char *text, struct job_identity *ret)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    ck_ok_e(json_parse(text, strlen(text), "test", &v, &e));
    job_identity_parse(v, ret);
}

static void assert_text(const struct job_identity *i, const char *want)
{
    json_auto_t *v = job_identity_json(i);
    AUTO_FINI(buf) text = BUF_INIT;
    json_emit(v, &text);
    ck_assert_str_eq(text.data, want);
}

static void two_secrets(struct job_identity *i)
{
    *i = (struct job_identity){ .insecure = false };
    size_t a = job_identity_add_secret(i, "digits-identity-a", "s-1");
    size_t b = job_identity_add_secret(i, "digits-identity-b", "s-2");
    strcpy(i->secrets[a].cas.ids[i->secrets[a].cas.n++], "0011223344556677");
    for (int w = 0; w < 4; w++)
        job_identity_put(i, ROLE_WORKER, w, a, T0, "0011223344556677");
    job_identity_put(i, ROLE_PS, 0, a, T0, "0011223344556677");
    job_identity_put(i, ROLE_WORKER, 4, b, T0 + 60000, "0011223344556677");
}

START_TEST(each_replica_finds_its_secret)
{
    AUTO_FINI(job_identity) i = { .nleaves = 0 };
    two_secrets(&i);
    ck_assert_str_eq(job_identity_secret(&i, ROLE_WORKER, 3), "digits-identity-a");
    ck_assert_str_eq(job_identity_secret(&i, ROLE_WORKER, 4), "digits-identity-b");
    ck_assert_str_eq(job_identity_secret(&i, ROLE_PS, 0), "digits-identity-a");
    ck_assert_ptr_null(job_identity_secret(&i, ROLE_WORKER, 5));
    ck_assert_ptr_null(job_identity_secret(&i, ROLE_CHIEF, 0));
    ck_assert_int_eq(job_identity_count(&i, 0), 5);
    ck_assert_int_eq(job_identity_count(&i, 1), 1);
}
END_TEST

START_TEST(a_renewed_leaf_replaces_the_old_one)
{
    AUTO_FINI(job_identity) i = { .nleaves = 0 };
    two_secrets(&i);
    for (int w = 3; w >= 0; w--)
        job_identity_put(&i, ROLE_WORKER, w, 0, T0 + 90500, "8899aabbccddeeff");
    ck_assert_int_eq(job_identity_count(&i, 0), 5);
    const struct identity_leaves *l = job_identity_find(&i, ROLE_WORKER, 2);
    ck_assert_int_eq(l->not_after_ms, T0 + 90000);
    ck_assert_str_eq(l->ca, "8899aabbccddeeff");
    ck_assert_uint_eq(l->indexes.n, 1); /* joined again */
    ck_assert_int_eq(job_identity_find(&i, ROLE_PS, 0)->not_after_ms, T0);
}
END_TEST

START_TEST(what_is_written_is_read_again)
{
    AUTO_FINI(job_identity) i = { .nleaves = 0 };
    AUTO_FINI(job_identity) again = { .nleaves = 0 };
    AUTO_FINI(job_identity) copy = { .nleaves = 0 };
    two_secrets(&i);
    json_auto_t *v = job_identity_json(&i);
    job_identity_parse(v, &again);
    ck_assert(job_identity_equal(&i, &again));
    job_identity_copy(&i, &copy);
    ck_assert(job_identity_equal(&i, &copy));
    job_identity_put(&copy, ROLE_WORKER, 9, 1, T0 + 60000, "0011223344556677");
    ck_assert(!job_identity_equal(&i, &copy));
    ck_assert_ptr_null(job_identity_secret(&i, ROLE_WORKER, 9));
}
END_TEST

START_TEST(the_form_of_the_status)
{
    AUTO_FINI(job_identity) i = { .nleaves = 0 };
    assert_text(&i, "null");
    i.insecure = true;
    assert_text(&i, "{\"secrets\":[],\"leaves\":[],\"insecure\":true}");
    i.insecure = false;
    size_t a = job_identity_add_secret(&i, "d-identity-x", "s-1");
    job_identity_put(&i, ROLE_PS, 1, a, T0, "0011223344556677");
    job_identity_put(&i, ROLE_PS, 0, a, T0, "0011223344556677");
    assert_text(&i, "{\"secrets\":[{\"name\":\"d-identity-x\",\"uid\":\"s-1\",\"cas\":[]}],"
                    "\"leaves\":[{\"role\":\"ps\",\"indexes\":\"0-1\",\"secret\":\"d-identity-x\","
                    "\"notAfter\":\"2026-01-01T00:00:00Z\",\"ca\":\"0011223344556677\"}],\"insecure\":null}");
}
END_TEST

START_TEST(what_is_not_valid_is_ignored)
{
    static const char *const EMPTY[] = { "null", "7", "{\"secrets\":7,\"leaves\":\"x\"}",
                                         "{\"secrets\":[7,{},{\"name\":\"a\"},{\"uid\":\"b\"}]}",
                                         ("{\"leaves\":[{\"role\":\"ps\",\"indexes\":\"0\",\"secret\":\"a\","
                                          "\"notAfter\":\"2026-01-01T00:00:00Z\",\"ca\":\"00\"}]}") };
    for (size_t i = 0; i < COUNT_OF(EMPTY); i++) {
        AUTO_FINI(job_identity) is = { .nleaves = 0 };
        parse(EMPTY[i], &is);
        ck_assert_msg(is.nsecrets == 0 && is.nleaves == 0, "%s", EMPTY[i]);
    }
    static const char *const LEAVES[] = {
        "{\"role\":\"cook\",\"indexes\":\"0\",\"secret\":\"a\",\"notAfter\":\"2026-01-01T00:00:00Z\",\"ca\":\"00\"}",
        "{\"role\":\"ps\",\"indexes\":\"3-1\",\"secret\":\"a\",\"notAfter\":\"2026-01-01T00:00:00Z\",\"ca\":\"00\"}",
        "{\"role\":\"ps\",\"indexes\":\"0\",\"secret\":\"z\",\"notAfter\":\"2026-01-01T00:00:00Z\",\"ca\":\"00\"}",
        "{\"role\":\"ps\",\"indexes\":\"0\",\"secret\":\"a\",\"notAfter\":\"soon\",\"ca\":\"00\"}",
        "{\"role\":\"ps\",\"indexes\":\"0\",\"secret\":\"a\",\"notAfter\":\"2026-01-01T00:00:00Z\"}",
        ("{\"role\":\"ps\",\"indexes\":\"0\",\"secret\":\"a\",\"notAfter\":\"2026-01-01T00:00:00Z\","
         "\"ca\":\"00112233445566778899\"}"),
    };
    for (size_t i = 0; i < COUNT_OF(LEAVES); i++) {
        AUTO_FINI(job_identity) is = { .nleaves = 0 };
        auto_free char *text = xasprintf("{\"secrets\":[{\"name\":\"a\",\"uid\":\"b\"}],\"leaves\":[%s]}", LEAVES[i]);
        parse(text, &is);
        ck_assert_msg(is.nsecrets == 1 && is.nleaves == 0, "%s", LEAVES[i]);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("job_identity");
    TCase *t = tcase_create("job_identity");
    tcase_add_test(t, each_replica_finds_its_secret);
    tcase_add_test(t, a_renewed_leaf_replaces_the_old_one);
    tcase_add_test(t, what_is_written_is_read_again);
    tcase_add_test(t, the_form_of_the_status);
    tcase_add_test(t, what_is_not_valid_is_ignored);
    suite_add_tcase(s, t);
    return s;
}
