/* http_get - one GET of a small body from a server on this machine, without blocking: the launcher polls the chief's
 * progress between two log lines. Bounded in size (64 KiB) and time. Over TLS where the server has an identity; the
 * connection stays open for the next request, since a handshake takes some milliseconds of CPU time.
 */
#ifndef TRAINYARD_CLI_HTTP_GET_H
#define TRAINYARD_CLI_HTTP_GET_H

#include <poll.h>

#include "base/buf.h"
#include "identity/tls_client.h"

struct http_get {
    int fd;                 /* -1: idle */
    int kept, port;         /* an open connection without a request, or -1; the port of both */
    struct tls_client *tls; /* NULL: plain HTTP */
    bool sent, complete;
    char path[64];
    struct buf answer;
    int64_t deadline;
};
#define HTTP_GET_INIT                                                                                                  \
    {                                                                                                                  \
        .fd = -1, .kept = -1, .answer = BUF_INIT                                                                       \
    }

enum http_get_result { HTTP_GET_PENDING, HTTP_GET_DONE, HTTP_GET_FAILED };

/* TLS: with our own identity, to this member of our job. */
struct http_get_tls {
    const char *dir; /* identity/tls_dir.h */
    int role, index;
};
/* Connects to 127.0.0.1:port; FAILED when no server listens. tls NULL: plain HTTP. An open connection to the port is
 * used again; when the server has closed it, this request fails and the next one connects. */
enum http_get_result http_get_start(struct http_get *g, int port, const struct http_get_tls *tls, const char *path,
                                    int64_t now, int64_t timeout_ms);
/* For poll(2) while PENDING. */
struct pollfd http_get_poll(const struct http_get *g);
/* Call when the descriptor is ready or time has passed. DONE: *ret_body points into g, valid until the next start.
 * DONE only for status 200. */
enum http_get_result http_get_step(struct http_get *g, int64_t now, const char **ret_body, size_t *ret_size);
void http_get_fini(struct http_get *g);
DEFINE_AUTO_FINI(http_get, http_get_fini);

/* The answer has all bytes that its Content-Length promises; false without this header. */
bool http_get_complete(const char *answer, size_t n);
/* Body of a complete HTTP/1.x answer with status 200, or NULL. */
const char *http_get_body(const char *answer, size_t n, size_t *ret_size);

#endif
