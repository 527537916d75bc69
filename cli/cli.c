/* Helpers of the subcommands: find a command by name, check the number of arguments, print results. Errors suggest the
 * nearest name, so that a misspelt command costs one try. */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "data/job_learn.h"

int command_find(const struct command *table, size_t n, const char *what, const char *name, const struct command **ret,
                 struct err *e)
{
    const char *names[32] = { 0 };
    char hint[96];

    for (size_t i = 0; i < n && i < COUNT_OF(names); i++) {
        names[i] = table[i].name;
        if (str_eq(name, table[i].name)) {
            *ret = &table[i];
            return 0;
        }
    }
    return err_set(e, ERR_INPUT, "%s '%.80s' is not known%s", what, name,
                   str_did_you_mean(name, names, MIN(n, COUNT_OF(names)), hint, sizeof(hint)));
}

void command_list(const struct command *table, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "  %-12s%s\n", table[i].name, table[i].help);
}

static void command_man(const struct command_help *h, struct buf *out)
{
    opt_man_head(&h->program, out);
    buf_printf(out, ".SH %s\n", h->title);
    for (size_t i = 0; i < h->n; i++) {
        buf_printf(out, ".TP\n.B %s\n", h->table[i].name);
        opt_man_text(out, h->table[i].help);
        buf_char(out, '\n');
    }
    buf_str(out, ".SH NOTES\n");
    opt_man_text(out, h->program.epilog);
    buf_char(out, '\n');
}

bool command_help(const struct command_help *h, const char *arg, struct buf *out)
{
    if (str_eq(arg, "--help=man")) {
        command_man(h, out);
    } else if (str_eq(arg, "--help=flags")) {
        for (size_t i = 0; i < h->n; i++)
            buf_printf(out, "%s\n", h->table[i].name);
    } else if (str_eq(arg, "--help") || str_eq(arg, "-h")) {
        buf_printf(out, "Usage: %s %s\n\n%s\n\n%s:\n", h->program.name, h->program.usage, h->program.about, h->title);
        command_list(h->table, h->n, out);
        buf_printf(out, "\n%s\n", h->program.epilog);
    } else {
        return false;
    }
    return true;
}

int cli_arguments(const struct opt_program *p, const struct strlist *args, size_t min, size_t max, struct err *e)
{
    if (args->n < min)
        return err_set(e, ERR_INPUT, "%s needs %s; see %s --help", p->name, min == 1 ? "an argument" : "more arguments",
                       p->name);
    if (args->n > max)
        return err_set(e, ERR_INPUT, "%s does not take the argument '%s'; see %s --help", p->name, args->items[max],
                       p->name);
    return 0;
}

int cli_write(void *user UNUSED, const void *data, size_t n, struct err *e)
{
    return file_write_stdout(data, n, e);
}

int cli_write_file(void *user, const void *data, size_t n, struct err *e)
{
    return file_out_write(user, data, n, e);
}

int cli_print(const struct buf *text, struct err *e)
{
    return file_write_stdout(text->data, text->len, e);
}

void cli_note(const struct buf *text)
{
    struct err e = { 0 };
    if (cli_print(text, &e) < 0 && !err_is(&e, ERR_OUTPUT_CLOSED))
        log_warning("the output of this command is lost: %s", e.msg);
}

const char *cli_count(uint64_t n, char out[32])
{
    char digits[24];
    size_t len, at = 0;

    str_fmt(digits, sizeof(digits), "%" PRIu64, n);
    len = strlen(digits);
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

void cli_replicas(const struct job *job, struct buf *out)
{
    bool any = false;
    for (enum role r = ROLE_PS; r < ROLE_COUNT; r++) {
        const struct replica_spec *spec = &job->replicas[r];
        if (!spec->present)
            continue;
        buf_printf(out, "%s%d %s%s", any ? ", " : "", spec->count, role_name(r),
                   spec->count != 1 && r != ROLE_PS ? "s" : "");
        any = true;
    }
    if (!any)
        buf_str(out, "single machine");
    if (job_towers(job) > 0)
        buf_printf(out, ", %s with %d thread%s", strategy_name(job->strategy.name), job_towers(job),
                   job_towers(job) == 1 ? "" : "s");
    if (job->strategy.name == STRATEGY_MULTI_WORKER_MIRRORED)
        buf_printf(out, ", %s", strategy_name(job->strategy.name));
}

static int one_to_set(const char *text, struct strlist *sets, struct err *e)
{
    const char *equals = strchr(text, '=');
    enum role role;
    int64_t count;

    if (equals == NULL)
        return err_set(e, ERR_INPUT, "--replicas %s: must be ROLE=N, such as worker=4", text);
    auto_free char *name = xstrndup(text, (size_t)(equals - text));
    if (role_parse(name, &role, e) < 0 || str_i64(equals + 1, 0, 100000, &count, e) < 0)
        return err_wrap(e, "--replicas %s", text);
    auto_free char *set = xasprintf("replicaSpecs.%s.replicas=%" PRId64, role_key(role), count);
    strlist_add(sets, set);
    return 0;
}

int cli_replicas_to_set(const char *text, struct strlist *sets, struct err *e)
{
    for (;;) {
        size_t n = strcspn(text, ",");
        auto_free char *one = xstrndup(text, n);
        if (one_to_set(one, sets, e) < 0)
            return -1;
        if (text[n] == '\0')
            return 0;
        text += n + 1;
    }
}

int cli_learn(struct job *job, const struct job *run, const char *data_dir, const char *cache_dir, struct err *e)
{
    AUTO_FINI(strlist) notes = { 0 };
    if (job_learns(job) && job_learn(job, run, data_dir, cache_dir, &notes, e) < 0)
        return -1;
    for (size_t i = 0; i < notes.n; i++)
        log_info("learned from data.train: %s", notes.items[i]);
    return 0;
}

char *cli_cache_new(void)
{
    const char *given = getenv("TMPDIR");
    auto_free char *path = xasprintf("%s/trainyard-look.XXXXXX", given != NULL && given[0] != '\0' ? given : "/tmp");
    return mkdtemp(path) != NULL ? TAKE(path) : NULL;
}

void cli_cache_remove(const char *path)
{
    AUTO_FINI(strlist) names = { 0 };
    if (path == NULL || dir_list(path, &names, NULL) < 0)
        return;
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *file = path_join(path, names.items[i]);
        (void)!file_remove(file, NULL);
    }
    rmdir(path);
}
