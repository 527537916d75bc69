/* http_client_internal - transfers and their handles, between http_client.c and http_client_easy.c: nothing else
 * includes <curl/curl.h>. */
#ifndef TRAINYARD_KUBE_HTTP_CLIENT_INTERNAL_H
#define TRAINYARD_KUBE_HTTP_CLIENT_INTERNAL_H

#include <curl/curl.h>

#include "kube/http_client.h"
#include "kube/loop_internal.h"

enum { HTTP_HEADERS_MAX = 8 };

enum http_call_state { QUEUED, RUNNING, OVER };

struct http_call {
    struct http_client *http;
    CURL *easy;
    struct http_call *prev, *next; /* in the list of its state: queued, running or spare */
    struct http_call *next_fresh;
    enum http_call_state state;
    bool fresh;    /* in the list of transfers that have data for on_data */
    bool busy;     /* its on_data is being called */
    bool attached; /* curl has it */
    bool own_tls;  /* its handle has certificates of this transfer alone */
    bool too_large, unpack;
    unsigned set_of_connections, tls_version; /* http_client's at the transfer's start, and when its handle was set */
    struct http_transfer t;                   /* without the borrowed members */
    struct buf head, to, sent, body, warnings;
    struct curl_slist headers[HTTP_HEADERS_MAX], to_list;
    struct timer timer;
    int64_t began_ms, heard_ms;
    char trouble[CURL_ERROR_SIZE];
};

struct http_call_list {
    struct http_call *first, *last;
    size_t n;
};

struct socket_watch {
    struct loop_fd on;
    struct socket_watch *prev, *next;
};

struct http_client {
    struct loop *loop;
    CURLM *multi;
    struct timer timer; /* curl's */
    struct socket_watch *sockets;
    bool http2, insecure;
    unsigned set_of_connections, tls_version; /* tls_version 0: none was given */
    char *ca, *cert, *key, *server_name;
    int at_once;
    struct http_call_list queued, running, spare;
    struct http_call *fresh;
    int64_t heard_ms; /* when the last byte arrived */
    int depth;        /* > 0: callbacks are running */
    bool dead;        /* freed by one of them */
};

/* A handle with the options that all transfers of its http_client share. */
CURL *http_easy_new(struct http_call *c, curl_write_callback on_data, curl_write_callback on_header);
void http_set_tls_of(struct http_call *c);
/* The same with certificates of this transfer. http_set_tls_of() undoes it. */
void http_set_own_tls(struct http_call *c, const struct http_own_tls *tls);
/* The certificate of the server; NULL: none. Borrowed from the handle. */
const char *http_peer_of(const struct http_call *c);
/* Method, URL, headers and body, copied where curl does not. */
void http_set_request(struct http_call *c, const struct http_transfer *t);
/* Reads Retry-After, Date and warnings from the headers of the answer. */
void http_read_headers(struct http_call *c, struct http_answer *ret);

#endif
