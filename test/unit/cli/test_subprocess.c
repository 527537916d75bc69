#include "check_main.h"
#include "cli/subprocess.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/stop.h"

static void note(void *user, const char *line)
{
    buf_printf(user, "%.100s|", line);
}

/* Runs sh -c script to its end; its lines, and its exit code. */
static int run(const char *script, struct buf *lines)
{
    struct err e = { 0 };
    struct subprocess c = SUBPROCESS_INIT;
    char *argv[] = { xstrdup("/bin/sh"), xstrdup("-c"), xstrdup(script), NULL };
    char *env[] = { NULL };
    int code = -1;
    ck_ok_e(subprocess_start(&c, argv, env, &e));
    while (c.out >= 0) {
        struct pollfd p = { .fd = c.out, .events = POLLIN };
        poll(&p, 1, -1);
        subprocess_read(&c, note, lines);
    }
    ck_wait(subprocess_ended(&c, &code));
    subprocess_fini(&c);
    for (size_t i = 0; argv[i] != NULL; i++)
        free(argv[i]);
    return code;
}

static const struct {
    const char *script, *lines;
    int code;
} SCRIPTS[] = {
    { "echo one; echo two >&2", "one|two|", 0 },
    { "printf 'no newline'; exit 7", "no newline|", 7 },
    { "printf 'dos\\r\\n\\nend\\n'", "dos||end|", 0 },
    { "kill -9 $$", "", 137 },
    { "kill -TERM $$", "", 143 },
    { "read x; echo \"got $x\"", "got |", 0 }, /* standard input is empty */
    { "printf 'a\\000b\\n'", "a b|", 0 },
};
START_TEST(lines_and_exit_codes)
{
    AUTO_FINI(buf) lines = BUF_INIT;
    ck_assert_int_eq(run(SCRIPTS[_i].script, &lines), SCRIPTS[_i].code);
    ck_assert_str_eq(lines.data, SCRIPTS[_i].lines);
}
END_TEST

static void lengths(void *user, const char *line)
{
    buf_printf(user, "%zu ", strlen(line));
}

START_TEST(a_line_without_end_is_cut)
{
    struct err e = { 0 };
    struct subprocess c = SUBPROCESS_INIT;
    char *argv[] = { xstrdup("/bin/sh"), xstrdup("-c"), xstrdup("head -c 40000 /dev/zero | tr '\\0' x"), NULL };
    char *env[] = { xstrdup("PATH=/usr/bin:/bin"), NULL };
    AUTO_FINI(buf) got = BUF_INIT;
    ck_ok_e(subprocess_start(&c, argv, env, &e));
    while (c.out >= 0) {
        struct pollfd p = { .fd = c.out, .events = POLLIN };
        poll(&p, 1, 1000);
        subprocess_read(&c, lengths, &got);
    }
    ck_assert_str_eq(got.data, "16384 16384 7232 ");
    subprocess_fini(&c);
    for (size_t i = 0; argv[i] != NULL; i++)
        free(argv[i]);
    free(env[0]);
}
END_TEST

/* The program that starts it handles the signal itself. The child must not: before exec it is a copy of that program.
 */
START_TEST(a_signal_right_after_the_start_ends_it)
{
    struct err e = { 0 };
    char *argv[] = { xstrdup("/bin/sleep"), xstrdup("1000"), NULL };
    char *env[] = { NULL };
    ck_ok_e(stop_install(&e));
    for (int i = 0; i < 300; i++) {
        struct subprocess c = SUBPROCESS_INIT;
        int code = -1;
        ck_ok_e(subprocess_start(&c, argv, env, &e));
        subprocess_signal(&c, SIGTERM);
        ck_wait(subprocess_ended(&c, &code));
        subprocess_fini(&c);
        ck_assert_msg(code == 128 + SIGTERM, "the exit code of start %d is %d", i, code);
    }
    free(argv[0]);
    free(argv[1]);
}
END_TEST

START_TEST(what_cannot_be_run_says_so)
{
    struct err e = { 0 };
    char *path = NULL;
    setenv("TRAINYARD_BIN_DIR", "/nowhere", 1);
    ck_assert_int_eq(subprocess_find_program("trainyard-ps", &path, &e), -1);
    ck_assert_str_eq(e.msg, "program trainyard-ps is not in /nowhere (TRAINYARD_BIN_DIR)");
    unsetenv("TRAINYARD_BIN_DIR");
    ck_assert_int_eq(subprocess_find_program("no-such-program-anywhere", &path, &e), -1);
    ck_assert_str_eq(e.msg, "program no-such-program-anywhere is neither in the folder of trainyard nor in PATH");
    ck_assert_int_eq(subprocess_find_program("sh", &path, &e), 0);
    ck_assert(str_ends(path, "/sh"));
    free(path);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("child");
    TCase *t = tcase_create("child");
    tcase_add_loop_test(t, lines_and_exit_codes, 0, COUNT_OF(SCRIPTS));
    tcase_add_test(t, a_line_without_end_is_cut);
    tcase_add_test(t, a_signal_right_after_the_start_ends_it);
    tcase_add_test(t, what_cannot_be_run_says_so);
    suite_add_tcase(s, t);
    return s;
}
