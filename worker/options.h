/* options - the flags of trainyard-worker. */
#ifndef TRAINYARD_WORKER_OPTIONS_H
#define TRAINYARD_WORKER_OPTIONS_H

#include "base/log.h"
#include "base/opt.h"
#include "job/cluster.h"

struct options {
    struct cluster_input cluster;  /* --job-name and the others */
    const char *job;               /* file */
    const char *data_dir, *output_dir, *cache_dir;
    const char *listen;            /* gRPC address of the chief, "" = from the cluster spec */
    int64_t http_port;             /* 0: none */
    const char *tls_dir;
    const char *log_level, *log_format;
    enum log_level level;
    enum log_format format;
    bool overlap;
};

MUST_USE int options_parse(int argc, char **argv, struct options *ret, enum opt_result *ret_result, struct err *e);

#endif
