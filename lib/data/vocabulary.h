/* vocabulary - the items of a list of words in a job, as the data have them. Pure.
 */
#ifndef TRAINYARD_DATA_VOCABULARY_H
#define TRAINYARD_DATA_VOCABULARY_H

#include "base/buf.h"
#include "codec/json.h"

/* Replaces what is in `ret`. Numbers and truth values are words as JSON writes them. Words of categories are without
 * the spaces and tabs around them, as fields are; tokens of a text may be spaces. */
void vocabulary_word(const json_t *item, bool is_token, struct buf *ret);
/* How many items Keras's get_vocabulary() has before the words of a text: "" and "[UNK]". */
size_t vocabulary_special(const json_t *words);
/* The weights of a column's numbers, from `idfWeights`, which has one for each item of `words`. With oov the first is
 * that of other words: what the list says of "[UNK]", else the mean, as in Keras. *ret_n of them, to be freed. */
float *vocabulary_weights(const json_t *words, const json_t *weights, bool is_text, bool oov, size_t *ret_n);

#endif
