#include "check_main.h"
#include "cli/predicted_class.h"

#include <math.h>
#include <string.h>

/* A job of one csv column and a label with the words cat, dog, "a, b". */
#define JOB(units, activation, loss)                                                                                   \
    "{apiVersion: trainyard.dev/v1alpha1, kind: TrainJob, metadata: {name: j}, spec: {fit: {epochs: 1}, "              \
    "model: {inputShape: [1], layers: [Dense: {units: " units ", activation: " activation "}]}, "                      \
    "compile: {optimizer: SGD, loss: " loss "}, data: {train: {format: csv, files: t.csv, label: y, columns: "         \
    "[{name: x}, {name: y, type: category, vocabulary: [cat, dog, 'a, b']}]}}}}"

static const struct {
    const char *job;
    float output[4];
    const char *name; /* NULL: no classifier */
    double probability;
} CASES[] = {
    { JOB("3", "softmax", "sparse_categorical_crossentropy"), { 0.2F, 0.1F, 0.7F }, "a, b", 0.7 },
    { JOB("3", "softmax", "categorical_crossentropy"), { 0.6F, 0.3F, 0.1F }, "cat", 0.6 },
    { JOB("4", "softmax", "sparse_categorical_crossentropy"), { 0.1F, 0.1F, 0.1F, 0.7F }, "3", 0.7 },
    { JOB("2", "softmax", "sparse_categorical_crossentropy"), { 0.5F, 0.5F }, "cat", 0.5 },
    { JOB("3", "linear", "{class_name: SparseCategoricalCrossentropy, config: {from_logits: true}}"),
      { 200, 201, 200 },
      "dog",
      0.5761168847658291 }, /* 1 / (1 + 2 / e) */
    { JOB("1", "sigmoid", "binary_crossentropy"), { 0.9F }, "dog", 0.9 },
    { JOB("1", "sigmoid", "binary_crossentropy"), { 0.1F }, "cat", 0.9 },
    { JOB("1", "sigmoid", "binary_crossentropy"), { 0.5F }, "cat", 0.5 },
    { JOB("1", "sigmoid", "binary_focal_crossentropy"), { 0.75F }, "dog", 0.75 },
    { JOB("1", "linear", "{class_name: BinaryCrossentropy, config: {from_logits: true}}"), { 0 }, "cat", 0.5 },
    { JOB("1", "linear", "{class_name: BinaryCrossentropy, config: {from_logits: true}}"),
      { -2 },
      "cat",
      0.8807970779778823 }, /* 1 - 1 / (1 + exp(2)) */
    { JOB("1", "linear", "mse"), { 0 }, NULL, 0 },
    { JOB("1", "linear", "hinge"), { 0 }, NULL, 0 },
    { JOB("3", "sigmoid", "binary_crossentropy"), { 0 }, NULL, 0 }, /* several labels at once */
    { JOB("3", "linear", "categorical_hinge"), { 0 }, NULL, 0 },    /* scores */
};

START_TEST(the_class_of_an_output)
{
    AUTO_FINI(classifier) c = { .output = CLASS_NONE };
    AUTO(model) *m = NULL;
    AUTO(job) *job = NULL;
    struct err e = { .code = ERR_NONE };
    char number[32];
    ck_ok_e(job_parse(CASES[_i].job, strlen(CASES[_i].job), "test", &job, &e));
    ck_ok_e(model_build(&job->model, &job->compile, ".", &m, &e));
    const struct strlist none = { .n = 0 };
    int rc = classifier_open(job, m, &none, &c, &e);
    if (CASES[_i].name == NULL) {
        ck_assert_int_eq(rc, -1);
        ck_assert_ptr_nonnull(strstr(e.msg, "crossentropy"));
        return;
    }
    ck_ok_e(rc);
    struct predicted_class got = predicted_class(&c, CASES[_i].output);
    ck_assert_str_eq(predicted_class_name(&c, got.number, number), CASES[_i].name);
    ck_assert_double_eq_tol(got.probability, CASES[_i].probability, 1e-7);
}
END_TEST

/* The names of a run's classes come first, and classes beyond them are numbers. */
START_TEST(the_run_names_its_classes)
{
    AUTO_FINI(classifier) c = { .output = CLASS_NONE };
    AUTO_FINI(strlist) names = { .n = 0 };
    AUTO(model) *m = NULL;
    AUTO(job) *job = NULL;
    struct err e = { .code = ERR_NONE };
    char number[32];
    strlist_add(&names, "ant");
    strlist_add(&names, "bee");
    ck_ok_e(job_parse(CASES[0].job, strlen(CASES[0].job), "test", &job, &e));
    ck_ok_e(model_build(&job->model, &job->compile, ".", &m, &e));
    ck_ok_e(classifier_open(job, m, &names, &c, &e));
    ck_assert_str_eq(predicted_class_name(&c, 0, number), "ant");
    ck_assert_str_eq(predicted_class_name(&c, 1, number), "bee");
    ck_assert_str_eq(predicted_class_name(&c, 2, number), "2");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/predicted_class");
    TCase *t = tcase_create("predicted_class");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, the_class_of_an_output, 0, COUNT_OF(CASES));
    tcase_add_test(t, the_run_names_its_classes);
    return s;
}
