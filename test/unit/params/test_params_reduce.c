/* Batch statistics through params: over gRPC and without connections they are added alike. */
#include "params/shard_service_internal.h"
#include "params_fixture.h"

#include "base/clock.h"
#include "params/params_reduce.h"

enum { PINNED = 3 };
static const struct form FORMS[] = {
    { "local", 0, false },
    { "one ps", 1, true },
    { "three ps afar", 3, false },
    [PINNED] = { "two ps, the first one without segments", 2, false },
};

/* Groups of 4. */
static const struct groups G = { .size = 4, .batches = 10, .examples = 4, .rest = 4 };
enum { FLOATS = 80, WIDTH = 3, WAIT_MS = 30000 };

static void open_synchronous(struct world *w, const struct form *form)
{
    float vector[FLOATS] = { 0 };
    struct layout *layout = small_layout();
    for (size_t i = 0; i < layout->n && form == &FORMS[PINNED]; i++)
        layout->segments[i].pin = 2; /* ps-1 */
    world_open(w, form, layout);
    params_set_groups(w->chief, &G);
    params_set_synchronous(w->worker);
    params_set_synchronous(w->other);
    bring_up(w, COUNTING, vector);
}

/* The ps that adds. */
static size_t summing_ps(const struct world *w)
{
    return w->form == &FORMS[PINNED] ? 1 : 0;
}

/* A batch and its numbers, of which the sum depends on the order. */
static void number(int64_t ordinal, double ret[WIDTH])
{
    static const double FIRST[] = { 0x1p60, 0.1, -0x1p60, 0.7 };
    ret[0] = FIRST[ordinal % 4];
    ret[1] = 1 + (double)ordinal;
    ret[2] = 1 / (1 + (double)ordinal);
}

struct given {
    struct params *params;
    int64_t at, first, end, wait_ms;
    uint32_t phase;
    double totals[WIDTH];
    enum group_answer answer;
    int result;
    struct err error;
    struct thread thread;
};

static int reduce(struct given *x, struct err *e)
{
    int64_t ordinals[4];
    double numbers[4 * WIDTH];
    for (int64_t i = x->first; i < x->end; i++) {
        ordinals[i - x->first] = i;
        number(i, numbers + (i - x->first) * WIDTH);
    }
    struct group_request q = { .part = { .at = x->at,
                                         .phase = x->phase,
                                         .ordinals = ordinals,
                                         .n = (size_t)(x->end - x->first),
                                         .numbers = numbers,
                                         .width = WIDTH },
                               .wait_ms = x->wait_ms,
                               .totals = x->totals };
    int rc = params_reduce(x->params, &q, CALL_MS, e);
    x->answer = q.answer;
    return rc;
}

static void want_totals(const struct given *x)
{
    double want[WIDTH] = { 0 }, one[WIDTH];
    for (int64_t i = x->at; i < groups_end(&G, x->at); i++) {
        number(i, one);
        for (size_t k = 0; k < WIDTH; k++)
            want[k] += one[k];
    }
    ck_assert_int_eq((int)x->answer, GROUP_TOTALS);
    ck_assert_mem_eq(x->totals, want, sizeof(want));
}

START_TEST(two_workers_get_the_same_sums)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[_i]);
    for (uint32_t phase = 0; phase < 3; phase++) {
        struct given x = { .params = w.worker, .phase = phase, .first = 1, .end = 4 };
        struct given y = { .params = w.other, .phase = phase, .first = 0, .end = 1 };
        ck_fails(reduce(&x, &e), ERR_PENDING, "the batch statistics of batch 0");
        ck_ok_e(reduce(&y, &e));
        want_totals(&y);
        ck_ok_e(reduce(&x, &e)); /* the same numbers again */
        want_totals(&x);
    }
    struct given late = { .params = w.other, .phase = 1 };
    ck_ok_e(reduce(&late, &e)); /* it asks only */
    want_totals(&late);
    world_close(&w);
}
END_TEST

static void push_group(struct world *w, int64_t at)
{
    float grads[FLOATS] = { 0 };
    struct push_result result = { 0 };
    struct err e = { 0 };
    for (int64_t i = at; i < groups_end(&G, at); i++)
        ck_ok_e(params_push(w->worker, i, grads, CALL_MS, &result, &e));
}

START_TEST(a_step_is_over_when_the_next_one_has_sums)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[_i]);
    struct given x = { .params = w.worker, .first = 0, .end = 4 }, y = { .params = w.other, .at = 4 };
    ck_ok_e(reduce(&x, &e));
    ck_fails(reduce(&y, &e), ERR_PENDING, "the step of batch 4");
    push_group(&w, 0);
    ck_ok_e(reduce(&x, &e));
    want_totals(&x);
    ck_fails(reduce(&y, &e), ERR_PENDING, "the batch statistics of batches 4, 5, 6, 7");
    ck_fails(reduce(&x, &e), ERR_STALE, "the step of batch 0 is over");
    world_close(&w);
}
END_TEST

START_TEST(sums_that_were_lost_begin_again)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[_i]);
    struct given x = { .params = w.worker, .phase = 1, .first = 0, .end = 4, .wait_ms = WAIT_MS };
    ck_ok_e(reduce(&x, &e));
    ck_assert_int_eq((int)x.answer, GROUP_AGAIN);
    x.phase = 0;
    ck_ok_e(reduce(&x, &e));
    want_totals(&x);
    world_close(&w);
}
END_TEST

START_TEST(older_generations_are_fenced)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[_i]);
    struct given x = { .params = w.worker, .first = 0, .end = 4 };
    params_set_generation(w.chief, 2);
    for (size_t ps = 0; ps < MAX(w.form->nps, (size_t)1); ps++)
        ck_ok_e(params_adopt(w.chief, ps, CALL_MS, &e));
    ck_fails(reduce(&x, &e), ERR_FENCED, "generation 1 is over, this is 2");
    world_close(&w);
}
END_TEST

START_TEST(too_many_numbers_are_refused)
{
    static double many[GROUP_SUMS_WIDTH_MAX + 1];
    struct world w;
    struct err e = { 0 };
    int64_t zero = 0;
    open_synchronous(&w, &FORMS[_i]);
    struct group_request q = { .part = { .ordinals = &zero, .n = 1, .numbers = many, .width = COUNT_OF(many) },
                               .totals = many };
    ck_fails(params_reduce(w.worker, &q, CALL_MS, &e), ERR_INPUT, "65537 numbers of a batch");
    q.part.width = GROUP_SUMS_WIDTH_MAX;
    ck_fails(params_reduce(w.worker, &q, CALL_MS, &e), ERR_PENDING, "of batches 1, 2, 3");
    world_close(&w);
}
END_TEST

/* ---- waits ---- */

static void wait_for_others(void *user)
{
    struct given *x = user;
    x->result = reduce(x, &x->error);
}

static bool is_missing(struct world *w, int64_t at, const char *text)
{
    struct err e = { .msg = "" };
    struct given asks = { .params = w->worker, .at = at };
    ck_assert_int_eq(reduce(&asks, &e), -1);
    return strstr(e.msg, text) != NULL;
}

START_TEST(a_wait_ends_with_the_numbers_of_another_worker)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[_i]);
    struct given x = { .params = w.other, .first = 1, .end = 4, .wait_ms = WAIT_MS };
    struct given y = { .params = w.worker, .first = 0, .end = 1 };
    ck_ok_e(thread_start(&x.thread, "waiter", wait_for_others, &x, &e));
    ck_wait(is_missing(&w, 0, "of batch 0"));
    ck_ok_e(reduce(&y, &e));
    thread_join(&x.thread);
    ck_assert_msg(x.result == 0, "%s", x.error.msg);
    want_totals(&x);
    world_close(&w);
}
END_TEST

/* The ps keeps no numbers of a step that has not begun: its worker gives them again as soon as it has. */
START_TEST(numbers_before_their_step_are_asked_for_again)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[_i]);
    struct given x = { .params = w.other, .at = 4, .first = 4, .end = 8, .wait_ms = WAIT_MS };
    int64_t heard_ms = shard_service_heard_ms(w.service[summing_ps(&w)]);
    ck_wait(clock_ms() > heard_ms);
    ck_ok_e(thread_start(&x.thread, "waiter", wait_for_others, &x, &e));
    ck_wait(shard_service_heard_ms(w.service[summing_ps(&w)]) > heard_ms);
    ck_assert(is_missing(&w, 4, "the step of batch 4"));
    push_group(&w, 0);
    thread_join(&x.thread);
    if (x.result < 0) { /* 0: the request was read after the update */
        ck_assert_int_eq(x.error.code, ERR_PENDING);
        ck_assert_msg(strstr(x.error.msg, "of batch 4 must be given again") != NULL, "%s", x.error.msg);
        ck_ok_e(reduce(&x, &e));
    }
    want_totals(&x);
    world_close(&w);
}
END_TEST

START_TEST(a_wait_ends_with_the_generation)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[_i]);
    struct given x = { .params = w.other, .first = 0, .end = 1, .wait_ms = WAIT_MS };
    ck_ok_e(thread_start(&x.thread, "waiter", wait_for_others, &x, &e));
    ck_wait(is_missing(&w, 0, "of batches 1, 2, 3"));
    params_set_generation(w.chief, 2);
    ck_ok_e(params_adopt(w.chief, summing_ps(&w), CALL_MS, &e));
    thread_join(&x.thread);
    ck_assert_int_eq(x.result, -1);
    ck_assert_int_eq(x.error.code, ERR_FENCED);
    world_close(&w);
}
END_TEST

/* ---- what no client of this release sends, and no ps of it answers ---- */

static int ask(struct world *w, const struct group_request *q, size_t bytes, struct err *e)
{
    static const char ZEROS[4096];
    Trainyard__V1__Header header;
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    AUTO(rpc_channel) *c = rpc_channel_new(w->host[0], &RPC_INSECURE, &(struct rpc_channel_options){ 0 });
    const struct rpc_piece piece = { .data = ZEROS, .size = bytes };
    trainyard__v1__header__init(&header);
    header.job_uid = unconst(UID);
    header.sender = unconst("worker-0");
    header.generation = 1;
    reduce_pack(&header, q, &head);
    return rpc_unary(c, ps_method_path(PS_REDUCE), head.data, head.len, &piece, bytes > 0, CALL_MS, &m, e);
}

START_TEST(a_payload_of_another_size_is_refused)
{
    static const int64_t ORDINALS[GROUP_SUMS_ORDINALS_MAX + 1];
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[1]);
    struct group_request q = { .part = { .ordinals = ORDINALS, .n = 2, .width = WIDTH } };
    ck_fails(ask(&w, &q, 2 * WIDTH * sizeof(double) - 1, &e), ERR_INPUT, "47 bytes for 3 numbers of 2 batches");
    ck_fails(ask(&w, &q, 2 * WIDTH * sizeof(double) + 8, &e), ERR_INPUT, "56 bytes for 3 numbers of 2 batches");
    ck_fails(ask(&w, &q, 0, &e), ERR_INPUT, "0 bytes for 3 numbers of 2 batches");
    q.part.n = 0;
    ck_fails(ask(&w, &q, 8, &e), ERR_INPUT, "8 bytes for 3 numbers of 0 batches");
    q.part.n = COUNT_OF(ORDINALS);
    ck_fails(ask(&w, &q, COUNT_OF(ORDINALS) * WIDTH * sizeof(double), &e), ERR_INPUT, "for 3 numbers of 65 batches");
    q.part.n = 0;
    q.part.width = UINT32_MAX;
    ck_fails(ask(&w, &q, 0, &e), ERR_INPUT, "4294967295 numbers of a batch, at most 65536");
    q.part.width = 0;
    ck_fails(ask(&w, &q, 0, &e), ERR_INPUT, "0 numbers of a batch");
    q.part.width = WIDTH;
    ck_fails(ask(&w, &q, 0, &e), ERR_PENDING, "of batches 0, 1, 2, 3"); /* nothing was taken */
    world_close(&w);
}
END_TEST

static int read_answer(bool again, const char *payload, struct group_request *q, struct err *e)
{
    Trainyard__V1__ReduceReply r = TRAINYARD__V1__REDUCE_REPLY__INIT;
    AUTO_FINI(buf) bytes = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    PROTOBUF_AUTO *answer = NULL;
    r.again = again;
    r.payload = (ProtobufCBinaryData){ .data = unconst(payload), .len = strlen(payload) };
    codec_pack(&r.base, &bytes);
    if (rpc_message_of(bytes.data, bytes.len, &m, e) < 0 ||
        codec_unpack(&trainyard__v1__reduce_reply__descriptor, m, &answer, e) < 0)
        return -1;
    return reduce_read(m, (const void *)answer, q, e);
}

START_TEST(an_answer_of_another_size_is_not_taken)
{
    struct err e = { 0 };
    double totals[2] = { 0 };
    struct group_request q = { .part = { .width = 1 }, .totals = totals };
    ck_ok_e(read_answer(false, "12345678", &q, &e));
    ck_assert_int_eq((int)q.answer, GROUP_TOTALS);
    ck_assert_mem_eq(totals, "12345678", sizeof(totals[0]));
    ck_fails(read_answer(false, "1234567", &q, &e), ERR_LOST, "7 bytes for the sums of 1 numbers");
    ck_fails(read_answer(false, "123456789", &q, &e), ERR_LOST, "9 bytes for the sums of 1 numbers");
    ck_fails(read_answer(false, "", &q, &e), ERR_LOST, "0 bytes for the sums of 1 numbers");
    ck_ok_e(read_answer(true, "123", &q, &e)); /* nothing of it is read */
    ck_assert_int_eq((int)q.answer, GROUP_AGAIN);
    ck_assert_double_eq(totals[1], 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("params_reduce");
    TCase *all = tcase_create("all forms"), *wait = tcase_create("waits"), *wire = tcase_create("wire");
    int n = (int)COUNT_OF(FORMS);
    tcase_set_timeout(all, 60);
    tcase_set_timeout(wait, 60);
    tcase_set_timeout(wire, 60);
    tcase_add_loop_test(all, two_workers_get_the_same_sums, 0, n);
    tcase_add_loop_test(all, a_step_is_over_when_the_next_one_has_sums, 0, n);
    tcase_add_loop_test(all, sums_that_were_lost_begin_again, 0, n);
    tcase_add_loop_test(all, older_generations_are_fenced, 0, n);
    tcase_add_loop_test(all, too_many_numbers_are_refused, 0, n);
    tcase_add_loop_test(wait, a_wait_ends_with_the_numbers_of_another_worker, 0, n);
    tcase_add_loop_test(wait, numbers_before_their_step_are_asked_for_again, 1, n);
    tcase_add_loop_test(wait, a_wait_ends_with_the_generation, 0, n);
    tcase_add_test(wire, a_payload_of_another_size_is_refused);
    tcase_add_test(wire, an_answer_of_another_size_is_not_taken);
    suite_add_tcase(s, all);
    suite_add_tcase(s, wait);
    suite_add_tcase(s, wire);
    return s;
}
