/* kubeconfig_internal - service accounts and exec plugins. For this folder and its tests. */
#ifndef TRAINYARD_KUBE_KUBECONFIG_INTERNAL_H
#define TRAINYARD_KUBE_KUBECONFIG_INTERNAL_H

#include "base/str.h"
#include "kube/kubeconfig.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

/* The account of a pod: token, ca.crt and namespace in the folder `account`. */
MUST_USE int kubeconfig_in_cluster(const char *account, const char *host, const char *port, struct kubeconfig **ret,
                                   struct err *e);
/* Changes when kubeconfig_tls() has new certificates (an exec plugin gave new ones). */
unsigned kubeconfig_tls_version(const struct kubeconfig *c);

/* exec - credentials from a plugin, as client-go's. Blocks up to limit_ms. */
struct exec_spec { /* owned */
    char *command, *api_version, *folder, *install_hint;
    struct strlist args, env; /* env: "NAME=value" */
    bool cluster_info;        /* provideClusterInfo */
};
void exec_spec_fini(struct exec_spec *s);
struct exec_credential { /* owned; NULL: not given */
    char *token, *cert, *key;
    double expires; /* seconds since the epoch; 0: never */
};
void exec_credential_fini(struct exec_credential *c);
DEFINE_AUTO_FINI(exec_credential, exec_credential_fini);
/* info: the ExecCredential for KUBERNETES_EXEC_INFO. */
MUST_USE int exec_run(const struct exec_spec *s, const char *info, int64_t limit_ms, struct exec_credential *ret,
                      struct err *e);
MUST_USE int exec_credential_parse(const char *text, size_t n, const char *api_version, struct exec_credential *ret,
                                   struct err *e);

#endif
