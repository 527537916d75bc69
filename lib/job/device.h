/* device - `device` of a layer: the ps that holds its variables, by TensorFlow's names. Pure. */
#ifndef TRAINYARD_JOB_DEVICE_H
#define TRAINYARD_JOB_DEVICE_H

#include "codec/node.h"

/* "ps:1", "/job:ps/task:1", also with "/replica:0" before the task and with "/cpu:0" or "/device:CPU:0" at the end.
 * *ret_ps: 1 in these. Placed ERR_INPUT: a GPU, a worker, or no device. */
MUST_USE int device_parse(const struct node *device, int *ret_ps, struct err *e);
/* Placed ERR_INPUT when there is no ps of this index among the nps ones of the job. */
MUST_USE int device_check(const struct node *device, int nps, struct err *e);

#endif
