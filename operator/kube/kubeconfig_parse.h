/* kubeconfig_parse - parses the text of a kubeconfig. For this folder, its tests and fuzzing. */
#ifndef TRAINYARD_KUBE_KUBECONFIG_PARSE_H
#define TRAINYARD_KUBE_KUBECONFIG_PARSE_H

#include "codec/node.h"
#include "kube/kubeconfig_internal.h"

struct kubeconfig {
    char *server, *ns;
    char *ca, *cert, *key, *server_name; /* PEM texts; NULL: not given */
    bool insecure;
    struct http_tls tls; /* borrows those above */
    unsigned tls_version;
    char *token, *token_file;
    struct exec_spec exec; /* command NULL: no plugin */
    char *exec_info;
    bool asked;                   /* the plugin was run, or the file was read, at asked_ms */
    int64_t asked_ms, expires_ms; /* expires_ms: of the plugin's answer, by clock_ms(); INT64_MAX: never */
    struct err trouble;           /* the last error of the plugin; ERR_NONE: it succeeded */
};

/* name: for messages. folder: the base of relative file names. context NULL: current-context. The token file is not
 * read and the plugin not run. */
MUST_USE int kubeconfig_parse(const char *text, size_t n, const char *name, const char *folder, const char *context,
                              struct kubeconfig **ret, struct err *e);

#endif
