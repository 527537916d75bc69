#include "check_main.h"
#include "net/registry.h"

#include <math.h>
#include <string.h>

#include "base/thread.h"

static double seven(void *user UNUSED)
{
    return 7;
}

START_TEST(the_text_is_prometheus_format)
{
    AUTO(registry) *r = registry_new();
    counter_add(registry_counter(r, "a_total", "Back\\slash\nand line.", NULL), 3);
    counter_add(registry_counter_scaled(r, "b_seconds_total", "B.", LABELS({ "what", "net\"work\n\\" }), 1e-9),
                1500000000);
    gauge_set(registry_gauge(r, "c", "C.", LABELS({ "role", "worker" }, { "index", "3" })), -0.25);
    gauge_set(registry_gauge(r, "c", "ignored", NULL), (double)NAN);
    registry_gauge_fn(r, "d", "D.", NULL, seven, NULL);
    AUTO_FINI(buf) out = BUF_INIT;
    registry_emit(r, &out);
    ck_assert_str_eq(out.data, "# HELP a_total Back\\\\slash\\nand line.\n"
                               "# TYPE a_total counter\n"
                               "a_total 3\n"
                               "# HELP b_seconds_total B.\n"
                               "# TYPE b_seconds_total counter\n"
                               "b_seconds_total{what=\"net\\\"work\\n\\\\\"} 1.5\n"
                               "# HELP c C.\n"
                               "# TYPE c gauge\n"
                               "c{role=\"worker\",index=\"3\"} -0.25\n"
                               "c NaN\n"
                               "# HELP d D.\n"
                               "# TYPE d gauge\n"
                               "d 7\n");
}
END_TEST

START_TEST(a_histogram_counts_below_each_bound)
{
    AUTO(registry) *r = registry_new();
    static const double BOUNDS[] = { 0.001, 1, 10 };
    struct histogram *h = registry_histogram(r, "h", "H.", LABELS({ "x", "y" }), BOUNDS, 3);
    static const double VALUES[] = { 0.0005, 0.001, 0.5, 10.5, 2 };
    for (size_t i = 0; i < COUNT_OF(VALUES); i++)
        histogram_observe(h, VALUES[i]);
    AUTO_FINI(buf) out = BUF_INIT;
    registry_emit(r, &out);
    ck_assert_str_eq(out.data, "# HELP h H.\n"
                               "# TYPE h histogram\n"
                               "h_bucket{x=\"y\",le=\"0.001\"} 2\n"
                               "h_bucket{x=\"y\",le=\"1\"} 3\n"
                               "h_bucket{x=\"y\",le=\"10\"} 4\n"
                               "h_bucket{x=\"y\",le=\"+Inf\"} 5\n"
                               "h_sum{x=\"y\"} 13.0015\n"
                               "h_count{x=\"y\"} 5\n");
}
END_TEST

START_TEST(the_same_metric_is_made_once)
{
    AUTO(registry) *r = registry_new();
    struct counter *a = registry_counter(r, "a", "A.", LABELS({ "k", "1" }));
    ck_assert_ptr_eq(a, registry_counter(r, "a", "A.", LABELS({ "k", "1" })));
    ck_assert_ptr_ne(a, registry_counter(r, "a", "A.", LABELS({ "k", "2" })));
}
END_TEST

static void count_much(void *user)
{
    struct registry *r = user;
    static const double BOUNDS[] = { 1 };
    struct counter *c = registry_counter(r, "c", "C.", NULL);
    struct histogram *h = registry_histogram(r, "h", "H.", NULL, BOUNDS, 1);
    for (int i = 0; i < 10000; i++) {
        counter_add(c, 2);
        histogram_observe(h, 1);
    }
}

START_TEST(no_count_is_lost_between_threads)
{
    struct err e;
    AUTO(registry) *r = registry_new();
    struct thread threads[4] = { 0 };
    for (int i = 0; i < 4; i++)
        ck_ok_e(thread_start(&threads[i], "count", count_much, r, &e));
    for (int i = 0; i < 10; i++) {
        AUTO_FINI(buf) scrape = BUF_INIT;
        registry_emit(r, &scrape);
    }
    for (int i = 0; i < 4; i++)
        thread_join(&threads[i]);
    AUTO_FINI(buf) out = BUF_INIT;
    registry_emit(r, &out);
    ck_assert_ptr_nonnull(strstr(out.data, "\nc 80000\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "\nh_sum 40000\nh_count 40000\n"));
}
END_TEST

START_TEST(every_process_shows_its_memory_and_time)
{
    AUTO(registry) *r = registry_new();
    registry_add_process(r);
    AUTO_FINI(buf) out = BUF_INIT;
    registry_emit(r, &out);
    static const char *const NAMES[] = { "process_cpu_seconds_total ", "process_resident_memory_bytes ",
                                         "process_open_fds ", "process_start_time_seconds ",
                                         "trainyard_build_info{version=\"" };
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        ck_assert_msg(strstr(out.data, NAMES[i]) != NULL, "%s", NAMES[i]);
    ck_assert_ptr_null(strstr(out.data, "NaN"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("registry");
    TCase *t = tcase_create("registry");
    tcase_add_test(t, the_text_is_prometheus_format);
    tcase_add_test(t, a_histogram_counts_below_each_bound);
    tcase_add_test(t, the_same_metric_is_made_once);
    tcase_add_test(t, no_count_is_lost_between_threads);
    tcase_add_test(t, every_process_shows_its_memory_and_time);
    suite_add_tcase(s, t);
    return s;
}
