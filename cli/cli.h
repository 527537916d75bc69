/* cli - what the subcommands of `trainyard` share. */
#ifndef TRAINYARD_CLI_CLI_H
#define TRAINYARD_CLI_CLI_H

#include "base/opt.h"
#include "job/job.h"

/* argv[0] is the subcommand's name. *ret_exit is 0 unless the handler sets it; -1: e has the error, which main()
 * prints. */
typedef int command_fn(int argc, char **argv, int *ret_exit, struct err *e);
struct command {
    const char *name;
    command_fn *run;
    const char *help;
};

command_fn run_command, validate_command, show_command, export_command, evaluate_command, predict_command;
command_fn certs_command, wait_command, version_command;
command_fn show_checkpoint_command, show_data_command, show_events_command, show_model_command, show_cluster_command;

/* The row of that name, or ERR_INPUT with a suggestion. `what` is "command", "thing to show". */
MUST_USE int command_find(const struct command *table, size_t n, const char *what, const char *name,
                          const struct command **ret, struct err *e);
void command_list(const struct command *table, size_t n, struct buf *out);
/* --help in the forms of opt_parse(), for a program whose first argument is a name of the table: true when `arg` asked
 * for it. */
struct command_help {
    struct opt_program program;
    const char *title; /* "Commands" */
    const struct command *table;
    size_t n;
};
bool command_help(const struct command_help *h, const char *arg, struct buf *out);

/* ERR_INPUT "trainyard run needs a JOB" unless there are min..max arguments. */
MUST_USE int cli_arguments(const struct opt_program *p, const struct strlist *args, size_t min, size_t max,
                           struct err *e);
/* Writes to standard output and reports a failure (a full disk behind a redirection). ERR_OUTPUT_CLOSED: its
 * reader has ended. SIGPIPE must be ignored. */
MUST_USE int cli_print(const struct buf *text, struct err *e);
/* The same for a command whose product is not on standard output: a failure is a warning, and the exit code stays that
 * of the product. */
void cli_note(const struct buf *text);
/* As a struct tensor_sink has it: the same, and into the struct file_out `user`. */
MUST_USE int cli_write(void *user, const void *data, size_t n, struct err *e);
MUST_USE int cli_write_file(void *user, const void *data, size_t n, struct err *e);

/* 101770 -> "101,770". */
const char *cli_count(uint64_t n, char out[32]);
/* "1 ps, 2 workers, 1 chief", or "single machine". */
void cli_replicas(const struct job *job, struct buf *out);
/* "ps=2,worker=4" -> "replicaSpecs.PS.replicas=2", "replicaSpecs.Worker.replicas=4". */
MUST_USE int cli_replicas_to_set(const char *text, struct strlist *sets, struct err *e);
/* job_learn(), if the job leaves something to its data; what was learned goes to the log. */
MUST_USE int cli_learn(struct job *job, const struct job *run, const char *data_dir, const char *cache_dir,
                       struct err *e);
/* A temporary cache folder for a command that only looks at data: gzip files are decompressed into it. xmalloc'ed; NULL
 * when there cannot be one. And its removal. */
char *cli_cache_new(void);
void cli_cache_remove(const char *path);

#endif
