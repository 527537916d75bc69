/* Names, arguments and the table of activations; the arithmetic is in activation_kernel.c. */
#include "nn/activation.h"

#include "nn/catalog.h"
#include "nn/ops/activation_kernel.h"
#include "tensor/kernel.h"

struct activation_row {
    struct kind k;
    activation_fn *forward;
    activation_grad_fn *backward;
    bool needs_input; /* the derivative cannot be computed from the output */
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

#define PLAIN(about, fn, input, ...)                                                                                   \
    {                                                                                                                  \
        { { __VA_ARGS__ }, NULL, 0, about }, fn##_forward, fn##_backward, input                                        \
    }
#define ROW(args, about, fn, input, ...)                                                                               \
    {                                                                                                                  \
        { { __VA_ARGS__ }, args, COUNT_OF(args), about }, fn##_forward, fn##_backward, input                           \
    }
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
    [ACT_SOFTMAX] = ROW(AXIS_ARGS, "e^x / sum e^x along the last axis", softmax, false, "softmax", "Softmax",
                        "softmax_v2"), /* as tf.keras writes tf.nn.softmax */
    [ACT_LOG_SOFTMAX] = ROW(AXIS_ARGS, "log(softmax(x))", log_softmax, false, "log_softmax", "log_softmax_v2"),
};
static const char *const LATER[] = { "glu",         "squareplus",  "hard_shrink",
                                     "soft_shrink", "sparse_plus", "sparse_sigmoid",
                                     "sparsemax",   "threshold",   NULL };
const struct catalog ACTIVATION_KINDS = {
    .what = "activation", .plural = "Activations", CATALOG_ROWS(ROWS), .later = LATER
};

/* Layers that Keras accepts as an activation: Dense(activation=layers.ReLU()). Their defaults are the layers'. */
#define LAYER_COMMON ARG_SKIP("trainable")
static const struct arg RELU_LAYER_ARGS[] = { LAYER_COMMON, ARG_OF("max_value", ARG_NUMBER, ARG_NONE, ARG_NOT_NEGATIVE),
                                              ARG_OF("negative_slope", ARG_NUMBER, 0, ARG_NOT_NEGATIVE),
                                              ARG_OF("threshold", ARG_NUMBER, 0, ARG_NOT_NEGATIVE) };
static const struct arg LEAKY_LAYER_ARGS[] = { LAYER_COMMON,
                                               ARG_OF("negative_slope", ARG_NUMBER, 0.3, ARG_NOT_NEGATIVE),
                                               ARG_OF("alpha", ARG_NUMBER, ARG_NONE, ARG_NOT_NEGATIVE) };
static const struct arg ELU_LAYER_ARGS[] = { LAYER_COMMON, ARG_OF("alpha", ARG_NUMBER, 1, ARG_ANY) };
static const struct arg SOFTMAX_LAYER_ARGS[] = { LAYER_COMMON, ARG_OF("axis", ARG_INTEGER, -1, ARG_ANY) };
static const struct arg ACTIVATION_LAYER_ARGS[] = { LAYER_COMMON, ARG_OWN_NEEDED("activation") };

static const struct activation_layer {
    struct kind k;
    enum activation_kind kind; /* of Activation: the value of its argument */
} LAYERS[] = {
#define LAYER(name, args, kind)                                                                                        \
    {                                                                                                                  \
        { { name }, args, COUNT_OF(args), NULL }, kind                                                                 \
    }
    LAYER("ReLU", RELU_LAYER_ARGS, ACT_RELU),
    LAYER("LeakyReLU", LEAKY_LAYER_ARGS, ACT_LEAKY_RELU),
    LAYER("ELU", ELU_LAYER_ARGS, ACT_ELU),
    LAYER("Softmax", SOFTMAX_LAYER_ARGS, ACT_SOFTMAX),
    LAYER("Activation", ACTIVATION_LAYER_ARGS, ACT_LINEAR),
};

static double value(const struct kind *k, const double *values, const char *name, double fallback)
{
    for (size_t i = 0; i < k->nargs; i++)
        if (strcmp(k->args[i].name, name) == 0 && !isnan(values[i]))
            return values[i];
    return fallback;
}

static struct activation from_values(enum activation_kind kind, const struct kind *k, const double *values)
{
    return (struct activation){
        .kind = kind,
        .negative_slope = (float)value(k, values, "alpha", value(k, values, "negative_slope", 0)),
        .max_value = (float)value(k, values, "max_value", HUGE_VAL),
        .threshold = (float)value(k, values, "threshold", 0),
        .approximate = value(k, values, "approximate", 0) != 0,
    };
}

struct activation activation_of(enum activation_kind kind)
{
    double values[KIND_ARGS_MAX];
    args_defaults(&ROWS[kind].k, values);
    return from_values(kind, &ROWS[kind].k, values);
}

static int check_axis(const struct node *n, const struct kind *k, const double *values, struct err *e)
{
    return value(k, values, "axis", -1) == -1 ? 0 : node_error(n, e, "only axis -1, the last one, is supported");
}

static int parse_function(const struct node *n, struct activation *ret, struct err *e)
{
    const struct kind *k = NULL;
    double values[KIND_ARGS_MAX];
    if (catalog_parse(&ACTIVATION_KINDS, n, &k, values, NULL, e) < 0 || check_axis(n, k, values, e) < 0)
        return -1;
    *ret = from_values((enum activation_kind)((const struct activation_row *)(const void *)k - ROWS), k, values);
    return 0;
}

/* The layer that a map with class_name stands for; NULL: none of them. */
static const struct activation_layer *layer_of(const struct node *n)
{
    const char *name = json_string_value(json_object_get(n->v, "class_name"));
    for (size_t i = 0; name != NULL && i < COUNT_OF(LAYERS); i++)
        if (strcmp(LAYERS[i].k.names[0], name) == 0)
            return &LAYERS[i];
    return NULL;
}

static int parse_layer(const struct node *n, const struct activation_layer *l, struct activation *ret, struct err *e)
{
    double values[KIND_ARGS_MAX];
    const char *name = NULL;
    struct node config;
    if (node_named(n, &name, &config, e) < 0 || args_parse(&l->k, &config, values, e) < 0 ||
        check_axis(n, &l->k, values, e) < 0)
        return -1;
    struct node inner = node_get(&config, "activation");
    if (node_present(&inner)) /* as deep as the document, which is bounded */
        return activation_parse(&inner, ret, e);
    *ret = from_values(l->kind, &l->k, values);
    return 0;
}

int activation_parse(const struct node *n, struct activation *ret, struct err *e)
{
    if (!node_present(n)) {
        *ret = activation_of(ACT_LINEAR);
        return 0;
    }
    const struct activation_layer *layer = layer_of(n);
    return layer != NULL ? parse_layer(n, layer, ret, e) : parse_function(n, ret, e);
}

const char *activation_name(enum activation_kind kind)
{
    return ROWS[kind].k.names[0];
}

static bool is_default(const struct activation *a)
{
    struct activation d = activation_of(a->kind);
    return a->negative_slope == d.negative_slope && a->max_value == d.max_value && a->threshold == d.threshold &&
           a->approximate == d.approximate;
}

/* An argument from the field that holds it: the inverse of from_values. */
static double argument(const struct activation *a, const char *name)
{
    if (strcmp(name, "negative_slope") == 0 || strcmp(name, "alpha") == 0)
        return (double)a->negative_slope;
    if (strcmp(name, "max_value") == 0)
        return isinf(a->max_value) ? ARG_NONE : (double)a->max_value;
    if (strcmp(name, "threshold") == 0)
        return (double)a->threshold;
    return strcmp(name, "approximate") == 0 ? a->approximate : -1; /* axis */
}

static json_t *with_arguments(const struct activation *a, const struct kind *k)
{
    double values[KIND_ARGS_MAX];
    for (size_t i = 0; i < k->nargs; i++)
        values[i] = argument(a, k->args[i].name);
    json_t *config = args_config(k, values);
    if (a->kind == ACT_LEAKY_RELU)
        json_object_del(config, "alpha"); /* Keras 2's name */
    return kind_serialized(k == &ROWS[a->kind].k ? "keras.activations" : "keras.layers", k->names[0], config);
}

json_t *activation_json(const struct activation *a)
{
    if (is_default(a))
        return json_string(activation_name(a->kind));
    for (size_t i = 0; i + 1 < COUNT_OF(LAYERS); i++)
        if (LAYERS[i].kind == a->kind && a->threshold >= 0) /* the layer ReLU refuses a threshold below 0 */
            return with_arguments(a, &LAYERS[i].k);
    return with_arguments(a, &ROWS[a->kind].k);
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
