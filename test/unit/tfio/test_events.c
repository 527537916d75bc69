/* Event files of TensorFlow's are read as TensorBoard reads them; ours have the framing and messages it expects. */
#include "check_main.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "codec/crc32c.h"
#include "temp_folder.h"
#include "tfio/events.h"

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

/* ---- reading what TensorFlow wrote ---- */

/* Lines as in expected/: sorted, since TensorBoard sorts by tag. */
static void list_events(const char *path, struct strlist *ret)
{
    struct err e = { .code = ERR_NONE };
    AUTO(events_reader) *r = NULL;
    struct event ev;
    int more;

    ck_ok_e(events_reader_open(path, &r, &e));
    while ((more = events_reader_next(r, &ev, &e)) == 1) {
        AUTO_FINI(buf) line = BUF_INIT;
        buf_printf(&line, "%s\t%lld\t", ev.tag, (long long)ev.step);
        if (ev.kind == EVENT_SCALAR)
            buf_printf(&line, "%.9g", ev.value);
        else if (ev.kind == EVENT_TEXT)
            buf_printf(&line, "%s %s", ev.plugin, ev.text);
        else
            buf_printf(&line, "kind %d of %zu buckets", (int)ev.kind, ev.nbuckets);
        strlist_add(ret, line.data);
    }
    ck_assert_msg(more == 0, "%s", e.msg);
}

START_TEST(reads_simple_values)
{
    AUTO_FINI(strlist) got = { 0 };
    AUTO_FINI(buf) expected = BUF_INIT;
    size_t seen = 0;
    char *rest = NULL;

    list_events(DATA "events_v1", &got);
    load(DATA "expected/events_v1.txt", &expected);
    for (char *line = strtok_r(expected.data, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        if (!str_starts(line, "scalar\t"))
            continue;
        ck_assert_msg(strlist_has(&got, line + strlen("scalar\t")), "missing: %s", line);
        seen++;
    }
    ck_assert_uint_eq(seen, got.n);
    ck_assert_uint_eq(seen, 10);
}
END_TEST

START_TEST(reads_tensors_with_plugins)
{
    static const char *const WANT[] = {
        "loss\t0\t2.29999995", "loss\t400\t0.460000008",     "steps_per_sec\t400\t104",
        "note\t0\ttext hello", "w\t0\tkind 1 of 10 buckets",
    };
    AUTO_FINI(strlist) got = { 0 };

    list_events(DATA "events_v2", &got);
    ck_assert_uint_eq(got.n, 12);
    for (size_t i = 0; i < COUNT_OF(WANT); i++)
        ck_assert_msg(strlist_has(&got, WANT[i]), "missing: %s", WANT[i]);
}
END_TEST

/* ---- writing ---- */

static struct events_writer *opened(const char *run)
{
    struct err e = { .code = ERR_NONE };
    struct events_writer *w = NULL;
    auto_free char *dir = path_join(folder, run);
    ck_ok_e(events_open(dir, 1599759586.0, "host", &w, &e));
    return w;
}

/* The golden bytes of TensorBoard's own tests: the first record of a file of that time. */
START_TEST(the_first_record_is_that_of_tensorflow)
{
    static const unsigned char WANT[] = { 0x18, 0,    0,    0,    0,    0,    0,    0,    0xa3, 0x7f,
                                          0x4b, 0x22, 0x09, 0x00, 0x00, 0x80, 0x38, 0x99, 0xd6, 0xd7,
                                          0x41, 0x1a, 0x0d, 'b',  'r',  'a',  'i',  'n',  '.',  'E',
                                          'v',  'e',  'n',  't',  ':',  '2',  0x12, 0x4b, 0x36, 0xab };
    AUTO(events_writer) *w = opened("train");
    AUTO_FINI(buf) got = BUF_INIT;

    ck_assert(str_ends(events_path(w), "/train/events.out.tfevents.1599759586.host"));
    load(events_path(w), &got);
    ck_assert_uint_eq(got.len, sizeof(WANT));
    ck_assert_mem_eq(got.data, WANT, sizeof(WANT));
}
END_TEST

START_TEST(a_restart_in_the_same_second_makes_a_new_file)
{
    AUTO(events_writer) *first UNUSED = opened("train");
    AUTO(events_writer) *second = opened("train");
    ck_assert(str_ends(events_path(second), ".host.1"));
}
END_TEST

START_TEST(what_is_written_is_read)
{
    struct err e = { .code = ERR_NONE };
    AUTO(events_writer) *w = opened("train");
    AUTO(events_reader) *r = NULL;
    struct event ev;
    char run[32];

    ck_ok_e(events_session(w, 10, EVENTS_START, 5, NULL, "resumed", &e));
    ck_ok_e(events_scalar(w, 11, 0, "loss", 0.5F, &e));
    ck_ok_e(events_scalar(w, 12, -1, "loss", NAN, &e));
    ck_ok_e(events_text(w, 13, 7, "note", "**hi**", &e));
    ck_ok_e(events_session(w, 14, EVENTS_CHECKPOINT, 9, "m-9", NULL, &e));
    ck_ok_e(events_flush(w, &e));

    ck_ok_e(events_reader_open(folder, &r, &e));
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SESSION && ev.value == EVENTS_START && ev.step == 5 && ev.wall == 10);
    ck_assert_str_eq(ev.text, "resumed");
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SCALAR && ev.value == 0.5 && ev.step == 0 && ev.wall == 11);
    ck_assert_str_eq(ev.tag, "loss");
    ck_assert_str_eq(events_reader_run(r, &ev, run, sizeof(run)), "train");
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SCALAR && isnan(ev.value) && ev.step == -1);
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_TEXT && ev.step == 7);
    ck_assert_str_eq(ev.text, "**hi**");
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SESSION && ev.value == EVENTS_CHECKPOINT);
    ck_assert_str_eq(ev.text, "m-9");
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 0);

    ck_ok_e(events_scalar(w, 15, 10, "loss", 0.25F, &e)); /* a reader goes on where it stood */
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 1);
    ck_assert(ev.kind == EVENT_SCALAR && ev.value == 0.25);
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 0);
}
END_TEST

static void one_histogram(const float *values, size_t n, struct events_reader **r, struct event *ev)
{
    struct err e = { .code = ERR_NONE };
    AUTO(events_writer) *w = opened("h");
    ck_ok_e(events_histogram(w, 1, 2, "w", values, n, &e));
    ck_ok_e(events_reader_open(events_path(w), r, &e));
    ck_assert_int_eq(events_reader_next(*r, ev, &e), 1);
    ck_assert_int_eq(ev->kind, EVENT_HISTOGRAM);
}

START_TEST(histograms_count_every_finite_value_between_its_edges)
{
    enum { N = 5000 };
    float values[N];
    struct rng rng = rng_at(3, RNG_TEST, 0, 0);
    AUTO(events_reader) *r = NULL;
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
        for (size_t i = 0; i < N; i++) { /* left edge in, right edge out, the maximum in the last */
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
    AUTO(events_reader) *none = NULL;
    AUTO(events_reader) *one = NULL;
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
    AUTO(events_writer) *w = opened("train");
    AUTO_FINI(buf) got = BUF_INIT;
    AUTO(events_reader) *r = NULL;
    struct event ev;

    ck_ok_e(events_hparams(w, 1, h, METRICS, 1, "mnist", &e));
    ck_ok_e(events_hparams_end(w, 2, true, &e));
    ck_ok_e(events_reader_open(folder, &r, &e));
    static const char *const TAGS[] = { "_hparams_/experiment", "_hparams_/session_start_info",
                                        "_hparams_/session_end_info" };
    for (size_t i = 0; i < COUNT_OF(TAGS); i++) {
        ck_assert_int_eq(events_reader_next(r, &ev, &e), 1);
        ck_assert_str_eq(ev.tag, TAGS[i]);
        ck_assert_str_eq(ev.plugin, "hparams");
        ck_assert_int_eq(ev.kind, EVENT_OTHER);
    }
    load(events_path(w), &got);
    ck_assert_ptr_nonnull(memmem(got.data, got.len, "mnist", 5));
    ck_assert_ptr_nonnull(memmem(got.data, got.len, "[1]", 3));
}
END_TEST

START_TEST(a_write_that_fails_leaves_no_half_record)
{
    struct err e = { .code = ERR_NONE };
    AUTO(events_writer) *w = opened("train");
    AUTO(events_reader) *r = NULL;
    struct event ev;

    file_fault("write", 1, ENOSPC);
    ck_assert_int_eq(events_scalar(w, 1, 1, "loss", 1, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT); /* only the user can make room */
    ck_assert_ptr_nonnull(strstr(e.msg, events_path(w)));
    file_fault(NULL, 0, 0);
    ck_ok_e(events_scalar(w, 1, 2, "loss", 2, &e));
    ck_ok_e(events_reader_open(folder, &r, &e));
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 1);
    ck_assert_int_eq(ev.step, 2);
    ck_assert_int_eq(events_reader_next(r, &ev, &e), 0);
}
END_TEST

/* ---- damage ---- */

static const char *const GOLDEN[] = { DATA "events_v1/events.out.tfevents.1795235253.vm",
                                      DATA "events_v2/events.out.tfevents.1795235253.vm.5119.0.v2" };

static void put_file(const char *path, const void *data, size_t n)
{
    auto_close int fd =
        open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666); /* O_TRUNC would make some file systems sync */
    ck_assert(fd >= 0 && write(fd, data, n) == (ssize_t)n && ftruncate(fd, (off_t)n) == 0);
}

/* Events until the end (0) or damage (-1). */
static int count_events(const char *path, size_t *ret, struct err *e)
{
    AUTO(events_reader) *r = NULL;
    struct event ev;
    int more;

    *ret = 0;
    if (events_reader_open(path, &r, e) < 0)
        return -1;
    while ((more = events_reader_next(r, &ev, e)) == 1)
        ++*ret;
    return more;
}

START_TEST(a_file_cut_anywhere_is_one_that_waits_for_more)
{
    auto_free char *path = path_join(folder, "tfevents");

    for (size_t g = 0; g < COUNT_OF(GOLDEN); g++) {
        AUTO_FINI(buf) good = BUF_INIT;
        size_t whole, got, last = 0;
        struct err e = { .code = ERR_NONE };
        load(GOLDEN[g], &good);
        ck_assert_int_eq(count_events(GOLDEN[g], &whole, &e), 0);
        for (size_t n = 0; n <= good.len; n++) {
            put_file(path, good.data, n);
            ck_assert_msg(count_events(path, &got, &e) == 0, "cut at %zu: %s", n, e.msg);
            ck_assert(got >= last && got <= whole);
            last = got;
        }
        ck_assert_uint_eq(last, whole);
    }
}
END_TEST

START_TEST(a_flipped_bit_anywhere_is_an_error)
{
    auto_free char *path = path_join(folder, "tfevents");

    for (size_t g = 0; g < COUNT_OF(GOLDEN); g++) {
        AUTO_FINI(buf) good = BUF_INIT;
        load(GOLDEN[g], &good);
        for (size_t bit = 0; bit < good.len * 8; bit += 3) {
            struct err e = { .code = ERR_NONE };
            size_t got;
            good.data[bit / 8] = (char)(good.data[bit / 8] ^ (1 << bit % 8));
            put_file(path, good.data, good.len);
            ck_assert_msg(count_events(path, &got, &e) == -1, "bit %zu is not noticed", bit);
            ck_assert_ptr_nonnull(strstr(e.msg, path));
            good.data[bit / 8] = (char)(good.data[bit / 8] ^ (1 << bit % 8));
        }
    }
}
END_TEST

START_TEST(damage_of_one_file_does_not_hide_the_others)
{
    AUTO_FINI(buf) good = BUF_INIT;
    auto_free char *a = path_join(folder, "a.tfevents"), *b = path_join(folder, "b.tfevents");
    auto_free char *other = path_join(folder, "notes.txt");
    struct err e = { .code = ERR_NONE };
    AUTO(events_reader) *r = NULL;
    struct event ev;
    size_t got = 0;

    load(GOLDEN[0], &good);
    put_file(b, good.data, good.len);
    good.data[50] = (char)(good.data[50] ^ 1);
    put_file(a, good.data, good.len);
    put_file(other, "x", 1);
    ck_ok_e(events_reader_open(folder, &r, &e));
    ck_assert_int_eq(events_reader_next(r, &ev, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, a));
    while (events_reader_next(r, &ev, &e) == 1)
        got++;
    ck_assert_uint_eq(got, 10);
}
END_TEST

/* Right checksums around any change: nothing to assert but an end; sanitizers watch. */
START_TEST(any_changed_byte_with_right_checksums_is_survived)
{
    auto_free char *path = path_join(folder, "tfevents");
    struct rng rng = rng_at(4, RNG_TEST, 0, 0);

    for (size_t g = 0; g < COUNT_OF(GOLDEN); g++) {
        AUTO_FINI(buf) good = BUF_INIT;
        load(GOLDEN[g], &good);
        for (int i = 0; i < 500; i++) {
            AUTO_FINI(buf) out = BUF_INIT;
            for (size_t at = 0; at < good.len;) {
                struct reader r = reader_of(good.data + at, 8);
                uint64_t n = 0;
                ck_assert_int_eq(reader_u64le(&r, &n), 0);
                char *data = good.data + at + 12, *changed = data + rng_below(&rng, n);
                char kept = *changed;
                *changed = (char)rng_u32(&rng);
                buf_add(&out, good.data + at, 12 + n);
                buf_u32le(&out, crc32c_mask(crc32c(0, data, n)));
                *changed = kept;
                at += 16 + n;
            }
            struct err e = { .code = ERR_NONE };
            size_t got;
            put_file(path, out.data, out.len);
            (void)count_events(path, &got, &e);
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("events");
    TCase *c = tcase_create("events");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, reads_simple_values);
    tcase_add_test(c, reads_tensors_with_plugins);
    tcase_add_test(c, the_first_record_is_that_of_tensorflow);
    tcase_add_test(c, a_restart_in_the_same_second_makes_a_new_file);
    tcase_add_test(c, what_is_written_is_read);
    tcase_add_test(c, histograms_count_every_finite_value_between_its_edges);
    tcase_add_test(c, histograms_of_nothing_and_of_one_value_are_possible);
    tcase_add_test(c, hparams_are_carried_in_metadata);
    tcase_add_test(c, a_write_that_fails_leaves_no_half_record);
    tcase_add_test(c, a_file_cut_anywhere_is_one_that_waits_for_more);
    tcase_add_test(c, a_flipped_bit_anywhere_is_an_error);
    tcase_add_test(c, damage_of_one_file_does_not_hide_the_others);
    tcase_add_test(c, any_changed_byte_with_right_checksums_is_survived);
    suite_add_tcase(s, c);
    return s;
}
