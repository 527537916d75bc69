#include "base/opt.h"
#include "check_main.h"

#include <string.h>

#include "base/file.h"
#include "base/str.h"

static const struct opt_program PROGRAM = {
    .name = "trainyard-test",
    .usage = "[flags] FILE...",
    .about =
        "Does nothing at all, but says so at a length that makes this sentence wrap at the right margin of the text.",
    .epilog = "Exit codes: 0 finished; 2 bad input.",
};

struct values {
    const char *job_name;
    int64_t task_index, port;
    bool fresh, color, port_given;
    struct strlist sets;
};
enum { TABLE = 8 };
static void table(struct values *v, struct opt out[TABLE])
{
    struct opt opts[TABLE] = {
        OPT_SECTION("Cluster"),
        OPT_STR("job-name", "TEST_JOB_NAME", "ROLE", &v->job_name, "ps, worker, chief or evaluator"),
        OPT_INT("task-index", "TEST_TASK_INDEX", "N", &v->task_index, 0, 1000, "index within the role"),
        OPT_INT("a-port-with-a-very-long-name", NULL, "PORT", &v->port, 1, 65535, "where it listens"),
        OPT_SECTION("Run"),
        OPT_BOOL("fresh", &v->fresh,
                 "move what an earlier run left out of the way and begin again; the old files are kept beside"),
        OPT_LIST("set", "KEY=VALUE", &v->sets, "change a field of the job"),
        OPT_END,
    };
    memcpy(out, opts, sizeof(opts));
    out[3].short_name = 'p';
    out[3].ret_given = &v->port_given;
    out[5].short_name = 'f';
}

/* "a b c" -> result of parsing these arguments */
static int parse(struct values *v, const char *line, struct strlist *ret_args, enum opt_result *result, struct err *e)
{
    static char text[512];
    static char *argv[32];
    struct opt opts[TABLE];
    int argc = 1;
    table(v, opts);
    str_fmt(text, sizeof(text), "%s", line);
    argv[0] = text + strlen(text);
    for (char *save = NULL, *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    return opt_parse(&PROGRAM, opts, argc, argv, ret_args, result, e);
}

START_TEST(every_way_to_write_a_flag)
{
    static const char *const LINES[] = {
        "--job-name ps --task-index 3 -p 22 --fresh",
        "--job_name=ps --task_index=3 -p22 -f",
        "--job-name=ps --task-index=3 -p=22 --fresh=yes",
        "--no-fresh --job-name ps --task-index 3 --a-port-with-a-very-long-name=22 --fresh",
    };
    struct err e = { 0 };
    struct values v = { 0 };
    enum opt_result result;
    AUTO_FINI(strlist) args = { 0 };
    ck_ok_e(parse(&v, LINES[_i], &args, &result, &e));
    ck_assert_int_eq(result, OPT_OK);
    ck_assert_str_eq(v.job_name, "ps");
    ck_assert_int_eq(v.task_index, 3);
    ck_assert_int_eq(v.port, 22);
    ck_assert(v.fresh && v.port_given);
    ck_assert_uint_eq(args.n, 0);
}
END_TEST

START_TEST(arguments_and_lists_keep_their_order)
{
    struct err e = { 0 };
    struct values v = { .fresh = true };
    enum opt_result result;
    AUTO_FINI(strlist) args = { 0 };
    ck_ok_e(parse(&v, "a.yaml --set x=1 - --set y=2 --no-fresh -- --set -z", &args, &result, &e));
    ck_assert_uint_eq(args.n, 4);
    ck_assert_str_eq(args.items[0], "a.yaml");
    ck_assert_str_eq(args.items[1], "-");
    ck_assert_str_eq(args.items[2], "--set");
    ck_assert_str_eq(args.items[3], "-z");
    ck_assert_uint_eq(v.sets.n, 2);
    ck_assert_str_eq(v.sets.items[1], "y=2");
    ck_assert(!v.fresh && !v.port_given);
    strlist_fini(&v.sets);
}
END_TEST

static const struct {
    const char *line, *message;
} BAD[] = {
    { "--job-nam ps", "flag '--job-nam' is not known; did you mean '--job-name'?" },
    { "--zzzzzzzzz", "flag '--zzzzzzzzz' is not known; --help lists them all" },
    { "--hlp", "flag '--hlp' is not known; did you mean '--help'?" },
    { "-x", "flag '-x' is not known; --help lists them all" },
    { "-fx", "flag '-fx' is not known; -f takes no value" },
    { "--task-index", "--task-index needs a value: N" },
    { "--task-index -1", "--task-index: -1 is out of range; it must be 0 to 1000" },
    { "--task-index=two", "--task-index: 'two' is not a whole number" },
    { "--fresh=maybe", "--fresh: 'maybe' is neither true nor false" },
    { "--no-job-name", "flag '--no-job-name' is not known; did you mean '--job-name'?" },
    { "--=3", "flag '--=3' is not known; --help lists them all" },
};
START_TEST(faults_name_the_flag)
{
    struct err e = { 0 };
    struct values v = { 0 };
    enum opt_result result;
    AUTO_FINI(strlist) args = { 0 };
    ck_assert_int_eq(parse(&v, BAD[_i].line, &args, &result, &e), -1);
    ck_assert(err_is(&e, ERR_INPUT));
    ck_assert_str_eq(e.msg, BAD[_i].message);
}
END_TEST

START_TEST(the_environment_stands_behind_the_flags)
{
    struct err e = { 0 };
    struct values v = { 0 };
    enum opt_result result;
    AUTO_FINI(strlist) args = { 0 };
    setenv("TEST_JOB_NAME", "worker", 1);
    setenv("TEST_TASK_INDEX", "5", 1);
    ck_ok_e(parse(&v, "--task-index 6", &args, &result, &e));
    ck_assert_str_eq(v.job_name, "worker");
    ck_assert_int_eq(v.task_index, 6);

    setenv("TEST_TASK_INDEX", "many", 1);
    ck_assert_int_eq(parse(&v, "", &args, &result, &e), -1);
    ck_assert_str_eq(e.msg, "TEST_TASK_INDEX: 'many' is not a whole number");
    setenv("TEST_TASK_INDEX", "", 1); /* empty is not given */
    ck_ok_e(parse(&v, "", &args, &result, &e));
    unsetenv("TEST_JOB_NAME");
    unsetenv("TEST_TASK_INDEX");
}
END_TEST

START_TEST(help_is_golden)
{
    struct err e = { 0 };
    struct values v = { 0 };
    struct opt opts[TABLE];
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO_FINI(buf) want = BUF_INIT;
    table(&v, opts);
    opt_help(&PROGRAM, opts, &text);
    ck_ok_e(file_read("test/data/base/opt/help.txt", 1 << 16, &want, &e));
    ck_assert_str_eq(text.data, want.data);
}
END_TEST

START_TEST(a_manual_page_and_a_list_of_flags)
{
    struct err e = { 0 };
    struct values v = { 0 };
    struct opt opts[TABLE];
    AUTO_FINI(buf) page = BUF_INIT, flags = BUF_INIT, want = BUF_INIT;
    table(&v, opts);
    opt_man(&PROGRAM, opts, &page);
    ck_ok_e(file_read("test/data/base/opt/man.1", 1 << 16, &want, &e));
    ck_assert_str_eq(page.data, want.data);
    opt_flags(opts, &flags);
    ck_assert_str_eq(flags.data, "--job-name=\n--task-index=\n--a-port-with-a-very-long-name=\n--fresh\n--set=\n"
                                 "--help\n--version\n");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("opt");
    TCase *t = tcase_create("opt");
    tcase_add_loop_test(t, every_way_to_write_a_flag, 0, 4);
    tcase_add_test(t, arguments_and_lists_keep_their_order);
    tcase_add_loop_test(t, faults_name_the_flag, 0, COUNT_OF(BAD));
    tcase_add_test(t, the_environment_stands_behind_the_flags);
    tcase_add_test(t, help_is_golden);
    tcase_add_test(t, a_manual_page_and_a_list_of_flags);
    suite_add_tcase(s, t);
    return s;
}
