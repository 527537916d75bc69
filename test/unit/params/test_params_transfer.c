/* The parts that a failed pull or push has already transferred are not requested again. */
#include "params_fixture.h"

#include "base/clock.h"

/* Answers in place of a ps of the world, counts the requests for each part, and fails on demand. */
enum { PARTS_MAX = 16 };
static struct gate {
    struct mutex lock;
    struct rpc_method real[2]; /* Pull, Push */
    int asked[2][PARTS_MAX];   /* by the first segment of the part */
    int64_t fail_at;           /* the part that fails, once; -1: none */
} gate;

static int through_gate(bool push, const struct rpc_caller *caller, const struct rpc_message *request,
                        struct rpc_reply *reply, struct err *e)
{
    struct rpc_method real;
    PROTOBUF_AUTO *message = NULL;
    if (codec_unpack(push ? &trainyard__v1__push_request__descriptor : &trainyard__v1__pull_request__descriptor,
                     request, &message, e) < 0)
        return -1;
    uint32_t first = push ? ((const Trainyard__V1__PushRequest *)(const void *)message)->first
                          : ((const Trainyard__V1__PullRequest *)(const void *)message)->first;
    ck_assert_uint_lt(first, PARTS_MAX);
    bool fails;
    {
        MUTEX_GUARD(&gate.lock);
        real = gate.real[push];
        gate.asked[push][first]++;
        fails = gate.fail_at == first;
        if (fails)
            gate.fail_at = -1;
    }
    return fails ? err_set(e, ERR_NOT_READY, "not now") : real.handle(real.user, caller, request, reply, e);
}

/* How the next calls are answered; all counts of requests are reset. */
static void gate_set(int64_t fail_at)
{
    MUTEX_GUARD(&gate.lock);
    gate.fail_at = fail_at;
    memset(gate.asked, 0, sizeof(gate.asked));
}

static int gated_pull(void *user UNUSED, const struct rpc_caller *caller, const struct rpc_message *request,
                      struct rpc_reply *reply, struct err *e)
{
    return through_gate(false, caller, request, reply, e);
}

static int gated_push(void *user UNUSED, const struct rpc_caller *caller, const struct rpc_message *request,
                      struct rpc_reply *reply, struct err *e)
{
    return through_gate(true, caller, request, reply, e);
}

struct gated {
    struct world w;
    float *vector, *grads;
    struct rpc_server *server;
    char host[32];
    struct params *p;
};

static void gate_lead_to(struct shard_service *service, struct rpc_method methods[SHARD_METHODS])
{
    shard_service_methods(service, methods);
    MUTEX_GUARD(&gate.lock);
    gate.real[0] = methods[PS_PULL];
    gate.real[1] = methods[PS_PUSH];
    methods[PS_PULL].handle = gated_pull;
    methods[PS_PUSH].handle = gated_push;
}

static void gated_open(struct gated *g)
{
    static const struct form ONE_AFAR = { "one ps afar", 1, false };
    struct rpc_method methods[SHARD_METHODS];
    struct err e;
    gate = (struct gate){ .fail_at = -1 };
    mutex_init(&gate.lock);
    world_open(&g->w, &ONE_AFAR, large_layout());
    g->vector = large_vector(g->w.layout, 4099);
    g->grads = large_vector(g->w.layout, 61);
    bring_up(&g->w, SGD, g->vector);
    gate_lead_to(g->w.service[0], methods);
    ck_ok_e(rpc_server_start("127.0.0.1:0", &RPC_INSECURE, methods, SHARD_METHODS,
                             &(struct rpc_server_options){ .threads = 2, .payload_max = PARAMETERS_PAYLOAD_MAX },
                             &g->server, &e));
    snprintf(g->host, sizeof(g->host), "127.0.0.1:%d", rpc_server_port(g->server));
    const struct params_identity id = { UID, "w", 9 };
    g->p = params_new_grpc(g->w.layout, g->w.placement, (char *[]){ g->host }, &id, &RPC_INSECURE);
    params_set_generation(g->p, 1);
}

static void gated_close(struct gated *g)
{
    params_free(g->p);
    rpc_server_free(g->server);
    free(g->vector);
    free(g->grads);
    world_close(&g->w);
}

/* Each part was requested `want` times, apart from the one of segment `but`, which was requested `want_but` times.
 * Returns how many parts there are. */
static int check_asked(bool push, int want, int64_t but, int want_but)
{
    int n = 0;
    MUTEX_GUARD(&gate.lock);
    for (int64_t i = 0; i < PARTS_MAX; i++) {
        int asked = gate.asked[push][i];
        if (asked == 0)
            continue;
        n++;
        ck_assert_msg(asked == (i == but ? want_but : want), "part %lld was asked for %d times", (long long)i, asked);
    }
    return n;
}

START_TEST(a_pull_goes_on_where_it_failed)
{
    struct gated g = { 0 };
    struct err e;
    gated_open(&g);
    gate_set(2);
    ck_fails(params_pull(g.p, CALL_MS, &e), ERR_NOT_READY, "not now");
    uint64_t moved = params_moved(g.p);
    ck_assert_uint_gt(moved, 0);
    ck_ok_e(params_pull_rest(g.p, CALL_MS, &e));
    ck_assert_uint_gt(params_moved(g.p), moved);
    int parts = check_asked(false, 1, 2, 2);
    ck_assert_int_ge(parts, 4);
    check_segments(g.w.layout, params_vector(g.p), g.vector);
    ck_ok_e(params_pull_rest(g.p, CALL_MS, &e)); /* the last pull succeeded: everything, like a plain pull */
    check_asked(false, 2, 2, 3);
    gate_set(2);
    ck_fails(params_pull(g.p, CALL_MS, &e), ERR_NOT_READY, "not now");
    gate_set(-1);
    ck_ok_e(params_pull(g.p, CALL_MS, &e));
    ck_assert_int_eq(check_asked(false, 1, -1, 0), parts);
    gated_close(&g);
}
END_TEST

START_TEST(a_push_goes_on_where_it_failed)
{
    struct gated g = { 0 };
    struct push_result result;
    struct err e;
    gated_open(&g);
    ck_ok_e(params_pull(g.p, CALL_MS, &e));
    gate_set(2);
    ck_fails(params_push(g.p, 7, g.grads, CALL_MS, &result, &e), ERR_NOT_READY, "not now");
    params_mark(g.p); /* of the next one, which is computed meanwhile: part 2 is not there yet */
    ck_ok_e(params_push(g.p, 7, g.grads, CALL_MS, &result, &e));
    ck_assert_int_ge(check_asked(true, 1, 2, 2), 4);
    ck_assert(!result.duplicate);
    ck_assert_int_eq(result.version_min, 1);
    ck_assert_int_eq(result.staleness, 0);
    size_t wrong = 0; /* an assertion for each value would be a message of 50 bytes for each */
    for (size_t i = 0; i < 4700007; i++)
        if (i < 3000000 || i >= 3000016)
            wrong += params_vector(g.p)[i] != g.vector[i] - 0.5f * g.grads[i];
    ck_assert_uint_eq(wrong, 0);
    ck_ok_e(params_push(g.p, 8, g.grads, CALL_MS, &result, &e));
    ck_assert_int_eq(result.staleness, 1);
    check_asked(true, 2, 2, 3);
    ck_ok_e(params_push(g.p, 8, g.grads, CALL_MS, &result, &e)); /* it had succeeded: everything again, as always */
    ck_assert(result.duplicate);
    check_asked(true, 3, 2, 4);
    gated_close(&g);
}
END_TEST

START_TEST(another_process_is_asked_for_everything)
{
    struct gated g = { 0 };
    struct rpc_method methods[SHARD_METHODS];
    struct err e;
    gated_open(&g);
    gate_set(2);
    ck_fails(params_pull(g.p, CALL_MS, &e), ERR_NOT_READY, "not now");
    int port = rpc_server_port(g.w.server[0]);
    auto_free float *other = large_vector(g.w.layout, 17);
    stop_ps(&g.w, 0);
    start_ps(&g.w, 0, 777, port);
    bring_up(&g.w, SGD, other);
    gate_lead_to(g.w.service[0], methods);
    ck_fails(params_pull_rest(g.p, CALL_MS, &e), ERR_FENCED, "restarted");
    params_set_generation(g.p, 2);
    params_set_generation(g.w.chief, 2);
    ck_ok_e(params_adopt(g.w.chief, 0, CALL_MS, &e));
    gate_set(-1);
    ck_ok_e(params_pull_rest(g.p, CALL_MS, &e));
    ck_assert_int_ge(check_asked(false, 1, -1, 0), 4);
    check_segments(g.w.layout, params_vector(g.p), other);
    gated_close(&g);
}
END_TEST

struct watched {
    int64_t began_ms; /* before the pull */
    int calls;
    char told[200];
};

static int watch_long(void *user, int64_t since_ms, const char *progress, struct err *e)
{
    struct watched *w = user;
    ck_assert_int_ge(since_ms, w->began_ms);
    w->calls++;
    str_fmt(w->told, sizeof(w->told), "%s", progress);
    return err_set(e, ERR_STOPPED, "enough");
}

START_TEST(a_pull_is_watched_when_it_takes_long)
{
    struct gated g = { 0 };
    struct err e;
    gated_open(&g);
    struct watched w = { .began_ms = clock_ms() };
    params_watch(g.p, 3600000, watch_long, &w);
    ck_ok_e(params_pull(g.p, CALL_MS, &e));
    ck_assert_int_eq(w.calls, 0);
    params_watch(g.p, 0, watch_long, &w);
    ck_fails(params_pull(g.p, CALL_MS, &e), ERR_STOPPED, "enough");
    ck_assert_int_eq(w.calls, 1);
    ck_assert_msg(str_starts(w.told, "ps-0 (127.0.0.1:") && strstr(w.told, " MiB of 17.9 MiB pulled") != NULL, "%s",
                  w.told);
    params_watch(g.p, 0, NULL, NULL);
    ck_ok_e(params_pull_rest(g.p, CALL_MS, &e));
    check_segments(g.w.layout, params_vector(g.p), g.vector);
    gated_close(&g);
}
END_TEST

static bool has_versions(struct gated *g, int64_t least, int64_t most)
{
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(g->w.shard[0], &info);
    return info.version_min == least && info.version_max == most;
}
/* Waits until these are the smallest and the largest version of the ps's segments. */
static void await_versions(struct gated *g, int64_t least, int64_t most)
{
    ck_wait(has_versions(g, least, most));
}

/* The complete part of a gradient is applied while the rest is computed. The new values are visible when the push
 * ends. */
START_TEST(a_push_begins_with_the_last_layers)
{
    struct gated g = { 0 };
    struct push_result result;
    struct err e;
    gated_open(&g);
    ck_ok_e(params_pull(g.p, CALL_MS, &e));
    const struct segment_spec *first_of_b = &g.w.layout->segments[0];
    while (first_of_b->variable == 0)
        first_of_b++;
    params_push_early(g.p, 7, g.grads, first_of_b->offset, CALL_MS);
    await_versions(&g, 0, 1);
    ck_assert_int_eq(gate.asked[true][0], 0); /* the first layer was not sent */
    check_segments(g.w.layout, params_vector(g.p), g.vector);
    ck_ok_e(params_push(g.p, 7, g.grads, CALL_MS, &result, &e));
    ck_assert_int_ge(check_asked(true, 1, -1, 0), 4);
    ck_assert(!result.duplicate);
    ck_assert_int_eq(result.version_min, 1);
    ck_assert_int_eq(result.staleness, 0);
    ck_ok_e(params_pull(g.w.worker, CALL_MS, &e));
    check_segments(g.w.layout, params_vector(g.p), params_vector(g.w.worker));
    gated_close(&g);
}
END_TEST

START_TEST(a_push_that_was_begun_may_be_given_up)
{
    struct gated g = { 0 };
    struct push_result result;
    struct err e;
    gated_open(&g);
    ck_ok_e(params_pull(g.p, CALL_MS, &e));
    params_push_early(g.p, 7, g.grads, g.w.layout->segments[1].offset, CALL_MS);
    await_versions(&g, 0, 1);
    ck_ok_e(params_push(g.p, 8, g.grads, CALL_MS, &result, &e)); /* another ordinal */
    await_versions(&g, 1, 2);
    ck_ok_e(params_push(g.p, 7, g.grads, CALL_MS, &result, &e)); /* only what it lacked, once */
    await_versions(&g, 2, 2);
    gated_close(&g);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("params: transfer");
    TCase *t = tcase_create("progress");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_pull_goes_on_where_it_failed);
    tcase_add_test(t, a_push_goes_on_where_it_failed);
    tcase_add_test(t, another_process_is_asked_for_everything);
    tcase_add_test(t, a_pull_is_watched_when_it_takes_long);
    tcase_add_test(t, a_push_begins_with_the_last_layers);
    tcase_add_test(t, a_push_that_was_begun_may_be_given_up);
    suite_add_tcase(s, t);
    return s;
}
