/* replica_options - what ps and worker have in common on their command lines, and how both end.
 *
 *     const struct opt table[] = { OPT_SECTION("Cluster"), REPLICA_CLUSTER_OPTS(&o.common, "ps"), ...,
 *                                  REPLICA_PROCESS_OPTS(&o.common), OPT_END };
 */
#ifndef TRAINYARD_JOB_REPLICA_OPTIONS_H
#define TRAINYARD_JOB_REPLICA_OPTIONS_H

#include "base/log.h"
#include "base/opt.h"
#include "job/cluster.h"

struct replica_options {
    struct cluster_input cluster;  /* --job-name and the others */
    const char *job;               /* file, or NULL */
    const char *listen;            /* gRPC address; NULL: from the cluster spec */
    int64_t http_port, https_port; /* 0: none */
    bool metrics_tls;              /* /metrics on the HTTPS port only */
    const char *tls_dir;           /* the folder of its identity (identity/tls_dir.h), or NULL */
    bool insecure;                 /* no identity: everything travels in plain text */
    const char *termination_log;   /* file, or NULL */
    const char *log_level, *log_format;
    enum log_level level;
    enum log_format format;
};
#define REPLICA_OPTIONS_INIT                                                                                           \
    {                                                                                                                  \
        .log_level = "info", .log_format = "text"                                                                      \
    }

#define REPLICA_CLUSTER_OPTS(o, roles)                                                                                 \
    OPT_STR("job-name", NULL, "ROLE", &(o)->cluster.job_name, roles "; environment JOB_NAME"),                         \
        OPT_STR("task-index", NULL, "N", &(o)->cluster.task_index, "index within the role; environment TASK_INDEX"),   \
        OPT_STR("ps-hosts", NULL, "HOSTS", &(o)->cluster.ps_hosts, "host:port,...; environment PS_HOSTS"),             \
        OPT_STR("worker-hosts", NULL, "HOSTS", &(o)->cluster.worker_hosts, "host:port,...; environment WORKER_HOSTS"), \
        OPT_STR("chief-host", NULL, "HOST", &(o)->cluster.chief_host, "host:port; environment CHIEF_HOST"),            \
        OPT_STR("tls-dir", "TRAINYARD_TLS_DIR", "DIR", &(o)->tls_dir,                                                  \
                "its identity: a folder with ca.crt, tls.crt and tls.key, made by `trainyard certs`"),                 \
        OPT_BOOL_ENV("insecure", "TRAINYARD_INSECURE", &(o)->insecure,                                                 \
                     "no identity: everything travels in plain text, and any process can call this one")

#define REPLICA_PROCESS_OPTS(o)                                                                                        \
    OPT_INT("http-port", "TRAINYARD_HTTP_PORT", "PORT", &(o)->http_port, 0, 65535,                                     \
            "port of /healthz, /readyz and /metrics, in plain text; without an identity also of /progress; 0: none"),  \
        OPT_INT("https-port", "TRAINYARD_HTTPS_PORT", "PORT", &(o)->https_port, 0, 65535,                              \
                "port of /progress, TLS 1.3 for members of the job; needs an identity; 0: none"),                      \
        OPT_BOOL_ENV("metrics-tls", "TRAINYARD_METRICS_TLS", &(o)->metrics_tls, "/metrics on the HTTPS port only"),    \
        OPT_STR("termination-log", "TRAINYARD_TERMINATION_LOG", "FILE", &(o)->termination_log,                         \
                "file for the error, or the chief's final /progress, at the end"),                                     \
        OPT_STR("log-level", "TRAINYARD_LOG_LEVEL", "LEVEL", &(o)->log_level, "debug, info, warning or error"),        \
        OPT_STR("log-format", "TRAINYARD_LOG_FORMAT", "FORMAT", &(o)->log_format, "text or json")

/* After opt_parse: checks that no argument is left, that level and format are known, and that the ports have what they
 * need. `program` is for the message. */
MUST_USE int replica_options_finish(struct replica_options *o, const char *program, const struct strlist *args,
                                    struct err *e);

/* How a replica ends: logs the error once, writes "error: ..." into the termination log, and returns the exit code.
 * A stop by a signal is not an error. e NULL: there is no error. options NULL: they could not be read. */
int replica_end(const struct replica_options *options, const struct err *e);

/* The termination message of a replica (a pod's terminationMessagePath): written in place, without a
 * temporary file. A JSON object that is too long loses its members, the largest first. path NULL: no file is written. A
 * file that cannot be written is a line at level debug. */
enum { TERMINATION_MAX = 4096 };
void termination_write(const char *path, const char *text);
void termination_write_json(const char *path, const char *json);

#endif
