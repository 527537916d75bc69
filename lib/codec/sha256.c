/* One digest of several ranges, written as hexadecimal digits. */
#include "codec/sha256.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/str.h"

enum { DIGEST = 32 };
_Static_assert(SHA256_TEXT == 2 * DIGEST + 1, "two digits for each byte");

int sha256_ranges(const struct sha256_range *ranges, size_t n, char ret[SHA256_TEXT], struct err *e)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    EVP_MD_CTX *x = EVP_MD_CTX_new();
    bool ok = x != NULL && EVP_DigestInit_ex(x, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; ok && i < n; i++)
        ok = EVP_DigestUpdate(x, ranges[i].data, ranges[i].size) == 1;
    ok = ok && EVP_DigestFinal_ex(x, digest, &size) == 1 && size == DIGEST;
    EVP_MD_CTX_free(x);
    if (!ok)
        return err_set(e, ERR_INTERNAL, "OpenSSL computes no SHA-256 here");
    for (size_t i = 0; i < DIGEST; i++)
        str_fmt(ret + 2 * i, SHA256_TEXT - 2 * i, "%02x", digest[i]);
    return 0;
}

bool sha256_is_text(const char *s)
{
    return s != NULL && strlen(s) == SHA256_TEXT - 1 && strspn(s, "0123456789abcdef") == SHA256_TEXT - 1;
}
