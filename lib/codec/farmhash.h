/* farmhash - FarmHash Fingerprint64, a hash whose value never changes: that of tf.strings.to_hash_bucket_fast and
 * keras.layers.Hashing without a salt. It does not protect from chosen input. Pure.
 */
#ifndef TRAINYARD_CODEC_FARMHASH_H
#define TRAINYARD_CODEC_FARMHASH_H

#include <stddef.h>
#include <stdint.h>

/* data may be NULL if n is 0. */
uint64_t farmhash_fingerprint64(const void *data, size_t n);

#endif
