/* command_line - the arguments and the environment of a replica. */
#ifndef TRAINYARD_CLI_COMMAND_LINE_H
#define TRAINYARD_CLI_COMMAND_LINE_H

#include "job/cluster.h"
#include "launcher.h"

struct replica_endpoint {
    int http_port, https_port; /* of its pages; 0: none */
    const char *tls_dir;       /* its identity, or NULL */
};
/* Both fill a list whose items end with NULL, as execve(2) requires. */
void command_arguments(const struct launch *launch, const char *program, const struct replica_endpoint *endpoint,
                       struct strlist *argv);
/* The environment of this process without the variables that describe a cluster, and with those of this cluster (none
 * when it is not configured). */
void command_environment(const char *uid, const struct cluster *cluster, enum role role, int index,
                         struct strlist *env);

#endif
