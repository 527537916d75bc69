/* Builds argv and the environment of a replica. Variables of another cluster (TF_CONFIG, JOB_NAME, ...) are not
 * inherited, so a launcher that is started inside a pod does not confuse its replicas. */
#include "command_line.h"

#include <unistd.h>

static const char *const REPLACED[] = { "TF_CONFIG=",
                                        "JOB_NAME=",
                                        "TASK_INDEX=",
                                        "PS_HOSTS=",
                                        "WORKER_HOSTS=",
                                        "CHIEF_HOST=",
                                        "TRAINYARD_JOB_UID=",
                                        "TRAINYARD_TLS_DIR=",
                                        "TRAINYARD_INSECURE=",
                                        "TRAINYARD_HTTPS_PORT=",
                                        "TRAINYARD_METRICS_TLS=" };

static bool is_replaced(const char *variable)
{
    for (size_t i = 0; i < COUNT_OF(REPLACED); i++)
        if (str_starts(variable, REPLACED[i]))
            return true;
    return false;
}

static void end_with_null(struct strlist *l)
{
    strlist_add(l, "");
    free(l->items[--l->n]);
    l->items[l->n] = NULL;
}

void command_arguments(const struct launch *launch, const char *program, const struct replica_endpoint *endpoint,
                       struct strlist *argv)
{
    char port[16];
    str_fmt(port, sizeof(port), "%d", endpoint->http_port);
    const char *const words[] = { program,
                                  "--job",
                                  launch->job_file,
                                  "--data-dir",
                                  launch->data_dir,
                                  "--output-dir",
                                  launch->output_dir,
                                  "--http-port",
                                  port,
                                  "--log-level",
                                  launch->log_level,
                                  "--log-format",
                                  launch->log_format };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        strlist_add(argv, words[i]);
    if (endpoint->tls_dir != NULL) {
        strlist_add(argv, "--tls-dir");
        strlist_add(argv, endpoint->tls_dir);
        str_fmt(port, sizeof(port), "%d", endpoint->https_port);
        strlist_add(argv, "--https-port");
        strlist_add(argv, port);
    }
    if (launch->insecure)
        strlist_add(argv, "--insecure");
    end_with_null(argv);
}

void command_environment(const char *uid, const struct cluster *cluster, enum role role, int index, struct strlist *env)
{
    for (char **v = environ; *v != NULL; v++)
        if (!is_replaced(*v))
            strlist_add(env, *v);
    if (getenv("OPENBLAS_NUM_THREADS") == NULL) /* replicas share the machine: one thread each */
        strlist_add(env, "OPENBLAS_NUM_THREADS=1");
    auto_free char *id = xasprintf("TRAINYARD_JOB_UID=%s", uid);
    strlist_add(env, id);
    if (cluster->configured) {
        auto_free char *config = cluster_to_tf_config(cluster, role, index);
        auto_free char *variable = xasprintf("TF_CONFIG=%s", config);
        strlist_add(env, variable);
    }
    end_with_null(env);
}
