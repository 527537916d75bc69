/* job_data - the data sets of a job: training data, validation data, and the batches of training.
 * Each is opened and compared with the model; errors have its place in the manifest.
 */
#ifndef TRAINYARD_DATA_JOB_DATA_H
#define TRAINYARD_DATA_JOB_DATA_H

#include "data/dataset.h"
#include "nn/model.h"

struct job_data {
    struct dataset *train, *validation; /* validation NULL: none */
    struct ordinal_space space;         /* of train */
};
void job_data_fini(struct job_data *d);
DEFINE_AUTO_FINI(job_data, job_data_fini);

/* data.train, its space, and with fit.validationSplit both parts of it. */
MUST_USE int job_data_open_train(const struct job *j, const struct model *m, const char *base_dir,
                                 const char *cache_dir, struct job_data *ret, struct err *e);
/* data.validation, when there is one; its columns by the names of ret->train, if that is open. */
MUST_USE int job_data_open_validation(const struct job *j, const struct model *m, const char *base_dir,
                                      const char *cache_dir, struct job_data *ret, struct err *e);

/* The folder has at least one file of the data sets. */
bool job_data_found(const struct job *j, const char *base_dir);

/* Adds what the user should know of the open data sets, each a sentence with its place in the manifest. Cost: that of
 * dataset_warnings(). */
void job_data_warnings(const struct job *j, const struct job_data *d, struct strlist *ret);

/* Applies fit.validationSplit; an error has its place. */
MUST_USE int job_data_split(const struct job *j, struct dataset *d, struct dataset **ret_rest, struct err *e);

#endif
