/* Which strategies train which models. The messages are cases of test/data/bad. */
#include "nn/sync_check.h"
#include "yaml_model.h"

#define MODEL(optimizer, layer)                                                                                        \
    "compile: {optimizer: " optimizer ", loss: mse}\n"                                                                 \
    "model: {inputShape: [3], layers: [{Dense: {units: 2}}, " layer ", {Dense: {units: 1}}]}\n"
#define SYNCHRONIZED "{BatchNormalization: {synchronized: true, name: bn}}"

enum { NO_LAYER, FROZEN, LAYER, CLIPNORM, CLIPVALUE, MODELS };
static const char *const TEXTS[MODELS] = {
    [NO_LAYER] = MODEL("sgd", "BatchNormalization"),
    [FROZEN] = MODEL("sgd", "{BatchNormalization: {synchronized: true, trainable: false}}"),
    [LAYER] = MODEL("sgd", SYNCHRONIZED),
    [CLIPNORM] = MODEL("{SGD: {clipnorm: 1.0}}", "ReLU"),
    [CLIPVALUE] = MODEL("{SGD: {clipvalue: 1.0}}", "ReLU"),
};

static const struct {
    enum strategy strategy;
    enum updates updates;
    bool groups; /* of batches in one step */
    bool alone;  /* one batch after the other */
} STRATEGIES[] = {
    { STRATEGY_PARAMETER_SERVER, UPDATES_ASYNC, .groups = false },
    { STRATEGY_PARAMETER_SERVER, UPDATES_SYNC, .groups = true },
    { STRATEGY_SINGLE, UPDATES_ASYNC, .alone = true },
    { STRATEGY_MIRRORED, UPDATES_SYNC, .groups = true },
    { STRATEGY_HOGWILD, UPDATES_ASYNC, .groups = false },
    { STRATEGY_MULTI_WORKER_MIRRORED, UPDATES_SYNC, .groups = true },
};

static bool accepted(size_t strategy, const struct model *m, struct err *e)
{
    struct job job = { .strategy = { .name = STRATEGIES[strategy].strategy, .updates = STRATEGIES[strategy].updates } };
    return sync_check(&job, m, e) == 0;
}

START_TEST(strategies_and_models)
{
    for (size_t k = 0; k < MODELS; k++) {
        AUTO(model) *m = yaml_model(TEXTS[k]);
        ck_assert_int_eq(model_synchronized(m) != NULL, k == LAYER);
        for (size_t i = 0; i < COUNT_OF(STRATEGIES); i++) {
            struct err e = { 0 };
            bool want =
                k == LAYER ? STRATEGIES[i].groups || STRATEGIES[i].alone : k != CLIPNORM || !STRATEGIES[i].groups;
            ck_assert_msg(accepted(i, m, &e) == want, "model %zu, strategy %zu: %s", k, i, e.msg);
            ck_assert(want || e.code == ERR_INPUT);
        }
    }
}
END_TEST

START_TEST(the_layer_is_named)
{
    AUTO(model) *m = yaml_model(TEXTS[LAYER]);
    struct err e = { 0 };
    ck_assert_str_eq(model_synchronized(m), "bn");
    ck_assert(!accepted(0, m, &e));
    ck_assert_ptr_nonnull(strstr(e.msg, "layer 'bn' is synchronized"));
}
END_TEST

/* tf.keras.layers.experimental.SyncBatchNormalization, which Keras 3 does not have. */
START_TEST(the_class_of_keras_2)
{
    AUTO(model) *m = yaml_model(MODEL("sgd", "SyncBatchNormalization"));
    json_auto_t *json = model_to_json(m);
    auto_free char *text = json_dumps(json, JSON_COMPACT);
    ck_assert_str_eq(model_synchronized(m), "batch_normalization");
    ck_assert_ptr_nonnull(strstr(text, "\"class_name\":\"BatchNormalization\""));
    ck_assert_ptr_nonnull(strstr(text, "\"synchronized\":true"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/sync_check");
    TCase *t = tcase_create("sync_check");
    tcase_add_test(t, strategies_and_models);
    tcase_add_test(t, the_layer_is_named);
    tcase_add_test(t, the_class_of_keras_2);
    suite_add_tcase(s, t);
    return s;
}
