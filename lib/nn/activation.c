/* Names, arguments and the table of activations; the arithmetic is in activation_kernel.c. */
#include "nn/activation.h"

#include "nn/activation_kernel.h"
#include "nn/catalog.h"
#include "tensor/kernel.h"

struct activation_row {
    struct kind k;
    activation_fn *forward;
    activation_grad_fn *backward;
    bool needs_input; /* the derivative cannot be told from the output */
};

static const struct arg RELU_ARGS[] = {
    ARG_OF("negative_slope", ARG_NUMBER, 0, ARG_NOT_NEGATIVE),
    ARG_OF("max_value", ARG_NUMBER, ARG_NONE, ARG_NOT_NEGATIVE),
    ARG_OF("threshold", ARG_NUMBER, 0, ARG_ANY),
};
static const struct arg LEAKY_ARGS[] = { ARG_OF("negative_slope", ARG_NUMBER, 0.2, ARG_NOT_NEGATIVE) };
static const struct arg ALPHA_ARGS[] = { ARG_OF("alpha", ARG_NUMBER, 1, ARG_POSITIVE) };
static const struct arg GELU_ARGS[] = { ARG_OF("approximate", ARG_FLAG, 0, ARG_ANY) };
static const struct arg AXIS_ARGS[] = { ARG_OF("axis", ARG_INTEGER, -1, ARG_ANY) };

#define PLAIN(about, fn, input, ...) { { { __VA_ARGS__ }, NULL, 0, about }, fn##_forward, fn##_backward, input }
#define ROW(args, about, fn, input, ...)                                                           \
    { { { __VA_ARGS__ }, args, COUNT_OF(args), about }, fn##_forward, fn##_backward, input }
static const struct activation_row ROWS[ACTIVATION_COUNT] = {
    [ACT_LINEAR] = PLAIN("x", linear, false, "linear"),
    [ACT_RELU] = ROW(RELU_ARGS, "max(x, 0); slope below threshold, cut at max_value", relu, false, "relu", "ReLU"),
    [ACT_RELU6] = PLAIN("min(max(x, 0), 6)", relu6, false, "relu6", "ReLU6"),
    [ACT_LEAKY_RELU] = ROW(LEAKY_ARGS, "x, negative_slope x below 0", leaky_relu, false, "leaky_relu"),
    [ACT_ELU] = ROW(ALPHA_ARGS, "x, alpha (e^x - 1) below 0", elu, false, "elu", "ELU"),
    [ACT_SELU] = PLAIN("elu scaled to keep mean 0 and variance 1", selu, false, "selu"),
    [ACT_CELU] = ROW(ALPHA_ARGS, "x, alpha (e^(x / alpha) - 1) below 0", celu, false, "celu"),
    [ACT_GELU] = ROW(GELU_ARGS, "x times the normal distribution function; approximate by tanh", gelu, true, "gelu"),
    [ACT_SILU] = PLAIN("x sigmoid(x)", silu, true, "silu", "swish"),
    [ACT_MISH] = PLAIN("x tanh(softplus(x))", mish, true, "mish"),
    [ACT_SIGMOID] = PLAIN("1 / (1 + e^-x)", sigmoid, false, "sigmoid"),
    [ACT_HARD_SIGMOID] = PLAIN("relu6(x + 3) / 6", hard_sigmoid, false, "hard_sigmoid"),
    [ACT_HARD_SILU] = PLAIN("x relu6(x + 3) / 6", hard_silu, true, "hard_silu", "hard_swish"),
    [ACT_HARD_TANH] = PLAIN("min(max(x, -1), 1)", hard_tanh, false, "hard_tanh"),
    [ACT_LOG_SIGMOID] = PLAIN("log(sigmoid(x))", log_sigmoid, false, "log_sigmoid"),
    [ACT_TANH] = PLAIN("tanh(x)", tanh, false, "tanh"),
    [ACT_TANH_SHRINK] = PLAIN("x - tanh(x)", tanh_shrink, true, "tanh_shrink"),
    [ACT_SOFTPLUS] = PLAIN("log(1 + e^x)", softplus, false, "softplus"),
    [ACT_SOFTSIGN] = PLAIN("x / (1 + abs(x))", softsign, false, "softsign"),
    [ACT_EXPONENTIAL] = PLAIN("e^x", exponential, false, "exponential"),
    [ACT_SOFTMAX] = ROW(AXIS_ARGS, "e^x / sum e^x along the last axis", softmax, false, "softmax", "Softmax"),
    [ACT_LOG_SOFTMAX] = ROW(AXIS_ARGS, "log(softmax(x))", log_softmax, false, "log_softmax"),
};
static const char *const LATER[] = { "glu",         "squareplus", "hard_shrink", "soft_shrink", "sparse_plus",
                                     "sparse_sigmoid", "sparsemax",  "threshold",   NULL };
const struct catalog ACTIVATION_KINDS = {
    .what = "activation", .plural = "Activations", CATALOG_ROWS(ROWS), .later = LATER
};

static double value(const struct kind *k, const double *values, const char *name, double fallback)
{
    for (size_t i = 0; i < k->nargs; i++)
        if (strcmp(k->args[i].name, name) == 0 && !isnan(values[i]))
            return values[i];
    return fallback;
}

static struct activation from_values(enum activation_kind kind, const double *values)
{
    const struct kind *k = &ROWS[kind].k;
    return (struct activation){
        .kind = kind,
        .negative_slope = (float)value(k, values, "negative_slope", value(k, values, "alpha", 0)),
        .max_value = (float)value(k, values, "max_value", HUGE_VAL),
        .threshold = (float)value(k, values, "threshold", 0),
        .approximate = value(k, values, "approximate", 0) != 0,
    };
}

struct activation activation_of(enum activation_kind kind)
{
    double values[KIND_ARGS_MAX];
    args_defaults(&ROWS[kind].k, values);
    return from_values(kind, values);
}

int activation_parse(const struct node *n, struct activation *ret, struct err *e)
{
    if (!node_present(n)) {
        *ret = activation_of(ACT_LINEAR);
        return 0;
    }
    const struct kind *k = NULL;
    double values[KIND_ARGS_MAX];
    if (catalog_parse(&ACTIVATION_KINDS, n, &k, values, NULL, e) < 0)
        return -1;
    if (value(k, values, "axis", -1) != -1)
        return node_error(n, e, "only axis -1, the last one, is supported");
    *ret = from_values((enum activation_kind)((const struct activation_row *)(const void *)k - ROWS), values);
    return 0;
}

const char *activation_name(enum activation_kind kind)
{
    return ROWS[kind].k.names[0];
}

json_t *activation_json(const struct activation *a)
{
    return json_string(activation_name(a->kind));
}

bool activation_needs_input(const struct activation *a)
{
    return ROWS[a->kind].needs_input || (a->kind == ACT_RELU && a->threshold != 0);
}

void activation_forward(const struct activation *a, const float *x, float *y, size_t rows, size_t cols)
{
    ROWS[a->kind].forward(a, x, y, rows, cols);
}

void activation_backward(const struct activation *a, const float *x, const float *y, const float *dy, float *dx,
                         size_t rows, size_t cols)
{
    ROWS[a->kind].backward(a, activation_needs_input(a) ? x : y, y, dy, dx, rows, cols);
}
