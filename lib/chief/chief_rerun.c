/* A job that finds an earlier run in its output folder: it continues that run, or is refused before it changes
 * anything.
 */
#include "base/file.h"
#include "chief/chief_internal.h"
#include "chief/output_dir.h"
#include "chief/previous_run.h"

static const char *cure_of(enum rerun need)
{
    if (need == RERUN_RESUME)
        return "set fit.resume: true to continue it, or give this job another output folder";
    if (need == RERUN_REBASE)
        return "set fit.rebase: true to continue it from the next epoch, or give this job another output folder";
    return "it cannot continue that run: give it another output folder";
}

static int refuse_changes(const struct chief *c, const struct previous_run *r, enum rerun allowed, struct err *e)
{
    AUTO_FINI(buf) differs = BUF_INIT;
    const char *uid = c->config.job_uid, *cure = cure_of(rerun_need(&r->changes));
    rerun_text(&r->changes, allowed, &differs);
    if (str_eq(r->uid, uid) || r->uid[0] == '\0')
        return err_set(e, ERR_INPUT, "output folder %s holds %s run of this job (uid %s) with other settings: %s; %s",
                       c->config.output_dir, r->finished ? "a finished" : "a", uid, differs.data, cure);
    return err_set(e, ERR_INPUT, "output folder %s holds %s run of job uid %s; this job, uid %s, differs: %s; %s",
                   c->config.output_dir, r->finished ? "a finished" : "a", r->uid, uid, differs.data, cure);
}

/* Ps of the same job may still run, with batches of the old space applied. */
static int check_life(const struct chief *c, const struct checkpoint *ck, struct err *e)
{
    struct node state = checkpoint_training_state(ck), of = node_get(&state, "jobUid");
    if (c->config.local || !str_eq(json_string_value(of.v), c->config.job_uid))
        return 0;
    return err_set(e, ERR_INPUT,
                   "fit.rebase: the run in %s is of this very job (uid %s), whose %s may still be running: "
                   "stop them all and begin under another uid (TRAINYARD_JOB_UID, or metadata.uid)",
                   c->config.output_dir, c->config.job_uid, c->config.members ? "workers" : "parameter servers");
}

struct run_spec chief_run_spec(const struct chief *c)
{
    const struct chief_config *k = &c->config;
    return (struct run_spec){ .job = k->job,
                              .model = k->model,
                              .layout = k->layout,
                              .space = &k->space,
                              .columns = dataset_columns(k->train),
                              .data_dir = k->data_dir,
                              .workers = k->workers_wanted };
}

int chief_judge_rerun(struct chief *c, const struct checkpoint *ck, struct rebase *ret_rebase, struct err *e)
{
    const struct run_spec now = chief_run_spec(c);
    AUTO_FINI(previous_run) found = { 0 };
    struct rebase rebase = { 0 };
    struct run_length length;
    enum rerun allowed = previous_run_allowed(now.job);
    if (previous_run_read(c->config.output_dir, &now, ck, &found, e) < 0)
        return -1;
    if (rerun_need(&found.changes) > allowed)
        return refuse_changes(c, &found, allowed, e);
    if ((ck != NULL && previous_run_check(&now, ck, &rebase, e) < 0) ||
        previous_run_length(&now, &found, ck, &rebase, &length, e) < 0 || (rebase.on && check_life(c, ck, e) < 0))
        return -1;
    c->reopened = found.finished && found.changes.n > 0 && str_eq(found.uid, c->config.job_uid);
    c->groups = length.groups;
    c->step_offset = length.step_offset;
    c->total = length.total;
    *ret_rebase = rebase;
    return 0;
}

int chief_write_job(struct chief *c, struct err *e)
{
    auto_free char *finished = output_dir_path(c->config.output_dir, "finished");
    if (c->reopened && file_remove(finished, e) < 0)
        return -1;
    const struct groups none = { 0 };
    return previous_run_write_job(c->config.output_dir, c->config.job, c->config.data_dir,
                                  chief_synchronous(c) ? &c->groups : &none, e);
}
