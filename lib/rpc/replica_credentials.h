/* replica_credentials - what a replica proves to its peers and requires of them, from its flags. The only place where
 * --tls-dir and --insecure become credentials. */
#ifndef TRAINYARD_RPC_REPLICA_CREDENTIALS_H
#define TRAINYARD_RPC_REPLICA_CREDENTIALS_H

#include "job/replica_options.h"
#include "rpc/rpc.h"

/* The programs log it at the start. */
#define REPLICA_INSECURE_WARNING                                                                                       \
    "--insecure: everything travels in plain text, and any process that reaches a port can read the model or end the " \
    "job"

struct replica_credentials {
    struct rpc_tls *tls; /* owned; NULL: plain text */
    struct rpc_credentials rpc;
};
void replica_credentials_fini(struct replica_credentials *c); /* after all channels and servers */
DEFINE_AUTO_FINI(replica_credentials, replica_credentials_fini);

/* role: that of the replica; ROLE_COUNT: a training without peers, which needs no identity. The task is known when
 * the cluster is configured: then the certificate must have its role and index. ERR_INPUT: neither --tls-dir nor
 * --insecure is given, or both; the certificate is that of another replica; the folder cannot be used (also
 * ERR_NOT_FOUND). */
MUST_USE int replica_credentials_open(const struct replica_options *o, const struct cluster *c, enum role role,
                                      struct replica_credentials *ret, struct err *e);

#endif
