/* How many replicas TF_CONFIG can list. */
#include "job/cluster.h"

#include <string.h>

enum {
    FRAME = sizeof("{\"cluster\":{},\"task\":{\"type\":\"evaluator\",\"index\":99999},\"environment\":\"cloud\"}") +
            ROLE_COUNT * sizeof("\"evaluator\":[],")
};

static size_t digits(int i)
{
    size_t n = 1;
    for (; i >= 10; i /= 10)
        n++;
    return n;
}

/* "NAME-ROLE-I.NAME.NS.svc.DOMAIN:65535", without the index. */
static size_t address_bytes(const struct cluster_names *n, enum role r)
{
    size_t job = strlen(n->job), domain = strlen(n->domain);
    return sizeof("\"--..svc:65535\",") - 1 + job + strlen(role_name(r)) + strlen(n->ns) +
           (n->service_per_replica ? 0 : 1 + job) + (domain > 0 ? 1 + domain : 0);
}

char *cluster_too_large(const struct cluster_names *n)
{
    size_t bytes = FRAME, listed = 0, most = 0;

    for (int r = 0; r < ROLE_COUNT; r++) {
        size_t each = address_bytes(n, (enum role)r);
        for (int i = 0; i < n->replicas[r]; i++) {
            bytes += each + digits(i);
            most = bytes <= TF_CONFIG_MAX ? ++listed : most;
            listed += bytes > TF_CONFIG_MAX;
        }
    }
    if (bytes <= TF_CONFIG_MAX)
        return NULL;
    return xasprintf("TF_CONFIG would list %zu replicas in about %zu bytes, but an environment variable is limited to "
                     "%d bytes, which "
                     "is about %zu replicas with these names; use fewer replicas or shorter names",
                     listed, bytes, (int)TF_CONFIG_MAX, most);
}
