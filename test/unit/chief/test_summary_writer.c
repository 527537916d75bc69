#include "check_main.h"
#include "chief/summary_writer.h"

#include <errno.h>

#include "base/file.h"
#include "base/str.h"
#include "temp_folder.h"
#include "tfio/event_reader.h"

static char folder[64];
static int warnings;

static void setup(void)
{
    str_fmt(folder, sizeof(folder), "/tmp/trainyard-summaries-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    warnings = 0;
}

static void teardown(void)
{
    file_fault(NULL, 0, 0);
    remove_tree(folder);
}

static void count_warnings(void *user, enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    (void)user;
    (void)fields;
    ck_assert(level == LOG_WARNING && n == 0);
    ck_assert(str_starts(msg, "summaries cannot be written: "));
    warnings++;
}
static const struct report REPORT = { .write = count_warnings };

static size_t count_events(const char *run, enum event_kind kind)
{
    struct err e = { 0 };
    AUTO(event_reader) *r = NULL;
    struct event event;
    char found[32];
    size_t n = 0;
    ck_ok_e(event_reader_open(folder, &r, &e));
    while (event_reader_next(r, &event, &e) == 1)
        n += event.kind == kind && str_eq(event_reader_run(r, &event, found, sizeof(found)), run);
    return n;
}

START_TEST(values_are_in_the_file_of_their_run)
{
    struct err e = { 0 };
    AUTO(summary_writer) *w = NULL;
    json_auto_t *hparams = json_pack("{s:i}", "batch_size", 32);
    const struct summary_session session = { .hparams = hparams, .trial = "digits" };
    ck_ok_e(summary_writer_open(folder, true, &REPORT, &w, &e));
    ck_ok_e(summary_writer_begin(w, 1, &session, &e));
    summary_writer_train(w, 1, "loss", 0.5);
    summary_writer_train(w, 2, "loss", 0.25);
    summary_writer_validation(w, 2, "loss", 0.3);
    summary_writer_histogram(w, 2, "kernel", (const float[]){ 1, 2 }, 2);
    summary_writer_checkpoint(w, 2, "model.ckpt-2");
    summary_writer_end(w, true);
    ck_assert_uint_eq(count_events("train", EVENT_SCALAR), 2);
    ck_assert_uint_eq(count_events("train", EVENT_HISTOGRAM), 1);
    ck_assert_uint_eq(count_events("train", EVENT_SESSION), 2);
    ck_assert_uint_eq(count_events("train", EVENT_OTHER), 3);
    ck_assert_uint_eq(count_events("validation", EVENT_SCALAR), 1);
    ck_assert_uint_eq(count_events("validation", EVENT_SESSION), 1);
    ck_assert_int_eq(warnings, 0);
}
END_TEST

START_TEST(without_evaluation_there_is_one_file)
{
    struct err e = { 0 };
    AUTO(summary_writer) *w = NULL;
    auto_free char *validation = path_join(folder, "validation");
    ck_ok_e(summary_writer_open(folder, false, &REPORT, &w, &e));
    summary_writer_validation(w, 1, "loss", 1);
    ck_assert(!file_exists(validation));
    ck_assert_int_eq(warnings, 0);
}
END_TEST

START_TEST(a_failure_is_reported_once)
{
    struct err e = { 0 };
    AUTO(summary_writer) *w = NULL;
    ck_ok_e(summary_writer_open(folder, false, &REPORT, &w, &e));
    for (int64_t step = 1; step <= 3; step++) {
        file_fault("write", 1, ENOSPC);
        summary_writer_train(w, step, "loss", 1);
    }
    ck_assert_int_eq(warnings, 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("summary_writer");
    TCase *t = tcase_create("summary_writer");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, values_are_in_the_file_of_their_run);
    tcase_add_test(t, without_evaluation_there_is_one_file);
    tcase_add_test(t, a_failure_is_reported_once);
    suite_add_tcase(s, t);
    return s;
}
