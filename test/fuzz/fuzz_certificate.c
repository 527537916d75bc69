/* Any bytes as a certificate of a peer: verified against a CA, which they cannot pass, and read without a signature.
 * What is read must be an identity that is written as one URI. */
#include <stdlib.h>

#include "base/buf.h"
#include "codec/base64.h"
#include "identity/certificate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW = 1700000000 };

static const struct ca *authority(void)
{
    static struct ca *c; /* reachable until the end, so not a leak */
    if (c == NULL && ca_new("local", "u-1", NOW, &c, NULL) < 0)
        abort();
    return c;
}

static void read_as_pem(const uint8_t *data, size_t size)
{
    AUTO_FINI(buf) pem = BUF_INIT;
    struct certificate_info info;
    struct identity again;
    struct err e = { .code = ERR_NONE };
    char uri[IDENTITY_URI_SIZE];
    buf_str(&pem, "-----BEGIN CERTIFICATE-----\n");
    base64_encode(data, size, &pem);
    buf_str(&pem, "\n-----END CERTIFICATE-----\n");
    if (certificate_read(pem.data, &info, &e) < 0) {
        if (e.msg[0] == '\0')
            abort();
        return;
    }
    if (identity_parse(identity_uri(&info.identity, uri), &again, NULL) < 0 ||
        !identity_same_job(&info.identity, &again))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *text = xstrndup((const char *)data, size);
    struct identity i;
    struct err e = { .code = ERR_NONE };
    if (certificate_verify(ca_pem(authority()), data, size, NOW, &i, &e) == 0 || e.code != ERR_REFUSED)
        abort();
    if (certificate_verify(text, data, size, NOW, &i, &e) == 0 && identity_check(&i, NULL) < 0)
        abort();
    read_as_pem(data, size);
    return 0;
}
