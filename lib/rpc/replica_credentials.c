/* Checks the identity of a replica before it opens a port: it has one, or --insecure says that it has none, and it is
 * the identity of this task. */
#include "rpc/replica_credentials.h"

void replica_credentials_fini(struct replica_credentials *c)
{
    rpc_tls_free(c->tls);
}

static int check_flags(const struct replica_options *o, bool has_peers, struct err *e)
{
    if (o->tls_dir != NULL && o->insecure)
        return err_set(e, ERR_INPUT,
                       "--tls-dir (%s) and --insecure are mutually exclusive; one of them may come from the variables "
                       "TRAINYARD_TLS_DIR and TRAINYARD_INSECURE",
                       o->tls_dir);
    if (has_peers && o->tls_dir == NULL && !o->insecure)
        return err_set(e, ERR_INPUT,
                       "this replica has no identity: give --tls-dir (`trainyard certs` makes the folders), or "
                       "--insecure to let everything travel in plain text");
    return 0;
}

/* A task without a cluster (a ps with --listen) may have any index. */
static int check_task(const char *tls_dir, const struct identity *own, const struct cluster *c, enum role role,
                      struct err *e)
{
    char name[IDENTITY_NAME_SIZE], task[64];
    if (c->configured && (own->role != (int)c->role || own->index != c->index))
        return err_set(e, ERR_INPUT, "--tls-dir %s: the certificate is that of %s, but this replica is %s", tls_dir,
                       identity_name(own, name), cluster_task_name(c, task));
    if (!c->configured && role != ROLE_COUNT && own->role != (int)role)
        return err_set(e, ERR_INPUT, "--tls-dir %s: the certificate is that of %s, but this replica is a %s", tls_dir,
                       identity_name(own, name), role_name(role));
    return 0;
}

int replica_credentials_open(const struct replica_options *o, const struct cluster *c, enum role role,
                             struct replica_credentials *ret, struct err *e)
{
    AUTO_FINI(replica_credentials) r = { .rpc = RPC_INSECURE };
    if (check_flags(o, role != ROLE_COUNT, e) < 0)
        return -1;
    if (o->tls_dir != NULL) {
        if (rpc_tls_new(o->tls_dir, &r.tls, e) < 0)
            return err_wrap(e, "--tls-dir");
        if (check_task(o->tls_dir, rpc_tls_identity(r.tls), c, role, e) < 0)
            return -1;
        r.rpc = (struct rpc_credentials){ .security = RPC_TLS, .tls = r.tls };
    }
    *ret = r;
    r.tls = NULL;
    return 0;
}
