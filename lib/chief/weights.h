/* weights - the initial values of a new job, from a file (fit.initialWeights): another run's folder, a TensorFlow
 * checkpoint, safetensors, npz, Keras's .weights.h5 or .keras.
 *
 * Variables are matched by name, "layer/variable". A name in the file may have folders before it and ":0" after it. In
 * Keras's files the name of a layer is an attribute; when no layer of the model has any of these names, or the file has
 * none, layers are matched as Keras does, by class and number. Optimizer slots and counters are never read.
 *
 * The file is not trusted: see data/zip.h, data/named_array.h, tfio/bundle.h.
 */
#ifndef TRAINYARD_CHIEF_WEIGHTS_H
#define TRAINYARD_CHIEF_WEIGHTS_H

#include "base/buf.h"
#include "nn/model.h"

/* Writes the variables that the file has into the parameter vector; the others keep their values. *report gets three
 * lines: what matched, what is only in the model, what is only in the file. ERR_INPUT when nothing matches, or
 * something that matches by name does not fit (shape, type, number of variables, a value that is not finite). On an
 * error the vector may hold some of the values. */
MUST_USE int weights_load(const char *path, const struct model *m, float *vector, struct buf *report, struct err *e);

#endif
