/* tokens - splits a text into tokens, and joins neighbours to n-grams, as Keras's TextVectorization does. Inside of
 * lib/data. Pure.
 *
 *     lower_and_strip_punctuation, whitespace:   "Don't panic, Zoë!"  ->  dont panic zoë
 *
 *     with ngrams [1, 2]:   dont, panic, zoë, dont panic, panic zoë
 *
 * Letters outside of ASCII keep their case, and only ASCII white space separates, as in Keras.
 */
#ifndef TRAINYARD_DATA_TOKENS_H
#define TRAINYARD_DATA_TOKENS_H

#include "data/text.h"
#include "job/job.h"

enum { TOKEN_MAX = VOCABULARY_WORD_MAX }; /* bytes */
#define TOKEN_UNKNOWN "[UNK]" /* stands for all words that are not in the vocabulary, also when a text has it */

struct token_reader {
    const unsigned char *p, *end; /* what is left */
    const unsigned char *first;   /* n-grams: where the text begins */
    size_t which;                 /* of the lengths of n-grams */
    bool doubled;                 /* a quote is two of them, as in a quoted field of csv */
    struct text_form form;
    char token[TOKEN_MAX + 1]; /* the last one */
    bool whole;                /* false: the token was cut or has NUL, so that no vocabulary has it */
};
struct token_reader token_reader(const struct text_field *text, struct text_form form);
/* false: there are no more. */
bool token_next(struct token_reader *r);

#endif
