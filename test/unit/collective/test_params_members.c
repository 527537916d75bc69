/* The members are shards of this process behind a wire of function pointers: View and Init are handled as a worker
 * handles them, and bulk goes into the shard. The time is a number of the test. */
#include "shard/job_fixture.h"

#include "check_main.h"

#include "collective/params_members_internal.h"
#include "params/params_admin.h"

enum { WORKERS = 4, CALL_MS = 1000 };

struct fake {
    char name[32], uid[64];
    struct shard *shard;
    float *vector;
    uint64_t incarnation;
    bool known, dead, frozen, terminating; /* dead: calls fail; frozen: they do not end */
    enum peer_state state;
    uint64_t generation, chief, view;
    int64_t at, behind;
    int64_t waiting[2]; /* half-open range of gradients that wait there; empty: none */
    struct buf log;     /* "STOP 2;START 2 at 4 n 2 other worker-1;" */
};
struct world {
    struct job_fixture job;
    struct groups groups;
    struct fake workers[WORKERS];
    struct params *p;
    int64_t now_ms;
    struct buf reports;
    struct buf views; /* "0 1; 0;;": the members of each view that ran; none ran at the end */
    struct report report;
};
struct fake_call {
    struct fake *to;
    struct buf reply;
    struct err error;
};

static struct fake *fake_of(struct world *w, const struct known_member *k)
{
    for (size_t i = 0; i < WORKERS; i++)
        if (str_eq(w->workers[i].name, k->name) && w->workers[i].incarnation == k->incarnation)
            return &w->workers[i];
    return NULL;
}

static void fake_view(struct world *w, struct fake *f, const Trainyard__V1__ViewRequest *q, struct buf *reply)
{
    static const char *const NAMES[] = { "ASK", "STOP", "START", "JOIN", "DONATE", "FORGET" };
    Trainyard__V1__ViewReply r;
    Trainyard__V1__Groups groups;
    if (q->action != TRAINYARD__V1__VIEW_ACTION__VIEW_ASK)
        buf_printf(&f->log, "%s%s%s;", NAMES[q->action], q->other != NULL ? " " : "",
                   q->other != NULL ? q->other->name : "");
    if (q->action == TRAINYARD__V1__VIEW_ACTION__VIEW_STOP && f->state == PEER_TRAINING)
        f->state = PEER_HOLDING;
    if (q->action == TRAINYARD__V1__VIEW_ACTION__VIEW_START) {
        f->state = PEER_TRAINING;
        f->view = q->view;
        f->at = q->at;
    }
    if (q->action == TRAINYARD__V1__VIEW_ACTION__VIEW_JOIN) {
        f->state = PEER_JOINING;
        f->behind = -1;
    }
    Trainyard__V1__OrdinalSet applied;
    trainyard__v1__ordinal_set__init(&applied);
    applied.low_water = f->at;
    applied.ranges = f->waiting;
    applied.n_ranges = f->waiting[0] < f->waiting[1] ? 2 : 0;
    trainyard__v1__view_reply__init(&r);
    r.applied = &applied;
    codec_groups(&w->groups, &groups);
    r.incarnation = f->incarnation;
    r.generation = f->generation;
    r.chief_incarnation = f->chief;
    r.state = (Trainyard__V1__MemberState)f->state;
    r.view = f->view;
    r.at = f->at;
    r.version = f->at / w->groups.size;
    r.layout_hash = w->job.layout->hash;
    r.job_uid = f->uid;
    r.groups = &groups;
    r.behind = f->behind;
    r.terminating = f->terminating;
    codec_pack(&r.base, reply);
}

static int fake_init(struct world *w, struct fake *f, const Trainyard__V1__InitRequest *q, struct buf *reply,
                     struct err *e)
{
    Trainyard__V1__InitReply r = TRAINYARD__V1__INIT_REPLY__INIT;
    buf_printf(&f->log, q->adopt ? "ADOPT;" : "INIT;");
    if (q->header->generation < f->generation)
        return err_set(e, ERR_FENCED, "generation %llu is over", (unsigned long long)q->header->generation);
    if (q->header->generation > f->generation)
        f->state = q->adopt ? PEER_HOLDING : PEER_EMPTY;
    f->generation = q->header->generation;
    f->chief = q->header->incarnation;
    r.generation = f->generation;
    r.chief_incarnation = f->chief;
    r.group_size = q->adopt ? 0 : w->groups.size;
    codec_pack(&r.base, reply);
    return 0;
}

static void *wire_start(void *user, const struct known_member *to, const char *path, const struct buf *head,
                        int64_t deadline_ms)
{
    struct world *w = user;
    struct fake_call *c = xcalloc(1, sizeof(*c));
    c->reply = (struct buf)BUF_INIT;
    ProtobufCMessage *q = NULL;
    (void)deadline_ms;
    c->to = fake_of(w, to);
    if (c->to == NULL || c->to->dead || c->to->frozen) {
        (void)err_set(&c->error, c->to != NULL && c->to->frozen ? ERR_TIMEOUT : ERR_LOST, "no answer");
        return c;
    }
    if (strstr(path, "Peer/View") != NULL) {
        q = protobuf_c_message_unpack(&trainyard__v1__view_request__descriptor, NULL, head->len,
                                      (const void *)head->data);
        ck_assert_ptr_nonnull(q);
        fake_view(w, c->to, (const void *)q, &c->reply);
    } else if (strstr(path, "Init") != NULL) {
        q = protobuf_c_message_unpack(&trainyard__v1__init_request__descriptor, NULL, head->len,
                                      (const void *)head->data);
        ck_assert_ptr_nonnull(q);
        (void)!fake_init(w, c->to, (const void *)q, &c->reply, &c->error);
    } else if (strstr(path, "Snapshot") != NULL) {
        q = protobuf_c_message_unpack(&trainyard__v1__snapshot_request__descriptor, NULL, head->len,
                                      (const void *)head->data);
        ck_assert_ptr_nonnull(q);
        const Trainyard__V1__SnapshotRequest *s = (const void *)q;
        ck_assert(s->confirm);
        buf_printf(&c->to->log, "SAVED %lld;", (long long)s->at);
    } else {
        buf_printf(&c->to->log, "FINISH;");
    }
    if (q != NULL)
        protobuf_c_message_free_unpacked(q, NULL);
    return c;
}

static bool wire_ready(void *user, void *call, int64_t wait_ms)
{
    struct fake_call *c = call;
    (void)user, (void)wait_ms;
    return c->to == NULL || !c->to->frozen;
}

static int wire_finish(void *user, void *call, struct rpc_message **ret, struct err *e)
{
    struct fake_call *c = call;
    (void)user;
    int rc = c->error.code != ERR_NONE ? err_set(e, c->error.code, "%s", c->error.msg)
                                       : rpc_message_of(c->reply.data, c->reply.len, ret, e);
    buf_fini(&c->reply);
    free(c);
    return rc;
}

static void wire_cancel(void *user, void *call)
{
    (void)user, (void)call;
}

static struct params *wire_open(void *user, const struct known_member *to, float *vector)
{
    struct world *w = user;
    (void)vector;
    const struct params_identity id = { .job_uid = JOB_UID, .sender = "chief-0", .incarnation = 9 };
    const struct fake *f = fake_of(w, to);
    if (f == NULL)
        ck_abort_msg("no worker %s", to->name);
    return params_new_local(w->job.layout, f->shard, &id);
}

static int64_t wire_now(void *user)
{
    return ((struct world *)user)->now_ms;
}

static size_t list_known(void *user, struct known_member **ret)
{
    struct world *w = user;
    size_t n = 0;
    *ret = xcalloc(WORKERS, sizeof(**ret));
    for (size_t i = 0; i < WORKERS; i++) {
        const struct fake *f = &w->workers[i];
        if (!f->known)
            continue;
        struct known_member *k = &(*ret)[n++];
        *k = (struct known_member){ .incarnation = f->incarnation, .alive = !f->dead };
        str_fmt(k->name, sizeof(k->name), "%s", f->name);
        str_fmt(k->address, sizeof(k->address), "host-%zu:1", i);
    }
    return n;
}

static void note_view(void *user, const struct view *v)
{
    struct world *w = user;
    for (size_t i = 0; i < v->n; i++) {
        struct known_member k = { .incarnation = v->members[i].incarnation };
        memcpy(k.name, v->members[i].name, sizeof(k.name));
        ck_assert_ptr_nonnull(fake_of(w, &k));
        buf_printf(&w->views, "%s%s", i > 0 ? " " : "", k.name + strlen("worker-"));
    }
    buf_printf(&w->views, ";");
}

static void take_report(void *user, enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    (void)level, (void)n, (void)fields;
    buf_printf(&((struct world *)user)->reports, "%s\n", msg);
}

static void world_open(struct world *w, size_t known, size_t min_members)
{
    *w = (struct world){ .now_ms = 1000, .reports = BUF_INIT, .views = BUF_INIT };
    rpc_init();
    job_open(&w->job, COUNTING_OPTIMIZER, "epochs: 1");
    w->groups = (struct groups){ .size = 4, .batches = 12, .examples = 1, .rest = 1 };
    w->report = (struct report){ .write = take_report, .user = w };
    for (size_t i = 0; i < WORKERS; i++) {
        struct fake *f = &w->workers[i];
        *f = (struct fake){ .known = i < known, .incarnation = 10 + i, .behind = -1, .log = BUF_INIT };
        str_fmt(f->name, sizeof(f->name), "worker-%zu", i);
        str_fmt(f->uid, sizeof(f->uid), "%s", JOB_UID);
        f->shard = shard_new(f->incarnation);
    }
    const struct members_config config = { .layout = w->job.layout,
                                           .id = { .job_uid = JOB_UID, .sender = "chief-0", .incarnation = 9 },
                                           .wanted = known,
                                           .min_members = min_members,
                                           .report = &w->report };
    const struct member_wire wire = { .start = wire_start,
                                      .ready = wire_ready,
                                      .finish = wire_finish,
                                      .cancel = wire_cancel,
                                      .open = wire_open,
                                      .now_ms = wire_now,
                                      .user = w };
    w->p = holders_new(&config, &wire);
    params_members_source(w->p, list_known, note_view, w);
    params_set_groups(w->p, &w->groups);
    params_set_optimizer(w->p, "{}");
    params_set_generation(w->p, 5);
}

static void world_close(struct world *w)
{
    params_free(w->p);
    for (size_t i = 0; i < WORKERS; i++) {
        shard_free(w->workers[i].shard);
        buf_fini(&w->workers[i].log);
    }
    buf_fini(&w->reports);
    buf_fini(&w->views);
    rpc_shutdown();
    job_close(&w->job);
}

static int poll(struct world *w, struct shard_info *ret, struct err *e)
{
    struct err error = { 0 };
    *ret = (struct shard_info){ 0 };
    w->now_ms += 50;
    params_describe(w->p, CALL_MS, ret, &error);
    return error.code == ERR_NONE ? 0 : err_set(e, error.code, "%s", error.msg);
}

static void want_serving(struct world *w, int64_t low)
{
    struct shard_info info;
    struct err e = { 0 };
    ck_ok_e(poll(w, &info, &e));
    ck_assert_int_eq(info.state, SHARD_SERVING);
    ck_assert_int_eq(info.applied.low, low);
}

static void want_log(struct fake *f, const char *want)
{
    ck_assert_str_eq(f->log.len > 0 ? f->log.data : "", want);
    buf_clear(&f->log);
}

static void want_views(struct world *w, const char *want)
{
    ck_assert_str_eq(w->views.len > 0 ? w->views.data : "", want);
    buf_clear(&w->views);
}

static void want_report(struct world *w, const char *line)
{
    ck_assert_msg(w->reports.len > 0 && strstr(w->reports.data, line) != NULL, "no '%s' in\n%s", line,
                  w->reports.len > 0 ? w->reports.data : "");
}

/* All of them hold the state of an earlier chief; then they are in a view of this one. */
static void adopted(struct world *w, size_t n, int64_t at)
{
    struct shard_info info;
    struct err e = { 0 };
    for (size_t i = 0; i < n; i++) {
        w->workers[i].state = PEER_TRAINING;
        w->workers[i].generation = 4;
        w->workers[i].chief = 8;
        w->workers[i].view = 3;
        w->workers[i].at = at;
    }
    ck_ok_e(poll(w, &info, &e));
    ck_assert_int_eq(info.state, SHARD_SERVING);
    ck_assert_uint_eq(info.generation, 4);
    ck_ok_e(params_adopt(w->p, 0, CALL_MS, &e));
    want_serving(w, at);
    for (size_t i = 0; i < n; i++)
        buf_clear(&w->workers[i].log);
}

START_TEST(a_new_chief_takes_over_what_the_members_have)
{
    struct world w;
    world_open(&w, 2, 1);
    w.workers[1].at = 8;
    adopted(&w, 2, 8);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(w.workers[i].state, PEER_TRAINING);
        ck_assert_uint_eq(w.workers[i].view, 4); /* above all that were used */
    }
    want_report(&w, "workers 0, 1 train from step 2 on");
    world_close(&w);
}
END_TEST

START_TEST(without_workers_nothing_is_decided)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 2, 1);
    w.workers[0].known = w.workers[1].known = false;
    ck_fails(poll(&w, &info, &e), ERR_LOST, "no worker has joined yet");
    w.workers[0].known = true;
    ck_fails(poll(&w, &info, &e), ERR_LOST, "waiting for the workers to register");
    w.now_ms += 2000;
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_int_eq(info.state, SHARD_UNINITIALISED);
    world_close(&w);
}
END_TEST

/* What waits at all members need not be computed again. */
START_TEST(gradients_that_all_members_have_count)
{
    struct world w;
    struct err e = { 0 };
    AUTO_FINI(shard_info) info = { 0 };
    world_open(&w, 2, 1);
    adopted(&w, 2, 4);
    w.workers[0].waiting[0] = 5;
    w.workers[0].waiting[1] = 8;
    w.workers[1].waiting[0] = 6;
    w.workers[1].waiting[1] = 7;
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_int_eq(info.applied.low, 4);
    ck_assert(!ordinal_set_has(&info.applied, 5));
    ck_assert(ordinal_set_has(&info.applied, 6));
    ck_assert(!ordinal_set_has(&info.applied, 7));
    world_close(&w);
}
END_TEST

START_TEST(a_dead_member_is_left_out)
{
    struct world w;
    world_open(&w, 3, 1);
    adopted(&w, 3, 4);
    w.workers[0].at = w.workers[2].at = 8;
    w.workers[1].dead = true;
    want_serving(&w, 8);
    want_log(&w.workers[0], "STOP;START;");
    want_log(&w.workers[2], "STOP;START;");
    want_report(&w, "worker-1 is lost: workers 0, 2 go on from step 2");
    world_close(&w);
}
END_TEST

START_TEST(who_is_behind_gets_the_sums_of_another)
{
    struct world w;
    world_open(&w, 3, 1);
    adopted(&w, 3, 4);
    w.workers[2].at = 8;
    w.workers[1].dead = true;
    want_serving(&w, 8);
    want_log(&w.workers[0], "STOP;START worker-2;");
    want_log(&w.workers[2], "STOP;START;");
    world_close(&w);
}
END_TEST

START_TEST(a_frozen_member_is_left_out_and_comes_back)
{
    struct world w;
    world_open(&w, 2, 1);
    adopted(&w, 2, 4);
    w.workers[1].frozen = true;
    want_serving(&w, 4);
    want_log(&w.workers[0], "");
    w.now_ms += 600;
    want_serving(&w, 4);
    want_log(&w.workers[0], "STOP;START;");
    w.workers[1].frozen = false;
    want_serving(&w, 4); /* the request of before is over */
    want_serving(&w, 4); /* it answers, and joins */
    want_log(&w.workers[1], "INIT;JOIN worker-0;");
    want_log(&w.workers[0], "DONATE worker-1;");
    w.workers[1].behind = 1;
    want_serving(&w, 4);
    ck_assert_int_eq(w.workers[1].state, PEER_TRAINING);
    want_report(&w, "worker-1 joined at step 1: 2 workers");
    w.workers[1].dead = true;
    want_serving(&w, 4);
    want_report(&w, "worker-1 is lost for the 2nd time: worker-0 goes on from step 1");
    world_close(&w);
}
END_TEST

START_TEST(too_few_are_waited_for)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 2, 2);
    adopted(&w, 2, 4);
    w.workers[1].dead = true;
    ck_ok_e(poll(&w, &info, &e));
    ck_fails(poll(&w, &info, &e), ERR_LOST, "1 of at least 2 workers are there");
    world_close(&w);
}
END_TEST

/* Only those get batches; while no view runs nobody does. */
START_TEST(the_chief_learns_who_trains)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 3, 2);
    adopted(&w, 3, 4);
    want_views(&w, "0 1 2;");
    want_serving(&w, 4);
    want_views(&w, "");
    w.workers[0].dead = true;
    want_serving(&w, 4);
    want_views(&w, "1 2;");
    w.workers[0].dead = false;
    want_serving(&w, 4);
    w.workers[0].behind = 0;
    want_serving(&w, 4);
    want_views(&w, "0 1 2;");
    w.workers[1].dead = w.workers[2].dead = true;
    ck_ok_e(poll(&w, &info, &e));
    ck_fails(poll(&w, &info, &e), ERR_LOST, "1 of at least 2 workers are there");
    want_views(&w, ";");
    world_close(&w);
}
END_TEST

START_TEST(no_view_runs_without_a_state_or_in_a_new_generation)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 2, 1);
    adopted(&w, 2, 4);
    want_views(&w, "0 1;");
    params_set_generation(w.p, 6);
    want_views(&w, ";");
    ck_ok_e(params_adopt(w.p, 0, CALL_MS, &e));
    want_serving(&w, 4);
    want_views(&w, "0 1;");
    for (int i = 0; i < 2; i++) {
        w.workers[i].incarnation += 100;
        w.workers[i].state = PEER_EMPTY;
    }
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_int_eq(info.state, SHARD_UNINITIALISED);
    want_views(&w, ";");
    world_close(&w);
}
END_TEST

START_TEST(the_state_is_lost_with_the_last_one)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 2, 1);
    adopted(&w, 2, 4);
    ck_ok_e(poll(&w, &info, &e));
    uint64_t life = info.incarnation;
    for (int i = 0; i < 2; i++) {
        w.workers[i].incarnation += 100;
        w.workers[i].state = PEER_EMPTY;
    }
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_int_eq(info.state, SHARD_UNINITIALISED);
    ck_assert_uint_ne(info.incarnation, life);
    world_close(&w);
}
END_TEST

START_TEST(a_fence_shows_the_highest_step_and_starts_nothing)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 2, 1);
    adopted(&w, 2, 4);
    w.workers[1].at = 8;
    params_set_generation(w.p, 6);
    ck_ok_e(params_fence(w.p, 0, CALL_MS, &e));
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_int_eq(info.applied.low, 8);
    ck_assert_int_eq(info.version_min, 2);
    ck_assert_int_eq(info.version_max, 2);
    want_log(&w.workers[0], "ADOPT;");
    want_log(&w.workers[1], "ADOPT;");
    world_close(&w);
}
END_TEST

START_TEST(a_member_that_terminates_leaves_and_the_last_one_is_told_of)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 2, 1);
    adopted(&w, 2, 4);
    w.workers[1].terminating = true;
    want_serving(&w, 4);
    want_report(&w, "worker-1 terminates: worker-0 goes on from step 1");
    w.workers[0].terminating = true;
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_int_eq(info.state, SHARD_TERMINATING);
    world_close(&w);
}
END_TEST

static void fill(struct world *w)
{
    struct err e = { 0 };
    const struct ordinal_set none = ORDINAL_SET_INIT;
    const struct layout *l = w->job.layout;
    ck_ok_e(params_init(w->p, 0, "{\"class_name\": \"Counting\", \"config\": {}}", CALL_MS, &e));
    for (uint32_t i = 0; i < l->n; i++) {
        auto_free float *data = xcalloc(l->segments[i].count, sizeof(float));
        ck_ok_e(params_restore(w->p, 0, i, false, 0, &none, data, l->segments[i].count, CALL_MS, &e));
    }
    ck_ok_e(params_serve(w->p, 0, CALL_MS, &e));
    w->workers[0].state = PEER_HOLDING;
    w->workers[0].generation = 5;
    w->workers[0].chief = 9;
}

/* Of one holder; all are told which step is saved. */
START_TEST(a_checkpoint_is_confirmed_at_all_members)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    AUTO_FINI(shard_snapshot) snapshot = { 0 };
    world_open(&w, 2, 1);
    ck_ok_e(poll(&w, &info, &e));
    fill(&w);
    ck_ok_e(poll(&w, &info, &e));
    w.workers[1].behind = 0;
    want_serving(&w, 0);
    ck_ok_e(params_announce_snapshot(w.p, 0, 0, CALL_MS, &e));
    ck_ok_e(params_snapshot_at(w.p, 0, 0, 0, CALL_MS, &snapshot, &e));
    for (int i = 0; i < 2; i++)
        buf_clear(&w.workers[i].log);
    ck_ok_e(params_confirm_snapshots(w.p, 0, CALL_MS, &e));
    want_log(&w.workers[0], "SAVED 0;");
    want_log(&w.workers[1], "SAVED 0;");
    world_close(&w);
}
END_TEST

START_TEST(one_is_filled_and_the_others_join_before_the_first_view)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 3, 1);
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_int_eq(info.state, SHARD_UNINITIALISED);
    uint64_t life = info.incarnation;
    fill(&w);
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_int_eq(info.state, SHARD_SERVING);
    ck_assert_uint_eq(info.incarnation, life);
    want_log(&w.workers[0], "DONATE worker-1;DONATE worker-2;");
    want_log(&w.workers[1], "INIT;JOIN worker-0;");
    w.workers[1].behind = w.workers[2].behind = 0;
    want_serving(&w, 0);
    want_report(&w, "workers 0, 1, 2 train from step 0 on");
    world_close(&w);
}
END_TEST

START_TEST(another_chief_is_seen)
{
    struct world w;
    struct shard_info info;
    struct err e = { 0 };
    world_open(&w, 2, 1);
    adopted(&w, 2, 4);
    w.workers[1].generation = 6;
    w.workers[1].chief = 77;
    ck_ok_e(poll(&w, &info, &e));
    ck_assert_uint_eq(info.generation, 6);
    ck_assert_uint_eq(info.chief, 77);
    world_close(&w);
}
END_TEST

START_TEST(a_chief_does_not_push)
{
    struct world w;
    struct push_result result;
    struct err e = { 0 };
    float none = 0;
    world_open(&w, 1, 1);
    ck_fails(params_push(w.p, 3, &none, CALL_MS, &result, &e), ERR_INTERNAL, "a push of ordinal 3 by a chief");
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("params_members");
    TCase *t = tcase_create("all");
    tcase_add_test(t, a_new_chief_takes_over_what_the_members_have);
    tcase_add_test(t, without_workers_nothing_is_decided);
    tcase_add_test(t, gradients_that_all_members_have_count);
    tcase_add_test(t, a_checkpoint_is_confirmed_at_all_members);
    tcase_add_test(t, a_dead_member_is_left_out);
    tcase_add_test(t, who_is_behind_gets_the_sums_of_another);
    tcase_add_test(t, a_frozen_member_is_left_out_and_comes_back);
    tcase_add_test(t, too_few_are_waited_for);
    tcase_add_test(t, the_chief_learns_who_trains);
    tcase_add_test(t, no_view_runs_without_a_state_or_in_a_new_generation);
    tcase_add_test(t, the_state_is_lost_with_the_last_one);
    tcase_add_test(t, a_fence_shows_the_highest_step_and_starts_nothing);
    tcase_add_test(t, a_member_that_terminates_leaves_and_the_last_one_is_told_of);
    tcase_add_test(t, one_is_filled_and_the_others_join_before_the_first_view);
    tcase_add_test(t, another_chief_is_seen);
    tcase_add_test(t, a_chief_does_not_push);
    suite_add_tcase(s, t);
    return s;
}
