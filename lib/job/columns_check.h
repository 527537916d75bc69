/* columns_check - what `columns` of a data set may say, before the files are open: the fields of each column and which
 * of them go together. lib/data/columns_spec.c reads them for the data. For lib/job only. Pure.
 */
#ifndef TRAINYARD_JOB_COLUMNS_CHECK_H
#define TRAINYARD_JOB_COLUMNS_CHECK_H

#include "job/job.h"

/* All fields of `d` but its columns have been read. ERR_INPUT with the place. */
MUST_USE int columns_check(const struct data_spec *d, struct err *e);
/* A column whose values are numbered states its encoding when it is a feature, unless the model takes the numbers of
 * categories. ERR_INPUT with the place of the first that does not. */
MUST_USE int columns_check_encodings(const struct data_spec *d, struct err *e);

#endif
