#include "small_model.h"

#include "train/coord_service.h"

enum { TOTAL = 1000, WIDTH_MAX = 16 };

struct world {
    struct model *model;
    struct coordinator *desk;
    struct rpc_method methods[COORD_KINDS];
    struct coord_reply reply;
};

static void world_open(struct world *w)
{
    *w = (struct world){ .model = small_model(SMALL_DENSE, SMALL_COMPILE) };
    w->desk = coordinator_new(&(struct coordinator_config){
        .model = w->model, .job_uid = "uid-1", .incarnation = 0xfedcba9876543210, .layout_hash = 0xffffffffffffff05, .ps_count = 3,
        .batches_per_epoch = 100, .total = TOTAL, .lease_ms = 10000, .heartbeat_ms = 250,
        .space = { .fingerprint = 0x8000000000000009, .seed = UINT64_MAX, .examples = 6400, .batch_size = 64, .shuffle = true } });
    coordinator_set(w->desk, JOB_TRAINING, 1ULL << 63, "");
    coordinator_open(w->desk, TOTAL);
    coord_methods(w->desk, w->methods);
    ck_assert_uint_le(metrics_width(w->model), WIDTH_MAX);
}

static void world_close(struct world *w)
{
    coordinator_free(w->desk);
    model_free(w->model);
}

static struct coord_request request(enum coord_kind kind)
{
    return (struct coord_request){
        .kind = kind, .job_uid = "uid-1", .sender = "worker-7", .generation = 5, .incarnation = 0xf000000000000001,
        .role = ROLE_WORKER, .index = 7, .shuffle_version = SHUFFLE_VERSION, .layout_hash = 0xffffffffffffff05, .ps_count = 3,
        .address = "127.0.0.1:1", .want = 6,
        .space = { .fingerprint = 0x8000000000000009, .seed = UINT64_MAX, .examples = 6400, .batch_size = 64, .shuffle = true } };
}

static int handle(struct world *w, enum coord_kind kind, const void *data, size_t n, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    struct rpc_reply reply = { .head = BUF_INIT };
    ck_assert_int_eq(rpc_message_of(data, n, &m, e), 0);
    int result = w->methods[kind].handle(w->methods[kind].user, m, &reply, e);
    if (result == 0)
        result = coord_unpack_reply(reply.head.data, reply.head.len, &w->reply, e);
    buf_fini(&reply.head);
    return result;
}

/* As it goes over the wire. */
static int send(struct world *w, const struct coord_request *q, struct err *e)
{
    AUTO_FINI(buf) packed = BUF_INIT;
    coord_pack_request(q, &packed);
    return handle(w, q->kind, packed.data, packed.len, e);
}

static void registered(struct world *w)
{
    struct err e = { 0 };
    struct coord_request q = request(COORD_REGISTER);
    ck_ok_e(send(w, &q, &e));
}

static struct coordinator_view view(struct world *w)
{
    struct coordinator_view v;
    coordinator_view(w->desk, &v);
    return v;
}

START_TEST(a_registration_and_its_answer_arrive_whole)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    struct coord_request q = request(COORD_REGISTER);
    static const int64_t held[] = { 3, 5, 800, 802 };
    q.job_uid = "";
    q.held = (struct ordinal_ranges){ .r = held, .n = 4 };
    ck_ok_e(send(&w, &q, &e)); /* the desk compares space, layout and ps: all arrived */
    ck_assert_str_eq(w.reply.job_uid, "uid-1");
    ck_assert_uint_eq(w.reply.generation, 1ULL << 63);
    ck_assert_uint_eq(w.reply.chief_incarnation, 0xfedcba9876543210);
    ck_assert_int_eq((int)w.reply.state, JOB_TRAINING);
    ck_assert_uint_eq(w.reply.heartbeat_ms, 250);
    ck_assert_uint_eq(view(&w).highest_generation, 5);
    ck_assert_int_eq(view(&w).workers, 1);

    q = request(COORD_LEASE);
    q.held = (struct ordinal_ranges){ .r = held, .n = 4 };
    ck_ok_e(send(&w, &q, &e));
    ck_assert(w.reply.first == 0 && w.reply.count == 3 && w.reply.valid_ms == 10000); /* 3 is held */
    world_close(&w);
}
END_TEST

static void shift_batch(struct coord_request *q)
{
    q->space.batch_size++;
}
static void shift_seed(struct coord_request *q)
{
    q->space.seed--;
}
static void shift_examples(struct coord_request *q)
{
    q->space.examples++;
}
static void shift_fingerprint(struct coord_request *q)
{
    q->space.fingerprint++;
}
static void shift_shuffle(struct coord_request *q)
{
    q->space.shuffle = false;
}
static void shift_version(struct coord_request *q)
{
    q->shuffle_version++;
}
static void shift_layout(struct coord_request *q)
{
    q->layout_hash++;
}
static void shift_ps(struct coord_request *q)
{
    q->ps_count++;
}
static void shift_uid(struct coord_request *q)
{
    q->job_uid = "uid-2";
}

START_TEST(each_field_of_a_registration_counts)
{
    static void (*const shifts[])(struct coord_request *) = { shift_batch,       shift_seed,    shift_examples,
                                                              shift_fingerprint, shift_shuffle, shift_version,
                                                              shift_layout,      shift_ps,      shift_uid };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < COUNT_OF(shifts); i++) {
        struct coord_request q = request(COORD_REGISTER);
        struct err e = { 0 };
        shifts[i](&q);
        ck_assert_msg(send(&w, &q, &e) == -1 && e.code == ERR_REFUSED, "field %zu: %s", i, e.msg);
    }
    world_close(&w);
}
END_TEST

static void one_epoch(void *user, struct tally *t)
{
    double metrics[WIDTH_MAX];
    *(int64_t *)user = tally_epoch(t, 0, metrics);
}

START_TEST(a_report_arrives_whole)
{
    struct world w;
    struct err e = { 0 };
    int64_t batches = 0;
    double sums[2 * WIDTH_MAX] = { 1, 2, 3 };
    static const int64_t ordinals[] = { 4, 9 };
    world_open(&w);
    registered(&w);
    struct coord_request q = request(COORD_HEARTBEAT);
    q.report = (struct coord_report){ .ordinals = ordinals, .n = 2, .sums = sums, .nsums = 2 * metrics_width(w.model),
                                      .compute_ns = 11, .network_ns = 12, .data_ns = 13, .wait_ns = 14, .steps = 2,
                                      .staleness_sum = 15 };
    q.text = "ps-1 to answer";
    q.diverged = true;
    q.diverged_ordinal = 9;
    ck_ok_e(send(&w, &q, &e));
    struct coordinator_view v = view(&w);
    ck_assert(v.compute_ns == 11 && v.network_ns == 12 && v.data_ns == 13 && v.wait_ns == 14);
    ck_assert(v.steps == 2 && v.staleness_sum == 15);
    ck_assert_str_eq(v.waiting, "ps-1 to answer");
    ck_assert(v.diverged && v.diverged_ordinal == 9);
    coordinator_tally(w.desk, one_epoch, &batches);
    ck_assert_int_eq(batches, 2);
    world_close(&w);
}
END_TEST

START_TEST(evaluations_and_stop_requests_arrive_whole)
{
    static const char *const names[] = { "loss", "accuracy" };
    static const double values[] = { 0.25, 0.5 };
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    registered(&w);
    struct coord_request q = request(COORD_EVALUATION);
    q.step = 77;
    q.announce = true;
    ck_ok_e(send(&w, &q, &e));
    ck_assert_int_eq(view(&w).evaluating_step, 77);
    q.announce = false;
    q.names = names;
    q.values = values;
    q.nvalues = 2;
    ck_ok_e(send(&w, &q, &e));
    struct coordinator_view v = view(&w);
    ck_assert(v.evaluated_step == 77 && v.evaluating_step == -1 && v.nevaluation == 2);
    ck_assert_str_eq(v.evaluation_names[1], "accuracy");
    ck_assert_double_eq(v.evaluation[1], 0.5);
    q = request(COORD_STOP);
    q.text = "good enough";
    ck_ok_e(send(&w, &q, &e));
    v = view(&w);
    ck_assert(v.stop_requested && strstr(v.stop_reason, "good enough") != NULL);
    q = request(COORD_LEAVE);
    ck_ok_e(send(&w, &q, &e));
    ck_assert_int_eq(view(&w).members, 0);
    world_close(&w);
}
END_TEST

START_TEST(what_is_malformed_is_refused)
{
    static const int64_t odd[] = { 3 }, falling[] = { 5, 3 }, negative[] = { -2, 3 };
    static const struct ordinal_ranges ranges[] = { { odd, 1 }, { falling, 2 }, { negative, 2 } };
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    registered(&w);
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        struct coord_request q = request(COORD_HEARTBEAT);
        q.held = ranges[i];
        e = (struct err){ 0 };
        ck_assert_msg(send(&w, &q, &e) == -1 && e.code == ERR_INPUT, "%zu: %s", i, e.msg);
    }
    e = (struct err){ 0 };
    ck_assert(handle(&w, COORD_HEARTBEAT, "\x0a\x01\xff", 3, &e) == -1 && e.code == ERR_INPUT); /* a header that is none */
    e = (struct err){ 0 };
    ck_assert(handle(&w, COORD_HEARTBEAT, "", 0, &e) == -1 && e.code == ERR_INPUT); /* no header */
    struct coord_request q = request(COORD_REGISTER);
    q.sender = "";
    ck_assert(send(&w, &q, &e) == -1 && e.code == ERR_INPUT);
    world_close(&w);
}
END_TEST

START_TEST(sums_without_ordinals_and_ordinals_without_sums_are_ignored)
{
    struct world w;
    struct err e = { 0 };
    int64_t batches = -1;
    double sums[WIDTH_MAX] = { 1 };
    static const int64_t ordinals[] = { 1, 2, -5, INT64_MAX };
    world_open(&w);
    registered(&w);
    struct coord_request q = request(COORD_HEARTBEAT);
    q.report = (struct coord_report){ .ordinals = ordinals, .n = 4, .sums = sums, .nsums = metrics_width(w.model) };
    ck_ok_e(send(&w, &q, &e));
    coordinator_tally(w.desk, one_epoch, &batches);
    ck_assert_int_eq(batches, 1);
    world_close(&w);
}
END_TEST

START_TEST(an_answer_that_lends_nonsense_is_refused)
{
    /* WorkerReply: first is field 8, count field 9; as varints, INT64_MAX is eight ff and 7f, -1 nine ff and 01. */
    static const char beyond[] = "\x40\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x48\x01",
                      negative[] = "\x40\x05\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", fine[] = "\x40\x05\x48\x02";
    struct coord_reply reply;
    struct err e = { 0 };
    ck_assert_int_eq(coord_unpack_reply("\xff", 1, &reply, &e), -1);
    ck_assert_int_eq(coord_unpack_reply(beyond, sizeof beyond - 1, &reply, &e), -1);
    ck_assert_int_eq(coord_unpack_reply(negative, sizeof negative - 1, &reply, &e), -1);
    ck_assert_int_eq(e.code, ERR_INTERNAL);
    ck_ok_e(coord_unpack_reply(fine, sizeof fine - 1, &reply, &e));
    ck_assert(reply.first == 5 && reply.count == 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("coord_service");
    TCase *t = tcase_create("coord_service");
    tcase_add_test(t, a_registration_and_its_answer_arrive_whole);
    tcase_add_test(t, each_field_of_a_registration_counts);
    tcase_add_test(t, a_report_arrives_whole);
    tcase_add_test(t, evaluations_and_stop_requests_arrive_whole);
    tcase_add_test(t, what_is_malformed_is_refused);
    tcase_add_test(t, sums_without_ordinals_and_ordinals_without_sums_are_ignored);
    tcase_add_test(t, an_answer_that_lends_nonsense_is_refused);
    suite_add_tcase(s, t);
    return s;
}
