/* The certificate of a replica: its own items of the job's Secret, mounted read-only, and where they are. Guarantees
 * that no pod mounts the key of another replica. */
#include "build/pod_build.h"

#define TLS_DIR           "/etc/trainyard/tls"
#define INSECURE_VARIABLE "TRAINYARD_INSECURE"

/* The kubelet gives the files to the pod's fsGroup. In a pod without one the user of the image is not known here: then
 * every user of this container may read them. */
static int file_mode(const struct pod_build *p)
{
    return json_has(json_object_get(p->pod_spec, "securityContext"), "fsGroup") ? 0440 : 0444;
}

static json_t *secret_source(const struct pod_build *p, const char *secret)
{
    char certificate[SECRET_KEY_SIZE], key[SECRET_KEY_SIZE];

    return json_pack("{s:{s:s, s:i, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]}}", "secret", "secretName", secret,
                     "defaultMode", file_mode(p), "items", "key", SECRET_CA_KEY, "path", "ca.crt", "key",
                     job_identity_key(p->role, p->index, "crt", certificate), "path", "tls.crt", "key",
                     job_identity_key(p->role, p->index, "key", key), "path", "tls.key");
}

/* A program with both TRAINYARD_TLS_DIR and TRAINYARD_INSECURE would refuse to start: the template's variable counts.
 */
static void put_certificate(struct pod_build *p, const char *secret)
{
    json_auto_t *source = secret_source(p, secret);

    fill_mount(p, "trainyard-identity", TLS_DIR, true, source);
    if (json_find_named(json_object_get(p->container, "env"), INSECURE_VARIABLE) != NULL)
        return;
    fill_env(p->container, "TRAINYARD_TLS_DIR", TLS_DIR);
    if (!p->v->has_model)
        return;
    int https = pod_ports_of(p->v, p->role, p->index).https;
    auto_free char *port = xasprintf("%d", https);
    fill_env(p->container, "TRAINYARD_HTTPS_PORT", port);
    fill_port(p->container, "https", https);
}

void pod_identity(struct pod_build *p, const struct job_identity *identity)
{
    const char *secret = job_identity_secret(identity, p->role, p->index);

    if (secret != NULL)
        put_certificate(p, secret);
    else if (identity->insecure && p->v->has_model &&
             json_find_named(json_object_get(p->container, "env"), "TRAINYARD_TLS_DIR") == NULL)
        fill_env(p->container, INSECURE_VARIABLE, "true");
}
