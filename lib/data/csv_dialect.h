/* csv_dialect - how the fields of a csv data set are written: its delimiter, how numbers look, and which texts stand
 * for a missing value. Inside of lib/data. Immutable once made. Pure.
 *
 *     decimal: ","        thousands: "."        naValues: [NA, -999]
 *
 * A text of naValues that is a number stands for every field with that number: -999 also for -999.0.
 */
#ifndef TRAINYARD_DATA_CSV_DIALECT_H
#define TRAINYARD_DATA_CSV_DIALECT_H

#include "base/map.h"
#include "data/text.h"
#include "job/job.h"

struct csv_dialect {
    char delimiter, decimal, thousands; /* thousands NUL: none */
    struct map missing;                 /* the texts that stand for a missing value */
    double *missing_numbers;            /* those of them that are numbers */
    size_t n_missing_numbers;
    bool plain;       /* text_short_number() reads its numbers */
    bool takes_empty; /* an empty field is a value: a text without words */
    size_t
        first_example; /* header: false: the line of the first record of each file, counted from 1; 0: it has names */
};
void csv_dialect_init(struct csv_dialect *d, const struct data_spec *spec);
void csv_dialect_fini(struct csv_dialect *d);

/* A trimmed field that is empty, unless that is a value, or a text of naValues. Its cost is that of a search in a map,
 * so a reader asks after the field was found not to be a value. */
bool csv_dialect_missing(const struct csv_dialect *d, const struct text_field *field);
/* This number stands for a missing value. */
static inline bool csv_dialect_missing_number(const struct csv_dialect *d, double v)
{
    for (size_t i = 0; i < d->n_missing_numbers; i++)
        if (d->missing_numbers[i] == v)
            return true;
    return false;
}

/* Another decimal point than '.', or thousands: the field is rewritten first. */
bool csv_dialect_rewritten_number(const struct csv_dialect *d, const struct text_field *field, double *ret);
/* A whole, finite number in this way of writing. Thousands are groups of three digits (of two before the last one, as
 * in 1,00,000) left of the decimal point. The default way costs no more than text_number(). */
static inline bool csv_dialect_number(const struct csv_dialect *d, const struct text_field *field, double *ret)
{
    bool plain = d->decimal == '.' && d->thousands == '\0';
    return plain ? text_number(field, ret) : csv_dialect_rewritten_number(d, field, ret);
}

/* Of everything here that affects values; 0: nothing differs from the defaults. */
uint64_t csv_dialect_hash(const struct csv_dialect *d, const struct data_spec *spec);

#endif
