/* image_spec - the fields of a data set of format images or text that a row of the table cannot express. For lib/job
 * only. Pure.
 */
#ifndef TRAINYARD_JOB_IMAGE_SPEC_H
#define TRAINYARD_JOB_IMAGE_SPEC_H

#include "codec/node.h"
#include "job/job.h"

/* imageSize and classNames, and checks of directory, files and label; all other fields have been read. ERR_INPUT with
 * the place. */
MUST_USE int image_spec_read(struct data_spec *d, const struct node *n, struct err *e);

#endif
