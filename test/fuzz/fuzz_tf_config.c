/* Any text as TF_CONFIG; what is accepted and complete must read back as the same cluster. */
#include <stdlib.h>
#include <string.h>

#include "job/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_equal(const struct cluster *a, const struct cluster *b)
{
    if (a->role != b->role || a->index != b->index)
        abort();
    for (int r = 0; r < ROLE_COUNT; r++) {
        if (a->hosts[r].n != b->hosts[r].n)
            abort();
        for (size_t i = 0; i < a->hosts[r].n; i++)
            if (!str_eq(a->hosts[r].items[i], b->hosts[r].items[i]))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *text = xstrndup((const char *)data, size);
    struct cluster_input nothing = { .tf_config = NULL }, env = { .tf_config = text };
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(cluster) c = { .configured = false };
    AUTO_FINI(cluster) again = { .configured = false };

    if (cluster_resolve(&nothing, &env, &c, &e) < 0) {
        if (e.msg[0] == '\0')
            abort();
        return 0;
    }
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t i = 0; i < c.hosts[r].n; i++)
            if (c.hosts[r].items[i] == NULL)
                return 0; /* the sparse form leaves out the chief and evaluators */
    if (!c.configured)
        return 0;
    auto_free char *written = cluster_to_tf_config(&c, c.role, c.index);
    env.tf_config = written;
    if (cluster_resolve(&nothing, &env, &again, &e) < 0)
        abort();
    must_be_equal(&c, &again);
    return 0;
}
