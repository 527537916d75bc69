/* Keras's own decisions (test/data/nn/callbacks), and which lists of callbacks are valid. */
#include "nn/callback.h"

#include "codec/yaml.h"
#include "named.h"

static struct model *model_of(const char *compile)
{
    struct err e = { 0 };
    struct model *m = NULL;
    json_auto_t *layers = named_json("{\"inputShape\": [3], \"layers\": [{\"Dense\": {\"units\": 2}}]}");
    json_auto_t *v = named_json(compile);
    struct node model = named_node(layers), n = named_node(v);
    ck_ok_e(model_build(&model, &n, ".", &m, &e));
    return m;
}

#define ADAM "{\"optimizer\": \"Adam\", \"loss\": \"categorical_crossentropy\", \"metrics\": [\"accuracy\", \"mae\"]}"

static struct callbacks *parsed(const json_t *list, const struct model *m)
{
    struct err e = { 0 };
    struct callbacks *c = NULL;
    struct node n = named_node(list);
    ck_assert_msg(callbacks_parse(&n, m, true, &c, &e) == 0, "%s", e.msg);
    return c;
}

/* ---- golden ---- */

static double number_of(const json_t *v)
{
    return json_is_string(v) ? (double)NAN : json_number_value(v); /* "NaN" */
}

static void want_state(const json_t *want, const struct callback_state *s, size_t at, size_t epoch)
{
    const json_t *best = json_object_get(want, "best"), *wait = json_object_get(want, "wait");
    const json_t *best_epoch = json_object_get(want, "best_epoch"), *cooldown = json_object_get(want, "cooldown");
    ck_assert_msg(s->has_best == !json_is_null(best), "case %zu epoch %zu: has_best is %d", at, epoch, s->has_best);
    if (s->has_best && !isnan(number_of(best)))
        ck_assert_msg(s->best >= number_of(best) && s->best <= number_of(best), "case %zu epoch %zu: best is %.17g", at,
                      epoch, s->best);
    ck_assert_msg(wait == NULL || json_integer_value(wait) == s->wait, "case %zu epoch %zu: wait is %lld", at, epoch,
                  (long long)s->wait);
    ck_assert_msg(best_epoch == NULL || json_integer_value(best_epoch) == s->best_epoch,
                  "case %zu epoch %zu: best_epoch is %lld", at, epoch, (long long)s->best_epoch);
    ck_assert_msg(cooldown == NULL || json_integer_value(cooldown) == s->cooldown,
                  "case %zu epoch %zu: cooldown is %lld", at, epoch, (long long)s->cooldown);
}

struct replayed {
    struct callback_state states[CALLBACKS_MAX];
    double rate;
    bool stop;
};

static void replay_one(const struct callbacks *c, size_t i, size_t epoch, const json_t *logs, const json_t *want,
                       struct replayed *r, size_t at)
{
    const char *monitor = callback_monitor(c, i);
    const json_t *v = monitor != NULL ? json_object_get(logs, monitor) : NULL;
    const struct callback_epoch in = {
        .epoch = (int64_t)epoch, .known = v != NULL, .value = number_of(v), .rate = r->rate
    };
    struct callback_verdict verdict = callback_decide(c, i, &in, &r->states[i]);
    r->stop |= verdict.stop;
    r->rate = verdict.set_rate ? verdict.rate : r->rate;
    const json_t *saved = json_object_get(want, "saved");
    if (saved != NULL && monitor != NULL)
        ck_assert_msg(verdict.keep == json_is_true(saved), "case %zu epoch %zu: keep is %d", at, epoch, verdict.keep);
    if (monitor != NULL)
        want_state(want, &r->states[i], at, epoch);
}

static int64_t result_of(const struct callbacks *c, const struct replayed *r, size_t epochs)
{
    int restoring = callbacks_restoring(c);
    bool has = restoring >= 0 && r->states[restoring].has_best;
    return has ? r->states[restoring].best_epoch : (int64_t)epochs - 1;
}

static void replay(const json_t *golden, const struct model *m, size_t at)
{
    AUTO(callbacks) *c = parsed(json_object_get(golden, "callbacks"), m);
    struct replayed r = { .rate = json_number_value(json_object_get(golden, "rate")) };
    const json_t *epochs = json_object_get(golden, "epochs"), *e;
    size_t epoch;
    json_array_foreach(epochs, epoch, e)
    {
        const json_t *states = json_object_get(e, "states"), *logs = json_object_get(e, "logs");
        for (size_t i = 0; i < callbacks_count(c); i++)
            replay_one(c, i, epoch, logs, json_array_get(states, i), &r, at);
        ck_assert_msg(r.stop == json_is_true(json_object_get(e, "stop")), "case %zu epoch %zu: stop is %d", at, epoch,
                      r.stop);
        ck_assert_msg(!((float)r.rate < (float)json_number_value(json_object_get(e, "rate"))) &&
                          !((float)r.rate > (float)json_number_value(json_object_get(e, "rate"))),
                      "case %zu epoch %zu: rate is %.17g", at, epoch, r.rate);
    }
    ck_assert_int_eq(result_of(c, &r, epoch), json_integer_value(json_object_get(golden, "restored")));
}

START_TEST(decisions_are_keras_s)
{
    json_auto_t *file = golden_read("test/data/nn/callbacks/vectors.json");
    AUTO(model) *m = model_of(ADAM);
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(file, "cases"), i, c) replay(c, m, i);
    ck_assert_uint_eq(i, 92);
}
END_TEST

/* ---- what is valid ---- */

static void refused_with(const char *list, const char *compile, bool evaluates, const char *message)
{
    struct err e = { 0 };
    struct callbacks *c = NULL;
    AUTO(model) *m = model_of(compile);
    json_auto_t *v = named_json(list);
    struct node n = named_node(v);
    ck_assert_msg(callbacks_parse(&n, m, evaluates, &c, &e) < 0, "%s was taken", list);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_message_has(e, message);
}

START_TEST(what_is_misspelt_is_named)
{
    refused_with("[\"EarlyStoping\"]", ADAM, true,
                 "[0]: callback 'EarlyStoping' is not known; did you mean 'EarlyStopping'?");
    refused_with("[{\"EarlyStopping\": {\"patiance\": 3}}]", ADAM, true, "did you mean 'patience'?");
    refused_with("[{\"ReduceLROnPlateau\": {\"monitor\": \"val_los\"}}]", ADAM, true,
                 "[0].ReduceLROnPlateau.monitor: monitor 'val_los' is not measured; did you mean 'val_loss'? (measured "
                 "are loss, accuracy, mae, val_loss, val_accuracy, val_mae)");
    refused_with("[{\"EarlyStopping\": {\"mode\": \"maximum\"}}]", ADAM, true, "it must be auto, min or max");
    refused_with("[\"LearningRateScheduler\"]", ADAM, true, "is not supported yet");
    refused_with("{\"EarlyStopping\": {}}", ADAM, true, "must be a list");
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    refused_with(
        "[\"EarlyStopping\"]", ADAM, false,
        "monitor 'val_loss' needs validation data; add data.validation or fit.validationSplit, or 'monitor: loss'");
    refused_with("[{\"ReduceLROnPlateau\": {\"factor\": 1}}]", ADAM, true, "at least 0 and less than 1");
    refused_with("[{\"EarlyStopping\": {\"patience\": -1}}]", ADAM, true, "0 or greater");
    refused_with("[\"ReduceLROnPlateau\"]",
                 "{\"optimizer\": {\"SGD\": {\"learning_rate\": {\"ExponentialDecay\": {\"initial_learning_rate\": "
                 "0.1, \"decay_steps\": 10, \"decay_rate\": 0.5}}}}, \"loss\": \"mse\"}",
                 true, "the optimizer has a schedule, so its learning_rate cannot be set");
    const char *counts = "{\"optimizer\": \"SGD\", \"loss\": \"mse\", \"metrics\": [\"TruePositives\"]}";
    refused_with("[{\"EarlyStopping\": {\"monitor\": \"true_positives\"}}]", counts, true,
                 "it is not known whether more or less of 'true_positives' is better; add 'mode: min' or 'mode: max'");
    AUTO_FINI(buf) many = BUF_INIT;
    for (int i = 0; i <= CALLBACKS_MAX; i++)
        buf_str(&many, i == 0 ? "[\"EarlyStopping\"" : ", \"EarlyStopping\"");
    buf_str(&many, "]");
    refused_with(many.data, ADAM, true, "has 17 entries, at most 16");
}
END_TEST

START_TEST(what_reads_nothing_needs_no_evaluation)
{
    struct err e = { 0 };
    struct callbacks *none = NULL;
    AUTO(callbacks) *c = NULL;
    AUTO(model) *m = model_of(ADAM);
    json_auto_t *v = named_json("[\"ModelCheckpoint\", {\"EarlyStopping\": {\"monitor\": \"loss\", \"verbose\": 1}}]");
    struct node n = named_node(v), absent = named_node(NULL);
    ck_ok_e(callbacks_parse(&n, m, false, &c, &e));
    ck_assert_ptr_null(callback_monitor(c, 0));
    ck_assert_str_eq(callback_monitor(c, 1), "loss");
    ck_assert(!callbacks_read_evaluation(c) && !callbacks_set_rate(c));
    ck_assert_int_eq(callbacks_restoring(c), -1);
    ck_ok_e(callbacks_parse(&absent, m, false, &none, &e));
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(without_a_model_arguments_are_judged)
{
    struct err e = { 0 };
    struct callbacks *c = NULL;
    json_auto_t *v = named_json("[{\"EarlyStopping\": {\"monitor\": \"anything\", \"patience\": \"x\"}}]");
    struct node n = named_node(v);
    ck_assert_int_eq(callbacks_parse(&n, NULL, false, &c, &e), -1);
    ck_message_has(e, "patience");
}
END_TEST

START_TEST(more_or_less_is_better_as_keras_says)
{
    AUTO(model) *m =
        model_of("{\"optimizer\": \"SGD\", \"loss\": \"mse\", \"metrics\": [\"mae\", \"RootMeanSquaredError\", "
                 "\"CosineSimilarity\", \"AUC\", \"Recall\", \"R2Score\", \"FalsePositives\"]}");
    const enum better want[] = { BETTER_DOWN, BETTER_DOWN, BETTER_DOWN, BETTER_UP,
                                 BETTER_UP,   BETTER_UP,   BETTER_UP,   BETTER_UNKNOWN };
    for (size_t i = 0; i < COUNT_OF(want); i++)
        ck_assert_int_eq(model_metric_better(m, i), want[i]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("callback");
    TCase *t = tcase_create("callback");
    tcase_add_test(t, decisions_are_keras_s);
    tcase_add_test(t, what_is_misspelt_is_named);
    tcase_add_test(t, what_makes_no_sense_is_refused);
    tcase_add_test(t, what_reads_nothing_needs_no_evaluation);
    tcase_add_test(t, without_a_model_arguments_are_judged);
    tcase_add_test(t, more_or_less_is_better_as_keras_says);
    suite_add_tcase(s, t);
    return s;
}
