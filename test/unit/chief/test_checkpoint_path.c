#include "check_main.h"
#include "chief/checkpoint_path.h"

#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "temp_folder.h"

static char folder[64];

static void setup(void)
{
    str_fmt(folder, sizeof(folder), "/tmp/trainyard-path-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    remove_tree(folder);
}

static void make_file(const char *name, const char *text)
{
    struct err e = { 0 };
    auto_free char *path = path_join(folder, name), *dir = path_dir(path);
    ck_ok_e(dir_make(dir, &e));
    ck_ok_e(file_write(path, text, strlen(text), &e));
}

static void expect(const char *name, const char *wanted)
{
    struct err e = { 0 };
    auto_free char *path = path_join(folder, name), *prefix = NULL, *full = path_join(folder, wanted);
    ck_ok_e(checkpoint_path(path, &prefix, &e));
    ck_assert_str_eq(prefix, full);
}

static void expect_error(const char *name, enum err_code code)
{
    struct err e = { 0 };
    auto_free char *path = path_join(folder, name);
    char *prefix = NULL;
    ck_assert_int_eq(checkpoint_path(path, &prefix, &e), -1);
    ck_assert_ptr_null(prefix);
    ck_assert_int_eq(e.code, code);
}

START_TEST(files_and_folders_mean_a_prefix)
{
    make_file("one/m-3.index", "");
    make_file("one/m-3.data-00000-of-00001", "");
    expect("one/m-3", "one/m-3");
    expect("one/m-3.index", "one/m-3");
    expect("one/m-3.data-00000-of-00001", "one/m-3");
    expect("one", "one/m-3"); /* the only one */
    make_file("one/m-4.index", "");
    expect_error("one", ERR_INPUT); /* ambiguous */
    make_file("one/checkpoint", "model_checkpoint_path: \"m-4\"\n");
    expect("one", "one/m-4");
    make_file("run/checkpoints/m-7.index", "");
    make_file("run/checkpoints/checkpoint", "model_checkpoint_path: \"m-7\"\n");
    expect("run", "run/checkpoints/m-7");
}
END_TEST

START_TEST(what_is_not_there_is_not_found)
{
    make_file("empty/notes.txt", "");
    expect_error("empty", ERR_NOT_FOUND);
    expect_error("empty/notes.txt", ERR_NOT_FOUND);
    expect_error("nowhere/m-1", ERR_NOT_FOUND);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("checkpoint_path");
    TCase *t = tcase_create("checkpoint_path");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, files_and_folders_mean_a_prefix);
    tcase_add_test(t, what_is_not_there_is_not_found);
    suite_add_tcase(s, t);
    return s;
}
