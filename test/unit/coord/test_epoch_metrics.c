#include "../one_output.h"
#include "coord/epoch_metrics.h"
#include "small_model.h"

#include <math.h>

/* The sums of a batch of n examples whose loss is x. The metrics themselves compute them, on predictions off by
 * sqrt(x). */
static void batch_sums(const struct model *m, double *sums, double loss, size_t n)
{
    float truth[3 * 8] = { 0 }, pred[3 * 8];
    struct tensor y = { .dtype = DT_FLOAT, .shape = { .rank = 2, .dim = { (int64_t)n, 3 } }, .data = truth };
    for (size_t i = 0; i < 3 * n; i++)
        pred[i] = (float)sqrt(loss);
    memset(sums, 0, metrics_width(m) * sizeof(*sums));
    add_one_output(m, sums, loss * (double)n, &y, pred, n);
}

struct fixture {
    struct model *m;
    double sums[64], result[8];
};

static struct fixture setup(void)
{
    struct fixture f = { .m = small_model(SMALL_DENSE, SMALL_COMPILE) };
    ck_assert_uint_le(metrics_width(f.m), 64);
    return f;
}

START_TEST(the_first_report_of_a_batch_counts)
{
    struct fixture f = setup();
    AUTO(epoch_metrics) *t = epoch_metrics_new(f.m, 10, 20, 0);
    batch_sums(f.m, f.sums, 4.0, 2);
    ck_assert(epoch_metrics_add(t, 3, f.sums));
    batch_sums(f.m, f.sums, 100.0, 2);
    ck_assert(!epoch_metrics_add(t, 3, f.sums));
    ck_assert_int_eq(epoch_metrics_of(t, 0, f.result), 1);
    ck_assert_double_eq_tol(f.result[0], 4.0, 1e-6);
    ck_assert_int_eq(epoch_metrics_of(t, 1, f.result), 0);
    ck_assert(isnan(f.result[0]));
    ck_assert(!epoch_metrics_add(t, 20, f.sums)); /* beyond the end */
    model_free(f.m);
}
END_TEST

START_TEST(an_epoch_is_the_mean_over_examples)
{
    struct fixture f = setup();
    AUTO(epoch_metrics) *t = epoch_metrics_new(f.m, 2, 4, 0);
    batch_sums(f.m, f.sums, 1.0, 6);
    epoch_metrics_add(t, 0, f.sums);
    batch_sums(f.m, f.sums, 4.0, 2); /* the short last batch weighs less */
    epoch_metrics_add(t, 1, f.sums);
    ck_assert_int_eq(epoch_metrics_of(t, 0, f.result), 2);
    ck_assert_double_eq_tol(f.result[0], (6 * 1.0 + 2 * 4.0) / 8, 1e-6);
    model_free(f.m);
}
END_TEST

START_TEST(windows_come_in_order_and_complete)
{
    struct fixture f = setup();
    AUTO(epoch_metrics) *t = epoch_metrics_new(f.m, 100, 25, 10);
    int64_t step;
    batch_sums(f.m, f.sums, 1.0, 1);
    for (int64_t i = 19; i >= 10; i--)
        epoch_metrics_add(t, i, f.sums);
    for (int64_t i = 0; i < 9; i++)
        epoch_metrics_add(t, i, f.sums);
    ck_assert_int_eq(epoch_metrics_take_window(t, false, &step, f.result), 0); /* 9 is missing */
    epoch_metrics_add(t, 9, f.sums);
    ck_assert_int_eq(epoch_metrics_take_window(t, false, &step, f.result), 1);
    ck_assert_int_eq(step, 10);
    ck_assert_int_eq(epoch_metrics_take_window(t, false, &step, f.result), 1);
    ck_assert_int_eq(step, 20);
    epoch_metrics_add(t, 20, f.sums);
    ck_assert_int_eq(epoch_metrics_take_window(t, false, &step, f.result), 0);
    for (int64_t i = 21; i < 25; i++)
        epoch_metrics_add(t, i, f.sums);
    ck_assert_int_eq(epoch_metrics_take_window(t, true, &step, f.result), 0); /* 5 batches are no point */
    model_free(f.m);
}
END_TEST

START_TEST(training_shorter_than_a_window_is_one_point)
{
    struct fixture f = setup();
    AUTO(epoch_metrics) *t = epoch_metrics_new(f.m, 100, 4, 10), *stopped = epoch_metrics_new(f.m, 100, 200, 10);
    int64_t step;
    batch_sums(f.m, f.sums, 1.0, 1);
    for (int64_t i = 0; i < 3; i++) {
        epoch_metrics_add(t, i, f.sums);
        epoch_metrics_add(stopped, i, f.sums);
    }
    ck_assert_int_eq(epoch_metrics_take_window(t, false, &step, f.result), 0);
    epoch_metrics_add(t, 3, f.sums);
    ck_assert_int_eq(epoch_metrics_take_window(t, false, &step, f.result), 1);
    ck_assert_int_eq(step, 4);
    ck_assert_int_eq(epoch_metrics_take_window(stopped, false, &step, f.result), 0);
    ck_assert_int_eq(epoch_metrics_take_window(stopped, true, &step, f.result), 1);
    ck_assert_int_eq(step, 3);
    model_free(f.m);
}
END_TEST

START_TEST(survives_a_checkpoint)
{
    struct fixture f = setup();
    struct err e = { 0 };
    AUTO(epoch_metrics) *t = epoch_metrics_new(f.m, 10, 20, 5), *back = NULL;
    for (int64_t i = 0; i < 13; i += 2) {
        batch_sums(f.m, f.sums, 0.1 + (double)i / 3.0, 3);
        epoch_metrics_add(t, i, f.sums);
    }
    json_auto_t *state = epoch_metrics_to_json(t);
    AUTO_FINI(buf) text = BUF_INIT;
    json_emit(state, &text);
    json_auto_t *read = NULL;
    ck_ok_e(json_parse(text.data, text.len, "state", &read, &e));
    struct node n = node_root(read, NULL);
    back = epoch_metrics_new(f.m, 10, 20, 5);
    ck_ok_e(epoch_metrics_from_json(back, &n, &e));
    for (int epoch = 0; epoch < 2; epoch++) {
        double other[8];
        ck_assert_int_eq(epoch_metrics_of(t, epoch, f.result), epoch_metrics_of(back, epoch, other));
        ck_assert_mem_eq(f.result, other, model_metrics(f.m) * sizeof(double));
    }
    ck_assert(!epoch_metrics_add(back, 12, f.sums));
    ck_assert(epoch_metrics_add(back, 13, f.sums));
    model_free(f.m);
}
END_TEST

START_TEST(windows_of_another_length_are_not_taken_over)
{
    struct fixture f = setup();
    struct err e = { 0 };
    int64_t step;
    AUTO(epoch_metrics) *t = epoch_metrics_new(f.m, 100, 200, 10);
    batch_sums(f.m, f.sums, 1.0, 1);
    for (int64_t i = 0; i < 25; i++)
        epoch_metrics_add(t, i, f.sums);
    json_auto_t *kept = epoch_metrics_to_json(t);
    struct node n = node_root(kept, NULL);
    AUTO(epoch_metrics) *other = epoch_metrics_new(f.m, 100, 200, 5);
    ck_ok_e(epoch_metrics_from_json(other, &n, &e));
    ck_assert_int_eq(epoch_metrics_take_window(other, true, &step, f.result), 0); /* not batch 20 as the window of 4 */
    ck_assert_int_eq(epoch_metrics_of(other, 0, f.result), 25);
    ck_assert(!epoch_metrics_add(other, 24, f.sums));
    model_free(f.m);
}
END_TEST

START_TEST(a_late_report_does_not_begin_a_window_again)
{
    struct fixture f = setup();
    int64_t step;
    AUTO(epoch_metrics) *t = epoch_metrics_new(f.m, 100, 200, 2);
    batch_sums(f.m, f.sums, 1.0, 1);
    for (int64_t i = 1; i < 20; i++)
        epoch_metrics_add(t, i, f.sums); /* 0 is missing */
    while (epoch_metrics_take_window(t, false, &step, f.result) == 1)
        continue;
    ck_assert(epoch_metrics_add(t, 0, f.sums));
    ck_assert_int_eq(epoch_metrics_take_window(t, true, &step, f.result), 0);
    ck_assert_int_eq(epoch_metrics_of(t, 0, f.result), 20);
    model_free(f.m);
}
END_TEST

START_TEST(reports_that_were_lost_do_not_hold_it_up)
{
    struct fixture f = setup();
    AUTO(epoch_metrics) *t = epoch_metrics_new(f.m, 10, 40, 0);
    batch_sums(f.m, f.sums, 1.0, 1);
    epoch_metrics_add(t, 13, f.sums);
    epoch_metrics_forget_before(t, 1);
    ck_assert_int_eq(epoch_metrics_reported(t), 11);
    ck_assert(!epoch_metrics_add(t, 3, f.sums));
    model_free(f.m);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tally");
    TCase *t = tcase_create("tally");
    tcase_add_test(t, the_first_report_of_a_batch_counts);
    tcase_add_test(t, an_epoch_is_the_mean_over_examples);
    tcase_add_test(t, windows_come_in_order_and_complete);
    tcase_add_test(t, training_shorter_than_a_window_is_one_point);
    tcase_add_test(t, survives_a_checkpoint);
    tcase_add_test(t, windows_of_another_length_are_not_taken_over);
    tcase_add_test(t, a_late_report_does_not_begin_a_window_again);
    tcase_add_test(t, reports_that_were_lost_do_not_hold_it_up);
    suite_add_tcase(s, t);
    return s;
}
