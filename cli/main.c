/* trainyard - the command line: run a job locally, check a manifest, show files. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli.h"
#include "tensor/gemm_core.h"

static const struct command COMMANDS[] = {
    { "run", run_command, "train a job locally: ps, workers and chief as processes" },
    { "validate", validate_command, "check manifests: every field, shape and name, without training" },
    { "certs", certs_command, "make certificates for replicas that are started by hand" },
    { "show", show_command, "show a checkpoint, event files, a model or the cluster" },
    { "export", export_command, "write a trained model for Keras, or its variables as safetensors or npz" },
    { "evaluate", evaluate_command, "loss and metrics of a run's model on other data" },
    { "predict", predict_command, "outputs of a run's model for new examples, as CSV, JSON lines or npy" },
    { "wait", wait_command, "sleep, so that you can kubectl exec into the pod" },
    { "version", version_command, "print the version" },
};

static const struct command_help HELP = {
    .program = { .name = "trainyard",
                 .usage = "COMMAND [flags] [arguments]",
                 .about = "Trains Keras-style models with parameter servers, from one manifest.",
                 .epilog = "`trainyard COMMAND --help` shows details. Exit codes: 0 finished; 2 bad input; 3 training "
                           "diverged;\n124 the job exceeded its deadline; 138 a peer or storage was lost; 143 stopped "
                           "after saving." },
    .title = "Commands",
    .table = COMMANDS,
    .n = COUNT_OF(COMMANDS),
};

int version_command(int argc UNUSED, char **argv UNUSED, int *ret_exit UNUSED, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    buf_printf(&text, "trainyard %s\n", TRAINYARD_VERSION);
    return cli_print(&text, e);
}

static int dispatch(int argc, char **argv, int *ret_exit, struct err *e)
{
    const struct command *command;
    const char *name = argc > 1 ? argv[1] : "";

    AUTO_FINI(buf) help = BUF_INIT;
    *ret_exit = argc < 2 ? 2 : 0;
    if (command_help(&HELP, argc < 2 || str_eq(name, "help") ? "--help" : name, &help))
        return cli_print(&help, e);
    if (str_eq(name, "--version"))
        return version_command(argc, argv, ret_exit, e);
    if (command_find(COMMANDS, COUNT_OF(COMMANDS), "command", name, &command, e) < 0)
        return -1;
    return command->run(argc - 1, argv + 1, ret_exit, e);
}

int main(int argc, char **argv)
{
    struct err e = { 0 };
    int exit_code = 0;

    gemm_core_choose(argv);
    signal(SIGPIPE, SIG_IGN); /* a write then says EPIPE */
    if (dispatch(argc, argv, &exit_code, &e) < 0) {
        if (!err_is(&e, ERR_OUTPUT_CLOSED))
            log_error("%s", e.msg);
        return err_exit_code(&e);
    }
    return exit_code;
}
