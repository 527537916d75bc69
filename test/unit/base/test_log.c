#include "base/log.h"
#include "check_main.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

/* Runs the statement with stderr redirected into a pipe, and yields what was written. */
static int pipe_fds[2], saved_stderr;

static void capture(void)
{
    ck_assert_int_eq(pipe(pipe_fds), 0);
    saved_stderr = dup(STDERR_FILENO);
    dup2(pipe_fds[1], STDERR_FILENO);
}

static const char *captured(void)
{
    static char text[8192];
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(pipe_fds[1]);
    ssize_t n = read(pipe_fds[0], text, sizeof(text) - 1);
    close(pipe_fds[0]);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

START_TEST(text_for_people)
{
    log_setup(LOG_INFO, LOG_TEXT, NULL);
    capture();
    log_info("waiting for %s, %d s", "ps-1", 42);
    log_debug("not %s", "seen");
    log_warning("disk nearly full");
    log_error("no");
    ck_assert_str_eq(captured(), "waiting for ps-1, 42 s\nwarning: disk nearly full\nerror: no\n");
}
END_TEST

START_TEST(fields_in_text)
{
    log_setup(LOG_DEBUG, LOG_TEXT, "worker-1");
    capture();
    log_fields(LOG_INFO, "", 3,
               (struct log_field[]){ LOG_INT("step", 1400), LOG_NUM("loss", 0.14332), LOG_STR("who", "worker-1") });
    log_fields(LOG_DEBUG, "saved", 2, (struct log_field[]){ LOG_NUM("loss", NAN), LOG_STR("none", NULL) });
    ck_assert_str_eq(captured(),
                     "[worker-1] step 1400 loss 0.1433 who worker-1\n[worker-1] debug: saved loss nan none \n");
}
END_TEST

START_TEST(json_for_machines)
{
    log_setup(LOG_INFO, LOG_JSON, "ps-0");
    capture();
    log_fields(LOG_WARNING, "a \"b\"\n\x01\\ \xc3\xa9 \xff \xed\xa0\x80", 3,
               (struct log_field[]){ LOG_INT("step", -3), LOG_NUM("x", 0.5), LOG_NUM("y", -INFINITY) });
    const char *line = captured();
    ck_assert(str_starts(line, "{\"ts\":\"20"));
    ck_assert_str_eq(strstr(line, ",\"level\""),
                     ",\"level\":\"warning\",\"replica\":\"ps-0\",\"msg\":\"a \\\"b\\\"\\n\\u0001\\\\ \xc3\xa9 ? ???\","
                     "\"step\":-3,\"x\":0.5,\"y\":\"-Infinity\"}\n");
}
END_TEST

START_TEST(fields_alone_are_a_message_too)
{
    log_setup(LOG_INFO, LOG_JSON, "chief-0");
    capture();
    log_fields(LOG_INFO, "", 2, (struct log_field[]){ LOG_INT("step", 1400), LOG_NUM("loss", 0.5) });
    ck_assert_str_eq(strstr(captured(), ",\"msg\""), ",\"msg\":\"step 1400 loss 0.5\",\"step\":1400,\"loss\":0.5}\n");
}
END_TEST

START_TEST(a_message_cannot_forge_a_line)
{
    log_setup(LOG_INFO, LOG_TEXT, NULL);
    capture();
    log_info("%s", "one\nerror: two\x1b[31m\xC2\x9B"
                   "0m");
    ck_assert_str_eq(captured(), "one error: two [31m 0m\n");
}
END_TEST

START_TEST(names_of_levels_and_formats)
{
    struct err e = { 0 };
    enum log_level level;
    enum log_format format;
    ck_assert(log_level_parse("warning", &level, &e) == 0 && level == LOG_WARNING);
    ck_assert(log_level_parse("debug", &level, &e) == 0 && level == LOG_DEBUG);
    ck_assert(log_format_parse("json", &format, &e) == 0 && format == LOG_JSON);
    ck_assert_int_eq(log_level_parse("loud", &level, &e), -1);
    ck_assert_str_eq(e.msg, "log level 'loud' is not known; it must be debug, info, warning or error");
    ck_assert_int_eq(log_format_parse("xml", &format, &e), -1);
    log_setup(LOG_WARNING, LOG_TEXT, NULL);
    ck_assert(!log_enabled(LOG_INFO) && log_enabled(LOG_WARNING) && log_enabled(LOG_ERROR));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("log");
    TCase *t = tcase_create("log");
    tcase_add_test(t, text_for_people);
    tcase_add_test(t, fields_in_text);
    tcase_add_test(t, json_for_machines);
    tcase_add_test(t, fields_alone_are_a_message_too);
    tcase_add_test(t, a_message_cannot_forge_a_line);
    tcase_add_test(t, names_of_levels_and_formats);
    suite_add_tcase(s, t);
    return s;
}
