/* Our event files have the framing and the messages of TensorFlow's. */
#include "check_main.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/rng.h"
#include "codec/protobuf.h"
#include "temp_folder.h"
#include "tfio/event.pb-c.h"
#include "tfio/event_reader.h"
#include "tfio/event_writer.h"

#define DATA "test/data/train/tf_files/"
enum { FILE_MAX = 1 << 20 };

static char folder[64];

static void setup(void)
{
    str_fmt(folder, sizeof(folder), "/tmp/trainyard-events-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    file_fault(NULL, 0, 0);
    remove_tree(folder);
}

static void load(const char *path, struct buf *ret)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(file_read(path, FILE_MAX, ret, &e));
}

static struct event_writer *opened(const char *run)
{
    struct err e = { .code = ERR_NONE };
    struct event_writer *w = NULL;
    auto_free char *dir = path_join(folder, run);
    ck_ok_e(event_writer_open(dir, 1599759586.0, "host", &w, &e));
    return w;
}

/* The golden bytes of TensorBoard's own tests: the first record of an old event file. */
START_TEST(the_first_record_is_that_of_tensorflow)
{
    static const unsigned char WANT[] = { 0x18, 0,    0,    0,    0,    0,    0,    0,    0xa3, 0x7f,
                                          0x4b, 0x22, 0x09, 0x00, 0x00, 0x80, 0x38, 0x99, 0xd6, 0xd7,
                                          0x41, 0x1a, 0x0d, 'b',  'r',  'a',  'i',  'n',  '.',  'E',
                                          'v',  'e',  'n',  't',  ':',  '2',  0x12, 0x4b, 0x36, 0xab };
    AUTO(event_writer) *w = opened("train");
    AUTO_FINI(buf) got = BUF_INIT;

    ck_assert(str_ends(event_writer_path(w), "/train/events.out.tfevents.1599759586.host"));
    load(event_writer_path(w), &got);
    ck_assert_uint_eq(got.len, sizeof(WANT));
    ck_assert_mem_eq(got.data, WANT, sizeof(WANT));
}
END_TEST

START_TEST(a_restart_in_the_same_second_makes_a_new_file)
{
    AUTO(event_writer) *first UNUSED = opened("train");
    AUTO(event_writer) *second = opened("train");
    ck_assert(str_ends(event_writer_path(second), ".host.1"));
}
END_TEST

START_TEST(what_is_written_is_read)
{
    struct err e = { .code = ERR_NONE };
    AUTO(event_writer) *w = opened("train");
    AUTO(event_reader) *r = NULL;
    struct event ev;
    char run[32];

    ck_ok_e(event_writer_session(w, 10, SESSION_START, 5, NULL, "resumed", &e));
    ck_ok_e(event_writer_scalar(w, 11, 0, "loss", 0.5F, &e));
    ck_ok_e(event_writer_scalar(w, 12, -1, "loss", NAN, &e));
    ck_ok_e(event_writer_text(w, 13, 7, "note", "**hi**", &e));
    ck_ok_e(event_writer_session(w, 14, SESSION_CHECKPOINT, 9, "m-9", NULL, &e));
    ck_ok_e(event_writer_sync(w, &e));

    ck_ok_e(event_reader_open(folder, &r, &e));
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SESSION && ev.value == SESSION_START && ev.step == 5 && ev.wall == 10);
    ck_assert_str_eq(ev.text, "resumed");
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SCALAR && ev.value == 0.5 && ev.step == 0 && ev.wall == 11);
    ck_assert_str_eq(ev.tag, "loss");
    ck_assert_str_eq(event_reader_run(r, &ev, run, sizeof(run)), "train");
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SCALAR && isnan(ev.value) && ev.step == -1);
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_TEXT && ev.step == 7);
    ck_assert_str_eq(ev.text, "**hi**");
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SESSION && ev.value == SESSION_CHECKPOINT);
    ck_assert_str_eq(ev.text, "m-9");
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 0);

    ck_ok_e(event_writer_scalar(w, 15, 10, "loss", 0.25F, &e)); /* a reader continues where it stopped */
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SCALAR && ev.value == 0.25);
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 0);
}
END_TEST

static void one_histogram(const float *values, size_t n, struct event_reader **r, struct event *ev)
{
    struct err e = { .code = ERR_NONE };
    AUTO(event_writer) *w = opened("h");
    ck_ok_e(event_writer_histogram(w, 1, 2, "w", values, n, &e));
    ck_ok_e(event_reader_open(event_writer_path(w), r, &e));
    ck_assert_int_eq(event_reader_next(*r, ev, &e), 1);
    ck_assert_int_eq(ev->kind, EVENT_HISTOGRAM);
}

START_TEST(histograms_count_every_finite_value_between_its_edges)
{
    enum { N = 5000 };
    float values[N];
    struct rng rng = rng_at(3, RNG_TEST, 0, 0);
    AUTO(event_reader) *r = NULL;
    struct event ev;
    double total = 0;

    for (size_t i = 0; i < N; i++) /* of all magnitudes and both signs, many at an edge of a bucket */
        values[i] = (float)(rng_normal(&rng) * (i % 2 == 0 ? 1 : pow(1.1, -(double)(i % 290))));
    for (size_t i = 1000; i < 1600; i++)
        values[i] = (float)((i % 2 == 0 ? 1 : -1) * 1e-12 * pow(1.1, (double)(i - 1000) / 2));
    values[5] = -0.0F;
    values[6] = -1e-40F;
    values[0] = NAN;
    values[1] = INFINITY;
    values[2] = 0;
    values[3] = -7;
    values[4] = 9e20F;
    one_histogram(values, N, &r, &ev);
    ck_assert(ev.value == N - 2);
    ck_assert(ev.buckets[0].left == -7.0);
    ck_assert(ev.buckets[ev.nbuckets - 1].right == (double)9e20F);
    for (size_t b = 0; b < ev.nbuckets; b++) {
        double inside = 0;
        for (size_t i = 0; i < N; i++) { /* left edge included, right edge excluded, the maximum in the last */
            double v = (double)values[i];
            inside += isfinite(v) && v >= ev.buckets[b].left && (v < ev.buckets[b].right || b + 1 == ev.nbuckets);
        }
        ck_assert_msg(ev.buckets[b].count == inside, "bucket %zu [%g, %g) says %g, has %g", b, ev.buckets[b].left,
                      ev.buckets[b].right, ev.buckets[b].count, inside);
        total += ev.buckets[b].count;
    }
    ck_assert(total == ev.value);
}
END_TEST

START_TEST(histograms_of_nothing_and_of_one_value_are_possible)
{
    static const float ZERO[] = { 0 };
    AUTO(event_reader) *none = NULL;
    AUTO(event_reader) *one = NULL;
    struct event ev;

    one_histogram(NULL, 0, &none, &ev);
    ck_assert(ev.value == 0 && ev.nbuckets == 0);
    one_histogram(ZERO, 1, &one, &ev);
    ck_assert(ev.value == 1 && ev.nbuckets == 1 && ev.buckets[0].left == 0 && ev.buckets[0].right == 0);
}
END_TEST

START_TEST(hparams_are_carried_in_metadata)
{
    static const char *const METRICS[] = { "epoch_loss" };
    struct err e = { .code = ERR_NONE };
    json_auto_t *h = json_pack("{s:f,s:s,s:b,s:[i]}", "lr", 0.1, "optimizer", "Adam", "shuffle", 1, "list", 1);
    AUTO(event_writer) *w = opened("train");
    AUTO_FINI(buf) got = BUF_INIT;
    AUTO(event_reader) *r = NULL;
    struct event ev;

    ck_ok_e(event_writer_hparams(w, 1, h, METRICS, 1, "mnist", &e));
    ck_ok_e(event_writer_hparams_end(w, 2, true, &e));
    ck_ok_e(event_reader_open(folder, &r, &e));
    static const char *const TAGS[] = { "_hparams_/experiment", "_hparams_/session_start_info",
                                        "_hparams_/session_end_info" };
    for (size_t i = 0; i < COUNT_OF(TAGS); i++) {
        ck_assert_int_eq(event_reader_next(r, &ev, &e), 1);
        ck_assert_str_eq(ev.tag, TAGS[i]);
        ck_assert_str_eq(ev.plugin, "hparams");
        ck_assert_int_eq(ev.kind, EVENT_OTHER);
    }
    load(event_writer_path(w), &got);
    ck_assert_ptr_nonnull(memmem(got.data, got.len, "mnist", 5));
    ck_assert_ptr_nonnull(memmem(got.data, got.len, "[1]", 3));
}
END_TEST

START_TEST(a_write_that_fails_leaves_no_half_record)
{
    struct err e = { .code = ERR_NONE };
    AUTO(event_writer) *w = opened("train");
    AUTO(event_reader) *r = NULL;
    struct event ev;

    file_fault("write", 1, ENOSPC);
    ck_assert_int_eq(event_writer_scalar(w, 1, 1, "loss", 1, &e), -1);
    ck_assert_int_eq(e.code, ERR_NO_SPACE); /* only the user can make room */
    ck_assert_ptr_nonnull(strstr(e.msg, event_writer_path(w)));
    file_fault(NULL, 0, 0);
    ck_ok_e(event_writer_scalar(w, 1, 2, "loss", 2, &e));
    ck_ok_e(event_reader_open(folder, &r, &e));
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 1);
    ck_assert_int_eq(ev.step, 2);
    ck_assert_int_eq(event_reader_next(r, &ev, &e), 0);
}
END_TEST

/* Names and field numbers of the .proto file are TensorFlow's: what TensorFlow wrote is packed to the same bytes. */
START_TEST(messages_of_tensorflow_are_packed_alike)
{
    static const char *const FILES[] = { DATA "events_v1/events.out.tfevents.1795235253.vm",
                                         DATA "events_v2/events.out.tfevents.1795235253.vm.5119.0.v2" };
    AUTO_FINI(buf) file = BUF_INIT;
    load(FILES[_i], &file);
    size_t events = 0;
    for (size_t at = 0; at < file.len; events++) {
        struct reader r = reader_of(file.data + at, sizeof(uint64_t));
        uint64_t n = 0;
        ck_assert_int_eq(reader_u64le(&r, &n), 0);
        AUTO_FINI(buf) packed = BUF_INIT;
        PROTOBUF_AUTO *message = NULL;
        ck_assert_int_eq(protobuf_unpack(&tensorflow__event__descriptor, file.data + at + 12, n, 2, &message), 0);
        protobuf_append(message, &packed);
        ck_assert_uint_eq(packed.len, n);
        ck_assert_mem_eq(packed.data, file.data + at + 12, n);
        at += 16 + n;
    }
    ck_assert_uint_gt(events, 5);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("event_writer");
    TCase *c = tcase_create("event_writer");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, the_first_record_is_that_of_tensorflow);
    tcase_add_test(c, a_restart_in_the_same_second_makes_a_new_file);
    tcase_add_test(c, what_is_written_is_read);
    tcase_add_test(c, histograms_count_every_finite_value_between_its_edges);
    tcase_add_test(c, histograms_of_nothing_and_of_one_value_are_possible);
    tcase_add_test(c, hparams_are_carried_in_metadata);
    tcase_add_test(c, a_write_that_fails_leaves_no_half_record);
    tcase_add_loop_test(c, messages_of_tensorflow_are_packed_alike, 0, 2);
    suite_add_tcase(s, c);
    return s;
}
