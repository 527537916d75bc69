/* The `checkpoint` file: read and written as TensorFlow does. */
#include "check_main.h"

#include <string.h>

#include "base/file.h"
#include "temp_folder.h"
#include "tfio/checkpoint_state.h"

#define DATA "test/data/train/"
enum { FILE_MAX = 1 << 20 };

static char folder[64];

static void setup(void)
{
    str_fmt(folder, sizeof(folder), "/tmp/trainyard-state-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    remove_tree(folder);
}

static char *in_folder(const char *name)
{
    return path_join(folder, name);
}

static void load(const char *path, struct buf *ret)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(file_read(path, FILE_MAX, ret, &e));
}

static void store(const char *path, const void *data, size_t n)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(file_write(path, data, n, &e));
}

START_TEST(state_files_are_read_and_written_as_tensorflow_does)
{
    auto_free char *ours = in_folder("checkpoint");
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;
    AUTO_FINI(buf) got = BUF_INIT;
    AUTO_FINI(buf) want = BUF_INIT;

    ck_ok_e(checkpoint_state_read(DATA "tf_files/ckpt_tf1", &all, &latest, &e));
    ck_assert_str_eq(latest, "model.ckpt-3");
    ck_assert_uint_eq(all.n, 2);
    ck_assert_str_eq(all.items[0], "model.ckpt-2");
    ck_assert_str_eq(all.items[1], "model.ckpt-3");
    ck_ok_e(checkpoint_state_write(folder, latest, &all, &e));
    load(ours, &got);
    load(DATA "tf_files/ckpt_tf1/checkpoint", &want);
    ck_assert_str_eq(got.data, want.data);
}
END_TEST

START_TEST(state_files_may_hold_more_than_ours_do)
{
    static const char TEXT[] = "# a comment\n"
                               "model_checkpoint_path: '/a b/\\\"x\\\"\\303\\251-3'\n"
                               "all_model_checkpoint_paths: \"old\"\n"
                               "all_model_checkpoint_timestamps: 1784239393.25\n"
                               "last_preserved_timestamp: -1e3";
    auto_free char *path = in_folder("checkpoint");
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) all = { 0 };
    AUTO_FINI(strlist) again = { 0 };
    auto_free char *latest = NULL, *latest_again = NULL;

    store(path, TEXT, strlen(TEXT));
    ck_ok_e(checkpoint_state_read(folder, &all, &latest, &e));
    ck_assert_str_eq(latest, "/a b/\"x\"\xc3\xa9-3");
    ck_assert_uint_eq(all.n, 2); /* the latest is one of all */
    ck_ok_e(checkpoint_state_write(folder, latest, &all, &e));
    ck_ok_e(checkpoint_state_read(folder, &again, &latest_again, &e));
    ck_assert_str_eq(latest_again, latest);
}
END_TEST

START_TEST(bad_state_files_are_errors)
{
    static const char *const BAD[] = {
        "",
        "x",
        "model_checkpoint_path",
        "model_checkpoint_path:",
        "model_checkpoint_path: \"a",
        "model_checkpoint_path: \"a\nb\"",
        "model_checkpoint_path: \"\"",
        "all_model_checkpoint_paths: \"a\"",
        "model_checkpoint_path: \"a\\",
        "model_checkpoint_path: \"a\\q\"",
        "model_checkpoint_path: \"\\000\"",
        ": \"a\"",
    };
    auto_free char *path = in_folder("checkpoint");
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) all = { 0 };
    char *latest = NULL;

    ck_assert_int_eq(checkpoint_state_read(folder, &all, &latest, &e), -1);
    ck_assert_int_eq(e.code, ERR_NOT_FOUND);
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        store(path, BAD[i], strlen(BAD[i]));
        ck_assert_msg(checkpoint_state_read(folder, &all, &latest, &e) == -1, "'%s' is accepted", BAD[i]);
        ck_assert_int_eq(e.code, ERR_INPUT);
        ck_assert_ptr_nonnull(strstr(e.msg, path));
    }
    strlist_add(&all, "other");
    ck_assert_int_eq(checkpoint_state_write(folder, "x", &all, &e), -1);
}
END_TEST

/* A folder that was copied to another place, with its file as it was. */
START_TEST(the_files_beside_a_moved_list_are_meant)
{
    static const char TEXT[] = "model_checkpoint_path: \"/gone/run/model.ckpt-3\"\n"
                               "all_model_checkpoint_paths: \"/gone/run/model.ckpt-2\"\n"
                               "all_model_checkpoint_paths: \"run/model.ckpt-3\"\n"
                               "all_model_checkpoint_paths: \"/gone/run/model.ckpt-3\"\n";
    auto_free char *path = in_folder("checkpoint"), *index = in_folder("model.ckpt-3.index"), *latest = NULL;
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) all = { 0 };

    store(path, TEXT, strlen(TEXT));
    store(index, "", 0);
    ck_ok_e(checkpoint_state_read(folder, &all, &latest, &e));
    ck_assert_str_eq(latest, "model.ckpt-3");
    ck_assert_uint_eq(all.n, 3);
    ck_assert_str_eq(all.items[0], "/gone/run/model.ckpt-2"); /* no file of that name is here */
    ck_assert_str_eq(all.items[1], "model.ckpt-3");
    ck_assert_str_eq(all.items[2], "model.ckpt-3");
}
END_TEST

START_TEST(a_folder_without_its_list_is_listed_by_step)
{
    static const char *const FILES[] = { "model.ckpt-30-1.index", "model.ckpt-4.index", "model.ckpt-30.index",
                                         "old.index", "model.ckpt-200.data-00000-of-00001" };
    static const char *const ORDER[] = { "old", "model.ckpt-4", "model.ckpt-30", "model.ckpt-30-1" };
    auto_free char *path = in_folder("checkpoint");
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) none = { 0 };
    char *nothing = NULL;
    auto_free char *why = NULL;

    ck_fails(checkpoint_state_find(folder, &none, &nothing, &why, &e), ERR_NOT_FOUND, path);
    store(path, "", 0);
    ck_fails(checkpoint_state_find(folder, &none, &nothing, &why, &e), ERR_INPUT,
             "remove it to train from the beginning");
    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        auto_free char *file = in_folder(FILES[i]);
        store(file, "", 0);
    }
    for (int lost = 0; lost < 2; lost++) {
        AUTO_FINI(strlist) all = { 0 };
        auto_free char *latest = NULL, *reason = NULL;
        ck_ok_e(checkpoint_state_find(folder, &all, &latest, &reason, &e));
        ck_assert_str_eq(latest, "model.ckpt-30-1");
        ck_assert_uint_eq(all.n, COUNT_OF(ORDER));
        for (size_t i = 0; i < COUNT_OF(ORDER); i++)
            ck_assert_str_eq(all.items[i], ORDER[i]);
        ck_assert_msg(str_starts(reason, path), "%s", reason);
        ck_ok_e(file_remove(path, &e));
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("checkpoint_state");
    TCase *c = tcase_create("checkpoint_state");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, state_files_are_read_and_written_as_tensorflow_does);
    tcase_add_test(c, state_files_may_hold_more_than_ours_do);
    tcase_add_test(c, bad_state_files_are_errors);
    tcase_add_test(c, the_files_beside_a_moved_list_are_meant);
    tcase_add_test(c, a_folder_without_its_list_is_listed_by_step);
    suite_add_tcase(s, c);
    return s;
}
