/* tf_config - inside of job/cluster.h: TF_CONFIG, and what it has in common with the JOB_NAME family. */
#ifndef TRAINYARD_JOB_TF_CONFIG_H
#define TRAINYARD_JOB_TF_CONFIG_H

#include "job/cluster.h"

enum { TASKS_MAX = 100000 }; /* of one role */

/* "host:port" with a port of 1..65535; host a name, an IPv4 or a bracketed IPv6 address. */
MUST_USE int host_check(const char *host, struct err *e);
/* Puts a checked host at the index, with NULL entries before it when there are gaps. */
void hosts_put(struct strlist *l, size_t index, const char *host);

/* Reads TF_CONFIG. An empty object, or one without cluster, configures nothing. The task is not yet checked against
 * the cluster. */
MUST_USE int tf_config_parse(const char *text, struct cluster *ret, struct err *e);

#endif
