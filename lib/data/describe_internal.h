/* describe_internal - inside of data/describe.h: the columns of csv files. */
#ifndef TRAINYARD_DATA_DESCRIBE_INTERNAL_H
#define TRAINYARD_DATA_DESCRIBE_INTERNAL_H

#include "data/describe.h"

/* Fills in the columns, the rows and the names of the classes. limit: rows; 0: all. */
MUST_USE int describe_csv(const struct describe_options *o, int64_t limit, struct data_description *ret, struct err *e);

#endif
