/* Three ports in a row for each replica, above those of the kubelet (10250) and below those of services (30000) and of
 * clients (32768). */
#include "build/pod_ports.h"

#include <string.h>

#include "base/rng.h"

enum { FIRST = 20000, PORTS_EACH = 3, PLACES = 3333 /* up to port 29,998 */ };

/* 0 and 1 for chief and evaluator, of which a job has at most one; then ps and workers in turn. */
static int ports_place(enum role r, int index)
{
    if (r == ROLE_CHIEF || r == ROLE_EVALUATOR)
        return r == ROLE_EVALUATOR;
    return 2 + 2 * index + (r == ROLE_WORKER);
}

struct pod_ports pod_ports_of(const struct job_spec *v, enum role r, int index)
{
    if (!v->roles[r].host_ports)
        return (struct pod_ports){ .grpc = v->roles[r].port, .http = HTTP_PORT, .https = HTTPS_PORT };
    uint64_t start = hash64(v->uid, strlen(v->uid), 0) % PLACES;
    int first = FIRST + PORTS_EACH * (int)((start + (uint64_t)ports_place(r, index)) % PLACES);
    return (struct pod_ports){ .grpc = first, .http = first + 1, .https = first + 2 };
}
