/* keras_document - the model in what people call the JSON of a Keras model: model.to_json() of any version, the same
 * text as a JSON string, TensorFlow.js's model.json, and the part `model_config` of files in HDF5.
 */
#ifndef TRAINYARD_NN_KERAS_DOCUMENT_H
#define TRAINYARD_NN_KERAS_DOCUMENT_H

#include "codec/node.h"

/* Moves *n to {"class_name": ..., "config": ...} within it. ERR_INPUT, at its place, for a model that cannot be read:
 * Keras 1's, or a graph of TensorFlow.js. A string is not looked into. *ret_keras_2: Keras 2 wrote it, or a tool
 * that computes like it. */
MUST_USE int keras_document_model(struct node *n, bool *ret_keras_2, struct err *e);

#endif
