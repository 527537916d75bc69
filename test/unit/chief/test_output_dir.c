#include "check_main.h"

#include <grp.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "chief/output_dir.h"

static char dir[] = "/tmp/trainyard-output.XXXXXX";

static void make(void)
{
    memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_all(void)
{
    auto_free char *command = xasprintf("rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static bool is_dir(const char *name)
{
    auto_free char *path = path_join(dir, name);
    return file_is_dir(path);
}

START_TEST(folders_are_made)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(output_dir_prepare(dir, NULL, &e));
    ck_assert(is_dir("checkpoints") && is_dir("summaries/train") && is_dir("summaries/validation"));
}
END_TEST

START_TEST(summaries_may_have_a_folder_of_their_own)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *elsewhere = xasprintf("%s/else/where", dir);
    ck_ok_e(output_dir_prepare(dir, "tb", &e));
    ck_assert(is_dir("checkpoints") && is_dir("tb/train") && is_dir("tb/validation") && !is_dir("summaries"));
    auto_free char *path = output_dir_summaries(dir, elsewhere);
    ck_assert_str_eq(path, elsewhere);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_named)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *file = path_join(dir, "file");
    ck_ok_e(file_write(file, "x", 1, &e));
    ck_assert_int_eq(output_dir_prepare(file, NULL, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_msg(strstr(e.msg, file) != NULL && strstr(e.msg, "Not a directory") != NULL, "%s", e.msg);
}
END_TEST

static int prepare_as(unsigned user, const char *path, struct err *e)
{
    ck_assert_int_eq(setgroups(0, NULL), 0);
    ck_assert(setegid(user) == 0 && seteuid(user) == 0);
    int result = output_dir_prepare(path, NULL, e);
    ck_assert(seteuid(0) == 0 && setegid(0) == 0);
    return result;
}

START_TEST(who_may_not_write_is_told_who_may_and_what_helps)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *below = path_join(dir, "runs/mnist");
    if (geteuid() != 0)
        return; /* only root can become another user */
    ck_assert_int_eq(chmod(dir, 0750), 0);
    const char *const dirs[] = { dir, below };
    for (size_t i = 0; i < COUNT_OF(dirs); i++) {
        ck_assert_int_eq(prepare_as(65532, dirs[i], &e), -1);
        ck_assert_int_eq(err_exit_code(&e), 2);
        auto_free char *expected = xasprintf("output folder %s cannot be written by user 65532, group 65532 (%s "
                                             "belongs to user 0, group 0, mode 0750): ",
                                             dirs[i], dir);
        ck_assert_msg(str_starts(e.msg, expected), "%s", e.msg);
        ck_assert_msg(str_ends(e.msg, "Permission denied; let that user write there: chown or chmod it, or on a "
                                      "cluster set the pod's securityContext.fsGroup"),
                      "%s", e.msg);
    }
}
END_TEST

START_TEST(a_read_only_volume_is_said_to_be_one)
{
    struct err e = { .code = ERR_NONE };
    if (unshare(CLONE_NEWNS) < 0)
        return; /* only root may */
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    ck_assert_int_eq(mount("none", dir, "tmpfs", MS_RDONLY, NULL), 0);
    ck_assert_int_eq(output_dir_prepare(dir, NULL, &e), -1);
    ck_assert_int_eq(err_exit_code(&e), 2);
    ck_assert_msg(str_ends(e.msg, "Read-only file system; mount it for writing, without readOnly"), "%s", e.msg);
    ck_assert_int_eq(umount(dir), 0);
}
END_TEST

START_TEST(the_end_belongs_to_one_life_of_the_job)
{
    struct err e = { .code = ERR_NONE };
    int64_t step = -1;
    char got[SHA256_TEXT];
    ck_assert_int_eq(output_dir_finished(dir, "uid-1", &step, &e), 0);
    output_dir_weights_sha256(dir, got);
    ck_assert_str_eq(got, "");
    struct job_result end = { .step = 1000, .stopped_epoch = -1 };
    memset(end.weights_sha256, 'a', SHA256_TEXT - 1);
    ck_ok_e(output_dir_set_finished(dir, "uid-1", &end, &e));
    output_dir_weights_sha256(dir, got);
    ck_assert_str_eq(got, end.weights_sha256);
    ck_assert_int_eq(output_dir_finished(dir, "uid-1", &step, &e), 1);
    ck_assert_int_eq(step, 1000);
    ck_assert_int_eq(output_dir_finished(dir, "uid-2", &step, &e), 0);
}
END_TEST

static void write_in_dir(const char *name, const char *text)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *path = path_join(dir, name);
    ck_ok_e(file_write(path, text, strlen(text), &e));
}

static void check_model(const char *name)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *prefix = NULL, *wanted = xasprintf("%s/checkpoints/%s", dir, name);
    ck_ok_e(output_dir_model(dir, &prefix, &e));
    ck_assert_str_eq(prefix, wanted);
}

static void check_no_model(enum err_code code, const char *text)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *prefix = NULL;
    ck_assert_int_eq(output_dir_model(dir, &prefix, &e), -1);
    ck_assert_int_eq(e.code, code);
    ck_assert_msg(strstr(e.msg, text) != NULL, "%s", e.msg);
}

static void end_with(const char *checkpoint)
{
    struct err e = { .code = ERR_NONE };
    const struct job_result end = { .step = 70, .checkpoint = checkpoint, .best_epoch = 4, .stopped_epoch = 6 };
    ck_ok_e(output_dir_set_finished(dir, "uid-1", &end, &e));
}

START_TEST(a_run_means_the_checkpoint_that_its_end_names)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(output_dir_prepare(dir, NULL, &e));
    check_no_model(ERR_NOT_FOUND, "checkpoints/checkpoint");
    write_in_dir("checkpoints/checkpoint", "model_checkpoint_path: \"model.ckpt-70\"\n");
    check_model("model.ckpt-70");

    ck_ok_e(output_dir_set_uid(dir, "uid-1", &e));
    end_with("model.ckpt-50");
    check_no_model(ERR_NOT_FOUND, "model.ckpt-50");
    write_in_dir("checkpoints/model.ckpt-50.index", "");
    check_model("model.ckpt-50");

    ck_ok_e(output_dir_set_uid(dir, "uid-2", &e)); /* another job has written here since */
    check_model("model.ckpt-70");
}
END_TEST

START_TEST(an_end_cannot_name_a_file_elsewhere)
{
    struct err e = { .code = ERR_NONE };
    static const char *const NAMES[] = { "../model", "/etc/passwd", "", ".." };
    ck_ok_e(output_dir_prepare(dir, NULL, &e));
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        end_with(NAMES[i]);
        check_no_model(ERR_INPUT, "is not the name of a checkpoint");
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("output");
    TCase *t = tcase_create("output");
    tcase_add_checked_fixture(t, make, remove_all);
    tcase_add_test(t, folders_are_made);
    tcase_add_test(t, summaries_may_have_a_folder_of_their_own);
    tcase_add_test(t, a_folder_that_cannot_be_written_is_named);
    tcase_add_test(t, who_may_not_write_is_told_who_may_and_what_helps);
    tcase_add_test(t, a_read_only_volume_is_said_to_be_one);
    tcase_add_test(t, the_end_belongs_to_one_life_of_the_job);
    tcase_add_test(t, a_run_means_the_checkpoint_that_its_end_names);
    tcase_add_test(t, an_end_cannot_name_a_file_elsewhere);
    suite_add_tcase(s, t);
    return s;
}
