/* Channels and calls of a client. Each call has its own completion queue, which the waiting thread serves; calls are
 * kept for reuse. Errors of the server come back with their own code and message. */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "rpc/message.h"
#include "rpc/rpc_status.h"
#include "rpc/settings.h"
#include "rpc/tls.h"

/* A call has its own completion queue, so the thread that waits for it reads and writes the connection itself,
 * without a switch of threads. Finished calls are kept with their queues for the next ones. */
struct rpc_call {
    struct rpc_channel *channel;
    struct rpc_call *next; /* in channel->idle */
    grpc_completion_queue *queue;
    grpc_call *call; /* NULL: could not be started, see early */
    int lane;
    const grpc_channel *via; /* lane[lane] when it was started; only to compare */
    grpc_slice method;
    int64_t deadline_ms;
    bool over; /* the batch is complete, and was seen to be */
    enum { SAW_NOTHING, SAW_PEER, SAW_NO_PEER } saw;
    atomic_bool cancelled;
    atomic_size_t borrowed; /* pieces that gRPC still reads */
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *answer;
    grpc_status_code status;
    grpc_slice details;
    struct err early;
};

struct rpc_lane {
    grpc_channel *channel;
    int64_t opened_ms;
    bool lost;    /* the last call that ended did not reach the peer */
    int openings; /* since a call reached the peer */
};

struct rpc_channel {
    char *target, *peer; /* peer: NULL when any member may be there */
    struct rpc_credentials credentials;
    size_t receive_max;
    int lanes;
    struct mutex lock; /* of what follows */
    struct rpc_call *idle;
    size_t nidle;
    struct rpc_lane lane[];
};

enum { IDLE_MAX = 64, REOPEN_MIN_MS = 25, OPENINGS_MAX = 5 };

static grpc_channel *lane_open(const struct rpc_channel *c)
{
    grpc_arg args[RPC_CHANNEL_ARGS_MAX];
    grpc_channel_args list = rpc_channel_args(c->receive_max, c->credentials.security, args);
    grpc_channel_credentials *credentials = rpc_channel_credentials(&c->credentials, c->peer);
    grpc_channel *lane = grpc_channel_create(c->target, credentials, &list);
    grpc_channel_credentials_release(credentials);
    return lane;
}

struct rpc_channel *rpc_channel_new(const char *target, const struct rpc_credentials *credentials,
                                    const struct rpc_channel_options *options)
{
    int lanes = options != NULL && options->lanes > 1 ? options->lanes : 1;
    struct rpc_channel *c = xcalloc(1, sizeof(*c) + (size_t)lanes * sizeof(c->lane[0]));
    c->target = xstrdup(target);
    c->peer = options != NULL && options->peer != NULL ? xstrdup(options->peer) : NULL;
    c->credentials = *credentials;
    c->lanes = lanes;
    c->receive_max = rpc_receive_max(options != NULL ? options->payload_max : 0);
    mutex_init(&c->lock);
    for (int i = 0; i < lanes; i++)
        c->lane[i] = (struct rpc_lane){ .channel = lane_open(c), .opened_ms = clock_ms() };
    return c;
}

static void call_free(struct rpc_call *k)
{
    grpc_completion_queue_shutdown(k->queue);
    grpc_completion_queue_destroy(k->queue);
    free(k);
}

void rpc_channel_free(struct rpc_channel *c)
{
    if (c == NULL)
        return;
    while (c->idle != NULL) {
        struct rpc_call *k = c->idle;
        c->idle = k->next;
        call_free(k);
    }
    for (int i = 0; i < c->lanes; i++)
        grpc_channel_destroy(c->lane[i].channel);
    mutex_fini(&c->lock);
    free(c->target);
    free(c->peer);
    free(c);
}

const char *rpc_channel_target(const struct rpc_channel *c)
{
    return c->target;
}

static struct rpc_call *call_get(struct rpc_channel *c)
{
    {
        MUTEX_GUARD(&c->lock);
        if (c->idle != NULL) {
            struct rpc_call *k = c->idle;
            c->idle = k->next;
            c->nidle--;
            return k;
        }
    }
    struct rpc_call *k = xcalloc(1, sizeof(*k));
    k->channel = c;
    k->queue = grpc_completion_queue_create_for_pluck(NULL);
    return k;
}

/* Lock held. */
static void note_lane(struct rpc_lane *l, const struct rpc_call *k)
{
    if (l->channel != k->via || k->saw == SAW_NOTHING)
        return;
    l->lost = k->saw == SAW_NO_PEER;
    if (k->saw == SAW_PEER)
        l->openings = 0;
}

static void call_put(struct rpc_call *k)
{
    struct rpc_channel *c = k->channel;
    {
        MUTEX_GUARD(&c->lock);
        note_lane(&c->lane[k->lane], k);
        if (c->nidle < IDLE_MAX) {
            k->next = c->idle;
            c->idle = k;
            c->nidle++;
            return;
        }
    }
    call_free(k);
}

static void piece_returned(void *user)
{
    struct rpc_call *k = user;
    atomic_fetch_sub(&k->borrowed, 1);
}

/* One batch of everything: the request, the answer and the status. */
static void run_batch(struct rpc_call *k, grpc_byte_buffer *request)
{
    grpc_op ops[] = {
        { .op = GRPC_OP_SEND_INITIAL_METADATA },
        { .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = request },
        { .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT },
        { .op = GRPC_OP_RECV_INITIAL_METADATA, .data.recv_initial_metadata.recv_initial_metadata = &k->initial },
        { .op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &k->answer },
        { .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
          .data.recv_status_on_client = { .trailing_metadata = &k->trailing,
                                          .status = &k->status,
                                          .status_details = &k->details } },
    };
    if (grpc_call_start_batch(k->call, ops, COUNT_OF(ops), k, NULL) != GRPC_CALL_OK)
        abort(); /* wrong ops: a bug of ours */
}

/* ---- lanes whose peer could not be reached ----
 *
 * gRPC makes its attempts to connect in the background, where no thread helps it while none waits for a call, so each
 * takes some hundred milliseconds; and it looks an unknown name up less and less often, up to every two minutes. So its
 * second attempt is late (settings.c), and the next call opens the lane again, which looks the name up and connects
 * while the call waits. A caller with many retries does no harm: the pause between two openings doubles, up to 0.8 s.
 * An attempt that runs already is not given up in its handshake, since the peer would log that as refused. */

static bool is_due(const struct rpc_lane *l, int64_t now)
{
    if (!l->lost || now - l->opened_ms < (int64_t)REOPEN_MIN_MS << l->openings)
        return false;
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(l->channel, 0);
    return state != GRPC_CHANNEL_CONNECTING && state != GRPC_CHANNEL_READY;
}

/* The channel of the lane for a call. *ret_old: to be destroyed without the lock; calls that have a connection
 * continue, those that wait for one fail (is_reopened). Lock held. */
static grpc_channel *lane_channel(struct rpc_channel *c, struct rpc_lane *l, grpc_channel **ret_old)
{
    int64_t now = clock_ms();
    if (is_due(l, now)) {
        *ret_old = l->channel;
        *l = (struct rpc_lane){ .channel = lane_open(c),
                                .opened_ms = now,
                                .openings = MIN(l->openings + 1, OPENINGS_MAX) };
    }
    return l->channel;
}

struct rpc_call *rpc_start(struct rpc_channel *c, int lane, const char *method, const void *head, size_t head_size,
                           const struct rpc_piece *pieces, size_t npieces, int64_t deadline_ms_from_now)
{
    struct rpc_call *k = call_get(c);
    size_t borrowed = 0;
    for (size_t i = 0; i < npieces; i++)
        borrowed += pieces[i].done == NULL;
    atomic_store(&k->borrowed, borrowed);
    atomic_store(&k->cancelled, false);
    k->deadline_ms = deadline_ms_from_now;
    k->answer = NULL;
    k->details = grpc_empty_slice();
    k->method = grpc_slice_from_copied_string(method);
    k->early.code = ERR_NONE;
    k->call = NULL;
    k->over = false;
    k->saw = SAW_NOTHING;
    k->lane = lane % c->lanes;
    grpc_metadata_array_init(&k->initial);
    grpc_metadata_array_init(&k->trailing);

    grpc_byte_buffer *request = NULL;
    if (rpc_bytes_of(head, head_size, pieces, npieces, piece_returned, k, &request, &k->early) < 0)
        return k;
    gpr_timespec deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(deadline_ms_from_now, GPR_TIMESPAN));
    grpc_channel *old = NULL;
    {
        MUTEX_GUARD(&c->lock);
        k->via = lane_channel(c, &c->lane[k->lane], &old);
        k->call = grpc_channel_create_call(c->lane[k->lane].channel, NULL, GRPC_PROPAGATE_DEFAULTS, k->queue, k->method,
                                           NULL, deadline, NULL);
    }
    if (old != NULL)
        grpc_channel_destroy(old);
    run_batch(k, request);
    grpc_byte_buffer_destroy(request);
    return k;
}

/* The lane was opened again while the call waited for a connection. gRPC ends such a call as UNKNOWN. */
static bool is_reopened(struct rpc_call *k)
{
    MUTEX_GUARD(&k->channel->lock);
    return k->channel->lane[k->lane].channel != k->via;
}

static int handshake_error(const struct rpc_channel *c, const char *why, struct err *e)
{
    const char *what = c->credentials.security == RPC_TLS ? "the TLS handshake failed: " : "";
    if (c->peer != NULL)
        return err_set(e, ERR_LOST, "%s at %s cannot be reached: %s%s", c->peer, c->target, what, why);
    return err_set(e, ERR_LOST, "%s cannot be reached: %s%s", c->target, what, why);
}

/* The message of the status, for people. gRPC's messages are long and end with the important part. */
static int call_error(struct rpc_call *k, struct err *e)
{
    bool named;
    enum err_code code = rpc_error_of(k->status, &k->trailing, &named);
    auto_free char *method = grpc_slice_to_c_string(k->method);
    auto_free char *details = grpc_slice_to_c_string(k->details);
    const char *target = k->channel->target;

    if (atomic_load(&k->cancelled))
        return err_set(e, ERR_STOPPED, "call %s of %s was cancelled", method, target);
    if (named) {
        k->saw = SAW_PEER;
        return err_set(e, code, "%s", details);
    }
    if (k->status == GRPC_STATUS_UNAVAILABLE)
        k->saw = SAW_NO_PEER;
    if (k->status == GRPC_STATUS_UNKNOWN && is_reopened(k))
        code = ERR_LOST;
    if (k->status == GRPC_STATUS_UNIMPLEMENTED)
        return err_set(e, ERR_REFUSED, "%s does not know the method %s", target, method);
    if (code == ERR_TIMEOUT && str_eq(details, RPC_CALLER_TOO_SLOW))
        return err_set(e, ERR_TIMEOUT, "%s ended the call %s: %s", target, method, details);
    if (code == ERR_TIMEOUT)
        return err_set(e, ERR_TIMEOUT, "%s did not answer %s within %lld ms", target, method,
                       (long long)k->deadline_ms);
    char why[ERR_TEXT_MAX];
    if (code == ERR_LOST && tls_explain(details, &k->channel->credentials, why, sizeof(why)))
        return handshake_error(k->channel, why, e);
    if (code == ERR_LOST || code == ERR_STOPPED) {
        const char *colon = strrchr(details, ':');
        const char *cause = colon != NULL ? colon + 1 + (colon[1] == ' ') : details;
        return err_set(e, ERR_LOST, "%s cannot be reached: %s", target, cause);
    }
    return err_set(e, code, "%s: %s: %s", target, method, details);
}

static int call_result(struct rpc_call *k, struct rpc_message **ret, struct err *e)
{
    if (k->status != GRPC_STATUS_OK)
        return call_error(k, e);
    k->saw = SAW_PEER;
    if (rpc_message_take(TAKE(k->answer), ret, e) == 0)
        return 0;
    auto_free char *method = grpc_slice_to_c_string(k->method);
    return err_wrap(e, "answer of %s to %s", k->channel->target, method);
}

/* After a deadline the connection may still hold request bytes that it began to send. The caller owns them. */
static void wait_for_pieces(struct rpc_call *k)
{
    char nothing;
    while (atomic_load(&k->borrowed) > 0)
        grpc_completion_queue_pluck(k->queue, &nothing,
                                    gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(5, GPR_TIMESPAN)),
                                    NULL);
}

static bool call_await(struct rpc_call *k, gpr_timespec deadline)
{
    k->over =
        k->over || k->call == NULL || grpc_completion_queue_pluck(k->queue, k, deadline, NULL).type == GRPC_OP_COMPLETE;
    return k->over;
}

bool rpc_ready(struct rpc_call *k, int64_t wait_ms)
{
    return call_await(k, gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait_ms, GPR_TIMESPAN)));
}

void rpc_await(struct rpc_call *k)
{
    (void)call_await(k, gpr_inf_future(GPR_CLOCK_MONOTONIC));
}

int rpc_wait(struct rpc_call *k, struct rpc_message **ret, struct err *e)
{
    int rc;
    if (k->call == NULL) {
        rc = err_set(e, k->early.code, "%s", k->early.msg);
    } else {
        rpc_await(k);
        rc = call_result(k, ret, e);
        if (k->answer != NULL)
            grpc_byte_buffer_destroy(k->answer);
        grpc_call_unref(k->call);
        wait_for_pieces(k);
    }
    grpc_slice_unref(k->details);
    grpc_slice_unref(k->method);
    grpc_metadata_array_destroy(&k->initial);
    grpc_metadata_array_destroy(&k->trailing);
    call_put(k);
    return rc;
}

void rpc_cancel(struct rpc_call *k)
{
    atomic_store(&k->cancelled, true);
    if (k->call != NULL)
        grpc_call_cancel(k->call, NULL);
}

int rpc_unary(struct rpc_channel *c, const char *method, const void *head, size_t head_size,
              const struct rpc_piece *pieces, size_t npieces, int64_t deadline_ms_from_now, struct rpc_message **ret,
              struct err *e)
{
    return rpc_wait(rpc_start(c, 0, method, head, head_size, pieces, npieces, deadline_ms_from_now), ret, e);
}
