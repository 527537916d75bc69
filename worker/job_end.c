/* Reads `finished`. Without a uid, job.yaml decides whether the run in the folder is that of this job: a job with other
 * settings is about to continue it, or to begin. */
#include "job_end.h"

#include "base/file.h"
#include "chief/output_dir.h"
#include "chief/previous_run.h"

static bool has_same_settings(const struct replica *r, int64_t *ret_step)
{
    const struct run_spec now = { .job = r->job,
                                  .model = r->model,
                                  .layout = r->layout,
                                  .space = &r->data.space,
                                  .columns = dataset_columns(r->data.train),
                                  .data_dir = r->data_dir };
    AUTO_FINI(previous_run) run = { 0 };
    if (previous_run_read(r->output_dir, &now, NULL, &run, NULL) < 0 || !run.finished || run.changes.n > 0)
        return false;
    *ret_step = run.finished_step;
    return true;
}

bool job_end_reached(struct job_end *j, const char *uid, int64_t *ret_step)
{
    const struct replica *r = j->replica;
    if (uid[0] != '\0')
        return output_dir_finished(r->output_dir, uid, ret_step, NULL) == 1;
    auto_free char *finished = output_dir_path(r->output_dir, "finished");
    if (r->options->output_dir == NULL || j->other || !file_exists(finished))
        return false;
    j->other = !has_same_settings(r, ret_step);
    return !j->other;
}
