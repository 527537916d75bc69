/* Golden values of activations are in test_layers (Dense and Activation layers). */
#include "check_main.h"
#include "nn/activation.h"

#include "base/rng.h"
#include "nn/named.h"

enum { ROWS = 5, COLS = 37, CELLS = ROWS * COLS };

static struct activation parse(const char *text)
{
    struct err e = { 0 };
    struct activation a = { 0 };
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    ck_ok_e(activation_parse(&n, &a, &e));
    return a;
}

static void refused(const char *text, const char *message)
{
    struct err e = { 0 };
    struct activation a;
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    ck_assert_msg(activation_parse(&n, &a, &e) < 0, "%s was taken", text);
    ck_message_has(e, message);
}

static void fill(float *x, float *dy)
{
    struct rng r = rng_at(4, RNG_TEST, 0, 0);
    for (size_t i = 0; i < CELLS; i++) {
        x[i] = 8 * rng_uniform(&r) - 4;
        dy[i] = 2 * rng_uniform(&r) - 1;
    }
}

/* sum(dy * f(x)) in double */
static double weighted(const struct activation *a, const float *x, const float *dy)
{
    float y[CELLS];
    double sum = 0;
    activation_forward(a, x, y, ROWS, COLS);
    for (size_t i = 0; i < CELLS; i++)
        sum += (double)y[i] * (double)dy[i];
    return sum;
}

static void check_gradient(const struct activation *a)
{
    float x[CELLS], y[CELLS], dy[CELLS], dx[CELLS];
    fill(x, dy);
    activation_forward(a, x, y, ROWS, COLS);
    activation_backward(a, activation_needs_input(a) ? x : NULL, y, dy, dx, ROWS, COLS);
    for (size_t i = 0; i < CELLS; i++) {
        const float at = x[i], h = 1e-2F;
        double slope[2];
        for (int k = 0; k < 2; k++) {
            const float step = k == 0 ? h : -h;
            x[i] = at + step;
            double moved = weighted(a, x, dy);
            x[i] = at;
            slope[k] = (moved - weighted(a, x, dy)) / (double)step;
        }
        const bool kink = fabs(slope[0] - slope[1]) > 0.05; /* relu and similar functions jump here */
        const double want = (slope[0] + slope[1]) / 2;
        ck_assert_msg(kink || fabs(want - (double)dx[i]) < 2e-3 * fmax(1, fabs(want)),
                      "%s at %g: slope %.6g, differences say %.6g", activation_name(a->kind), (double)at, (double)dx[i],
                      want);
    }
}

START_TEST(gradients_are_the_slopes_of_the_values)
{
    const struct activation a = activation_of((enum activation_kind)_i);
    check_gradient(&a);
}
END_TEST

START_TEST(arguments_change_values_and_slopes)
{
    static const char *const TEXTS[] = {
        "{\"relu\": {\"negative_slope\": 0.1, \"max_value\": 2, \"threshold\": 0.5}}",
        "{\"leaky_relu\": {\"negative_slope\": 0.4}}",
        "{\"elu\": {\"alpha\": 0.5}}",
        "{\"celu\": {\"alpha\": 2}}",
        "{\"gelu\": {\"approximate\": true}}",
    };
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++) {
        const struct activation a = parse(TEXTS[i]);
        check_gradient(&a);
    }
    const struct activation relu = parse(TEXTS[0]);
    const float x[4] = { -1, 0.4F, 1, 5 }, want[4] = { -0.15F, -0.01F, 1, 2 };
    float y[4];
    activation_forward(&relu, x, y, 1, 4);
    for (size_t i = 0; i < 4; i++)
        ck_near(y[i], want[i], 1e-6);
}
END_TEST

START_TEST(in_place_is_the_same)
{
    const struct activation a = activation_of((enum activation_kind)_i);
    float x[CELLS], y[CELLS], dy[CELLS], dx[CELLS], at[CELLS];
    fill(x, dy);
    memcpy(at, x, sizeof(x));
    activation_forward(&a, x, y, ROWS, COLS);
    activation_forward(&a, at, at, ROWS, COLS);
    ck_assert_mem_eq(at, y, sizeof(y));
    activation_backward(&a, x, y, dy, dx, ROWS, COLS);
    activation_backward(&a, x, y, dy, dy, ROWS, COLS);
    ck_assert_mem_eq(dx, dy, sizeof(dx));
}
END_TEST

START_TEST(extremes_stay_sane_and_nan_is_not_hidden)
{
    const struct activation a = activation_of((enum activation_kind)_i);
    const float far[3] = { 80, -80, 0 }, bad[3] = { 1, NAN, 2 };
    float y[3];
    activation_forward(&a, far, y, 1, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_msg(isfinite(y[i]), "%s(%g) is %g", activation_name(a.kind), (double)far[i], (double)y[i]);
    activation_forward(&a, bad, y, 1, 3);
    ck_assert_msg(isnan(y[1]), "%s(NaN) is %g", activation_name(a.kind), (double)y[1]);
}
END_TEST

START_TEST(softmax_sums_to_one)
{
    const struct activation a = activation_of(ACT_SOFTMAX);
    float x[CELLS], y[CELLS], unused[CELLS];
    fill(x, unused);
    x[3] = 1e4F;
    activation_forward(&a, x, y, ROWS, COLS);
    for (size_t i = 0; i < ROWS; i++) {
        double sum = 0;
        for (size_t j = 0; j < COLS; j++)
            sum += (double)y[i * COLS + j];
        ck_near(sum, 1, 1e-6);
    }
}
END_TEST

START_TEST(names_are_keras)
{
    struct err e = { 0 };
    struct activation a = parse("\"relu\"");
    ck_assert_int_eq(parse("\"swish\"").kind, ACT_SILU);
    ck_assert_int_eq(parse("{\"ReLU\": {\"max_value\": 6}}").kind, ACT_RELU);
    ck_near(parse("\"leaky_relu\"").negative_slope, 0.2F, 0);
    const struct node absent = { 0 };
    ck_ok_e(activation_parse(&absent, &a, &e));
    ck_assert_int_eq(a.kind, ACT_LINEAR);
    json_auto_t *name = activation_json(&a);
    ck_assert_str_eq(json_string_value(name), "linear");
    refused("\"rellu\"", "activation 'rellu' is not known; did you mean 'relu'?");
    refused("{\"softmax\": {\"axis\": 1}}", "only axis -1");
    refused("{\"elu\": {\"alpha\": 0}}", "must be greater than 0");
    refused("\"sparsemax\"", "activation 'sparsemax' is not supported yet");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/activation");
    TCase *t = tcase_create("activation");
    tcase_add_loop_test(t, gradients_are_the_slopes_of_the_values, 0, ACTIVATION_COUNT);
    tcase_add_test(t, arguments_change_values_and_slopes);
    tcase_add_loop_test(t, in_place_is_the_same, 0, ACTIVATION_COUNT);
    tcase_add_loop_test(t, extremes_stay_sane_and_nan_is_not_hidden, 0, ACTIVATION_COUNT);
    tcase_add_test(t, softmax_sums_to_one);
    tcase_add_test(t, names_are_keras);
    suite_add_tcase(s, t);
    return s;
}
