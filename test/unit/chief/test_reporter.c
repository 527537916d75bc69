#include "shard/job_fixture.h"

#include <math.h>
#include <unistd.h>

#include "../one_output.h"
#include "chief/output_dir.h"
#include "chief/reporter.h"
#include "tfio/event_reader.h"
#include "tfio/event_writer.h"

enum { EPOCHS = 2, TOTAL = EPOCHS * JOB_BATCHES, LOSS = 2 };

struct world {
    struct job_fixture job;
    struct coordinator *coordinator;
    struct reporter *reporter;
    double *sums;
};

static void world_open(struct world *w, int64_t resumed_step, int64_t begin)
{
    struct err e = { 0 };
    *w = (struct world){ 0 };
    job_open(&w->job, "SGD", "epochs: 2, logEverySteps: 2");
    ck_ok_e(output_dir_prepare(w->job.dir, NULL, &e));
    w->coordinator = coordinator_new(&(struct coordinator_config){ .model = w->job.model,
                                                                   .job_uid = JOB_UID,
                                                                   .incarnation = 1,
                                                                   .space = w->job.space,
                                                                   .batches_per_epoch = JOB_BATCHES,
                                                                   .total = TOTAL,
                                                                   .window = 5,
                                                                   .lease_ms = 1000 });
    struct reporter_config config = { .job = w->job.job,
                                      .model = w->job.model,
                                      .output_dir = w->job.dir,
                                      .job_uid = "uid-1",
                                      .batches_per_epoch = JOB_BATCHES,
                                      .groups = { 1, JOB_BATCHES, 1, 1 },
                                      .total = TOTAL,
                                      .space = w->job.space,
                                      .workers_wanted = 3,
                                      .report = &REPORT_TO_LOG };
    ck_ok_e(reporter_new(&config, resumed_step, &w->reporter, &e));
    ck_ok_e(reporter_begin(w->reporter, begin, &e));
    w->sums = xcalloc(metrics_width(w->job.model), sizeof(*w->sums));
}

static void world_close(struct world *w)
{
    reporter_free(w->reporter);
    coordinator_free(w->coordinator);
    free(w->sums);
    job_close(&w->job);
}

struct reports {
    struct world *w;
    int64_t from, to;
    double loss;
};

/* Batches of one example. */
static void report(void *user, struct epoch_metrics *t)
{
    struct reports *r = user;
    float truth = 0, prediction = 0;
    struct tensor y = { .dtype = DT_FLOAT, .shape = { .rank = 2, .dim = { 1, 1 } }, .data = &truth };
    memset(r->w->sums, 0, metrics_width(r->w->job.model) * sizeof(double));
    add_one_output(r->w->job.model, r->w->sums, r->loss, &y, &prediction, 1);
    for (int64_t i = r->from; i < r->to; i++)
        epoch_metrics_add(t, i, r->w->sums);
}

/* The chief's state after a poll: all batches below `to` are done. */
static void look(struct world *w, int64_t from, int64_t to, int64_t now_ms)
{
    struct reports r = { w, from, to, LOSS };
    struct ps_set_view ps_set = { .condition = PS_SET_READY, .step = to };
    struct coordinator_view coord;
    AUTO_FINI(ordinal_set) done = ORDINAL_SET_INIT;
    for (int64_t i = 0; i < to; i++)
        ck_assert_int_ge(ordinal_set_add(&done, i, NULL), 0);
    coordinator_metrics(w->coordinator, report, &r);
    coordinator_observe(w->coordinator, &done, now_ms);
    coordinator_view(w->coordinator, &coord);
    reporter_poll(w->reporter, &ps_set, &coord, w->coordinator, now_ms);
}

/* ---- the log ---- */

struct caught {
    char text[1024];
    int ends[2], saved;
};

static void catch_begin(struct caught *c)
{
    *c = (struct caught){ .saved = dup(STDERR_FILENO) };
    ck_assert_int_eq(pipe(c->ends), 0);
    dup2(c->ends[1], STDERR_FILENO);
}

static void catch_end(struct caught *c)
{
    dup2(c->saved, STDERR_FILENO);
    ck_assert_int_gt(read(c->ends[0], c->text, sizeof(c->text) - 1), 0);
    close(c->saved);
    close(c->ends[0]);
    close(c->ends[1]);
}

static json_t *json_of(const char *dir, const char *name)
{
    auto_free char *path = output_dir_path(dir, name);
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    json_t *v = NULL;
    ck_ok_e(file_read(path, 1 << 20, &text, &e));
    ck_ok_e(json_parse(text.data, text.len, path, &v, &e));
    return v;
}

static double number(const json_t *v, const char *key, size_t i)
{
    const json_t *list = json_object_get(v, key);
    ck_assert_msg(json_array_size(list) > i, "%s[%zu]", key, i);
    return json_number_value(json_array_get(list, i));
}

static void finish(struct world *w, int64_t step, const double *final)
{
    struct err e = { 0 };
    ck_ok_e(reporter_finish(w->reporter, &(struct job_result){ .step = step, .stopped_epoch = -1 }, w->coordinator,
                            final, &e));
}

static void want_lengths(const json_t *history, size_t n)
{
    const char *key;
    json_t *list;
    ck_assert_ptr_nonnull(json_object_get(history, "val_loss"));
    json_object_foreach((json_t *)(uintptr_t)history, key, list)
        ck_assert_msg(json_array_size(list) == n, "%s has %zu entries, not %zu", key, json_array_size(list), n);
}

START_TEST(history_has_every_epoch_and_the_end)
{
    static const double validation[] = { 0.5 };
    struct world w;
    world_open(&w, -1, 0);
    look(&w, 0, JOB_BATCHES, 1000);
    reporter_epoch(w.reporter, 0, w.coordinator);
    reporter_evaluated(w.reporter, 0, -1, NULL); /* its evaluation was stopped */
    look(&w, JOB_BATCHES, TOTAL, 2000);
    reporter_epoch(w.reporter, 1, w.coordinator);
    reporter_evaluated(w.reporter, 1, TOTAL, validation);
    finish(&w, TOTAL, validation);
    json_auto_t *v = json_of(w.job.dir, "history.json");
    const json_t *history = json_object_get(v, "history");
    ck_assert_int_eq(json_integer_value(json_object_get(v, "step")), TOTAL);
    ck_assert_double_eq_tol(number(history, "loss", 0), LOSS, 1e-6);
    ck_assert_double_eq_tol(number(history, "loss", 1), LOSS, 1e-6);
    want_lengths(history, 2);
    ck_assert(json_is_null(json_array_get(json_object_get(history, "val_loss"), 0)));
    ck_assert_double_eq_tol(number(history, "val_loss", 1), 0.5, 1e-6);
    ck_assert_double_eq_tol(json_number_value(json_object_get(json_object_get(v, "final"), "loss")), 0.5, 1e-6);
    world_close(&w);
}
END_TEST

/* An evaluation completes when the next epoch has ended: it is recorded at its own epoch. */
START_TEST(an_evaluation_stands_at_its_epoch_however_late_it_comes)
{
    static const double validation[] = { 0.5 };
    struct world w;
    struct event event;
    struct err e = { 0 };
    int found = 0;
    world_open(&w, -1, 0);
    look(&w, 0, TOTAL, 1000);
    reporter_epoch(w.reporter, 0, w.coordinator);
    reporter_epoch(w.reporter, 1, w.coordinator);
    reporter_evaluated(w.reporter, 0, JOB_BATCHES, validation);
    ck_ok_e(reporter_save_history(w.reporter, 1000, false, &e));
    json_auto_t *v = json_of(w.job.dir, "history.json");
    const json_t *history = json_object_get(v, "history");
    want_lengths(history, 2);
    ck_assert_double_eq_tol(number(history, "val_loss", 0), 0.5, 1e-6);
    ck_assert(json_is_null(json_array_get(json_object_get(history, "val_loss"), 1)));
    auto_free char *path = output_dir_path(w.job.dir, "summaries/validation");
    AUTO(event_reader) *r = NULL;
    ck_ok_e(event_reader_open(path, &r, &e));
    while (event_reader_next(r, &event, &e) == 1)
        if (event.kind == EVENT_SCALAR) {
            found++;
            ck_assert_msg(event.step == (str_eq(event.tag, "loss") ? JOB_BATCHES : 0), "%s at %lld", event.tag,
                          (long long)event.step);
        }
    ck_assert_int_eq(found, 2);
    world_close(&w);
}
END_TEST

static void open_again(struct world *w, json_t *kept, int64_t entries)
{
    struct err e = { 0 };
    struct reporter_config config = { .job = w->job.job,
                                      .model = w->job.model,
                                      .output_dir = w->job.dir,
                                      .job_uid = "uid-1",
                                      .batches_per_epoch = JOB_BATCHES,
                                      .groups = { 1, JOB_BATCHES, 1, 1 },
                                      .total = TOTAL,
                                      .space = w->job.space };
    struct node n = node_root(kept, NULL);
    reporter_free(TAKE(w->reporter));
    ck_ok_e(reporter_new(&config, JOB_BATCHES, &w->reporter, &e));
    ck_ok_e(reporter_from_json(w->reporter, &n, entries, &e));
}

/* A chief was killed: its checkpoint has the first epoch, history.json has both, and the ps hold their state. */
START_TEST(the_file_knows_more_than_the_checkpoint)
{
    static const double validation[] = { 0.5 };
    static const struct {
        int64_t most, wanted; /* epochs the ps hold; entries then */
    } cases[] = { { 2, 2 }, { 1, 1 }, { 0, 0 } };
    struct world w;
    struct err e = { 0 };
    world_open(&w, -1, 0);
    look(&w, 0, TOTAL, 1000);
    reporter_epoch(w.reporter, 0, w.coordinator);
    json_auto_t *kept = reporter_to_json(w.reporter);
    reporter_evaluated(w.reporter, 0, JOB_BATCHES, validation);
    reporter_epoch(w.reporter, 1, w.coordinator);
    ck_ok_e(reporter_save_history(w.reporter, 1000, true, &e));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_again(&w, kept, 1);
        ck_assert_int_eq(reporter_resume(w.reporter, cases[i].most, w.coordinator), cases[i].wanted);
        json_auto_t *now = reporter_to_json(w.reporter);
        want_lengths(now, (size_t)cases[i].wanted);
        if (cases[i].wanted > 0)
            ck_assert_double_eq_tol(number(now, "val_loss", 0), 0.5, 1e-6);
    }
    json_auto_t *other = json_pack("{s:[i], s:[f], s:[n]}", "epoch", 0, "loss", 17.0, "val_loss"); /* of another run */
    open_again(&w, other, 1);
    ck_assert_int_eq(reporter_resume(w.reporter, 2, w.coordinator), 1);
    json_auto_t *now = reporter_to_json(w.reporter);
    ck_assert_double_eq(number(now, "loss", 0), 17.0);
    world_close(&w);
}
END_TEST

START_TEST(lists_of_an_older_release_become_equally_long)
{
    struct world w;
    world_open(&w, -1, 0);
    json_auto_t *kept =
        json_pack("{s:[i,i,i], s:[f,f,f], s:[f]}", "epoch", 0, 1, 2, "loss", 3.0, 2.0, 1.0, "val_loss", 4.0);
    open_again(&w, kept, 3);
    json_auto_t *now = reporter_to_json(w.reporter);
    want_lengths(now, 3);
    world_close(&w);
}
END_TEST

struct seen {
    int losses, starts;
    int64_t loss_steps[16], start_step;
};

static struct seen read_back(const struct world *w)
{
    struct seen s = { 0 };
    struct event event;
    struct err e = { 0 };
    auto_free char *path = output_dir_path(w->job.dir, "summaries/train");
    AUTO(event_reader) *r = NULL;
    ck_ok_e(event_reader_open(path, &r, &e));
    while (event_reader_next(r, &event, &e) == 1) {
        if (event.kind == EVENT_SCALAR && str_eq(event.tag, "loss")) {
            ck_assert_double_eq_tol(event.value, LOSS, 1e-6);
            s.loss_steps[s.losses++ % 16] = event.step;
        }
        if (event.kind == EVENT_SESSION && (int)event.value == SESSION_START) {
            s.starts++;
            s.start_step = event.step;
        }
    }
    return s;
}

START_TEST(the_curve_has_one_point_a_window)
{
    struct world w;
    world_open(&w, -1, 0);
    look(&w, 0, 7, 1000);
    look(&w, 7, 12, 2000);
    look(&w, 0, 12, 3000); /* reported again by another worker */
    finish(&w, 12, NULL);
    struct seen s = read_back(&w);
    ck_assert_int_eq(s.losses, 2); /* the two batches after 10 are in the epoch's point */
    ck_assert(s.loss_steps[0] == 5 && s.loss_steps[1] == 10);
    ck_assert(s.starts == 1 && s.start_step == 0);
    world_close(&w);
}
END_TEST

START_TEST(a_resumed_life_takes_back_what_it_writes_again)
{
    struct world w;
    world_open(&w, 10, 11);
    look(&w, 10, 15, 1000);
    finish(&w, 15, NULL);
    struct seen s = read_back(&w);
    ck_assert(s.starts == 1 && s.start_step == 11);
    ck_assert(s.losses == 1 && s.loss_steps[0] == 15);
    world_close(&w);
}
END_TEST

START_TEST(what_a_checkpoint_keeps_goes_on)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w, -1, 0);
    look(&w, 0, JOB_BATCHES, 1000);
    reporter_epoch(w.reporter, 0, w.coordinator);
    json_auto_t *kept = reporter_to_json(w.reporter);
    open_again(&w, kept, 1);
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *shown = NULL;
    reporter_progress(w.reporter, 0, &text);
    ck_ok_e(json_parse(text.data, text.len, "progress", &shown, &e));
    ck_assert(json_equal(json_object_get(shown, "loss"), json_array_get(json_object_get(kept, "loss"), 0)));
    look(&w, JOB_BATCHES, TOTAL, 2000);
    reporter_epoch(w.reporter, 1, w.coordinator);
    finish(&w, TOTAL, NULL);
    json_auto_t *v = json_of(w.job.dir, "history.json");
    ck_assert_uint_eq(json_array_size(json_object_get(json_object_get(v, "history"), "loss")), 2);
    json_auto_t *list = json_array();
    struct node wrong = node_root(list, NULL);
    ck_assert_int_eq(reporter_from_json(w.reporter, &wrong, 0, &e), -1);
    world_close(&w);
}
END_TEST

START_TEST(progress_is_json_that_adds_up)
{
    struct world w;
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    json_auto_t *v = NULL;
    world_open(&w, -1, 0);
    reporter_state(w.reporter, "training", "");
    look(&w, 0, 14, 1000);
    reporter_progress(w.reporter, 0, &text);
    ck_assert_msg(strstr(text.data, "\"last_step_time\":0") != NULL, "what is found is no step: %s", text.data);
    buf_clear(&text);
    look(&w, 0, 15, 1000);
    reporter_checkpoint(w.reporter, 12, "model.ckpt-12");
    reporter_progress(w.reporter, 0, &text);
    ck_ok_e(json_parse(text.data, text.len, "progress", &v, &e));
    static const struct {
        const char *key;
        int64_t value;
    } wanted[] = { { "step", 15 },
                   { "epoch", 2 },
                   { "epochs", EPOCHS },
                   { "batches_done", 15 },
                   { "batches_total", TOTAL },
                   { "epoch_batches_done", 5 },
                   { "epoch_batches_total", JOB_BATCHES },
                   { "last_checkpoint_step", 12 },
                   { "percent", 15 * 100 / TOTAL } };
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        ck_assert_msg(json_integer_value(json_object_get(v, wanted[i].key)) == wanted[i].value, "%s in %s",
                      wanted[i].key, text.data);
    ck_assert_str_eq(json_string_value(json_object_get(v, "state")), "training");
    ck_assert_double_gt(json_number_value(json_object_get(v, "last_step_time")), 1.6e9);
    ck_assert_double_ge(json_number_value(json_object_get(v, "last_update_time")),
                        json_number_value(json_object_get(v, "last_step_time")));
    ck_assert_double_eq_tol(json_number_value(json_object_get(v, "loss")), LOSS, 1e-6);
    world_close(&w);
}
END_TEST

static int64_t waited_s(struct world *w, int64_t now_ms)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v = NULL;
    struct err e = { 0 };
    reporter_progress(w->reporter, now_ms, &text);
    ck_ok_e(json_parse(text.data, text.len, "progress", &v, &e));
    ck_assert(json_is_integer(json_object_get(v, "waiting_seconds")));
    return json_integer_value(json_object_get(v, "waiting_seconds"));
}

START_TEST(progress_tells_how_long_it_waits)
{
    struct world w;
    world_open(&w, -1, 0);
    reporter_waits(w.reporter, 1000, "ps-0");
    ck_assert_int_eq(waited_s(&w, 8500), 7);
    reporter_waits(w.reporter, 1000, "ps-0 and ps-1");
    ck_assert_int_eq(waited_s(&w, 9000), 8);
    reporter_state(w.reporter, "training", "");
    ck_assert_int_eq(waited_s(&w, 9000), 0);
    world_close(&w);
}
END_TEST

START_TEST(numbers_that_are_none_do_not_break_it)
{
    struct world w;
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    json_auto_t *v = NULL;
    world_open(&w, -1, 0);
    reporter_progress(w.reporter, 0, &text); /* nothing was reported yet: the loss is NaN */
    ck_ok_e(json_parse(text.data, text.len, "progress", &v, &e));
    ck_assert_str_eq(json_string_value(json_object_get(v, "state")), "starting");
    ck_assert_str_eq(json_string_value(json_object_get(v, "loss")), "NaN");
    ck_assert_str_eq(json_string_value(json_object_get(v, "remaining_seconds")), "NaN");
    reporter_epoch(w.reporter, 0, w.coordinator);
    finish(&w, 0, NULL);
    json_auto_t *history = json_of(w.job.dir, "history.json");
    ck_assert(json_is_object(history));
    world_close(&w);
}
END_TEST

/* A poll at which the workers have reported so many pushes, each of the staleness 3. */
static void poll_at(struct world *w, int64_t step, uint64_t pushes, int64_t now_ms)
{
    struct reports r = { w, 0, step, LOSS };
    struct ps_set_view ps_set = { .condition = PS_SET_READY, .step = step };
    struct coordinator_view coord;
    coordinator_metrics(w->coordinator, report, &r);
    coordinator_view(w->coordinator, &coord);
    coord.steps = pushes;
    coord.staleness_sum = 3 * pushes;
    reporter_poll(w->reporter, &ps_set, &coord, w->coordinator, now_ms);
}

START_TEST(the_rates_of_a_line_are_of_the_time_since_the_line_before)
{
    struct world w;
    struct caught c;
    world_open(&w, -1, 0); /* 4 examples a batch */
    catch_begin(&c);
    poll_at(&w, 0, 0, 1000);
    poll_at(&w, 0, 0, 60000); /* the wait for workers is not part of a rate */
    poll_at(&w, 2, 0, 60100); /* their first reports are not here */
    poll_at(&w, 4, 2, 60200);
    poll_at(&w, 5, 3, 60300);
    poll_at(&w, 8, 7, 62200);
    catch_end(&c);
    ck_assert_str_eq(c.text, "step 2 epoch 1/2 loss 2 examples/s 80 workers 0/3\n"
                             "step 4 epoch 1/2 loss 2 examples/s 80 staleness 3 workers 0/3\n"
                             "step 8 epoch 1/2 loss 2 examples/s 8 staleness 3 workers 0/3\n");
    world_close(&w);
}
END_TEST

START_TEST(an_epochs_line_says_nan_and_leaves_out_what_is_not_known)
{
    struct world w;
    struct caught c;
    world_open(&w, -1, 0);
    struct reports r = { .w = &w, .from = 0, .to = JOB_BATCHES, .loss = (double)NAN };
    coordinator_metrics(w.coordinator, report, &r);
    reporter_epoch(w.reporter, 0, w.coordinator);
    reporter_epoch(w.reporter, 1, w.coordinator); /* its reports were lost with an earlier chief */
    catch_begin(&c);
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
        reporter_evaluated(w.reporter, epoch, -1, NULL);
    catch_end(&c);
    ck_assert_str_eq(c.text, "epoch 1/2 done loss nan\nepoch 2/2 done\n");
    world_close(&w);
}
END_TEST

START_TEST(a_job_that_finished_before_shows_its_end)
{
    struct world w;
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    json_auto_t *v = NULL, *history = json_pack("{s:[f, f], s:[f, f]}", "loss", 2.0, 0.5, "val_loss", 3.0, 0.75);
    struct node n = node_root(history, NULL);
    world_open(&w, -1, 0);
    ck_ok_e(reporter_from_json(w.reporter, &n, 2, &e));
    reporter_finished_before(w.reporter, TOTAL, "1f0c");
    reporter_progress(w.reporter, 0, &text);
    ck_ok_e(json_parse(text.data, text.len, "progress", &v, &e));
    ck_assert_str_eq(json_string_value(json_object_get(v, "state")), "finished");
    ck_assert_int_eq(json_integer_value(json_object_get(v, "step")), TOTAL);
    ck_assert_int_eq(json_integer_value(json_object_get(v, "batches_done")), TOTAL);
    ck_assert_int_eq(json_integer_value(json_object_get(v, "epoch")), EPOCHS);
    ck_assert_double_eq(json_number_value(json_object_get(v, "loss")), 0.5);
    ck_assert_double_eq(json_number_value(json_at(v, "validation.loss")), 0.75);
    ck_assert_str_eq(json_string_value(json_object_get(v, "weights_sha256")), "1f0c");
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("reporter");
    TCase *t = tcase_create("reporter");
    tcase_add_test(t, history_has_every_epoch_and_the_end);
    tcase_add_test(t, an_evaluation_stands_at_its_epoch_however_late_it_comes);
    tcase_add_test(t, the_file_knows_more_than_the_checkpoint);
    tcase_add_test(t, lists_of_an_older_release_become_equally_long);
    tcase_add_test(t, the_curve_has_one_point_a_window);
    tcase_add_test(t, the_rates_of_a_line_are_of_the_time_since_the_line_before);
    tcase_add_test(t, a_resumed_life_takes_back_what_it_writes_again);
    tcase_add_test(t, what_a_checkpoint_keeps_goes_on);
    tcase_add_test(t, progress_is_json_that_adds_up);
    tcase_add_test(t, progress_tells_how_long_it_waits);
    tcase_add_test(t, an_epochs_line_says_nan_and_leaves_out_what_is_not_known);
    tcase_add_test(t, a_job_that_finished_before_shows_its_end);
    tcase_add_test(t, numbers_that_are_none_do_not_break_it);
    suite_add_tcase(s, t);
    return s;
}
