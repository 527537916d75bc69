#include "params/shard_service_internal.h"
#include "params_fixture.h"

#include "base/clock.h"
#include "shard/shard_internal.h"

static const struct form FORMS[] = { { "local", 0, false },
                                     { "one ps", 1, true },
                                     { "three ps", 3, true },
                                     { "one ps afar", 1, false },
                                     { "three ps afar", 3, false } };

/* What one ps answers. */
static int describe(struct params *p, size_t ps, int64_t deadline_ms, struct shard_info *ret, struct err *e)
{
    struct shard_info all[PS_MAX] = { 0 };
    struct err errors[PS_MAX];
    params_describe(p, deadline_ms, all, errors);
    *ret = all[ps];
    all[ps] = (struct shard_info){ 0 };
    for (size_t i = 0; i < PS_MAX; i++)
        shard_info_fini(&all[i]);
    return errors[ps].code == ERR_NONE ? 0 : err_set(e, errors[ps].code, "%s", errors[ps].msg);
}

/* ---- what every form does ---- */

START_TEST(values_come_as_restored)
{
    struct world w;
    float vector[80] = { 0 };
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    fill(w.layout, 1, vector);
    ck_fails(params_pull(w.worker, CALL_MS, &e), ERR_NOT_READY, w.form->nps > 0 ? "ps-0 (127.0.0.1:" : "");
    bring_up(&w, ADAM, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    check_segments(w.layout, params_vector(w.worker), vector);
    ck_ok_e(params_pull(w.chief, CALL_MS, &e));
    check_segments(w.layout, params_vector(w.chief), vector);
    world_close(&w);
}
END_TEST

/* Twenty pushes give, bit by bit, what one shard gives when they are pushed to it directly. */
START_TEST(pushes_are_those_of_the_shard)
{
    struct world w, plain;
    float vector[80] = { 0 }, grads[80] = { 0 };
    struct push_result result;
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    world_open(&plain, &FORMS[0], small_layout());
    fill(w.layout, 1, vector);
    bring_up(&w, ADAM, vector);
    bring_up(&plain, ADAM, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    for (int64_t ordinal = 0; ordinal < 20; ordinal++) {
        fill(w.layout, 50 + (uint64_t)ordinal, grads);
        ck_ok_e(params_push(plain.worker, ordinal, grads, CALL_MS, &result, &e));
        result = (struct push_result){ 0 };
        ck_ok_e(params_push(w.worker, ordinal, grads, CALL_MS, &result, &e));
        ck_assert(!result.duplicate);
        ck_assert_int_eq(result.version_min, ordinal + 1);
        ck_assert_int_eq(result.staleness, 0);
        check_segments(w.layout, params_vector(w.worker), params_vector(plain.worker));
    }
    world_close(&plain);
    world_close(&w);
}
END_TEST

START_TEST(a_push_again_is_a_duplicate)
{
    struct world w;
    float vector[80] = { 0 }, grads[80] = { 0 }, after[80];
    struct push_result result;
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    fill(w.layout, 1, vector);
    fill(w.layout, 2, grads);
    bring_up(&w, SGD, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    ck_ok_e(params_pull(w.other, CALL_MS, &e));
    ck_ok_e(params_push(w.worker, 4, grads, CALL_MS, &result, &e));
    memcpy(after, params_vector(w.worker), sizeof(after));
    ck_ok_e(params_push(w.other, 4, grads, CALL_MS, &result, &e));
    ck_assert(result.duplicate);
    check_segments(w.layout, params_vector(w.other), after);
    world_close(&w);
}
END_TEST

START_TEST(staleness_is_seen)
{
    struct world w;
    float vector[80] = { 0 }, grads[80] = { 0 };
    struct push_result result;
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    bring_up(&w, SGD, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    ck_ok_e(params_pull(w.other, CALL_MS, &e));
    for (int64_t ordinal = 0; ordinal < 3; ordinal++)
        ck_ok_e(params_push(w.worker, ordinal, grads, CALL_MS, &result, &e));
    ck_ok_e(params_push(w.other, 3, grads, CALL_MS, &result, &e));
    ck_assert_int_eq(result.staleness, 3);
    ck_assert_int_eq(result.version_min, 4);
    ck_ok_e(params_push(w.other, 4, grads, CALL_MS, &result, &e));
    ck_assert_int_eq(result.staleness, 0);
    struct shard_info info = { 0 };
    ck_ok_e(describe(w.chief, 0, CALL_MS, &info, &e));
    ck_assert_uint_eq(info.staleness_sum, 3);
    ck_assert_uint_eq(info.staleness_max, 3);
    shard_info_fini(&info);
    world_close(&w);
}
END_TEST

/* A gradient computed while another push was in flight comes from the values before that push. */
START_TEST(staleness_from_the_mark)
{
    struct world w;
    float vector[80] = { 0 }, grads[80] = { 0 };
    struct push_result result;
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    bring_up(&w, SGD, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    for (int64_t ordinal = 0; ordinal < 4; ordinal++) {
        ck_ok_e(params_push_start(w.worker, ordinal, grads, false, CALL_MS, &e));
        params_mark(w.worker);
        ck_ok_e(params_push_finish(w.worker, &result, &e));
        ck_assert_int_eq(result.staleness, w.form->nps > 0 && ordinal > 0);
    }
    ck_ok_e(params_push(w.worker, 4, grads, CALL_MS, &result, &e));
    ck_ok_e(params_push(w.worker, 5, grads, CALL_MS, &result, &e)); /* a mark is for one push */
    ck_assert_int_eq(result.staleness, 0);
    world_close(&w);
}
END_TEST

START_TEST(two_halves_of_a_push)
{
    struct world w;
    float vector[80] = { 0 }, grads[80] = { 0 };
    struct push_result result;
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    bring_up(&w, COUNTING, vector);
    ck_fails(params_push_finish(w.worker, &result, &e), ERR_INTERNAL, "no push");
    ck_ok_e(params_push_start(w.worker, 0, grads, false, CALL_MS, &e));
    ck_fails(params_push_start(w.worker, 1, grads, false, CALL_MS, &e), ERR_INTERNAL, "in flight");
    ck_ok_e(params_push_finish(w.worker, &result, &e));
    ck_float(params_vector(w.worker)[0], 1);
    ck_ok_e(params_push_start(w.other, 1, grads, false, CALL_MS, &e)); /* left in flight: freed with the rest */
    world_close(&w);
}
END_TEST

START_TEST(older_generations_are_fenced)
{
    struct world w;
    float vector[80] = { 0 }, grads[80] = { 0 };
    struct push_result result;
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    bring_up(&w, COUNTING, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    ck_ok_e(params_push(w.worker, 0, grads, CALL_MS, &result, &e));

    params_set_generation(w.worker, 2); /* the worker is ahead of the ps */
    ck_fails(params_push(w.worker, 1, grads, CALL_MS, &result, &e), ERR_NOT_READY, "announce 2");
    params_set_generation(w.worker, 1);
    params_set_generation(w.chief, 2);
    for (size_t ps = 0; ps < MAX(w.form->nps, 1); ps++)
        ck_ok_e(params_adopt(w.chief, ps, CALL_MS, &e));
    ck_fails(params_push(w.worker, 1, grads, CALL_MS, &result, &e), ERR_FENCED, "generation 1 is over");
    ck_fails(params_pull(w.worker, CALL_MS, &e), ERR_FENCED, "generation 1 is over");
    params_set_generation(w.worker, 2);
    ck_assert_uint_eq(params_generation(w.worker), 2);
    ck_ok_e(params_push(w.worker, 1, grads, CALL_MS, &result, &e));
    ck_assert_int_eq(result.version_min, 2); /* the fenced one was not applied anywhere */
    ck_float(params_vector(w.worker)[0], 2);
    world_close(&w);
}
END_TEST

START_TEST(the_chief_sees_and_saves)
{
    struct world w;
    float vector[80] = { 0 }, grads[80] = { 0 };
    struct push_result result;
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    fill(w.layout, 1, vector);
    bring_up(&w, ADAM, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    for (int64_t i = 0; i < 3; i++)
        ck_ok_e(params_push(w.worker, i * 2, grads, CALL_MS, &result, &e));
    for (size_t ps = 0; ps < MAX(w.form->nps, 1); ps++) {
        AUTO_FINI(shard_info) info = { 0 };
        ck_ok_e(describe(w.chief, ps, CALL_MS, &info, &e));
        ck_assert_uint_eq(info.incarnation, 100 + ps);
        ck_assert_uint_eq(info.generation, 1);
        ck_assert_uint_eq(info.layout_hash, w.layout->hash);
        ck_assert_int_eq(info.state, SHARD_SERVING);
        ck_assert_int_eq(info.version_min, 3);
        ck_assert_int_eq(info.version_max, 3);
        ck_assert_uint_eq(info.pushes, 3);
        ck_assert_str_eq(info.job_uid, UID);
        ck_assert(ordinal_set_has(&info.applied, 4) && !ordinal_set_has(&info.applied, 3));
        for (size_t i = 0; i < w.placement->n[ps]; i++) {
            const struct segment_spec *s = &w.layout->segments[w.placement->ids[ps][i]];
            AUTO_FINI(shard_snapshot) snapshot = { 0 };
            ck_ok_e(params_snapshot(w.chief, ps, s->id, CALL_MS, &snapshot, &e));
            ck_assert_int_eq(snapshot.version, 3);
            ck_assert_int_eq(snapshot.slots, s->kind == VAR_TRAINABLE ? 2 : 0);
            ck_assert_uint_eq(snapshot.count, s->count);
            ck_assert(ordinal_set_equal(&snapshot.applied, &info.applied));
            ck_assert_mem_eq(snapshot.data, params_vector(w.worker) + s->offset, s->count * sizeof(float));
        }
    }
    world_close(&w);
}
END_TEST

START_TEST(finished_is_finished)
{
    struct world w;
    float vector[80] = { 0 };
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    bring_up(&w, SGD, vector);
    for (size_t ps = 0; ps < MAX(w.form->nps, 1); ps++)
        ck_ok_e(params_finish(w.chief, ps, 12, CALL_MS, &e));
    ck_fails(params_pull(w.worker, CALL_MS, &e), ERR_REFUSED, "the job has finished");
    struct shard_info info = { 0 };
    ck_ok_e(describe(w.chief, 0, CALL_MS, &info, &e));
    ck_assert_int_eq(info.state, SHARD_FINISHED);
    shard_info_fini(&info);
    world_close(&w);
}
END_TEST

START_TEST(large_vectors)
{
    struct world w;
    world_open(&w, &FORMS[_i], large_layout());
    auto_free float *vector = large_vector(w.layout, 4099), *grads = large_vector(w.layout, 61);
    struct push_result result;
    struct err e;
    bring_up(&w, SGD, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    check_segments(w.layout, params_vector(w.worker), vector);
    for (int64_t ordinal = 0; ordinal < 3; ordinal++)
        ck_ok_e(params_push(w.worker, ordinal, grads, CALL_MS, &result, &e));
    ck_assert_int_eq(result.version_min, 3);
    for (size_t s = 0; s < w.layout->n; s++) {
        const struct segment_spec *g = &w.layout->segments[s];
        for (size_t i = g->offset; i < g->offset + g->count; i++)
            if (params_vector(w.worker)[i] != vector[i] - (g->kind == VAR_CONST ? 0 : 1.5f * grads[i]))
                ck_abort_msg("element %zu of segment %zu", i - g->offset, s);
    }
    struct shard_info info = { 0 };
    ck_ok_e(describe(w.chief, 0, CALL_MS, &info, &e));
    ck_assert_uint_eq(info.pushes, 3); /* also when they came in parts */
    shard_info_fini(&info);
    world_close(&w);
}
END_TEST

/* ---- what can only happen between processes ---- */

static const struct form *const REMOTE = &FORMS[1];

START_TEST(a_restarted_ps_is_noticed)
{
    struct world w;
    float vector[80] = { 0 }, grads[80] = { 0 };
    struct push_result result;
    struct err e;
    world_open(&w, REMOTE, small_layout());
    bring_up(&w, COUNTING, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    int port = rpc_server_port(w.server[0]);
    stop_ps(&w, 0);
    /* the first call may end with its connection */
    ck_wait(params_push(w.worker, 0, grads, CALL_MS, &result, &e) < 0 && e.code == ERR_LOST &&
            strstr(e.msg, ") cannot be reached") != NULL);
    start_ps(&w, 0, 777, port);
    bring_up(&w, COUNTING, vector); /* in the same generation, as no chief does: acks must not count all the same */
    do                              /* the connection comes back by itself */
        ck_assert_int_eq(params_push(w.worker, 0, grads, CALL_MS, &result, &e), -1);
    while (e.code == ERR_LOST);
    ck_assert_msg(e.code == ERR_FENCED && strstr(e.msg, "restarted") != NULL, "%s", e.msg);
    params_set_generation(w.worker, 2);
    params_set_generation(w.chief, 2);
    ck_ok_e(params_adopt(w.chief, 0, CALL_MS, &e));
    ck_ok_e(params_push(w.worker, 0, grads, CALL_MS, &result, &e));
    ck_assert(result.duplicate); /* it had been applied when the ack was dropped */
    world_close(&w);
}
END_TEST

/* A push that timed out may still be on its way inside the ps; it must not see the gradient of the next one. Here it
 * reads its memory only when the next push has been answered. */
static struct delay {
    struct mutex lock;
    struct cond changed;
    bool hold;
    struct rpc_method real;
} delay;

static int delayed_push(void *user, const struct rpc_caller *caller, const struct rpc_message *request,
                        struct rpc_reply *reply, struct err *e)
{
    struct delay *d = user;
    {
        MUTEX_GUARD(&d->lock);
        while (d->hold)
            cond_wait(&d->changed, &d->lock);
    }
    return d->real.handle(d->real.user, caller, request, reply, e);
}

static void hold(bool on)
{
    MUTEX_GUARD(&delay.lock);
    delay.hold = on;
    cond_broadcast(&delay.changed);
}

static bool is_applied(struct shard *shard)
{
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(shard, &info);
    return info.version_min >= 1;
}

/* A worker computes with the vector while a push is in flight: what the ps answers may not show before it is finished.
 */
START_TEST(values_of_a_push_in_flight_show_when_it_is_finished)
{
    struct world w;
    float vector[80] = { 0 }, before[80], *grads;
    struct push_result result;
    struct err e;
    world_open(&w, &FORMS[_i], small_layout());
    fill(w.layout, 1, vector);
    bring_up(&w, SGD, vector);
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    ck_ok_e(params_gradients(w.worker, 0, &grads, &e));
    fill(w.layout, 2, grads);
    memcpy(before, params_vector(w.worker), sizeof(before));
    ck_ok_e(params_push_start(w.worker, 0, grads, false, CALL_MS, &e));
    ck_wait(is_applied(w.shard[0]));
    check_segments(w.layout, params_vector(w.worker), before);
    ck_ok_e(params_push_finish(w.worker, &result, &e));
    ck_ok_e(params_pull(w.other, CALL_MS, &e));
    check_segments(w.layout, params_vector(w.worker), params_vector(w.other));
    ck_assert_double_ne((double)params_vector(w.worker)[0], (double)before[0]);
    world_close(&w);
}
END_TEST

/* The ps is held up before it applies: the message (0), or what was posted in shared memory (1). */
static void hold_push(struct world *w, bool shared, bool on)
{
    if (!shared)
        hold(on);
    else if (on)
        pthread_rwlock_wrlock(&w->shard[0]->gate);
    else
        pthread_rwlock_unlock(&w->shard[0]->gate);
}

START_TEST(a_late_push_has_its_own_gradient)
{
    bool shared = _i == 1;
    struct world w = { 0 };
    struct rpc_method methods[SHARD_METHODS];
    float vector[80] = { 0 }, ones[80], hundreds[80];
    struct push_result result;
    struct err e;
    for (size_t i = 0; i < 80; i++)
        hundreds[i] = 100 * (ones[i] = 1);
    world_open(&w, REMOTE, small_layout());
    bring_up(&w, SGD, vector);
    mutex_init(&delay.lock);
    cond_init(&delay.changed);
    AUTO(shard_service) *late = shard_service_new(w.shard[0]);
    shard_service_share(late, shared);
    atomic_store(&late->share_max, SIZE_MAX); /* no Init request reaches this one */
    shard_service_methods(late, methods);
    delay.real = methods[PS_PUSH];
    methods[PS_PUSH].handle = delayed_push;
    methods[PS_PUSH].user = &delay;
    struct rpc_server *server = NULL;
    ck_ok_e(rpc_server_start("127.0.0.1:0", &RPC_INSECURE, methods, SHARD_METHODS,
                             &(struct rpc_server_options){ .threads = 3, .payload_max = PARAMETERS_PAYLOAD_MAX },
                             &server, &e));
    char host[32];
    snprintf(host, sizeof(host), "127.0.0.1:%d", rpc_server_port(server));
    struct params *p = params_new_grpc(w.layout, w.placement, (char *[]){ host },
                                       &(struct params_identity){ UID, "w", 9 }, &RPC_INSECURE);
    params_set_generation(p, 1);

    ck_ok_e(params_push(p, 0, ones, CALL_MS, &result, &e)); /* 0 - 0.5 */
    ck_assert_uint_eq(shard_service_shared(late), shared);
    hold_push(&w, shared, true);
    ck_fails(params_push(p, 1, ones, 100, &result, &e), ERR_TIMEOUT, "ps-0");
    ck_ok_e(params_push_start(p, 2, hundreds, false, CALL_MS,
                              &e)); /* its gradient is in memory: the late push must not read it */
    hold_push(&w, shared, false);
    ck_ok_e(params_push_finish(p, &result, &e));
    ck_ok_e(params_push(p, 1, ones, CALL_MS, &result, &e)); /* whether it had been applied or not */
    ck_float(params_vector(p)[0], -0.5 - 50 - 0.5);
    ck_assert_int_eq(result.version_min, 3);
    params_free(p);
    rpc_server_free(server);
    shard_service_free(TAKE(late)); /* before its shard */
    world_close(&w);
}
END_TEST

/* A ps that sends invalid answers must do no more harm than an error. */
struct liar {
    int lie;
};

static int lie_pull(void *user, const struct rpc_caller *caller, const struct rpc_message *request,
                    struct rpc_reply *reply, struct err *e)
{
    static float values[28];
    static int64_t versions[6];
    const struct liar *liar = user;
    (void)caller, (void)request, (void)e;
    Trainyard__V1__PullReply r = TRAINYARD__V1__PULL_REPLY__INIT;
    r.incarnation = 5;
    r.generation = liar->lie == 0 ? 2 : 1;
    r.versions = versions;
    r.n_versions = liar->lie == 1 ? 6 : 5;
    codec_pack(&r.base, &reply->head);
    if (liar->lie == 4)
        buf_add(&reply->head, "\xff", 1);
    size_t size = liar->lie == 2 ? sizeof(values) - 1 : liar->lie == 3 ? 0 : sizeof(values);
    reply->pieces[reply->npieces++] = (struct rpc_piece){ .data = values, .size = size };
    return 0;
}

START_TEST(nonsense_is_an_error)
{
    static const enum err_code WANT[] = { ERR_FENCED, ERR_INTERNAL, ERR_INTERNAL, ERR_INTERNAL, ERR_INPUT };
    AUTO(layout) *l = small_layout();
    AUTO(placement) *p = placement_new(l, PLACEMENT_GREEDY, 1);
    rpc_init();
    for (int i = 0; i < (int)COUNT_OF(WANT); i++) {
        struct liar liar = { .lie = i };
        struct rpc_method method = {
            .path = ps_method_path(PS_PULL), .handle = lie_pull, .user = &liar, .callers = RPC_MEMBERS
        };
        AUTO(rpc_server) *server = NULL;
        struct err e;
        ck_ok_e(rpc_server_start("127.0.0.1:0", &RPC_INSECURE, &method, 1, &(struct rpc_server_options){ .threads = 1 },
                                 &server, &e));
        char host[32];
        snprintf(host, sizeof(host), "127.0.0.1:%d", rpc_server_port(server));
        AUTO(params) *params =
            params_new_grpc(l, p, (char *[]){ host }, &(struct params_identity){ UID, "worker-0", 1 }, &RPC_INSECURE);
        params_set_generation(params, 1);
        ck_fails(params_pull(params, CALL_MS, &e), WANT[i], "ps-0");
    }
    rpc_shutdown();
}
END_TEST

/* Requests that none of our clients sends. */
START_TEST(bad_requests_are_refused)
{
    struct world w;
    float vector[80] = { 0 };
    struct rpc_method methods[SHARD_METHODS];
    struct err e;
    world_open(&w, REMOTE, small_layout());
    bring_up(&w, SGD, vector);
    shard_service_methods(w.service[0], methods);
    for (int change = 0; change < 6; change++) {
        static const enum err_code WANT[] = { ERR_REFUSED, ERR_REFUSED, ERR_INPUT, ERR_INPUT, ERR_INPUT, ERR_INPUT };
        Trainyard__V1__Header header;
        trainyard__v1__header__init(&header);
        header.job_uid = unconst(UID);
        header.generation = 1;
        int64_t versions[6] = { 0 };
        uint8_t bytes[28 * 4] = { 0 };
        Trainyard__V1__PushRequest q = TRAINYARD__V1__PUSH_REQUEST__INIT;
        q.header = change == 0 ? NULL : &header;
        q.element = change == 1 ? 2 : 1;
        q.versions = versions;
        q.n_versions = change == 2 ? 6 : 5;
        q.first = change == 3 ? 9 : 0;
        q.count = change == 4 ? UINT32_MAX : 0;
        q.payload = (ProtobufCBinaryData){ .data = bytes, .len = change == 5 ? 106 : 108 };
        AUTO_FINI(buf) packed = BUF_INIT;
        AUTO(rpc_message) *message = NULL;
        struct rpc_reply reply = { .head = BUF_INIT };
        codec_pack(&q.base, &packed);
        ck_ok_e(rpc_message_of(packed.data, packed.len, &message, &e));
        ck_fails(
            rpc_method_call(&methods[PS_PUSH], &(struct rpc_connection){ .leader = ROLE_CHIEF }, message, &reply, &e),
            WANT[change], "");
        buf_fini(&reply.head);
    }
    ck_ok_e(params_pull(w.worker, CALL_MS, &e));
    check_segments(w.layout, params_vector(w.worker), vector);
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("params");
    TCase *all = tcase_create("every form"), *remote = tcase_create("grpc");
    int n = (int)COUNT_OF(FORMS);
    tcase_set_timeout(all, 60);
    tcase_set_timeout(remote, 60);
    tcase_add_loop_test(all, values_come_as_restored, 0, n);
    tcase_add_loop_test(all, pushes_are_those_of_the_shard, 0, n);
    tcase_add_loop_test(all, a_push_again_is_a_duplicate, 0, n);
    tcase_add_loop_test(all, staleness_is_seen, 0, n);
    tcase_add_loop_test(all, staleness_from_the_mark, 0, n);
    tcase_add_loop_test(all, two_halves_of_a_push, 0, n);
    tcase_add_loop_test(all, older_generations_are_fenced, 0, n);
    tcase_add_loop_test(all, the_chief_sees_and_saves, 0, n);
    tcase_add_loop_test(all, finished_is_finished, 0, n);
    tcase_add_loop_test(all, large_vectors, 0, n);
    tcase_add_test(remote, a_restarted_ps_is_noticed);
    tcase_add_loop_test(remote, values_of_a_push_in_flight_show_when_it_is_finished, 1, (int)COUNT_OF(FORMS));
    tcase_add_loop_test(remote, a_late_push_has_its_own_gradient, 0, 2);
    tcase_add_test(remote, nonsense_is_an_error);
    tcase_add_test(remote, bad_requests_are_refused);
    suite_add_tcase(s, all);
    suite_add_tcase(s, remote);
    return s;
}
