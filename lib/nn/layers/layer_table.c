/* The table of layers. Argument names, order and defaults: keras/src/layers. An argument of Keras that is not
 * supported here is ARG_REFUSE: its default is accepted, anything else is an error that states that. */
#include "nn/layers/layer_rows.h"

#define UNSUPPORTED_IN_DENSE                                                                                           \
    ARG_REFUSE("activity_regularizer"), ARG_REFUSE("kernel_constraint"), ARG_REFUSE("bias_constraint"),                \
        ARG_REFUSE("lora_rank"), ARG_REFUSE("lora_alpha"), ARG_REFUSE("quantization_config")

/* A number, or a list of one. */
#define AXIS_ARG ARG_TUPLE("axis", ARG_ANY, 1, 1, "-1")

static const struct arg DENSE_ARGS[] = {
    LAYER_ARGS,
    [DENSE_UNITS] = ARG_NEEDED("units", ARG_INTEGER, ARG_AT_LEAST_ONE),
    [DENSE_USE_BIAS] = ARG_OF("use_bias", ARG_FLAG, 1, ARG_ANY),
    ARG_OWN("activation", "None"),
    ARG_OWN("kernel_initializer", "'glorot_uniform'"),
    ARG_OWN("bias_initializer", "'zeros'"),
    ARG_OWN("kernel_regularizer", "None"),
    ARG_OWN("bias_regularizer", "None"),
    UNSUPPORTED_IN_DENSE,
};

static const struct arg FLATTEN_ARGS[] = { LAYER_ARGS, ARG_OWN("data_format", "'channels_last'") };
static const struct arg RESHAPE_ARGS[] = {
    LAYER_ARGS,
    { .name = "target_shape", .kind = ARG_LIST, .range = ARG_SIZE_OR_REST, .most = SHAPE_MAX_RANK, .required = true }
};
_Static_assert((int)SHAPE_MAX_RANK <= (int)ARG_LIST_MAX, "a shape is a list");
static const struct arg ACTIVATION_ARGS[] = { LAYER_ARGS,
                                              { .name = "activation", .kind = ARG_OTHER, .required = true } };
static const struct arg RELU_ARGS[] = {
    LAYER_ARGS,
    [RELU_MAX] = ARG_OF("max_value", ARG_NUMBER, ARG_NONE, ARG_NOT_NEGATIVE),
    [RELU_SLOPE] = ARG_OF("negative_slope", ARG_NUMBER, 0, ARG_NOT_NEGATIVE),
    [RELU_THRESHOLD] = ARG_OF("threshold", ARG_NUMBER, 0, ARG_NOT_NEGATIVE),
};
static const struct arg LEAKY_RELU_ARGS[] = {
    LAYER_ARGS,
    [SLOPE] = ARG_OF("negative_slope", ARG_NUMBER, 0.3, ARG_NOT_NEGATIVE),
    ARG_OWN("alpha", "Keras 2's name of negative_slope"),
};
static const struct arg ELU_ARGS[] = { LAYER_ARGS, [SLOPE] = ARG_OF("alpha", ARG_NUMBER, 1, ARG_ANY) };
static const struct arg SOFTMAX_ARGS[] = { LAYER_ARGS, AXIS_ARG };
static const struct arg DROPOUT_ARGS[] = {
    LAYER_ARGS,
    [DROPOUT_RATE] = ARG_NEEDED("rate", ARG_NUMBER, ARG_UNIT),
    [DROPOUT_SEED] = ARG_OF("seed", ARG_INTEGER, ARG_NONE, ARG_ANY),
    ARG_REFUSE("noise_shape"),
};
static const struct arg RESCALING_ARGS[] = {
    LAYER_ARGS,
    { .name = "scale", .kind = ARG_OTHER, .required = true },
    ARG_OWN("offset", "0"),
};
static const struct arg NORMALIZATION_ARGS[] = {
    LAYER_ARGS,
    [NORMALIZATION_INVERT] = ARG_OF("invert", ARG_FLAG, 0, ARG_ANY),
    ARG_TUPLE("axis", ARG_ANY, 0, 1, "-1; None: one mean and variance for all axes"),
    ARG_OWN("mean", "None: adapted from the training data"),
    ARG_OWN("variance", "None: adapted from the training data"),
};
static const struct arg BATCH_NORMALIZATION_ARGS[] = {
    LAYER_ARGS,
    [BATCHNORM_MOMENTUM] = ARG_OF("momentum", ARG_NUMBER, 0.99, ARG_UNIT),
    [BATCHNORM_EPSILON] = ARG_OF("epsilon", ARG_NUMBER, 0.001, ARG_NOT_NEGATIVE),
    [BATCHNORM_CENTER] = ARG_OF("center", ARG_FLAG, 1, ARG_ANY),
    [BATCHNORM_SCALE] = ARG_OF("scale", ARG_FLAG, 1, ARG_ANY),
    AXIS_ARG,
    ARG_OWN("beta_initializer", "'zeros'"),
    ARG_OWN("gamma_initializer", "'ones'"),
    ARG_OWN("moving_mean_initializer", "'zeros'"),
    ARG_OWN("moving_variance_initializer", "'ones'"),
    ARG_OWN("beta_regularizer", "None"),
    ARG_OWN("gamma_regularizer", "None"),
    ARG_REFUSE("beta_constraint"),
    ARG_REFUSE("gamma_constraint"),
    ARG_REFUSE("synchronized"),
    ARG_REFUSE("renorm"),
    ARG_REFUSE("renorm_clipping"),
    ARG_SKIP("renorm_momentum"), /* of renorm */
};

static const struct arg MERGE_ARGS[] = { LAYER_ARGS };
static const struct arg CONCATENATE_ARGS[] = { LAYER_ARGS, [CONCATENATE_AXIS] =
                                                               ARG_OF("axis", ARG_INTEGER, -1, ARG_ANY) };
static const struct arg DOT_ARGS[] = {
    LAYER_ARGS,
    [DOT_NORMALIZE] = ARG_OF("normalize", ARG_FLAG, 0, ARG_ANY),
    { .name = "axes", .kind = ARG_LIST, .range = ARG_ANY, .least = 2, .most = 2, .required = true },
};
#define MERGED                                                                                                         \
    ", element by element; shapes are aligned from the last axis, and axes of size 1 repeated; in functional models"

/* Names: the class's, then what it was called before. */
#define ROW_OF_NAMES(args_, auto_name_, about_, ...)                                                                   \
    .k = { .names = { __VA_ARGS__ }, .args = (args_), .nargs = COUNT_OF(args_), .about = (about_) },                   \
    .auto_name = (auto_name_)
#define ROW(class_name, args_, auto_name_, about_) ROW_OF_NAMES(args_, auto_name_, about_, class_name)

const struct layer_row layer_rows[LAYER_COUNT] = {
    [LAYER_DENSE] = { ROW("Dense", DENSE_ARGS, "dense", "activation(x kernel + bias)"), dense_read, dense_shape,
                      dense_variables, dense_config },
    [LAYER_FLATTEN] = { ROW("Flatten", FLATTEN_ARGS, "flatten", "one axis of all elements"), NULL, flatten_shape, NULL,
                        flatten_config },
    [LAYER_RESHAPE] = { ROW("Reshape", RESHAPE_ARGS, "reshape",
                            "the same elements in target_shape; one -1 is worked out"),
                        reshape_read, reshape_shape, NULL, reshape_config },
    [LAYER_ACTIVATION] = { ROW("Activation", ACTIVATION_ARGS, "activation", "an activation by name"), activation_read,
                           layer_same_shape, NULL, activation_config },
    [LAYER_RELU] = { ROW("ReLU", RELU_ARGS, "re_lu", "activation relu"), relu_read, layer_same_shape, NULL, NULL },
    [LAYER_LEAKY_RELU] = { ROW("LeakyReLU", LEAKY_RELU_ARGS, "leaky_re_lu", "activation leaky_relu"), leaky_relu_read,
                           layer_same_shape, NULL, NULL },
    [LAYER_ELU] = { ROW("ELU", ELU_ARGS, "elu", "activation elu"), elu_read, layer_same_shape, NULL, NULL },
    [LAYER_SOFTMAX] = { ROW("Softmax", SOFTMAX_ARGS, "softmax", "activation softmax"), softmax_read, layer_same_shape,
                        NULL, axis_config },
    [LAYER_DROPOUT] = { ROW("Dropout", DROPOUT_ARGS, "dropout",
                            "in training zeroes a share of rate and scales the rest by 1 / (1 - rate)"),
                        dropout_read, layer_same_shape, NULL, NULL },
    [LAYER_RESCALING] = { ROW("Rescaling", RESCALING_ARGS, "rescaling",
                              "x scale + offset; numbers, or lists along the last axis"),
                          rescaling_read, rescaling_shape, NULL, rescaling_config, rescaling_fini },
    [LAYER_NORMALIZATION] = { ROW("Normalization", NORMALIZATION_ARGS, "normalization", "(x - mean) / sqrt(variance)"),
                              normalization_read, normalization_shape, normalization_variables, normalization_config,
                              normalization_fini },
    [LAYER_BATCH_NORMALIZATION] = { ROW_OF_NAMES(BATCH_NORMALIZATION_ARGS, "batch_normalization",
                                                 "gamma (x - mean) / sqrt(variance + epsilon) + beta; batch statistics "
                                                 "in training, moving ones after",
                                                 "BatchNormalization", "BatchNormalizationV1", "BatchNormalizationV2"),
                                    batch_normalization_read, batch_normalization_shape, batch_normalization_variables,
                                    batch_normalization_config },
    [LAYER_ADD] = { ROW("Add", MERGE_ARGS, "add", "the sum of the tensors" MERGED), .shape = merge_shape,
                    .joins = true },
    [LAYER_CONCATENATE] = { ROW("Concatenate", CONCATENATE_ARGS, "concatenate",
                                "tensors one after the other along axis; in functional models"),
                            .shape = concatenate_shape, .joins = true },
    [LAYER_SUBTRACT] = { ROW("Subtract", MERGE_ARGS, "subtract", "the first tensor minus the second" MERGED),
                         .shape = subtract_shape, .joins = true },
    [LAYER_MULTIPLY] = { ROW("Multiply", MERGE_ARGS, "multiply", "the product of the tensors" MERGED),
                         .shape = merge_shape, .joins = true },
    [LAYER_AVERAGE] = { ROW("Average", MERGE_ARGS, "average", "the mean of the tensors" MERGED), .shape = merge_shape,
                        .joins = true },
    [LAYER_MAXIMUM] = { ROW("Maximum", MERGE_ARGS, "maximum", "the largest of the tensors" MERGED),
                        .shape = merge_shape, .joins = true },
    [LAYER_MINIMUM] = { ROW("Minimum", MERGE_ARGS, "minimum", "the smallest of the tensors" MERGED),
                        .shape = merge_shape, .joins = true },
    [LAYER_DOT] = { ROW("Dot", DOT_ARGS, "dot",
                        "the products of two tensors along axes, with normalize the cosines; in functional models"),
                    .read = dot_read, .shape = dot_shape, .config = dot_config, .joins = true },
};

/* In Keras, not here yet: refused with a message that states that. */
static const char *const LATER[] = {
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "Conv1DTranspose",
    "Conv2DTranspose",
    "Conv3DTranspose",
    "DepthwiseConv1D",
    "DepthwiseConv2D",
    "SeparableConv1D",
    "SeparableConv2D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "ZeroPadding1D",
    "ZeroPadding2D",
    "Cropping1D",
    "Cropping2D",
    "UpSampling1D",
    "UpSampling2D",
    "Embedding",
    "LSTM",
    "GRU",
    "SimpleRNN",
    "Bidirectional",
    "TimeDistributed",
    "RNN",
    "ConvLSTM2D",
    "LayerNormalization",
    "GroupNormalization",
    "UnitNormalization",
    "RMSNormalization",
    "SpectralNormalization",
    "MultiHeadAttention",
    "Attention",
    "AdditiveAttention",
    "GroupQueryAttention",
    "PReLU",
    "Permute",
    "RepeatVector",
    "Masking",
    "Lambda",
    "Identity",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "GaussianDropout",
    "GaussianNoise",
    "AlphaDropout",
    "ActivityRegularization",
    "EinsumDense",
    "Resizing",
    "CenterCrop",
    "RandomCrop",
    "RandomFlip",
    "RandomRotation",
    "RandomZoom",
    "RandomTranslation",
    "RandomContrast",
    "RandomBrightness",
    "CategoryEncoding",
    "Discretization",
    "Hashing",
    "HashedCrossing",
    "IntegerLookup",
    "StringLookup",
    "TextVectorization",
    NULL,
};

const struct catalog LAYER_KINDS = { .what = "layer",
                                     .plural = "Layers",
                                     .rows = layer_rows,
                                     .count = LAYER_COUNT,
                                     .size = sizeof(layer_rows[0]),
                                     .later = LATER };
