/* The launcher with test/fake's shell scripts in place of the replicas: real processes, pipes and signals. */
#include "check_main.h"
#include "cli/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/stop.h"
#include "temp_folder.h"

static const char CLUSTER_JOB[] = "apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: fake}\n"
                                  "spec:\n  model: {inputShape: [2], layers: [{Dense: {units: 1}}]}\n"
                                  "  compile: {optimizer: SGD, loss: mean_squared_error}\n"
                                  "  data: {train: {format: npy, features: x.npy, labels: y.npy}}\n  fit: {epochs: 1}\n"
                                  "  runPolicy: {backoffLimit: 3}\n"
                                  "  replicaSpecs: {Chief: {}, PS: {replicas: 1}, Worker: {replicas: 2}}\n";

/* Everything a run wrote, and how it ended. */
struct run {
    pid_t pid;
    int out;
    struct buf text;
    int code;
};
static struct run run;

static __attribute__((noreturn)) void launch(const char *yaml, const char *const env[][2], size_t n, int out)
{
    struct err e = { 0 };
    struct job *job = NULL;
    struct launch_end end = { .exit_code = 99 };

    dup2(out, STDERR_FILENO);
    setenv("TRAINYARD_BIN_DIR", "test/fake", 1);
    for (size_t i = 0; i < n; i++)
        setenv(env[i][0], env[i][1], 1);
    struct launch l = { .job_file = "job.yaml",
                        .data_dir = "data",
                        .output_dir = "out",
                        .uid = "u-1",
                        .log_level = "info",
                        .log_format = "text" };
    if (job_parse(yaml, strlen(yaml), "job.yaml", &job, &e) < 0 || stop_install(&e) < 0)
        _exit(98);
    l.job = job;
    l.json = getenv("FAKE_JSON") != NULL;
    l.insecure = getenv("FAKE_INSECURE") != NULL;
    if (launcher_run(&l, &end, &e) < 0) {
        dprintf(STDERR_FILENO, "error: %s\n", e.msg);
        end.exit_code = err_exit_code(&e);
    }
    job_free(job);
    dprintf(STDERR_FILENO, "reason: %s\n", end.reason);
    _exit(end.exit_code);
}

static void begin(const char *yaml, const char *const env[][2], size_t n)
{
    int fds[2];
    run = (struct run){ .text = BUF_INIT };
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    run.pid = fork();
    if (run.pid == 0)
        launch(yaml, env, n, fds[1]);
    close(fds[1]);
    run.out = fds[0];
}

/* Reads until the text is there; false when the output ends. */
static bool read_until(const char *text)
{
    while (text == NULL || strstr(run.text.data, text) == NULL) {
        char bytes[4096];
        ssize_t n = read(run.out, bytes, sizeof(bytes));
        if (n <= 0)
            return false;
        buf_add(&run.text, bytes, (size_t)n);
    }
    return true;
}

static void finish(void)
{
    int status = 0;
    read_until(NULL);
    close(run.out);
    ck_assert_int_eq(waitpid(run.pid, &status, 0), run.pid);
    run.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void assert_said(const char *text)
{
    ck_assert_msg(strstr(run.text.data, text) != NULL, "'%s' is not in:\n%s", text, run.text.data);
}

static char folder[] = "/tmp/trainyard-launcher.XXXXXX"; /* a launcher that is killed leaves its certificates there */

static void setup(void)
{
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
}

static void teardown(void)
{
    buf_fini(&run.text);
    remove_tree(folder);
}

#define BEGIN(yaml, ...)                                                                                               \
    do {                                                                                                               \
        static const char *const env_[][2] = { __VA_ARGS__ };                                                          \
        begin(yaml, env_, COUNT_OF(env_));                                                                             \
    } while (0)
#define SERVE "trap 'echo saved >&2; exit 143' TERM; echo up; while :; do sleep 0.01; done"

START_TEST(a_job_runs_and_ends)
{
    BEGIN(CLUSTER_JOB, { "FAKE_ps_0", "sleep 0.05" }, { "FAKE_worker_0", "echo \"$@\"" },
          { "FAKE_worker_1",
            "echo uid $TRAINYARD_JOB_UID threads $OPENBLAS_NUM_THREADS name=$JOB_NAME.; echo $TF_CONFIG" },
          { "FAKE_chief_0", "echo 'step 5 loss 0.5' >&2; sleep 0.02; exit 0" }, { "JOB_NAME", "left over" });
    finish();
    ck_assert_int_eq(run.code, 0);
    assert_said("[worker-0] --job job.yaml --data-dir data --output-dir out --http-port ");
    assert_said(" --log-level info --log-format text --tls-dir ");
    assert_said("/worker-0 --https-port ");
    assert_said("[worker-1] uid u-1 threads 1 name=.\n");
    assert_said("[worker-1] {\"cluster\":{\"chief\":[\"127.0.0.1:");
    assert_said("\"task\":{\"type\":\"worker\",\"index\":1},\"environment\":\"cloud\"}");
    assert_said("[chief-0] step 5 loss 0.5\n");
}
END_TEST

/* Each replica finds its own identity when it starts, and nothing is left at the end. */
START_TEST(replicas_have_identities)
{
    AUTO_FINI(strlist) left = { 0 };
    struct err e = { 0 };
    BEGIN(CLUSTER_JOB, { "FAKE_ps_0", "" }, { "FAKE_worker_0", "" },
          { "FAKE_worker_1", "for a; do case $a in */worker-1) d=$a;; esac; done; echo $d; grep -c BEGIN $d/tls.key; "
                             "ls $d/..; echo tls=$TRAINYARD_TLS_DIR." },
          { "FAKE_chief_0", "sleep 0.1" }, { "TRAINYARD_TLS_DIR", "left over" });
    finish();
    ck_assert_int_eq(run.code, 0);
    assert_said("/worker-1\n[worker-1] 1\n");
    assert_said("[worker-1] launcher\n[worker-1] ps-0\n");
    assert_said("[worker-1] tls=.\n");
    ck_ok_e(dir_list(folder, &left, &e));
    ck_assert_uint_eq(left.n, 0);
}
END_TEST

START_TEST(insecure_replicas_have_none)
{
    BEGIN(CLUSTER_JOB, { "FAKE_INSECURE", "1" }, { "FAKE_ps_0", "" }, { "FAKE_worker_0", "" }, { "FAKE_worker_1", "" },
          { "FAKE_chief_0", "echo \"$@.\"" });
    finish();
    ck_assert_int_eq(run.code, 0);
    assert_said("--log-format text --insecure.\n");
}
END_TEST

START_TEST(a_job_without_replicas_is_one_process)
{
    auto_free char *yaml = xstrndup(CLUSTER_JOB, (size_t)(strstr(CLUSTER_JOB, "  replicaSpecs") - CLUSTER_JOB));
    BEGIN(yaml, { "FAKE_single", "echo alone; exit 3" }, { "PS_HOSTS", "left:1" });
    finish();
    ck_assert_int_eq(run.code, 3);
    assert_said("[local] alone\n");
}
END_TEST

START_TEST(a_replica_that_dies_comes_back)
{
    auto_free char *file = xasprintf("/tmp/trainyard-test-%d", (int)getpid());
    auto_free char *script = xasprintf("if [ -e %s ]; then rm %s; exit 0; fi; touch %s; kill -9 $$", file, file, file);
    const char *const env[][2] = {
        { "FAKE_chief_0", script }, { "FAKE_ps_0", "" }, { "FAKE_worker_0", "" }, { "FAKE_worker_1", "" }
    };
    begin(CLUSTER_JOB, env, COUNT_OF(env));
    finish();
    ck_assert_int_eq(run.code, 0);
    assert_said("warning: chief-0 was killed by signal 9 (Killed); restarting it in 10 ms (restart 1 of at most 3)\n");
}
END_TEST

START_TEST(bad_input_ends_the_job_with_its_reason)
{
    BEGIN(CLUSTER_JOB, { "FAKE_ps_0", SERVE }, { "FAKE_worker_0", SERVE }, { "FAKE_chief_0", SERVE },
          { "FAKE_worker_1", "echo 'error: train.csv:7: no number' >&2; exit 2" });
    finish();
    ck_assert_int_eq(run.code, 2);
    assert_said("[worker-1] error: train.csv:7: no number\n");
    assert_said("\nerror: worker-1 ended with exit code 2\n");
    assert_said("\nreason: worker-1 ended with exit code 2: train.csv:7: no number\n");
}
END_TEST

START_TEST(its_reason_is_found_in_json_too)
{
    BEGIN(CLUSTER_JOB, { "FAKE_JSON", "1" }, { "FAKE_ps_0", SERVE }, { "FAKE_worker_0", SERVE },
          { "FAKE_chief_0", SERVE },
          { "FAKE_worker_1", "echo '{\"level\":\"error\",\"msg\":\"no \\\"x\\\"\"}' >&2; exit 2" });
    finish();
    ck_assert_int_eq(run.code, 2);
    assert_said("{\"level\":\"error\",\"msg\":\"no \\\"x\\\"\"}\n");
    ck_assert_ptr_null(strstr(run.text.data, "[worker-1]")); /* as it was, without a name in front */
    assert_said("\nreason: worker-1 ended with exit code 2: no \"x\"\n");
}
END_TEST

START_TEST(restarts_have_a_limit)
{
    BEGIN(CLUSTER_JOB, { "FAKE_ps_0", SERVE }, { "FAKE_worker_0", "exit 138" }, { "FAKE_chief_0", SERVE },
          { "FAKE_worker_1", SERVE });
    finish();
    ck_assert_int_eq(run.code, 138);
    assert_said("3 restarts is reached (runPolicy.backoffLimit)");
}
END_TEST

START_TEST(a_signal_stops_the_chief_first)
{
    BEGIN(CLUSTER_JOB, { "FAKE_ps_0", SERVE }, { "FAKE_worker_0", SERVE }, { "FAKE_worker_1", SERVE },
          { "FAKE_chief_0", SERVE });
    ck_assert(read_until("[chief-0] up") && read_until("[ps-0] up") && read_until("[worker-0] up") &&
              read_until("[worker-1] up"));
    kill(run.pid, SIGINT);
    finish();
    ck_assert_int_eq(run.code, 143);
    const char *chief = strstr(run.text.data, "[chief-0] saved"), *worker = strstr(run.text.data, "[worker-1] saved");
    const char *ps = strstr(run.text.data, "[ps-0] saved");
    ck_assert_msg(chief != NULL && worker != NULL && ps != NULL && chief < worker && worker < ps, "%s", run.text.data);
}
END_TEST

START_TEST(a_second_signal_waits_for_nobody)
{
    BEGIN(CLUSTER_JOB, { "FAKE_ps_0", SERVE }, { "FAKE_worker_0", SERVE }, { "FAKE_worker_1", SERVE },
          { "FAKE_chief_0", "trap 'echo busy' TERM; echo up; while :; do sleep 0.01; done" });
    ck_assert(read_until("[chief-0] up"));
    kill(run.pid, SIGINT);
    ck_assert(read_until("[chief-0] busy"));
    kill(run.pid, SIGINT);
    finish();
    ck_assert_int_eq(run.code, 143);
    assert_said("stopping at once");
}
END_TEST

/* The process numbers that the replicas wrote: "pid 123". */
static size_t pids_in(const char *text, pid_t *ret, size_t max)
{
    size_t n = 0;
    for (const char *p = strstr(text, " pid "); p != NULL && n < max; p = strstr(p + 1, " pid "))
        ret[n++] = atoi(p + 5);
    return n;
}

/* A zombie counts as dead: the test does not control which process reaps orphans. */
static bool alive(pid_t pid)
{
    AUTO_FINI(buf) stat = BUF_INIT;
    auto_free char *path = xasprintf("/proc/%d/stat", (int)pid);
    return file_read(path, 4096, &stat, NULL) == 0 && strstr(stat.data, ") Z ") == NULL;
}

START_TEST(no_process_is_left_behind_when_it_is_killed)
{
    static const char script[] = "echo \"at pid $$ .\"; while :; do sleep 0.01; done";
    pid_t pids[4];
    BEGIN(CLUSTER_JOB, { "FAKE_ps_0", script }, { "FAKE_worker_0", script }, { "FAKE_worker_1", script },
          { "FAKE_chief_0", script });
    static const char *const names[] = { "[ps-0] at", "[worker-0] at", "[worker-1] at", "[chief-0] at" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        ck_assert(read_until(names[i]));
    ck_assert_uint_eq(pids_in(run.text.data, pids, 4), 4);
    kill(run.pid, SIGKILL);
    waitpid(run.pid, NULL, 0);
    for (size_t i = 0; i < 4; i++)
        ck_wait(!alive(pids[i]));
    close(run.out);
}
END_TEST

START_TEST(a_missing_program_is_said)
{
    BEGIN(CLUSTER_JOB, { "TRAINYARD_BIN_DIR", "/nowhere" });
    finish();
    ck_assert_int_eq(run.code, 2);
    assert_said("error: program trainyard-worker is not in /nowhere (TRAINYARD_BIN_DIR)\n");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("launcher");
    TCase *t = tcase_create("launcher");
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_job_runs_and_ends);
    tcase_add_test(t, replicas_have_identities);
    tcase_add_test(t, insecure_replicas_have_none);
    tcase_add_test(t, a_job_without_replicas_is_one_process);
    tcase_add_test(t, a_replica_that_dies_comes_back);
    tcase_add_test(t, bad_input_ends_the_job_with_its_reason);
    tcase_add_test(t, its_reason_is_found_in_json_too);
    tcase_add_test(t, restarts_have_a_limit);
    tcase_add_test(t, a_signal_stops_the_chief_first);
    tcase_add_test(t, a_second_signal_waits_for_nobody);
    tcase_add_test(t, no_process_is_left_behind_when_it_is_killed);
    tcase_add_test(t, a_missing_program_is_said);
    suite_add_tcase(s, t);
    return s;
}
