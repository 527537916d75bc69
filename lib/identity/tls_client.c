/* A TLS client by OpenSSL. The chain and the name of the peer are checked by certificate_verify() and identity_accept()
 * during the handshake, before anything of ours is sent. */
#include "identity/tls_client.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "identity/tls_dir.h"

struct tls_client {
    SSL *ssl;
    struct tls_dir own;
    int role, index; /* of the peer */
};

void tls_client_free(struct tls_client *c)
{
    if (c == NULL)
        return;
    SSL_free(c->ssl);
    tls_dir_fini(&c->own);
    free(c);
}

/* OpenSSL calls this in place of its own check of the chain. */
static int verify_peer(X509_STORE_CTX *store, void *user)
{
    const struct tls_client *c = user;
    unsigned char *der = NULL;
    struct identity peer;
    struct err e = { .msg = "" };
    int n = i2d_X509(X509_STORE_CTX_get0_cert(store), &der);
    bool ok = n > 0 && certificate_verify(c->own.ca, der, (size_t)n, (int64_t)clock_wall(), &peer, &e) == 0 &&
              identity_accept(&c->own.info.identity, &peer, c->role, c->index, &e) == 0;
    OPENSSL_free(der);
    if (ok)
        return 1;
    log_debug("TLS client: refused the server: %s", e.msg);
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

static bool use_own(SSL *ssl, const struct tls_dir *own)
{
    BIO *certificate = BIO_new_mem_buf(own->certificate, -1), *key = BIO_new_mem_buf(own->key, -1);
    X509 *x = certificate != NULL ? PEM_read_bio_X509(certificate, NULL, NULL, NULL) : NULL;
    EVP_PKEY *k = key != NULL ? PEM_read_bio_PrivateKey(key, NULL, NULL, NULL) : NULL;
    bool ok = x != NULL && k != NULL && SSL_use_certificate(ssl, x) == 1 && SSL_use_PrivateKey(ssl, k) == 1;
    EVP_PKEY_free(k);
    X509_free(x);
    BIO_free(key);
    BIO_free(certificate);
    return ok;
}

static SSL *new_session(struct tls_client *c)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL)
        return NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, verify_peer, c);
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx); /* the session keeps it */
    return ssl;
}

int tls_client_new(const char *tls_dir, int role, int index, int fd, struct tls_client **ret, struct err *e)
{
    AUTO(tls_client) *c = xcalloc(1, sizeof(*c));
    c->role = role;
    c->index = index;
    if (tls_dir_read(tls_dir, (int64_t)clock_wall(), &c->own, e) < 0)
        return -1;
    c->ssl = new_session(c);
    if (c->ssl == NULL || !use_own(c->ssl, &c->own) || SSL_set_fd(c->ssl, fd) != 1) {
        ERR_clear_error();
        return err_set(e, ERR_INTERNAL, "OpenSSL: cannot start a TLS client");
    }
    SSL_set_connect_state(c->ssl);
    *ret = TAKE(c);
    return 0;
}

/* The result of SSL_read or SSL_write in the terms of read(2). */
static ssize_t result(const struct tls_client *c, int n)
{
    int why = SSL_get_error(c->ssl, n);
    if (n > 0)
        return n;
    ERR_clear_error();
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EIO;
    return -1;
}

ssize_t tls_client_read(struct tls_client *c, void *out, size_t n)
{
    ERR_clear_error();
    return result(c, SSL_read(c->ssl, out, (int)MIN(n, (size_t)INT32_MAX)));
}

ssize_t tls_client_write(struct tls_client *c, const void *data, size_t n)
{
    ERR_clear_error();
    ssize_t written = result(c, SSL_write(c->ssl, data, (int)MIN(n, (size_t)INT32_MAX)));
    if (written != 0)
        return written;
    errno = EIO; /* closed by the peer */
    return -1;
}

short tls_client_events(const struct tls_client *c, short events)
{
    return SSL_want_write(c->ssl) ? POLLOUT : SSL_want_read(c->ssl) ? POLLIN : events;
}
