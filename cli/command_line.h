/* command_line - the arguments and the environment of a replica. */
#ifndef TRAINYARD_CLI_COMMAND_LINE_H
#define TRAINYARD_CLI_COMMAND_LINE_H

#include "job/cluster.h"
#include "launcher.h"

/* Both fill a list whose items end with NULL, as execve(2) requires. */
void command_arguments(const struct launch *launch, const char *program, int http_port, struct strlist *argv);
/* The environment of this process without the variables that describe a cluster, and with those of this cluster (none
 * when it is not configured). */
void command_environment(const char *uid, const struct cluster *cluster, enum role role, int index,
                         struct strlist *env);

#endif
