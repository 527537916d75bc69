/* subprocess - a child process that ends with this one, and whose output is read line by line. */
#ifndef TRAINYARD_CLI_SUBPROCESS_H
#define TRAINYARD_CLI_SUBPROCESS_H

#include <sys/types.h>

#include "base/str.h"

enum { SUBPROCESS_LINE_MAX = 16 << 10 }; /* longer lines are split */

struct subprocess {
    pid_t pid;       /* 0: not running */
    int out;         /* our end of its stdout and stderr, non-blocking; -1: closed */
    struct buf line; /* the beginning of an incomplete line */
};
#define SUBPROCESS_INIT                                                                                                \
    {                                                                                                                  \
        .out = -1, .line = BUF_INIT                                                                                    \
    }

/* Starts argv[0] (a path) in a new process group, stdin from /dev/null, killed by the kernel when this
 * process dies. argv and env end with NULL. Signal masks and handlers are reset in it. */
MUST_USE int subprocess_start(struct subprocess *c, char *const argv[], char *const env[], struct err *e);
/* Its process group. No-op when not running. */
void subprocess_signal(const struct subprocess *c, int signal);
/* True when it has ended: *ret_code is its exit code or 128 + signal, and the group's other processes are killed. */
bool subprocess_ended(struct subprocess *c, int *ret_code);
/* Reads the available output and calls each(user, line) for every complete line. At its end also for the last
 * incomplete line, and closes the descriptor. Never blocks. */
void subprocess_read(struct subprocess *c, void (*each)(void *user, const char *line), void *user);
void subprocess_fini(struct subprocess *c); /* kills a running process and waits only briefly */

/* Path of a Trainyard program: in $TRAINYARD_BIN_DIR, the folder of this binary, or $PATH. xmalloc'ed. */
MUST_USE int subprocess_find_program(const char *name, char **ret, struct err *e);

#endif
