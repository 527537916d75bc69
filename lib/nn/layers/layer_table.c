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
static const struct arg ACTIVATION_ARGS[] = { LAYER_ARGS, ARG_OWN_NEEDED("activation") };
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
static const struct arg RESCALING_ARGS[] = {
    LAYER_ARGS,
    ARG_OWN_NEEDED("scale"),
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
    [BATCHNORM_SYNCHRONIZED] = ARG_OF("synchronized", ARG_FLAG, 0, ARG_ANY),
    AXIS_ARG,
    ARG_OWN("beta_initializer", "'zeros'"),
    ARG_OWN("gamma_initializer", "'ones'"),
    ARG_OWN("moving_mean_initializer", "'zeros'"),
    ARG_OWN("moving_variance_initializer", "'ones'"),
    ARG_OWN("beta_regularizer", "None"),
    ARG_OWN("gamma_regularizer", "None"),
    ARG_REFUSE("beta_constraint"),
    ARG_REFUSE("gamma_constraint"),
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

/* ---- windows over images and sequences ---- */

#define DATA_FORMAT ARG_OWN("data_format", "'channels_last'")
#define NEEDED_TUPLE(name_, n)                                                                                         \
    {                                                                                                                  \
        .name = (name_), .kind = ARG_LIST, .range = ARG_AT_LEAST_ONE, .least = (n), .most = (n), .required = true      \
    }
#define FILTERS_ARG    ARG_NEEDED("filters", ARG_INTEGER, ARG_AT_LEAST_ONE)
#define MULTIPLIER_ARG ARG_OF("depth_multiplier", ARG_INTEGER, 1, ARG_AT_LEAST_ONE)
#define CONV_OWN(first, paddings)                                                                                      \
    LAYER_ARGS, [CONV_FILTERS] = first, [CONV_PADDING] = ARG_ONE_OF("padding", paddings),                              \
                [CONV_USE_BIAS] = ARG_OF("use_bias", ARG_FLAG, 1, ARG_ANY)
#define CONV_WINDOW(axes, one)                                                                                         \
    NEEDED_TUPLE("kernel_size", axes), ARG_TUPLE("strides", ARG_AT_LEAST_ONE, axes, axes, one),                        \
        ARG_TUPLE("dilation_rate", ARG_AT_LEAST_ONE, axes, axes, one), DATA_FORMAT, ARG_OWN("activation", "None")
#define CONV_PART(name, fallback)                                                                                      \
    ARG_OWN(name "_initializer", "'" fallback "'"), ARG_OWN(name "_regularizer", "None"), ARG_REFUSE(name "_constraint")
#define CONV_PARTS(kernel)                                                                                             \
    CONV_PART(kernel, "glorot_uniform"), CONV_PART("bias", "zeros"), ARG_REFUSE("activity_regularizer")
#define CONV_ARGS(paddings, axes, one)                                                                                 \
    {                                                                                                                  \
        CONV_OWN(FILTERS_ARG, paddings), CONV_WINDOW(axes, one), CONV_PARTS("kernel"), ARG_REFUSE_BUT("groups", "1")   \
    }
#define CONV_TRANSPOSE_ARGS(axes, one)                                                                                 \
    {                                                                                                                  \
        CONV_OWN(FILTERS_ARG, WINDOW_PADDINGS), CONV_WINDOW(axes, one), CONV_PARTS("kernel"),                          \
            ARG_REFUSE("output_padding"), ARG_REFUSE_OLD("groups", "1")                                                \
    }
#define DEPTHWISE_ARGS(axes, one)                                                                                      \
    {                                                                                                                  \
        CONV_OWN(MULTIPLIER_ARG, WINDOW_PADDINGS), CONV_WINDOW(axes, one), CONV_PARTS("depthwise"),                    \
            ARG_REFUSE_OLD("groups", "1")                                                                              \
    }
#define SEPARABLE_ARGS(axes, one)                                                                                      \
    {                                                                                                                  \
        CONV_OWN(FILTERS_ARG, WINDOW_PADDINGS), [SEPARABLE_MULTIPLIER] = MULTIPLIER_ARG, CONV_WINDOW(axes, one),       \
                                                CONV_PARTS("depthwise"), CONV_PART("pointwise", "glorot_uniform"),     \
                                                ARG_REFUSE_OLD("groups", "1"), ARG_SKIP("kernel_initializer"),         \
                                                ARG_REFUSE_OLD("kernel_regularizer", NULL),                            \
                                                ARG_REFUSE_OLD("kernel_constraint", NULL)                              \
    }
static const struct arg CONV_1D_ARGS[] = CONV_ARGS(WINDOW_PADDINGS_OF_STEPS, 1, "1");
static const struct arg CONV_2D_ARGS[] = CONV_ARGS(WINDOW_PADDINGS, 2, "(1, 1)");
static const struct arg CONV_1D_TRANSPOSE_ARGS[] = CONV_TRANSPOSE_ARGS(1, "1");
static const struct arg CONV_2D_TRANSPOSE_ARGS[] = CONV_TRANSPOSE_ARGS(2, "(1, 1)");
static const struct arg DEPTHWISE_CONV_1D_ARGS[] = DEPTHWISE_ARGS(1, "1");
static const struct arg DEPTHWISE_CONV_2D_ARGS[] = DEPTHWISE_ARGS(2, "(1, 1)");
static const struct arg SEPARABLE_CONV_1D_ARGS[] = SEPARABLE_ARGS(1, "1");
static const struct arg SEPARABLE_CONV_2D_ARGS[] = SEPARABLE_ARGS(2, "(1, 1)");
#define POOL_ARGS(axes, two)                                                                                           \
    {                                                                                                                  \
        LAYER_ARGS, [POOL_PADDING] = ARG_ONE_OF("padding", WINDOW_PADDINGS),                                           \
                    ARG_TUPLE("pool_size", ARG_AT_LEAST_ONE, axes, axes, two),                                         \
                    ARG_TUPLE("strides", ARG_AT_LEAST_ONE, axes, axes, "pool_size"), DATA_FORMAT                       \
    }
static const struct arg POOL_1D_ARGS[] = POOL_ARGS(1, "2");
static const struct arg POOL_2D_ARGS[] = POOL_ARGS(2, "(2, 2)");
static const struct arg GLOBAL_POOL_ARGS[] = {
    LAYER_ARGS, [GLOBAL_POOL_KEEPDIMS] = ARG_OF("keepdims", ARG_FLAG, 0, ARG_ANY), DATA_FORMAT
};
static const struct arg ZERO_PADDING_ARGS[] = { LAYER_ARGS, ARG_OWN("padding", "1"), DATA_FORMAT };
static const struct arg CROPPING_1D_ARGS[] = { LAYER_ARGS, ARG_OWN("cropping", "1") };
static const struct arg CROPPING_2D_ARGS[] = { LAYER_ARGS, ARG_OWN("cropping", "0"), DATA_FORMAT };
static const struct arg UP_SAMPLING_1D_ARGS[] = { LAYER_ARGS, ARG_TUPLE("size", ARG_AT_LEAST_ONE, 1, 1, "2") };
static const struct arg UP_SAMPLING_2D_ARGS[] = { LAYER_ARGS, ARG_TUPLE("size", ARG_AT_LEAST_ONE, 2, 2, "(2, 2)"),
                                                  DATA_FORMAT, ARG_REFUSE_BUT("interpolation", "'nearest'") };

#define NORMALISED                                                                                                     \
    [GROUPNORM_EPSILON] = ARG_OF("epsilon", ARG_NUMBER, 0.001, ARG_NOT_NEGATIVE),                                      \
    [GROUPNORM_CENTER] = ARG_OF("center", ARG_FLAG, 1, ARG_ANY),                                                       \
    [GROUPNORM_SCALE] = ARG_OF("scale", ARG_FLAG, 1, ARG_ANY)
#define GAMMA_AND_BETA                                                                                                 \
    AXIS_ARG, ARG_OWN("beta_initializer", "'zeros'"), ARG_OWN("gamma_initializer", "'ones'"),                          \
        ARG_OWN("beta_regularizer", "None"), ARG_OWN("gamma_regularizer", "None"), ARG_REFUSE("beta_constraint"),      \
        ARG_REFUSE("gamma_constraint")
static const struct arg LAYER_NORMALIZATION_ARGS[] = { LAYER_ARGS, NORMALISED, GAMMA_AND_BETA,
                                                       ARG_REFUSE_OLD("rms_scaling", "False") };
static const struct arg GROUP_NORMALIZATION_ARGS[] = {
    LAYER_ARGS, NORMALISED, [GROUPNORM_GROUPS] = ARG_OF("groups", ARG_INTEGER, 32, ARG_COUNT_OR_CHANNELS),
    GAMMA_AND_BETA
};
static const struct arg PRELU_ARGS[] = {
    LAYER_ARGS,
    ARG_OWN("alpha_initializer", "'zeros'"),
    ARG_OWN("alpha_regularizer", "None"),
    ARG_REFUSE("alpha_constraint"),
    { .name = "shared_axes", .kind = ARG_LIST, .range = ARG_AT_LEAST_ONE, .most = SHAPE_MAX_RANK, .or_one = true }
};
static const struct arg PERMUTE_ARGS[] = { LAYER_ARGS,
                                           { .name = "dims",
                                             .kind = ARG_LIST,
                                             .range = ARG_AT_LEAST_ONE,
                                             .least = 1,
                                             .most = SHAPE_MAX_RANK,
                                             .required = true } };
static const struct arg REPEAT_VECTOR_ARGS[] = { LAYER_ARGS, [REPEAT_VECTOR_N] =
                                                                 ARG_NEEDED("n", ARG_INTEGER, ARG_AT_LEAST_ONE) };
#define SEED_ARG    ARG_OF("seed", ARG_INTEGER, ARG_NONE, ARG_ANY)
#define NOISE(name) LAYER_ARGS, [NOISE_RATE] = ARG_NEEDED(name, ARG_NUMBER, ARG_UNIT), [NOISE_SEED] = SEED_ARG
static const struct arg DROPOUT_ARGS[] = { NOISE("rate"), ARG_REFUSE("noise_shape") };
static const struct arg SPATIAL_DROPOUT_1D_ARGS[] = { NOISE("rate") };
static const struct arg SPATIAL_DROPOUT_2D_ARGS[] = { NOISE("rate"), DATA_FORMAT };
static const struct arg GAUSSIAN_NOISE_ARGS[] = { NOISE("stddev") };

#define RANDOM_ARGS LAYER_ARGS, [AUGMENT_SEED] = SEED_ARG
#define RNG_TYPE    ARG_SKIP("rng_type") /* of Keras 2 */
static const struct arg RANDOM_FLIP_ARGS[] = { RANDOM_ARGS, [FLIP_MODE] = ARG_ONE_OF("mode", FLIP_MODES), DATA_FORMAT,
                                               RNG_TYPE };
#define AFFINE_ARGS                                                                                                    \
    RANDOM_ARGS, [AFFINE_FILL_MODE] = ARG_ONE_OF("fill_mode", FILL_MODES),                                             \
                 [AFFINE_INTERPOLATION] = ARG_ONE_OF("interpolation", INTERPOLATIONS),                                 \
                 [AFFINE_FILL_VALUE] = ARG_OF("fill_value", ARG_NUMBER, 0, ARG_ANY), DATA_FORMAT, RNG_TYPE
static const struct arg RANDOM_TRANSLATION_ARGS[] = { AFFINE_ARGS, ARG_OWN_NEEDED("height_factor"),
                                                      ARG_OWN_NEEDED("width_factor") };
static const struct arg RANDOM_ZOOM_ARGS[] = { AFFINE_ARGS, ARG_OWN_NEEDED("height_factor"),
                                               ARG_OWN("width_factor", "None: height_factor's") };
static const struct arg RANDOM_ROTATION_ARGS[] = { AFFINE_ARGS, ARG_OWN_NEEDED("factor"),
                                                   ARG_SKIP("value_range") /* of Keras 3.0, which ignores it */ };
#define LIGHT_ARGS RANDOM_ARGS, ARG_OWN_NEEDED("factor"), ARG_OWN("value_range", "(0, 255)"), DATA_FORMAT, RNG_TYPE
static const struct arg RANDOM_CONTRAST_ARGS[] = { LIGHT_ARGS };
static const struct arg RANDOM_BRIGHTNESS_ARGS[] = { LIGHT_ARGS };
#define CROP_ARGS                                                                                                      \
    LAYER_ARGS, [CROP_HEIGHT] = ARG_NEEDED("height", ARG_INTEGER, ARG_AT_LEAST_ONE),                                   \
                [CROP_WIDTH] = ARG_NEEDED("width", ARG_INTEGER, ARG_AT_LEAST_ONE)
static const struct arg RANDOM_CROP_ARGS[] = { CROP_ARGS, [CROP_SEED] = SEED_ARG, DATA_FORMAT, RNG_TYPE };
static const struct arg CENTER_CROP_ARGS[] = { CROP_ARGS, DATA_FORMAT };
static const struct arg RESIZING_ARGS[] = { CROP_ARGS,
                                            [RESIZE_INTERPOLATION] = ARG_ONE_OF("interpolation", INTERPOLATIONS),
                                            [RESIZE_CROPS] = ARG_OF("crop_to_aspect_ratio", ARG_FLAG, 0, ARG_ANY),
                                            DATA_FORMAT,
                                            ARG_REFUSE_OLD("pad_to_aspect_ratio", "False"),
                                            ARG_REFUSE_OLD("antialias", "False"),
                                            ARG_SKIP("fill_mode"),
                                            ARG_SKIP("fill_value") /* of padding */ };

/* input_length: of Keras 2. */
static const struct arg EMBEDDING_ARGS[] = {
    LAYER_ARGS_WITH(ARG_NEEDED("input_dim", ARG_INTEGER, ARG_AT_LEAST_ONE)),
    [EMBEDDING_COLUMNS] = ARG_NEEDED("output_dim", ARG_INTEGER, ARG_AT_LEAST_ONE),
    [EMBEDDING_MASK_ZERO] = ARG_OF("mask_zero", ARG_FLAG, 0, ARG_ANY),
    ARG_OWN("embeddings_initializer", "'uniform'"),
    ARG_OWN("embeddings_regularizer", "None"),
    ARG_REFUSE("embeddings_constraint"),
    ARG_REFUSE("activity_regularizer"),
    ARG_REFUSE_OLD("weights", NULL),
    ARG_REFUSE("lora_rank"),
    ARG_REFUSE("lora_alpha"),
    ARG_REFUSE("quantization_config"),
    ARG_SKIP("input_length"),
};

static const struct arg IDENTITY_ARGS[] = { LAYER_ARGS };
static const struct arg MASKING_ARGS[] = { LAYER_ARGS, [MASKING_VALUE] = ARG_OF("mask_value", ARG_NUMBER, 0, ARG_ANY) };

static const struct arg CATEGORY_ENCODING_ARGS[] = {
    LAYER_ARGS,
    [ENCODING_TOKENS] = ARG_NEEDED("num_tokens", ARG_INTEGER, ARG_AT_LEAST_ONE),
    [ENCODING_MODE] = ARG_ONE_OF("output_mode", ENCODING_MODES),
    ARG_REFUSE_OLD("sparse", "False"),
};

#define MERGED                                                                                                         \
    ", element by element; shapes are aligned from the last axis, and axes of size 1 repeated; in functional models"

/* Names: the class's, then what it was called before. */
#define ROW_OF_NAMES(args_, auto_name_, about_, ...)                                                                   \
    .k = { .names = { __VA_ARGS__ }, .args = (args_), .nargs = COUNT_OF(args_), .about = (about_) },                   \
    .auto_name = (auto_name_)
#define ROW(class_name, args_, auto_name_, about_) ROW_OF_NAMES(args_, auto_name_, about_, class_name)

#define CONV_ROW(args, auto_name, read, ...)                                                                           \
    {                                                                                                                  \
        ROW_OF_NAMES(args, auto_name, "activation(the windows of x, each times kernel, + bias)", __VA_ARGS__), read,   \
            conv_shape, conv_variables, conv_config                                                                    \
    }
#define TRANSPOSE_ROW(args, auto_name, read, ...)                                                                      \
    {                                                                                                                  \
        ROW_OF_NAMES(args, auto_name, "activation(the transpose of a convolution of x, + bias)", __VA_ARGS__), read,   \
            conv_transpose_shape, conv_transpose_variables, conv_config                                                \
    }
#define DEPTHWISE_ROW(name, args, auto_name, read)                                                                     \
    {                                                                                                                  \
        ROW(name, args, auto_name, "a convolution of each channel by itself, depth_multiplier kernels each"), read,    \
            depthwise_conv_shape, depthwise_conv_variables, conv_config                                                \
    }
#define SEPARABLE_ROW(args, auto_name, read, ...)                                                                      \
    {                                                                                                                  \
        ROW_OF_NAMES(args, auto_name, "a depthwise convolution, then one of 1 x 1", __VA_ARGS__), read,                \
            separable_conv_shape, separable_conv_variables, conv_config                                                \
    }
#define DROPPED "whole channels 0 with probability rate, others scaled by 1 / (1 - rate); in training only"
#define POOL_ROW(args, auto_name, about, read, ...)                                                                    \
    {                                                                                                                  \
        ROW_OF_NAMES(args, auto_name, about, __VA_ARGS__), read, pool_shape, NULL, pool_config                         \
    }
#define GLOBAL_POOL_ROW(auto_name, about, shape, ...)                                                                  \
    {                                                                                                                  \
        ROW_OF_NAMES(GLOBAL_POOL_ARGS, auto_name, about, __VA_ARGS__), channels_last_read, shape, NULL,                \
            channels_last_config                                                                                       \
    }
#define MAX_ABOUT     "the largest value of each window, of every channel"
#define AVERAGE_ABOUT "the mean of each window, of every channel; padding does not count"

#define FACTOR "; a factor n: -n to n, [a, b]: a to b"
#define DRAWN  "; in training only"

const struct layer_row layer_rows[LAYER_COUNT] = {
    [LAYER_DENSE] = { ROW("Dense", DENSE_ARGS, "dense", "activation(x kernel + bias)"), dense_read, dense_shape,
                      dense_variables, dense_config },
    [LAYER_FLATTEN] = { ROW("Flatten", FLATTEN_ARGS, "flatten", "one axis of all elements"), NULL, flatten_shape, NULL,
                        channels_last_config },
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
                                                 "in training, with `synchronized` those of all batches of a step; "
                                                 "moving ones after",
                                                 "BatchNormalization", "BatchNormalizationV1", "BatchNormalizationV2",
                                                 "SyncBatchNormalization"),
                                    batch_normalization_read, normalized_axis_shape, batch_normalization_variables,
                                    batch_normalization_config,
                                    .flag = { "SyncBatchNormalization", BATCHNORM_SYNCHRONIZED } },
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
    [LAYER_CONV_1D] = CONV_ROW(CONV_1D_ARGS, "conv1d", conv1d_read, "Conv1D", "Convolution1D"),
    [LAYER_CONV_2D] = CONV_ROW(CONV_2D_ARGS, "conv2d", conv2d_read, "Conv2D", "Convolution2D"),
    [LAYER_MAX_POOLING_1D] =
        POOL_ROW(POOL_1D_ARGS, "max_pooling1d", MAX_ABOUT, pool1d_read, "MaxPooling1D", "MaxPool1D"),
    [LAYER_MAX_POOLING_2D] =
        POOL_ROW(POOL_2D_ARGS, "max_pooling2d", MAX_ABOUT, pool2d_read, "MaxPooling2D", "MaxPool2D"),
    [LAYER_AVERAGE_POOLING_1D] =
        POOL_ROW(POOL_1D_ARGS, "average_pooling1d", AVERAGE_ABOUT, pool1d_read, "AveragePooling1D", "AvgPool1D"),
    [LAYER_AVERAGE_POOLING_2D] =
        POOL_ROW(POOL_2D_ARGS, "average_pooling2d", AVERAGE_ABOUT, pool2d_read, "AveragePooling2D", "AvgPool2D"),
    [LAYER_GLOBAL_MAX_POOLING_1D] = GLOBAL_POOL_ROW("global_max_pooling1d", "the largest value of each channel",
                                                    global_pool1d_shape, "GlobalMaxPooling1D", "GlobalMaxPool1D"),
    [LAYER_GLOBAL_MAX_POOLING_2D] = GLOBAL_POOL_ROW("global_max_pooling2d", "the largest value of each channel",
                                                    global_pool2d_shape, "GlobalMaxPooling2D", "GlobalMaxPool2D"),
    [LAYER_GLOBAL_AVERAGE_POOLING_1D] =
        GLOBAL_POOL_ROW("global_average_pooling1d", "the mean of each channel; padding does not count",
                        global_pool1d_shape, "GlobalAveragePooling1D", "GlobalAvgPool1D"),
    [LAYER_GLOBAL_AVERAGE_POOLING_2D] =
        GLOBAL_POOL_ROW("global_average_pooling2d", "the mean of each channel", global_pool2d_shape,
                        "GlobalAveragePooling2D", "GlobalAvgPool2D"),
    [LAYER_ZERO_PADDING_1D] = { ROW("ZeroPadding1D", ZERO_PADDING_ARGS, "zero_padding1d",
                                    "zeros before and after; padding: a number, or (before, after)"),
                                margins1d_read, zero_padding_shape, NULL, margins_config },
    [LAYER_ZERO_PADDING_2D] = { ROW("ZeroPadding2D", ZERO_PADDING_ARGS, "zero_padding2d",
                                    "zeros around; padding: a number, or for each axis a number or (before, after)"),
                                margins2d_read, zero_padding_shape, NULL, margins_config },
    [LAYER_CROPPING_1D] = { ROW("Cropping1D", CROPPING_1D_ARGS, "cropping1d",
                                "without the first and last steps; cropping: a number, or (before, after)"),
                            margins1d_read, cropping_shape, NULL, margins_config },
    [LAYER_CROPPING_2D] = { ROW("Cropping2D", CROPPING_2D_ARGS, "cropping2d",
                                "without the border; cropping: a number, or for each axis a number or (before, after)"),
                            margins2d_read, cropping_shape, NULL, margins_config },
    [LAYER_UP_SAMPLING_1D] = { ROW("UpSampling1D", UP_SAMPLING_1D_ARGS, "up_sampling1d", "each step size times"),
                               up_sampling1d_read, up_sampling_shape, NULL, up_sampling_config },
    [LAYER_UP_SAMPLING_2D] = { ROW("UpSampling2D", UP_SAMPLING_2D_ARGS, "up_sampling2d",
                                   "each row and column size times"),
                               up_sampling2d_read, up_sampling_shape, NULL, up_sampling_config },
    [LAYER_CONV_1D_TRANSPOSE] = TRANSPOSE_ROW(CONV_1D_TRANSPOSE_ARGS, "conv1d_transpose", conv1d_read,
                                              "Conv1DTranspose", "Convolution1DTranspose"),
    [LAYER_CONV_2D_TRANSPOSE] = TRANSPOSE_ROW(CONV_2D_TRANSPOSE_ARGS, "conv2d_transpose", conv2d_read,
                                              "Conv2DTranspose", "Convolution2DTranspose"),
    [LAYER_DEPTHWISE_CONV_1D] =
        DEPTHWISE_ROW("DepthwiseConv1D", DEPTHWISE_CONV_1D_ARGS, "depthwise_conv1d", depthwise_conv1d_read),
    [LAYER_DEPTHWISE_CONV_2D] =
        DEPTHWISE_ROW("DepthwiseConv2D", DEPTHWISE_CONV_2D_ARGS, "depthwise_conv2d", depthwise_conv2d_read),
    [LAYER_SEPARABLE_CONV_1D] = SEPARABLE_ROW(SEPARABLE_CONV_1D_ARGS, "separable_conv1d", separable_conv1d_read,
                                              "SeparableConv1D", "SeparableConvolution1D"),
    [LAYER_SEPARABLE_CONV_2D] = SEPARABLE_ROW(SEPARABLE_CONV_2D_ARGS, "separable_conv2d", separable_conv2d_read,
                                              "SeparableConv2D", "SeparableConvolution2D"),
    [LAYER_LAYER_NORMALIZATION] = { ROW("LayerNormalization", LAYER_NORMALIZATION_ARGS, "layer_normalization",
                                        "gamma (x - mean) / sqrt(variance + epsilon) + beta, of the last axis of each "
                                        "position"),
                                    group_normalization_read, normalized_axis_shape, group_normalization_variables,
                                    group_normalization_config },
    [LAYER_GROUP_NORMALIZATION] = { ROW("GroupNormalization", GROUP_NORMALIZATION_ARGS, "group_normalization",
                                        "likewise, of groups of channels over all positions of an example"),
                                    group_normalization_read, group_normalization_shape, group_normalization_variables,
                                    group_normalization_config },
    [LAYER_PRELU] = { ROW("PReLU", PRELU_ARGS, "p_re_lu",
                          "x, alpha x below 0; alpha is learnt, for each value, shared along axes"),
                      prelu_read, prelu_shape, prelu_variables, prelu_config },
    [LAYER_PERMUTE] = { ROW("Permute", PERMUTE_ARGS, "permute", "the axes in another order; dims counts from 1"),
                        permute_read, permute_shape, NULL, permute_config },
    [LAYER_REPEAT_VECTOR] = { ROW("RepeatVector", REPEAT_VECTOR_ARGS, "repeat_vector",
                                  "n times the input, along a new first axis"),
                              .shape = repeat_vector_shape },
    [LAYER_SPATIAL_DROPOUT_1D] = { ROW("SpatialDropout1D", SPATIAL_DROPOUT_1D_ARGS, "spatial_dropout1d", DROPPED),
                                   dropout_read, same_steps_shape, NULL, spatial_dropout_config },
    [LAYER_SPATIAL_DROPOUT_2D] = { ROW("SpatialDropout2D", SPATIAL_DROPOUT_2D_ARGS, "spatial_dropout2d", DROPPED),
                                   spatial_dropout2d_read, same_image_shape, NULL, spatial_dropout_config },
    [LAYER_RANDOM_FLIP] = { ROW("RandomFlip", RANDOM_FLIP_ARGS, "random_flip",
                                "turned upside down, left to right, or both, each with probability 0.5" DRAWN),
                            channels_last_read, same_image_shape, NULL, channels_last_config },
    [LAYER_RANDOM_TRANSLATION] = { ROW("RandomTranslation", RANDOM_TRANSLATION_ARGS, "random_translation",
                                       "moved down and right by parts of the size" FACTOR DRAWN),
                                   random_shift_read, same_image_shape, NULL, random_shift_config },
    [LAYER_RANDOM_ROTATION] = { ROW("RandomRotation", RANDOM_ROTATION_ARGS, "random_rotation",
                                    "turned by parts of a turn" FACTOR DRAWN),
                                random_rotation_read, same_image_shape, NULL, random_rotation_config },
    [LAYER_RANDOM_ZOOM] = { ROW("RandomZoom", RANDOM_ZOOM_ARGS, "random_zoom",
                                "1 + factor times as much is seen" FACTOR DRAWN),
                            random_shift_read, same_image_shape, NULL, random_shift_config },
    [LAYER_RANDOM_CONTRAST] = { ROW("RandomContrast", RANDOM_CONTRAST_ARGS, "random_contrast",
                                    "(x - mean) c + mean for each channel, cut to value_range; a factor n: c is 1 - n "
                                    "to 1 + n, [a, b]: 1 - a to 1 + b" DRAWN),
                                random_contrast_read, same_image_shape, NULL, random_contrast_config },
    [LAYER_RANDOM_BRIGHTNESS] = { ROW("RandomBrightness", RANDOM_BRIGHTNESS_ARGS, "random_brightness",
                                      "x + a part of value_range, cut to it" FACTOR DRAWN),
                                  random_brightness_read, same_image_shape, NULL, random_brightness_config },
    [LAYER_RANDOM_CROP] = { ROW("RandomCrop", RANDOM_CROP_ARGS, "random_crop",
                                "a part of that size, another one for each example, in training; otherwise, and of "
                                "smaller images, the largest part in the middle with that aspect ratio, resized"),
                            channels_last_read, crop_shape, NULL, channels_last_config },
    [LAYER_CENTER_CROP] = { ROW("CenterCrop", CENTER_CROP_ARGS, "center_crop",
                                "the part in the middle; of smaller images the largest one with that aspect ratio, "
                                "resized"),
                            channels_last_read, crop_shape, NULL, channels_last_config },
    [LAYER_RESIZING] = { ROW("Resizing", RESIZING_ARGS, "resizing", "resized, pixel centres at halves"),
                         channels_last_read, crop_shape, NULL, channels_last_config },
    [LAYER_GAUSSIAN_NOISE] = { ROW("GaussianNoise", GAUSSIAN_NOISE_ARGS, "gaussian_noise",
                                   "x + normal numbers of that standard deviation, in training only"),
                               .shape = layer_same_shape },
    [LAYER_EMBEDDING] = { ROW("Embedding", EMBEDDING_ARGS, "embedding",
                              "the row x of a table, for whole numbers from 0 to input_dim - 1; with mask_zero 0 is "
                              "padding"),
                          embedding_read, embedding_shape, embedding_variables, embedding_config },
    [LAYER_IDENTITY] = { ROW("Identity", IDENTITY_ARGS, "identity", "x"), .shape = layer_same_shape },
    [LAYER_CATEGORY_ENCODING] = { ROW("CategoryEncoding", CATEGORY_ENCODING_ARGS, "category_encoding",
                                      "whole numbers from 0 to num_tokens - 1 as vectors of num_tokens: one_hot of "
                                      "each "
                                      "number, multi_hot or count of all of an example"),
                                  .shape = category_encoding_shape },
    [LAYER_MASKING] = { ROW("Masking", MASKING_ARGS, "masking",
                            "0 for a step whose numbers all are mask_value, which then is padding; else x"),
                        .shape = layer_same_shape },
};

/* In Keras, not here yet: refused with a message that states that. */
static const char *const LATER[] = {
    "Conv3D",
    "Conv3DTranspose",
    "MaxPooling3D",
    "AveragePooling3D",
    "LSTM",
    "GRU",
    "SimpleRNN",
    "Bidirectional",
    "TimeDistributed",
    "RNN",
    "ConvLSTM2D",
    "UnitNormalization",
    "RMSNormalization",
    "SpectralNormalization",
    "MultiHeadAttention",
    "Attention",
    "AdditiveAttention",
    "GroupQueryAttention",
    "Lambda",
    "GaussianDropout",
    "AlphaDropout",
    "ActivityRegularization",
    "EinsumDense",
    "HashedCrossing",
    NULL,
};

/* Layers that read words: the data have them. */
static const struct elsewhere ELSEWHERE[] = {
    { "TextVectorization", "describe a column of csv or jsonl data with type: text, and begin the model with the layer "
                           "behind it" },
    { "StringLookup", "describe a column of csv or jsonl data with type: category and a vocabulary" },
    { "IntegerLookup", "describe a column of csv or jsonl data with type: category and a vocabulary" },
    { "Hashing", "describe a column of csv or jsonl data with type: category and numBins" },
    { "Discretization", "describe a column of csv or jsonl data with binBoundaries or numBins" },
    { NULL, NULL },
};

const struct catalog LAYER_KINDS = { .what = "layer",
                                     .plural = "Layers",
                                     .rows = layer_rows,
                                     .count = LAYER_COUNT,
                                     .size = sizeof(layer_rows[0]),
                                     .later = LATER,
                                     .elsewhere = ELSEWHERE };
