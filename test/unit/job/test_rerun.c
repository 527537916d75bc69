#include "check_main.h"
#include "job/rerun.h"

#include <string.h>

#include "job/fields.h"

/* was and now: spec; what differs, and the most that it needs */
static const struct {
    const char *was, *now, *text;
    bool finished;
    enum rerun need;
} CASES[] = {
    { "{}", "{}", "", false, RERUN_FREE },
    { "{\"fit\":{\"epochs\":5}}", "{\"fit\":{\"epochs\":5,\"batchSize\":32,\"seed\":0}}", "", true,
      RERUN_FREE }, /* defaults */
    { "{\"fit\":{\"epochs\":5}}", "{\"fit\":{\"epochs\":6}}", "", false, RERUN_FREE },
    { "{\"fit\":{\"epochs\":5}}", "{\"fit\":{\"epochs\":6}}", "fit.epochs is 6, was 5", true, RERUN_RESUME },
    { "{\"fit\":{\"epochs\":5}}", "{\"fit\":{\"epochs\":4}}", "fit.epochs is 4, was 5", false, RERUN_RESUME },
    { "{\"fit\":{\"epochs\":5}}", "{\"fit\":{\"steps\":40}}",
      "fit.epochs is not set, was 5; fit.steps is 40, was not set", false, RERUN_RESUME },
    { "{\"fit\":{\"logEverySteps\":1,\"maxWaitSeconds\":3}}",
      "{\"checkpoint\":{\"keep\":9},\"summaries\":{\"everySteps\":1},\"storage\":{\"output\":{}},\"strategy\":{"
      "\"overlap\":true},\"replicaSpecs\":{\"PS\":{}},\"runPolicy\":{\"backoffLimit\":1},\"fit\":{\"resume\":true,"
      "\"rebase\":true}}",
      "", true, RERUN_FREE },
    { "{\"fit\":{\"batchSize\":64}}", "{\"fit\":{\"seed\":2}}", "fit.batchSize is 32, was 64; fit.seed is 2, was 0",
      false, RERUN_REBASE },
    { "{\"fit\":{\"classWeight\":{\"1\":5}}}", "{\"fit\":{\"classWeight\":{\"1\":5.0,\"2\":3}}}",
      "fit.classWeight.2 is 3, was not set", false, RERUN_FRESH },
    { "{\"fit\":{}}", "{\"fit\":{\"validationSplit\":0.2}}", "fit.validationSplit is 0.2, was not set", false,
      RERUN_REBASE },
    { "{\"data\":{\"train\":{\"format\":\"idx\",\"features\":\"a\"}}}",
      "{\"data\":{\"train\":{\"format\":\"idx\",\"features\":\"b\"}}}", "data.train.features is b, was a", false,
      RERUN_REBASE },
    { "{\"data\":{\"train\":{\"format\":\"csv\",\"files\":[\"a\",\"b\"]}}}",
      "{\"data\":{\"train\":{\"format\":\"csv\",\"files\":[\"a\",\"c\"]}}}", "data.train.files[1] is c, was b", false,
      RERUN_REBASE },
    { "{\"data\":{}}", "{\"data\":{\"validation\":{\"format\":\"csv\",\"files\":\"a\"}}}",
      "data.validation is set, was not set", false, RERUN_RESUME },
    { "{\"compile\":{\"optimizer\":{\"Adam\":{\"learning_rate\":0.1}}}}",
      "{\"compile\":{\"optimizer\":{\"Adam\":{\"learning_rate\":0.2}}}}",
      "compile.optimizer.Adam.learning_rate is 0.2, was 0.1", false, RERUN_RESUME },
    { "{\"compile\":{\"optimizer\":{\"SGD\":{\"slots\":[],\"momentum\":0}}}}",
      "{\"compile\":{\"optimizer\":{\"SGD\":{\"slots\":[\"Momentum\"],\"momentum\":0.9}}}}",
      "compile.optimizer.SGD.slots is [\"Momentum\"], was []; compile.optimizer.SGD.momentum is 0.9, was 0", false,
      RERUN_FRESH },
    { "{\"compile\":{\"optimizer\":\"SGD\"}}", "{\"compile\":{\"optimizer\":\"Adam\"}}",
      "compile.optimizer is Adam, was SGD", false, RERUN_FRESH },
    { "{\"compile\":{\"loss\":\"mse\"}}", "{\"compile\":{\"loss\":\"mae\"}}", "compile.loss is mae, was mse", false,
      RERUN_FRESH },
    { "{\"model\":{\"layers\":[{\"Dense\":{\"units\":2}}]}}", "{\"model\":{\"layers\":[{\"Dense\":{\"units\":2.0}}]}}",
      "", false, RERUN_FREE },
    { "{\"model\":{\"layers\":[{\"Dense\":{\"units\":2}}]}}", "{\"model\":{\"layers\":[{\"Dense\":{\"units\":3}}]}}",
      "model.layers[0].Dense.units is 3, was 2", false, RERUN_FRESH },
};

static json_t *parse(const char *text)
{
    struct err e = { 0 };
    json_t *v = NULL;
    ck_ok_e(json_parse(text, strlen(text), "spec", &v, &e));
    return v;
}

START_TEST(what_differs_is_named)
{
    AUTO_FINI(rerun_changes) changes = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *was = parse(CASES[_i].was), *now = parse(CASES[_i].now);
    rerun_compare(was, now, CASES[_i].finished, &changes);
    rerun_text(&changes, RERUN_FREE, &text);
    ck_assert_str_eq(text.data != NULL ? text.data : "", CASES[_i].text);
    ck_assert_int_eq((int)rerun_need(&changes), (int)CASES[_i].need);
}
END_TEST

START_TEST(only_what_is_not_allowed_is_said)
{
    AUTO_FINI(rerun_changes) changes = { 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    rerun_add(&changes, "compile.optimizer.Adam.learning_rate", "0.1", "0.2", RERUN_RESUME);
    rerun_add(&changes, "data.train.files[0]", "a", "b", RERUN_REBASE);
    rerun_add(&changes, "fit.seed", "1", "2", RERUN_REBASE);
    rerun_forget(&changes, "data.train");
    rerun_text(&changes, RERUN_RESUME, &text);
    ck_assert_str_eq(text.data, "fit.seed is 2, was 1");
    for (int i = 0; i < 9; i++)
        rerun_add(&changes, "fit.x", "1", "2", RERUN_FRESH);
    buf_clear(&text);
    rerun_text(&changes, RERUN_RESUME, &text);
    ck_assert_ptr_nonnull(strstr(text.data, "; and 4 more"));
}
END_TEST

/* Reruns would ignore a field that has no rule. */
static void check_table(const struct field_table *t, const char *above, bool ruled)
{
    for (size_t i = 0; i < t->nrows; i++) {
        const struct field *f = &t->rows[i];
        auto_free char *path = xasprintf("%s.%s", above, f->key);
        bool own = ruled || f->rerun != RERUN_UNSAID;
        if (f->kind == FIELD_TABLE)
            check_table(f->table, path, own);
        else
            ck_assert_msg(own, "%s: its row has no rule for reruns (.rerun, see job/rerun.h)", path);
    }
}

START_TEST(every_field_has_a_rule)
{
    for (size_t i = 0; i < JOB_FIELDS.nrows; i++)
        if (str_eq(JOB_FIELDS.rows[i].key, "spec"))
            check_table(JOB_FIELDS.rows[i].table, "spec", false);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("rerun");
    TCase *t = tcase_create("comparison");
    tcase_add_loop_test(t, what_differs_is_named, 0, COUNT_OF(CASES));
    tcase_add_test(t, only_what_is_not_allowed_is_said);
    tcase_add_test(t, every_field_has_a_rule);
    suite_add_tcase(s, t);
    return s;
}
