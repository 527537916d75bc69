#include "check_main.h"
#include "nn/optimizers/schedule.h"

#include "nn/named.h"

static struct schedule *parse(const char *text)
{
    struct err e = { 0 };
    struct schedule *s = NULL;
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    ck_assert_msg(schedule_parse(&n, &s, &e) == 0, "%s", e.msg);
    return s;
}

static void refused(const char *text, const char *message)
{
    struct err e = { 0 };
    struct schedule *s = NULL;
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    ck_assert_msg(schedule_parse(&n, &s, &e) < 0, "%s was taken", text);
    ck_message_has(e, message);
    ck_assert_int_eq(e.code, ERR_INPUT);
}

START_TEST(every_golden_schedule_gives_keras_rates)
{
    json_auto_t *file = golden_read("test/data/nn/schedules.json");
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(file, "cases"), i, c)
    {
        struct err e = { 0 };
        AUTO(schedule) *s = NULL;
        json_auto_t *object = named_object(json_object_get(c, "config"));
        struct node n = named_node(object);
        ck_assert_msg(schedule_parse(&n, &s, &e) == 0, "%s", e.msg);
        auto_free int32_t *steps = named_ints(json_object_get(c, "steps"));
        auto_free float *want = golden_floats(json_object_get(c, "lr"));
        ck_assert_uint_gt(golden_count(json_object_get(c, "steps")), 0);
        for (size_t k = 0; k < golden_count(json_object_get(c, "steps")); k++)
            golden_near(c, "lr", (double)want[k], schedule_at(s, steps[k]));
    }
    ck_assert_uint_eq(i, 9);
}
END_TEST

START_TEST(a_number_is_constant)
{
    AUTO(schedule) *s = parse("0.25");
    ck_assert_double_eq(schedule_at(s, 0), 0.25);
    ck_assert_double_eq(schedule_at(s, 1000000), 0.25);
}
END_TEST

START_TEST(the_far_end_stays_sane)
{
    AUTO(schedule) *cosine = parse("{\"CosineDecay\": {\"initial_learning_rate\": 0.1, \"decay_steps\": 10}}");
    ck_assert_double_eq(schedule_at(cosine, 1LL << 40), 0);
    AUTO(schedule) *poly = parse("{\"PolynomialDecay\": {\"initial_learning_rate\": 0.1, \"decay_steps\": 10}}");
    ck_assert_double_eq_tol(schedule_at(poly, 1LL << 40), 0.0001, 1e-12);
    AUTO(schedule) *restarts =
        parse("{\"CosineDecayRestarts\": {\"initial_learning_rate\": 0.1, \"first_decay_steps\": 10, \"t_mul\": 1}}");
    ck_assert_double_eq_tol(schedule_at(restarts, 1000000), 0.1, 1e-9);
}
END_TEST

START_TEST(config_is_what_keras_writes_and_reads_back)
{
    const char *text = "{\"PiecewiseConstantDecay\": {\"boundaries\": [5, 12], \"values\": [0.5, 0.25, 0.125]}}";
    AUTO(schedule) *s = parse(text);
    json_auto_t *config = schedule_config(s);
    ck_assert_str_eq(json_string_value(json_at(config, "class_name")), "PiecewiseConstantDecay");
    ck_assert_str_eq(json_string_value(json_at(config, "module")), "keras.optimizers.schedules");
    AUTO_FINI(buf) out = BUF_INIT;
    json_emit(config, &out);
    AUTO(schedule) *again = parse(out.data);
    for (int64_t t = 0; t < 20; t++)
        ck_assert_double_eq(schedule_at(again, t), schedule_at(s, t));
}
END_TEST

START_TEST(bad_input_names_the_fault)
{
    refused("-0.1", "must be 0 or greater and a 32-bit float, not -0.1");
    refused("\"fast\"", "fast");
    refused("{\"ExponentialDecoy\": {}}", "schedule 'ExponentialDecoy' is not known; did you mean 'ExponentialDecay'?");
    refused("{\"ExponentialDecay\": {\"initial_learning_rate\": 0.1}}", "ExponentialDecay needs 'decay_steps'");
    refused("{\"CosineDecay\": {\"initial_learning_rate\": 0.1, \"decay_steps\": 0}}", "must be greater than 0, not 0");
    refused("{\"CosineDecay\": {\"initial_learning_rate\": 0.1, \"decay_step\": 5}}", "decay_step");
    refused("{\"PiecewiseConstantDecay\": {\"boundaries\": [1], \"values\": [1]}}",
            "1 boundaries need 2 values, not 1");
    refused("{\"PiecewiseConstantDecay\": {\"boundaries\": [2, 1], \"values\": [1, 2, 3]}}", "must increase");
    refused("{\"PiecewiseConstantDecay\": {\"values\": [1]}}", "needs 'boundaries'");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/schedule");
    TCase *t = tcase_create("schedule");
    tcase_add_test(t, every_golden_schedule_gives_keras_rates);
    tcase_add_test(t, a_number_is_constant);
    tcase_add_test(t, the_far_end_stays_sane);
    tcase_add_test(t, config_is_what_keras_writes_and_reads_back);
    tcase_add_test(t, bad_input_names_the_fault);
    suite_add_tcase(s, t);
    return s;
}
