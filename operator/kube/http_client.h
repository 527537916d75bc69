/* http_client - transfers on a loop; only http_client*.c include <curl/curl.h>.
 *
 * One http_client is one set of connections: with `http2` all transfers to a host share one connection. Answers arrive
 * complete (on_done) or, for a watch, in pieces (on_data). Every transfer has a timeout or an idle timeout. When one
 * reaches it and no data arrived over the connections meanwhile, a shared connection is considered dead: all its
 * transfers end with ERR_LOST, and the next one opens a new connection.
 *
 * Errors: ERR_TIMEOUT, ERR_LOST (not connected, or the connection broke: retry), ERR_INPUT (the server's certificate, a
 * longer answer than max_body). Redirects are not followed, and no proxy is used. A header "Accept-Encoding: gzip"
 * allows a compressed answer; on_data and on_done get it decompressed.
 *
 * A transfer may have certificates of its own (http_transfer.tls), for a server that proves a name that is not in its
 * URL. It then has a connection of its own with TLS 1.3, which is closed at its end, and no TLS session is kept: the
 * next process at this address must prove who it is. The server's chain of certificates and their dates are checked
 * during the handshake, before the request is sent. What the certificate says is for on_done to check, before it uses
 * the answer.
 */
#ifndef TRAINYARD_KUBE_HTTP_CLIENT_H
#define TRAINYARD_KUBE_HTTP_CLIENT_H

#include "base/buf.h"
#include "kube/loop.h"

struct http_tls { /* NULL: not given. PEM texts */
    const char *ca, *cert, *key;
    const char *server_name; /* checked in the certificate instead of the URL's host */
    bool insecure;           /* do not check the server */
};

struct http_own_tls { /* of one transfer; all are given. PEM texts, copied */
    const char *ca;   /* one or more; no other authority is trusted, and the name in the URL is not checked */
    const char *cert, *key;
};

struct http_answer {
    int status;       /* 0: no answer, and err has the reason */
    const char *body; /* whole body, ends with a 0 byte; "" when on_data took it */
    size_t len;
    double retry_after_s; /* of the header; 0 when there is none */
    int64_t date_ms;      /* of the header, in whole seconds; 0 when there is none */
    const char *warnings; /* texts of the headers "Warning: 299", a line each; "" when there is none */
    const char *peer;     /* PEM of the server's certificate, with tls of the transfer; NULL: none */
    const struct err *err;
};

struct http_transfer {
    const char *method, *url;
    const char *const *headers; /* "Accept: application/json", ended by NULL; at most 7 */
    const char *body;           /* NULL: none; copied */
    size_t body_len;
    int64_t timeout_ms;             /* whole transfer; 0: no limit (a watch) */
    int64_t silence_ms;             /* the transfer ends after this long without a byte; 0: no limit */
    size_t max_body;                /* a longer answer is an error */
    const struct http_own_tls *tls; /* NULL: the http_client's */
    /* false ends the transfer (status 0, ERR_STOPPED). NULL: the body is collected. Only called for status 200. */
    bool (*on_data)(void *user, const char *data, size_t n);
    void (*on_done)(void *user, const struct http_answer *a); /* once, unless cancelled; may start and cancel others */
    void *user;
};

struct http_client;
struct http_call;
/* tls is copied; NULL: plain HTTP or the system's certificates. at_once: transfers running at one time, others queue;
 * 0: any number. */
struct http_client *http_client_new(struct loop *l, const struct http_tls *tls, bool http2, int at_once);
void http_client_free(struct http_client *h); /* cancels running transfers */
DEFINE_AUTO(http_client, http_client_free);
/* Changes the certificates. Running transfers end with ERR_LOST, and new connections are opened. */
void http_client_set_tls(struct http_client *h, const struct http_tls *tls);
struct http_call *http_client_start(struct http_client *h, const struct http_transfer *t);
void http_client_cancel(struct http_call *c); /* NULL is allowed; on_done is not called */

#endif
