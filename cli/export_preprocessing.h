/* export_preprocessing - the model that `trainyard export --preprocessing` writes: Keras's layers that make numbers of
 * the columns of a csv file, and the trained model, called as a layer. Pure: nothing is read or written.
 */
#ifndef TRAINYARD_CLI_EXPORT_PREPROCESSING_H
#define TRAINYARD_CLI_EXPORT_PREPROCESSING_H

#include "data/column_names.h"
#include "job/job.h"
#include "nn/model.h"

struct preprocessing {
    json_t *json;          /* the description of the whole model, as in config.json; owned */
    char *model_group;     /* of the trained model in model.weights.h5: "layers/functional" */
    struct strlist groups; /* of the other layers, and their names, one for each group */
    struct strlist names;
    json_t *weights; /* for each group a list, the `idf_weights` of its layer, or null; owned */
};
void preprocessing_fini(struct preprocessing *p);
DEFINE_AUTO_FINI(preprocessing, preprocessing_fini);

/* trained: what the run's job.yaml, its checkpoint and its model.json say. names without features: an older
 * trainyard kept none of a file without header. ERR_INPUT for these, for data that are not csv, and for a column that
 * no layer of Keras reads. */
struct trained_on {
    const struct job *job;
    const struct column_names *names;
    const struct model *model;
    const json_t *json; /* of the model */
};
MUST_USE int preprocessing_make(const struct trained_on *trained, struct preprocessing *ret, struct err *e);

#endif
