/* export_keras - a checkpoint as Keras saves a model: model.weights.h5, and a .keras archive of it with the model's
 * description, which keras.models.load_model() opens. The complete file is built in memory.
 */
#ifndef TRAINYARD_CLI_EXPORT_KERAS_H
#define TRAINYARD_CLI_EXPORT_KERAS_H

#include "tensors.h"
#include "tfio/bundle.h"

/* The description is model.json in the run's folder: next to the prefix's folder `checkpoints`, or next to the prefix.
 */
MUST_USE int keras_weights_write(struct bundle *b, const char *prefix, const struct tensor_sink *sink, struct err *e);
/* preprocessing: of a model that takes the columns of the run's csv data (export_preprocessing.h). The run's job.yaml
 * is next to its model.json. */
MUST_USE int keras_archive_write(struct bundle *b, const char *prefix, bool preprocessing,
                                 const struct tensor_sink *sink, struct err *e);

#endif
