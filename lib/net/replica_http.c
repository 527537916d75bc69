/* Starts the plain and the TLS port of a replica. Responsible for design invariant 8 over HTTP: with an identity, what
 * is more than a probe needs a certificate of the job. */
#include "net/replica_http.h"

#include <string.h>

#include "codec/json.h"
#include "net/address.h"

struct replica_http {
    bool insecure;
    struct http_route progress;      /* without what is added here */
    struct http_server *plain, *tls; /* NULL: not served */
};

void replica_http_free(struct replica_http *h)
{
    if (h == NULL)
        return;
    http_server_free(h->plain);
    http_server_free(h->tls);
    free(h);
}

static int start_server(const char *address, int64_t port, const char *tls_dir, const struct http_route *routes,
                        size_t n, struct http_server **ret, struct err *e)
{
    const char *colon = strrchr(address, ':');
    size_t host = colon != NULL ? (size_t)(colon - address) : strlen(address);
    auto_free char *full = xasprintf("%.*s:%lld", (int)host, address, (long long)port);
    return http_server_start(full, tls_dir, routes, n, ret, e);
}

static int start_plain(struct replica_http *h, const struct replica_options *o, const char *address,
                       const struct replica_pages *p, struct err *e)
{
    struct http_route routes[4] = { http_alive_route(), p->ready };
    size_t n = 2;
    if (o->http_port == 0)
        return 0;
    if (!o->metrics_tls)
        routes[n++] = http_metrics_route(p->registry);
    if (o->tls_dir == NULL)
        routes[n++] = p->progress;
    return start_server(address, o->http_port, NULL, routes, n, &h->plain, e);
}

static int start_tls(struct replica_http *h, const struct replica_options *o, const char *address,
                     const struct replica_pages *p, struct err *e)
{
    struct http_route routes[2] = { p->progress };
    size_t n = 1;
    if (o->https_port == 0)
        return 0;
    if (o->metrics_tls)
        routes[n++] = http_metrics_route(p->registry);
    for (size_t i = 0; i < n; i++)
        routes[i].members = HTTP_ANY_MEMBER;
    return start_server(address, o->https_port, o->tls_dir, routes, n, &h->tls, e);
}

static double is_insecure(void *user)
{
    return ((const struct replica_http *)user)->insecure;
}

/* A replica without an identity says so in each page of its progress. */
static int show_progress(void *user, struct buf *body, const char **content_type)
{
    const struct replica_http *h = user;
    json_auto_t *v = NULL;
    int status = h->progress.handle(h->progress.user, body, content_type);
    if (!h->insecure || status != 200 || json_parse(body->data, body->len, "progress", &v, NULL) < 0)
        return status;
    json_object_set_new(v, "insecure", json_true());
    buf_clear(body);
    json_emit(v, body);
    buf_char(body, '\n');
    return status;
}

static double refused(void *user)
{
    return (double)http_server_refused(user);
}

int replica_http_start(const struct replica_options *o, const char *address, const struct replica_pages *given,
                       struct replica_http **ret, struct err *e)
{
    AUTO(replica_http) *h = xcalloc(1, sizeof(*h));
    struct replica_pages wrapped = *given;
    const struct replica_pages *pages = &wrapped;
    *ret = NULL;
    if (o->http_port == 0 && o->https_port == 0)
        return 0;
    h->insecure = o->insecure;
    h->progress = given->progress;
    wrapped.progress.handle = show_progress;
    wrapped.progress.user = h;
    registry_gauge_fn(pages->registry, "trainyard_insecure",
                      "1: started with --insecure; everything travels in plain text.", NULL, is_insecure, h);
    if (start_tls(h, o, address, pages, e) < 0)
        return -1;
    if (h->tls != NULL)
        registry_counter_fn(pages->registry, "trainyard_http_refused_total",
                            "Requests without a certificate that allows them.", NULL, refused, h->tls);
    if (start_plain(h, o, address, pages, e) < 0)
        return -1;
    *ret = TAKE(h);
    return 0;
}
