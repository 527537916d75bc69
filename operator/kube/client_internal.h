/* client_internal - the client's decisions, with time as a parameter, and its metrics. For this folder and its tests.
 */
#ifndef TRAINYARD_KUBE_CLIENT_INTERNAL_H
#define TRAINYARD_KUBE_CLIENT_INTERNAL_H

#include "kube/client.h"

/* A token bucket: full at first, `burst` at once, `qps` a second from then on. */
struct bucket {
    double qps, burst, tokens;
    int64_t at_ms; /* when `tokens` was right */
};
struct bucket bucket_of(double qps, int burst, int64_t now_ms);
/* 0: a token was taken. Otherwise the milliseconds until the next one is available. */
int64_t bucket_take(struct bucket *b, int64_t now_ms);

/* How many requests may run at once (AIMD, as in TCP's congestion control, RFC 5681). A 429 halves the limit, once for
 * all requests that were sent together; each complete round of answers raises it by one. Otherwise all rejected
 * requests would be retried together, be rejected again and wait longer each time. */
struct concurrency_limit {
    double size;
    int most;
    int64_t cut_ms; /* when it was last reduced */
};
struct concurrency_limit concurrency_limit_of(int most);
int concurrency_limit_now(const struct concurrency_limit *w); /* 1 at least */
/* running: at the time of the answer, this request included. true: the limit was reduced. */
bool concurrency_limit_answer(struct concurrency_limit *w, int status, int running, int64_t began_ms, int64_t now_ms);

/* Which priority is served next: the most urgent one, except for the share of the lower priorities. */
struct priority_shares {
    int running[KUBE_PRIORITIES];
    int passed[KUBE_PRIORITIES]; /* more urgent ones sent while some of this priority waited, since the last of it
                                  */
};
/* waited_ms: of the first request of each priority, -1: none waits. KUBE_PRIORITIES: none may start before a running
 * one has ended. */
enum kube_priority priority_shares_next(const struct priority_shares *s, const int64_t waited_ms[KUBE_PRIORITIES]);
void priority_shares_took(struct priority_shares *s, enum kube_priority u, const int64_t waited_ms[KUBE_PRIORITIES]);

/* Tickets in their order. */
struct ticket_queue {
    struct kube_ticket *first, *last;
};
void ticket_queue_add(struct ticket_queue *l, struct kube_ticket *t, int64_t now_ms, void (*fn)(void *user),
                      void *user);
void ticket_queue_serve(struct ticket_queue *l); /* to the first */

/* Does the client itself retry after this answer? 401 is handled separately, because it concerns the token. */
bool retry_wanted(const struct http_answer *a);
enum { RETRY_AFTER_MAX_S = 60 };
/* Delay before the try after `tries` (from 1): 100 ms, doubled up to 5 s, a quarter more or less by `chance` in [0, 1);
 * at least the server's Retry-After (a minute at most). */
int64_t retry_pause_ms(int tries, double retry_after_s, double chance);

/* "/api/v1/pods" and the like, not "/api/v1/namespaces/x/pods/y"; the query does not matter. */
bool kube_path_is_list(const char *path);

/* rest_client_*: created when first needed. registry NULL: nothing is counted. */
struct client_metrics;
struct client_metrics *client_metrics_new(struct registry *r, const char *server);
void client_metrics_free(struct client_metrics *m);
DEFINE_AUTO(client_metrics, client_metrics_free);
void client_metrics_request(struct client_metrics *m, const char *method, int status);
void client_metrics_duration(struct client_metrics *m, const char *method, int64_t ms);
void client_metrics_waited(struct client_metrics *m, const char *method, int64_t ms);

#endif
