/* pod_ports - the ports on which Trainyard's programs listen in a replica's pod. Pure.
 *
 * Pods that use their node's network share its ports. So each replica of such a role has ports of its own, which depend
 * on the job's uid, the role and the index, and not on the number of replicas. Two replicas may still have the same
 * ports, or a port may be used by another program: the scheduler then chooses another node.
 */
#ifndef TRAINYARD_BUILD_POD_PORTS_H
#define TRAINYARD_BUILD_POD_PORTS_H

#include "api/job_spec.h"

enum { HTTP_PORT = 8080, HTTPS_PORT = 8443 };
struct pod_ports {
    int grpc, http, https;
};
struct pod_ports pod_ports_of(const struct job_spec *v, enum role r, int index);

#endif
