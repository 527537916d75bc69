/* csv_learn - what a csv data set leaves to its rows: the words of a column (vocabulary: auto) and their weights, the
 * boundaries of its ranges (numBins of a number), and the value that stands for a missing one (missing: mean or mode).
 * Inside of lib/data. A pass over all rows; the result depends only on them.
 */
#ifndef TRAINYARD_DATA_CSV_LEARN_H
#define TRAINYARD_DATA_CSV_LEARN_H

#include "data/records.h"

enum { TOKENS_COUNTED_MAX = 2000000 }; /* different ones in a column of type text */

struct learned_column {
    char *name;
    bool has_words;
    bool is_text;
    struct strlist words; /* of a category in the order of their bytes; of a text the most frequent first */
    float *weights;       /* tf_idf: of the words; NULL: it has none */
    double *bounds;       /* of the ranges of a number; NULL: it learns none */
    size_t n_bounds;
    size_t others;            /* numbers that are not those of words: of a text's padding, of all other words */
    size_t found;             /* words of the data, as many as maxTokens keeps */
    bool kept;                /* they are those of an earlier run, not of the data */
    const json_t *kept_words; /* as its job lists them, borrowed; NULL: they are those of the data */
    const json_t *kept_weights;
    char *fill; /* as a field of the column; NULL: a missing value is not replaced */
    bool fill_is_number;
    double fill_number;
    enum data_missing how; /* mean or mode */
    int64_t missing;       /* values of the data set that are */
};
struct learned_columns {
    struct learned_column *c;
    size_t n;
};
void learned_columns_fini(struct learned_columns *l);
DEFINE_AUTO_FINI(learned_columns, learned_columns_fini);

/* The columns that ask for it; none: no pass is made. ERR_INPUT with its place for a field that is not a value of its
 * column, a column without any value, or one with more words than VOCABULARY_LEARNED_MAX, or more different tokens than
 * TOKENS_COUNTED_MAX. */
MUST_USE int csv_learn(const struct data_place *at, struct learned_columns *ret, struct err *e);

#endif
