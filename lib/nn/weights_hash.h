/* weights_hash - one number for the weights of a model: SHA-256 of the values of all variables, the trainable ones and
 * then the others, each group in creation order, as little-endian float32 without gaps. Optimizer slots do not count.
 * Two models have the same hash when all their weights have the same bits. Pure.
 */
#ifndef TRAINYARD_NN_WEIGHTS_HASH_H
#define TRAINYARD_NN_WEIGHTS_HASH_H

#include "codec/sha256.h"
#include "nn/model.h"

/* vector: the parameter vector, model_size floats. Time: about 1 s for 1 to 2 GB. */
MUST_USE int weights_hash(const struct model *m, const float *vector, char ret[SHA256_TEXT], struct err *e);

#endif
