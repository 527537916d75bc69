/* new_data - the examples that `trainyard evaluate` and `trainyard predict` read: a data set with the fields of
 * spec.data, or files that replace those of the run's data set. */
#ifndef TRAINYARD_CLI_NEW_DATA_H
#define TRAINYARD_CLI_NEW_DATA_H

#include "data/job_data.h"
#include "nn/model.h"

struct new_data {
    const struct strlist *files; /* idx, npy: one, the features; npz: one; images with labels: one, the directory;
                                  * others: all; "-": standard input. None: the run's own */
    const char *labels;          /* idx, npy: file of labels; npz: name of their array; NULL: none, for npz the run's */
    const char *weights; /* idx, npy: file of the examples' weights; npz: name of their array; NULL: as labels */
    const char *data;    /* a data set as in spec.data ("{format: csv, files: x.csv}"), or NULL */
    bool wants_labels;
    const struct column_names *columns; /* that the run was trained with */
};

enum { DROP_LABEL = 1, DROP_WEIGHT = 2 }; /* columns that are not read */

/* The job with this data set as its validation data. Pure: `doc` of the run, its data set of validation or else of
 * training as the pattern. drop: a set of the above. */
MUST_USE int new_data_job(const json_t *doc, const struct new_data *ask, unsigned drop, json_t **ret, struct err *e);

/* Opens it. Without wants_labels, columns of labels and weights may exist or not. Changes only the cache folder (NULL:
 * none).
 */
MUST_USE int new_data_open(const struct job *run, const struct model *m, const struct new_data *ask,
                           const char *data_dir, const char *cache_dir, struct dataset **ret, struct err *e);

#endif
