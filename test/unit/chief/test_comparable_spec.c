/* What two manifests differ in, as their users wrote it. */
#include "check_main.h"
#include "chief/comparable_spec.h"
#include "job/job.h"
#include "job/rerun.h"

#include <string.h>

#define JOB(model, compile)                                                                                            \
    "{apiVersion: trainyard.dev/v1alpha1, kind: TrainJob, metadata: {name: j}, spec: {fit: {epochs: 1}, model: " model \
    ", compile: " compile ", data: {train: {format: csv, files: t.csv}}}}"
#define SGD_MSE       "{optimizer: SGD, loss: mse}"
#define SHORT(layers) JOB("{inputShape: [4], layers: " layers "}", SGD_MSE)
#define KERAS(units)                                                                                                   \
    JOB("{keras: {class_name: Sequential, config: {layers: [{class_name: InputLayer, config: {batch_shape: [null, "    \
        "4]}}, "                                                                                                       \
        "{class_name: Dense, config: {units: " units "}}]}}}",                                                         \
        SGD_MSE)
#define COMPILE(compile) JOB("{inputShape: [4], layers: [Dense: {units: 1}]}", compile)

static const struct {
    const char *was, *now, *text;
    enum rerun need;
} CASES[] = {
    { SHORT("[Dense: {units: 3}]"), SHORT("[Dense: {units: 3, activation: linear}]"), "", RERUN_FREE },
    { SHORT("[Dense: {units: 3}, Dense: {units: 1}]"), SHORT("[Dense: {units: 3}, Dense: {units: 2}]"),
      "model.layers[1].Dense.units is 2, was 1", RERUN_FRESH },
    { SHORT("[Dense: {units: 3, kernel_initializer: zeros}]"), SHORT("[Dense: {units: 3, kernel_initializer: ones}]"),
      "model.layers[0].Dense.kernel_initializer is Ones, was Zeros", RERUN_FRESH },
    { SHORT("[Dense: {units: 3}, ReLU: {}]"), SHORT("[Dense: {units: 3}, Dropout: {rate: 0.5}]"),
      "model.layers[1] is Dropout, was ReLU", RERUN_FRESH },
    { SHORT("[Dense: {units: 3}]"), SHORT("[Dense: {units: 3}, Dropout: {rate: 0.5}]"),
      "model.layers is Dense, Dropout, was Dense", RERUN_FRESH },
    { JOB("{inputShape: [4], layers: [Dense: {units: 1}]}", SGD_MSE),
      JOB("{inputShape: [5], layers: [Dense: {units: 1}]}", SGD_MSE), "model.inputShape[0] is 5, was 4", RERUN_FRESH },
    { JOB("{layers: [InputLayer: {shape: [4]}, Dense: {units: 1}]}", SGD_MSE),
      JOB("{layers: [InputLayer: {shape: [4]}, Dense: {units: 2}]}", SGD_MSE),
      "model.layers[1].Dense.units is 2, was 1", RERUN_FRESH },
    { KERAS("1"), SHORT("[Dense: {units: 1}]"), "", RERUN_FREE },
    { KERAS("1"), SHORT("[Dense: {units: 2}]"), "model.layers[0].Dense.units is 2, was 1", RERUN_FRESH },
    { SHORT("[Dense: {units: 1}]"), KERAS("2"), "model.keras.config.layers[1].config.units is 2, was 1", RERUN_FRESH },
    { COMPILE("{optimizer: Adam, loss: mse}"), COMPILE("{optimizer: {Adam: {learning_rate: 0.5}}, loss: mse}"),
      "compile.optimizer.Adam.learning_rate is 0.5, was 0.001", RERUN_RESUME },
    { COMPILE("{optimizer: Adam, loss: mse}"), COMPILE("{optimizer: sgd, loss: mse}"),
      "compile.optimizer is SGD, was Adam", RERUN_FRESH },
    { COMPILE("{optimizer: SGD, loss: mse}"), COMPILE("{optimizer: SGD, loss: mae}"),
      "compile.loss is MeanAbsoluteError, was MeanSquaredError", RERUN_FRESH },
    { COMPILE("{optimizer: SGD, loss: mse, metrics: [mae]}"), COMPILE("{optimizer: SGD, loss: mse, metrics: [mae]}"),
      "", RERUN_FREE },
};

static void open(const char *text, struct job **ret_job, struct model **ret_model)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(job_parse(text, strlen(text), "test", ret_job, &e));
    ck_ok_e(model_build(&(*ret_job)->model, &(*ret_job)->compile, ".", ret_model, &e));
}

START_TEST(changes_are_named_as_they_are_written)
{
    AUTO(job) *was = NULL, *now = NULL;
    AUTO(model) *was_model = NULL, *now_model = NULL;
    AUTO_FINI(rerun_changes) changes = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *a = NULL, *b = NULL;
    open(CASES[_i].was, &was, &was_model);
    open(CASES[_i].now, &now, &now_model);
    comparable_specs(&(struct comparable){ was->doc, was_model }, &(struct comparable){ now->doc, now_model }, &a, &b);
    rerun_compare(a, b, false, &changes);
    rerun_text(&changes, RERUN_FREE, &text);
    ck_assert_str_eq(text.data != NULL ? text.data : "", CASES[_i].text);
    ck_assert_int_eq((int)rerun_need(&changes), (int)CASES[_i].need);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("chief/comparable_spec");
    TCase *t = tcase_create("comparable_spec");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, changes_are_named_as_they_are_written, 0, COUNT_OF(CASES));
    return s;
}
