#include "small_model.h"
#include <math.h>

#include "coord/coordinator_service.h"

enum { TOTAL = 1000, WIDTH_MAX = 16 };

struct world {
    struct model *model;
    struct coordinator *coordinator;
    struct rpc_method methods[COORDINATOR_METHODS];
    struct coordinator_reply reply;
};

/* group_size 0: asynchronous */
static void groups_open(struct world *w, int64_t group_size)
{
    const struct groups groups = { .size = group_size, .batches = 100, .examples = 64, .rest = 64 };
    *w = (struct world){ .model = small_model(SMALL_DENSE, SMALL_COMPILE) };
    w->coordinator =
        coordinator_new(&(struct coordinator_config){ .model = w->model,
                                                      .job_uid = "uid-1",
                                                      .incarnation = 0xfedcba9876543210,
                                                      .layout_hash = 0xffffffffffffff05,
                                                      .ps_count = 3,
                                                      .placement_hash = 0x8000000000000007,
                                                      .batches_per_epoch = 100,
                                                      .total = TOTAL,
                                                      .lease_ms = 10000,
                                                      .heartbeat_ms = 250,
                                                      .one_arithmetic = true,
                                                      .groups = group_size > 0 ? groups : (struct groups){ 0 },
                                                      .space = { .fingerprint = 0x8000000000000009,
                                                                 .seed = UINT64_MAX,
                                                                 .examples = 6400,
                                                                 .batch_size = 64,
                                                                 .shuffle = true } });
    coordinator_set(w->coordinator, JOB_TRAINING, 1ULL << 63, "");
    coordinator_set_arithmetic(w->coordinator, "core Zen");
    coordinator_allow_below(w->coordinator, TOTAL);
    coordinator_service_methods(w->coordinator, w->methods);
    ck_assert_uint_le(metrics_width(w->model), WIDTH_MAX);
}

static void world_open(struct world *w)
{
    groups_open(w, 0);
}

static void world_close(struct world *w)
{
    coordinator_free(w->coordinator);
    model_free(w->model);
}

static struct coordinator_sender sender(void)
{
    return (struct coordinator_sender){
        .job_uid = "uid-1", .name = "worker-7", .role = ROLE_WORKER, .generation = 5, .incarnation = 0xf000000000000001
    };
}

static struct register_request registration(void)
{
    return (struct register_request){ .sender = sender(),
                                      .shuffle_version = SHUFFLE_VERSION,
                                      .layout_hash = 0xffffffffffffff05,
                                      .ps_count = 3,
                                      .placement_hash = 0x8000000000000007,
                                      .arithmetic = "core Zen",
                                      .space = { .fingerprint = 0x8000000000000009,
                                                 .seed = UINT64_MAX,
                                                 .examples = 6400,
                                                 .batch_size = 64,
                                                 .shuffle = true } };
}

static struct heartbeat_request heartbeat(void)
{
    return (struct heartbeat_request){ .sender = sender() };
}

static int handle_from(struct world *w, enum coordinator_method method, const struct rpc_connection *from,
                       const void *data, size_t n, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    struct rpc_reply reply = { .head = BUF_INIT };
    ck_assert_int_eq(rpc_message_of(data, n, &m, e), 0);
    int result = rpc_method_call(&w->methods[method], from, m, &reply, e);
    if (result == 0)
        result = coordinator_unpack_reply(reply.head.data, reply.head.len, &w->reply, e);
    buf_fini(&reply.head);
    return result;
}

static int handle(struct world *w, enum coordinator_method method, const void *data, size_t n, struct err *e)
{
    return handle_from(w, method, &(struct rpc_connection){ .leader = ROLE_CHIEF }, data, n, e);
}

/* The messages as they are on the wire. */
#define SEND(name, id)                                                                                                 \
    static int send_##name(struct world *w, const struct name##_request *q, struct err *e)                             \
    {                                                                                                                  \
        AUTO_FINI(buf) packed = BUF_INIT;                                                                              \
        coordinator_pack_##name(q, &packed);                                                                           \
        return handle(w, id, packed.data, packed.len, e);                                                              \
    }
#define coordinator_pack_evaluation coordinator_pack_report_evaluation
SEND(register, COORDINATOR_REGISTER)
SEND(heartbeat, COORDINATOR_HEARTBEAT)
SEND(lease, COORDINATOR_LEASE)
SEND(leave, COORDINATOR_LEAVE)
SEND(evaluation, COORDINATOR_REPORT_EVALUATION)

static void registered(struct world *w)
{
    struct err e = { 0 };
    struct register_request q = registration();
    ck_ok_e(send_register(w, &q, &e));
}

static struct coordinator_view view(struct world *w)
{
    struct coordinator_view v;
    coordinator_view(w->coordinator, &v);
    return v;
}

START_TEST(the_address_of_a_worker_arrives_and_is_checked)
{
    struct world w;
    struct err e = { 0 };
    char text[VIEW_ADDRESS_SIZE + 1];
    auto_free struct known_member *workers = NULL;
    world_open(&w);
    struct register_request q = registration();
    memset(text, 'a', sizeof(text) - 1);
    text[VIEW_ADDRESS_SIZE] = '\0';
    q.address = text;
    ck_fails(send_register(&w, &q, &e), ERR_INPUT, "more than 255 bytes");
    text[VIEW_ADDRESS_SIZE - 1] = '\0';
    ck_ok_e(send_register(&w, &q, &e));
    ck_assert_uint_eq(coordinator_workers(w.coordinator, clock_ms(), &workers), 1);
    ck_assert_str_eq(workers[0].address, text);
    world_close(&w);
}
END_TEST

START_TEST(a_registration_and_its_answer_arrive_whole)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    struct register_request q = registration();
    static const int64_t held[] = { 3, 5, 800, 802 };
    q.sender.job_uid = "";
    q.held = (struct ordinal_ranges){ .r = held, .n = 4 };
    ck_ok_e(send_register(&w, &q, &e)); /* the coordinator compares space, layout and ps: all arrived */
    ck_assert_str_eq(w.reply.job_uid, "uid-1");
    ck_assert_uint_eq(w.reply.generation, 1ULL << 63);
    ck_assert_uint_eq(w.reply.chief_incarnation, 0xfedcba9876543210);
    ck_assert_int_eq((int)w.reply.state, JOB_TRAINING);
    ck_assert_uint_eq(w.reply.heartbeat_ms, 250);
    ck_assert_uint_eq(view(&w).highest_generation, 5);
    ck_assert_int_eq(view(&w).workers, 1);

    struct lease_request lease = { .sender = sender(), .held = { .r = held, .n = 4 }, .want = 6 };
    ck_ok_e(send_lease(&w, &lease, &e));
    ck_assert(w.reply.first == 0 && w.reply.count == 3); /* 3 is held */
    world_close(&w);
}
END_TEST

static void shift_batch(struct register_request *q)
{
    q->space.batch_size++;
}
static void shift_seed(struct register_request *q)
{
    q->space.seed--;
}
static void shift_examples(struct register_request *q)
{
    q->space.examples++;
}
static void shift_fingerprint(struct register_request *q)
{
    q->space.fingerprint++;
}
static void shift_shuffle(struct register_request *q)
{
    q->space.shuffle = false;
}
static void shift_version(struct register_request *q)
{
    q->shuffle_version++;
}
static void shift_layout(struct register_request *q)
{
    q->layout_hash++;
}
static void shift_ps(struct register_request *q)
{
    q->ps_count++;
}
static void shift_placement(struct register_request *q)
{
    q->placement_hash++;
}
static void shift_arithmetic(struct register_request *q)
{
    q->arithmetic = "core Haswell";
}
static void shift_uid(struct register_request *q)
{
    q->sender.job_uid = "uid-2";
}

START_TEST(each_field_of_a_registration_counts)
{
    static void (*const shifts[])(struct register_request *) = { shift_batch,       shift_seed,    shift_examples,
                                                                 shift_fingerprint, shift_shuffle, shift_version,
                                                                 shift_layout,      shift_ps,      shift_placement,
                                                                 shift_arithmetic,  shift_uid };
    struct world w;
    world_open(&w);
    for (size_t i = 0; i < COUNT_OF(shifts); i++) {
        struct register_request q = registration();
        struct err e = { 0 };
        shifts[i](&q);
        ck_assert_msg(send_register(&w, &q, &e) == -1 && e.code == ERR_REFUSED, "field %zu: %s", i, e.msg);
    }
    world_close(&w);
}
END_TEST

static void one_epoch(void *user, struct epoch_metrics *t)
{
    double metrics[WIDTH_MAX];
    *(int64_t *)user = epoch_metrics_of(t, 0, metrics);
}

static void lease_first(struct world *w, int64_t batches)
{
    struct err e = { 0 };
    struct lease_request q = { .sender = sender(), .want = batches };
    ck_ok_e(coordinator_lease(w->coordinator, &q, 0, &w->reply, &e));
    ck_assert_int_eq(w->reply.count, batches);
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
    lease_first(&w, 10);
    struct heartbeat_request q = heartbeat();
    q.report = (struct coordinator_report){ .ordinals = ordinals,
                                            .n = 2,
                                            .sums = sums,
                                            .nsums = 2 * metrics_width(w.model),
                                            .compute_ns = 11,
                                            .network_ns = 12,
                                            .data_ns = 13,
                                            .wait_ns = 14,
                                            .steps = 2,
                                            .staleness_sum = 15 };
    q.waiting_for = "ps-1 to answer";
    q.diverged = true;
    q.diverged_ordinal = 9;
    ck_ok_e(send_heartbeat(&w, &q, &e));
    struct coordinator_view v = view(&w);
    ck_assert(v.compute_ns == 11 && v.network_ns == 12 && v.data_ns == 13 && v.wait_ns == 14);
    ck_assert(v.steps == 2 && v.staleness_sum == 15);
    ck_assert_str_eq(v.waiting, "ps-1 to answer");
    ck_assert(v.diverged && v.diverged_ordinal == 9);
    coordinator_metrics(w.coordinator, one_epoch, &batches);
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
    struct register_request evaluator = registration();
    evaluator.sender.name = "evaluator-0";
    evaluator.sender.role = ROLE_EVALUATOR;
    ck_ok_e(send_register(&w, &evaluator, &e));
    struct evaluation_request q = { .sender = evaluator.sender, .step = 77, .announce = true };
    ck_ok_e(send_evaluation(&w, &q, &e));
    ck_assert_int_eq(view(&w).evaluating_step, 77);
    q.announce = false;
    q.names = names;
    q.values = values;
    q.nvalues = 2;
    ck_ok_e(send_evaluation(&w, &q, &e));
    struct coordinator_view v = view(&w);
    ck_assert(v.evaluated_step == 77 && v.evaluating_step == -1 && v.nevaluation == 2);
    ck_assert_str_eq(v.evaluation_names[1], "accuracy");
    ck_assert_double_eq(v.evaluation[1], 0.5);
    /* StopRequest: the header of a heartbeat and a reason, field 2 */
    AUTO_FINI(buf) stop = BUF_INIT;
    struct lease_request empty = { .sender = evaluator.sender };
    coordinator_pack_lease(&empty, &stop);
    stop.len = 2 + (size_t)stop.data[1]; /* only its header */
    buf_add(&stop, "\x12\x0bgood enough", 13);
    ck_ok_e(handle(&w, COORDINATOR_REQUEST_STOP, stop.data, stop.len, &e));
    v = view(&w);
    ck_assert(v.stop_requested && strstr(v.stop_reason, "good enough") != NULL);
    struct leave_request leave = { .sender = evaluator.sender, .reason = "" };
    ck_ok_e(send_leave(&w, &leave, &e));
    ck_assert_int_eq(view(&w).members, 0);
    world_close(&w);
}
END_TEST

START_TEST(the_launcher_stops_a_job_by_its_certificate)
{
    static const char MESSAGE[] = "\x0a\x0a\x1a\x08launcher\x12\x06"
                                  "enough"; /* header.sender, reason */
    const struct identity launcher = { .ns = "local", .job_uid = "u", .role = IDENTITY_LAUNCHER };
    const struct rpc_connection from = { .identity = &launcher, .leader = ROLE_CHIEF };
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    ck_assert_int_eq(handle(&w, COORDINATOR_REQUEST_STOP, MESSAGE, sizeof(MESSAGE) - 1, &e), -1); /* plain text */
    ck_assert(!view(&w).stop_requested);
    ck_ok_e(handle_from(&w, COORDINATOR_REQUEST_STOP, &from, MESSAGE, sizeof(MESSAGE) - 1, &e));
    struct coordinator_view v = view(&w);
    ck_assert(v.stop_requested);
    ck_assert_str_eq(v.stop_reason, "launcher: enough");
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
        struct heartbeat_request q = heartbeat();
        q.held = ranges[i];
        e = (struct err){ 0 };
        ck_assert_msg(send_heartbeat(&w, &q, &e) == -1 && e.code == ERR_INPUT, "%zu: %s", i, e.msg);
    }
    e = (struct err){ 0 };
    ck_assert(handle(&w, COORDINATOR_HEARTBEAT, "\x0a\x01\xff", 3, &e) == -1 &&
              e.code == ERR_INPUT); /* a header that is malformed */
    e = (struct err){ 0 };
    ck_assert(handle(&w, COORDINATOR_HEARTBEAT, "", 0, &e) == -1 && e.code == ERR_INPUT); /* no header */
    struct register_request q = registration();
    q.sender.name = "";
    ck_assert(send_register(&w, &q, &e) == -1 && e.code == ERR_INPUT);
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
    struct heartbeat_request q = heartbeat();
    q.report =
        (struct coordinator_report){ .ordinals = ordinals, .n = 4, .sums = sums, .nsums = metrics_width(w.model) };
    ck_ok_e(send_heartbeat(&w, &q, &e));
    coordinator_metrics(w.coordinator, one_epoch, &batches);
    ck_assert_int_eq(batches, 1);
    world_close(&w);
}
END_TEST

static void too_much_to_register(struct world *w, struct register_request q, const char *words)
{
    struct err e = { 0 };
    ck_assert_msg(send_register(w, &q, &e) == -1 && e.code == ERR_INPUT && strstr(e.msg, words) != NULL, "%s: %s",
                  words, e.msg);
}

static void too_much(struct world *w, struct heartbeat_request q, const char *words)
{
    struct err e = { 0 };
    ck_assert_msg(send_heartbeat(w, &q, &e) == -1 && e.code == ERR_INPUT && strstr(e.msg, words) != NULL, "%s: %s",
                  words, e.msg);
}

START_TEST(what_is_out_of_bounds_is_refused)
{
    static int64_t many[1 << 17];
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    registered(&w);
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = (int64_t)i;
    struct register_request r = registration();
    r.sender.generation = UINT64_MAX; /* one more would be 0 */
    too_much_to_register(&w, r, "generation 18446744073709551615 is out of range");
    char text[ARITHMETIC_MAX + 1] = "";
    memset(text, 'a', ARITHMETIC_MAX);
    r = registration();
    r.arithmetic = text;
    too_much_to_register(&w, r, "more than 127 bytes");
    r.arithmetic = "\xff";
    too_much_to_register(&w, r, "not UTF-8");
    struct heartbeat_request q = heartbeat();
    q.held = (struct ordinal_ranges){ .r = many, .n = COORDINATOR_HELD_MAX + 2 };
    too_much(&w, q, "129 held ranges, at most 128");
    static const int64_t wide[] = { 5, 10, 20, 20 + COORDINATOR_HELD_BATCHES - 4 };
    q.held = (struct ordinal_ranges){ .r = wide, .n = 4 };
    too_much(&w, q, "have more than 65536 batches");
    q = heartbeat();
    q.report = (struct coordinator_report){ .ordinals = many, .n = COUNT_OF(many) };
    too_much(&w, q, "131072 reported ordinals");
    q = heartbeat();
    q.diverged = true;
    q.diverged_ordinal = 1000;
    too_much(&w, q, "names batch 1000 of a job of 1000");
    q = heartbeat();
    q.waiting_for = "\xff";
    too_much(&w, q, "not UTF-8");
    static const char *const names[] = { "worker 7",
                                         "worker-7\n",
                                         "w\xc3\xa9",
                                         "",
                                         "a234567890123456789012345678901234567890123456789012345678901234",
                                         "worker-1048577",
                                         "operator-0",
                                         "worker" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        r = registration();
        r.sender.name = names[i];
        too_much_to_register(&w, r, "sender");
    }
    q = heartbeat();
    q.held = (struct ordinal_ranges){ .r = many, .n = COORDINATOR_HELD_MAX };
    ck_ok_e(send_heartbeat(&w, &q, &e));
    static const int64_t enough[] = { 5, 10, 20, 20 + COORDINATOR_HELD_BATCHES - 5 };
    q.held = (struct ordinal_ranges){ .r = enough, .n = 4 };
    ck_ok_e(send_heartbeat(&w, &q, &e));
    world_close(&w);
}
END_TEST

/* Each takes 1 byte of text and 2 of the message. */
START_TEST(a_message_of_many_empty_texts_is_refused)
{
    struct world w;
    struct err e = { 0 };
    static char bytes[1 << 20];
    world_open(&w);
    for (size_t i = 0; i < sizeof(bytes); i += 2) { /* names is field 4 */
        memcpy(bytes + i, "\x22\x00", 2);
    }
    ck_assert_int_eq(handle(&w, COORDINATOR_REPORT_EVALUATION, bytes, sizeof(bytes), &e), -1);
    ck_assert_msg(e.code == ERR_INPUT && strstr(e.msg, "malformed") != NULL, "%s", e.msg);
    world_close(&w);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_counts_and_ends_the_job)
{
    struct world w;
    struct err e = { 0 };
    int64_t batches = -1;
    double sums[WIDTH_MAX] = { 0 };
    static const int64_t ordinals[] = { 3 };
    world_open(&w);
    registered(&w);
    lease_first(&w, 10);
    for (size_t i = 0; i < metrics_width(w.model); i++)
        sums[i] = 1;
    sums[0] = (double)NAN;
    struct heartbeat_request q = heartbeat();
    q.report =
        (struct coordinator_report){ .ordinals = ordinals, .n = 1, .sums = sums, .nsums = metrics_width(w.model) };
    ck_ok_e(send_heartbeat(&w, &q, &e));
    coordinator_metrics(w.coordinator, one_epoch, &batches);
    ck_assert_int_eq(batches, 1);
    struct coordinator_view v = view(&w);
    ck_assert(v.diverged && v.diverged_ordinal == 3);
    ck_assert_str_eq(v.diverged_by, "worker-7");
    ck_assert_msg(strstr(v.diverged_what, "loss nan") != NULL || strstr(v.diverged_what, "loss -nan") != NULL, "%s",
                  v.diverged_what);
    world_close(&w);
}
END_TEST

START_TEST(a_lease_of_lower_batches_arrives_whole)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    registered(&w);
    struct lease_request q = { .sender = sender(), .want = 6, .lower_only = true };
    static const int64_t BELOW[] = { 0, -5, INT64_MIN };
    for (size_t i = 0; i < COUNT_OF(BELOW); i++) { /* there are none */
        q.below = BELOW[i];
        ck_ok_e(send_lease(&w, &q, &e));
        ck_assert_int_eq(w.reply.count, 0);
    }
    q.below = 2;
    ck_ok_e(send_lease(&w, &q, &e));
    ck_assert(w.reply.first == 0 && w.reply.count == 2);
    q.lower_only = false;
    ck_ok_e(send_lease(&w, &q, &e));
    ck_assert(w.reply.first == 2 && w.reply.count == 6);
    world_close(&w);
}
END_TEST

START_TEST(a_lease_of_groups_arrives_whole)
{
    struct world w;
    struct err e = { 0 };
    groups_open(&w, 30);
    registered(&w);
    ck_assert_int_eq(w.reply.group_size, 30);
    ck_ok_e(send_lease(&w, &(struct lease_request){ .sender = sender(), .want = 120 }, &e));
    static const int64_t MORE[] = { 30, 60, 60, 90, 90, 100 };
    ck_assert(w.reply.first == 0 && w.reply.count == 30);
    ck_assert_uint_eq(w.reply.nmore, COUNT_OF(MORE));
    ck_assert_mem_eq(w.reply.more, MORE, sizeof(MORE));
    world_close(&w);
}
END_TEST

/* Field 11 has more ranges, field 12 the size of a group. */
START_TEST(an_answer_with_groups_that_are_not_valid_is_refused)
{
    static const struct {
        const char *data;
        size_t n;
    } BAD[] = {
        { "\x5a\x01\x05", 3 },                                          /* a range without an end */
        { "\x5a\x02\x05\x05", 4 },                                      /* an empty one */
        { "\x5a\x02\x06\x05", 4 },                                      /* one that ends before it begins */
        { "\x5a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x05", 13 }, /* from -1 */
        { "\x60\x91\x4e", 3 },                                          /* a group of 10001 */
        { "\x60\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },         /* of -1 */
    };
    char many[2 + 2 * COORDINATOR_LEASE_RANGES + 2] = "\x5a";
    struct coordinator_reply reply;
    struct err e = { 0 };
    for (size_t i = 0; i < COUNT_OF(BAD); i++)
        ck_fails(coordinator_unpack_reply(BAD[i].data, BAD[i].n, &reply, &e), ERR_INTERNAL, "the chief's answer");
    many[1] = 2 * COORDINATOR_LEASE_RANGES;
    for (int i = 0; i < 2 * (COORDINATOR_LEASE_RANGES + 1); i++)
        many[2 + i] = (char)(1 + i);
    ck_ok_e(coordinator_unpack_reply(many, sizeof(many) - 2, &reply, &e));
    ck_assert_uint_eq(reply.nmore, 2 * COORDINATOR_LEASE_RANGES);
    ck_assert(reply.more[0] == 1 && reply.more[reply.nmore - 1] == 2 * COORDINATOR_LEASE_RANGES);
    many[1] += 2;
    ck_fails(coordinator_unpack_reply(many, sizeof(many), &reply, &e), ERR_INTERNAL, "leases 16 more ranges");
    ck_ok_e(coordinator_unpack_reply("\x60\x90\x4e", 3, &reply, &e));
    ck_assert_int_eq(reply.group_size, GROUP_MAX);
}
END_TEST

START_TEST(an_answer_that_lends_nonsense_is_refused)
{
    /* CoordinatorReply: first is field 8, count field 9; as varints, INT64_MAX is eight ff and 7f, -1 nine ff and 01.
     */
    static const char beyond[] = "\x40\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x48\x01",
                      negative[] = "\x40\x05\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", fine[] = "\x40\x05\x48\x02";
    struct coordinator_reply reply;
    struct err e = { 0 };
    ck_assert_int_eq(coordinator_unpack_reply("\xff", 1, &reply, &e), -1);
    ck_assert_int_eq(coordinator_unpack_reply(beyond, sizeof(beyond) - 1, &reply, &e), -1);
    ck_assert_int_eq(coordinator_unpack_reply(negative, sizeof(negative) - 1, &reply, &e), -1);
    ck_assert_int_eq(e.code, ERR_INTERNAL);
    ck_ok_e(coordinator_unpack_reply(fine, sizeof(fine) - 1, &reply, &e));
    ck_assert(reply.first == 5 && reply.count == 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("coordinator_service");
    TCase *t = tcase_create("coordinator_service");
    tcase_add_test(t, the_address_of_a_worker_arrives_and_is_checked);
    tcase_add_test(t, a_registration_and_its_answer_arrive_whole);
    tcase_add_test(t, each_field_of_a_registration_counts);
    tcase_add_test(t, a_report_arrives_whole);
    tcase_add_test(t, evaluations_and_stop_requests_arrive_whole);
    tcase_add_test(t, the_launcher_stops_a_job_by_its_certificate);
    tcase_add_test(t, what_is_malformed_is_refused);
    tcase_add_test(t, sums_without_ordinals_and_ordinals_without_sums_are_ignored);
    tcase_add_test(t, what_is_out_of_bounds_is_refused);
    tcase_add_test(t, a_message_of_many_empty_texts_is_refused);
    tcase_add_test(t, a_loss_that_is_not_finite_counts_and_ends_the_job);
    tcase_add_test(t, a_lease_of_lower_batches_arrives_whole);
    tcase_add_test(t, a_lease_of_groups_arrives_whole);
    tcase_add_test(t, an_answer_with_groups_that_are_not_valid_is_refused);
    tcase_add_test(t, an_answer_that_lends_nonsense_is_refused);
    suite_add_tcase(s, t);
    return s;
}
