/* csv_value - what a field is in its column: a value, a missing one, or neither. Inside of lib/data. Pure.
 */
#ifndef TRAINYARD_DATA_CSV_VALUE_H
#define TRAINYARD_DATA_CSV_VALUE_H

#include "data/csv_cause.h"
#include "data/csv_dialect.h"

enum csv_found { CSV_VALUE, CSV_MISSING, CSV_NO_VALUE };
/* `field` is trimmed. Of a value of any type but text *ret is its number: of a category that of the word, of a date its
 * time. */
enum csv_found csv_value(const struct csv_dialect *d, const struct csv_place *place, const struct text_field *field,
                         double *ret);

/* The same of the number that a field is, in a column of numbers. */
enum csv_found csv_value_number(const struct csv_dialect *d, const struct data_column *c, double v);

#endif
