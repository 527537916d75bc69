/* worker_options - the flags of trainyard-worker. */
#ifndef TRAINYARD_WORKER_WORKER_OPTIONS_H
#define TRAINYARD_WORKER_WORKER_OPTIONS_H

#include "job/replica_options.h"

struct worker_options {
    struct replica_options common; /* with a job */
    const char *data_dir, *output_dir, *cache_dir;
    int64_t cache_space; /* bytes */
    bool share;          /* memory with other workers */
};

MUST_USE int worker_options_parse(int argc, char **argv, struct worker_options *ret, enum opt_result *ret_result,
                                  struct err *e);

#endif
