/* A convolution that is computed together with the pooling behind it gives what the two give alone: each model is built
 * once more with a layer between the two that changes nothing. */
#include <math.h>

#include "base/str.h"
#include "guarded.h"
#include "nn/buffer_plan.h"
#include "nn/exec.h"
#include "yaml_model.h"

enum { LARGEST = 11 }; /* examples of the largest batch */

struct shape_case {
    const char *input;
    int channels; /* of the input of the convolution */
    const char *conv, *pool;
    size_t n;
};
static const struct shape_case SHAPES[] = {
    { "[8, 8, 2]", 3, "filters: 16, kernel_size: 3", "", LARGEST },            /* conv_direct */
    { "[8, 8, 2]", 3, "filters: 5, kernel_size: 3", "", 3 },                   /* conv_windows */
    { "[9, 11, 2]", 3, "filters: 32, kernel_size: 3", "", 7 },                 /* no window has the last row */
    { "[10, 13, 2]", 16, "filters: 16, kernel_size: 3", "", 7 },               /* conv_winograd */
    { "[12, 7, 2]", 16, "filters: 33, kernel_size: 3, padding: same", "", 1 }, /* likewise */
    { "[6, 6, 5]", 4, "filters: 7, kernel_size: 1", "", 2 },                   /* conv_pointwise */
    { "[7, 9, 5]", 4, "filters: 7, kernel_size: 1", "", 3 },
    { "[7, 9, 5]", 4, "filters: 16, kernel_size: 1", "", 3 },
    { "[16, 9, 2]", 2, "filters: 16, kernel_size: [5, 2], strides: [2, 1], padding: same", "", 4 },
    { "[4, 4, 1]", 1, "filters: 1, kernel_size: 1", "pool_size: 2, strides: 2, padding: valid", 1 },
    { "[100, 60, 1]", 3, "filters: 48, kernel_size: 3", "", 2 },                  /* a part is one example */
    { "[40, 40, 1]", 16, "filters: 16, kernel_size: 3", "", LARGEST },            /* two examples, the last one alone */
    { "[10, 10, 2]", 3, "filters: 16, kernel_size: 3, trainable: false", "", 5 }, /* only the input's gradient */
    { "[10, 10, 2]", 3, "filters: 16, kernel_size: 3, kernel_regularizer: l2", "padding: same", 5 },
};

static struct model *shape_model(const struct shape_case *c, bool joined)
{
    AUTO_FINI(buf) text = BUF_INIT;
    buf_printf(&text,
               "model:\n"
               "  inputShape: %s\n"
               "  layers:\n"
               "    - Conv2D: {filters: %d, kernel_size: 1, name: before}\n" /* its gradient shows the input's */
               "    - Conv2D: {%s, activation: relu, name: conv}\n"
               "%s"
               "    - MaxPooling2D: {%s}\n"
               "    - Flatten\n"
               "    - Dense: {units: 3}\n"
               "compile: {loss: mse}\n",
               c->input, c->channels, c->conv, joined ? "" : "    - Activation: {activation: linear}\n", c->pool);
    return yaml_model(text.data);
}

/* Of the nodes of layer `name`: the node that one is computed together with, or BUFFER_NONE. */
static size_t joined_with(const struct model *m, const char *name, bool training)
{
    struct buffer_plan p;
    size_t ret = BUFFER_NONE, found = 0;
    buffer_plan_init(&p, m, LARGEST, training);
    for (size_t i = 0; i < m->nnodes; i++) {
        if (!str_eq(model_called(m, i)->name, name))
            continue;
        found++;
        if (p.joined[i] == BUFFER_NONE)
            continue;
        ret = p.joined[i];
        ck_assert_uint_eq(p.joined[ret], i);
    }
    ck_assert_msg(found > 0, "no layer '%s'", name);
    buffer_plan_fini(&p);
    return ret;
}

struct results {
    float *predicted, *gradients;
    double loss;
};

static void results_fini(struct results *r)
{
    free(r->predicted);
    free(r->gradients);
}

static struct results run(const struct model *m, size_t n, const float *params)
{
    AUTO(exec) *x = NULL;
    struct err e = { 0 };
    struct shape in = model_input(m, 0)->shape;
    size_t each = shape_elements(&in), outputs = 3;
    auto_free float *data = draw(n * each, 5), *labels = draw(n * outputs, 6);
    struct batch b = { .n = n };
    struct tensor input = { .dtype = DT_FLOAT, .shape = { 4, { (int64_t)n, in.dim[0], in.dim[1], in.dim[2] } } };
    struct tensor label = { .dtype = DT_FLOAT, .shape = { 2, { (int64_t)n, (int64_t)outputs } }, .data = labels };
    struct results ret = { .predicted = buffer(n * outputs), .gradients = buffer(model_size(m)) };
    input.data = data;
    ck_ok_e(batch_add_input(&b, "", input, &e));
    ck_ok_e(batch_add_label(&b, "", label, &e));
    ck_ok_e(exec_new(m, LARGEST, 0, &x, &e));
    exec_train(x, params, &b, ret.gradients, NULL, NULL, NULL, &ret.loss);
    memcpy(ret.predicted, exec_predict(x, params, &b), n * outputs * sizeof(float));
    return ret;
}

/* Both add up the same numbers, in another order. */
static void check_same(const char *what, const float *got, const float *wanted, size_t n)
{
    float largest = 0, difference = 0;
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(isfinite(got[i]), "%s: value %zu is not finite", what, i);
        largest = fmaxf(largest, fabsf(wanted[i]));
        difference = fmaxf(difference, fabsf(got[i] - wanted[i]));
    }
    ck_assert_msg(difference <= 1e-4F * largest, "%s differs by %g of %g", what, (double)difference, (double)largest);
}

static void check_shape(const struct shape_case *c)
{
    AUTO(model) *joined = shape_model(c, true), *apart = shape_model(c, false);
    size_t size = model_size(joined);
    auto_free float *params = draw(size, 7);
    ck_assert_uint_eq(size, model_size(apart));
    for (int training = 0; training < 2; training++) {
        ck_assert_uint_eq(joined_with(joined, "conv", training != 0), 2);
        ck_assert_uint_eq(joined_with(apart, "conv", training != 0), BUFFER_NONE);
    }
    struct results got = run(joined, c->n, params), want = run(apart, c->n, params);
    check_same("the prediction", got.predicted, want.predicted, c->n * 3);
    ck_assert_double_eq_tol(got.loss, want.loss, 1e-5 * want.loss);
    for (size_t i = 0; i < joined->nvars; i++) {
        const struct variable *v = &joined->vars[i].v;
        check_same(v->name, got.gradients + v->offset, want.gradients + v->offset, v->count);
    }
    results_fini(&got);
    results_fini(&want);
}

START_TEST(the_two_give_what_each_alone_gives)
{
    check_shape(&SHAPES[_i]);
}
END_TEST

/* Any sizes, strides and kernels. */
START_TEST(random_shapes)
{
    static const int CHANNELS[] = { 1, 2, 3, 5, 16, 17, 32 }, FILTERS[] = { 1, 3, 5, 16, 17, 32, 48 };
    for (uint32_t i = 0; i < 200; i++) {
        struct rng r = rng_at(9, RNG_TEST, 0, i);
        char input[32], conv[128];
        unsigned size[2], stride[2], in[2];
        bool plain = rng_u32(&r) % 2 == 0; /* as of most models */
        for (int k = 0; k < 2; k++) {
            size[k] = plain ? 3 : 1 + rng_u32(&r) % 5;
            stride[k] = plain ? 1 : 1 + rng_u32(&r) % 2;
            in[k] = size[k] + 2 * stride[k] + rng_u32(&r) % 20;
        }
        str_fmt(input, sizeof(input), "[%u, %u, 2]", in[0], in[1]);
        str_fmt(conv, sizeof(conv), "filters: %d, kernel_size: [%u, %u], strides: [%u, %u], padding: %s",
                FILTERS[rng_u32(&r) % COUNT_OF(FILTERS)], size[0], size[1], stride[0], stride[1],
                rng_u32(&r) % 2 == 0 ? "same" : "valid");
        check_shape(&(struct shape_case){ .input = input,
                                          .channels = CHANNELS[rng_u32(&r) % COUNT_OF(CHANNELS)],
                                          .conv = conv,
                                          .pool = "",
                                          .n = 1 + rng_u32(&r) % LARGEST });
    }
}
END_TEST

/* The values of a window: what is seen of the convolution behind it, and where its gradient goes. */
static const struct {
    float x[4];
    float y, dx[4]; /* of dy = 1 */
} WINDOWS[] = {
    { { 1, 2, 3, 4 }, 4, { 0, 0, 0, 1 } },     { { 1, 2, 4, 3 }, 4, { 0, 0, 1, 0 } },
    { { 1, 4, 2, 3 }, 4, { 0, 1, 0, 0 } },     { { 4, 1, 2, 3 }, 4, { 1, 0, 0, 0 } },
    { { 4, 4, 4, 4 }, 4, { 1, 0, 0, 0 } },                                                /* of equal ones the first */
    { { -1, 4, 4, -4 }, 4, { 0, 1, 0, 0 } },   { { -1, -2, -3, -4 }, 0, { 0, 0, 0, 0 } }, /* relu is shut */
    { { 0, -1, -1, -1 }, 0, { 0, 0, 0, 0 } },  { { 1, NAN, 2, 3 }, NAN, { 0, 0, 0, 0 } }, /* a NaN is not lost */
    { { NAN, 1, 2, 3 }, NAN, { 0, 0, 0, 0 } }, { { INFINITY, 1, 2, 3 }, INFINITY, { 1, 0, 0, 0 } },
};

START_TEST(a_window_gives_its_largest_value)
{
    AUTO(model) *m = yaml_model("model:\n"
                                "  inputShape: [2, 2, 1]\n"
                                "  layers:\n"
                                "    - Rescaling: {scale: 1.0}\n"
                                "    - Conv2D: {filters: 1, kernel_size: 1, activation: relu, name: conv}\n"
                                "    - MaxPooling2D: {}\n"
                                "    - Flatten\n"
                                "compile: {loss: mae}\n");
    AUTO(exec) *x = NULL;
    struct err e = { 0 };
    struct batch b = { .n = 1 };
    float in[4], label = -10, params[64] = { 0 }, gradients[64] = { 0 };
    struct tensor input = { .dtype = DT_FLOAT, .shape = { 4, { 1, 2, 2, 1 } }, .data = in };
    struct tensor y = { .dtype = DT_FLOAT, .shape = { 2, { 1, 1 } }, .data = &label };
    double loss;
    ck_assert_uint_le(model_size(m), COUNT_OF(params));
    params[m->vars[0].v.offset] = 1; /* the kernel; the bias is 0 */
    memcpy(in, WINDOWS[_i].x, sizeof(in));
    ck_ok_e(batch_add_input(&b, "", input, &e));
    ck_ok_e(batch_add_label(&b, "", y, &e));
    ck_ok_e(exec_new(m, 1, 0, &x, &e));
    ck_assert_uint_ne(joined_with(m, "conv", true), BUFFER_NONE);
    exec_train(x, params, &b, gradients, NULL, NULL, NULL, &loss);
    float got = exec_predict(x, params, &b)[0], kernel = gradients[m->vars[0].v.offset];
    float bias = gradients[m->vars[1].v.offset], wanted_kernel = 0, wanted_bias = 0;
    for (size_t i = 0; i < 4; i++) {
        wanted_kernel += WINDOWS[_i].dx[i] > 0 ? WINDOWS[_i].x[i] : 0;
        wanted_bias += WINDOWS[_i].dx[i];
    }
    ck_assert(isnan(WINDOWS[_i].y) ? isnan(got) : got == WINDOWS[_i].y);
    if (isnan(got))
        return;
    ck_assert(kernel == wanted_kernel);
    ck_assert(bias == wanted_bias);
}
END_TEST

#define SEQUENTIAL(input, conv, between, pool)                                                                         \
    "model:\n  inputShape: " input "\n  layers:\n    - Conv2D: {name: conv, filters: 4, kernel_size: 3" conv           \
    "}\n" between "    - " pool "\n"
#define RELU ", activation: relu"

#define FUNCTIONAL(layers, outputs)                                                                                    \
    "{model: {keras: {class_name: Functional, config: {layers: ["                                                      \
    "{class_name: InputLayer, name: x, config: {name: x, batch_shape: [null, 4, 4, 3]}, inbound_nodes: []},"           \
    "{class_name: Conv2D, name: conv, config: {name: conv, filters: 3, kernel_size: 1, activation: relu}, "            \
    "inbound_nodes: [[[x, 0, 0, {}]]" layers "], input_layers: [[x, 0, 0]], output_layers: [" outputs "]}}}}"
#define POOL_OF(from) "{class_name: MaxPooling2D, name: pool, config: {name: pool}, inbound_nodes: [[[" from ", {}]]]}"

static const struct {
    const char *model;
    bool joined;
} MODELS[] = {
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "MaxPooling2D"), true },
    { SEQUENTIAL("[9, 9, 1]", RELU, "", "MaxPooling2D"), true },
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "MaxPooling2D: {padding: same}"), true },
    { SEQUENTIAL("[9, 8, 1]", RELU, "", "MaxPooling2D: {padding: same}"), false }, /* windows with padding */
    { SEQUENTIAL("[8, 9, 1]", RELU, "", "MaxPooling2D: {padding: same}"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "MaxPooling2D: {pool_size: 3}"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "MaxPooling2D: {pool_size: [2, 1]}"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "MaxPooling2D: {strides: 1}"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "MaxPooling2D: {pool_size: 3, strides: 2}"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "MaxPooling2D: {strides: [2, 3]}"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "AveragePooling2D"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "", "GlobalMaxPooling2D"), false },
    { SEQUENTIAL("[8, 8, 1]", "", "", "MaxPooling2D"), false },
    { SEQUENTIAL("[8, 8, 1]", ", activation: relu6", "", "MaxPooling2D"), false },
    { SEQUENTIAL("[8, 8, 1]", ", activation: tanh", "", "MaxPooling2D"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU ", use_bias: false", "", "MaxPooling2D"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "    - BatchNormalization\n", "MaxPooling2D"), false },
    { SEQUENTIAL("[8, 8, 1]", RELU, "    - Dropout: {rate: 0.5}\n", "MaxPooling2D"), false },
    { FUNCTIONAL("]}, " POOL_OF("conv, 0, 0"), "[pool, 0, 0]"), true },
    { FUNCTIONAL("]}, " POOL_OF("conv, 0, 0"), "[pool, 0, 0], [conv, 0, 0]"), false }, /* the output is wanted, too */
    { FUNCTIONAL("]}, {class_name: Flatten, name: flat, config: {name: flat}, inbound_nodes: [[[conv, 0, 0, {}]]]}, " //
                 POOL_OF("conv, 0, 0"),
                 "[pool, 0, 0], [flat, 0, 0]"),
      false },
    { FUNCTIONAL(", [[conv, 0, 0, {}]]]}, " POOL_OF("conv, 1, 0"), "[pool, 0, 0]"), false }, /* called twice */
    { FUNCTIONAL(", [[pool, 0, 0, {}]]]}, " POOL_OF("conv, 0, 0"), "[conv, 1, 0]"), false },
};

START_TEST(only_what_may_be_is_computed_together)
{
    AUTO(model) *m = yaml_model(MODELS[_i].model);
    for (int training = 0; training < 2; training++)
        ck_assert_msg((joined_with(m, "conv", training != 0) != BUFFER_NONE) == MODELS[_i].joined, "model %d", _i);
}
END_TEST

/* The output of the convolution takes no memory, except that of a part. */
START_TEST(the_output_of_the_convolution_is_not_kept)
{
    AUTO(model) *joined = shape_model(&SHAPES[10], true), *apart = shape_model(&SHAPES[10], false);
    struct buffer_plan with, without;
    size_t conv = LARGEST * 98 * 58 * 48, part = 98 * 58 * 48;
    buffer_plan_init(&with, joined, LARGEST, true);
    buffer_plan_init(&without, apart, LARGEST, true);
    ck_assert_uint_gt(without.floats, 2 * conv); /* and its gradient */
    ck_assert_uint_lt(with.floats, without.floats - 2 * conv + conv / 16 + 2 * part);
    buffer_plan_fini(&with);
    buffer_plan_fini(&without);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/op_conv_pool");
    TCase *t = tcase_create("op_conv_pool");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, the_two_give_what_each_alone_gives, 0, COUNT_OF(SHAPES));
    tcase_add_test(t, random_shapes);
    tcase_add_loop_test(t, a_window_gives_its_largest_value, 0, COUNT_OF(WINDOWS));
    tcase_add_loop_test(t, only_what_may_be_is_computed_together, 0, COUNT_OF(MODELS));
    tcase_add_test(t, the_output_of_the_convolution_is_not_kept);
    return s;
}
