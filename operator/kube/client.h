/* client - requests to the API server: paths, verbs, retries, rate limit. Independent of the kind of object.
 *
 * Requests are sent at once over one HTTP/2 connection, up to `at_once` of them. A 429 halves that limit; each round of
 * answers raises it by one. All other requests wait in priority queues. Urgent requests are sent first. Lower
 * priorities get a small share, and a larger share once they have waited long. A caller with many requests queues a
 * ticket instead: requests that are not built yet need no memory and contain the newest state when they are sent.
 *
 * A token bucket (qps, burst) limits everything except watches and leases. With qps 0 only the server's API priority
 * and fairness limits requests. The client retries 429 and 503 with Retry-After, and connections that break before an
 * answer, with growing delays, for up to `retry_ms`. Every request here is safe to repeat: creates have a name, deletes
 * a uid, and patches contain the complete values. The caller handles all other answers.
 */
#ifndef TRAINYARD_KUBE_CLIENT_H
#define TRAINYARD_KUBE_CLIENT_H

#include "codec/json.h"
#include "kube/kubeconfig.h"

struct registry;
struct strlist;

/* { "apps", "v1", "deployments", "Deployment" }; group "" is the core */
struct kube_resource {
    const char *group, *version, *plural, *kind;
};
/* Appends "/apis/apps/v1/namespaces/NS/deployments/NAME/SUB"; ns, name, sub may be NULL. Names are escaped. */
void kube_path(struct buf *out, const struct kube_resource *r, const char *ns, const char *name, const char *sub);
/* Appends "?key=value" or "&key=value", escaped. */
void kube_query(struct buf *path, const char *key, const char *value);

enum kube_verb {
    KUBE_GET,
    KUBE_CREATE,          /* POST */
    KUBE_MERGE_PATCH,     /* PATCH application/merge-patch+json */
    KUBE_STRATEGIC_PATCH, /* PATCH application/strategic-merge-patch+json: lists are merged; kinds of Kubernetes only */
    KUBE_JSON_PATCH,      /* PATCH application/json-patch+json: the body is a list of operations */
    KUBE_DELETE,          /* body: DeleteOptions, kube_delete_options() */
    KUBE_UPDATE           /* PUT, only for leases: guarded by their resourceVersion */
};
enum kube_priority {
    KUBE_URGENT, /* leases: without limits */
    KUBE_NORMAL,
    KUBE_LOW,        /* a status that will change again: one of 32 while many normal ones run, one of 4 after 30 s */
    KUBE_BACKGROUND, /* events: one of 64 while others run, one of 16 after 60 s, at most eight at once */
    KUBE_PRIORITIES
};

struct kube_answer {
    int status;            /* HTTP; 0: no answer, and err has the reason */
    json_t *body;          /* borrowed; NULL when it is absent, not JSON, or discarded (discard_body) */
    const char *reason;    /* Status.reason: "AlreadyExists", "NotFound", "Conflict", ...; "" */
    const char *message;   /* for users: Status.message, or the error */
    const struct err *err; /* when status is 0 */
    const char *warnings;  /* of the server, a line each: "unknown field \"spec.x\""; "" */
    double retry_after_s;  /* as the server asks, a minute at most; 0: not given */
};
static inline bool kube_ok(const struct kube_answer *a)
{
    return a->status >= 200 && a->status < 300;
}

struct kube_request {
    enum kube_verb verb;
    enum kube_priority priority;
    const char *path;   /* copied */
    const json_t *body; /* borrowed during the call; NULL: none */
    bool metadata_only; /* the answer as PartialObjectMetadata */
    bool discard_body;  /* done() reads the body of failures only: else it is not parsed (a third of a request's cost)
                         */
    const struct strlist
        *prune;         /* members that done() does not read (codec/json_prune.h), borrowed until then; NULL: none */
    int64_t timeout_ms; /* of one try; 0: 30 s */
    int64_t retry_ms;   /* how long to retry; 0: 60 s; -1: one try */
    void (*done)(void *user, const struct kube_answer *a); /* once, unless cancelled; never from within kube_send */
    void *user;
};

struct kube_settings {
    double qps;             /* 0: no client-side limit */
    int burst, at_once;     /* at_once 0: 64 */
    const char *user_agent; /* "trainyard-operator/0.1.0" */
    const char *field_manager;
    struct registry *registry; /* rest_client_*: may be NULL */
};

struct kube_client;
struct kube_call;
/* Borrows the config. */
struct kube_client *kube_client_new(struct loop *l, struct kubeconfig *c, const struct kube_settings *s);
void kube_client_free(struct kube_client *k); /* cancels all */
DEFINE_AUTO(kube_client, kube_client_free);
struct loop *kube_client_loop(const struct kube_client *k);
/* Milliseconds since 1970 by the API server's clock. */
int64_t kube_client_time(const struct kube_client *k);
const char *kube_client_namespace(const struct kube_client *k);
struct kube_call *kube_send(struct kube_client *k, const struct kube_request *r);
void kube_cancel(struct kube_call *c);             /* NULL is allowed */
size_t kube_call_bytes(const struct kube_call *c); /* of its body */
/* Requests sent or waiting, watches not counted. */
size_t kube_pending(const struct kube_client *k, enum kube_priority priority);

/* A caller's place in the priority queue. It is part of its owner's structure and is zero before its first use. fn is
 * called once, when a request of that priority would be sent at once and none queued earlier still waits. It builds its
 * requests and sends them. */
struct kube_ticket {
    struct kube_ticket *prev, *next;
    struct ticket_queue *line; /* NULL: not queued */
    int64_t since_ms;
    void (*fn)(void *user);
    void *user;
};
/* A ticket that already waits keeps its place. */
void kube_ticket_wait(struct kube_client *k, struct kube_ticket *t, enum kube_priority priority, void (*fn)(void *user),
                      void *user);
void kube_ticket_cancel(struct kube_ticket *t);
/* True if a normal request would be sent at once. */
bool kube_has_room(const struct kube_client *k);

/* A stream of lines for reflectors (kube/reflector.h): GET path, each line one JSON value, without a rate limit. */
struct kube_stream {
    const char *path;
    bool metadata_only;
    int64_t silence_ms;
    bool (*on_line)(void *user, const char *line, size_t n); /* false ends the stream */
    void (*on_end)(void *user, const struct kube_answer *a); /* status 200: it ended normally */
    void *user;
};
struct kube_call *kube_watch(struct kube_client *k, const struct kube_stream *s);

/* New reference:
 * {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background","preconditions":{"uid":..}}; version > 0:
 * only while the object's resourceVersion is that; grace_s < 0: the object's own; uid NULL: whichever has the name. */
json_t *kube_delete_options(const char *uid, int64_t version, int grace_s);

#endif
