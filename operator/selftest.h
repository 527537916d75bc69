/* selftest - `trainyard-operator selftest`: a small TrainJob, end to end, as `helm test` runs it. */
#ifndef TRAINYARD_OPERATOR_SELFTEST_H
#define TRAINYARD_OPERATOR_SELFTEST_H

/* Creates a job with 1 chief, 1 ps and 1 worker that trains the digits of the trainer image for one epoch, prints its
 * progress until it ends, and deletes it. Exit code 0: it Succeeded; 2: bad flags; 138: it did not. */
int selftest_main(int argc, char **argv);

#endif
