/* open - inside of lib/data: what loader.c sees of a dataset. */
#ifndef TRAINYARD_DATA_OPEN_H
#define TRAINYARD_DATA_OPEN_H

#include "data/dataset.h"
#include "data/records.h"

const struct records *dataset_records(const struct dataset *d);
int64_t dataset_first(const struct dataset *d); /* its first example among the records */

#endif
