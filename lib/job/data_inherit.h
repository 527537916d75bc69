/* data_inherit - what data.validation need not say, because data.train says it. Pure.
 */
#ifndef TRAINYARD_JOB_DATA_INHERIT_H
#define TRAINYARD_JOB_DATA_INHERIT_H

#include "codec/json.h"

/* Adds the fields that describe the content of files to `to`, a data set, where it lacks them and `from` has them: all
 * of them if both have one format, and what csv and jsonl share between these two. If only one of them has a header, it
 * adds no names of columns. It does not add which files these are, nor their weights. Values that are no maps are left
 * for the check of the manifest. */
void data_inherit(const json_t *from, json_t *to);

#endif
