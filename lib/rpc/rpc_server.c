/* A server: threads that share one completion queue take calls, establish the caller, run the handler and answer.
 * Memory of an answer that gRPC uses is returned before rpc_server_free ends. */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "rpc/accept.h"
#include "rpc/again.h"
#include "rpc/call_timeout.h"
#include "rpc/health.h"
#include "rpc/listen.h"
#include "rpc/message.h"
#include "rpc/peer_id.h"
#include "rpc/reply_pieces.h"
#include "rpc/rpc_status.h"
#include "rpc/settings.h"
#include "rpc/ssl_read.h"
#include "rpc/tls.h"

enum {
    REQUESTS_AHEAD = 16,     /* calls of a method that gRPC may deliver before more are requested; the rest queue up */
    STOP_PATIENCE_MS = 5000, /* the time that running handlers may continue */
    SHORT_NS = 60 * 1000,    /* see keeps_turn */
    WAITED_NS = 20 * 1000,   /* a request that lay ready is there sooner */
    SHORT_RUNS = 8,
    CALL_MS = 30 * 1000, /* see rpc_server_options */
    BULK_MS = 300 * 1000,
    TIMEOUT_CHECK_MS = 1000,
    WAITING_MAX = 4096, /* see rpc_server_options */
    THREADS_MIN = 2,    /* one that waits for the queue, one for requests that are due */
};

struct rpc_server {
    grpc_server *server;
    grpc_completion_queue *queue; /* shared: any free thread takes the next call, so one that blocks delays none */
    int port;
    struct rpc_credentials credentials;
    char *self;                 /* its own address, for rpc_server_answers */
    struct rpc_method *methods; /* the caller's and Health/Check */
    void **handles;             /* gRPC's, by method */
    atomic_int *short_runs;     /* by method: calls one after the other that were short */
    size_t nmethods;
    struct health health;
    struct thread *threads;
    int nthreads;
    struct call_timeout timeout;
    int64_t call_ms, bulk_ms; /* for a request to come in, and for an answer to be read */
    size_t receive_max;
    enum role leader;
    struct mutex lock; /* of the next fields */
    bool turn;         /* a thread waits for the queue */
    struct cond idle;  /* the turn is free, or a request is due */
    struct cond stopped;
    bool is_stopped;
    struct again again;     /* requests that could not be answered yet */
    atomic_size_t alive;    /* struct incoming that were made and not freed */
    atomic_size_t borrowed; /* pieces of answers whose done() was not called yet */
};

/* A call from its request to the end of its answer. It is the tag of both. stage is atomic only so that
 * ThreadSanitizer, which does not see inside gRPC, sees one thread hand the call to the next. */
enum stage { ASKED, READING, ANSWERED };
struct incoming {
    struct timed_call timed;
    _Atomic(enum stage) stage;
    struct rpc_server *server;
    size_t method; /* nmethods: one that is not registered */
    grpc_call *call;
    gpr_timespec deadline;
    grpc_metadata_array metadata;
    grpc_call_details details;
    grpc_byte_buffer *request;
    struct rpc_message *message; /* the same, taken over */
    int was_cancelled;
    int64_t came_ms; /* when it was handled first */
    struct again_item again;
};

static void incoming_free(struct incoming *in)
{
    call_timeout_remove(&in->server->timeout, &in->timed);
    if (in->call != NULL)
        grpc_call_unref(in->call);
    if (in->request != NULL)
        grpc_byte_buffer_destroy(in->request);
    rpc_message_free(in->message);
    if (in->method == in->server->nmethods)
        grpc_call_details_destroy(&in->details);
    grpc_metadata_array_destroy(&in->metadata);
    atomic_fetch_sub(&in->server->alive, 1);
    free(in);
}

/* Asks gRPC for the next call of the method. */
static void request_next_call(struct rpc_server *s, size_t method)
{
    struct incoming *in = xcalloc(1, sizeof(*in));
    atomic_fetch_add(&s->alive, 1);
    in->server = s;
    in->method = method;
    grpc_metadata_array_init(&in->metadata);
    if (method == s->nmethods)
        grpc_call_details_init(&in->details);
    atomic_store(&in->stage, ASKED);
    grpc_call_error rc;
    if (method == s->nmethods)
        rc = grpc_server_request_call(s->server, &in->call, &in->details, &in->metadata, s->queue, s->queue, in);
    else
        rc = grpc_server_request_registered_call(s->server, s->handles[method], &in->call, &in->deadline, &in->metadata,
                                                 NULL, s->queue, s->queue, in);
    if (rc != GRPC_CALL_OK)
        incoming_free(in); /* the server is stopping */
}

/* From now on the caller has this time; a running handler has no limit. */
static void begin_wait(struct incoming *in)
{
    const struct rpc_server *s = in->server;
    bool bulk = in->method < s->nmethods && s->methods[in->method].bulk;
    call_timeout_until(&in->timed, clock_ms() + (bulk ? s->bulk_ms : s->call_ms));
}

/* ---- reading ---- */

/* The call has come, its message has not. gRPC could hand over both at once, but a call could then not be ended whose
 * message never comes. When the message came with the call, this costs a turn of the queue and no waiting. */
static void read_request(struct incoming *in)
{
    grpc_op ops[] = { { .op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &in->request } };
    begin_wait(in);
    call_timeout_add(&in->server->timeout, &in->timed, in->call);
    atomic_store(&in->stage, READING);
    if (grpc_call_start_batch(in->call, ops, COUNT_OF(ops), in, NULL) != GRPC_CALL_OK)
        abort(); /* wrong ops: a bug of ours */
}

/* ---- answering ---- */

static void answer(struct incoming *in, grpc_byte_buffer *message, grpc_status_code status, const struct err *e)
{
    grpc_slice text = e != NULL ? grpc_slice_from_copied_string(e->msg) : grpc_empty_slice();
    grpc_metadata name = { .key = grpc_slice_from_static_string(RPC_ERROR_KEY),
                           .value = grpc_slice_from_static_string(rpc_error_name(e != NULL ? e->code : ERR_NONE)) };
    grpc_op ops[4] = {
        { .op = GRPC_OP_SEND_INITIAL_METADATA },
        { .op = GRPC_OP_SEND_STATUS_FROM_SERVER,
          .data.send_status_from_server = { .status = status,
                                            .status_details = e != NULL ? &text : NULL,
                                            .trailing_metadata_count = e != NULL,
                                            .trailing_metadata = &name } },
        { .op = GRPC_OP_RECV_CLOSE_ON_SERVER, .data.recv_close_on_server.cancelled = &in->was_cancelled },
        { .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message },
    };
    grpc_call *call = in->call;
    begin_wait(in);
    atomic_store(&in->stage, ANSWERED);
    if (grpc_call_start_batch(call, ops, message != NULL ? 4 : 3, in, NULL) != GRPC_CALL_OK)
        abort(); /* wrong ops: a bug of ours */
    grpc_slice_unref(text);
}

static void refuse_unknown(struct incoming *in)
{
    auto_free char *method = grpc_slice_to_c_string(in->details.method);
    struct err e;
    err_put(&e, ERR_REFUSED, "no method %s here", method);
    answer(in, NULL, GRPC_STATUS_UNIMPLEMENTED, &e);
}

/* Its message was too long, or broke off; then the caller does not get this answer. */
static void refuse_broken(struct incoming *in)
{
    struct err e;
    err_put(&e, ERR_INPUT, "the request did not arrive whole, or has more than %zu bytes", in->server->receive_max);
    answer(in, NULL, rpc_status_of(e.code), &e);
}

static uint64_t client_of(const struct incoming *in)
{
    char *peer = grpc_call_get_peer(in->call);
    uint64_t id = rpc_peer_id(peer);
    gpr_free(peer);
    return id;
}

static int call_method(struct incoming *in, const struct rpc_method *method, const struct rpc_message *request,
                       struct rpc_reply *reply, struct err *e)
{
    struct identity identity;
    struct rpc_connection from = { .leader = in->server->leader };
    if (in->server->credentials.security == RPC_TLS) {
        if (!tls_identity_of(in->call, &identity))
            return err_set(e, ERR_REFUSED, "the connection has no certificate of this job");
        from.identity = &identity;
    } else if (method->bulk) {
        from.client = client_of(in);
    }
    return rpc_method_call(method, &from, request, reply, e);
}

static int take_message(struct incoming *in, struct err *e)
{
    if (in->message != NULL) /* it is handled again */
        return 0;
    in->came_ms = clock_ms();
    return rpc_message_take(TAKE(in->request), &in->message, e);
}

/* *ret_again_ms: as in struct rpc_reply. */
static int handle(struct incoming *in, grpc_byte_buffer **ret, uint32_t *ret_again_ms, struct err *e)
{
    const struct rpc_method *method = &in->server->methods[in->method];
    struct rpc_reply reply;
    reply.again = in->message != NULL;
    if (take_message(in, e) < 0)
        return err_wrap(e, "request %s", method->path);
    reply.head = (struct buf)BUF_INIT;
    reply.npieces = 0;
    reply.again_ms = 0;
    reply.waited_ms = reply.again ? clock_ms() - in->came_ms : 0;
    int rc = call_method(in, method, in->message, &reply, e);
    *ret_again_ms = reply.again_ms;
    if (rc < 0) {
        reply_pieces_drop(&reply);
        if (reply.again_ms > 0)
            rpc_message_drop_payload(in->message);
    } else {
        reply_pieces_lend(&reply, &in->server->borrowed);
        rc = rpc_bytes_of(reply.head.data, reply.head.len, reply.pieces, reply.npieces, NULL, NULL, ret, e);
    }
    buf_fini(&reply.head);
    return rc;
}

/* ---- requests that wait ---- */

static uint64_t wakes_of(struct rpc_server *s)
{
    MUTEX_GUARD(&s->lock);
    return s->again.wakes;
}

static enum again_answer wait_for_wake(struct incoming *in, uint64_t wakes, uint32_t again_ms)
{
    struct rpc_server *s = in->server;
    MUTEX_GUARD(&s->lock);
    if (again_ms == 0)
        return AGAIN_NO;
    return again_add(&s->again, &in->again, wakes, in->came_ms + again_ms, clock_ms());
}

static struct incoming *incoming_of(struct again_item *item)
{
    return item == NULL ? NULL : (struct incoming *)(void *)((char *)item - offsetof(struct incoming, again));
}

/* Under the lock. */
static void wake_threads(struct rpc_server *s, size_t due)
{
    if (due > 1)
        cond_broadcast(&s->idle);
    else if (due > 0)
        cond_signal(&s->idle);
}

void rpc_server_wake(struct rpc_server *s)
{
    MUTEX_GUARD(&s->lock);
    wake_threads(s, again_wake(&s->again));
}

static void serve(struct incoming *in)
{
    call_timeout_until(&in->timed, 0);
    if (in->method == in->server->nmethods) {
        refuse_unknown(in);
        return;
    }
    for (;;) {
        struct err e = { .code = ERR_INTERNAL, .msg = "" };
        grpc_byte_buffer *message = NULL;
        uint32_t again_ms = 0;
        uint64_t wakes = wakes_of(in->server);
        if (handle(in, &message, &again_ms, &e) == 0) {
            answer(in, message, GRPC_STATUS_OK, NULL);
            grpc_byte_buffer_destroy(message);
            return;
        }
        switch (wait_for_wake(in, wakes, again_ms)) {
        case AGAIN_WAIT:
            return;
        case AGAIN_NOW:
            break;
        case AGAIN_NO:
            answer(in, NULL, rpc_status_of(e.code), &e);
            return;
        }
    }
}

static struct incoming *take_due(struct rpc_server *s)
{
    MUTEX_GUARD(&s->lock);
    struct incoming *in = incoming_of(again_take(&s->again));
    if (in == NULL && s->again.nwaiting > 0) /* of those that wait on, no thread may know the end */
        cond_signal(&s->idle);
    return in;
}

void rpc_server_answer(struct rpc_server *s)
{
    {
        MUTEX_GUARD(&s->lock);
        size_t due = again_wake(&s->again);
        wake_threads(s, due > 1 ? due - 1 : 0);
    }
    for (struct incoming *in; (in = take_due(s)) != NULL;)
        serve(in);
}

/* ---- the threads ---- */

/* What was begun for a call has ended. True: its request is there. */
static bool take_event(struct incoming *in, bool success)
{
    enum stage stage = atomic_load(&in->stage);
    if (stage == READING && success)
        return true;
    if (stage == READING) {
        refuse_broken(in);
        return false;
    }
    if (stage == ANSWERED || !success) {
        incoming_free(in);
        return false;
    }
    struct rpc_server *s = in->server;
    size_t method = in->method;
    if (method < s->nmethods)
        read_request(in);
    else
        call_timeout_add(&s->timeout, &in->timed, in->call);
    request_next_call(s, method);
    return method == s->nmethods;
}

enum next { REQUEST, NOTHING, SHUT_DOWN };
/* Waits for a request, with the turn. NOTHING: the wait of another request may have ended. */
static enum next next_request(struct rpc_server *s, struct incoming **ret)
{
    for (;;) {
        gpr_timespec until = gpr_inf_future(GPR_CLOCK_MONOTONIC);
        {
            MUTEX_GUARD(&s->lock);
            int64_t end = again_first_end(&s->again), left = end - clock_ms();
            if (end != INT64_MAX)
                until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(MAX(left, 0), GPR_TIMESPAN));
        }
        grpc_event event = grpc_completion_queue_next(s->queue, until, NULL);
        if (event.type == GRPC_QUEUE_TIMEOUT)
            return NOTHING;
        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return SHUT_DOWN;
        if (event.tag == s) { /* the stop is complete */
            MUTEX_GUARD(&s->lock);
            s->is_stopped = true;
            cond_broadcast(&s->stopped);
            continue;
        }
        *ret = event.tag;
        if (take_event(*ret, event.success != 0))
            return REQUEST;
    }
}

/* A request that is due, or the turn, then NULL. */
static struct incoming *due_or_turn(struct rpc_server *s)
{
    MUTEX_GUARD(&s->lock);
    for (;;) {
        wake_threads(s, again_expire(&s->again, clock_ms()));
        struct incoming *in = incoming_of(again_take(&s->again));
        if (in != NULL)
            return in;
        if (!s->turn) {
            s->turn = true;
            return NULL;
        }
        int64_t end = again_first_end(&s->again);
        if (end == INT64_MAX)
            cond_wait(&s->idle, &s->lock);
        else
            (void)cond_wait_until(&s->idle, &s->lock, end);
    }
}

static void pass_turn(struct rpc_server *s)
{
    MUTEX_GUARD(&s->lock);
    s->turn = false;
    cond_signal(&s->idle);
}

/* Waking another thread costs more than a short call. A thread that had to wait for the request shows that the
 * server keeps up. If the recent calls of this method were short, that thread serves the request itself and does not
 * pass its turn on. */
static bool keeps_turn(struct rpc_server *s, const struct incoming *in, bool waited)
{
    return waited && in->method < s->nmethods && atomic_load(&s->again.ndue) == 0 &&
           atomic_load(&s->short_runs[in->method]) >= SHORT_RUNS;
}

static void serve_timed(struct rpc_server *s, struct incoming *in)
{
    size_t method = in->method; /* in is gone as soon as it is answered */
    int64_t begun = clock_ns();
    serve(in);
    if (method == s->nmethods)
        return;
    if (clock_ns() - begun > SHORT_NS)
        atomic_store(&s->short_runs[method], 0);
    else if (atomic_load(&s->short_runs[method]) < SHORT_RUNS)
        atomic_fetch_add(&s->short_runs[method], 1);
}

static void serve_loop(void *user)
{
    struct rpc_server *s = user;
    for (bool turn = false;;) {
        struct incoming *in = turn ? NULL : due_or_turn(s);
        if (in != NULL) {
            serve(in);
            continue;
        }
        int64_t begun = clock_ns();
        enum next next = next_request(s, &in);
        turn = next == REQUEST && keeps_turn(s, in, clock_ns() - begun > WAITED_NS);
        if (!turn)
            pass_turn(s);
        if (next == SHUT_DOWN)
            return;
        if (next == REQUEST)
            serve_timed(s, in);
    }
}

/* ---- starting ---- */

static void register_methods(struct rpc_server *s, const struct rpc_method *methods, size_t n)
{
    s->nmethods = n + 1;
    s->methods = xcalloc(s->nmethods, sizeof(*s->methods));
    s->handles = xcalloc(s->nmethods, sizeof(*s->handles));
    s->short_runs = xcalloc(s->nmethods, sizeof(*s->short_runs));
    if (n > 0)
        memcpy(s->methods, methods, n * sizeof(*methods));
    s->methods[n] = health_method(&s->health);
    s->health.methods = s->methods;
    s->health.nmethods = s->nmethods;
    for (size_t i = 0; i < s->nmethods; i++) {
        s->handles[i] = grpc_server_register_method(s->server, s->methods[i].path, NULL, GRPC_SRM_PAYLOAD_NONE, 0);
        if (s->handles[i] == NULL)
            abort(); /* the same path twice: a bug of ours */
    }
}

static int start_threads(struct rpc_server *s, int threads, struct err *e)
{
    if (!s->timeout.thread.started &&
        call_timeout_start(&s->timeout, MIN((int64_t)TIMEOUT_CHECK_MS, s->call_ms), e) < 0)
        return -1;
    s->threads = xcalloc((size_t)threads, sizeof(*s->threads));
    for (; s->nthreads < threads; s->nthreads++)
        if (thread_start(&s->threads[s->nthreads], "rpc", serve_loop, s, e) < 0)
            return -1;
    return 0;
}

static grpc_server *make_server(size_t receive_max, enum rpc_security security)
{
    grpc_arg args[RPC_SERVER_ARGS_MAX];
    grpc_channel_args list = rpc_server_args(receive_max, security, args);
    return grpc_server_create(&list, NULL);
}

int rpc_server_start(const char *address, const struct rpc_credentials *credentials, const struct rpc_method *methods,
                     size_t nmethods, const struct rpc_server_options *options, struct rpc_server **ret, struct err *e)
{
    AUTO(rpc_server) *s = xcalloc(1, sizeof(*s));
    accept_keep_spare();
    ssl_read_begin();
    s->credentials = *credentials;
    s->leader = options->leader;
    s->call_ms = options->call_ms > 0 ? options->call_ms : CALL_MS;
    s->bulk_ms = options->bulk_ms > 0 ? options->bulk_ms : BULK_MS;
    s->receive_max = rpc_receive_max(options->payload_max);
    s->again.max = options->waiting_max > 0 ? options->waiting_max : WAITING_MAX;
    call_timeout_init(&s->timeout);
    mutex_init(&s->lock);
    cond_init(&s->idle);
    cond_init(&s->stopped);
    atomic_init(&s->health.serving, true);
    s->server = make_server(s->receive_max, credentials->security);
    s->queue = grpc_completion_queue_create_for_next(NULL);
    grpc_server_register_completion_queue(s->server, s->queue, NULL);
    register_methods(s, methods, nmethods);
    int rc = rpc_listen(s->server, address, &s->credentials, &s->port, &s->self, e);
    grpc_server_start(s->server); /* also after a failure: only a started server can be stopped */
    if (rc < 0 || start_threads(s, MAX(options->threads, THREADS_MIN), e) < 0)
        return -1;
    for (size_t i = 0; i <= s->nmethods; i++)
        for (int j = 0; j < REQUESTS_AHEAD; j++)
            request_next_call(s, i);
    *ret = TAKE(s);
    return 0;
}

int rpc_server_port(const struct rpc_server *s)
{
    return s->port;
}

int rpc_server_answers(const struct rpc_server *s, int64_t deadline_ms, struct err *e)
{
    AUTO(rpc_channel) *c = rpc_channel_new(s->self, &s->credentials, NULL);
    AUTO(rpc_message) *m = NULL;
    return rpc_unary(c, "/grpc.health.v1.Health/Check", NULL, 0, NULL, 0, deadline_ms, &m, e);
}

void rpc_server_set_serving(struct rpc_server *s, bool serving)
{
    atomic_store(&s->health.serving, serving);
}

/* ---- stopping ---- */

static bool wait_stopped(struct rpc_server *s, int64_t until_ms)
{
    MUTEX_GUARD(&s->lock);
    while (!s->is_stopped)
        if (!cond_wait_until(&s->stopped, &s->lock, until_ms))
            return s->is_stopped;
    return true;
}

void rpc_server_free(struct rpc_server *s)
{
    if (s == NULL)
        return;
    if (s->nthreads == 0) { /* no other thread waits for the queue */
        struct err ignored;
        if (start_threads(s, 1, &ignored) < 0)
            abort();
    }
    {
        MUTEX_GUARD(&s->lock);
        wake_threads(s, again_stop(&s->again));
    }
    grpc_server_shutdown_and_notify(s->server, s->queue, s);
    if (!wait_stopped(s, clock_ms() + STOP_PATIENCE_MS)) {
        grpc_server_cancel_all_calls(s->server);
        while (!wait_stopped(s, clock_ms() + 1000))
            continue; /* a handler runs still, and the threads must not outlive their server */
    }
    /* A call whose client is gone does not delay the stop, but its handler may still run and then answer. gRPC
     * aborts the process when an operation begins on a queue that was shut down. */
    while (atomic_load(&s->alive) > 0)
        clock_sleep_ms(1);
    grpc_completion_queue_shutdown(s->queue);
    for (int i = 0; i < s->nthreads; i++)
        thread_join(&s->threads[i]);
    grpc_server_destroy(s->server);
    grpc_completion_queue_destroy(s->queue);
    while (atomic_load(&s->borrowed) > 0) /* connections close in the background */
        clock_sleep_ms(1);
    call_timeout_fini(&s->timeout);
    cond_fini(&s->stopped);
    cond_fini(&s->idle);
    mutex_fini(&s->lock);
    free(s->threads);
    free(s->methods);
    free(s->handles);
    free(s->short_runs);
    free(s->self);
    free(s);
}
