/* kubeconfig - address and credentials of the API server: a kubeconfig as kubectl reads it, or the service account.
 *
 * Supported fields: clusters {server, certificate-authority[-data], insecure-skip-tls-verify,
 * tls-server-name}, users {client-certificate[-data], client-key[-data], token, tokenFile, exec
 * (client.authentication.k8s.io/v1 and v1beta1, with its env and expiry)}, contexts {cluster, user, namespace}.
 * Unsupported fields (auth-provider, username, proxy-url, impersonation) are an error. Relative file names are relative
 * to the kubeconfig.
 *
 * Credentials that rotate (a token file, an exec plugin's token) are read again by kubeconfig_token(): at most once a
 * minute, or at once after a 401. An exec plugin may block up to 10 s.
 */
#ifndef TRAINYARD_KUBE_KUBECONFIG_H
#define TRAINYARD_KUBE_KUBECONFIG_H

#include "kube/http_client.h"

struct kubeconfig;
/* path NULL: $KUBECONFIG (first file of the list that exists), else ~/.kube/config, else in-cluster
 * (KUBERNETES_SERVICE_HOST and the files of the service account). In a pod without KUBECONFIG: in-cluster first. */
MUST_USE int kubeconfig_load(const char *path, const char *context, struct kubeconfig **ret, struct err *e);
void kubeconfig_free(struct kubeconfig *c);
DEFINE_AUTO(kubeconfig, kubeconfig_free);

const char *kubeconfig_server(const struct kubeconfig *c);    /* "https://10.96.0.1:443", without a trailing slash */
const char *kubeconfig_namespace(const struct kubeconfig *c); /* of the context or the account; "default" */
const struct http_tls *kubeconfig_tls(const struct kubeconfig *c);
/* The bearer token to send now, or NULL (a client certificate is enough). refused: the last one got 401. */
MUST_USE int kubeconfig_token(struct kubeconfig *c, int64_t now_ms, bool refused, const char **ret, struct err *e);

#endif
