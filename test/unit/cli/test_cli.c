#include "check_main.h"
#include "cli/cli.h"

#include <string.h>

static const struct {
    uint64_t n;
    const char *text;
} COUNTS[] = {
    { 0, "0" }, { 999, "999" }, { 1000, "1,000" }, { 101770, "101,770" }, { UINT64_MAX, "18,446,744,073,709,551,615" }
};
START_TEST(counts_for_people)
{
    char out[32];
    ck_assert_str_eq(cli_count(COUNTS[_i].n, out), COUNTS[_i].text);
}
END_TEST

static const struct {
    const char *text, *set; /* set NULL: refused */
} REPLICAS[] = {
    { "worker=4", "replicaSpecs.Worker.replicas=4" },
    { "ps=2", "replicaSpecs.PS.replicas=2" },
    { "evaluator=0", "replicaSpecs.Evaluator.replicas=0" },
    { "worker=4,ps=2", "replicaSpecs.Worker.replicas=4" },
    { "worker", NULL },
    { "worker=", NULL },
    { "worker=-1", NULL },
    { "wroker=2", NULL },
    { "=2", NULL },
    { "ps=1,", NULL },
    { "ps=1 worker=2", NULL },
};
START_TEST(replicas_are_a_set)
{
    struct err e = { 0 };
    AUTO_FINI(strlist) sets = { 0 };
    int rc = cli_replicas_to_set(REPLICAS[_i].text, &sets, &e);
    if (REPLICAS[_i].set == NULL) {
        ck_assert_int_eq(rc, -1);
        ck_assert(err_is(&e, ERR_INPUT) && strstr(e.msg, "--replicas") != NULL);
    } else {
        ck_ok_e(rc);
        ck_assert_str_eq(sets.items[0], REPLICAS[_i].set);
    }
}
END_TEST

START_TEST(a_job_without_ps_says_how_it_trains)
{
    static const char HEAD[] = "apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\nspec:\n"
                               "  model: {inputShape: [4], layers: [Dense: {units: 1}]}\n  compile: {loss: mse}\n"
                               "  data: {train: {format: csv, files: a.csv}}\n  fit: {epochs: 1}\n"
                               "  strategy: {name: MultiWorkerMirrored}\n"
                               "  replicaSpecs: {Chief: {}, Worker: {replicas: 3}}\n";
    struct err e = { 0 };
    AUTO(job) *job = NULL;
    AUTO_FINI(buf) text = BUF_INIT;
    ck_ok_e(job_parse(HEAD, strlen(HEAD), "a.yaml", &job, &e));
    cli_replicas(job, &text);
    ck_assert_str_eq(text.data, "3 workers, 1 chief, MultiWorkerMirrored");
}
END_TEST

START_TEST(a_misspelt_command_is_named)
{
    struct err e = { 0 };
    static const struct command TABLE[] = { { "run", run_command, "" }, { "validate", validate_command, "" } };
    const struct command *found = NULL;
    ck_ok_e(command_find(TABLE, 2, "command", "run", &found, &e));
    ck_assert_ptr_eq(found, &TABLE[0]);
    ck_assert_int_eq(command_find(TABLE, 2, "command", "valdate", &found, &e), -1);
    ck_assert_str_eq(e.msg, "command 'valdate' is not known; did you mean 'validate'?");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli");
    TCase *t = tcase_create("cli");
    tcase_add_loop_test(t, counts_for_people, 0, COUNT_OF(COUNTS));
    tcase_add_loop_test(t, replicas_are_a_set, 0, COUNT_OF(REPLICAS));
    tcase_add_test(t, a_job_without_ps_says_how_it_trains);
    tcase_add_test(t, a_misspelt_command_is_named);
    suite_add_tcase(s, t);
    return s;
}
