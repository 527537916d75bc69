/* Compares a job with the run that an output folder holds: manifest by manifest, and data, batch size and seed by
 * the newest checkpoint. Nothing is changed on disk before the answer is known. */
#include "chief/previous_run.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "chief/comparable_spec.h"
#include "chief/output_dir.h"
#include "chief/training_state.h"
#include "data/job_learn.h"

enum { KERAS_INLINE_MAX = 1 << 20 }; /* with room to what a manifest may have */

void previous_run_fini(struct previous_run *r)
{
    free(r->uid);
    rerun_changes_fini(&r->changes);
    *r = (struct previous_run){ 0 };
}

enum rerun previous_run_allowed(const struct job *job)
{
    return job->fit.rebase ? RERUN_REBASE : job->fit.resume ? RERUN_RESUME : RERUN_FREE;
}

/* ---- job.yaml ---- */

#define DATA_DIR_ANNOTATION   "trainyard.dev/data-dir"
#define GROUP_SIZE_ANNOTATION "trainyard.dev/replicas-to-aggregate"

int previous_run_read_job(const char *dir, struct job **ret, struct err *e)
{
    auto_free char *path = output_dir_path(dir, "job.yaml");
    if (file_exists(path))
        return job_load(path, ret, e);
    *ret = NULL;
    return 0;
}

char *previous_run_data_dir(const struct job *job)
{
    const json_t *annotations = json_at(job->doc, "metadata.annotations");
    const char *dir = json_string_value(json_object_get(annotations, DATA_DIR_ANNOTATION));
    return dir != NULL && file_is_dir(dir) ? xstrdup(dir) : NULL;
}

static json_t *make_object(json_t *parent, const char *key)
{
    if (!json_is_object(json_object_get(parent, key)))
        json_object_set_new(parent, key, json_object());
    return json_object_get(parent, key);
}

static void put_annotations(json_t *doc, const char *data_dir, const struct groups *groups)
{
    auto_free char *whole = realpath(data_dir, NULL);
    json_t *annotations = make_object(make_object(doc, "metadata"), "annotations");
    if (whole != NULL)
        json_object_set_new(annotations, DATA_DIR_ANNOTATION, json_string(whole));
    if (groups->size == 0)
        return;
    auto_free char *size = xasprintf("%" PRId64, groups->size);
    json_object_set_new(annotations, GROUP_SIZE_ANNOTATION, json_string(size));
}

static int64_t annotated_group_size(const struct job *job)
{
    const json_t *annotations = json_at(job->doc, "metadata.annotations");
    const char *text = json_string_value(json_object_get(annotations, GROUP_SIZE_ANNOTATION));
    int64_t size;
    return text != NULL && str_i64(text, 1, GROUP_MAX, &size, NULL) == 0 ? size : 0;
}

/* spec.model.kerasFile is of the data folder: the run must be readable without that. */
static json_t *with_inline_keras(const json_t *doc, const char *data_dir)
{
    json_t *copy = json_deep_copy(doc), *model = json_at(copy, "spec.model"), *keras = NULL;
    const char *name = json_string_value(json_object_get(model, "kerasFile"));
    AUTO_FINI(buf) text = BUF_INIT;
    AUTO(source) *source = NULL;
    if (name == NULL)
        return copy;
    auto_free char *path = path_join(data_dir, name);
    if (file_read(path, KERAS_INLINE_MAX, &text, NULL) == 0 &&
        yaml_parse(text.data, text.len, path, &keras, &source, NULL) == 0) {
        json_object_set_new(model, "keras", keras);
        json_object_del(model, "kerasFile");
    }
    return copy;
}

int previous_run_write_job(const char *dir, const struct job *job, const char *data_dir, const struct groups *groups,
                           struct err *e)
{
    auto_free char *path = output_dir_path(dir, "job.yaml");
    AUTO_FINI(buf) text = BUF_INIT, there = BUF_INIT;
    json_auto_t *doc = with_inline_keras(job->doc, data_dir);
    put_annotations(doc, data_dir, groups);
    yaml_emit(doc, &text);
    if (file_read(path, text.len + 1, &there, NULL) == 0 && there.len == text.len &&
        memcmp(there.data, text.data, text.len) == 0)
        return 0;
    return file_write(path, text.data, text.len, e);
}

/* ---- comparison ---- */

static int set_unreadable(const char *dir, const struct err *cause, struct err *e)
{
    return err_set(
        e, ERR_INPUT,
        "%s/job.yaml, the job of the earlier run, cannot be compared: %s; start from scratch with --fresh or in "
        "another output folder",
        dir, cause->msg);
}

/* Weights know a word by its place in the vocabulary: words may be added, but none may move. */
static int same_words(const char *dir, const json_t *was, const json_t *now, struct err *e)
{
    AUTO_FINI(map) of_run = { 0 }, mine = { 0 };
    const struct map_slot *column;
    job_words(was, &of_run);
    job_words(now, &mine);
    for (size_t i = 0; (column = map_next(&of_run, &i)) != NULL;) {
        const json_t *before = column->value, *after = map_get(&mine, column->key);
        for (size_t j = 0; after != NULL && j < json_array_size(before); j++)
            if (!json_equal(json_array_get(before, j), json_array_get(after, j)))
                return err_set(
                    e, ERR_INPUT,
                    "the vocabulary of column '%s' differs from that of the run: list the words of "
                    "%s/job.yaml in the manifest, in their order, and new ones behind them, or start from scratch with "
                    "--fresh",
                    column->key, dir);
    }
    return 0;
}

static int compare_jobs(const char *dir, const struct run_spec *now, struct previous_run *r, struct err *e)
{
    AUTO(job) *was = NULL;
    AUTO(model) *model = NULL;
    struct err cause = { 0 };
    if (previous_run_read_job(dir, &was, &cause) < 0)
        return set_unreadable(dir, &cause, e);
    if (was == NULL || !was->has_model)
        return 0;
    r->group_size = annotated_group_size(was);
    if (same_words(dir, was->doc, now->job->doc, e) < 0)
        return -1;
    if (model_build(&was->model, &was->compile, now->data_dir, &model, &cause) < 0)
        return set_unreadable(dir, &cause, e);
    json_auto_t *from = NULL, *to = NULL;
    comparable_specs(&(struct comparable){ .doc = was->doc, .model = model },
                     &(struct comparable){ .doc = now->job->doc, .model = now->model }, &from, &to);
    rerun_compare(from, to, r->finished, &r->changes);
    return 0;
}

/* ---- what the checkpoint knows ---- */

static bool has_change(const struct rerun_changes *c, const char *path)
{
    for (size_t i = 0; i < c->n; i++)
        if (str_starts(c->items[i].path, path))
            return true;
    return false;
}

static void add_number(struct rerun_changes *c, const char *path, uint64_t was, uint64_t now)
{
    char from[32], to[32];
    if (was == now || has_change(c, path))
        return;
    str_fmt(from, sizeof(from), "%" PRIu64, was);
    str_fmt(to, sizeof(to), "%" PRIu64, now);
    rerun_add(c, path, from, to, RERUN_REBASE);
}

/* The content of the files decides, not what they are called: data that only moved is the same. */
static void add_data(struct rerun_changes *c, const struct ordinal_space *was, const struct ordinal_space *now)
{
    char from[64], to[64];
    bool same = was->fingerprint == now->fingerprint && was->examples == now->examples;
    if (same) {
        rerun_forget(c, "data.train");
        rerun_forget(c, "fit.validationSplit"); /* that many examples are cut off by either */
    }
    if (same && was->shuffle != now->shuffle)
        rerun_add(c, "data.train.shuffle", was->shuffle ? "true" : "false", now->shuffle ? "true" : "false",
                  RERUN_REBASE);
    if (same || has_change(c, "data.train") || has_change(c, "fit.validationSplit"))
        return;
    str_fmt(from, sizeof(from), "%" PRId64 " examples", was->examples);
    str_fmt(to, sizeof(to), "%" PRId64 " examples%s", now->examples,
            was->examples == now->examples ? " with other content" : "");
    rerun_add(c, "data.train", from, to, RERUN_REBASE);
}

static void compare_space(const struct checkpoint *newest, const struct ordinal_space *now, struct rerun_changes *c)
{
    struct node state = checkpoint_training_state(newest);
    struct ordinal_space was;
    if (!training_state_space(&state, &was)) /* not written by Trainyard: refused when it is checked */
        return;
    add_data(c, &was, now);
    add_number(c, "fit.batchSize", (uint64_t)was.batch_size, (uint64_t)now->batch_size);
    add_number(c, "fit.seed", was.seed, now->seed);
}

int previous_run_read(const char *dir, const struct run_spec *now, const struct checkpoint *newest,
                      struct previous_run *ret, struct err *e)
{
    AUTO_FINI(previous_run) r = { 0 };
    if (output_dir_uid(dir, &r.uid, e) < 0)
        return -1;
    int finished = output_dir_finished(dir, r.uid, &r.finished_step, e);
    if (finished < 0)
        return -1;
    r.finished = finished > 0;
    if (compare_jobs(dir, now, &r, e) < 0)
        return -1;
    if (newest != NULL)
        compare_space(newest, now->space, &r.changes);
    *ret = r;
    r = (struct previous_run){ 0 };
    return 0;
}

/* ---- whether the job may continue ---- */

/* Other data may have other examples, and not other columns in the place of the model's inputs. */
static int compare_columns(const struct checkpoint *newest, const struct column_names *now, struct err *e)
{
    AUTO_FINI(column_names) was = { .weight = NULL };
    return checkpoint_columns(newest, &was, e) < 0 ? -1 : column_names_same(&was, now, e);
}

int previous_run_check(const struct run_spec *now, const struct checkpoint *newest, struct rebase *ret_rebase,
                       struct err *e)
{
    const struct ordinal_space *space = now->job->fit.rebase ? NULL : now->space;
    if (checkpoint_check(newest, now->model, now->layout, space, e) < 0)
        return -1;
    if (space == NULL && compare_columns(newest, now->columns, e) < 0)
        return -1;
    if (space == NULL)
        return rebase_plan(newest, now->layout, now->space, ret_rebase, e);
    *ret_rebase = (struct rebase){ 0 };
    return 0;
}

static int group_size_of_run(const struct checkpoint *c, int64_t *ret, struct err *e)
{
    struct node state = checkpoint_training_state(c);
    return node_i64_or(&state, "groupSize", 0, 0, GROUP_MAX, ret, e);
}

static int too_short(const struct run_spec *now, const char *checkpoint, int64_t done, int64_t total, struct err *e)
{
    int64_t batches = ordinal_space_batches(now->space);
    return err_set(e, ERR_INPUT,
                   "%s ends after %" PRId64 " batches of %s, %" PRId64 " (%" PRId64
                   " epochs) are done: set more, or start from scratch with --fresh",
                   now->job->fit.steps > 0 ? "fit.steps" : "fit.epochs", MAX(total, 0), checkpoint, done,
                   done / batches);
}

/* strategy.replicasToAggregate, else that of the run, else the number of workers or threads; 1: asynchronous. */
static int64_t group_size(const struct run_spec *now, int64_t of_run)
{
    const struct job *job = now->job;
    if (job->strategy.updates != UPDATES_SYNC)
        return 1;
    return job->strategy.replicas_to_aggregate > 0 ? job->strategy.replicas_to_aggregate
           : of_run > 0                            ? of_run
                                                   : job_default_group(job, now->workers);
}

/* The run had other groups: the step goes on from where it is, and that must be the end of a group in both. */
static int offset_of_other_groups(const struct checkpoint *newest, const struct ordinal_set *done, struct run_length *l,
                                  struct err *e)
{
    if (done->high > done->low || groups_first(&l->groups, done->low) != done->low)
        return err_set(e, ERR_INPUT,
                       "checkpoint %s is not at the end of a group of %" PRId64
                       " batches (strategy.updates, strategy.replicasToAggregate): finish the run as it began, then "
                       "continue it with more epochs",
                       checkpoint_prefix(newest), l->groups.size);
    l->step_offset = checkpoint_step(newest) - groups_below(&l->groups, done->low);
    return 0;
}

int previous_run_length(const struct run_spec *now, const struct previous_run *was, const struct checkpoint *newest,
                        const struct rebase *rebase, struct run_length *ret, struct err *e)
{
    struct run_length l = { 0 };
    AUTO_FINI(ordinal_set) done = ORDINAL_SET_INIT;
    int64_t of_run = 0;
    if (newest != NULL && group_size_of_run(newest, &of_run, e) < 0)
        return -1;
    l.groups = groups_of(now->space, group_size(now, newest != NULL ? of_run : was->group_size));
    if (newest != NULL && !rebase->on &&
        (rebase_offset(newest, &l.step_offset, e) < 0 || checkpoint_done(newest, now->layout, &done, e) < 0))
        return -1;
    if (rebase->on)
        l.step_offset = rebase->version - groups_below(&l.groups, rebase->low);
    else if (newest != NULL && l.groups.size != MAX(of_run, 1) && offset_of_other_groups(newest, &done, &l, e) < 0)
        return -1;
    l.total = now->job->fit.steps > 0 ? groups_ordinal(&l.groups, MAX(now->job->fit.steps - l.step_offset, 0))
                                      : now->job->fit.epochs * ordinal_space_batches(now->space);
    int64_t count = rebase->on ? rebase->low : ordinal_set_count(&done);
    if (rebase->on ? count >= l.total : count > l.total) /* of new batches there is at least one */
        return too_short(now, checkpoint_prefix(newest), count, l.total, e);
    *ret = l;
    return 0;
}
