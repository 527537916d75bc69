/* The gradients of the last layers are on their way to the other members while those of the first layers are not
 * computed. The log has the order of what happens. The backward pass goes on only when the others have received what is
 * complete, so a gradient that is sent later is waited for in vain. */
#include "collective/collective_fixture.h"
#include "shard/job_fixture.h"

#include "collective/collective_internal.h"
#include "coord/coordinator.h"
#include "nn/metrics/metrics.h"
#include "train/strategy.h"

#define UNTOUCHED 1e9F /* in the memory of a gradient before it is computed */

enum { WAIT_MS = 20000 };

/* Layers of the model, members and batches of a step, and what must happen before the gradient is submitted. */
struct example {
    const char *layers;
    size_t members;
    int64_t group;
    const char *events;
};
static const struct example EXAMPLES[] = {
    { SMALL_LAYERS, 3, 4,
      "dense_1/bias is complete;worker-2 gets chunk 2;dense_1/kernel is complete;worker-1 gets chunk 1;"
      "dense/bias is complete;dense/kernel is complete;" },
    { SMALL_LAYERS, 2, 4,
      "dense_1/bias is complete;dense_1/kernel is complete;worker-1 gets chunk 1;dense/bias is complete;"
      "dense/kernel is complete;" },
    /* two members that send all to each other: more than one chunk of CHUNK_FLOATS */
    { "[{Dense: {units: 100000}}, {Dense: {units: 1}}]", 2, 2,
      "dense_1/bias is complete;dense_1/kernel is complete;worker-1 gets chunk 1;dense/bias is complete;"
      "dense/kernel is complete;" },
};

struct world;
struct receiver {
    struct world *world;
    size_t member;
    struct rpc_method transfer; /* of the collective */
};
struct world {
    const struct example *example;
    struct job_fixture job;
    struct groups groups;
    struct party party;
    struct params *params[MEMBERS];
    struct receiver receivers[MEMBERS];
    struct chunk_range *chunks;
    size_t nchunks;
    struct coordinator *coordinator;
    struct coordinator_client *coord;
    struct chief_client *chief;
    struct train_strategy *strategy;
    int applied;
    bool lockstep;

    struct mutex lock; /* of the following */
    struct buf events;
    size_t arrived; /* chunks, at other members */
};

/* ---- the members ---- */

static void note_arrival(struct receiver *r, const struct rpc_message *message)
{
    PROTOBUF_AUTO *request = NULL;
    struct err e = { 0 };
    ck_ok_e(codec_unpack(&trainyard__v1__transfer_request__descriptor, message, &request, &e));
    const Trainyard__V1__TransferRequest *q = (const void *)request;
    if (q->kind != TRAINYARD__V1__TRANSFER_KIND__TRANSFER_GRADIENT)
        return;
    MUTEX_GUARD(&r->world->lock);
    buf_printf(&r->world->events, "worker-%zu gets chunk %u;", r->member, q->index);
    r->world->arrived++;
}

static int on_transfer(void *user, const struct rpc_caller *caller, const struct rpc_message *message,
                       struct rpc_reply *reply, struct err *e)
{
    struct receiver *r = user;
    if (!reply->again)
        note_arrival(r, message);
    return r->transfer.handle(r->transfer.user, caller, message, reply, e);
}

static void serve(struct world *w, size_t i)
{
    struct party_member *m = &w->party.members[i];
    struct rpc_method methods[COLLECTIVE_METHODS];
    struct err e = { 0 };
    collective_methods(m->collective, methods);
    ck_assert_str_eq(methods[0].path, "/trainyard.v1.Peer/Transfer");
    w->receivers[i] = (struct receiver){ .world = w, .member = i, .transfer = methods[0] };
    methods[0].handle = on_transfer;
    methods[0].user = &w->receivers[i];
    ck_ok_e(rpc_server_start("127.0.0.1:0", &RPC_INSECURE, methods, COLLECTIVE_METHODS,
                             &(struct rpc_server_options){ .threads = 2, .payload_max = PARAMETERS_PAYLOAD_MAX },
                             &m->server, &e));
    collective_serve(m->collective, m->server);
    str_fmt(m->address, sizeof(m->address), "127.0.0.1:%d", rpc_server_port(m->server));
    m->channel = rpc_channel_new(m->address, &RPC_INSECURE, NULL);
}

static void member_open(struct world *w, size_t i, const float *values)
{
    struct party_member *m = &w->party.members[i];
    struct err e = { 0 };
    str_fmt(m->name, sizeof(m->name), "worker-%zu", i);
    m->incarnation = 100 + i;
    m->shard = shard_new(m->incarnation);
    shard_take_sums(m->shard);
    const struct params_identity id = { .job_uid = UID, .sender = m->name, .incarnation = m->incarnation };
    w->params[i] = params_new_local(w->job.layout, m->shard, &id);
    const struct collective_config config = { .layout = w->job.layout,
                                              .shard = m->shard,
                                              .name = m->name,
                                              .incarnation = m->incarnation,
                                              .credentials = &RPC_INSECURE };
    ck_ok_e(collective_new(&config, &m->collective, &e));
    serve(w, i);
    begin(m->shard, &CHIEF, &w->groups, w->job.layout, SGD, values);
}

/* ---- the chief, as far as a strategy asks it ---- */

static void chief_open(struct world *w)
{
    struct err e = { 0 };
    const struct coordinator_config coordinator = { .model = w->job.model,
                                                    .job_uid = UID,
                                                    .incarnation = 1,
                                                    .space = w->job.space,
                                                    .layout_hash = w->job.layout->hash,
                                                    .ps_count = 1,
                                                    .batches_per_epoch = JOB_BATCHES,
                                                    .total = JOB_BATCHES,
                                                    .lease_ms = WAIT_MS,
                                                    .heartbeat_ms = WAIT_MS };
    w->coordinator = coordinator_new(&coordinator);
    coordinator_set(w->coordinator, JOB_TRAINING, CHIEF.generation, "");
    coordinator_allow_below(w->coordinator, INT64_MAX);
    w->coord = coordinator_client_new_local(w->coordinator);
    const struct chief_client_config config = {
        .coordinator = w->coord,
        .width = metrics_width(w->job.model),
        .max_wait_ms = WAIT_MS,
        .identity = { .sender = { .job_uid = UID, .name = "worker-0", .role = ROLE_WORKER, .incarnation = 100 },
                      .space = w->job.space,
                      .shuffle_version = SHUFFLE_VERSION,
                      .layout_hash = w->job.layout->hash,
                      .ps_count = 1 }
    };
    ck_ok_e(chief_client_start(&config, &w->chief, &e));
}

static void count_applied(void *user, const struct train_step *step)
{
    (void)step;
    ((struct world *)user)->applied++;
}

static void no_read_ahead(void *user, struct train_step *step)
{
    (void)user, (void)step;
}

static void strategy_open(struct world *w)
{
    struct err e = { 0 };
    const struct strategy_config config = { .model = w->job.model,
                                            .space = &w->job.space,
                                            .group_size = w->groups.size,
                                            .params = w->params[0],
                                            .collective = w->party.members[0].collective,
                                            .chief = w->chief,
                                            .max_wait_ms = WAIT_MS,
                                            .lockstep = w->lockstep,
                                            .applied = count_applied,
                                            .in_flight = no_read_ahead,
                                            .user = w };
    w->strategy = strategy_new(STRATEGY_MULTI_WORKER_MIRRORED, &config);
    ck_ok_e(w->strategy->ops->open(w->strategy, &e));
}

static void world_open(struct world *w, const struct example *x, bool lockstep)
{
    *w = (struct world){ .example = x, .events = BUF_INIT, .lockstep = lockstep };
    mutex_init(&w->lock);
    rpc_init();
    job_open_layers(&w->job, x->layers, "SGD", "epochs: 1");
    w->groups = groups_of(&w->job.space, x->group);
    w->party.layout = w->job.layout;
    w->nchunks = view_chunks(w->job.layout->vector, x->members, x->group, &w->chunks);
    auto_free float *values = xcalloc(w->job.layout->vector, sizeof(*values));
    for (size_t i = 0; i < x->members; i++)
        member_open(w, i, values);
    start(&w->party, 1, 0, (1u << x->members) - 1);
    chief_open(w);
    strategy_open(w);
}

static void world_close(struct world *w)
{
    w->strategy->ops->close(w->strategy);
    /* The memory of its gradients is not read any more. */
    ck_assert(!w->lockstep || w->party.members[0].collective->lent.to == NULL);
    chief_client_free(w->chief);
    coordinator_client_free(w->coord);
    coordinator_free(w->coordinator);
    for (size_t i = 0; i < w->example->members; i++) {
        struct shard *shard = TAKE(w->party.members[i].shard);
        member_stop(&w->party, i);
        params_free(w->params[i]);
        shard_free(shard);
    }
    rpc_shutdown();
    free(w->chunks);
    buf_fini(&w->events);
    mutex_fini(&w->lock);
    job_close(&w->job);
}

/* ---- a step ---- */

/* Chunks that others add, and whose gradient is complete from the float `from` on. */
static size_t chunks_of_others(const struct world *w, size_t from)
{
    size_t n = 0;
    for (size_t i = 0; i < w->nchunks; i++)
        n += w->chunks[i].owner != 0 && w->chunks[i].from >= from;
    return n;
}

static size_t arrived(struct world *w)
{
    MUTEX_GUARD(&w->lock);
    return w->arrived;
}

static void check_untouched(const struct world *w, const struct train_step *step, size_t variable)
{
    const struct variable *v = model_variable(w->job.model, variable);
    for (size_t i = 0; i < v->count; i++)
        ck_assert_msg(step->grads[v->offset + i] == UNTOUCHED, "the gradient of %s is computed already", v->name);
}

/* Between two layers of the backward pass. */
static void gradient_ready(void *user, struct train_step *step, size_t variable)
{
    struct world *w = user;
    const struct variable *v = model_variable(w->job.model, variable);
    {
        MUTEX_GUARD(&w->lock);
        buf_printf(&w->events, "%s is complete;", v->name);
    }
    w->strategy->ops->gradient_ready(w->strategy, step, variable);
    if (v->offset == 0) /* the pass is over */
        return;
    ck_wait(arrived(w) >= chunks_of_others(w, v->offset));
    if (strncmp(v->name, "dense_1/", 8) == 0) {
        check_untouched(w, step, 0);
        check_untouched(w, step, 1);
    }
}

static struct train_step *begin_first_step(struct world *w)
{
    struct train_step *step;
    struct err e = { 0 };
    enum chief_client_next next;
    int64_t ordinal;
    ck_ok_e(chief_client_next(w->chief, &next, &ordinal, &e));
    ck_assert_int_eq(next, CHIEF_CLIENT_ORDINAL);
    ck_assert_int_eq(ordinal, 0);
    for (int rc; (rc = w->strategy->ops->begin_step(w->strategy, ordinal, &step, &e)) != 0;) /* the view begins */
        ck_assert_msg(rc == STEP_LATER, "%s", e.msg);
    ck_assert(step->by_variable); /* else gradients are not passed on before backward ends */
    for (size_t i = 0; i < w->job.layout->vector; i++)
        step->grads[i] = UNTOUCHED;
    return step;
}

START_TEST(the_first_gradients_are_sent_before_backward_ends)
{
    struct world w;
    struct err e = { 0 };
    AUTO(step_engine) *engine = NULL;
    world_open(&w, &EXAMPLES[_i], false);
    ck_ok_e(step_engine_new(
        &(struct step_engine_config){ .model = w.job.model, .dataset = w.job.train, .space = &w.job.space }, &engine,
        &e));
    struct train_step *step = begin_first_step(&w);
    ck_ok_e(step_engine_load(engine, step->ordinal, &e));
    ck_ok_e(step_engine_compute(engine, step, gradient_ready, &w, &e));
    {
        MUTEX_GUARD(&w.lock);
        ck_assert_str_eq(w.events.data, w.example->events);
    }
    ck_ok_e(w.strategy->ops->submit(w.strategy, step, &e));
    ck_assert_int_eq(w.applied, 1);
    ck_assert_uint_eq(arrived(&w), chunks_of_others(&w, 0));
    world_close(&w);
}
END_TEST

/* ---- synchronized layers ---- */

static struct train_step *begun(struct world *w, int64_t ordinal)
{
    struct train_step *step;
    struct err e = { 0 };
    for (int rc; (rc = w->strategy->ops->begin_step(w->strategy, ordinal, &step, &e)) != 0;) /* the view begins */
        ck_assert_msg(rc == STEP_LATER, "%s", e.msg);
    memset(step->grads, 0, w->job.layout->vector * sizeof(float));
    return step;
}

/* 0 or STEP_LATER. */
static int reduced(struct world *w, uint32_t phase, const int64_t *ordinals, size_t n, enum group_answer *ret)
{
    double numbers[4] = { 1, 2, 3, 4 }, totals[1];
    struct err e = { 0 };
    struct group_request q = { .part = { .phase = phase, .ordinals = ordinals, .n = n, .numbers = numbers, .width = 1 },
                               .totals = totals };
    int rc = w->strategy->ops->reduce(w->strategy, &q, &e);
    ck_assert_msg(rc >= 0, "%s", e.msg);
    *ret = q.answer;
    return rc;
}

/* What was given before is lost, and another worker that computes it again needs the sums. */
START_TEST(steps_begin_anew_in_another_view)
{
    static const int64_t ALL_OF_IT[] = { 0, 1, 2, 3 };
    struct world w;
    struct err e = { 0 };
    struct train_step *steps[3];
    enum group_answer answer;
    int rc;
    world_open(&w, &EXAMPLES[0], true);
    for (size_t i = 0; i < 2; i++)
        steps[i] = begun(&w, ALL_OF_IT[i]);
    ck_assert_ptr_ne(steps[0]->grads, steps[1]->grads);
    ck_assert_int_eq(reduced(&w, 0, ALL_OF_IT, 4, &answer), 0);          /* as if two more were here */
    ck_assert_int_eq(reduced(&w, 1, ALL_OF_IT, 2, &answer), STEP_LATER); /* and leaves the step */
    stop(&w.party, 2, 7);
    start(&w.party, 2, 0, 7);
    steps[2] = begun(&w, 2);
    ck_assert_int_eq(reduced(&w, 0, ALL_OF_IT + 2, 1, &answer), 0);
    ck_assert_int_eq(answer, GROUP_AGAIN); /* the other two must come, too */
    ck_assert_int_eq(reduced(&w, 0, ALL_OF_IT, 4, &answer), 0);
    ck_assert_int_eq(answer, GROUP_TOTALS);
    ck_assert_int_eq(reduced(&w, 1, ALL_OF_IT, 3, &answer), STEP_LATER);
    stop(&w.party, 3, 7);
    start(&w.party, 3, 0, 7);
    w.strategy->ops->give_up(w.strategy, steps[2]);
    while ((rc = w.strategy->ops->submit(w.strategy, steps[0], &e)) == STEP_LATER)
        continue;
    ck_assert_int_eq(rc, STEP_AGAIN);
    while ((rc = w.strategy->ops->submit(w.strategy, steps[0], &e)) == STEP_LATER)
        continue;
    ck_ok_e(rc);
    ck_ok_e(w.strategy->ops->submit(w.strategy, steps[1], &e));
    ck_assert_int_eq(w.applied, 2);
    ck_assert_ptr_nonnull(w.party.members[0].collective->lent.to);
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("strategy_multi_worker");
    TCase *t = tcase_create("overlap");
    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, the_first_gradients_are_sent_before_backward_ends, 0, COUNT_OF(EXAMPLES));
    tcase_add_test(t, steps_begin_anew_in_another_view);
    suite_add_tcase(s, t);
    return s;
}
