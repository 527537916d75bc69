/* GnuTLS, which libmicrohttpd speaks, with the certificates of lib/identity. GnuTLS checks that a client has the key of
 * its certificate; who signed the certificate and whom it names is checked here, for each request, by lib/identity. */
#include "net/http_tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "identity/tls_dir.h"

enum { LOOK_MS = 1000 };

/* One certificate with its key, as long as the server or a connection uses it. */
struct served_certificate {
    gnutls_certificate_credentials_t x509;
    size_t users;
};

struct http_server_tls {
    char *dir, *ca;
    struct identity own;
    struct served_certificate *newest;
    struct tls_dir_stamps stamps;
    int64_t looked_ms;
};

static void release(struct served_certificate *c)
{
    if (c == NULL || --c->users > 0)
        return;
    if (c->x509 != NULL)
        gnutls_certificate_free_credentials(c->x509);
    free(c);
}
DEFINE_AUTO(served_certificate, release);

void http_tls_free(struct http_server_tls *t)
{
    if (t == NULL)
        return;
    release(t->newest);
    free(t->dir);
    free(t->ca);
    free(t);
}

/* ---- the folder ---- */

static gnutls_datum_t datum(char *text)
{
    return (gnutls_datum_t){ .data = (unsigned char *)text, .size = (unsigned)strlen(text) };
}

static int read_certificate(struct http_server_tls *t, struct err *e)
{
    AUTO_FINI(tls_dir) d = { .ca = NULL };
    if (tls_dir_read(t->dir, (int64_t)clock_wall(), &d, e) < 0)
        return -1;
    AUTO(served_certificate) *c = xcalloc(1, sizeof(*c));
    gnutls_datum_t certificate = datum(d.certificate), key = datum(d.key);
    c->users = 1;
    int rc = gnutls_certificate_allocate_credentials(&c->x509);
    if (rc == 0)
        rc = gnutls_certificate_set_x509_key_mem(c->x509, &certificate, &key, GNUTLS_X509_FMT_PEM);
    if (rc < 0)
        return err_set(e, ERR_INPUT, "%s: %s", t->dir, gnutls_strerror(rc));
    release(t->newest);
    t->newest = TAKE(c);
    free(t->ca);
    t->ca = TAKE(d.ca);
    t->own = d.info.identity;
    return 0;
}

/* Reads changed files. What cannot be used is tried again a second later; until then the old certificate is served. */
static void refresh(struct http_server_tls *t)
{
    int64_t now_ms = clock_ms();
    struct err e = { .msg = "" };
    if (now_ms - t->looked_ms < LOOK_MS)
        return;
    t->looked_ms = now_ms;
    struct tls_dir_stamps seen = tls_dir_look(t->dir);
    if (!tls_dir_changed(&t->stamps, &seen))
        return;
    if (read_certificate(t, &e) < 0) {
        log_debug("HTTP server: the old certificate stays in use: %s", e.msg);
        return;
    }
    t->stamps = seen;
    log_debug("HTTP server: a new certificate from %s", t->dir);
}

int http_tls_new(const char *tls_dir, struct http_server_tls **ret, struct err *e)
{
    AUTO(http_server_tls) *t = xcalloc(1, sizeof(*t));
    t->dir = xstrdup(tls_dir);
    t->stamps = tls_dir_look(tls_dir);
    t->looked_ms = clock_ms();
    if (read_certificate(t, e) < 0)
        return -1;
    *ret = TAKE(t);
    return 0;
}

/* ---- connections ---- */

static int give_none(gnutls_session_t session UNUSED, const gnutls_datum_t *authorities UNUSED, int nauthorities UNUSED,
                     const gnutls_pk_algorithm_t *algorithms UNUSED, int nalgorithms UNUSED,
                     gnutls_pcert_st **certificates UNUSED, unsigned *ncertificates UNUSED,
                     gnutls_privkey_t *key UNUSED)
{
    return -1;
}

http_tls_callback *http_tls_no_certificate(void)
{
    return (http_tls_callback *)give_none;
}

void *http_tls_attach(struct http_server_tls *t, void *session)
{
    refresh(t);
    if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->newest->x509) < 0)
        return NULL;
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
    t->newest->users++;
    return t->newest;
}

void http_tls_detach(void *attached)
{
    release(attached);
}

int http_tls_peer(struct http_server_tls *t, void *session, struct identity *ret, struct err *e)
{
    unsigned n = 0;
    const gnutls_datum_t *sent = session != NULL ? gnutls_certificate_get_peers(session, &n) : NULL;
    struct identity peer;
    refresh(t);
    if (sent == NULL || n == 0)
        return err_set(e, ERR_REFUSED,
                       "this page needs a client certificate of the job: tls.crt and tls.key of a folder of "
                       "`trainyard certs` or `trainyard run --tls-dir`");
    if (certificate_verify(t->ca, sent[0].data, sent[0].size, (int64_t)clock_wall(), &peer, e) < 0 ||
        identity_accept(&t->own, &peer, -1, 0, e) < 0)
        return -1;
    *ret = peer;
    return 0;
}
