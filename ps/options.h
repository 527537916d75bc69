/* options - the flags of trainyard-ps. */
#ifndef TRAINYARD_PS_OPTIONS_H
#define TRAINYARD_PS_OPTIONS_H

#include "base/log.h"
#include "base/opt.h"
#include "job/cluster.h"

struct options {
    struct cluster_input cluster;  /* --job-name and the others */
    const char *job;               /* file, or NULL */
    const char *job_uid;           /* "": the first Init decides */
    const char *listen;            /* NULL: from the cluster spec */
    int64_t http_port;             /* 0: none */
    int64_t threads;               /* 0: by the number of cores */
    bool share;                    /* memory with workers of this host */
    const char *tls_dir;
    const char *log_level, *log_format;
    enum log_level level;
    enum log_format format;
};

MUST_USE int options_parse(int argc, char **argv, struct options *ret, enum opt_result *ret_result, struct err *e);

#endif
