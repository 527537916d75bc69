/* dataset_internal - inside of data/dataset.h: what loader.c uses of a dataset. */
#ifndef TRAINYARD_DATA_DATASET_INTERNAL_H
#define TRAINYARD_DATA_DATASET_INTERNAL_H

#include "data/binding.h"
#include "data/dataset.h"
#include "data/read_team.h"
#include "data/row_cache.h"

/* The names by which a data set is read; NULL: it is read in the order of its files. */
const struct column_names *dataset_like(const struct data_spec *spec, const struct column_names *like);
const struct records *dataset_records(const struct dataset *d);
struct read_team *dataset_team(const struct dataset *d); /* NULL: batches are read as a whole */
struct row_cache *dataset_rows(const struct dataset *d); /* NULL: records are read each time */
/* n 0: the whole row of features, or of labels, is the only tensor. */
const struct binding *dataset_inputs(const struct dataset *d);
const struct binding *dataset_outputs(const struct dataset *d);
/* Of each number of a row of features; NULL: any numbers. */
const struct index_range *dataset_indices(const struct dataset *d);
int64_t dataset_first(const struct dataset *d); /* its first example among the records */

#endif
