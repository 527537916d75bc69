/* data_parts - the maps of a data set for a model with several inputs or outputs, such as {wide: age, deep: [age,
 * hours]}: `inputs`, and those of `features`, `label` and `labels`. For lib/job only. Pure.
 */
#ifndef TRAINYARD_JOB_DATA_PARTS_H
#define TRAINYARD_JOB_DATA_PARTS_H

#include "codec/node.h"
#include "job/job.h"

enum { COLUMN_NUMBER_MAX = 32 };
/* A name, or a number, which is written to `text`: of a column, or of a class. */
MUST_USE int data_parts_column(const struct node *n, char text[COLUMN_NUMBER_MAX], const char **ret, struct err *e);
/* lists: a part may be several columns. *ret must be empty, and data_parts_fini() frees it also after an error. The
 * names are borrowed from the document. ERR_INPUT with the place. */
MUST_USE int data_parts_read(struct data_parts *ret, const struct node *map, bool lists, struct err *e);
void data_parts_fini(struct data_parts *p);

#endif
