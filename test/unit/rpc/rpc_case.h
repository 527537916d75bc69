/* rpc_case - shared by the tests of calls: a server on a free port with methods for tests.
 *
 *     /t.T/Echo    answers head and payload as they came
 *     /t.T/Fail    head is the number of an error code (one byte): fails with it and "as asked"
 *     /t.T/Block   waits for case_release()
 *     /t.T/Again   answers "x" when `ready`; else fails with ERR_PENDING, to be handled again (rpc_reply.again_ms)
 */
#ifndef TRAINYARD_TEST_RPC_CASE_H
#define TRAINYARD_TEST_RPC_CASE_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "check_main.h"
#include "rpc/rpc.h"

enum { CASE_PAYLOAD_MAX = 64 << 20, CASE_WAITING_MAX = 60 };
struct rpc_case {
    struct rpc_server *server;
    struct rpc_channel *channel;
    char target[32];
    struct mutex lock;
    struct cond changed;
    bool released;
    int blocked;                             /* handlers that wait in Block */
    atomic_int pieces_done;                  /* done() calls of the answers of Echo and Again */
    atomic_int handled;                      /* calls of Again's handler, and what the last one got: */
    atomic_size_t again_head, again_payload; /* bytes */
    atomic_bool again;
    atomic_uint again_ms;
    atomic_bool ready;
    atomic_bool blocks; /* Again, handled again, blocks like Block */
    atomic_bool wakes;  /* Again becomes ready, and wakes the server, after its handler found that it was not */
};

static inline void case_piece_done(void *user)
{
    void **owned = user; /* the counter, then the bytes */
    atomic_fetch_add((atomic_int *)owned[0], 1);
    free(owned);
}

static inline int case_echo(void *user, const struct rpc_caller *caller UNUSED, const struct rpc_message *q,
                            struct rpc_reply *r, struct err *e)
{
    struct rpc_case *c = user;
    size_t n = rpc_message_payload_size(q), total;
    void **owned = NULL;
    if (size_add(n, sizeof(*owned), &total, e) < 0 || mem_alloc(total, "echo", (void **)&owned, e) < 0)
        return -1;
    owned[0] = &c->pieces_done;
    if (!rpc_message_copy(q, 0, owned + 1, n))
        abort();
    size_t head;
    const void *p = rpc_message_head(q, &head);
    buf_add(&r->head, p, head);
    r->pieces[r->npieces++] = (struct rpc_piece){ owned + 1, n, case_piece_done, owned };
    return 0;
}

static inline int case_fail(void *user UNUSED, const struct rpc_caller *caller UNUSED, const struct rpc_message *q,
                            struct rpc_reply *r UNUSED, struct err *e)
{
    size_t n;
    const unsigned char *p = rpc_message_head(q, &n);
    return err_set(e, (enum err_code)p[1], "as asked: 100 %% \xc3\xa9\n");
}

static inline int case_block(void *user, const struct rpc_caller *caller UNUSED, const struct rpc_message *q UNUSED,
                             struct rpc_reply *r UNUSED, struct err *e UNUSED)
{
    struct rpc_case *c = user;
    MUTEX_GUARD(&c->lock);
    c->blocked++;
    cond_broadcast(&c->changed);
    while (!c->released)
        cond_wait(&c->changed, &c->lock);
    return 0;
}

static inline int case_again(void *user, const struct rpc_caller *caller, const struct rpc_message *q,
                             struct rpc_reply *r, struct err *e)
{
    struct rpc_case *c = user;
    size_t head;
    if (r->again && atomic_load(&c->blocks))
        (void)!case_block(c, caller, q, r, e);
    (void)rpc_message_head(q, &head);
    atomic_store(&c->again_head, head);
    atomic_store(&c->again_payload, rpc_message_payload_size(q));
    atomic_store(&c->again, r->again);
    void **owned = xmalloc(2 * sizeof(*owned));
    owned[0] = &c->pieces_done;
    owned[1] = NULL;
    r->pieces[r->npieces++] = (struct rpc_piece){ "x", 1, case_piece_done, owned };
    bool ready = atomic_load(&c->ready);
    if (atomic_load(&c->wakes)) {
        atomic_store(&c->ready, true);
        rpc_server_wake(c->server);
    }
    atomic_fetch_add(&c->handled, 1);
    if (ready)
        return 0;
    r->again_ms = atomic_load(&c->again_ms);
    return err_set(e, ERR_PENDING, "not there yet");
}

static inline void case_release(struct rpc_case *c)
{
    MUTEX_GUARD(&c->lock);
    c->released = true;
    cond_broadcast(&c->changed);
}

static inline void case_wait_blocked(struct rpc_case *c, int n)
{
    MUTEX_GUARD(&c->lock);
    while (c->blocked < n)
        cond_wait(&c->changed, &c->lock);
}

static inline void case_serve(struct rpc_case *c, const char *address, int threads)
{
    struct err e;
    const struct rpc_server_options options = { .threads = threads,
                                                .payload_max = CASE_PAYLOAD_MAX,
                                                .waiting_max = CASE_WAITING_MAX };
    const struct rpc_method methods[] = {
        { .path = "/t.T/Echo",
          .handle = case_echo,
          .no_header = true,
          .callers = RPC_MEMBERS,
          .user = c,
          .bulk = true },
        { .path = "/t.T/Fail", .handle = case_fail, .no_header = true, .callers = RPC_MEMBERS, .user = c },
        { .path = "/t.T/Block", .handle = case_block, .no_header = true, .callers = RPC_MEMBERS, .user = c },
        { .path = "/t.T/Again", .handle = case_again, .no_header = true, .callers = RPC_MEMBERS, .user = c },
    };
    ck_ok_e(rpc_server_start(address, &RPC_INSECURE, methods, COUNT_OF(methods), &options, &c->server, &e));
}

static inline void case_start(struct rpc_case *c, int threads, int lanes)
{
    memset(c, 0, sizeof(*c));
    rpc_init();
    mutex_init(&c->lock);
    cond_init(&c->changed);
    case_serve(c, "127.0.0.1:0", threads);
    snprintf(c->target, sizeof(c->target), "127.0.0.1:%d", rpc_server_port(c->server));
    c->channel = rpc_channel_new(c->target, &RPC_INSECURE,
                                 &(struct rpc_channel_options){ .lanes = lanes, .payload_max = CASE_PAYLOAD_MAX });
}

static inline void case_stop(struct rpc_case *c)
{
    rpc_channel_free(c->channel);
    rpc_server_free(c->server);
    cond_fini(&c->changed);
    mutex_fini(&c->lock);
    rpc_shutdown();
}

/* 0, or the code of the error, which is stored in e. */
static inline enum err_code case_call(struct rpc_channel *channel, const char *method, const char *head, size_t n,
                                      int64_t deadline_ms, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    return rpc_unary(channel, method, head, n, NULL, 0, deadline_ms, &m, e) == 0 ? ERR_NONE : e->code;
}

#endif
