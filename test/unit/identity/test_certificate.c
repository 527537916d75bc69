/* Keys, certificates and their verification. The derived key is compared with a vector that a separate implementation
 * of HKDF and P-256 computed. */
#include "identity/certificate.h"

#include <string.h>

#include "check_main.h"
#include "codec/base64.h"

#define UID "5f1c0a8e-0000-4000-8000-0123456789ab"
enum { NOW = 1700000000, DAY = 24 * 3600 };

static struct ca *make_ca(const char *ns, const char *uid)
{
    struct ca *c = NULL;
    struct err e = { 0 };
    ck_ok_e(ca_new(ns, uid, NOW, &c, &e));
    return c;
}

static int verify(const char *ca, const struct leaf *leaf, int64_t now, struct identity *ret, struct err *e)
{
    const char *from = strchr(leaf->certificate, '\n'), *to = strstr(leaf->certificate, "-----END");
    AUTO_FINI(buf) der = BUF_INIT;
    ck_assert_int_eq(base64_decode(from, (size_t)(to - from), &der, e), 0);
    return certificate_verify(ca, der.data, der.len, now, ret, e);
}

START_TEST(key_of_a_job_is_that_of_the_vector)
{
    unsigned char master[CA_MASTER_SIZE];
    AUTO(ca) *a = NULL, *b = NULL;
    struct err e = { 0 };
    for (size_t i = 0; i < sizeof(master); i++)
        master[i] = (unsigned char)i;
    ck_ok_e(ca_derive(master, "default", UID, NOW, &a, &e));
    ck_assert_str_eq(ca_id(a), "c190d53cc6cd304e");
    master[0] ^= 1;
    ck_ok_e(ca_derive(master, "default", UID, NOW, &b, &e));
    ck_assert_str_ne(ca_id(a), ca_id(b));
}
END_TEST

START_TEST(keys_of_two_jobs_differ)
{
    const unsigned char master[CA_MASTER_SIZE] = { 7 };
    AUTO(ca) *a = NULL, *b = NULL, *c = NULL;
    struct err e = { 0 };
    ck_ok_e(ca_derive(master, "a", "b", NOW, &a, &e));
    ck_ok_e(ca_derive(master, "a", "c", NOW, &b, &e));
    ck_ok_e(ca_derive(master, "c", "b", NOW, &c, &e));
    ck_assert_str_ne(ca_id(a), ca_id(b));
    ck_assert_str_ne(ca_id(a), ca_id(c));
}
END_TEST

START_TEST(leaf_proves_its_identity)
{
    AUTO(ca) *c = make_ca("team-a", UID);
    AUTO_FINI(leaf) leaf = { 0 };
    struct certificate_info info;
    struct identity i;
    struct err e = { 0 };
    ck_ok_e(ca_issue(c, ROLE_WORKER, 3, NOW, DAY, &leaf, &e));
    ck_ok_e(certificate_read(leaf.certificate, &info, &e));
    ck_assert_str_eq(info.identity.ns, "team-a");
    ck_assert_str_eq(info.identity.job_uid, UID);
    ck_assert_int_eq(info.identity.role, ROLE_WORKER);
    ck_assert_int_eq(info.identity.index, 3);
    ck_assert_int_eq(info.not_before_s, NOW - LEAF_EARLY_SECONDS);
    ck_assert_int_eq(info.not_after_s, NOW + DAY);
    ck_ok_e(verify(ca_pem(c), &leaf, NOW - LEAF_EARLY_SECONDS, &i, &e));
    ck_ok_e(verify(ca_pem(c), &leaf, NOW + DAY - 1, &i, &e));
    ck_assert_int_eq(i.index, 3);
    ck_ok_e(certificate_check(ca_pem(c), leaf.certificate, leaf.key, &e));
}
END_TEST

START_TEST(dates_are_checked)
{
    AUTO(ca) *c = make_ca("team-a", UID);
    AUTO_FINI(leaf) leaf = { 0 };
    struct identity i;
    struct err e = { 0 };
    ck_ok_e(ca_issue(c, ROLE_PS, 0, NOW, DAY, &leaf, &e));
    ck_assert_int_eq(verify(ca_pem(c), &leaf, NOW + DAY + 1, &i, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_assert_ptr_nonnull(strstr(e.msg, "expired"));
    ck_assert_int_eq(verify(ca_pem(c), &leaf, NOW - LEAF_EARLY_SECONDS - 1, &i, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "not yet valid"));
}
END_TEST

START_TEST(another_ca_of_the_same_job_is_refused)
{
    AUTO(ca) *c = make_ca("team-a", UID), *other = make_ca("team-a", UID);
    AUTO_FINI(leaf) leaf = { 0 };
    struct identity i;
    struct err e = { 0 };
    ck_ok_e(ca_issue(other, ROLE_PS, 0, NOW, DAY, &leaf, &e));
    ck_assert_int_eq(verify(ca_pem(c), &leaf, NOW, &i, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_assert_int_eq(certificate_check(ca_pem(c), leaf.certificate, leaf.key, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "was not issued by a CA of ca.crt"));
    auto_free char *both = xasprintf("%s%s", ca_pem(c), ca_pem(other)); /* while the master key changes */
    ck_ok_e(verify(both, &leaf, NOW, &i, &e));
}
END_TEST

START_TEST(a_leaf_is_not_a_ca)
{
    AUTO(ca) *c = make_ca("team-a", UID);
    AUTO_FINI(leaf) leaf = { 0 }, ps = { 0 };
    struct identity i;
    struct err e = { 0 };
    ck_ok_e(ca_issue(c, ROLE_WORKER, 0, NOW, DAY, &leaf, &e));
    ck_ok_e(ca_issue(c, ROLE_PS, 0, NOW, DAY, &ps, &e));
    ck_assert_int_eq(verify(leaf.certificate, &ps, NOW, &i, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
}
END_TEST

START_TEST(a_derived_ca_verifies_leaves_of_an_earlier_one)
{
    const unsigned char master[CA_MASTER_SIZE] = { 1, 2, 3 };
    AUTO(ca) *before = NULL, *after = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    struct identity i;
    struct err e = { 0 };
    ck_ok_e(ca_derive(master, "default", UID, NOW, &before, &e));
    ck_ok_e(ca_derive(master, "default", UID, NOW + 60, &after, &e));
    ck_ok_e(ca_issue(before, ROLE_PS, 0, NOW + 60, DAY, &leaf, &e));
    ck_ok_e(verify(ca_pem(after), &leaf, NOW + 60, &i, &e));
}
END_TEST

START_TEST(refuses_what_is_not_a_certificate)
{
    static const char *const TEXTS[] = { "", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" };
    AUTO(ca) *c = make_ca("team-a", UID);
    AUTO_FINI(leaf) leaf = { 0 }, other = { 0 };
    struct certificate_info info;
    struct identity i;
    struct err e = { 0 };
    ck_assert_int_eq(certificate_read(TEXTS[_i], &info, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_ok_e(ca_issue(c, ROLE_WORKER, 0, NOW, DAY, &leaf, &e));
    ck_ok_e(ca_issue(c, ROLE_WORKER, 1, NOW, DAY, &other, &e));
    ck_assert_int_eq(certificate_check(ca_pem(c), TEXTS[_i], leaf.key, &e), -1);
    ck_assert_int_eq(certificate_check(TEXTS[_i], leaf.certificate, leaf.key, &e), -1);
    ck_assert_int_eq(certificate_check(ca_pem(c), leaf.certificate, TEXTS[_i], &e), -1);
    ck_assert_int_eq(certificate_check(ca_pem(c), leaf.certificate, other.key, &e), -1);
    ck_assert_str_eq(e.msg, "tls.key is not the key of tls.crt");
    ck_assert_int_eq(certificate_verify(ca_pem(c), TEXTS[_i], strlen(TEXTS[_i]), NOW, &i, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_assert_int_eq(certificate_read(ca_pem(c), &info, &e), -1); /* it has no name */
    ck_assert_ptr_nonnull(strstr(e.msg, "not a certificate of Trainyard"));
}
END_TEST

START_TEST(refuses_parts_that_a_uri_cannot_have)
{
    AUTO(ca) *c = make_ca("team-a", UID), *bad = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    struct err e = { 0 };
    ck_assert_int_eq(ca_new("team/a", UID, NOW, &bad, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_int_eq(ca_new("team-a", "", NOW, &bad, &e), -1);
    ck_assert_int_eq(ca_issue(c, IDENTITY_ROLES, 0, NOW, DAY, &leaf, &e), -1);
    ck_assert_int_eq(ca_issue(c, ROLE_WORKER, -1, NOW, DAY, &leaf, &e), -1);
}
END_TEST

/* Seconds after the issue of a leaf that lives 300 s, and whether it is replaced then. */
static const struct {
    int64_t after;
    bool due;
} DUE[] = {
    { 0, false }, { 199, false }, { 200, true }, { 299, true }, { 5000, true }, { -300, false }, { -301, true }
};

START_TEST(a_leaf_is_due_at_two_thirds)
{
    AUTO(ca) *c = make_ca("team-a", UID);
    AUTO_FINI(leaf) leaf = { 0 };
    struct err e = { 0 };
    ck_ok_e(ca_issue(c, ROLE_PS, 0, NOW, 300, &leaf, &e));
    ck_assert_int_eq(leaf_is_due(leaf.not_before_s, leaf.not_after_s, NOW + DUE[_i].after), DUE[_i].due);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("certificate");
    TCase *t = tcase_create("certificate");
    tcase_add_test(t, key_of_a_job_is_that_of_the_vector);
    tcase_add_test(t, keys_of_two_jobs_differ);
    tcase_add_test(t, leaf_proves_its_identity);
    tcase_add_test(t, dates_are_checked);
    tcase_add_loop_test(t, a_leaf_is_due_at_two_thirds, 0, COUNT_OF(DUE));
    tcase_add_test(t, another_ca_of_the_same_job_is_refused);
    tcase_add_test(t, a_leaf_is_not_a_ca);
    tcase_add_test(t, a_derived_ca_verifies_leaves_of_an_earlier_one);
    tcase_add_loop_test(t, refuses_what_is_not_a_certificate, 0, 3);
    tcase_add_test(t, refuses_parts_that_a_uri_cannot_have);
    suite_add_tcase(s, t);
    return s;
}
