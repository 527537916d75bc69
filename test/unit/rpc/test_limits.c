/* What a server tolerates from clients that break the rules: gRPC's own calls, made by hand. */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "rpc_case.h"

enum { CALL_MS = 200, BULK_MS = 600, PATIENCE_MS = 20000, ANSWER = 8 << 20 };

#define TOO_SLOW "the caller was too slow"

struct raw { /* a client that controls itself what it sends and reads */
    grpc_channel *channel;
    grpc_completion_queue *queue;
};
struct raw_call {
    grpc_call *call;
    bool ended; /* the status is there */
    grpc_status_code status;
    grpc_slice details;
    grpc_metadata_array initial, trailing;
};

static char eight_mib[ANSWER];

static void much_done(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static int answer_much(void *user, const struct rpc_caller *caller UNUSED, const struct rpc_message *q UNUSED,
                       struct rpc_reply *r, struct err *e UNUSED)
{
    r->pieces[r->npieces++] = (struct rpc_piece){ eight_mib, sizeof(eight_mib), much_done, user };
    return 0;
}

/* How long a request may take to come in, and an answer to be read. */
static void limited_start(struct rpc_case *c, atomic_int *done, int64_t call_ms, int64_t bulk_ms)
{
    struct err e;
    struct rpc_method methods[2];
    memset(c, 0, sizeof(*c));
    mutex_init(&c->lock);
    cond_init(&c->changed);
    methods[0] = (struct rpc_method){
        .path = "/t.T/Echo", .handle = case_echo, .no_header = true, .callers = RPC_MEMBERS, .user = c
    };
    methods[1] = (struct rpc_method){ .path = "/t.T/Much",
                                      .handle = answer_much,
                                      .no_header = true,
                                      .callers = RPC_MEMBERS,
                                      .user = done,
                                      .bulk = true };
    rpc_init();
    const struct rpc_server_options options = {
        .threads = 2, .payload_max = 1 << 20, .call_ms = call_ms, .bulk_ms = bulk_ms
    };
    ck_ok_e(rpc_server_start("127.0.0.1:0", &RPC_INSECURE, methods, COUNT_OF(methods), &options, &c->server, &e));
    snprintf(c->target, sizeof(c->target), "127.0.0.1:%d", rpc_server_port(c->server));
    c->channel =
        rpc_channel_new(c->target, &RPC_INSECURE, &(struct rpc_channel_options){ .payload_max = CASE_PAYLOAD_MAX });
}

static void raw_open(struct raw *r, const char *target, grpc_compression_algorithm compression)
{
    static char key[] = GRPC_COMPRESSION_CHANNEL_DEFAULT_ALGORITHM;
    grpc_arg arg = { .type = GRPC_ARG_INTEGER, .key = key, .value.integer = (int)compression };
    grpc_channel_args args = { 1, &arg };
    grpc_channel_credentials *credentials = grpc_insecure_credentials_create();
    r->channel = grpc_channel_create(target, credentials, &args);
    grpc_channel_credentials_release(credentials);
    r->queue = grpc_completion_queue_create_for_pluck(NULL);
}

static void raw_close(struct raw *r)
{
    grpc_channel_destroy(r->channel);
    grpc_completion_queue_shutdown(r->queue);
    grpc_completion_queue_destroy(r->queue);
}

/* Begins a call without a deadline. message NULL: it never comes. The answer is not read. */
static void raw_begin(struct raw *r, struct raw_call *k, const char *method, grpc_byte_buffer *message)
{
    grpc_slice path = grpc_slice_from_static_string(method);
    memset(k, 0, sizeof(*k));
    grpc_metadata_array_init(&k->initial);
    grpc_metadata_array_init(&k->trailing);
    k->call = grpc_channel_create_call(r->channel, NULL, GRPC_PROPAGATE_DEFAULTS, r->queue, path, NULL,
                                       gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_op send[] = { { .op = GRPC_OP_SEND_INITIAL_METADATA },
                       { .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message } };
    ck_assert_int_eq(grpc_call_start_batch(k->call, send, message != NULL ? 2 : 1, (char *)k + 1, NULL), GRPC_CALL_OK);
    grpc_op status[] = {
        { .op = GRPC_OP_RECV_INITIAL_METADATA, .data.recv_initial_metadata.recv_initial_metadata = &k->initial },
        { .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
          .data.recv_status_on_client = { .trailing_metadata = &k->trailing,
                                          .status = &k->status,
                                          .status_details = &k->details } },
    };
    ck_assert_int_eq(grpc_call_start_batch(k->call, status, COUNT_OF(status), k, NULL), GRPC_CALL_OK);
    if (message != NULL)
        grpc_byte_buffer_destroy(message);
}

static bool raw_has_ended(struct raw *r, struct raw_call *k, int64_t wait_ms)
{
    gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(wait_ms, GPR_TIMESPAN));
    k->ended = k->ended || grpc_completion_queue_pluck(r->queue, k, until, NULL).type == GRPC_OP_COMPLETE;
    return k->ended;
}

/* The server ends the call. */
static grpc_status_code raw_end(struct raw *r, struct raw_call *k, struct err *ret)
{
    gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(PATIENCE_MS, GPR_TIMESPAN));
    ck_assert_int_eq(grpc_completion_queue_pluck(r->queue, (char *)k + 1, until, NULL).type, GRPC_OP_COMPLETE);
    ck_assert(raw_has_ended(r, k, PATIENCE_MS));
    char *text = grpc_slice_to_c_string(k->details);
    snprintf(ret->msg, sizeof(ret->msg), "%s", text);
    free(text);
    grpc_slice_unref(k->details);
    grpc_metadata_array_destroy(&k->initial);
    grpc_metadata_array_destroy(&k->trailing);
    grpc_call_unref(k->call);
    return k->status;
}

static grpc_byte_buffer *bytes_of(const void *data, size_t n)
{
    grpc_slice s = grpc_slice_from_copied_buffer(data, n);
    grpc_byte_buffer *b = grpc_raw_byte_buffer_create(&s, 1);
    grpc_slice_unref(s);
    return b;
}

/* The server answers a call. On a slow machine it may end one that does not come within its limit: then the call is
 * repeated. */
static void check_serves(struct rpc_case *c, const char *method)
{
    struct err e = { .msg = "" };
    enum err_code code;
    ck_wait((code = case_call(c->channel, method, "\x08\x01", 2, PATIENCE_MS, &e)) != ERR_TIMEOUT ||
            strstr(e.msg, TOO_SLOW) == NULL);
    ck_assert_msg(code == ERR_NONE, "%s", e.msg);
}

/* As many as a connection may have: of each method as many as the server requests ahead. */
enum { WITHOUT_MESSAGE = 32 };

struct without_message {
    struct rpc_case c;
    struct raw r;
    struct raw_call calls[WITHOUT_MESSAGE];
    atomic_int done;
};

static void without_message_start(struct without_message *w, int64_t call_ms, int64_t bulk_ms)
{
    atomic_init(&w->done, 0);
    limited_start(&w->c, &w->done, call_ms, bulk_ms);
    raw_open(&w->r, w->c.target, GRPC_COMPRESS_NONE);
    for (size_t i = 0; i < COUNT_OF(w->calls); i++)
        raw_begin(&w->r, &w->calls[i], i % 2 == 0 ? "/t.T/Echo" : "/t.T/Much", NULL);
}

static void without_message_stop(struct without_message *w)
{
    raw_close(&w->r);
    case_stop(&w->c);
}

START_TEST(calls_without_a_message_hold_up_no_others)
{
    struct without_message w;
    struct err e = { .msg = "" };
    without_message_start(&w, PATIENCE_MS, PATIENCE_MS);
    check_serves(&w.c, "/t.T/Echo");
    check_serves(&w.c, "/t.T/Much");
    for (size_t i = 0; i < COUNT_OF(w.calls); i++) {
        ck_assert(!raw_has_ended(&w.r, &w.calls[i], 0));
        grpc_call_cancel(w.calls[i].call, NULL);
        ck_assert_int_eq(raw_end(&w.r, &w.calls[i], &e), GRPC_STATUS_CANCELLED);
    }
    without_message_stop(&w);
}
END_TEST

START_TEST(calls_without_a_message_are_ended)
{
    struct without_message w;
    struct err e = { .msg = "" };
    without_message_start(&w, CALL_MS, BULK_MS);
    for (size_t i = 0; i < COUNT_OF(w.calls); i++) {
        ck_assert_int_eq(raw_end(&w.r, &w.calls[i], &e), GRPC_STATUS_DEADLINE_EXCEEDED);
        ck_assert_str_eq(e.msg, TOO_SLOW);
    }
    check_serves(&w.c, "/t.T/Echo");
    without_message_stop(&w);
}
END_TEST

/* On a slow machine the server may end a call before the request is there: then another one is begun. */
static bool is_answered(struct raw *r, struct raw_call *call, const atomic_int *done)
{
    struct err e = { .msg = "" };
    if (raw_has_ended(r, call, 10) && atomic_load(done) == 0) {
        ck_assert_int_eq(raw_end(r, call, &e), GRPC_STATUS_DEADLINE_EXCEEDED);
        raw_begin(r, call, "/t.T/Much", bytes_of("", 0));
    }
    return atomic_load(done) != 0;
}

/* Its bytes are released while the caller still holds the call open. */
START_TEST(an_answer_that_nobody_reads_is_dropped)
{
    struct rpc_case c;
    struct raw r;
    struct raw_call call;
    struct err e = { .msg = "" };
    atomic_int done = 0;
    limited_start(&c, &done, CALL_MS, BULK_MS);
    raw_open(&r, c.target, GRPC_COMPRESS_NONE);
    raw_begin(&r, &call, "/t.T/Much", bytes_of("", 0));
    ck_wait(is_answered(&r, &call, &done));
    grpc_call_cancel(call.call, NULL);
    raw_end(&r, &call, &e);
    raw_close(&r);
    case_stop(&c);
}
END_TEST

/* The client does not report it as its own deadline. The answer may come in time: then the call is repeated. */
START_TEST(a_client_tells_that_it_was_too_slow)
{
    struct rpc_case c;
    struct err e = { .msg = "" };
    char wanted[128];
    enum err_code code;
    atomic_int done = 0;
    limited_start(&c, &done, 1, 1);
    ck_wait((code = case_call(c.channel, "/t.T/Much", "", 0, PATIENCE_MS, &e)) != ERR_NONE);
    ck_assert_int_eq(code, ERR_TIMEOUT);
    snprintf(wanted, sizeof(wanted), "%s ended the call /t.T/Much: " TOO_SLOW, c.target);
    ck_assert_str_eq(e.msg, wanted);
    case_stop(&c);
}
END_TEST

START_TEST(a_message_above_the_limit_is_refused)
{
    struct rpc_case c;
    struct err e = { .msg = "" };
    static char much[18 << 20];
    AUTO(rpc_message) *m = NULL;
    atomic_int done = 0;
    limited_start(&c, &done, PATIENCE_MS, PATIENCE_MS);
    const struct rpc_piece piece = { much, sizeof(much), NULL, NULL };
    ck_assert_int_eq(rpc_unary(c.channel, "/t.T/Echo", NULL, 0, &piece, 1, PATIENCE_MS, &m, &e), -1);
    ck_assert_msg(strstr(e.msg, "larger than max (18874373 vs. 17825792)") != NULL, "%s", e.msg);
    check_serves(&c, "/t.T/Echo");
    case_stop(&c);
}
END_TEST

/* 1,000 times as much may hide in it. */
START_TEST(a_compressed_message_is_refused)
{
    struct rpc_case c;
    struct raw r;
    struct raw_call call;
    struct err e = { .msg = "" };
    atomic_int done = 0;
    limited_start(&c, &done, PATIENCE_MS, PATIENCE_MS);
    raw_open(&r, c.target, GRPC_COMPRESS_GZIP);
    raw_begin(&r, &call, "/t.T/Echo", bytes_of(eight_mib, sizeof(eight_mib)));
    ck_assert_int_eq(raw_end(&r, &call, &e), GRPC_STATUS_INVALID_ARGUMENT);
    ck_assert_msg(strstr(e.msg, "compress") != NULL, "%s", e.msg);
    check_serves(&c, "/t.T/Echo");
    raw_close(&r);
    case_stop(&c);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("limits");
    TCase *t = tcase_create("limits");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, calls_without_a_message_hold_up_no_others);
    tcase_add_test(t, calls_without_a_message_are_ended);
    tcase_add_test(t, an_answer_that_nobody_reads_is_dropped);
    tcase_add_test(t, a_client_tells_that_it_was_too_slow);
    tcase_add_test(t, a_message_above_the_limit_is_refused);
    tcase_add_test(t, a_compressed_message_is_refused);
    suite_add_tcase(s, t);
    return s;
}
