/* rpc - unary calls over gRPC C core with the tensor bytes beside the message, never inside a copy of it.
 *
 * A message is protobuf. Its bulk bytes, if any, are its LAST field (`bytes payload = 15;`): they are sent as separate
 * slices after the packed head, and received without being parsed into a message. So gRPC clients in any language can
 * be used, and no tensor is ever copied into a protobuf buffer.
 *
 * rpc_body is one direction of a call: head (packed protobuf WITHOUT the payload field) + payload pieces. All calls are
 * thread-safe on a channel. This folder is the only one that includes <grpc/...>.
 */
#ifndef TRAINYARD_RPC_RPC_H
#define TRAINYARD_RPC_RPC_H

#include "base/buf.h"
#include "identity/identity.h"

enum { RPC_PAYLOAD_FIELD = 15 };

/* Call rpc_init once in main before anything else here and before there are threads (it sets gRPC options that exist
 * only as environment variables, and raises the limit of open files); never fork() without exec() after it.
 * rpc_shutdown at the end of the process, after all channels and servers are gone. It waits for gRPC's threads for a
 * short time; if some still run then, exit() ends the process without the handlers that were registered before. */
void rpc_init(void);
void rpc_shutdown(void);

/* A piece of payload to send: not copied; must stay untouched until `done(user)` is called (from any
 * thread), or, for client requests, until the call has been waited for (done NULL). */
struct rpc_piece {
    const void *data;
    size_t size;
    void (*done)(void *user);
    void *user;
};

/* A received message. Valid until rpc_message_free. */
struct rpc_message;
/* The head: everything before the payload field, contiguous, ready for protobuf-c's unpack. */
const void *rpc_message_head(const struct rpc_message *m, size_t *ret_size);
size_t rpc_message_payload_size(const struct rpc_message *m);
/* Walks the payload in the received slices: start with *pos = 0; 1 and a range, or 0 at the end. */
int rpc_message_next(const struct rpc_message *m, size_t *pos, const void **ret, size_t *ret_size);
/* Copies payload bytes [offset, offset+n) out; false when beyond the end. */
bool rpc_message_copy(const struct rpc_message *m, size_t offset, void *out, size_t n);
/* A message of the caller's bytes (copied), as if it had been received: for tests of handlers. */
MUST_USE int rpc_message_of(const void *data, size_t n, struct rpc_message **ret, struct err *e);
void rpc_message_free(struct rpc_message *m);
DEFINE_AUTO(rpc_message, rpc_message_free);

/* ---- credentials ---- */

/* The identity of this process, from its folder (identity/tls_dir.h): main makes one, which all channels and servers
 * share, and frees it after them. The files are read again when they change. A certificate of another identity, or
 * files that do not fit together, are not taken: the earlier ones stay in use, and the log says so. */
struct rpc_tls;
MUST_USE int rpc_tls_new(const char *tls_dir, struct rpc_tls **ret, struct err *e);
const struct identity *rpc_tls_identity(const struct rpc_tls *t);
void rpc_tls_free(struct rpc_tls *t);
DEFINE_AUTO(rpc_tls, rpc_tls_free);

/* What a channel or a server proves, and what it requires of the other side. rpc_channel_new and rpc_server_start
 * copy them; rpc/settings.c turns them into gRPC's credentials. */
enum rpc_security {
    RPC_PLAINTEXT, /* nothing is encrypted, and the sender that the Header of a request names is trusted */
    RPC_TLS,       /* TLS 1.3; both sides prove with a certificate which member of the same job they are */
};
struct rpc_credentials {
    enum rpc_security security;
    const struct rpc_tls *tls; /* RPC_TLS: borrowed */
};
extern const struct rpc_credentials RPC_INSECURE;

/* ---- client ---- */
struct rpc_channel; /* one TCP connection (or `lanes` of them) to one peer; connects lazily, reconnects by itself,
                       re-resolves names within 1 s, also one that was not known for long */
struct rpc_channel_options {
    int lanes;          /* parallel connections for bulk; default 1 */
    size_t payload_max; /* an answer with more bytes of payload is an error */
    const char *peer;   /* "ps-1": RPC_TLS accepts no other member of the job there; NULL: any member. Copied */
};
/* target "host:port" (dns), "127.0.0.1:2222". Never blocks. */
struct rpc_channel *rpc_channel_new(const char *target, const struct rpc_credentials *credentials,
                                    const struct rpc_channel_options *options);
void rpc_channel_free(struct rpc_channel *c);
DEFINE_AUTO(rpc_channel, rpc_channel_free);
const char *rpc_channel_target(const struct rpc_channel *c);

/* method "/trainyard.v1.Parameters/Push". Started calls run in parallel; each must be finished by rpc_wait.
 * lane: which connection (0 .. lanes-1). A deadline is always set. */
struct rpc_call;
struct rpc_call *rpc_start(struct rpc_channel *c, int lane, const char *method, const void *head, size_t head_size,
                           const struct rpc_piece *pieces, size_t npieces, int64_t deadline_ms_from_now);
/* Blocks until the answer, the deadline or the loss of the connection, and until pieces without done() are no longer
 * read (the calling thread itself moves the bytes; a frozen peer is cut off within 25 s). Frees the call. Errors:
 * what the handler of the server returned (code and message travel), ERR_LOST (unavailable), ERR_TIMEOUT (the deadline,
 * or the server ended the call: see call_ms below). */
MUST_USE int rpc_wait(struct rpc_call *call, struct rpc_message **ret, struct err *e);
/* Waits for up to wait_ms; true: rpc_wait will not block. For the caller that will call rpc_wait. */
bool rpc_ready(struct rpc_call *call, int64_t wait_ms);
/* Blocks until the call has ended; rpc_wait then does not block. Between the two its caller can tell other threads that
 * they may not cancel the call any more. */
void rpc_await(struct rpc_call *call);
/* rpc_wait then returns soon with ERR_STOPPED. From any thread, but not once rpc_wait may have returned. */
void rpc_cancel(struct rpc_call *call);
/* rpc_start + rpc_wait. */
MUST_USE int rpc_unary(struct rpc_channel *c, const char *method, const void *head, size_t head_size,
                       const struct rpc_piece *pieces, size_t npieces, int64_t deadline_ms_from_now,
                       struct rpc_message **ret, struct err *e);

/* ---- server ---- */

enum { RPC_NAME_SIZE = 64, RPC_UID_SIZE = 128, RPC_INDEX_MAX = 1 << 20 };
/* The caller, as the server established it from the certificate of the connection and the Header of the request
 * (lib/rpc/common.proto). With RPC_TLS the sender that the Header names is the one of the certificate. */
struct rpc_caller {
    char job_uid[RPC_UID_SIZE]; /* "": not given */
    char name[RPC_NAME_SIZE];   /* "worker-3"; "": not given */
    enum role role;             /* of the name; ROLE_COUNT: it is not that of a replica */
    int index;                  /* of the name; -1: none */
    uint64_t generation;        /* that the caller knows */
    uint64_t incarnation;       /* of the caller's process */
    /* A number of the client, for limits; 0: not known. It is the same for all calls of one identity. Without one,
     * bulk methods only, for all calls of one address, and of one connection on loopback. */
    uint64_t client;
    bool authenticated;       /* false: plain text; nothing proves who calls */
    struct identity identity; /* of the certificate, when authenticated */
};

struct rpc_reply {               /* filled by a handler */
    struct buf head;             /* packed response without its payload */
    struct rpc_piece pieces[64]; /* payload, in order; done() is called when the bytes have left or cannot leave any
                                    more, also when the handler fails, at the latest in rpc_server_free */
    size_t npieces;
    /* With an error that may pass, such as data that are not there yet: the request is handled again after the next
     * rpc_server_wake(), and when it is so old; then an error is the answer. No thread waits meanwhile. The payload of
     * the request is gone then, so that what waits is small: the handler has taken it the first time. */
    uint32_t again_ms;
    bool again;        /* set by the server: it is handled again, */
    int64_t waited_ms; /* and was handled for the first time so long ago */
};
struct rpc_method {
    const char *path; /* "/trainyard.v1.Parameters/Push" */
    /* Runs on one of the server's threads, several at once. It may block for a while (other threads continue), but
     * may not wait for another call to arrive: after some short calls of a method the next one may delay those
     * behind it. For that there is rpc_reply.again_ms. The caller and the message are borrowed. Error codes and
     * messages travel to the client. */
    int (*handle)(void *user, const struct rpc_caller *caller, const struct rpc_message *request,
                  struct rpc_reply *reply, struct err *e);
    void *user;
    bool bulk; /* requests or answers carry payload: a slow link has more time for them, and their client is known */
    bool no_header;   /* not a Trainyard method: field 1 of requests is not a Header */
    unsigned callers; /* who may call it: IDENTITY_BIT(role) of each, or RPC_LEADER; 0: no caller may */
};
/* The member that leads the job: the chief, or worker 0 of a job without one (rpc_server_options.leader). */
#define RPC_LEADER IDENTITY_BIT(IDENTITY_ROLES)
/* Every process of a job that speaks gRPC. */
#define RPC_MEMBERS                                                                                                    \
    (IDENTITY_BIT(ROLE_PS) | IDENTITY_BIT(ROLE_WORKER) | IDENTITY_BIT(ROLE_CHIEF) | IDENTITY_BIT(ROLE_EVALUATOR) |     \
     IDENTITY_BIT(IDENTITY_LAUNCHER))

/* What a server knows of a connection before it reads a request. */
struct rpc_connection {
    uint64_t client;                 /* as in struct rpc_caller */
    const struct identity *identity; /* of its certificate; NULL: plain text */
    enum role leader;                /* as in struct rpc_server_options */
};
/* Establishes the caller of a request, checks that it may call the method, and lets the method handle it. Refused
 * (ERR_REFUSED, and a line in the log): a role that is not in `callers`, and a sender that is not the certificate's. In
 * plain text the role of the sender that the Header names is checked; a request without such a name is not. */
MUST_USE int rpc_method_call(const struct rpc_method *m, const struct rpc_connection *from,
                             const struct rpc_message *request, struct rpc_reply *reply, struct err *e);
struct rpc_server_options {
    int threads;        /* that serve; at least 2 are started */
    size_t payload_max; /* a request with more bytes of payload is refused */
    /* How long a request may take to come in, and an answer to be read; 0: 30 s, and 300 s for bulk methods. A call
     * that takes longer is cancelled, whatever deadline its caller has, so that no caller holds memory of the server
     * forever. */
    int64_t call_ms, bulk_ms;
    size_t waiting_max; /* requests that wait (rpc_reply.again_ms); others get the error at once; 0: 4096 */
    enum role leader;   /* ROLE_WORKER: worker 0 leads; ROLE_COUNT: it or the chief, not known which; else the chief */
};
struct rpc_server;
/* address "0.0.0.0:2222", "127.0.0.1:0" (any free port). A port in use is ERR_INPUT: "port 2222 is in use ...".
 * Also serves grpc.health.v1.Health/Check. */
MUST_USE int rpc_server_start(const char *address, const struct rpc_credentials *credentials,
                              const struct rpc_method *methods, size_t nmethods,
                              const struct rpc_server_options *options, struct rpc_server **ret, struct err *e);
/* Requests that wait (rpc_reply.again_ms) are handled again. From any thread, also from a handler. */
void rpc_server_wake(struct rpc_server *s);
/* The same, and the calling thread handles them, together with the threads of the server, before it returns: no other
 * thread need be woken for a single one. Not from a handler, and without locks that handlers take. */
void rpc_server_answer(struct rpc_server *s);
int rpc_server_port(const struct rpc_server *s);
/* Checks that its own port accepts a new connection and answers. ERR_LOST or ERR_TIMEOUT. Not from a handler. */
MUST_USE int rpc_server_answers(const struct rpc_server *s, int64_t deadline_ms, struct err *e);
void rpc_server_set_serving(struct rpc_server *s, bool serving); /* health */
/* Stops accepting, lets running calls finish for up to 5 s, cancels the rest, waits for handlers still running, joins
 * the threads. Not from a handler. */
void rpc_server_free(struct rpc_server *s);
DEFINE_AUTO(rpc_server, rpc_server_free);

#endif
