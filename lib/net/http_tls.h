/* http_tls - part of http_server.h: TLS 1.3 of an HTTP server with the identity of a replica (identity/tls_dir.h), and
 * who its clients are.
 *
 * Each new connection gets the newest certificate: the folder is looked at once a second at most, and read again when
 * a file has changed. Connections that are open keep theirs. Every client is asked for a certificate; one without is
 * served too, since http_tls_peer() decides for each request. Not thread-safe: all calls come from the server's thread.
 */
#ifndef TRAINYARD_NET_HTTP_TLS_H
#define TRAINYARD_NET_HTTP_TLS_H

#include "identity/identity.h"

/* TLS 1.3 alone; key exchange with P-256 or X25519. For GnuTLS. */
#define HTTP_TLS_PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-SECP256R1:+GROUP-X25519"

struct http_server_tls;
/* Reads the folder: errors are those of tls_dir_read. */
MUST_USE int http_tls_new(const char *tls_dir, struct http_server_tls **ret, struct err *e);
void http_tls_free(struct http_server_tls *t); /* after the last connection was detached */
DEFINE_AUTO(http_server_tls, http_tls_free);

/* The value of MHD_OPTION_HTTPS_CERT_CALLBACK, which a daemon needs: it gives no certificate, so that a session which
 * was not attached fails. */
typedef void http_tls_callback(void);
http_tls_callback *http_tls_no_certificate(void);

/* Gives a GnuTLS session, before its handshake, the newest certificate. Returns what http_tls_detach() takes when the
 * connection is closed, or NULL: the handshake will fail. */
void *http_tls_attach(struct http_server_tls *t, void *session);
void http_tls_detach(void *attached); /* NULL is accepted */

/* The peer of a session after its handshake: it has proved that it is this member of our own job. ERR_REFUSED, with a
 * sentence for the user, otherwise. session NULL: plain HTTP, which proves nothing. */
MUST_USE int http_tls_peer(struct http_server_tls *t, void *session, struct identity *ret, struct err *e);

#endif
