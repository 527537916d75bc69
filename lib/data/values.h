/* values - which numbers of a data set may be trained on. They are judged when they are read, so that a wrong number in
 * a file is an error with its place and not a model that diverges. Inside of lib/data: the loader asks for every batch,
 * the data set for what its reader noted when it was opened. Pure.
 */
#ifndef TRAINYARD_DATA_VALUES_H
#define TRAINYARD_DATA_VALUES_H

#include "data/records.h"
#include "nn/model.h"

/* Adds the warning that number i of a record's features, the whole number v, is rounded. */
void values_warn_rounded(const struct records *r, int64_t record, size_t i, double v, struct strlist *ret);
/* Adds a warning when all noted labels are equal. so: what follows from it, such as NOTHING_TO_LEARN, and a cure. */
#define NOTHING_TO_LEARN "there is nothing to learn"
void values_warn_equal(const struct records *r, const char *so, struct strlist *ret);
/* Of a part of the data set, which has other labels elsewhere: first .. first + n at its begin or its end. Cost: at
 * most 1,000 examples are read, of most parts 16. */
void values_warn_part(const struct records *r, int64_t first, int64_t n, const char *so, struct strlist *ret);

/* The labels that may occur: of each number of a row the range of[i] of `range`; of NULL: all have the first. And the
 * features: of each number of a row; NULL: all finite ones. */
struct value_ranges {
    const struct label_range *range;
    const size_t *of;
    const struct index_range *indices;
};
/* Features and labels that read() wrote for the n records `which`. ERR_INPUT with file, record and value when one is
 * NaN or infinite, or not in its range. */
struct batch_values {
    const void *x, *y;
};
MUST_USE int values_check(const struct records *r, const struct value_ranges *ranges, const int64_t *which, size_t n,
                          const struct batch_values *v, struct err *e);
/* The same for the labels that the reader noted. No error when it noted none. */
MUST_USE int values_check_noted(const struct records *r, const struct label_range *labels, struct err *e);
/* Class numbers that are read as floats because one of them does not fit an integer. */
MUST_USE int values_check_class_size(const struct records *r, const struct label_range *labels, struct err *e);

#endif
