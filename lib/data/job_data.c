/* Opens the data sets of a job and compares them with its model. Errors are reported at the data set's place in the
 * manifest. */
#include "data/job_data.h"

#include "data/files.h"

void job_data_fini(struct job_data *d)
{
    dataset_free(d->train);
    dataset_free(d->validation);
    *d = (struct job_data){ .train = NULL };
}

struct opening {
    const struct model *model;
    const char *base_dir, *cache_dir;
    const struct column_names *like; /* as for dataset_open() */
};

static int open_set(const struct data_spec *spec, const struct opening *at, struct dataset **ret, struct err *e)
{
    AUTO(dataset) *d = NULL;
    struct err cause = { .code = ERR_NONE };
    if (dataset_open(spec, at->base_dir, at->cache_dir, at->like, &d, e) < 0)
        return -1;
    if (at->model != NULL && dataset_bind(d, spec, at->model, &cause) < 0)
        return node_error(&spec->node, e, "%s", cause.msg);
    *ret = TAKE(d);
    return 0;
}

int job_data_split(const struct job *j, struct dataset *d, struct dataset **ret_rest, struct err *e)
{
    struct node n = node_root(j->doc, j->source);
    struct err cause = { .code = ERR_NONE };
    n = node_get(&n, "spec");
    n = node_get(&n, "fit");
    n = node_get(&n, "validationSplit");
    return dataset_split(d, j->fit.validation_split, ret_rest, &cause) < 0 ? node_error(&n, e, "%s", cause.msg) : 0;
}

int job_data_open_train(const struct job *j, const struct model *m, const char *base_dir, const char *cache_dir,
                        struct job_data *ret, struct err *e)
{
    AUTO_FINI(job_data) d = { .train = NULL };
    const struct opening at = { .model = m, .base_dir = base_dir, .cache_dir = cache_dir };
    if (open_set(&j->train, &at, &d.train, e) < 0 ||
        (j->fit.validation_split > 0 && job_data_split(j, d.train, &d.validation, e) < 0))
        return -1;
    ret->space = (struct ordinal_space){ .fingerprint = dataset_fingerprint(d.train),
                                         .seed = j->fit.seed,
                                         .examples = dataset_size(d.train),
                                         .batch_size = j->fit.batch_size,
                                         .shuffle = j->train.shuffle };
    ret->train = TAKE(d.train);
    if (d.validation != NULL)
        ret->validation = TAKE(d.validation);
    return 0;
}

bool job_data_found(const struct job *j, const char *base_dir)
{
    return (j->train.present && data_files_found(&j->train, base_dir)) ||
           (j->validation.present && data_files_found(&j->validation, base_dir));
}

static void add_each(const char *place, const struct strlist *sentences, struct strlist *ret)
{
    for (size_t i = 0; i < sentences->n; i++) {
        auto_free char *text = xasprintf("%s: %s", place, sentences->items[i]);
        strlist_add(ret, text);
    }
}

void job_data_warnings(const struct job *j, const struct job_data *d, struct strlist *ret)
{
    AUTO_FINI(strlist) train = { 0 }, validation = { 0 }, split = { 0 };
    if (d->train != NULL) {
        dataset_warnings(d->train, &train);
        dataset_left_out(d->train, &train);
    }
    if (d->validation != NULL)
        dataset_one_label(d->validation, j->validation.present ? &validation : &split);
    if (d->validation != NULL && j->validation.present) /* else they are those of data.train */
        dataset_left_out(d->validation, &validation);
    add_each("fit.validationSplit", &split, ret);
    add_each("data.train", &train, ret);
    add_each("data.validation", &validation, ret);
}

int job_data_open_validation(const struct job *j, const struct model *m, const char *base_dir, const char *cache_dir,
                             struct job_data *ret, struct err *e)
{
    const struct opening at = { .model = m,
                                .base_dir = base_dir,
                                .cache_dir = cache_dir,
                                .like = ret->train != NULL ? dataset_columns(ret->train) : NULL };
    return j->validation.present ? open_set(&j->validation, &at, &ret->validation, e) : 0;
}
