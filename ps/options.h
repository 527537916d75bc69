/* options - the flags of trainyard-ps. */
#ifndef TRAINYARD_PS_OPTIONS_H
#define TRAINYARD_PS_OPTIONS_H

#include "job/replica_options.h"

struct options {
    struct replica_options common;
    const char *job_uid; /* "": the first Init decides */
    int64_t threads;     /* 0: by the number of cores */
    bool share;          /* memory with workers of this host */
};

MUST_USE int options_parse(int argc, char **argv, struct options *ret, enum opt_result *ret_result, struct err *e);

#endif
