/* command_line - with which arguments and in which environment a replica is started. */
#ifndef TRAINYARD_CLI_COMMAND_LINE_H
#define TRAINYARD_CLI_COMMAND_LINE_H

#include "job/cluster.h"
#include "launcher.h"

/* Both fill a list whose items end with NULL, as execve(2) wants them. */
void command_arguments(const struct launch *launch, const char *program, int http_port, struct strlist *argv);
/* Ours without what says who is in a cluster, and with who is in this one (nobody when it is not configured). */
void command_environment(const char *uid, const struct cluster *cluster, enum role role, int index,
                         struct strlist *env);

#endif
