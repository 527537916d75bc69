/* The identities of a local run: who gets which folder, when it is renewed, and what is left at the end. */
#include "cli/local_identity.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "identity/tls_dir.h"
#include "temp_folder.h"

enum { NOW = 1700000000, DAY = 24 * 3600 };

static char *parent;

static void make_parent(void)
{
    auto_free char *path = xstrdup("/tmp/trainyard-local.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
    parent = TAKE(path);
    setenv("XDG_RUNTIME_DIR", parent, 1);
}

static void remove_parent(void)
{
    remove_tree(parent);
    free(parent);
}

static size_t entries(const char *dir)
{
    AUTO_FINI(strlist) names = { 0 };
    struct err e = { 0 };
    ck_ok_e(dir_list(dir, &names, &e));
    return names.n;
}

static struct tls_dir read_member(const struct local_identity *l, int role, int index, int64_t now_s)
{
    struct tls_dir d = { .ca = NULL };
    struct err e = { 0 };
    auto_free char *folder = local_identity_folder(l, role, index);
    ck_ok_e(tls_dir_read(folder, now_s, &d, &e));
    return d;
}

START_TEST(each_member_has_its_own)
{
    AUTO(local_identity) *l = NULL;
    struct err e = { 0 };
    ck_ok_e(local_identity_new(NULL, NOW, DAY, &l, &e));
    ck_ok_e(local_identity_issue(l, ROLE_WORKER, 3, NOW, &e));
    ck_ok_e(local_identity_issue(l, ROLE_PS, 0, NOW, &e));
    ck_ok_e(local_identity_issue(l, IDENTITY_LAUNCHER, 0, NOW, &e));
    AUTO_FINI(tls_dir) worker = read_member(l, ROLE_WORKER, 3, NOW);
    AUTO_FINI(tls_dir) ps = read_member(l, ROLE_PS, 0, NOW);
    AUTO_FINI(tls_dir) launcher = read_member(l, IDENTITY_LAUNCHER, 0, NOW);
    ck_assert_int_eq(worker.info.identity.role, ROLE_WORKER);
    ck_assert_int_eq(worker.info.identity.index, 3);
    ck_assert_str_eq(worker.info.identity.ns, "local");
    ck_ok_e(identity_accept(&worker.info.identity, &ps.info.identity, ROLE_PS, 0, &e));
    ck_ok_e(identity_accept(&worker.info.identity, &launcher.info.identity, IDENTITY_LAUNCHER, 0, &e));
    auto_free char *folder = local_identity_folder(l, ROLE_WORKER, 3);
    ck_assert(str_ends(folder, "/worker-3"));
}
END_TEST

START_TEST(two_runs_are_two_jobs)
{
    AUTO(local_identity) *a = NULL, *b = NULL;
    struct err e = { 0 };
    ck_ok_e(local_identity_new(NULL, NOW, DAY, &a, &e));
    ck_ok_e(local_identity_new(NULL, NOW, DAY, &b, &e));
    ck_ok_e(local_identity_issue(a, ROLE_PS, 0, NOW, &e));
    ck_ok_e(local_identity_issue(b, ROLE_PS, 0, NOW, &e));
    AUTO_FINI(tls_dir) first = read_member(a, ROLE_PS, 0, NOW);
    AUTO_FINI(tls_dir) second = read_member(b, ROLE_PS, 0, NOW);
    ck_assert(!identity_same_job(&first.info.identity, &second.info.identity));
}
END_TEST

START_TEST(a_temporary_folder_is_private_and_removed)
{
    struct local_identity *l = NULL;
    struct err e = { 0 };
    struct stat st;
    ck_ok_e(local_identity_new(NULL, NOW, DAY, &l, &e));
    ck_ok_e(local_identity_issue(l, ROLE_CHIEF, 0, NOW, &e));
    ck_ok_e(local_identity_issue(l, ROLE_CHIEF, 0, NOW, &e));
    ck_assert_uint_eq(entries(parent), 1);
    auto_free char *folder = local_identity_folder(l, ROLE_CHIEF, 0);
    auto_free char *dir = path_dir(folder);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    local_identity_free(l);
    ck_assert_uint_eq(entries(parent), 0);
}
END_TEST

START_TEST(a_given_folder_is_kept)
{
    struct local_identity *l = NULL;
    struct err e = { 0 };
    struct stat st;
    auto_free char *dir = path_join(parent, "a/b");
    ck_ok_e(local_identity_new(dir, NOW, DAY, &l, &e));
    local_identity_keep(l);
    ck_ok_e(local_identity_issue(l, ROLE_CHIEF, 0, NOW, &e));
    local_identity_free(l);
    ck_assert_uint_eq(entries(dir), 1);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);

    ck_assert_int_eq(chmod(dir, 0755), 0); /* the next run, in a folder that the user has opened to others */
    ck_ok_e(local_identity_new(dir, NOW, DAY, &l, &e));
    local_identity_keep(l);
    ck_ok_e(local_identity_issue(l, ROLE_CHIEF, 0, NOW, &e));
    auto_free char *chief = local_identity_folder(l, ROLE_CHIEF, 0);
    local_identity_free(l);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0755);
    ck_assert_int_eq(stat(chief, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_an_error)
{
    struct local_identity *l = NULL;
    struct err e = { 0 };
    ck_assert_int_eq(local_identity_new("/proc/none/tls", NOW, DAY, &l, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "/proc/none"));
    ck_assert_ptr_null(l);
    setenv("XDG_RUNTIME_DIR", "/proc/none", 1); /* of another user, for example: the next one is used */
    ck_ok_e(local_identity_new(NULL, NOW, DAY, &l, &e));
    local_identity_free(l);
}
END_TEST

START_TEST(renews_what_is_due)
{
    AUTO(local_identity) *l = NULL;
    struct err e = { 0 };
    ck_ok_e(local_identity_new(NULL, NOW, DAY, &l, &e));
    ck_ok_e(local_identity_issue(l, ROLE_PS, 0, NOW, &e));
    ck_ok_e(local_identity_issue(l, ROLE_PS, 1, NOW + DAY / 2, &e));
    ck_ok_e(local_identity_renew(l, NOW + DAY * 2 / 3, &e));
    AUTO_FINI(tls_dir) first = read_member(l, ROLE_PS, 0, NOW + DAY);
    AUTO_FINI(tls_dir) second = read_member(l, ROLE_PS, 1, NOW + DAY);
    ck_assert_int_eq(first.info.not_after_s, NOW + DAY * 2 / 3 + DAY);
    ck_assert_int_eq(second.info.not_after_s, NOW + DAY / 2 + DAY);
    ck_ok_e(certificate_check(first.ca, second.certificate, second.key, &e)); /* the CA stays */

    auto_free char *folder = local_identity_folder(l, ROLE_PS, 0);
    remove_tree(folder);
    ck_ok_e(file_write(folder, "", 0, &e)); /* in its way */
    ck_assert_int_eq(local_identity_renew(l, NOW + 3 * DAY, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "ps-0"));
    AUTO_FINI(tls_dir) other = read_member(l, ROLE_PS, 1, NOW + 3 * DAY);
    ck_assert_int_eq(other.info.not_after_s, NOW + 4 * DAY);
    ck_ok_e(file_remove(folder, &e));
    ck_ok_e(local_identity_renew(l, NOW + 3 * DAY + 1, &e)); /* it was still due */
    AUTO_FINI(tls_dir) again = read_member(l, ROLE_PS, 0, NOW + 3 * DAY + 1);
    ck_assert_int_eq(again.info.not_after_s, NOW + 4 * DAY + 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("local_identity");
    TCase *t = tcase_create("local_identity");
    tcase_add_checked_fixture(t, make_parent, remove_parent);
    tcase_add_test(t, each_member_has_its_own);
    tcase_add_test(t, two_runs_are_two_jobs);
    tcase_add_test(t, a_temporary_folder_is_private_and_removed);
    tcase_add_test(t, a_given_folder_is_kept);
    tcase_add_test(t, a_folder_that_cannot_be_made_is_an_error);
    tcase_add_test(t, renews_what_is_due);
    suite_add_tcase(s, t);
    return s;
}
