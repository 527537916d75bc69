/* opt - one table for the flags of a program: parsing, environment and --help all use it.
 *
 *     struct opt opts[] = {
 *         OPT_SECTION("Cluster"),
 *         OPT_STR("job-name", "JOB_NAME", "ROLE", &o.job_name, "ps, worker, chief or evaluator"),
 *         OPT_INT("task-index", "TASK_INDEX", "N", &o.task_index, 0, 1 << 20, "index within the role"),
 *         OPT_END };
 *
 * Accepted: --name value, --name=value, -x value, --flag, --no-flag for booleans, underscores in place of hyphens
 * (--job_name), "--" ends flags. A flag wins over its environment variable. Strings point into argv or the environment.
 * Errors name the flag, with a suggestion for a misspelt one. --help (-h) and --version are handled by opt_parse, which
 * then returns OPT_DONE. So are --help=man, a manual page, and --help=flags, a flag a line for a shell's completion.
 */
#ifndef TRAINYARD_BASE_OPT_H
#define TRAINYARD_BASE_OPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

enum opt_kind { OPT_KIND_END, OPT_KIND_SECTION, OPT_KIND_STR, OPT_KIND_LIST, OPT_KIND_INT, OPT_KIND_BOOL };

struct opt {
    enum opt_kind kind;
    char short_name; /* 0: none */
    const char *name, *env, *arg, *help;
    void *dest; /* const char **, struct strlist *, int64_t *, bool * */
    int64_t min, max;
    bool *ret_given; /* optional: set when the user gave it */
};
#define OPT_SECTION(title)                                                                                             \
    {                                                                                                                  \
        .kind = OPT_KIND_SECTION, .name = (title)                                                                      \
    }
#define OPT_STR(n, env_, arg_, dest_, help_)                                                                           \
    {                                                                                                                  \
        .kind = OPT_KIND_STR, .name = (n), .env = (env_), .arg = (arg_), .dest = (dest_), .help = (help_)              \
    }
#define OPT_LIST(n, arg_, dest_, help_)                                                                                \
    {                                                                                                                  \
        .kind = OPT_KIND_LIST, .name = (n), .arg = (arg_), .dest = (dest_), .help = (help_)                            \
    }
#define OPT_INT(n, env_, arg_, dest_, min_, max_, help_)                                                               \
    {                                                                                                                  \
        .kind = OPT_KIND_INT, .name = (n), .env = (env_), .arg = (arg_), .dest = (dest_), .min = (min_),               \
        .max = (max_), .help = (help_)                                                                                 \
    }
#define OPT_BOOL(n, dest_, help_)                                                                                      \
    {                                                                                                                  \
        .kind = OPT_KIND_BOOL, .name = (n), .dest = (dest_), .help = (help_)                                           \
    }
/* The variable's value: true or false. */
#define OPT_BOOL_ENV(n, env_, dest_, help_)                                                                            \
    {                                                                                                                  \
        .kind = OPT_KIND_BOOL, .name = (n), .env = (env_), .dest = (dest_), .help = (help_)                            \
    }
#define OPT_END                                                                                                        \
    {                                                                                                                  \
        .kind = OPT_KIND_END                                                                                           \
    }

struct opt_program {
    const char *name, *usage, *about; /* "trainyard-ps", "[flags]", one or two sentences */
    const char *epilog;               /* text after the flags, or NULL */
};

enum opt_result { OPT_OK, OPT_DONE };
/* Consumes argv; arguments that are not flags go to *ret_args (in order). OPT_DONE: help or version was printed on
 * stdout, and the program should exit with 0. */
MUST_USE int opt_parse(const struct opt_program *p, const struct opt *opts, int argc, char **argv,
                       struct strlist *ret_args, enum opt_result *ret, struct err *e);
void opt_help(const struct opt_program *p, const struct opt *opts, struct buf *out);
/* opt_pages.c: the same as a manual page (roff): all of it; name, synopsis and description; a text within it. */
void opt_man(const struct opt_program *p, const struct opt *opts, struct buf *out);
void opt_man_head(const struct opt_program *p, struct buf *out);
void opt_man_text(struct buf *out, const char *text);
/* A line for each flag, "--name", or "--name=" when it has a value. */
void opt_flags(const struct opt *opts, struct buf *out);

extern const char TRAINYARD_VERSION[]; /* "0.1.0" */

#endif
