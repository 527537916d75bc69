/* The commands that print, as a user runs them: arguments in, text and exit code out. */
#include "check_main.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "identity/tls_dir.h"
#include "temp_folder.h"
#include "tfio/event_writer.h"

static struct buf out; /* what the last command printed */
static struct err e;

/* Splits `line` at spaces and runs the command with its standard output in `out`. Returns what the command returned. */
static int run(command_fn *command, const char *line, int *ret_exit)
{
    char text[512];
    char *argv[16] = { NULL };
    int argc = 0;
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);

    str_fmt(text, sizeof(text), "%s", line);
    for (char *save = NULL, *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        argv[argc++] = word;
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    e = (struct err){ 0 };
    *ret_exit = 0;
    int rc = command(argc, argv, ret_exit, &e);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);

    char bytes[4096];
    size_t n;
    buf_clear(&out);
    rewind(file);
    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        buf_add(&out, bytes, n);
    fclose(file);
    return rc;
}

static void run_ok(command_fn *command, const char *line)
{
    int code;
    ck_assert_msg(run(command, line, &code) == 0 && code == 0, "%s: %s", line, e.msg);
}

static void run_bad(command_fn *command, const char *line, const char *message)
{
    int code;
    ck_assert_int_eq(run(command, line, &code), -1);
    ck_assert_msg(strstr(e.msg, message) != NULL, "'%s' is not in: %s", message, e.msg);
    ck_assert_int_eq(err_exit_code(&e), 2);
    ck_assert_str_eq(out.data, "");
}

static void assert_golden(const char *name)
{
    AUTO_FINI(buf) want = BUF_INIT;
    auto_free char *path = xasprintf("test/data/cli/%s", name);
    ck_ok_e(file_read(path, 1 << 20, &want, &e));
    ck_assert_str_eq(out.data, want.data);
}

static void setup(void)
{
    static const char *const VARIABLES[] = { "TF_CONFIG", "JOB_NAME",     "TASK_INDEX",
                                             "PS_HOSTS",  "WORKER_HOSTS", "CHIEF_HOST" };
    for (size_t i = 0; i < COUNT_OF(VARIABLES); i++)
        unsetenv(VARIABLES[i]);
    out = (struct buf)BUF_INIT;
}

static void teardown(void)
{
    buf_fini(&out);
}

#define TF "test/data/train/tf_files/"

START_TEST(a_checkpoint_of_tensorflow_is_listed)
{
    run_ok(show_command, "show checkpoint " TF "ckpt_tf1");
    assert_golden("show_checkpoint.txt");
    run_ok(show_command, "show checkpoint " TF "ckpt_tf1/model.ckpt-3.index");
    assert_golden("show_checkpoint.txt");
    run_ok(show_command, "show checkpoint --no-check " TF "ckpt_types/t.data-00000-of-00001");
    ck_assert(str_starts(out.data, TF "ckpt_types/t: 17 tensors, 322 B\n"));
    run_ok(show_command, "show checkpoint --no-check " TF "ckpt_types"); /* the only one there, without a state file */
    ck_assert(str_starts(out.data, TF "ckpt_types/t: 17 tensors, 322 B\n"));
}
END_TEST

START_TEST(a_tensor_is_shown)
{
    run_ok(show_command, "show checkpoint --tensor f32 " TF "ckpt_types/t");
    ck_assert_str_eq(out.data,
                     "f32  float32 (2, 3)\n  min 0  max 5  mean 2.5  standard deviation 1.70783\n0 1 2\n3 4 5\n");
    run_ok(show_command, "show checkpoint --tensor empty " TF "ckpt_types/t");
    ck_assert_str_eq(out.data, "empty  float32 (0, 3)\n\n");
    run_bad(show_command, "show checkpoint --tensor dense/kernal " TF "ckpt_tf1",
            "no tensor 'dense/kernal'; did you mean 'dense/kernel'?");
}
END_TEST

START_TEST(no_checkpoint_no_list)
{
    run_bad(show_command, "show checkpoint test/data/cli", "test/data/cli: no checkpoint is there");
    run_bad(show_command, "show checkpoint nowhere/model.ckpt-1", "no checkpoint nowhere/model.ckpt-1 (no such folder");
    run_bad(show_command, "show checkpoint test/data/cli/mnist.yaml", "mnist.yaml is not a TensorFlow V2 checkpoint");
    run_bad(show_command, "show checkpoint", "trainyard show checkpoint needs an argument");
    run_bad(show_command, "show chekpoint x", "thing to show 'chekpoint' is not known; did you mean 'checkpoint'?");
}
END_TEST

START_TEST(an_export_leaves_slots_and_counters_out)
{
    auto_free char *file = xasprintf("/tmp/trainyard-test-%d.safetensors", (int)getpid());
    auto_free char *line = xasprintf("export " TF "ckpt_tf1 -o %s", file), *all = xasprintf("%s --all", line);
    AUTO_FINI(buf) text = BUF_INIT;
    run_ok(export_command, line);
    ck_assert_ptr_nonnull(strstr(out.data, ": 3 tensors, 196 B, from " TF "ckpt_tf1/model.ckpt-3\n"));
    ck_ok_e(file_read(file, 1 << 20, &text, &e));
    ck_assert_ptr_nonnull(memmem(text.data, text.len, "\"step\":\"3\"", 10));
    ck_assert_ptr_null(memmem(text.data, text.len, "Adam", 4));
    run_ok(export_command, all);
    ck_assert_ptr_nonnull(strstr(out.data, ": 12 tensors, 604 B, from "));
    ck_ok_e(file_remove(file, &e));
}
END_TEST

START_TEST(an_export_that_fails_leaves_nothing)
{
    auto_free char *file = xasprintf("/tmp/trainyard-test-%d.npz", (int)getpid());
    auto_free char *line = xasprintf("export " TF "ckpt_types/t -o %s", file); /* holds a bfloat16 */
    run_bad(export_command, line, "bf16: numpy has no BF16; export as safetensors");
    ck_assert(!file_exists(file));
    run_bad(export_command, "export " TF "ckpt_tf1", "needs -o FILE");
    run_bad(export_command, "export " TF "ckpt_tf1 -o x --format zip", "--format: 'zip' is not known");
    run_bad(export_command, "export " TF "ckpt_tf1 -o /dev/null", "/dev/null: not a regular file");
    run_bad(export_command, "export " TF "ckpt_tf1 -o model.onnx",
            "-o model.onnx: '.onnx' is not known; the extension must be .safetensors, .npz, .keras or .weights.h5");
    run_bad(export_command, "export " TF "ckpt_tf1 -o model.h5", "'.h5' is not known");
    run_bad(export_command, "export " TF "ckpt_tf1 -o model.keras --format npz",
            "model.keras has the extension of keras, not npz");
    run_bad(export_command, "export " TF "ckpt_tf1 -o model.keras --all",
            "--all: a keras file holds the model's variables only");
    run_bad(export_command, "export " TF "ckpt_tf1 -o model.weights.h5 --preprocessing",
            "--preprocessing: a weights.h5 file has no layers; only a .keras file");
    run_bad(export_command, "export test/data/cli/run -o model.keras --preprocessing",
            "job.yaml: no such file; it describes the columns of the data");
    run_bad(export_command, "export " TF "ckpt_tf1 -o model.keras",
            "/../model.json: no such file; it describes the layers");
    ck_assert(!file_exists("model.keras") && !file_exists("model.onnx"));
}
END_TEST

/* make interop tests how Keras reads these files. */
START_TEST(an_export_for_keras)
{
    static const char *const NAMES[] = { "keras", "weights.h5" };
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        auto_free char *file = xasprintf("/tmp/trainyard-test-%d.%s", (int)getpid(), NAMES[i]);
        auto_free char *line = xasprintf("export test/data/cli/run -o %s", file);
        AUTO_FINI(buf) first = BUF_INIT, again = BUF_INIT;
        run_ok(export_command, line);
        ck_assert_ptr_nonnull(
            strstr(out.data, ": 10 tensors, 112 B, from test/data/cli/run/checkpoints/model.ckpt-1\n"));
        ck_ok_e(file_read(file, 1 << 20, &first, &e));
        run_ok(export_command, line);
        ck_ok_e(file_read(file, 1 << 20, &again, &e));
        ck_assert_uint_eq(first.len, again.len); /* the same model gives the same bytes */
        ck_assert_mem_eq(first.data, again.data, first.len);
        ck_assert_ptr_nonnull(memmem(first.data, first.len, "\x89HDF\r\n\x1a\n", 8));
        ck_assert_ptr_nonnull(memmem(first.data, first.len, "batch_normalization", 19));
        ck_ok_e(file_remove(file, &e));
    }
}
END_TEST

START_TEST(events_are_listed)
{
    run_ok(show_command, "show events " TF "events_v1");
    ck_assert_ptr_nonnull(strstr(out.data, "accuracy"));
    ck_assert_ptr_nonnull(strstr(out.data, "0..400"));
    run_ok(show_command, "show events --tag loss " TF "events_v2");
    ck_assert_ptr_nonnull(strstr(out.data, "loss\t"));
    ck_assert_ptr_null(strstr(out.data, "accuracy\t"));
    run_ok(show_command, "show events --plot - " TF "events_v1");
    ck_assert_ptr_nonnull(strstr(out.data, "<svg"));
    run_bad(show_command, "show events test/data/cli", "test/data/cli: no event files");
    run_bad(show_command, "show events --tag lss " TF "events_v2", "--tag: no tag contains 'lss'; there are ");
    run_bad(show_command, "show events --tag lss --plot - " TF "events_v2", "--tag: no tag contains 'lss'; there are ");
    run_bad(show_command, "show events --smoothing 1 " TF "events_v1", "--smoothing: 1 is out of range");
}
END_TEST

/* The loss of the steps [from, to), and another value of the last one, as a process writes them that begins there. The
 * number of an epoch is not among the steps: what is written of it again comes behind. */
static void write_events(const char *dir, double wall, int64_t from, int64_t to, const char *other)
{
    AUTO(event_writer) *w = NULL;
    ck_ok_e(event_writer_open(dir, wall, "host", &w, &e));
    ck_ok_e(event_writer_session(w, wall, SESSION_START, from, NULL, NULL, &e));
    for (int64_t step = from; step < to; step++)
        ck_ok_e(event_writer_scalar(w, wall, step, "loss", (float)(wall * 10) + (float)step, &e));
    ck_ok_e(event_writer_scalar(w, wall, to - 1, other, 0.5F, &e));
    ck_ok_e(event_writer_scalar(w, wall, 0, "epoch_loss", (float)wall, &e));
}

START_TEST(events_that_a_restart_wrote_again_count_once)
{
    char dir[] = "/tmp/trainyard-events-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    write_events(dir, 1, 0, 3, "purged");
    write_events(dir, 2, 2, 4, "kept");
    auto_free char *points = xasprintf("show events --tag loss %s", dir), *table = xasprintf("show events %s", dir);
    run_ok(show_command, points);
    ck_assert_str_eq(out.data, ".\tloss\t0\t10\n.\tloss\t1\t11\n.\tloss\t2\t22\n.\tloss\t3\t23\n.\tepoch_loss\t0\t2\n");
    run_ok(show_command, table);
    ck_assert_ptr_nonnull(strstr(out.data, " 4  0..3 "));
    ck_assert_ptr_nonnull(strstr(out.data, "kept"));
    ck_assert_ptr_null(strstr(out.data, "purged")); /* its only step is written again */
    remove_tree(dir);
}
END_TEST

START_TEST(manifests_are_judged)
{
    int code;
    run_ok(validate_command, "validate test/data/cli/mnist.yaml");
    ck_assert_str_eq(
        out.data,
        "test/data/cli/mnist.yaml: ok (TrainJob mnist, 101,770 parameters, 1 ps, 2 workers, 1 chief, 5 epochs)\n");
    run_ok(validate_command, "validate --set fit.epochs=1 --set replicaSpecs.PS.replicas=3 test/data/cli/mnist.yaml");
    ck_assert_ptr_nonnull(strstr(out.data, "3 ps, 2 workers, 1 chief, 1 epoch)"));
    ck_assert_int_eq(run(validate_command, "validate nowhere.yaml test/data/cli/mnist.yaml", &code), 0);
    ck_assert_int_eq(code, 2);                       /* one was bad */
    ck_assert_ptr_nonnull(strstr(out.data, ": ok")); /* the other was checked all the same */
}
END_TEST

START_TEST(a_model_is_shown)
{
    run_ok(show_command, "show model test/data/cli/mnist.yaml");
    ck_assert_ptr_nonnull(strstr(out.data, "Total params: 101,770"));
    run_ok(show_command, "show model --json test/data/cli/mnist.yaml");
    ck_assert_ptr_nonnull(strstr(out.data, "\"class_name\": \"Sequential\""));
    run_ok(show_command, "show model test/data/cli/keras.json");
    ck_assert_ptr_nonnull(strstr(out.data, "Total params: 6,370"));
}
END_TEST

START_TEST(a_cluster_is_shown)
{
    run_ok(show_command, "show cluster");
    ck_assert_ptr_nonnull(strstr(out.data, "Running single-machine training"));
    run_ok(show_command, "show cluster --job-name=worker --task-index=0 --ps-hosts=p:1,q:2 --worker-hosts=a:1,b:2");
    ck_assert_str_eq(out.data,
                     "this task   worker-0 (hosts the chief)\nchief at    a:1\nps-0        p:1\nps-1        q:2\n"
                     "worker-0    a:1\nworker-1    b:2\n");
    setenv("TF_CONFIG", "{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\",\"index\":7}}", 1);
    run_bad(show_command, "show cluster", "7");
}
END_TEST

START_TEST(help_is_golden)
{
    run_ok(run_command, "run --help");
    assert_golden("run_help.txt");
}
END_TEST

static const char SINGLE[] = "apiVersion: trainyard.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: single}\nspec:\n"
                             "  model: {inputShape: [2], layers: [{Dense: {units: 1}}]}\n"
                             "  compile: {optimizer: SGD, loss: mse}\n  fit: {epochs: 1}\n"
                             "  data: {train: {format: npy, features: x.npy, labels: y.npy}}\n";

static size_t certificates(const char *dir)
{
    AUTO_FINI(strlist) members = { 0 };
    ck_ok_e(dir_list(dir, &members, &e));
    for (size_t i = 0; i < members.n; i++) {
        AUTO_FINI(tls_dir) d = { .ca = NULL };
        char name[IDENTITY_NAME_SIZE];
        auto_free char *path = path_join(dir, members.items[i]);
        ck_ok_e(tls_dir_read(path, (int64_t)clock_wall(), &d, &e));
        ck_assert_str_eq(identity_name(&d.info.identity, name), members.items[i]);
    }
    return members.n;
}

START_TEST(certs_makes_a_folder_for_each_replica)
{
    auto_free char *parent = xstrdup("/tmp/trainyard-certs.XXXXXX"), *line = NULL;
    ck_assert_ptr_nonnull(mkdtemp(parent));
    auto_free char *dir = path_join(parent, "a");
    line = xasprintf("certs --job deploy/examples/digits.yaml --out %s/", dir);
    run_ok(certs_command, line);
    ck_assert_uint_eq(certificates(dir), 5); /* a ps, two workers, the chief and launcher */
    ck_assert_ptr_nonnull(strstr(out.data, "certificates for 1 ps, 2 workers, 1 chief, valid until 20"));
    run_bad(certs_command, line, "exists; remove it, or give another --out");

    auto_free char *other = path_join(parent, "b");
    auto_free char *many = xasprintf("certs --job deploy/examples/digits.yaml --replicas ps=2,worker=3 --replicas "
                                     "evaluator=1 --days 2 --out %s",
                                     other);
    run_ok(certs_command, many);
    ck_assert_uint_eq(certificates(other), 8);
    AUTO_FINI(tls_dir) d = { .ca = NULL };
    auto_free char *worker = path_join(other, "worker-2");
    ck_ok_e(tls_dir_read(worker, (int64_t)clock_wall() + 2 * 24 * 3600 - 60, &d, &e));

    auto_free char *blocked = xasprintf("certs --job deploy/examples/digits.yaml --out %s/worker-0/ca.crt/x", dir);
    run_bad(certs_command, blocked, "ca.crt");
    AUTO_FINI(strlist) left = { 0 };
    ck_ok_e(dir_list(parent, &left, &e));
    ck_assert_uint_eq(left.n, 2); /* no temporary folder */

    auto_free char *single = path_join(parent, "job.yaml");
    auto_free char *alone = xasprintf("certs --job %s --out %s/c", single, parent);
    ck_ok_e(file_write(single, SINGLE, strlen(SINGLE), &e));
    run_bad(certs_command, alone, "job.yaml has no replicas: a training in one process needs no certificates");
    remove_tree(parent);
}
END_TEST

static const struct {
    const char *line, *message;
} BAD_CERTS[] = {
    { "certs --job deploy/examples/digits.yaml", "Must specify --out DIR" },
    { "certs --out /tmp/trainyard-none", "Must specify --job FILE" },
    { "certs --job deploy/examples/digits.yaml --out /tmp/trainyard-none --replicas wroker=1", "worker" },
    { "certs --job deploy/examples/digits.yaml --out /tmp/trainyard-none --replicas worker=0,ps=1",
      "--replicas worker=0,ps=1: must be 1 or more; leave out a role without replicas" },
    { "certs --job deploy/examples/digits.yaml --out /tmp/trainyard-none --replicas worker",
      "--replicas worker: must be ROLE=N" },
    { "certs --job deploy/examples/digits.yaml --out /tmp/trainyard-none --days 0", "--days" },
    { "certs --job deploy/examples/digits.yaml --out /tmp/trainyard-none more", "does not take the argument 'more'" },
};
START_TEST(certs_names_the_mistake)
{
    run_bad(certs_command, BAD_CERTS[_i].line, BAD_CERTS[_i].message);
    ck_assert(!file_exists("/tmp/trainyard-none"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("commands");
    TCase *t = tcase_create("commands");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_checkpoint_of_tensorflow_is_listed);
    tcase_add_test(t, a_tensor_is_shown);
    tcase_add_test(t, no_checkpoint_no_list);
    tcase_add_test(t, an_export_leaves_slots_and_counters_out);
    tcase_add_test(t, an_export_that_fails_leaves_nothing);
    tcase_add_test(t, an_export_for_keras);
    tcase_add_test(t, events_are_listed);
    tcase_add_test(t, events_that_a_restart_wrote_again_count_once);
    tcase_add_test(t, manifests_are_judged);
    tcase_add_test(t, a_model_is_shown);
    tcase_add_test(t, a_cluster_is_shown);
    tcase_add_test(t, certs_makes_a_folder_for_each_replica);
    tcase_add_loop_test(t, certs_names_the_mistake, 0, COUNT_OF(BAD_CERTS));
    tcase_add_test(t, help_is_golden);
    suite_add_tcase(s, t);
    return s;
}
