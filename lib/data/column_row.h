/* column_row - the numbers that the values of a record become: its features, its labels and its weight, each at the
 * place of its column. Inside of lib/data, for formats whose records have columns. Pure.
 */
#ifndef TRAINYARD_DATA_COLUMN_ROW_H
#define TRAINYARD_DATA_COLUMN_ROW_H

#include "data/columns.h"
#include "data/text.h"

/* What a record has in a column: a number, which of a category is that of the word and of a date its time; of type text
 * the text. */
struct column_value {
    double number;
    struct text_field text;
};

struct column_row {
    float *x, *y; /* rows of features, and of several labels */
    double label; /* the only one */
    float weight;
    const struct data_column *rounded; /* the first `type: int` feature that a float does not hold; NULL: none */
    double rounded_from;
};
/* The value is one of its column. */
void column_row_put(const struct data_columns *all, const struct data_column *c, const struct column_value *v,
                    struct column_row *row);
/* Number i of a feature or of a label that is a list, of type float or int. */
void column_row_put_number(const struct data_column *c, size_t i, double number, struct column_row *row);

#endif
