/* Any text as a kubeconfig, and as the answer of an exec plugin. Nothing is run; files that it names may be opened. */
#include <stdlib.h>
#include <string.h>

#include "kube/kubeconfig_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool names_a_device(const uint8_t *data, size_t size)
{
    return memmem(data, size, "/dev", 4) != NULL || memmem(data, size, "/proc", 5) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *text = xmalloc(size + 1);
    AUTO(kubeconfig) *c = NULL;
    AUTO_FINI(exec_credential) credential = { .token = NULL };
    struct err e = { .code = ERR_NONE };

    if (names_a_device(data, size))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (kubeconfig_parse(text, size, "config", "/nowhere", NULL, &c, &e) == 0) {
        if (c->server == NULL || c->ns == NULL || (c->cert == NULL) != (c->key == NULL))
            abort();
    } else if (e.msg[0] == '\0') {
        abort();
    }
    e.msg[0] = '\0';
    if (exec_credential_parse(text, size, "client.authentication.k8s.io/v1", &credential, &e) < 0 && e.msg[0] == '\0')
        abort();
    return 0;
}
