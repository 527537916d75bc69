#include "check_main.h"
#include "cli/outdir.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* what is there, what is requested -> what is done; -1: refused */
static const struct {
    struct outdir_seen seen;
    enum outdir_wish wish;
    int plan;
    enum rerun need;
} CASES[] = {
    { { .empty = true }, OUTDIR_ANY, OUTDIR_NEW, RERUN_FREE },
    { { .empty = true }, OUTDIR_FRESH, OUTDIR_NEW, RERUN_FREE },
    { { .empty = true }, OUTDIR_RESUME, -1, RERUN_FREE },
    { { .present = true, .ours = true }, OUTDIR_ANY, OUTDIR_CONTINUE, RERUN_FREE },
    { { .present = true, .ours = true }, OUTDIR_RESUME, OUTDIR_CONTINUE, RERUN_FREE },
    { { .present = true, .ours = true }, OUTDIR_FRESH, OUTDIR_MOVE, RERUN_FREE },
    { { .present = true, .ours = true, .finished = true }, OUTDIR_ANY, OUTDIR_DONE, RERUN_FREE },
    { { .present = true, .ours = true, .finished = true }, OUTDIR_RESUME, OUTDIR_REOPEN, RERUN_FREE },
    { { .present = true, .ours = true, .finished = true }, OUTDIR_FRESH, OUTDIR_MOVE, RERUN_FREE },
    { { .present = true }, OUTDIR_ANY, OUTDIR_NEW, RERUN_FREE }, /* a folder with other things in it */
    { { .present = true }, OUTDIR_FRESH, -1, RERUN_FREE },       /* such a folder is never moved */
    { { .present = true, .empty = true }, OUTDIR_FRESH, OUTDIR_NEW, RERUN_FREE },
    { { .present = true, .checkpoints = true }, OUTDIR_ANY, OUTDIR_CONTINUE, RERUN_FREE }, /* copied from a cluster */
    { { .present = true, .checkpoints = true }, OUTDIR_RESUME, OUTDIR_CONTINUE, RERUN_FREE },
    { { .present = true, .checkpoints = true }, OUTDIR_FRESH, -1, RERUN_FREE },
    /* what the job changes, and may */
    { { .present = true, .ours = true }, OUTDIR_ANY, OUTDIR_CONTINUE, RERUN_RESUME },
    { { .present = true, .ours = true }, OUTDIR_RESUME, OUTDIR_REOPEN, RERUN_REBASE }, /* other batches: another run */
    { { .present = true, .ours = true, .finished = true }, OUTDIR_ANY, OUTDIR_REOPEN, RERUN_RESUME },
};
START_TEST(what_is_done_with_a_folder)
{
    struct err e = { 0 };
    enum outdir_plan plan = OUTDIR_NEW;
    int rc = outdir_decide("runs/x", CASES[_i].wish, &CASES[_i].seen, CASES[_i].need, &plan, &e);
    if (CASES[_i].plan < 0) {
        ck_assert_int_eq(rc, -1);
        ck_assert(err_is(&e, ERR_INPUT));
        ck_assert_ptr_nonnull(strstr(e.msg, "runs/x"));
    } else {
        ck_ok_e(rc);
        ck_assert_int_eq((int)plan, CASES[_i].plan);
    }
}
END_TEST

static char *dir, *path;

static void setup(void)
{
    dir = xstrdup("/tmp/trainyard-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    path = path_join(dir, "runs/mnist");
}

static void teardown(void)
{
    auto_free char *command = xasprintf("rm -r '%s'", dir);
    ck_assert_int_eq(system(command), 0);
    free(dir);
    free(path);
}

static void put(const char *name, const char *text)
{
    struct err e = { 0 };
    auto_free char *file = path_join(path, name);
    ck_ok_e(file_write(file, text, strlen(text), &e));
}

static int open_it(enum outdir_wish wish, struct outdir *ret, struct err *e)
{
    if (outdir_open(path, wish, ret, e) < 0 || outdir_plan(ret, RERUN_FREE, e) < 0)
        return -1;
    return ret->plan == OUTDIR_DONE ? 0 : outdir_make(ret, "", e);
}

START_TEST(the_uid_is_one_life)
{
    struct err e = { 0 };
    char first[40];
    {
        AUTO_FINI(outdir) o = { .lock = -1 };
        ck_ok_e(open_it(OUTDIR_ANY, &o, &e));
        ck_assert_int_eq(o.plan, OUTDIR_NEW);
        ck_assert_uint_eq(strlen(o.uid), 36);
        memcpy(first, o.uid, sizeof(first));

        AUTO_FINI(outdir) other = { .lock = -1 };
        ck_assert_int_eq(open_it(OUTDIR_ANY, &other, &e), -1);
        ck_assert_ptr_nonnull(strstr(e.msg, "another trainyard run is using"));
        AUTO_FINI(outdir) fresh = { .lock = -1 };
        ck_assert_int_eq(open_it(OUTDIR_FRESH, &fresh, &e), -1); /* nor is a folder in use moved away */
        ck_assert(file_exists(path));
    }
    {
        AUTO_FINI(outdir) o = { .lock = -1 };
        ck_ok_e(open_it(OUTDIR_ANY, &o, &e));
        ck_assert_int_eq(o.plan, OUTDIR_CONTINUE);
        ck_assert_str_eq(o.uid, first);
    }
    put("finished", "{\"uid\":\"x\",\"step\":77}"); /* of another run: this run goes on */
    {
        AUTO_FINI(outdir) o = { .lock = -1 };
        ck_ok_e(open_it(OUTDIR_ANY, &o, &e));
        ck_assert_int_eq(o.plan, OUTDIR_CONTINUE);
    }
    auto_free char *end = xasprintf("{\"uid\":\"%s\",\"step\":77}", first);
    put("finished", end);
    {
        AUTO_FINI(outdir) o = { .lock = -1 };
        ck_ok_e(open_it(OUTDIR_ANY, &o, &e));
        ck_assert_int_eq(o.plan, OUTDIR_DONE);
        ck_assert_int_eq(o.finished_step, 77);
    }
    AUTO_FINI(outdir) o = { .lock = -1 };
    ck_ok_e(open_it(OUTDIR_RESUME, &o, &e));
    ck_assert_str_ne(o.uid, first); /* a new run, so that the old end is not mistaken for its own */
    auto_free char *finished = path_join(path, "finished");
    ck_assert(!file_exists(finished));
}
END_TEST

START_TEST(a_fresh_start_keeps_the_old)
{
    struct err e = { 0 };
    for (int i = 0; i < 3; i++) {
        AUTO_FINI(outdir) o = { .lock = -1 };
        ck_ok_e(open_it(OUTDIR_FRESH, &o, &e));
        auto_free char *want = i > 0 ? xasprintf("%s.old-%d", path, i) : NULL;
        ck_assert(str_eq(o.moved_to, want));
    }
    auto_free char *old = xasprintf("%s.old-2/uid", path);
    ck_assert(file_exists(old));
}
END_TEST

START_TEST(the_lock_is_on_the_folder)
{
    struct err e = { 0 };
    auto_free char *aside = xasprintf("%s.aside", path);
    {
        AUTO_FINI(outdir) first = { .lock = -1 }, second = { .lock = -1 }, late = { .lock = -1 };
        ck_ok_e(outdir_open(path, OUTDIR_ANY, &first, &e)); /* both see that there is none */
        ck_ok_e(outdir_open(path, OUTDIR_ANY, &second, &e));
        ck_ok_e(outdir_plan(&first, RERUN_FREE, &e));
        ck_ok_e(outdir_plan(&second, RERUN_FREE, &e));
        ck_ok_e(outdir_make(&first, "", &e));
        ck_assert_int_eq(outdir_make(&second, "", &e), -1);
        ck_assert_int_eq(outdir_open(path, OUTDIR_FRESH, &late, &e), -1);
        /* also after the files in it were replaced */
        put("uid", "another\n");
        ck_assert_int_eq(outdir_open(path, OUTDIR_ANY, &late, &e), -1);
        ck_assert_ptr_nonnull(strstr(e.msg, "another trainyard run is using"));
    }
    AUTO_FINI(outdir) held = { .lock = -1 }, other = { .lock = -1 };
    ck_ok_e(outdir_open(path, OUTDIR_ANY, &held, &e));
    ck_ok_e(file_rename(path, aside, &e)); /* by hand: the new folder of that name is free */
    ck_ok_e(dir_make(path, &e));
    ck_ok_e(outdir_open(path, OUTDIR_ANY, &other, &e));
}
END_TEST

/* Both saw no folder; the second one opens it after the first has used it and ended. */
START_TEST(a_used_folder_is_not_taken_for_a_new_one)
{
    struct err e = { 0 };
    AUTO_FINI(outdir) late = { .lock = -1 };
    ck_ok_e(outdir_open(path, OUTDIR_ANY, &late, &e));
    ck_ok_e(outdir_plan(&late, RERUN_FREE, &e));
    {
        AUTO_FINI(outdir) first = { .lock = -1 };
        ck_ok_e(open_it(OUTDIR_ANY, &first, &e));
    }
    ck_assert_int_eq(outdir_make(&late, "", &e), -1);
}
END_TEST

START_TEST(a_file_is_not_an_output_folder)
{
    struct err e = { 0 };
    AUTO_FINI(outdir) o = { .lock = -1 };
    auto_free char *parent = path_join(dir, "runs");
    ck_ok_e(dir_make(parent, &e));
    ck_ok_e(file_write(path, "x", 1, &e));
    ck_assert_int_eq(outdir_open(path, OUTDIR_FRESH, &o, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    auto_free char *want = xasprintf("output folder: %s is not a folder", path);
    ck_assert_str_eq(e.msg, want);
    ck_assert(!file_is_dir(path) && file_exists(path)); /* nor is it moved */
}
END_TEST

START_TEST(the_end_is_told)
{
    struct err e = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    ck_ok_e(dir_make(path, &e));
    outdir_summary(path, &text);
    ck_assert_str_eq(text.data, "");
    put("history.json", "{\"history\":{\"epoch\":[0,1],\"loss\":[0.5,0.25]},\"step\":9,\"final\":{\"loss\":0.0762,"
                        "\"accuracy\":0.97809}}");
    outdir_summary(path, &text);
    auto_free char *want = xasprintf("  loss 0.0762, accuracy 0.9781\n  history      %s/history.json\n", path);
    ck_assert_str_eq(text.data, want);
    put("history.json", "{\"history\":{\"epoch\":[0,1],\"loss\":[0.5,\"NaN\"]},\"step\":9}");
    buf_clear(&text);
    outdir_summary(path, &text);
    ck_assert(str_starts(text.data, "  loss NaN\n"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("outdir");
    TCase *pure = tcase_create("pure");
    tcase_add_loop_test(pure, what_is_done_with_a_folder, 0, COUNT_OF(CASES));
    suite_add_tcase(s, pure);
    TCase *t = tcase_create("folder");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_uid_is_one_life);
    tcase_add_test(t, a_fresh_start_keeps_the_old);
    tcase_add_test(t, the_lock_is_on_the_folder);
    tcase_add_test(t, a_used_folder_is_not_taken_for_a_new_one);
    tcase_add_test(t, a_file_is_not_an_output_folder);
    tcase_add_test(t, the_end_is_told);
    suite_add_tcase(s, t);
    return s;
}
