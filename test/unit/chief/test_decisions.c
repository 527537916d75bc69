/* How the chief carries out fit.callbacks: one decision for each epoch, whichever process is killed at any time. With
 * Counting the loss grows from epoch to epoch, so the first epoch is the best. With SGD at rate 1 and gradients of -1 a
 * cell is the sum of the learning rates of the batches. */
#include "epoch_fixture.h"

#include <errno.h>

#include "chief/checkpoint.h"

#define SGD    "{SGD: {learning_rate: 1}}"
#define STOPS  "epochs: 9, callbacks: [{EarlyStopping: {patience: 2, restore_best_weights: true}}]"
#define LOWERS "epochs: 9, callbacks: [{ReduceLROnPlateau: {patience: 1, factor: 0.5}}]"

static void train_down(struct world *w, int64_t from, int64_t to)
{
    ps_push_of(&w->ps, w->worker, w->l.chief->generation, from, to, -1);
    look(w);
}

static int decide(struct world *w)
{
    struct err e = { 0 };
    int decided = chief_decide(w->l.chief, &e);
    ck_assert_msg(decided >= 0, "%s", e.msg);
    return decided;
}

/* Trains an epoch to its end, and has it recorded and evaluated. */
static void pass(struct world *w, int64_t epoch, void (*how)(struct world *w, int64_t from, int64_t to))
{
    how(w, epoch * JOB_BATCHES, (epoch + 1) * JOB_BATCHES);
    record(w, epoch + 1);
    await_evaluation(w);
}

static void pass_and_decide(struct world *w, int64_t epoch, void (*how)(struct world *w, int64_t from, int64_t to))
{
    pass(w, epoch, how);
    ck_assert_int_eq(decide(w), 1);
    ck_assert_int_eq(w->l.chief->decisions.now.epochs, epoch + 1);
}

/* A first checkpoint, as chief_run saves it. */
static void begin(struct world *w, const char *optimizer, const char *fit)
{
    struct err e = { 0 };
    world_open(w, optimizer, fit);
    ck_ok_e(chief_save(w->l.chief, &e));
}

/* The chief has ended; a new one takes over and polls the ps for the first time. */
static void replace_chief(struct world *w)
{
    struct err e = { 0 };
    AUTO_FINI(ps_set_view) view = { 0 };
    ck_ok_e(reporter_save_history(w->l.chief->reporter, clock_ms(), true, &e));
    leader_close(&w->l);
    leader_open(&w->l, &w->ps, w->ps.job.dir);
    struct chief *c = w->l.chief;
    ck_ok_e(chief_initialise_ps(c, 0, &e));
    look(w);
    ps_set_poll(c->ps_set, WAIT_MS, &view);
    c->recorded_epochs = reporter_resume(c->reporter, chief_epochs_over(c, view.done.low), c->coordinator);
    chief_callbacks_begin(c, view.step);
}

static void want_sum(struct world *w, double wanted)
{
    ps_want_cells(&w->ps, w->worker, w->l.chief->generation, (float)wanted);
}

static bool has_checkpoint(struct world *w, const char *name)
{
    auto_free char *file = xasprintf("%s/checkpoints/%s.index", w->ps.job.dir, name);
    return file_exists(file);
}

static json_t *read_json(struct world *w, const char *name)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    json_t *v = NULL;
    auto_free char *path = output_dir_path(w->ps.job.dir, name);
    ck_ok_e(file_read(path, 1 << 20, &text, &e));
    ck_ok_e(json_parse(text.data, text.len, name, &v, &e));
    return v;
}

static int64_t int_of(const json_t *v, const char *key)
{
    const json_t *n = json_object_get(v, key);
    return json_is_integer(n) ? json_integer_value(n) : -99;
}

static void want_result(struct world *w, const char *name)
{
    struct err e = { 0 };
    auto_free char *prefix = NULL;
    ck_ok_e(output_dir_model(w->ps.job.dir, &prefix, &e));
    ck_assert_msg(str_ends(prefix, name), "%s, not %s", prefix, name);
}

/* ---- waiting ---- */

START_TEST(the_next_epoch_waits_for_the_decision)
{
    struct world w;
    begin(&w, COUNTING_OPTIMIZER, STOPS);
    ck_assert_int_eq(chief_next_limit(w.l.chief, 0, 0), JOB_BATCHES);
    train(&w, 0, JOB_BATCHES);
    record(&w, 1);
    ck_assert_int_eq(decide(&w), 0);
    want_message(&w, "the evaluation of epoch 1, which callbacks read, before epoch 2 begins");
    ck_assert_int_eq(chief_next_limit(w.l.chief, 1, JOB_BATCHES), JOB_BATCHES);
    await_evaluation(&w);
    ck_assert_int_eq(decide(&w), 1);
    want_message(&w, "");
    ck_assert_int_eq(chief_next_limit(w.l.chief, 1, JOB_BATCHES), 2 * JOB_BATCHES);
    world_close(&w);
}
END_TEST

START_TEST(a_decision_on_training_metrics_does_not_wait_for_the_evaluation)
{
    struct world w;
    begin(&w, COUNTING_OPTIMIZER, "epochs: 9, callbacks: [{EarlyStopping: {monitor: loss}}]");
    train(&w, 0, JOB_BATCHES);
    record(&w, 1);
    ck_assert_int_eq(decide(&w), 1);
    ck_assert_int_eq(chief_next_limit(w.l.chief, 1, JOB_BATCHES), 2 * JOB_BATCHES);
    await_evaluation(&w);
    world_close(&w);
}
END_TEST

START_TEST(a_decision_that_cannot_be_saved_waits_for_storage)
{
    struct world w;
    begin(&w, COUNTING_OPTIMIZER, STOPS);
    pass(&w, 0, train);
    file_fault("write", 1, ENOSPC);
    ck_assert_int_eq(decide(&w), 0);
    want_message(&w, "storage: ");
    ck_assert_int_eq(chief_next_limit(w.l.chief, 1, JOB_BATCHES), JOB_BATCHES);
    file_fault(NULL, 0, 0);
    w.l.chief->storage_retry_ms = 0;
    ck_assert_int_eq(decide(&w), 1);
    want_message(&w, "");
    world_close(&w);
}
END_TEST

/* ---- the end ---- */

/* The first checkpoint is saved while the worker trains. Where that takes long, it is of the step at which the first
 * epoch ends, and the decision's checkpoint of this step has another name. Here it is of step 0. */
static void lead_and_work(struct world *w, struct worker *worker)
{
    leader_open(&w->l, &w->ps, w->ps.job.dir);
    lead(&w->l);
    ck_wait(has_checkpoint(w, "model.ckpt-0"));
    work(worker, &w->ps, &w->l);
}

START_TEST(a_stopped_job_means_its_best_epoch)
{
    struct world w;
    struct worker worker;
    ps_open(&w.ps, COUNTING_OPTIMIZER, STOPS);
    lead_and_work(&w, &worker);
    join(&worker, &w.l);
    ck_assert_msg(w.l.result == 0, "%s", w.l.error.msg);
    want_history(&w, 3); /* the best one, and two without improvement */
    json_auto_t *finished = read_json(&w, "finished"), *history = read_json(&w, "history.json");
    ck_assert_int_eq(int_of(finished, "step"), 3 * JOB_BATCHES);
    const json_t *both[] = { finished, history };
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        ck_assert_str_eq(json_string_value(json_object_get(both[i], "checkpoint")), "model.ckpt-10");
        ck_assert_int_eq(int_of(both[i], "best_epoch"), 0);
        ck_assert_int_eq(int_of(both[i], "stopped_epoch"), 2);
    }
    double final = json_number_value(json_object_get(json_object_get(history, "final"), "loss"));
    ck_assert(fabs(final - val_loss(&w, 0)) <= 1e-9 * final && fabs(final - val_loss(&w, 2)) > 1);
    want_result(&w, "/checkpoints/model.ckpt-10");     /* kept in addition to the last two */
    ck_assert(!has_checkpoint(&w, "model.ckpt-30-1")); /* the decision's is the last one */
    leader_close(&w.l);
    ps_close(&w.ps);
}
END_TEST

START_TEST(a_job_that_is_not_stopped_means_its_best_epoch_too)
{
    struct world w;
    struct worker worker;
    ps_open(&w.ps, COUNTING_OPTIMIZER,
            "epochs: 2, callbacks: [{EarlyStopping: {mode: max, restore_best_weights: true}}]");
    lead_and_work(&w, &worker);
    join(&worker, &w.l);
    ck_assert_msg(w.l.result == 0, "%s", w.l.error.msg);
    json_auto_t *finished = read_json(&w, "finished");
    ck_assert_int_eq(int_of(finished, "best_epoch"), 1); /* by the evaluation of the end */
    ck_assert_ptr_null(json_object_get(finished, "stopped_epoch"));
    want_result(&w, "/checkpoints/model.ckpt-20");
    leader_close(&w.l);
    ps_close(&w.ps);
}
END_TEST

START_TEST(the_best_checkpoint_is_kept_beside_the_last_ones)
{
    struct world w;
    begin(&w, COUNTING_OPTIMIZER, "epochs: 9, callbacks: [{ModelCheckpoint: {save_best_only: true}}]");
    for (int64_t epoch = 0; epoch < 4; epoch++)
        pass_and_decide(&w, epoch, train);
    ck_assert(has_checkpoint(&w, "model.ckpt-10"));
    ck_assert(!has_checkpoint(&w, "model.ckpt-0") && !has_checkpoint(&w, "model.ckpt-20"));
    ck_assert(has_checkpoint(&w, "model.ckpt-30") && has_checkpoint(&w, "model.ckpt-40"));
    world_close(&w);
}
END_TEST

START_TEST(a_damaged_best_checkpoint_is_not_the_result)
{
    struct world w;
    struct err e = { 0 };
    begin(&w, COUNTING_OPTIMIZER, STOPS);
    for (int64_t epoch = 0; epoch < 3; epoch++)
        pass_and_decide(&w, epoch, train);
    ck_assert(chief_stopped(w.l.chief));
    auto_free char *data = xasprintf("%s/checkpoints/model.ckpt-10.data-00000-of-00001", w.ps.job.dir);
    ck_ok_e(file_write(data, "damaged", 7, &e));
    finish_all(&w);
    want_result(&w, "/checkpoints/model.ckpt-30");
    world_close(&w);
}
END_TEST

/* ---- the learning rate ---- */

START_TEST(a_rate_belongs_to_the_first_batch_of_an_epoch)
{
    struct world w;
    begin(&w, SGD, LOWERS);
    pass_and_decide(&w, 0, train_down);
    pass_and_decide(&w, 1, train_down); /* no better: half the rate from batch 20 on */
    want_sum(&w, 20);
    pass_and_decide(&w, 2, train_down);
    want_sum(&w, 25);
    train_down(&w, 3 * JOB_BATCHES, 3 * JOB_BATCHES + 4);
    want_sum(&w, 26);
    json_auto_t *h = reporter_to_json(w.l.chief->reporter);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        double rate;
        ck_assert(history_find(h, epoch, "learning_rate", &rate));
        ck_assert_double_eq(rate, epoch < 2 ? 1 : 0.5);
    }
    world_close(&w);
}
END_TEST

START_TEST(a_rate_is_written_with_the_fewest_digits)
{
    struct world w;
    AUTO_FINI(buf) text = BUF_INIT;
    begin(&w, "{SGD: {learning_rate: 0.01}}",
          "epochs: 9, callbacks: [{ReduceLROnPlateau: {patience: 1, factor: 0.5, min_delta: 1000}}]");
    for (int64_t epoch = 0; epoch < 3; epoch++)
        pass_and_decide(&w, epoch, train_down);
    json_auto_t *h = reporter_to_json(w.l.chief->reporter);
    json_emit(json_object_get(h, "learning_rate"), &text);
    ck_assert_str_eq(text.data, "[0.01,0.01,0.005]"); /* 0.004999999888241291 is that float32 as a double */
    world_close(&w);
}
END_TEST

START_TEST(a_ps_that_comes_back_has_the_rates)
{
    struct world w;
    struct err e = { 0 };
    begin(&w, SGD, LOWERS);
    pass_and_decide(&w, 0, train_down);
    pass_and_decide(&w, 1, train_down);
    train_down(&w, 20, 23);
    ps_stop(&w.ps, 1);
    ps_start(&w.ps, 1, 555);
    ck_ok_e(chief_initialise_ps(w.l.chief, w.l.chief->generation, &e));
    train_down(&w, 20, 23); /* on the lost one alone */
    want_sum(&w, 21.5);
    world_close(&w);
}
END_TEST

/* ---- processes are killed ---- */

static void want_lowered_once(struct world *w)
{
    ck_assert_uint_eq(w->l.chief->decisions.now.rates.n, 1);
    train_down(w, 2 * JOB_BATCHES, 2 * JOB_BATCHES + 4);
    want_sum(w, 22);
}

START_TEST(a_chief_killed_before_the_decision_is_saved_decides_again)
{
    struct world w;
    begin(&w, SGD, LOWERS);
    pass_and_decide(&w, 0, train_down);
    pass(&w, 1, train_down);
    replace_chief(&w);
    ck_assert_int_eq(w.l.chief->decisions.now.epochs, 1);
    ck_assert_int_eq(chief_next_limit(w.l.chief, 2, 2 * JOB_BATCHES), 2 * JOB_BATCHES);
    ck_assert_int_eq(decide(&w), 1); /* history.json has the evaluation */
    want_lowered_once(&w);
    world_close(&w);
}
END_TEST

START_TEST(a_chief_killed_during_the_evaluation_evaluates_again)
{
    struct world w;
    begin(&w, SGD, LOWERS);
    pass_and_decide(&w, 0, train_down);
    train_down(&w, JOB_BATCHES, 2 * JOB_BATCHES);
    w.l.chief->recorded_epochs = 2; /* recorded, but not evaluated */
    reporter_epoch(w.l.chief->reporter, 1, w.l.chief->coordinator);
    replace_chief(&w);
    ck_assert_int_eq(w.l.chief->recorded_epochs, 2);
    ck_assert_int_eq(decide(&w), 0);
    record(&w, 2);
    await_evaluation(&w);
    ck_assert_int_eq(decide(&w), 1);
    want_lowered_once(&w);
    world_close(&w);
}
END_TEST

START_TEST(a_chief_killed_after_the_decision_is_saved_carries_it_out)
{
    struct world w;
    struct err e = { 0 };
    begin(&w, SGD, LOWERS);
    pass_and_decide(&w, 0, train_down);
    pass(&w, 1, train_down);
    ps_stop(&w.ps, 1); /* the decision cannot be sent to all ps */
    ck_assert_int_eq(chief_decide(w.l.chief, &e), -1);
    ps_start(&w.ps, 1, 555);
    ck_ok_e(chief_initialise_ps(w.l.chief, w.l.chief->generation, &e));
    train_down(&w, JOB_BATCHES, 2 * JOB_BATCHES);
    record(&w, 2);
    await_evaluation(&w);
    ck_assert_int_eq(decide(&w), 1);
    replace_chief(&w);
    ck_assert_int_eq(w.l.chief->decisions.now.epochs, 2);
    ck_assert_int_eq(decide(&w), 1);
    want_lowered_once(&w);
    world_close(&w);
}
END_TEST

START_TEST(a_ps_lost_before_the_decision_has_the_epoch_evaluated_again)
{
    struct world w;
    struct err e = { 0 };
    begin(&w, COUNTING_OPTIMIZER, STOPS);
    pass_and_decide(&w, 0, train);
    pass(&w, 1, train);
    ps_stop(&w.ps, 1);
    ps_start(&w.ps, 1, 555);
    ck_ok_e(chief_initialise_ps(w.l.chief, w.l.chief->generation, &e));
    look(&w);
    ck_assert_int_eq(decide(&w), 0); /* its values are those of epoch 1 */
    train(&w, JOB_BATCHES, 2 * JOB_BATCHES);
    record(&w, 2);
    await_evaluation(&w);
    ck_assert_int_eq(decide(&w), 1);
    want_val_loss(&w, 1, 2 * JOB_BATCHES);
    world_close(&w);
}
END_TEST

/* The batches of 3 epochs are done and none is left: training ended after 3 of 9 epochs. */
static void want_all_done(struct world *w, const char *state, int64_t done)
{
    json_auto_t *v = progress(w);
    ck_assert_str_eq(json_string_value(json_object_get(v, "state")), state);
    ck_assert_int_eq(int_of(v, "batches_done"), done);
    ck_assert_int_eq(int_of(v, "batches_total"), 3 * JOB_BATCHES);
    ck_assert_int_eq(int_of(v, "percent"), done * 100 / (3 * JOB_BATCHES));
    ck_assert_int_eq(int_of(v, "epochs"), 9);
    if (done == 0)
        return;
    ck_assert_int_eq(int_of(v, "epoch"), 3);
    ck_assert(json_number_value(json_object_get(v, "remaining_seconds")) == 0);
    ck_assert(json_is_number(json_object_get(v, "remaining_seconds")));
}

/* Records what is done, as the chief's loop does. */
static void note(struct world *w)
{
    AUTO_FINI(ps_set_view) view = { 0 };
    struct coordinator_view coord;
    look(w);
    ps_set_poll(w->l.chief->ps_set, WAIT_MS, &view);
    coordinator_view(w->l.chief->coordinator, &coord);
    reporter_poll(w->l.chief->reporter, &view, &coord, w->l.chief->coordinator, clock_ms());
}

START_TEST(a_stop_is_carried_out_by_the_next_chief)
{
    struct world w;
    struct err e = { 0 };
    begin(&w, COUNTING_OPTIMIZER, STOPS);
    for (int64_t epoch = 0; epoch < 3; epoch++)
        pass_and_decide(&w, epoch, train);
    note(&w);
    want_all_done(&w, "training", 3 * JOB_BATCHES);
    replace_chief(&w);
    want_all_done(&w, "training", 0);
    note(&w);
    want_all_done(&w, "training", 3 * JOB_BATCHES);
    ck_assert(chief_stopped(w.l.chief));
    ck_assert_int_eq(chief_next_limit(w.l.chief, 3, 3 * JOB_BATCHES), 3 * JOB_BATCHES);
    finish_all(&w);
    json_auto_t *finished = read_json(&w, "finished");
    ck_assert_int_eq(int_of(finished, "stopped_epoch"), 2);
    want_result(&w, "/checkpoints/model.ckpt-10");
    want_all_done(&w, "finished", 3 * JOB_BATCHES);
    leader_close(&w.l); /* and one that comes after the end */
    leader_open(&w.l, &w.ps, w.ps.job.dir);
    ck_ok_e(chief_run(w.l.chief, &e));
    want_all_done(&w, "finished", 3 * JOB_BATCHES);
    world_close(&w);
}
END_TEST

/* The same folder with another `fit`. */
static void reopen_with(struct world *w, const char *optimizer, const char *fit)
{
    struct job_fixture other;
    job_open(&other, optimizer, fit);
    struct job *mine = w->ps.job.job;
    struct model *model = w->ps.job.model;
    w->ps.job.job = other.job;
    w->ps.job.model = other.model;
    replace_chief(w);
    other.job = mine;
    other.model = model;
    job_close(&other);
}

START_TEST(more_epochs_lift_a_stop)
{
    struct world w;
    begin(&w, COUNTING_OPTIMIZER, STOPS);
    for (int64_t epoch = 0; epoch < 3; epoch++)
        pass_and_decide(&w, epoch, train);
    reopen_with(&w, COUNTING_OPTIMIZER,
                "epochs: 12, callbacks: [{EarlyStopping: {patience: 2, restore_best_weights: true}}]");
    ck_assert(!chief_stopped(w.l.chief));
    ck_assert_int_eq(chief_next_limit(w.l.chief, 3, 3 * JOB_BATCHES), 4 * JOB_BATCHES);
    pass_and_decide(&w, 3, train);
    ck_assert(!chief_stopped(w.l.chief)); /* patience starts again */
    pass_and_decide(&w, 4, train);
    ck_assert(chief_stopped(w.l.chief));
    world_close(&w);
}
END_TEST

START_TEST(another_learning_rate_in_the_manifest_holds)
{
    struct world w;
    begin(&w, SGD, LOWERS);
    pass_and_decide(&w, 0, train_down);
    pass_and_decide(&w, 1, train_down);
    ck_assert_uint_eq(w.l.chief->decisions.now.rates.n, 1);
    reopen_with(&w, "{SGD: {learning_rate: 2}}", "resume: true, " LOWERS);
    ck_assert_uint_eq(w.l.chief->decisions.now.rates.n, 0);
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("decisions");
    TCase *t = tcase_create("decisions");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_next_epoch_waits_for_the_decision);
    tcase_add_test(t, a_decision_on_training_metrics_does_not_wait_for_the_evaluation);
    tcase_add_test(t, a_decision_that_cannot_be_saved_waits_for_storage);
    tcase_add_test(t, a_stopped_job_means_its_best_epoch);
    tcase_add_test(t, a_job_that_is_not_stopped_means_its_best_epoch_too);
    tcase_add_test(t, the_best_checkpoint_is_kept_beside_the_last_ones);
    tcase_add_test(t, a_damaged_best_checkpoint_is_not_the_result);
    tcase_add_test(t, a_rate_belongs_to_the_first_batch_of_an_epoch);
    tcase_add_test(t, a_rate_is_written_with_the_fewest_digits);
    tcase_add_test(t, a_ps_that_comes_back_has_the_rates);
    tcase_add_test(t, a_chief_killed_before_the_decision_is_saved_decides_again);
    tcase_add_test(t, a_chief_killed_during_the_evaluation_evaluates_again);
    tcase_add_test(t, a_chief_killed_after_the_decision_is_saved_carries_it_out);
    tcase_add_test(t, a_ps_lost_before_the_decision_has_the_epoch_evaluated_again);
    tcase_add_test(t, a_stop_is_carried_out_by_the_next_chief);
    tcase_add_test(t, more_epochs_lift_a_stop);
    tcase_add_test(t, another_learning_rate_in_the_manifest_holds);
    suite_add_tcase(s, t);
    return s;
}
