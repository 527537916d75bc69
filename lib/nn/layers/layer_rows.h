/* layer_rows - the functions in layer_table.c's rows, and the positions of arguments in its tables.
 */
#ifndef TRAINYARD_NN_LAYERS_LAYER_ROWS_H
#define TRAINYARD_NN_LAYERS_LAYER_ROWS_H

#include "nn/layers/layer.h"
#include "nn/layers/layer_parts.h"
#include "nn/layers/layer_values.h"
#include "nn/layers/layer_window.h"

enum { DENSE_UNITS = ARG_FIRST_OWN, DENSE_USE_BIAS };
enum { NOISE_RATE = ARG_FIRST_OWN, NOISE_SEED }; /* Dropout, SpatialDropout; GaussianNoise: stddev */
enum { NORMALIZATION_INVERT = ARG_FIRST_OWN };
enum {
    BATCHNORM_MOMENTUM = ARG_FIRST_OWN,
    BATCHNORM_EPSILON,
    BATCHNORM_CENTER,
    BATCHNORM_SCALE,
    BATCHNORM_SYNCHRONIZED
};
enum { RELU_MAX = ARG_FIRST_OWN, RELU_SLOPE, RELU_THRESHOLD };
enum { SLOPE = ARG_FIRST_OWN };
enum { CONCATENATE_AXIS = ARG_FIRST_OWN };
enum { DOT_NORMALIZE = ARG_FIRST_OWN };

enum {
    CONV_FILTERS = ARG_FIRST_OWN,        /* of all but DepthwiseConv */
    DEPTHWISE_MULTIPLIER = CONV_FILTERS, /* of DepthwiseConv, in its place */
    CONV_PADDING,
    CONV_USE_BIAS,
    SEPARABLE_MULTIPLIER /* of SeparableConv */
};
enum { /* of LayerNormalization too, but for the last */
       GROUPNORM_EPSILON = ARG_FIRST_OWN,
       GROUPNORM_CENTER,
       GROUPNORM_SCALE,
       GROUPNORM_GROUPS
};
enum { REPEAT_VECTOR_N = ARG_FIRST_OWN };
enum {
    AUGMENT_SEED = ARG_FIRST_OWN, /* of all Random layers but RandomCrop */
    FLIP_MODE,
    AFFINE_FILL_MODE = FLIP_MODE,
    AFFINE_INTERPOLATION,
    AFFINE_FILL_VALUE
};
enum { CROP_HEIGHT = ARG_FIRST_OWN, CROP_WIDTH, CROP_SEED, RESIZE_INTERPOLATION = CROP_SEED, RESIZE_CROPS };
enum flip_mode { FLIP_BOTH, FLIP_HORIZONTAL, FLIP_VERTICAL };
enum fill_mode { FILL_REFLECT, FILL_WRAP, FILL_CONSTANT, FILL_NEAREST };
enum interpolation { INTERPOLATION_BILINEAR, INTERPOLATION_NEAREST };
extern const char *const FLIP_MODES[], *const FILL_MODES[], *const INTERPOLATIONS[]; /* their names, NULL at the end */
enum { POOL_PADDING = ARG_FIRST_OWN };
enum { GLOBAL_POOL_KEEPDIMS = ARG_FIRST_OWN };
enum { EMBEDDING_ROWS = ARG_INPUT_DIM, EMBEDDING_COLUMNS = ARG_FIRST_OWN, EMBEDDING_MASK_ZERO };
enum { ENCODING_TOKENS = ARG_FIRST_OWN, ENCODING_MODE };
enum { MASKING_VALUE = ARG_FIRST_OWN };
enum encoding_mode { ENCODING_MULTI_HOT, ENCODING_ONE_HOT, ENCODING_COUNT };
extern const char *const ENCODING_MODES[];
enum { INDEX_EXACT_MAX = 1 << 24 }; /* whole numbers up to this are exact in 32-bit floats */

enum { KERNEL_PART, BIAS_PART };
/* activation, of layers that end with one. */
MUST_USE int activated_read(struct layer *l, const struct node *config, struct err *e);
void activated_config(const struct layer *l, json_t *config);

struct margins { /* layer.own of ZeroPadding and Cropping: before and after each axis */
    int axes;    /* 1: a sequence, 2: an image; the others of `at` are 0 */
    int64_t at[WINDOW_AXES][2];
};
struct augment_range {
    double least, most;
};
struct augment {                        /* layer.own of the layers that draw a factor: what is drawn */
    struct augment_range height, width; /* RandomTranslation and RandomZoom: parts of the size */
    bool same;                          /* width as height */
    struct augment_range factor; /* RandomRotation: parts of a turn; RandomContrast: 1 is added; RandomBrightness:
                                  * parts of the range of values */
    struct augment_range value;  /* RandomContrast and RandomBrightness: values are cut to it */
};
struct permute { /* layer.own of Permute: axis i of the output is that axis of the input */
    int rank, axis[SHAPE_MAX_RANK];
};
struct prelu { /* layer.own of PReLU */
    struct parts parts;
    struct arg_list shared; /* axes, from 1 */
    struct shape alpha;
};
struct scales { /* layer.own of UpSampling: how often each position is repeated */
    int axes;
    int64_t by[WINDOW_AXES];
};

enum { NORMALIZATION_MEAN, NORMALIZATION_VARIANCE };
struct normalization { /* layer.own of Normalization */
    struct values given[2];
    bool whole; /* axis None: one mean and variance for all axes */
};
static inline const struct values *normalization_given(const struct layer *l)
{
    return ((const struct normalization *)l->own)->given;
}
static inline size_t normalization_channels(const struct layer *l)
{
    return ((const struct normalization *)l->own)->whole ? 1 : (size_t)layer_channels(l);
}

struct rescaling { /* layer.own of Rescaling */
    struct values scale, offset;
};
static inline const struct rescaling *rescaling_of(const struct layer *l)
{
    return l->own;
}
/* One scale and one offset for all elements. */
static inline bool rescaling_is_plain(const struct layer *l)
{
    return rescaling_of(l)->scale.n == 1 && rescaling_of(l)->offset.n == 1;
}

typedef int layer_read_fn(struct layer *l, const struct node *config, struct err *e);
typedef int layer_shape_fn(struct layer *l, const struct node *at, struct err *e);
typedef void layer_variables_fn(struct layer *l);
typedef void layer_fini_fn(struct layer *l);
typedef void layer_config_fn(const struct layer *l, json_t *config);

layer_read_fn dense_read, reshape_read, activation_read, relu_read, leaky_relu_read, elu_read, softmax_read,
    dropout_read, rescaling_read, normalization_read, batch_normalization_read, dot_read, conv1d_read, conv2d_read,
    pool1d_read, pool2d_read, margins1d_read, margins2d_read, up_sampling1d_read, up_sampling2d_read,
    depthwise_conv1d_read, depthwise_conv2d_read, separable_conv1d_read, separable_conv2d_read,
    group_normalization_read, prelu_read, permute_read, channels_last_read, random_shift_read, random_rotation_read,
    random_contrast_read, random_brightness_read, spatial_dropout2d_read, embedding_read;
layer_shape_fn dense_shape, flatten_shape, reshape_shape, rescaling_shape, normalization_shape, normalized_axis_shape,
    merge_shape, subtract_shape, concatenate_shape, dot_shape, conv_shape, pool_shape, global_pool1d_shape,
    global_pool2d_shape, zero_padding_shape, cropping_shape, up_sampling_shape, conv_transpose_shape,
    depthwise_conv_shape, separable_conv_shape, group_normalization_shape, prelu_shape, permute_shape, crop_shape,
    repeat_vector_shape, same_steps_shape, same_image_shape, embedding_shape, category_encoding_shape;
layer_variables_fn dense_variables, conv_variables, normalization_variables, batch_normalization_variables,
    conv_transpose_variables, depthwise_conv_variables, separable_conv_variables, group_normalization_variables,
    prelu_variables, embedding_variables;
layer_config_fn dense_config, channels_last_config, reshape_config, activation_config, relu_config, axis_config,
    rescaling_config, normalization_config, batch_normalization_config, dot_config, conv_config, pool_config,
    margins_config, up_sampling_config, group_normalization_config, prelu_config, permute_config, random_shift_config,
    random_rotation_config, random_contrast_config, random_brightness_config, spatial_dropout_config, embedding_config;
layer_fini_fn rescaling_fini, normalization_fini;

/* The axis along which Concatenate joins, of one example: from 0. */
static inline int concatenate_axis(const struct layer *l)
{
    int axis = (int)l->arg[CONCATENATE_AXIS];
    return axis < 0 ? l->in[0].rank + axis : axis - 1;
}

/* The axis of input k that Dot multiplies along, of one example: from 0. */
static inline int dot_axis(const struct layer *l, size_t k)
{
    const struct arg_list *axes = l->own;
    int axis = (int)axes->v[k];
    return axis < 0 ? l->in[k].rank + axis : axis - 1;
}

#endif
