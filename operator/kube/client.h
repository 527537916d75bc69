/* client - requests to the API server: paths, verbs, retries, rate limit. Knows no particular kind of object.
 *
 * Requests go out at once, many over one HTTP/2 connection, up to `at_once`; a server that has no room (429) halves
 * that, and each round of answers gives one back. The rest waits: urgent ones go first, those that can wait get a small
 * share of what goes out while others are under way, a larger one once they have waited long. Who has much to send
 * takes a turn instead of sending: what waits then costs no memory, and says the newest. A token bucket (qps, burst;
 * qps 0: none, the server's own API priority and fairness decides) counts everything but watches and leases. 429 and
 * 503 with Retry-After, and connections that break before an answer, are tried again by the client with growing pauses
 * for `retry_ms`, since every request here is safe to repeat: creates have a name, deletes a uid, patches say the whole
 * truth. Everything else is the caller's to judge.
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
    KUBE_DELETE,          /* body: DeleteOptions, kube_delete_options() */
    KUBE_UPDATE           /* PUT, only for leases: guarded by their resourceVersion */
};
enum kube_priority {
    KUBE_URGENT, /* leases: without limits */
    KUBE_NORMAL,
    KUBE_LOW,        /* a status that others will follow: one of 32 while many normal ones run, one of 4 after 30 s */
    KUBE_BACKGROUND, /* events: one of 64 while others run, one of 16 after 60 s, at most eight at once */
    KUBE_PRIORITIES
};

struct kube_answer {
    int status; /* HTTP; 0: none came, and err says why */
    json_t
        *body; /* borrowed; NULL when there was none, it was no JSON, or the request is `discard_body` and went well */
    const char *reason;    /* Status.reason: "AlreadyExists", "NotFound", "Conflict", ...; "" */
    const char *message;   /* for people: Status.message, or what went wrong */
    const struct err *err; /* when status is 0 */
    const char *warnings;  /* of the server, a line each: "unknown field \"spec.x\""; "" */
    double retry_after_s;  /* what the server asks for, a minute at most; 0: nothing */
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
    bool discard_body; /* done() looks at the body of failures only: else it is not parsed (a third of a request's cost)
                        */
    const struct strlist
        *prune;         /* members done() does not look at (codec/json_prune.h), borrowed until then; NULL: none */
    int64_t timeout_ms; /* of one try; 0: 30 s */
    int64_t retry_ms;   /* how long to go on trying; 0: 60 s; -1: one try */
    void (*done)(void *user, const struct kube_answer *a); /* once, unless cancelled; never from within kube_send */
    void *user;
};

struct kube_settings {
    double qps;             /* 0: no limit of ours */
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
void kube_cancel(struct kube_call *c);             /* NULL is fine */
size_t kube_call_bytes(const struct kube_call *c); /* of its body */
/* Requests sent or waiting, watches not counted. */
size_t kube_pending(const struct kube_client *k, enum kube_priority priority);

/* A place in the line of those who have something to send. It lives in its owner's structure and is zero before its
 * first use. When a request of that priority would go out at once, and none waits that was sent before, fn is called,
 * once: it makes up its requests and sends them. */
struct kube_ticket {
    struct kube_ticket *prev, *next;
    struct ticket_queue *line; /* NULL: it does not wait */
    int64_t since_ms;
    void (*fn)(void *user);
    void *user;
};
/* One that waits keeps its place. */
void kube_ticket_wait(struct kube_client *k, struct kube_ticket *t, enum kube_priority priority, void (*fn)(void *user),
                      void *user);
void kube_ticket_cancel(struct kube_ticket *t);
/* A normal request would go out at once. */
bool kube_has_room(const struct kube_client *k);

/* A stream of lines for reflectors (kube/reflector.h): GET path, each line one JSON value, without limits of rate. */
struct kube_stream {
    const char *path;
    bool metadata_only;
    int64_t silence_ms;
    bool (*on_line)(void *user, const char *line, size_t n); /* false ends the stream */
    void (*on_end)(void *user, const struct kube_answer *a); /* status 200: it ended as it should */
    void *user;
};
struct kube_call *kube_watch(struct kube_client *k, const struct kube_stream *s);

/* New reference:
 * {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background","preconditions":{"uid":..}}; version > 0:
 * only while the object's resourceVersion is that; grace_s < 0: the object's own; uid NULL: whichever has the name. */
json_t *kube_delete_options(const char *uid, int64_t version, int grace_s);

#endif
