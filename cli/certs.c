/* trainyard certs: identities for replicas that are started by hand on several machines. The folder is complete or
 * absent. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli.h"
#include "local_identity.h"

enum { DAYS_DEFAULT = 30, DAYS_MAX = 3650, DAY_SECONDS = 24 * 3600 };

struct certs {
    const char *job, *out;
    struct strlist replicas;
    int64_t days;
};

static void certs_fini(struct certs *c)
{
    strlist_fini(&c->replicas);
}
DEFINE_AUTO_FINI(certs, certs_fini);

static int parse(struct certs *c, int argc, char **argv, enum opt_result *result, struct err *e)
{
    static const struct opt_program PROGRAM = {
        .name = "trainyard certs",
        .usage = "--job FILE --out DIR [flags]",
        .about =
            "Makes the certificates of a job whose replicas are started by hand on several machines: a certification "
            "authority (CA), and a folder for each replica, such as DIR/worker-0. Copy each folder to the machine of "
            "its replica and give it as --tls-dir. DIR/launcher is for people, for example to read /progress with "
            "curl. The key of the CA is not kept: further replicas need a new set for the whole job.",
        .epilog = "Exit codes: 0 the folders are there; 2 bad input.",
    };
    AUTO_FINI(strlist) args = { 0 };
    const struct opt opts[] = {
        OPT_STR("job", "TRAINYARD_JOB", "FILE", &c->job, "TrainJob manifest, whose replicaSpecs are counted"),
        OPT_LIST("replicas", "ROLE=N,...", &c->replicas,
                 "other numbers of ps, worker, chief or evaluator replicas, such as ps=2,worker=3"),
        OPT_STR("out", NULL, "DIR", &c->out, "folder that is made; it must not exist"),
        OPT_INT("days", NULL, "N", &c->days, 1, DAYS_MAX, "how long the certificates are valid (default: 30)"),
        OPT_END,
    };
    c->days = DAYS_DEFAULT;
    if (opt_parse(&PROGRAM, opts, argc, argv, &args, result, e) < 0)
        return -1;
    if (*result == OPT_DONE)
        return 0;
    if (cli_arguments(&PROGRAM, &args, 0, 0, e) < 0)
        return -1;
    if (c->job == NULL)
        return err_set(e, ERR_INPUT, "Must specify --job FILE (the TrainJob manifest); see trainyard certs --help");
    if (c->out == NULL)
        return err_set(e, ERR_INPUT, "Must specify --out DIR (the folder to make); see trainyard certs --help");
    return 0;
}

/* The manifest with the numbers of --replicas. */
static int load(const struct certs *c, struct job **ret, struct err *e)
{
    AUTO_FINI(strlist) sets = { 0 };
    AUTO(job) *job = NULL;
    int replicas = 0;
    for (size_t i = 0; i < c->replicas.n; i++) {
        size_t k = sets.n;
        if (cli_replicas_to_set(c->replicas.items[i], &sets, e) < 0)
            return -1;
        for (; k < sets.n; k++)
            if (str_ends(sets.items[k], "=0"))
                return err_set(e, ERR_INPUT, "--replicas %s: must be 1 or more; leave out a role without replicas",
                               c->replicas.items[i]);
    }
    if (job_load_with(c->job, &sets, &job, e) < 0)
        return -1;
    for (enum role role = ROLE_PS; role < ROLE_COUNT; role++)
        replicas += job->replicas[role].present ? job->replicas[role].count : 0;
    if (replicas == 0)
        return err_set(e, ERR_INPUT,
                       "%s has no replicas: a training in one process needs no certificates; otherwise give --replicas "
                       "ps=1,worker=2",
                       c->job);
    *ret = TAKE(job);
    return 0;
}

/* Beside the folder, so that it can be renamed. */
static char *temporary_name(const char *out)
{
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        n--;
    return xasprintf("%.*s.tmp.%d", (int)n, out, (int)getpid());
}

static int issue_all(struct local_identity *l, const struct job *job, int64_t now_s, struct err *e)
{
    for (enum role role = ROLE_PS; role < ROLE_COUNT; role++)
        for (int i = 0; job->replicas[role].present && i < job->replicas[role].count; i++)
            if (local_identity_issue(l, (int)role, i, now_s, e) < 0)
                return -1;
    return local_identity_issue(l, IDENTITY_LAUNCHER, 0, now_s, e);
}

static void certs_tell(const struct certs *c, const struct job *job, int64_t now_s)
{
    AUTO_FINI(buf) text = BUF_INIT;
    char until[32];
    buf_printf(&text, "%s: certificates for ", c->out);
    cli_replicas(job, &text);
    buf_printf(&text, ", valid until %s\n", clock_rfc3339((double)(now_s + c->days * DAY_SECONDS), until));
    cli_note(&text);
}

int certs_command(int argc, char **argv, int *ret_exit UNUSED, struct err *e)
{
    AUTO_FINI(certs) c = { .job = NULL };
    AUTO(job) *job = NULL;
    AUTO(local_identity) *identity = NULL;
    enum opt_result result;
    int64_t now_s = (int64_t)clock_wall();

    if (parse(&c, argc, argv, &result, e) < 0)
        return -1;
    if (result == OPT_DONE)
        return 0;
    if (load(&c, &job, e) < 0)
        return -1;
    if (file_exists(c.out))
        return err_set(e, ERR_INPUT,
                       "%s exists; remove it, or give another --out: certificates of two calls do not fit together",
                       c.out);
    auto_free char *temporary = temporary_name(c.out);
    if (local_identity_new(temporary, now_s, c.days * DAY_SECONDS, &identity, e) < 0)
        return -1;
    local_identity_plain(identity);
    if (issue_all(identity, job, now_s, e) < 0 || file_rename(temporary, c.out, e) < 0)
        return -1;
    local_identity_keep(identity);
    certs_tell(&c, job, now_s);
    return 0;
}
