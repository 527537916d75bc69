/* exec as a training loop uses it: Keras's golden runs, batches of any size and type, dropout, state. */
#include "exec_values.h"
#include "golden.h"
#include "nn/exec_impl.h"

/* ---- helpers ---- */

static struct model *build(const char *model, const char *compile)
{
    struct err e = { 0 };
    json_auto_t *m = json_loads(model, 0, NULL), *c = compile != NULL ? json_loads(compile, 0, NULL) : NULL;
    struct node mn = node_root(m, NULL), cn = node_root(c, NULL);
    struct model *ret = NULL;
    ck_assert_ptr_nonnull(m);
    ck_ok_e(model_build(&mn, c != NULL ? &cn : NULL, ".", &ret, &e));
    return ret;
}

static struct batch batch_of(const struct model *m, size_t n, float *x, void *y, enum dtype y_type)
{
    struct shape in = { .rank = 1, .dim = { (int64_t)n } }, labels = in;
    for (int i = 0; i < m->inputs[0].shape.rank; i++)
        in.dim[in.rank++] = m->inputs[0].shape.dim[i];
    for (int i = 0; y_type == DT_FLOAT && i < m->heads[0].out.shape.rank; i++)
        labels.dim[labels.rank++] = m->heads[0].out.shape.dim[i];
    return (struct batch){ .n = n,
                           .x[0] = { .dtype = DT_FLOAT, .shape = in, .data = x },
                           .y[0] = { .dtype = y_type, .shape = labels, .data = y } };
}

static const struct variable *variable_named(const struct model *m, const char *name)
{
    for (size_t i = 0; i < model_variables(m); i++) {
        if (strcmp(model_variable(m, i)->name, name) == 0)
            return model_variable(m, i);
    }
    ck_abort_msg("no variable %s", name);
    return NULL;
}

/* ---- Keras's golden training runs ---- */

/* "1:bias" is bias of the second Dense; golden weights are numbered over all variables, in creation order. */
static void each_weight(json_t *weights, const struct model *m, float *params, const json_t *check)
{
    const char *key;
    const json_t *tensor;
    json_object_foreach(weights, key, tensor)
    {
        const struct variable *v = model_variable(m, strtoul(key, NULL, 10));
        ck_assert_uint_eq(golden_count(tensor), v->count);
        if (check != NULL)
            golden_check(check, key, tensor, params + v->offset);
        for (size_t i = 0; check == NULL && i < v->count; i++)
            params[v->offset + i] = golden_at(tensor, i);
    }
}

static char *compile_of(const json_t *c)
{
    json_auto_t *args = json_deep_copy(json_object_get(c, "optimizer"));
    auto_free char *name = xstrdup(json_string_value(json_object_get(args, "class")));
    json_object_del(args, "class");
    json_auto_t *compile = json_pack("{s:{s:O}, s:{s:{s:b}}}", "optimizer", name, args, "loss",
                                     "SparseCategoricalCrossentropy", "from_logits", 1);
    return json_dumps(compile, 0);
}

static const char GOLDEN_MLP[] = "{\"inputShape\": [8], \"layers\": [{\"Dense\": {\"units\": 5, \"activation\": "
                                 "\"relu\"}}, {\"Dense\": {\"units\": 3}}]}";
static const char GOLDEN_CNN[] = "{\"inputShape\": [8, 8, 1], \"layers\": ["
                                 "{\"Conv2D\": {\"filters\": 3, \"kernel_size\": 3, \"activation\": \"relu\", "
                                 "\"padding\": \"same\"}}, \"MaxPooling2D\","
                                 "{\"Conv2D\": {\"filters\": 4, \"kernel_size\": 3, \"activation\": \"relu\"}}, "
                                 "\"Flatten\", {\"Dense\": {\"units\": 3}}]}";

static void golden_run(const json_t *c)
{
    auto_free char *compile = compile_of(c);
    const char *name = json_string_value(json_object_get(c, "name"));
    AUTO(model) *m = build(strncmp(name, "cnn", 3) == 0 ? GOLDEN_CNN : GOLDEN_MLP, compile);
    const json_t *losses = json_object_get(c, "losses"), *after = json_object_get(c, "after");
    const struct optimizer *o = model_optimizer(m);
    auto_free float *params = zeros(model_size(m)), *grads = zeros(model_size(m));
    auto_free float *slots = zeros(OPTIMIZER_MAX_SLOTS * model_size(m)), *in = golden_floats(json_object_get(c, "x"));
    float *slot[OPTIMIZER_MAX_SLOTS] = { slots, slots + model_size(m), slots + 2 * model_size(m) };
    int32_t labels[4];
    AUTO(exec) *x = make_exec(m, 4, 0);

    for (size_t i = 0; i < 4; i++)
        labels[i] = (int32_t)golden_at(json_object_get(c, "y"), i);
    for (int s = 0; s < optimizer_slots(o); s++) {
        for (size_t i = 0; i < model_size(m); i++)
            slot[s][i] = optimizer_slot_init(o, s);
    }
    struct batch b = batch_of(m, 4, in, labels, DT_INT32);
    each_weight(json_object_get(c, "weights"), m, params, NULL);
    golden_check(c, "logits", json_object_get(c, "logits"), exec_forward(x, params, &b, m->nlayers));
    struct opt_state state = { 0 };
    for (size_t step = 0; step < json_array_size(after); step++) {
        double loss;
        struct opt_step now;
        exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
        golden_near(c, "loss", (double)golden_at(losses, step), loss);
        if (step == 0)
            each_weight(json_object_get(c, "grads_step1"), m, grads, c);
        optimizer_begin(o, &state, &now);
        optimizer_apply(o, &now, params, slot, grads, m->trainable_size);
        optimizer_end(o, &state);
        each_weight(json_array_get(after, step), m, params, c);
    }
}

START_TEST(golden_runs)
{
    json_auto_t *file = golden_read("test/data/nn/models.json");
    const json_t *cases = json_object_get(file, "cases"), *c;
    size_t i;
    ck_assert_uint_eq(json_array_size(cases), 8);
    json_array_foreach(cases, i, c) golden_run(c);
}
END_TEST

/* ---- batches ---- */

static const char MLP[] =
    "{\"inputShape\": [2, 3], \"layers\": [\"Flatten\", {\"Rescaling\": {\"scale\": 0.5, \"offset\": -1}},"
    "{\"Dense\": {\"units\": 7, \"activation\": \"relu\"}}, {\"Dense\": {\"units\": 4, \"activation\": "
    "\"softmax\"}}]}";
static const char SPARSE[] =
    "{\"optimizer\": \"SGD\", \"loss\": \"sparse_categorical_crossentropy\", \"metrics\": [\"accuracy\"]}";
static int32_t CLASSES[] = { 0, 1, 2, 3, 3, 2, 1, 0 };

/* The gradient of a batch is the mean of its examples' gradients; so is the loss. */
START_TEST(a_batch_is_the_mean_of_its_examples)
{
    AUTO(model) *m = build(MLP, SPARSE);
    AUTO(exec) *x = make_exec(m, 8, 0);
    size_t size = model_size(m);
    auto_free float *params = zeros(size), *whole = zeros(size), *one = zeros(size), *sum = zeros(size),
                    *in = zeros(48);
    double loss, losses = 0, whole_loss;

    model_init(m, 1, params);
    draw(in, 48, 1);
    struct batch b = batch_of(m, 8, in, CLASSES, DT_INT32);
    exec_train(x, params, &b, whole, NULL, NULL, NULL, &whole_loss);
    for (size_t i = 0; i < 8; i++) {
        b = batch_of(m, 1, in + 6 * i, CLASSES + i, DT_INT32);
        exec_train(x, params, &b, one, NULL, NULL, NULL, &loss);
        losses += loss / 8;
        for (size_t k = 0; k < size; k++)
            sum[k] += one[k] / 8;
    }
    ck_assert_double_eq_tol(losses, whole_loss, 1e-6);
    for (size_t k = 0; k < size; k++)
        ck_float_near(sum[k], whole[k], 1e-6);
}
END_TEST

/* Pixels as bytes give the bits that the same pixels as floats give, with and without a Rescaling. */
START_TEST(bytes_are_floats)
{
    static const char PLAIN[] =
        "{\"inputShape\": [6], \"layers\": [{\"Dense\": {\"units\": 4, \"activation\": \"softmax\"}}]}";
    const char *models[] = { MLP, PLAIN };
    for (size_t k = 0; k < COUNT_OF(models); k++) {
        AUTO(model) *m = build(models[k], SPARSE);
        AUTO(exec) *x = make_exec(m, 8, 0);
        auto_free float *params = zeros(model_size(m)), *g1 = zeros(model_size(m)), *g2 = zeros(model_size(m)),
                        *in = zeros(48);
        unsigned char bytes[48];
        double loss1, loss2;

        model_init(m, 1, params);
        for (size_t i = 0; i < 48; i++)
            in[i] = bytes[i] = (unsigned char)(i * 5 % 256);
        struct batch b = batch_of(m, 8, in, CLASSES, DT_INT32);
        exec_train(x, params, &b, g1, NULL, NULL, NULL, &loss1);
        b.x[0].dtype = DT_UINT8;
        b.x[0].data = bytes;
        exec_train(x, params, &b, g2, NULL, NULL, NULL, &loss2);
        ck_assert_double_eq(loss1, loss2);
        ck_assert_mem_eq(g1, g2, model_size(m) * sizeof(float));
    }
}
END_TEST

/* With weights near zero ten classes are equally likely: loss ln 10, and about chance accuracy. */
START_TEST(first_loss_is_ln_classes)
{
    AUTO(model) *m =
        build("{\"inputShape\": [784], \"layers\": [{\"Dense\": {\"units\": 128, \"activation\": \"relu\"}},"
              "{\"Dense\": {\"units\": 10, \"activation\": \"softmax\", \"kernel_initializer\": \"zeros\"}}]}",
              SPARSE);
    AUTO(exec) *x = make_exec(m, 8, 0);
    auto_free float *params = zeros(model_size(m)), *in = zeros(8 * 784);
    auto_free double *acc = xcalloc(metrics_width(m), sizeof(double));
    double result[2];

    model_init(m, 1, params);
    draw(in, 8 * 784, 1);
    struct batch b = batch_of(m, 8, in, CLASSES, DT_INT32);
    exec_evaluate(x, params, &b, acc);
    metrics_result(m, acc, result);
    ck_assert_double_eq_tol(result[0], log(10), 1e-6);
    ck_assert_double_eq(acc[1], 8);                  /* examples */
    ck_assert_double_eq_tol(result[1], 0.25, 1e-12); /* all ties: argmax is class 0, which is right for 2 of 8 */
}
END_TEST

/* Evaluation and training agree on loss and metrics where no layer has modes; predict gives the probabilities. */
START_TEST(evaluate_train_and_predict_agree)
{
    AUTO(model) *m = build(MLP, SPARSE);
    AUTO(exec) *x = make_exec(m, 8, 0);
    size_t width = metrics_width(m);
    auto_free float *params = zeros(model_size(m)), *grads = zeros(model_size(m)), *in = zeros(48);
    auto_free double *a = xcalloc(width, sizeof(double)), *b = xcalloc(width, sizeof(double));
    double loss, cross_entropy = 0;

    model_init(m, 1, params);
    draw(in, 48, 1);
    struct batch batch = batch_of(m, 8, in, CLASSES, DT_INT32);
    exec_train(x, params, &batch, grads, a, NULL, NULL, &loss);
    exec_evaluate(x, params, &batch, b);
    ck_assert_mem_eq(a, b, width * sizeof(double));
    const float *p = exec_forward(x, params, &batch, m->nlayers);
    for (size_t i = 0; i < 8; i++)
        cross_entropy -= log((double)p[4 * i + (size_t)CLASSES[i]]) / 8;
    ck_assert_double_eq_tol(cross_entropy, loss, 1e-6);
}
END_TEST

/* Keras: loss = sum(weight * loss) / examples. An example of weight 0 adds nothing to the gradient. */
START_TEST(sample_weights)
{
    AUTO(model) *m = build(MLP, SPARSE);
    AUTO(exec) *x = make_exec(m, 2, 0);
    size_t size = model_size(m);
    auto_free float *params = zeros(size), *weighted = zeros(size), *one = zeros(size), *in = zeros(12);
    const float weight[] = { 3, 0 };
    double loss_weighted, loss_one;

    model_init(m, 1, params);
    draw(in, 12, 1);
    struct batch b = batch_of(m, 2, in, CLASSES, DT_INT32);
    b.weight = weight;
    exec_train(x, params, &b, weighted, NULL, NULL, NULL, &loss_weighted);
    b = batch_of(m, 1, in, CLASSES, DT_INT32);
    exec_train(x, params, &b, one, NULL, NULL, NULL, &loss_one);
    ck_assert_double_eq_tol(loss_weighted, 1.5 * loss_one, 1e-6);
    for (size_t i = 0; i < size; i++)
        ck_float_near(weighted[i], 1.5F * one[i], 1e-6);
}
END_TEST

/* An output of several rows: each row is evaluated, and has the weight of its example. */
START_TEST(rows_share_the_weight_of_their_example)
{
    AUTO(model) *m = build(
        "{\"inputShape\": [2, 3], \"layers\": [{\"Dense\": {\"units\": 4, \"activation\": \"softmax\"}}]}", SPARSE);
    AUTO(exec) *x = make_exec(m, 2, 0);
    auto_free float *params = zeros(model_size(m)), *grads = zeros(model_size(m)), *in = zeros(12);
    const float weight[] = { 2, 0.5F };
    double loss[2], both;

    model_init(m, 1, params);
    draw(in, 12, 1);
    struct batch b = { .n = 2,
                       .x[0] = { DT_FLOAT, { 3, { 2, 2, 3 } }, in },
                       .y[0] = { DT_INT32, { 2, { 2, 2 } }, CLASSES },
                       .weight = weight };
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &both);
    for (size_t i = 0; i < 2; i++) {
        b = (struct batch){ .n = 1,
                            .x[0] = { DT_FLOAT, { 3, { 1, 2, 3 } }, in + 6 * i },
                            .y[0] = { DT_INT32, { 2, { 1, 2 } }, CLASSES + 2 * i } };
        exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss[i]);
    }
    ck_assert_double_eq_tol(both, (2 * loss[0] + 0.5 * loss[1]) / 2, 1e-6);
}
END_TEST

/* The last activation is fused with the loss in either form: as an argument, or as a layer. */
START_TEST(last_activation_may_stand_alone)
{
    static const char *const TAILS[] = {
        "{\"Dense\": {\"units\": 4, \"activation\": \"softmax\"}}",
        "{\"Dense\": {\"units\": 4}}, {\"Activation\": {\"activation\": \"softmax\"}}",
        "{\"Dense\": {\"units\": 4}}, \"Softmax\"",
        "{\"Dense\": {\"units\": 4}}, \"Softmax\", {\"Reshape\": {\"target_shape\": [4]}}"
    };
    float grads[COUNT_OF(TAILS)][64] = { { 0 } };
    double loss[COUNT_OF(TAILS)];

    for (size_t i = 0; i < COUNT_OF(TAILS); i++) {
        auto_free char *text = xasprintf("{\"inputShape\": [6], \"layers\": [%s]}", TAILS[i]);
        AUTO(model) *m = build(text, SPARSE);
        AUTO(exec) *x = make_exec(m, 8, 0);
        auto_free float *params = zeros(model_size(m)), *in = zeros(48);
        model_init(m, 1, params);
        draw(in, 48, 1);
        struct batch b = batch_of(m, 8, in, CLASSES, DT_INT32);
        exec_train(x, params, &b, grads[i], NULL, NULL, NULL, &loss[i]);
        ck_assert_double_eq_tol(loss[i], loss[0], 1e-6);
        for (size_t k = 0; k < model_size(m); k++)
            ck_float_near(grads[i][k], grads[0][k], 1e-6);
    }
}
END_TEST

/* Integer labels of a regression loss count as numbers. */
START_TEST(whole_numbers_can_be_regressed)
{
    AUTO(model) *m = build("{\"inputShape\": [3], \"layers\": [{\"Dense\": {\"units\": 1}}]}",
                           "{\"optimizer\": \"SGD\", \"loss\": \"mse\"}");
    AUTO(exec) *x = make_exec(m, 2, 0);
    auto_free float *params = zeros(model_size(m)), *g1 = zeros(model_size(m)), *g2 = zeros(model_size(m));
    float in[] = { 1, 2, 3, 4, 5, 6 }, labels[] = { 7, -2 };
    int32_t whole[] = { 7, -2 };
    double a, b;

    model_init(m, 1, params);
    struct batch floats = batch_of(m, 2, in, labels, DT_FLOAT), ints = batch_of(m, 2, in, whole, DT_INT32);
    exec_train(x, params, &floats, g1, NULL, NULL, NULL, &a);
    exec_train(x, params, &ints, g2, NULL, NULL, NULL, &b);
    ck_assert_double_eq(a, b);
    ck_assert_mem_eq(g1, g2, model_size(m) * sizeof(float));
}
END_TEST

/* ---- dropout ---- */

static const char DROPOUT[] =
    "{\"inputShape\": [50], \"layers\": [{\"Dropout\": {\"rate\": 0.3}}, {\"Dense\": {\"units\": 1, "
    "\"kernel_initializer\": \"ones\"}}]}";
static const char MSE[] = "{\"optimizer\": \"SGD\", \"loss\": \"mse\"}";

/* The kernel's gradient shows the mask: with y_true - 1 ahead of every prediction it is x * mask. */
static void masks(const struct model *m, uint64_t seed, int64_t epoch, int64_t position, size_t n, float *grads)
{
    AUTO(exec) *x = make_exec(m, n, seed);
    auto_free float *params = zeros(model_size(m)), *in = zeros(n * 50), *y = zeros(n);
    double loss;
    for (size_t i = 0; i < n * 50; i++)
        in[i] = 1;
    for (size_t i = 0; i < n; i++)
        y[i] = -0.5F * (float)n; /* all weights are 0: d loss/d pred = 2 (0 - y) / n = 1 */
    struct batch b = batch_of(m, n, in, y, DT_FLOAT);
    b.epoch = epoch;
    b.position = position;
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
}

START_TEST(dropout_is_named_by_the_example)
{
    AUTO(model) *m = build(DROPOUT, MSE);
    size_t size = model_size(m);
    auto_free float *pair = zeros(size), *first = zeros(size), *second = zeros(size), *other = zeros(size);

    masks(m, 7, 2, 100, 2, pair);
    masks(m, 7, 2, 100, 1, first);
    masks(m, 7, 2, 101, 1, second);
    for (size_t i = 0; i < 50; i++)
        ck_float_near(pair[i], first[i] + second[i], 1e-5);
    ck_assert_mem_ne(first, second, 50 * sizeof(float));
    masks(m, 7, 3, 100, 1, other);
    ck_assert_mem_ne(first, other, 50 * sizeof(float)); /* another epoch */
    masks(m, 8, 2, 100, 1, other);
    ck_assert_mem_ne(first, other, 50 * sizeof(float)); /* another seed */
    masks(m, 7, 2, 100, 1, other);
    ck_assert_mem_eq(first, other, 50 * sizeof(float)); /* the same again */
}
END_TEST

START_TEST(dropout_keeps_the_expected_share)
{
    AUTO(model) *m = build(DROPOUT, MSE);
    auto_free float *grads = zeros(model_size(m));
    double kept = 0;
    for (int64_t i = 0; i < 400; i++) {
        masks(m, 1, 0, i, 1, grads);
        for (size_t k = 0; k < 50; k++) {
            ck_assert_msg(grads[k] == 0 || fabsf(grads[k] - 1 / 0.7F) < 1e-5F, "%g", (double)grads[k]);
            kept += grads[k] != 0;
        }
    }
    ck_assert_double_eq_tol(kept / (400 * 50), 0.7, 0.013); /* four deviations */
}
END_TEST

START_TEST(dropout_is_absent_from_inference)
{
    AUTO(model) *m = build(DROPOUT, MSE);
    AUTO(exec) *x = make_exec(m, 1, 0);
    auto_free float *params = zeros(model_size(m)), *in = zeros(50);
    model_init(m, 1, params);
    for (size_t i = 0; i < 50; i++)
        in[i] = 1;
    struct batch b = batch_of(m, 1, in, NULL, DT_FLOAT);
    ck_float_eq(*exec_forward(x, params, &b, m->nlayers), 50);
}
END_TEST

/* ---- state, frozen layers, regularisation, adapt ---- */

START_TEST(batch_statistics_travel_as_gradients)
{
    AUTO(model) *m =
        build("{\"inputShape\": [1], \"layers\": [\"BatchNormalization\", {\"Dense\": {\"units\": 1}}]}", MSE);
    AUTO(exec) *x = make_exec(m, 4, 0);
    auto_free float *params = zeros(model_size(m)), *grads = zeros(model_size(m));
    float in[] = { 1, 2, 3, 6 }, y[] = { 0, 0, 0, 0 };
    double loss;

    model_init(m, 1, params);
    const struct variable *mean = variable_named(m, "batch_normalization/moving_mean");
    const struct variable *variance = variable_named(m, "batch_normalization/moving_variance");
    struct batch b = batch_of(m, 4, in, y, DT_FLOAT);
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
    ck_assert_int_eq(mean->kind, VAR_MOVING);
    ck_float_near(mean->momentum, 0.99, 1e-7);
    ck_float_eq(grads[mean->offset], 3);
    ck_float_eq(grads[variance->offset], 3.5F);
    ck_float_eq(params[variance->offset], 1);
}
END_TEST

START_TEST(frozen_layers_get_zeros)
{
    AUTO(model) *m = build("{\"inputShape\": [2], \"layers\": [{\"Dense\": {\"units\": 2, \"trainable\": "
                           "false}}, {\"Dense\": {\"units\": 1}}]}",
                           MSE);
    AUTO(exec) *x = make_exec(m, 1, 0);
    auto_free float *params = zeros(model_size(m)), *grads = zeros(model_size(m));
    float in[] = { 1, 2 }, y[] = { 5 };
    double loss;

    model_init(m, 1, params);
    const struct variable *frozen = variable_named(m, "dense/kernel"), *moving = variable_named(m, "dense_1/kernel");
    ck_assert_int_eq(frozen->kind, VAR_CONST);
    ck_assert_uint_eq(moving->offset, 0); /* trainable ones first */
    for (size_t i = 0; i < model_size(m); i++)
        grads[i] = 9;
    struct batch b = batch_of(m, 1, in, y, DT_FLOAT);
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
    for (size_t i = 0; i < frozen->count; i++) {
        ck_float_eq(grads[frozen->offset + i], 0);
        ck_float_ne(params[frozen->offset + i], 0);
    }
    ck_float_ne(grads[moving->offset], 9);
}
END_TEST

START_TEST(penalties_are_in_loss_and_gradient)
{
    AUTO(model) *m = build("{\"inputShape\": [1], \"layers\": [{\"Dense\": {\"units\": 1, \"use_bias\": false, "
                           "\"kernel_initializer\": {\"Constant\": {\"value\": 3}},"
                           "\"kernel_regularizer\": {\"L2\": {\"l2\": 0.5}}}}]}",
                           MSE);
    AUTO(exec) *x = make_exec(m, 1, 0);
    auto_free float *params = zeros(model_size(m)), *grads = zeros(model_size(m));
    auto_free double *acc = xcalloc(metrics_width(m), sizeof(double));
    float in[] = { 2 }, y[] = { 5 };
    double loss, result;

    model_init(m, 1, params);
    struct batch b = batch_of(m, 1, in, y, DT_FLOAT);
    exec_train(x, params, &b, grads, acc, NULL, NULL, &loss);
    metrics_result(m, acc, &result);
    ck_assert_double_eq(loss, 1 + 4.5); /* (6 - 5)^2 + 0.5 * 3^2 */
    ck_assert_double_eq(result, loss);
    ck_float_eq(grads[0], 2 * 1 * 2 + 2 * 0.5F * 3);
}
END_TEST

/* Parameters after adapting to four examples, in two batches. */
static float *adapted(const struct model *m, float *in)
{
    AUTO(exec) *x = make_exec(m, 2, 0);
    AUTO(adapt) *a = adapt_new(m);
    float *params = zeros(model_size(m));
    model_init(m, 1, params);
    for (size_t i = 0; i < 4; i += 2) {
        struct batch b = batch_of(m, 2, in + 2 * i, NULL, DT_FLOAT);
        adapt_add(a, x, params, &b);
    }
    adapt_finish(a, params);
    return params;
}

START_TEST(normalization_adapts)
{
    AUTO(model) *m = build("{\"inputShape\": [2], \"layers\": [{\"Rescaling\": {\"scale\": 2}}, "
                           "\"Normalization\", {\"Dense\": {\"units\": 1}}]}",
                           MSE);
    float in[] = { 1, 5000, 3, 5001, 5, 5005, 11, 5010 };

    ck_assert(model_wants_adapt(m));
    auto_free float *params = adapted(m, in);
    const float *mean = params + variable_named(m, "normalization/mean")->offset;
    const float *variance = params + variable_named(m, "normalization/variance")->offset;
    ck_float_eq(mean[0], 10);
    ck_float_eq(mean[1], 10008);
    ck_float_eq(variance[0], 56); /* of 2 6 10 22 */
    ck_float_eq(variance[1], 62);
}
END_TEST

/* Each of two inputs has its own; a layer with weights may stand before one of them in the list, if it does not lead to
 * it. */
START_TEST(normalization_adapts_in_each_branch)
{
    AUTO(model) *m = build("{\"keras\": {\"class_name\": \"Functional\", \"config\": {\"layers\": ["
                           "{\"class_name\": \"InputLayer\", \"name\": \"a\", \"config\": {\"name\": \"a\", "
                           "\"batch_shape\": [null, 1]}, \"inbound_nodes\": []},"
                           "{\"class_name\": \"InputLayer\", \"name\": \"b\", \"config\": {\"name\": \"b\", "
                           "\"batch_shape\": [null, 2]}, \"inbound_nodes\": []},"
                           "{\"class_name\": \"Normalization\", \"name\": \"na\", \"config\": {\"name\": \"na\"}, "
                           "\"inbound_nodes\": [[[\"a\", 0, 0, {}]]]},"
                           "{\"class_name\": \"Dense\", \"name\": \"d\", \"config\": {\"name\": \"d\", \"units\": 2}, "
                           "\"inbound_nodes\": [[[\"na\", 0, 0, {}]]]},"
                           "{\"class_name\": \"Normalization\", \"name\": \"nb\", \"config\": {\"name\": \"nb\", "
                           "\"axis\": null}, \"inbound_nodes\": [[[\"b\", 0, 0, {}]]]},"
                           "{\"class_name\": \"Add\", \"name\": \"s\", \"config\": {\"name\": \"s\"}, "
                           "\"inbound_nodes\": [[[\"d\", 0, 0, {}], [\"nb\", 0, 0, {}]]]}],"
                           "\"input_layers\": [[\"a\", 0, 0], [\"b\", 0, 0]], \"output_layers\": [[\"s\", 0, 0]]}}}",
                           MSE);
    float a[] = { 2, 6, 10, 22 }, b[] = { 1, 3, 5, 11, 2, 2, 6, 10 };
    AUTO(exec) *x = make_exec(m, 4, 0);
    AUTO(adapt) *adapt = adapt_new(m);
    auto_free float *params = zeros(model_size(m));
    struct batch both = { .n = 4,
                          .x = { { DT_FLOAT, shape_of(2, (int64_t[]){ 4, 1 }), a },
                                 { DT_FLOAT, shape_of(2, (int64_t[]){ 4, 2 }), b } } };
    adapt_add(adapt, x, params, &both);
    adapt_finish(adapt, params);
    ck_float_eq(params[variable_named(m, "na/mean")->offset], 10);
    ck_float_eq(params[variable_named(m, "na/variance")->offset], 56);
    ck_float_eq(params[variable_named(m, "nb/mean")->offset], 5);
    ck_float_eq(params[variable_named(m, "nb/variance")->offset], 12.5);
}
END_TEST

/* axis None: one mean and one variance for all values. */
START_TEST(normalization_adapts_to_all_axes)
{
    AUTO(model) *m = build("{\"inputShape\": [2], \"layers\": [{\"Normalization\": {\"axis\": null}}, {\"Dense\": "
                           "{\"units\": 1}}]}",
                           MSE);
    float in[] = { 1, 3, 5, 11, 2, 2, 6, 10 };
    auto_free float *params = adapted(m, in);
    ck_float_eq(params[variable_named(m, "normalization/mean")->offset], 5);
    ck_float_eq(params[variable_named(m, "normalization/variance")->offset], 12.5);
}
END_TEST

/* Divergence and its consequences: a NaN in the weights reaches the loss and is found in the gradients. */
START_TEST(nan_is_seen)
{
    AUTO(model) *m = build(MLP, SPARSE);
    AUTO(exec) *x = make_exec(m, 8, 0);
    auto_free float *params = zeros(model_size(m)), *grads = zeros(model_size(m)), *in = zeros(48);
    double loss;
    model_init(m, 1, params);
    draw(in, 48, 1);
    struct batch b = batch_of(m, 8, in, CLASSES, DT_INT32);
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
    ck_assert(all_finite(grads, model_size(m)));
    params[3] = NAN;
    exec_train(x, params, &b, grads, NULL, NULL, NULL, &loss);
    ck_assert(isnan(loss));
    ck_assert(!all_finite(grads, model_size(m)));
}
END_TEST

START_TEST(too_large_a_batch_is_refused)
{
    AUTO(model) *m = build(MLP, SPARSE);
    AUTO(exec) *x = NULL;
    struct err e = { 0 };
    ck_assert_int_eq(exec_new(m, SIZE_MAX / 2, 0, &x, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_int_eq(exec_new(m, 0, 0, &x, &e), -1);
}
END_TEST

/* ---- gradients that are reported as complete ---- */

struct told {
    const struct model *m;
    const float *grads;
    float *seen;    /* as they were when they were reported as complete */
    size_t pending; /* variables from here on were reported as complete */
    double loss;
};

static void take_told(void *user, size_t variable, double loss)
{
    struct told *t = user;
    ck_assert_uint_eq(variable, t->pending - 1); /* each one, from the last to the first */
    t->pending = variable;
    const struct variable *v = model_variable(t->m, variable);
    memcpy(t->seen + v->offset, t->grads + v->offset, v->count * sizeof(float));
    t->loss = loss;
}

START_TEST(gradients_are_complete_when_they_are_told_to_be)
{
    struct model *m = build("{\"inputShape\":[6],\"layers\":[{\"Dense\":{\"units\":5,\"kernel_regularizer\":\"l2\"}},"
                            "{\"BatchNormalization\":{}},{\"Dropout\":{\"rate\":0.5}},{\"Dense\":{\"units\":3,\"bias_"
                            "regularizer\":\"l2\"}}]}",
                            "{\"optimizer\":\"sgd\",\"loss\":\"mse\"}");
    size_t size = model_size(m);
    AUTO(exec) *x = make_exec(m, 4, 1);
    auto_free float *params = zeros(size), *grads = zeros(size), *plain = zeros(size), *seen = zeros(size);
    float in[4 * 6], labels[4 * 3];
    double loss, plain_loss;
    model_init(m, 1, params);
    draw(in, COUNT_OF(in), 1);
    draw(labels, COUNT_OF(labels), 2);
    struct batch b = batch_of(m, 4, in, labels, DT_FLOAT);
    struct told t = { .m = m, .grads = grads, .seen = seen, .pending = model_variables(m) };
    exec_train(x, params, &b, plain, NULL, NULL, NULL, &plain_loss);
    exec_train(x, params, &b, grads, NULL, take_told, &t, &loss);
    ck_assert_mem_eq(grads, plain, size * sizeof(float));
    ck_assert_mem_eq(seen, plain, size * sizeof(float)); /* complete, with regularisation, when it was reported */
    ck_assert_double_eq(loss, plain_loss);
    ck_assert_double_eq(t.loss, plain_loss);
    ck_assert_uint_eq(t.pending, 0);
    model_free(m);
}
END_TEST

/* ---- branches ---- */

static double loss_at(struct exec *x, const float *params, const struct batch *b, float *grads)
{
    double loss;
    exec_train(x, params, b, grads, NULL, NULL, NULL, &loss);
    return loss;
}

/* Compares with differences of the loss; the tensors of the graph have up to four readers. */
START_TEST(gradients_of_a_graph)
{
    AUTO(model) *m = build("{\"kerasFile\": \"test/data/nn/graph/keras3.json\"}", SPARSE);
    size_t size = model_size(m);
    AUTO(exec) *x = make_exec(m, 8, 1);
    auto_free float *params = zeros(size), *grads = zeros(size), *other = zeros(size), *in = zeros(8 * 6);
    const float step = 1.0F / 64;
    model_init(m, 1, params);
    draw(in, 8 * 6, 1);
    struct batch b = batch_of(m, 8, in, CLASSES, DT_INT32);
    loss_at(x, params, &b, grads);
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        for (size_t k = 0; k < v->count && v->kind == VAR_TRAINABLE; k++) {
            float *at = &params[v->offset + k], saved = *at;
            *at = saved + step;
            double above = loss_at(x, params, &b, other);
            *at = saved - step;
            double below = loss_at(x, params, &b, other), numeric = (above - below) / (2 * (double)step);
            *at = saved;
            ck_assert_msg(fabs(numeric - (double)grads[v->offset + k]) <= 3e-3,
                          "%s[%zu]: difference %.6g, backward %.6g", v->name, k, numeric, (double)grads[v->offset + k]);
        }
    }
}
END_TEST

/* Training, inference and evaluation alternate in the same memory. */
START_TEST(passes_of_a_graph_do_not_disturb_each_other)
{
    AUTO(model) *m = build("{\"kerasFile\": \"test/data/nn/graph/keras2.json\"}", SPARSE);
    size_t size = model_size(m);
    AUTO(exec) *x = make_exec(m, 8, 1), *fresh = make_exec(m, 8, 1);
    auto_free float *params = zeros(size), *first = zeros(size), *second = zeros(size), *in = zeros(8 * 6);
    float predicted[8 * 4];
    model_init(m, 1, params);
    draw(in, 8 * 6, 1);
    struct batch b = batch_of(m, 8, in, CLASSES, DT_INT32);
    memcpy(predicted, exec_predict(fresh, params, &b), sizeof(predicted));
    double loss = loss_at(x, params, &b, first);
    ck_assert_mem_eq(exec_predict(x, params, &b), predicted, sizeof(predicted));
    ck_assert_double_eq(loss_at(x, params, &b, second), loss);
    ck_assert_mem_eq(first, second, size * sizeof(float));
}
END_TEST

/* Optimizers keep the square of a gradient. Nobody squares the statistics of a batch. */
START_TEST(an_update_is_finite_by_its_kind)
{
    static const struct {
        float value;
        bool gradient, statistics;
    } CASES[] = { { 1, true, true }, { 1e19F, true, true }, { 2e19F, false, true }, { HUGE_VALF, false, false } };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        const float update[] = { 0, CASES[i].value, 1 };
        ck_assert_int_eq(update_finite(VAR_TRAINABLE, update, COUNT_OF(update)), CASES[i].gradient);
        ck_assert_int_eq(update_finite(VAR_MOVING, update, COUNT_OF(update)), CASES[i].statistics);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/exec");
    TCase *t = tcase_create("exec");
    tcase_add_test(t, golden_runs);
    tcase_add_test(t, a_batch_is_the_mean_of_its_examples);
    tcase_add_test(t, bytes_are_floats);
    tcase_add_test(t, first_loss_is_ln_classes);
    tcase_add_test(t, evaluate_train_and_predict_agree);
    tcase_add_test(t, sample_weights);
    tcase_add_test(t, rows_share_the_weight_of_their_example);
    tcase_add_test(t, last_activation_may_stand_alone);
    tcase_add_test(t, whole_numbers_can_be_regressed);
    tcase_add_test(t, dropout_is_named_by_the_example);
    tcase_add_test(t, dropout_keeps_the_expected_share);
    tcase_add_test(t, dropout_is_absent_from_inference);
    tcase_add_test(t, batch_statistics_travel_as_gradients);
    tcase_add_test(t, frozen_layers_get_zeros);
    tcase_add_test(t, penalties_are_in_loss_and_gradient);
    tcase_add_test(t, normalization_adapts);
    tcase_add_test(t, normalization_adapts_to_all_axes);
    tcase_add_test(t, normalization_adapts_in_each_branch);
    tcase_add_test(t, nan_is_seen);
    tcase_add_test(t, too_large_a_batch_is_refused);
    tcase_add_test(t, gradients_are_complete_when_they_are_told_to_be);
    tcase_add_test(t, gradients_of_a_graph);
    tcase_add_test(t, passes_of_a_graph_do_not_disturb_each_other);
    tcase_add_test(t, an_update_is_finite_by_its_kind);
    suite_add_tcase(s, t);
    return s;
}
