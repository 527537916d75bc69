/* siphash - SipHash-2-4, a hash with a key: that of tf.strings.to_hash_bucket_strong and keras.layers.Hashing with a
 * salt. Who does not know the key cannot choose words of the same hash. Pure.
 */
#ifndef TRAINYARD_CODEC_SIPHASH_H
#define TRAINYARD_CODEC_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* data may be NULL if n is 0. */
uint64_t siphash(const uint64_t key[2], const void *data, size_t n);

#endif
