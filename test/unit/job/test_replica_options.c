#include "check_main.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json.h"
#include "job/replica_options.h"

static char path[] = "/tmp/trainyard-last.XXXXXX";

static void make(void)
{
    memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "something much longer than what comes", 37), 37);
    close(fd);
}

static void take_away(void)
{
    unlink(path);
}

static void last_word(struct buf *ret)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(file_read(path, 1 << 20, ret, &e));
}

START_TEST(an_error_is_the_last_word_in_one_line)
{
    struct replica_options o = { .termination_log = path };
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { .code = ERR_DIVERGED, .msg = "training diverged:\nworker-1" };
    ck_assert_int_eq(replica_end(&o, &e), 3);
    last_word(&text);
    ck_assert_str_eq(text.data, "error: training diverged: worker-1");
}
END_TEST

START_TEST(who_ends_well_or_is_stopped_says_nothing)
{
    struct replica_options o = { .termination_log = path };
    AUTO_FINI(buf) text = BUF_INIT;
    struct err stopped = { .code = ERR_STOPPED, .msg = "stopped by a signal" };
    ck_assert_int_eq(replica_end(&o, NULL), 0);
    ck_assert_int_eq(replica_end(&o, &stopped), 143);
    last_word(&text);
    ck_assert(str_starts(text.data, "something"));
}
END_TEST

START_TEST(before_the_flags_are_read_the_environment_names_the_file)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { .code = ERR_INPUT, .msg = "--job-nam is not known" };
    setenv("TRAINYARD_TERMINATION_LOG", path, 1);
    ck_assert_int_eq(replica_end(NULL, &e), 2);
    unsetenv("TRAINYARD_TERMINATION_LOG");
    last_word(&text);
    ck_assert_str_eq(text.data, "error: --job-nam is not known");
    ck_assert_int_eq(replica_end(NULL, &e), 2); /* no termination log is configured */
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_no_failure)
{
    struct replica_options o = { .termination_log = "/proc/none/last" };
    struct err e = { .code = ERR_LOST, .msg = "gone" };
    ck_assert_int_eq(replica_end(&o, &e), 138);
    termination_write_json("/proc/none/last", "{}");
    termination_write(NULL, "x");
    termination_write("", "x");
}
END_TEST

START_TEST(a_long_object_loses_its_largest_members_and_stays_json)
{
    AUTO_FINI(buf) text = BUF_INIT, json = BUF_INIT;
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL, *small = NULL;
    buf_str(&json, "{\"state\":\"finished\",\"step\":7,\"metrics\":{");
    for (int i = 0; i < 300; i++)
        buf_printf(&json, "%s\"metric_%d\":0.5", i > 0 ? "," : "", i);
    buf_str(&json, "},\"loss\":0.25}");
    ck_assert_uint_gt(json.len, TERMINATION_MAX);
    termination_write_json(path, json.data);
    last_word(&text);
    ck_assert_uint_le(text.len, TERMINATION_MAX);
    ck_ok_e(json_parse(text.data, text.len, "last", &v, &e));
    ck_ok_e(json_parse("{\"state\":\"finished\",\"step\":7,\"loss\":0.25}", 41, "want", &small, &e));
    ck_assert(json_equal(v, small));
}
END_TEST

START_TEST(a_long_error_is_cut)
{
    AUTO_FINI(buf) text = BUF_INIT;
    auto_free char *text_in = xcalloc(1, 9001);
    memset(text_in, 'x', 9000);
    termination_write(path, text_in);
    last_word(&text);
    ck_assert_uint_eq(text.len, TERMINATION_MAX);
}
END_TEST

/* what is given, the flag that the message says is missing (NULL: nothing is) */
static const struct {
    int64_t https_port;
    const char *tls_dir;
    bool metrics_tls;
    const char *missing;
} PORTS[] = {
    { 0, NULL, false, NULL },           { 8443, "tls", true, NULL },        { 8443, "tls", false, NULL },
    { 8443, NULL, false, "--tls-dir" }, { 0, "tls", true, "--https-port" },
};
START_TEST(an_https_port_needs_an_identity)
{
    struct replica_options o = REPLICA_OPTIONS_INIT;
    const struct strlist none = { 0 };
    struct err e = { .msg = "" };
    o.https_port = PORTS[_i].https_port;
    o.tls_dir = PORTS[_i].tls_dir;
    o.metrics_tls = PORTS[_i].metrics_tls;
    int rc = replica_options_finish(&o, "trainyard-ps", &none, &e);
    ck_assert_int_eq(rc, PORTS[_i].missing != NULL ? -1 : 0);
    ck_assert_msg(rc == 0 || (e.code == ERR_INPUT && strstr(e.msg, PORTS[_i].missing) != NULL), "%s", e.msg);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("replica_options");
    TCase *t = tcase_create("replica_options");
    tcase_add_checked_fixture(t, make, take_away);
    tcase_add_test(t, an_error_is_the_last_word_in_one_line);
    tcase_add_test(t, who_ends_well_or_is_stopped_says_nothing);
    tcase_add_test(t, before_the_flags_are_read_the_environment_names_the_file);
    tcase_add_test(t, a_file_that_cannot_be_written_is_no_failure);
    tcase_add_test(t, a_long_object_loses_its_largest_members_and_stays_json);
    tcase_add_test(t, a_long_error_is_cut);
    tcase_add_loop_test(t, an_https_port_needs_an_identity, 0, COUNT_OF(PORTS));
    suite_add_tcase(s, t);
    return s;
}
