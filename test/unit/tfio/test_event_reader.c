/* TensorFlow's event files are read as TensorBoard reads them, and damage is detected. */
#include "check_main.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "codec/crc32c.h"
#include "temp_folder.h"
#include "tfio/event_reader.h"

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
    AUTO(event_reader) *r = NULL;
    struct event ev;
    int more;

    ck_ok_e(event_reader_open(path, &r, &e));
    while ((more = event_reader_next(r, &ev, &e)) == 1) {
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
    AUTO(event_reader) *r = NULL;
    struct event ev;
    int more;

    *ret = 0;
    if (event_reader_open(path, &r, e) < 0)
        return -1;
    while ((more = event_reader_next(r, &ev, e)) == 1)
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
    AUTO(event_reader) *r = NULL;
    struct event ev;
    size_t got = 0;

    load(GOLDEN[0], &good);
    put_file(b, good.data, good.len);
    good.data[50] = (char)(good.data[50] ^ 1);
    put_file(a, good.data, good.len);
    put_file(other, "x", 1);
    ck_ok_e(event_reader_open(folder, &r, &e));
    ck_assert_int_eq(event_reader_next(r, &ev, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, a));
    while (event_reader_next(r, &ev, &e) == 1)
        got++;
    ck_assert_uint_eq(got, 10);
}
END_TEST

/* Right checksums around any change: the test asserts only that the read ends; sanitizers watch. */
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
    Suite *s = suite_create("event_reader");
    TCase *c = tcase_create("event_reader");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, reads_simple_values);
    tcase_add_test(c, reads_tensors_with_plugins);
    tcase_add_test(c, a_file_cut_anywhere_is_one_that_waits_for_more);
    tcase_add_test(c, a_flipped_bit_anywhere_is_an_error);
    tcase_add_test(c, damage_of_one_file_does_not_hide_the_others);
    tcase_add_test(c, any_changed_byte_with_right_checksums_is_survived);
    suite_add_tcase(s, c);
    return s;
}
