/* The folder of an identity: what is written is read, and each fault is named with its file. */
#include "identity/tls_dir.h"

#include <string.h>
#include <sys/stat.h>

#include "temp_folder.h"

enum { NOW = 1700000000, DAY = 24 * 3600 };

static char *make_dir(void)
{
    auto_free char *dir = xstrdup("/tmp/trainyard-tls.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    return TAKE(dir);
}

static void write_leaf(const char *dir, int index)
{
    AUTO(ca) *c = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    struct err e = { 0 };
    ck_ok_e(ca_new("local", "u-1", NOW, &c, &e));
    ck_ok_e(ca_issue(c, ROLE_WORKER, index, NOW, DAY, &leaf, &e));
    ck_ok_e(tls_dir_write(dir, ca_pem(c), &leaf, &e));
}

static mode_t mode_of(const char *dir, const char *name)
{
    auto_free char *path = path_join(dir, name);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_mode & 0777;
}

START_TEST(is_read_as_it_was_written)
{
    auto_free char *parent = make_dir();
    auto_free char *dir = path_join(parent, "worker-0");
    struct err e = { 0 };
    for (int i = 0; i < 3; i++) { /* replaced twice */
        AUTO_FINI(tls_dir) d = { 0 };
        write_leaf(dir, i);
        ck_ok_e(tls_dir_read(dir, NOW, &d, &e));
        ck_assert_int_eq(d.info.identity.index, i);
        ck_assert_ptr_nonnull(strstr(d.ca, "BEGIN CERTIFICATE"));
    }
    ck_assert_uint_eq(mode_of(dir, "."), 0700);
    ck_assert_uint_eq(mode_of(dir, "tls.key"), 0600);
    AUTO_FINI(strlist) names = { 0 };
    ck_ok_e(dir_list(dir, &names, &e));
    ck_assert_uint_eq(names.n, 5); /* three names, ..data and one version: nothing old is left */
    tls_dir_remove(dir);
    ck_assert(!file_exists(dir));
    tls_dir_remove(dir);
    remove_tree(parent);
}
END_TEST

START_TEST(plain_files_are_read_and_never_overwritten)
{
    auto_free char *parent = make_dir();
    auto_free char *dir = path_join(parent, "worker-0");
    auto_free char *key = path_join(dir, "tls.key");
    AUTO(ca) *c = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    AUTO_FINI(tls_dir) d = { 0 };
    AUTO_FINI(strlist) names = { 0 };
    struct err e = { 0 };
    struct stat st;
    ck_ok_e(ca_new("local", "u-1", NOW, &c, &e));
    ck_ok_e(ca_issue(c, ROLE_WORKER, 0, NOW, DAY, &leaf, &e));
    ck_ok_e(tls_dir_write_new(dir, ca_pem(c), &leaf, &e));
    ck_ok_e(tls_dir_read(dir, NOW, &d, &e));
    ck_ok_e(dir_list(dir, &names, &e));
    ck_assert_uint_eq(names.n, 3);
    ck_assert_int_eq(lstat(key, &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(tls_dir_write_new(dir, ca_pem(c), &leaf, &e), -1);
    remove_tree(parent);
}
END_TEST

START_TEST(names_the_file_that_is_wrong)
{
    static const struct {
        const char *file, *text, *message;
    } CASES[] = {
        { "ca.crt", NULL, "ca.crt" },
        { "tls.crt", NULL, "tls.crt" },
        { "tls.key", NULL, "tls.key" },
        { "ca.crt", "nothing", "ca.crt: no certificate of a CA in PEM form" },
        { "tls.crt", "nothing", "tls.crt: not a certificate in PEM form" },
        { "tls.key", "nothing", "tls.key: not a private key in PEM form" },
    };
    auto_free char *dir = make_dir();
    auto_free char *path = path_join(dir, CASES[_i].file);
    AUTO_FINI(tls_dir) d = { 0 };
    struct err e = { 0 };
    write_leaf(dir, 0);
    ck_assert_int_eq(unlink(path), 0);
    if (CASES[_i].text != NULL)
        ck_ok_e(file_write(path, CASES[_i].text, strlen(CASES[_i].text), &e));
    ck_assert_int_eq(tls_dir_read(dir, NOW, &d, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, dir));
    ck_assert_ptr_nonnull(strstr(e.msg, CASES[_i].message));
    remove_tree(dir);
}
END_TEST

START_TEST(checks_the_dates)
{
    auto_free char *dir = make_dir();
    AUTO_FINI(tls_dir) d = { 0 };
    struct err e = { 0 };
    write_leaf(dir, 0);
    ck_assert_int_eq(tls_dir_read(dir, NOW + DAY, &d, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "expired at 2023-11-15T22:13:20.000Z"));
    ck_assert_int_eq(tls_dir_read(dir, NOW - DAY, &d, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "compare the clocks"));
    remove_tree(dir);
}
END_TEST

START_TEST(files_of_two_certificates_are_refused)
{
    auto_free char *dir = make_dir(), *other = make_dir();
    auto_free char *key = path_join(dir, "tls.key"), *other_key = path_join(other, "tls.key");
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO_FINI(tls_dir) d = { 0 };
    struct err e = { 0 };
    write_leaf(dir, 0);
    write_leaf(other, 0);
    ck_ok_e(file_read(other_key, 10000, &text, &e));
    ck_ok_e(file_write(key, text.data, text.len, &e));
    ck_assert_int_eq(tls_dir_read(dir, NOW, &d, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "tls.key is not the key of tls.crt"));
    remove_tree(dir);
    remove_tree(other);
}
END_TEST

START_TEST(a_look_tells_when_the_files_are_replaced)
{
    auto_free char *dir = make_dir();
    write_leaf(dir, 0);
    struct tls_dir_stamps first = tls_dir_look(dir), again = tls_dir_look(dir);
    ck_assert(!tls_dir_changed(&first, &again));
    write_leaf(dir, 0);
    again = tls_dir_look(dir);
    ck_assert(tls_dir_changed(&first, &again));
    remove_tree(dir);
    first = tls_dir_look(dir);
    ck_assert(tls_dir_changed(&again, &first));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tls_dir");
    TCase *t = tcase_create("tls_dir");
    tcase_add_test(t, is_read_as_it_was_written);
    tcase_add_test(t, plain_files_are_read_and_never_overwritten);
    tcase_add_loop_test(t, names_the_file_that_is_wrong, 0, 6);
    tcase_add_test(t, checks_the_dates);
    tcase_add_test(t, files_of_two_certificates_are_refused);
    tcase_add_test(t, a_look_tells_when_the_files_are_replaced);
    suite_add_tcase(s, t);
    return s;
}
