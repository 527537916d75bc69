/* tfrecord_columns - what the columns of a data set of format tfrecord must be, besides the fields that each may have:
 * those of images and lists, labels, and the weight of examples. Pure.
 */
#ifndef TRAINYARD_JOB_TFRECORD_COLUMNS_H
#define TRAINYARD_JOB_TFRECORD_COLUMNS_H

#include "codec/node.h"
#include "job/job.h"

/* All fields of `d` have been read, and those of each column have their types. ERR_INPUT with the place. */
MUST_USE int tfrecord_columns_check(const struct data_spec *d, struct err *e);

/* The column of `d` is the weight of examples. A number may name it (sampleWeight: "2"), of which lib/data says which
 * column it is. */
MUST_USE int tfrecord_weight_check(const struct data_spec *d, const struct node *column, struct err *e);

#endif
