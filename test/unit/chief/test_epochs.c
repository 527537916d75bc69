/* Which values an epoch's evaluation uses, and how a job ends. Optimizer Counting: after n batches every cell is n. */
#include "epoch_fixture.h"

#include <errno.h>

#include "base/stop.h"

START_TEST(batches_are_lent_up_to_the_end_of_an_epoch_that_is_evaluated)
{
    struct world w;
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 3");
    ck_assert_int_eq(chief_next_limit(w.l.chief, 0, 0), JOB_BATCHES);
    ck_assert_int_eq(chief_next_limit(w.l.chief, 1, JOB_BATCHES + 3), 2 * JOB_BATCHES);
    ck_assert_int_eq(chief_next_limit(w.l.chief, 3, 3 * JOB_BATCHES), 3 * JOB_BATCHES);
    struct evaluator *kept = TAKE(w.l.chief->evaluator);
    ck_assert_int_eq(chief_next_limit(w.l.chief, 0, 0), 3 * JOB_BATCHES); /* nothing is evaluated: no barrier */
    w.l.chief->evaluator = kept;
    world_close(&w);
}
END_TEST

START_TEST(each_epoch_is_evaluated_with_the_values_of_its_end)
{
    struct world w;
    struct worker worker;
    ps_open(&w.ps, COUNTING_OPTIMIZER, "epochs: 5");
    leader_open(&w.l, &w.ps, w.ps.job.dir);
    lead(&w.l);
    work(&worker, &w.ps, &w.l);
    join(&worker, &w.l);
    ck_assert_msg(w.l.result == 0, "%s", w.l.error.msg);
    want_history(&w, 5);
    for (int64_t epoch = 0; epoch < 5; epoch++)
        want_val_loss(&w, epoch, (float)((epoch + 1) * JOB_BATCHES));
    leader_close(&w.l);
    ps_close(&w.ps);
}
END_TEST

/* The state that a chief finds when its predecessor had opened the next epoch. */
START_TEST(values_that_are_gone_are_not_evaluated)
{
    struct world w;
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 3");
    train(&w, 0, JOB_BATCHES + 2);
    ck_assert(!take(&w, 1).exact);
    record(&w, 1);
    ck_assert(!w.l.chief->evaluation.running);
    train(&w, JOB_BATCHES + 2, 2 * JOB_BATCHES);
    record(&w, 2);
    await_evaluation(&w);
    want_history(&w, 2);
    ck_assert(isnan(val_loss(&w, 0)));
    want_val_loss(&w, 1, 2 * JOB_BATCHES);
    world_close(&w);
}
END_TEST

START_TEST(there_is_one_copy_and_the_next_epoch_waits_for_it)
{
    struct world w;
    struct epoch_values v;
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 3");
    train(&w, 0, 2 * JOB_BATCHES);
    w.l.chief->recorded_epochs = 1;
    w.l.chief->evaluation.running = true; /* of the first epoch */
    w.l.chief->evaluation.epoch = 0;
    params_vector(w.l.params)[0] = 4711; /* what is evaluated */
    ck_assert_int_eq(chief_take_values(w.l.chief, 2, &v, &e), 0);
    ck_assert(params_vector(w.l.params)[0] == 4711);
    want_message(&w, "the evaluation of epoch 1, before epoch 3 begins");
    w.l.chief->evaluation.running = false;
    ck_assert(take(&w, 2).exact);
    want_message(&w, "");
    world_close(&w);
}
END_TEST

/* ---- the end ---- */

START_TEST(what_was_trained_is_saved_before_it_is_evaluated)
{
    struct world w;
    int64_t step;
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 1");
    train(&w, 0, JOB_BATCHES);
    ck_assert(!finish(&w));
    ck_assert(is_saved(&w, JOB_BATCHES) && w.l.chief->evaluation.running);
    ck_assert_int_eq(output_dir_finished(w.ps.job.dir, JOB_UID, &step, &e), 0);
    finish_all(&w);
    want_history(&w, 1);
    want_val_loss(&w, 0, JOB_BATCHES);
    world_close(&w);
}
END_TEST

START_TEST(a_ps_that_is_lost_at_the_end_loses_nothing_and_is_evaluated_anew)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 1");
    train(&w, 0, JOB_BATCHES);
    ck_assert(!finish(&w));
    await_evaluation(&w);
    ck_assert_int_eq(w.l.chief->final_step, JOB_BATCHES);
    ps_stop(&w.ps, 1);
    ps_start(&w.ps, 1, 555);
    ck_ok_e(chief_initialise_ps(w.l.chief, w.l.chief->generation, &e));
    ck_assert_int_eq(w.l.chief->final_step, -1); /* those values may be gone */
    look(&w);
    struct coordinator_view coord;
    coordinator_view(w.l.chief->coordinator, &coord);
    ck_assert(coord.finished); /* nothing is trained again */
    finish_all(&w);
    want_history(&w, 1);
    want_val_loss(&w, 0, JOB_BATCHES);
    auto_free char *again = xasprintf("%s/checkpoints/model.ckpt-%d-1.index", w.ps.job.dir, JOB_BATCHES);
    ck_assert(file_exists(again));
    world_close(&w);
}
END_TEST

START_TEST(storage_that_is_full_at_the_end_is_waited_for)
{
    static const char *const ops[] = { "open", "write", "fsync", "rename" };
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        struct world w;
        world_open(&w, COUNTING_OPTIMIZER, "epochs: 1");
        train(&w, 0, JOB_BATCHES);
        file_fault(ops[i], 1, ENOSPC);
        ck_assert(!finish(&w));
        want_message(&w, "storage: ");
        want_message(&w, "No space left on device");
        file_fault(NULL, 0, 0);
        finish_all(&w);
        ck_assert(is_saved(&w, JOB_BATCHES));
        world_close(&w);
    }
}
END_TEST

START_TEST(storage_that_is_full_at_the_first_checkpoint_is_waited_for)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 1");
    file_fault("write", 1, ENOSPC);
    ck_ok_e(chief_save_first(w.l.chief, &e));
    want_message(&w, "storage: ");
    want_message(&w, "No space left on device; free space there, or raise the quota");
    file_fault(NULL, 0, 0);
    ck_assert(!is_saved(&w, 0));
    w.l.chief->storage_retry_ms = 0;
    ck_ok_e(chief_save_first(w.l.chief, &e));
    ck_assert(is_saved(&w, 0));
    want_message(&w, "");
    world_close(&w);
}
END_TEST

/* No wait: more time does not give a permission. */
START_TEST(storage_that_is_refused_at_the_first_checkpoint_is_an_error)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 1");
    file_fault("open", 1, EACCES);
    ck_assert_int_eq(chief_save_first(w.l.chief, &e), -1);
    file_fault(NULL, 0, 0);
    ck_assert_msg(err_exit_code(&e) == 2 && strstr(e.msg, "Permission denied") != NULL, "%s", e.msg);
    world_close(&w);
}
END_TEST

START_TEST(a_folder_that_was_deleted_is_made_again)
{
    struct world w;
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 1");
    train(&w, 0, JOB_BATCHES);
    auto_free char *command = xasprintf("rm -rf %s/checkpoints %s/summaries", w.ps.job.dir, w.ps.job.dir);
    ck_assert_int_eq(system(command), 0);
    ck_assert(!finish(&w));
    finish_all(&w);
    ck_assert(is_saved(&w, JOB_BATCHES));
    world_close(&w);
}
END_TEST

START_TEST(storage_that_stays_away_ends_the_chief_and_not_the_ps)
{
    struct world w;
    struct err e = { 0 };
    struct shard_info info;
    bool finished;
    world_open(&w, COUNTING_OPTIMIZER, "epochs: 1, maxWaitSeconds: 0.001");
    train(&w, 0, JOB_BATCHES);
    file_fault("write", 1, ENOSPC);
    int result = 0;
    ck_wait((w.l.chief->storage_retry_ms = 0, result = chief_finish(w.l.chief, &finished, &e)) != 0);
    file_fault(NULL, 0, 0);
    ck_assert_msg(result == -1 && err_exit_code(&e) == 138 && strstr(e.msg, "storage") != NULL, "%d %s", result, e.msg);
    shard_brief(w.ps.shard[0], &info);
    ck_assert_int_eq((int)info.state, SHARD_SERVING);
    world_close(&w);
}
END_TEST

/* ---- values that are not numbers ---- */

/* Every gradient is finite. The last update is not, and no batch is computed after it. */
static void push_over_the_edge(struct world *w, int64_t ordinal)
{
    struct err e = { 0 };
    struct push_result result;
    auto_free float *grads = xcalloc(model_size(w->ps.job.model), sizeof(*grads));
    for (size_t i = 0; i < model_size(w->ps.job.model); i++)
        grads[i] = 1e19f; /* below 2^64 */
    params_set_generation(w->worker, w->l.chief->generation);
    ck_ok_e(params_push(w->worker, ordinal, grads, PS_CALL_MS, &result, &e));
    look(w);
}

START_TEST(a_model_with_infinity_in_it_has_diverged)
{
    struct world w;
    struct err e = { 0 };
    bool finished;
    int64_t least, most;
    world_open(&w, "{SGD: {learning_rate: 1.0e+30}}", "epochs: 1");
    train(&w, 0, JOB_BATCHES - 1);
    push_over_the_edge(&w, JOB_BATCHES - 1);
    ck_fails(chief_pull(w.l.chief, &least, &most, &e), ERR_DIVERGED, "not finite");
    e = (struct err){ 0 };
    ck_assert_int_eq(chief_finish(w.l.chief, &finished, &e), -1);
    ck_assert_msg(err_exit_code(&e) == 3 && strstr(e.msg, "training diverged: dense/kernel") != NULL, "%s", e.msg);
    ck_assert(!is_saved(&w, JOB_BATCHES));
    world_close(&w);
}
END_TEST

/* The last test: stop_count() stays. */
START_TEST(a_signal_whose_checkpoint_fails_says_so)
{
    struct world w;
    ps_open(&w.ps, COUNTING_OPTIMIZER, "epochs: 2");
    leader_open(&w.l, &w.ps, w.ps.job.dir);
    lead(&w.l);
    struct chief_numbers n = { .checkpoint_step = -1 };
    ck_wait((chief_numbers(w.l.chief, &n), n.checkpoint_step >= 0));
    auto_free char *command = xasprintf("rm -r %s/checkpoints && touch %s/checkpoints", w.ps.job.dir, w.ps.job.dir);
    ck_assert_int_eq(system(command), 0);
    stop_request();
    thread_join(&w.l.thread);
    ck_assert_int_eq(w.l.result, -1);
    ck_assert_msg(err_exit_code(&w.l.error) == 138 &&
                      strstr(w.l.error.msg, "stopped by a signal, and the last checkpoint was not saved: ") != NULL,
                  "%s", w.l.error.msg);
    leader_close(&w.l);
    ps_close(&w.ps);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("epochs");
    TCase *t = tcase_create("epochs");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, batches_are_lent_up_to_the_end_of_an_epoch_that_is_evaluated);
    tcase_add_test(t, each_epoch_is_evaluated_with_the_values_of_its_end);
    tcase_add_test(t, values_that_are_gone_are_not_evaluated);
    tcase_add_test(t, there_is_one_copy_and_the_next_epoch_waits_for_it);
    tcase_add_test(t, what_was_trained_is_saved_before_it_is_evaluated);
    tcase_add_test(t, a_ps_that_is_lost_at_the_end_loses_nothing_and_is_evaluated_anew);
    tcase_add_test(t, storage_that_is_full_at_the_end_is_waited_for);
    tcase_add_test(t, storage_that_is_full_at_the_first_checkpoint_is_waited_for);
    tcase_add_test(t, storage_that_is_refused_at_the_first_checkpoint_is_an_error);
    tcase_add_test(t, a_folder_that_was_deleted_is_made_again);
    tcase_add_test(t, storage_that_stays_away_ends_the_chief_and_not_the_ps);
    tcase_add_test(t, a_model_with_infinity_in_it_has_diverged);
    tcase_add_test(t, a_signal_whose_checkpoint_fails_says_so);
    suite_add_tcase(s, t);
    return s;
}
