/* The arguments of every channel and server - message sizes, liveness, limits of what a peer may have open - and the
 * one place where credentials become gRPC's. */
#include "rpc/settings.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rpc/split.h"
#include "rpc/tls.h"

/* grpc_arg needs char *, and only reads it. */
#define ARG(name, number)                                                                                              \
    {                                                                                                                  \
        .type = GRPC_ARG_INTEGER, .key = (char *)(uintptr_t)(name), .value.integer = (number)                          \
    }

/* Bytes: large frames and reads, so that a tensor is a few pieces and not hundreds, and a window that lets a model
 * of ordinary size be sent without waiting for window updates (test/bench/bench_rpc.c: a pull of 407,080 bytes falls
 * from 155 us to 89). A frame has at most 1 MiB, because a ping waits behind the frames that were passed to the
 * connection before it. Nothing is compressed, and what a peer compressed is refused: a few kB must not become the
 * size of the limit. */
#define BULK_ARGS                                                                                                      \
    ARG(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1), ARG(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0),                        \
        ARG(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0), ARG(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20),                \
        ARG(GRPC_ARG_TCP_READ_CHUNK_SIZE, 512 << 10), ARG(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, 4 << 20),                  \
        ARG(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 20)

/* Liveness: a peer is pinged every 5 s, and dead when it has not answered for 20 s: detected within 25 s. Over a
 * slow link the answer may be late, because pings wait behind some MiB of bulk in the same connection. Pings
 * continue between calls, and the server does not treat them as an attack. */
#define ALIVE_ARGS                                                                                                     \
    ARG(GRPC_ARG_KEEPALIVE_TIME_MS, 5000), ARG(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000),                                  \
        ARG(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1), ARG(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0)

static const grpc_arg CHANNEL_ARGS[] = {
    BULK_ARGS,
    ALIVE_ARGS,
    ARG(GRPC_ARG_ENABLE_RETRIES, 0),            /* a retry is the caller's: it knows what is safe to repeat */
    ARG(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1), /* a lane is a separate connection */
    ARG(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000), /* a restarted pod has a new address */
    ARG(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1),
    ARG(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
};

/* Limits of what one peer may have open. A worker has a few calls at a time on a connection (WINDOW in
 * params/params_grpc.c); others wait at the caller. A connection without calls is closed, and opened again by the next
 * call of an honest caller. */
enum { STREAMS_MAX = 32, IDLE_MS = 300 * 1000, HANDSHAKE_MS = 20 * 1000 };
/* A certificate is checked when a connection begins, and lives 24 h. So a connection ends before its peer's
 * certificate does; calls that run then may finish. */
enum { AGE_MS = 12 * 3600 * 1000, AGE_GRACE_MS = 5 * 60 * 1000 };
static const grpc_arg SERVER_ARGS[] = {
    BULK_ARGS,
    ALIVE_ARGS,
    ARG(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000),
    ARG(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0),
    ARG(GRPC_ARG_ALLOW_REUSEPORT, 0), /* a port in use is an error, and is never shared */
    ARG(GRPC_ARG_MAX_CONCURRENT_STREAMS, STREAMS_MAX),
    ARG(GRPC_ARG_MAX_CONNECTION_IDLE_MS, IDLE_MS),
    ARG(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, HANDSHAKE_MS),
};

size_t rpc_receive_max(size_t payload_max)
{
    return MIN(payload_max, (size_t)INT_MAX - RPC_HEAD_MAX) + RPC_HEAD_MAX;
}

static const grpc_arg TLS_SERVER_ARGS[] = {
    ARG(GRPC_ARG_MAX_CONNECTION_AGE_MS, AGE_MS),
    ARG(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, AGE_GRACE_MS),
};

static grpc_channel_args with_limit(const grpc_arg *fixed, size_t n, size_t receive_max, grpc_arg *args)
{
    const grpc_arg limit = ARG(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)receive_max);
    memcpy(args, fixed, n * sizeof(*fixed));
    args[n] = limit;
    return (grpc_channel_args){ n + 1, args };
}

/* How long one attempt to connect may take. A handshake computes on both sides, so it needs more time on a busy host,
 * and at a server to which many clients connect at once. gRPC gives an attempt the longer of two times, whatever their
 * names: the least one, and the time until its next attempt. Both are the same here. So gRPC connects again by itself
 * only when no call did so in the meantime (rpc_client.c). */
enum { CONNECT_MS = 2000, CONNECT_TLS_MS = 5000 };

grpc_channel_args rpc_channel_args(size_t receive_max, enum rpc_security security, grpc_arg args[RPC_CHANNEL_ARGS_MAX])
{
    const int attempt_ms = security == RPC_TLS ? CONNECT_TLS_MS : CONNECT_MS;
    const grpc_arg attempt[] = {
        ARG(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, attempt_ms),
        ARG(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, attempt_ms),
        ARG(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, attempt_ms),
    };
    _Static_assert(COUNT_OF(CHANNEL_ARGS) + COUNT_OF(attempt) < RPC_CHANNEL_ARGS_MAX, "room for the limits");
    grpc_channel_args list = with_limit(CHANNEL_ARGS, COUNT_OF(CHANNEL_ARGS), receive_max, args);
    memcpy(&args[list.num_args], attempt, sizeof(attempt));
    list.num_args += COUNT_OF(attempt);
    return list;
}

grpc_channel_args rpc_server_args(size_t receive_max, enum rpc_security security, grpc_arg args[RPC_SERVER_ARGS_MAX])
{
    _Static_assert(COUNT_OF(SERVER_ARGS) + COUNT_OF(TLS_SERVER_ARGS) < RPC_SERVER_ARGS_MAX, "room for the limit");
    grpc_channel_args list = with_limit(SERVER_ARGS, COUNT_OF(SERVER_ARGS), receive_max, args);
    if (security == RPC_TLS) {
        memcpy(&args[list.num_args], TLS_SERVER_ARGS, sizeof(TLS_SERVER_ARGS));
        list.num_args += COUNT_OF(TLS_SERVER_ARGS);
    }
    return list;
}

const struct rpc_credentials RPC_INSECURE = { .security = RPC_PLAINTEXT };

grpc_channel_credentials *rpc_channel_credentials(const struct rpc_credentials *c, const char *peer)
{
    switch (c->security) {
    case RPC_PLAINTEXT:
        return grpc_insecure_credentials_create();
    case RPC_TLS:
        return tls_channel_credentials(c->tls, peer);
    }
    abort(); /* credentials of no kind: a bug of ours */
}

grpc_server_credentials *rpc_server_credentials(const struct rpc_credentials *c)
{
    switch (c->security) {
    case RPC_PLAINTEXT:
        return grpc_insecure_server_credentials_create();
    case RPC_TLS:
        return tls_server_credentials(c->tls);
    }
    abort(); /* credentials of no kind: a bug of ours */
}
