/* Metrics with the names and buckets of client-go, so that dashboards for other controllers also work here. */
#include "kube/client_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "net/registry.h"

enum { METHODS = 5, CODES_MAX = 64 };

static const char *const METHOD_NAMES[METHODS] = { "GET", "POST", "PATCH", "DELETE", "PUT" };
static const double BOUNDS[] = { 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60 };

struct client_metrics {
    struct registry *registry;
    char *host;
    struct {
        int status;
        struct counter *by_method[METHODS];
    } codes[CODES_MAX];
    size_t ncodes;
    struct histogram *duration[METHODS], *waited[METHODS];
};

struct client_metrics *client_metrics_new(struct registry *r, const char *server)
{
    if (r == NULL)
        return NULL;
    struct client_metrics *m = xcalloc(1, sizeof(*m));
    const char *host = strstr(server, "://");
    m->registry = r;
    m->host = xstrdup(host != NULL ? host + strlen("://") : server);
    return m;
}

void client_metrics_free(struct client_metrics *m)
{
    if (m == NULL)
        return;
    free(m->host);
    free(m);
}

static size_t method_index(const char *method)
{
    size_t i = 0;
    while (i < METHODS - 1 && !str_eq(METHOD_NAMES[i], method))
        i++;
    return i;
}

void client_metrics_request(struct client_metrics *m, const char *method, int status)
{
    size_t i = 0, which = method_index(method);
    char code[16];

    if (m == NULL)
        return;
    while (i < m->ncodes && m->codes[i].status != status)
        i++;
    if (i == CODES_MAX)
        return;
    m->ncodes = MAX(m->ncodes, i + 1);
    m->codes[i].status = status;
    struct counter **c = &m->codes[i].by_method[which];
    if (*c == NULL) {
        snprintf(code, sizeof(code), status == 0 ? "<error>" : "%d", status);
        *c = registry_counter(m->registry, "rest_client_requests_total",
                              "Requests to the API server, by code, method and host.",
                              LABELS({ "code", code }, { "method", METHOD_NAMES[which] }, { "host", m->host }));
    }
    counter_add(*c, 1);
}

static void observe(struct client_metrics *m, struct histogram **h, const char *name, const char *help, size_t which,
                    int64_t ms)
{
    if (*h == NULL)
        *h = registry_histogram(m->registry, name, help, LABELS({ "verb", METHOD_NAMES[which] }, { "host", m->host }),
                                BOUNDS, COUNT_OF(BOUNDS));
    histogram_observe(*h, (double)ms / 1000);
}

void client_metrics_duration(struct client_metrics *m, const char *method, int64_t ms)
{
    size_t which = method_index(method);
    if (m != NULL)
        observe(m, &m->duration[which], "rest_client_request_duration_seconds",
                "Time from a request to its whole answer; watches are not among them.", which, ms);
}

void client_metrics_waited(struct client_metrics *m, const char *method, int64_t ms)
{
    size_t which = method_index(method);
    if (m != NULL)
        observe(m, &m->waited[which], "rest_client_rate_limiter_duration_seconds",
                "Time that requests waited for the client's own limit of rate.", which, ms);
}
