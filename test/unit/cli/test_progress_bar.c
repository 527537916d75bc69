#include "check_main.h"
#include "cli/progress_bar.h"

#include <math.h>
#include <string.h>

static const char ANSWER[] =
    "{\"state\":\"training\",\"message\":\"\",\"step\":1388,\"epoch\":2,\"epochs\":5,\"batches_done\":1388,\"batches_"
    "total\":4690,\"epoch_batches_done\":450,\"epoch_batches_total\":938,\"loss\":0.14334,\"metrics\":{\"loss\":0."
    "14334,\"accuracy\":0.9581},\"examples_per_second\":48210.4,\"last_update_time\":1795372477.5,\"workers\":2,\"a_"
    "stranger\":[1,2]}";

static struct job_progress parsed(const char *text)
{
    struct err e = { 0 };
    struct job_progress p;
    ck_ok_e(progress_parse(text, strlen(text), &p, &e));
    return p;
}

START_TEST(an_answer_is_read)
{
    struct job_progress p = parsed(ANSWER);
    ck_assert_str_eq(p.state, "training");
    ck_assert_int_eq(p.step, 1388);
    ck_assert_int_eq(p.epoch, 2);
    ck_assert_int_eq(p.epochs, 5);
    ck_assert_int_eq(p.epoch_done, 450);
    ck_assert_int_eq(p.epoch_total, 938);
    ck_assert_int_eq(p.workers, 2);
    ck_assert_uint_eq(p.nmetrics, 2); /* loss is not listed again as a metric */
    ck_assert_str_eq(p.metrics[0].name, "loss");
    ck_assert_str_eq(p.metrics[1].name, "accuracy");
}
END_TEST

START_TEST(odd_answers_do_no_harm)
{
    struct err e = { 0 };
    struct job_progress p = parsed("{\"loss\":\"NaN\",\"step\":\"many\",\"epoch\":1e300,\"metrics\":[1],\"state\":7}");
    ck_assert(isnan(p.metrics[0].value));
    ck_assert_int_eq(p.step, 0);
    ck_assert_int_eq(p.epoch, 0);
    ck_assert_str_eq(p.state, "");
    p = parsed("{\"loss\":null}");
    ck_assert_uint_eq(p.nmetrics, 0);
    p = parsed("[]");
    ck_assert_int_eq(p.step, 0);
    ck_assert_int_eq(progress_parse("{", 1, &p, &e), -1);
}
END_TEST

/* columns, epoch over, line */
static const struct {
    size_t width;
    bool finished;
    const char *line;
} BARS[] = {
    { 200, false,
      "Epoch 2/5 [==============>...............] 450/938  loss 0.1433  accuracy 0.9581  48210 ex/s  ETA 5 s, job 34 "
      "s" },
    { 200, true, "Epoch 2/5 [==============================] 938/938  loss 0.1433  accuracy 0.9581  48210 ex/s" },
    { 79, false, "Epoch 2/5 450/938  loss 0.1433  accuracy 0.9581  48210 ex/s  ETA 5 s, job 34 s" },
    { 70, false, "Epoch 2/5 450/938  loss 0.1433  accuracy 0.9581  48210 ex/s  ETA 5 s" },
    { 60, false, "Epoch 2/5 450/938  loss 0.1433  accuracy 0.9581  48210 ex/s" },
    { 30, false, "Epoch 2/5 450/938  loss 0.1433" },
    { 5, false, "" },
};
START_TEST(a_bar_fits_its_terminal)
{
    struct job_progress p = parsed(ANSWER);
    struct progress_rate pace = { .per_second = 100 };
    AUTO_FINI(buf) out = BUF_INIT;
    progress_bar(&p, &pace, BARS[_i].finished, BARS[_i].width, &out);
    ck_assert_str_eq(out.data, BARS[_i].line);
    ck_assert_uint_le(out.len, BARS[_i].width);
}
END_TEST

START_TEST(before_the_first_batch_it_says_what_is_waited_for)
{
    struct job_progress p = parsed("{\"state\":\"starting\",\"message\":\"waiting 3 s for ps-1\"}");
    struct progress_rate pace = { 0 };
    AUTO_FINI(buf) out = BUF_INIT;
    progress_bar(&p, &pace, false, 80, &out);
    ck_assert_str_eq(out.data, "starting: waiting 3 s for ps-1");
}
END_TEST

static void note(struct progress_rate *p, int64_t done, int64_t now_ms)
{
    struct job_progress seen = { .looked = true, .done = done };
    progress_rate_update(p, &seen, now_ms);
}

START_TEST(pace_follows_the_speed)
{
    struct progress_rate p = { 0 };
    note(&p, 0, 1000);
    ck_assert(p.per_second <= 0);
    note(&p, 5, 1010); /* too early for an estimate */
    ck_assert(p.per_second <= 0);
    note(&p, 100, 2000);
    ck_assert_double_eq_tol(p.per_second, 100, 1e-9);
    for (int i = 1; i <= 100; i++)
        note(&p, 100 + 40 * i, 2000 + 200 * i);
    ck_assert_double_eq_tol(p.per_second, 200, 1);
    note(&p, 4100, 22500); /* no new report does not mean a stall */
    ck_assert_double_eq_tol(p.per_second, 200, 1);
    note(&p, 4100, 32000); /* this is a stall */
    ck_assert(p.per_second < 50);
    note(&p, 50, 100000); /* rolled back: starts again */
    ck_assert(p.per_second <= 0);
}
END_TEST

START_TEST(what_was_done_before_is_no_speed)
{
    struct progress_rate p = { 0 };
    struct job_progress starting = { .done = 0 };
    progress_rate_update(&p, &starting, 1000); /* the chief has not polled yet: step 0 of a run that resumes */
    note(&p, 4000000, 1200);
    ck_assert(p.per_second <= 0);
    note(&p, 4000100, 2200);
    ck_assert_double_eq_tol(p.per_second, 100, 1e-9);
    progress_rate_update(&p, &starting, 3000); /* a new chief */
    note(&p, 4000200, 9000);
    ck_assert(p.per_second <= 0);
}
END_TEST

/* columns, line of the chief */
static const struct {
    size_t width;
    const char *text, *line;
} EPOCHS[] = {
    { 120, "epoch 2/5 done loss 0.2 val_loss 0.3", "Epoch 2/5 [====================] 100%  loss 0.2 val_loss 0.3" },
    { 80, "epoch 2/5 done loss 0.3517 accuracy 0.8956 val_loss 0.1281 val_accuracy 0.9609",
      "Epoch 2/5  loss 0.3517 accuracy 0.8956 val_loss 0.1281 val_accuracy 0.9609" },
    { 80, "epoch 2/5 done loss 0.3517 val_loss 0.1281 mae 0.12",
      "Epoch 2/5 [====================] 100%  loss 0.3517 val_loss 0.1281 mae 0.12" },
    { 70, "epoch 2/5 done loss 0.3517 val_loss 0.1281 mae 0.12",
      "Epoch 2/5 [==========] 100%  loss 0.3517 val_loss 0.1281 mae 0.12" },
};
START_TEST(the_line_of_an_epoch_fits_the_terminal)
{
    AUTO_FINI(buf) out = BUF_INIT;
    progress_epoch_line(EPOCHS[_i].text, EPOCHS[_i].width, &out);
    ck_assert_str_eq(out.data, EPOCHS[_i].line);
    ck_assert_uint_le(out.len, EPOCHS[_i].width);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("progress");
    TCase *t = tcase_create("progress");
    tcase_add_test(t, an_answer_is_read);
    tcase_add_test(t, odd_answers_do_no_harm);
    tcase_add_loop_test(t, a_bar_fits_its_terminal, 0, COUNT_OF(BARS));
    tcase_add_test(t, before_the_first_batch_it_says_what_is_waited_for);
    tcase_add_test(t, pace_follows_the_speed);
    tcase_add_test(t, what_was_done_before_is_no_speed);
    tcase_add_loop_test(t, the_line_of_an_epoch_fits_the_terminal, 0, COUNT_OF(EPOCHS));
    suite_add_tcase(s, t);
    return s;
}
