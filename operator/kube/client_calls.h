/* client_calls - the client and its calls, between client.c and client_queue.c. */
#ifndef TRAINYARD_KUBE_CLIENT_CALLS_H
#define TRAINYARD_KUBE_CLIENT_CALLS_H

#include "kube/client_internal.h"
#include "kube/server_time.h"

enum call_state { WAITING, RUNNING, PAUSED, OVER };

struct kube_call {
    struct kube_client *k;
    struct kube_call *prev, *next; /* in the list of its state, or spare */
    enum call_state state;
    enum kube_verb verb;
    enum kube_priority priority;
    bool stream, metadata_only, discard_body, has_body;
    bool busy;             /* its on_line is running, or its token is being requested */
    bool refused, renewed; /* the last try got 401; a new token was requested */
    struct buf url, body, line;
    const struct strlist *prune;
    int64_t timeout_ms, retry_ms, queued_ms, first_ms, began_ms;
    int tries;
    struct timer pause;
    struct http_call *http;
    void (*done)(void *user, const struct kube_answer *a);
    bool (*on_line)(void *user, const char *line, size_t n);
    void *user;
};

struct call_list {
    struct kube_call *first, *last;
};

struct kube_client {
    struct loop *loop;
    struct kubeconfig *config;
    struct http_client *http;
    struct client_metrics *metrics;
    char *manager, *agent;
    struct buf authorization;
    struct bucket bucket;
    struct concurrency_limit concurrency;
    int limited; /* running ones that the limit counts */
    size_t pending[KUBE_PRIORITIES], nspare;
    struct call_list waiting[KUBE_PRIORITIES], running, paused, spare;
    struct ticket_queue tickets[KUBE_PRIORITIES];
    struct priority_shares shares;
    struct server_time time;
    struct timer pump;
    unsigned tls_version;
    int64_t renewed_ms; /* when the token was last requested again */
    uint64_t random;
    int depth; /* > 0: callbacks are running */
    bool dead; /* freed by one of them */
};

/* The next call that may start, or NULL with the time until one may (0: when a running call ends). Serves tickets
 * meanwhile. */
struct kube_call *client_next(struct kube_client *k, int64_t now_ms, int64_t *ret_wait);
/* Starts waiting calls in the next round of the loop. */
void client_pump_soon(struct kube_client *k);

#endif
