/* err - the one error contract of the project.
 *
 * A function that can fail returns int: 0, or the constant -1 with the details in the caller's `struct err` (last
 * argument, may be NULL, untouched on success). Outputs are called ret_x and are written only on success. The constant
 * lets compilers and analyzers see that a checked output was set.
 *
 *     if (count > MAX_PS)
 *         return err_set(e, ERR_INPUT, "%d ps, at most %d", count, MAX_PS);
 *     if (file_read(path, &text, e) < 0)
 *         return err_wrap(e, "job file");          // "job file: mnist.yaml: No such file or directory"
 *
 * The code determines what a caller may do about it and which exit code a program ends with. Library code neither logs
 * above debug nor exits. It returns an err, and main() prints it once.
 */
#ifndef TRAINYARD_BASE_ERR_H
#define TRAINYARD_BASE_ERR_H

#include <stdbool.h>

#define MUST_USE               __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* Exit codes of Trainyard's programs. Those of 128 and more are worth a retry. EXIT_DEADLINE, that of timeout(1), is
 * only the launcher's: no error has it. */
enum { EXIT_INPUT = 2, EXIT_DIVERGED = 3, EXIT_DEADLINE = 124, EXIT_RETRY = 138, EXIT_STOPPED = 143 };

/* X(name, exit code) */
#define ERR_CODES(X)                                                                                                   \
    X(ERR_NONE, 0)                                                                                                     \
    X(ERR_INPUT, EXIT_INPUT)       /* the user must change something; do not retry */                                  \
    X(ERR_DIVERGED, EXIT_DIVERGED) /* NaN or Inf; do not retry */                                                      \
    X(ERR_IO, EXIT_RETRY)          /* storage failed; a retry may help */                                              \
    X(ERR_NOMEM, EXIT_RETRY)                                                                                           \
    X(ERR_LOST, EXIT_RETRY) /* a peer is unreachable, restarted or too slow; retry */                                  \
    X(ERR_TIMEOUT, EXIT_RETRY)                                                                                         \
    X(ERR_FENCED, EXIT_RETRY)    /* a newer process is in charge */                                                    \
    X(ERR_NOT_READY, EXIT_RETRY) /* e.g. a ps before Init or Restore */                                                \
    X(ERR_PENDING, EXIT_RETRY)   /* gradients of other workers are missing; soon */                                    \
    X(ERR_STALE, EXIT_RETRY)     /* the step that is asked for is over */                                              \
    X(ERR_REFUSED, EXIT_INPUT)   /* the peer will never accept this */                                                 \
    X(ERR_NOT_FOUND, EXIT_INPUT)                                                                                       \
    X(ERR_NO_SPACE, EXIT_INPUT)  /* a disk or a quota is full: only the user can make room */                          \
    X(ERR_LIMIT, EXIT_INPUT)     /* no descriptor is free: only the user can raise the limit */                        \
    X(ERR_STOPPED, EXIT_STOPPED) /* by a signal, after saving */                                                       \
    X(ERR_INTERNAL, EXIT_RETRY)  /* a bug in Trainyard */                                                              \
    X(ERR_OUTPUT_CLOSED, 0)      /* whoever reads standard output has enough (| head); not a failure */

enum err_code {
#define X(name, exit_code) name,
    ERR_CODES(X)
#undef X
};

enum { ERR_TEXT_MAX = 1000 };

struct err {
    enum err_code code;
    char msg[ERR_TEXT_MAX]; /* whole sentence without full stop; cut with "..." when too long */
};

/* Writes code and message into *e (when not NULL) and yields -1. */
#define err_set(e, code, ...) (err_put((e), (code), __VA_ARGS__), -1)
/* Same, with ": strerror(errno)" appended. ENOENT becomes ERR_NOT_FOUND. A full disk or quota (ENOSPC, EDQUOT) turns
 * ERR_IO into ERR_NO_SPACE, and a limit of the file size (EFBIG) into ERR_INPUT. A shortage of descriptors (EMFILE,
 * ENFILE) becomes ERR_LIMIT. Every other errno gives the code passed in. A shortage that only the user can end is
 * followed by its cure.
 */
#define err_errno(e, code, ...) (err_put_errno((e), (code), __VA_ARGS__), -1)
/* Puts "context: " before the message, keeps the code, yields -1. */
#define err_wrap(e, ...) (err_prefix((e), __VA_ARGS__), -1)

void err_put(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void err_put_errno(struct err *e, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void err_prefix(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool err_is(const struct err *e, enum err_code code); /* false for NULL */
int err_exit_code(const struct err *e);

#endif
