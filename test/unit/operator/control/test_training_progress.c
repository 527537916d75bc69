#include "check_main.h"

#include <string.h>

#include "base/str.h"
#include "control/training_progress.h"

/* What a page reports, as "STEP EPOCH/EPOCHS CHECKPOINT LOSS RATE METRICS"; NULL: it is refused. */
static const struct {
    const char *page, *heard;
} PAGES[] = {
    { "{\"step\":120,\"epoch\":2,\"epochs\":4,\"loss\":0.14331,\"metrics\":{\"loss\":1,\"accuracy\":0.95},\"examples_"
      "per_second\":1520.25,\"last_checkpoint_step\":100}",
      "120 2/4 100 0.1433 1520 {\"accuracy\":\"0.95\"}" },
    { "{\"step\":0}", "0 0/0 0  0 -" },
    { "{\"step\":1,\"loss\":\"NaN\",\"metrics\":{\"a\":\"inf\"}}", "1 0/0 0 NaN 0 {\"a\":\"inf\"}" },
    { "{\"step\":1,\"epoch\":1e300,\"epochs\":-1e300,\"last_checkpoint_step\":1e18}",
      "1 0/0 1000000000000000000  0 -" },
    { "{\"step\":-5,\"epoch\":-1,\"epochs\":true}", "0 0/0 0  0 -" },
    { "{\"step\":1,\"loss\":\"a word that is far too long for a loss\"}", "1 0/0 0  0 -" },
    { "{\"step\":1,\"loss\":\"\\u0000\\u001b[2J\"}", NULL },
    { "{\"step\":1,\"loss\":\"\\u001b[2J\",\"metrics\":{\"a\":\"\\u00e4\"}}", "1 0/0 0  0 -" },
    { "{\"step\":1,\"loss\":[[[]]],\"metrics\":[1,2],\"examples_per_second\":\"fast\"}", "1 0/0 0  0 -" },
    { "{\"step\":1,\"metrics\":{\"0123456789012345678901234567890123456789012345678901234567890123456789\":1,\"b\":2}}",
      "1 0/0 0  0 {\"b\":\"2\"}" },
    { "{\"step\":1.5}", NULL },
    { "{\"step\":1e999}", NULL },
    { "{\"epoch\":1}", NULL },
    { "[]", NULL },
    { "", NULL },
    { "<html>302 Found</html>", NULL },
};
START_TEST(a_page_is_read_with_distrust)
{
    AUTO_FINI(training_progress) p = { 0 };
    const char *page = PAGES[_i].page;
    int got = training_progress_parse(page, strlen(page), &p);
    if (PAGES[_i].heard == NULL) {
        ck_assert_msg(got < 0, "%s", page);
        return;
    }
    ck_assert_msg(got == 0, "%s", page);
    auto_free char *heard = xasprintf("%lld %lld/%lld %lld %s %g %s", (long long)p.step, (long long)p.epoch,
                                      (long long)p.epochs, (long long)p.last_checkpoint_step, p.loss,
                                      p.examples_per_second, p.metrics != NULL ? p.metrics : "-");
    ck_assert_str_eq(heard, PAGES[_i].heard);
}
END_TEST

static const struct {
    const char *page;
    int64_t percent, remaining_s;
} HOW_FAR[] = {
    { "{\"step\":1,\"percent\":40,\"remaining_seconds\":75}", 40, 75 },
    { "{\"step\":1,\"percent\":100,\"remaining_seconds\":0}", 100, 0 },
    { "{\"step\":1,\"percent\":0,\"remaining_seconds\":\"NaN\"}", 0, 0 },
    { "{\"step\":1,\"percent\":1000,\"remaining_seconds\":-5}", 100, 0 },
    { "{\"step\":1,\"percent\":[],\"remaining_seconds\":1e300}", 0, 0 },
    { "{\"step\":1}", 0, 0 },
};
START_TEST(how_far_a_job_is_has_bounds)
{
    AUTO_FINI(training_progress) p = { 0 };
    ck_assert_int_eq(training_progress_parse(HOW_FAR[_i].page, strlen(HOW_FAR[_i].page), &p), 0);
    ck_assert_int_eq(p.percent, HOW_FAR[_i].percent);
    ck_assert_int_eq(p.remaining_s, HOW_FAR[_i].remaining_s);
}
END_TEST

static const struct {
    const char *page, *waiting;
} WAITS[] = {
    { "{\"step\":1,\"state\":\"waiting\",\"message\":\"ps-0\",\"waiting_seconds\":30}", "ps-0" },
    { "{\"step\":1,\"state\":\"waiting\",\"message\":\"ps-0\",\"waiting_seconds\":29}", "" },
    { "{\"step\":1,\"state\":\"waiting\",\"message\":\"ps-0\"}", "" },
    { "{\"step\":1,\"state\":\"training\",\"message\":\"ps-0\",\"waiting_seconds\":30}", "" },
    { "{\"step\":1,\"state\":\"waiting\",\"message\":5,\"waiting_seconds\":30}", "" },
    { "{\"step\":1,\"state\":\"waiting\",\"message\":\"a\\nb\\u00e9\",\"waiting_seconds\":30}", "a?b??" },
};
START_TEST(what_training_waits_for_is_a_line)
{
    AUTO_FINI(training_progress) p = { 0 };
    ck_assert_int_eq(training_progress_parse(WAITS[_i].page, strlen(WAITS[_i].page), &p), 0);
    ck_assert_str_eq(p.waiting, WAITS[_i].waiting);
}
END_TEST

START_TEST(what_training_waits_for_is_cut)
{
    AUTO_FINI(training_progress) p = { 0 };
    auto_free char *page =
        xasprintf("{\"step\":1,\"state\":\"waiting\",\"waiting_seconds\":30,\"message\":\"%01000d\"}", 7);
    ck_assert_int_eq(training_progress_parse(page, strlen(page), &p), 0);
    ck_assert_uint_eq(strlen(p.waiting), sizeof(p.waiting) - 1);
}
END_TEST

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static const struct {
    const char *page, *weights;
} WEIGHTS[] = {
    { "{\"step\":1,\"weights_sha256\":\"" HEX "\"}", HEX },
    { "{\"step\":1,\"weights_sha256\":\"" HEX "0\"}", "" },
    { "{\"step\":1,\"weights_sha256\":\"0123\"}", "" },
    { "{\"step\":1,\"weights_sha256\":7}", "" },
    { "{\"step\":1}", "" },
};
START_TEST(a_hash_is_one_or_none)
{
    AUTO_FINI(training_progress) p = { 0 };
    ck_assert_int_eq(training_progress_parse(WEIGHTS[_i].page, strlen(WEIGHTS[_i].page), &p), 0);
    ck_assert_str_eq(p.weights_sha256, WEIGHTS[_i].weights);
}
END_TEST

START_TEST(a_long_or_deep_page_is_refused)
{
    AUTO_FINI(training_progress) p = { 0 };
    AUTO_FINI(buf) deep = BUF_INIT, wide = BUF_INIT;
    buf_str(&deep, "{\"step\":1,\"metrics\":");
    for (int i = 0; i < 30000; i++)
        buf_char(&deep, '[');
    ck_assert_int_lt(training_progress_parse(deep.data, deep.len, &p), 0);
    buf_str(&wide, "{\"step\":1,\"x\":\"");
    for (int i = 0; i < PROGRESS_MAX; i++)
        buf_char(&wide, 'x');
    buf_str(&wide, "\"}");
    ck_assert_int_lt(training_progress_parse(wide.data, wide.len, &p), 0);
}
END_TEST

START_TEST(many_metrics_are_cut)
{
    AUTO_FINI(training_progress) p = { 0 };
    AUTO_FINI(buf) page = BUF_INIT;
    buf_str(&page, "{\"step\":1,\"metrics\":{\"m\":0");
    for (int i = 0; i < 1000; i++)
        buf_printf(&page, ",\"m%d\":%d", i, i);
    buf_str(&page, "}}");
    ck_assert_int_eq(training_progress_parse(page.data, page.len, &p), 0);
    json_auto_t *metrics = json_loads(p.metrics, 0, NULL);
    ck_assert_uint_eq(json_object_size(metrics), 32);
}
END_TEST

/* The termination message of the container that trains, not of another one. */
START_TEST(a_pod_leaves_its_last_words)
{
    static const struct {
        const char *pod;
        int64_t step; /* -1: none */
    } PODS[] = {
        { "{\"status\":{\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"terminated\":{\"message\":\"{"
          "\\\"step\\\":7}\"}}}]}}",
          7 },
        { "{\"status\":{\"containerStatuses\":[{\"name\":\"other\",\"state\":{\"terminated\":{\"message\":\"{"
          "\\\"step\\\":7}\"}}}]}}",
          7 },
        { "{\"status\":{\"containerStatuses\":[{\"name\":\"other\",\"state\":{\"terminated\":{\"message\":\"{"
          "\\\"step\\\":7}\"}}},{\"name\":\"trainer\",\"state\":{\"terminated\":{\"message\":\"{\\\"step\\\":8}\"}}}]}"
          "}",
          8 },
        { "{\"status\":{\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"running\":{}}}]}}", -1 },
        { "{\"status\":{\"containerStatuses\":[{\"name\":\"trainer\",\"state\":{\"terminated\":{\"message\":\"Killed\"}"
          "}}]}}",
          -1 },
        { "{\"status\":{\"containerStatuses\":7}}", -1 },
        { "{}", -1 },
    };
    for (size_t i = 0; i < COUNT_OF(PODS); i++) {
        AUTO_FINI(training_progress) p = { 0 };
        json_auto_t *pod = json_loads(PODS[i].pod, 0, NULL);
        ck_assert_ptr_nonnull(pod);
        int got = training_progress_of_pod(&KIND_TRAINJOB, pod, &p);
        ck_assert_msg(got < 0 ? PODS[i].step < 0 : p.step == PODS[i].step, "%s", PODS[i].pod);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("progress");
    TCase *t = tcase_create("progress");

    tcase_add_loop_test(t, a_page_is_read_with_distrust, 0, COUNT_OF(PAGES));
    tcase_add_loop_test(t, how_far_a_job_is_has_bounds, 0, COUNT_OF(HOW_FAR));
    tcase_add_loop_test(t, what_training_waits_for_is_a_line, 0, COUNT_OF(WAITS));
    tcase_add_test(t, what_training_waits_for_is_cut);
    tcase_add_loop_test(t, a_hash_is_one_or_none, 0, COUNT_OF(WEIGHTS));
    tcase_add_test(t, a_long_or_deep_page_is_refused);
    tcase_add_test(t, many_metrics_are_cut);
    tcase_add_test(t, a_pod_leaves_its_last_words);
    suite_add_tcase(s, t);
    return s;
}
