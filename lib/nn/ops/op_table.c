/* The table of ops, beside that of layers. */
#include "nn/ops/ops.h"

/* A layer's own softmax or relu is all one op: its arguments are in l->activation. */
#define ACTIVATION                                                                                                     \
    {                                                                                                                  \
        .forward = op_activation_forward, .backward = op_activation_backward, .view = op_activation_view,              \
        .in_place = true, .tail = TAIL_INPUT                                                                           \
    }

#define MERGE                                                                                                          \
    {                                                                                                                  \
        .forward = op_merge_forward, .backward = op_merge_backward, .scratch = op_merge_scratch, .in_place = true      \
    }

#define CONV                                                                                                           \
    {                                                                                                                  \
        .forward = op_conv_forward, .backward = op_conv_backward, .scratch = op_conv_scratch, .tail = TAIL_OUTPUT      \
    }
#define CONV_TRANSPOSE                                                                                                 \
    {                                                                                                                  \
        .forward = op_conv_transpose_forward, .backward = op_conv_transpose_backward,                                  \
        .scratch = op_conv_transpose_scratch, .tail = TAIL_OUTPUT                                                      \
    }
#define DEPTHWISE_CONV                                                                                                 \
    {                                                                                                                  \
        .forward = op_depthwise_conv_forward, .backward = op_depthwise_conv_backward,                                  \
        .scratch = op_depthwise_conv_scratch, .tail = TAIL_OUTPUT                                                      \
    }
#define SEPARABLE_CONV                                                                                                 \
    {                                                                                                                  \
        .forward = op_separable_conv_forward, .backward = op_separable_conv_backward,                                  \
        .scratch = op_separable_conv_scratch, .tail = TAIL_OUTPUT                                                      \
    }
#define LAYER_NORMALIZATION_OP                                                                                         \
    {                                                                                                                  \
        .forward = op_layer_normalization_forward, .backward = op_layer_normalization_backward,                        \
        .scratch = op_layer_normalization_scratch                                                                      \
    }
#define GROUP_NORMALIZATION_OP                                                                                         \
    {                                                                                                                  \
        .forward = op_group_normalization_forward, .backward = op_group_normalization_backward,                        \
        .scratch = op_group_normalization_scratch                                                                      \
    }
#define DROPOUT                                                                                                        \
    {                                                                                                                  \
        .forward = op_dropout_forward, .backward = op_dropout_backward, .scratch = op_dropout_scratch,                 \
        .view = op_noise_view, .in_place = true                                                                        \
    }
#define RANDOM_AFFINE                                                                                                  \
    {                                                                                                                  \
        .forward = op_random_affine_forward, .backward = op_random_affine_backward, .scratch = op_sample_scratch,      \
        .view = op_augment_view                                                                                        \
    }
#define CROP                                                                                                           \
    {                                                                                                                  \
        .forward = op_crop_forward, .backward = op_crop_backward, .scratch = op_sample_scratch                         \
    }
#define POOL                                                                                                           \
    {                                                                                                                  \
        .forward = op_pool_forward, .backward = op_pool_backward, .scratch = op_pool_scratch                           \
    }
#define ZERO_PADDING                                                                                                   \
    {                                                                                                                  \
        .forward = op_zero_padding_forward, .backward = op_zero_padding_backward                                       \
    }
#define CROPPING                                                                                                       \
    {                                                                                                                  \
        .forward = op_cropping_forward, .backward = op_cropping_backward                                               \
    }
#define UP_SAMPLING                                                                                                    \
    {                                                                                                                  \
        .forward = op_up_sampling_forward, .backward = op_up_sampling_backward                                         \
    }

const struct op_row op_rows[LAYER_COUNT] = {
    [LAYER_DENSE] = { .forward = op_dense_forward,
                      .backward = op_dense_backward,
                      .scratch = op_dense_scratch,
                      .tail = TAIL_OUTPUT },
    [LAYER_FLATTEN] = { .view = op_always_view },
    [LAYER_RESHAPE] = { .view = op_always_view },
    [LAYER_ACTIVATION] = ACTIVATION,
    [LAYER_RELU] = ACTIVATION,
    [LAYER_LEAKY_RELU] = ACTIVATION,
    [LAYER_ELU] = ACTIVATION,
    [LAYER_SOFTMAX] = ACTIVATION,
    [LAYER_DROPOUT] = DROPOUT,
    [LAYER_RESCALING] = { .forward = op_rescaling_forward,
                          .backward = op_rescaling_backward,
                          .scratch = op_rescaling_scratch,
                          .in_place = true },
    [LAYER_NORMALIZATION] = { .forward = op_normalization_forward,
                              .backward = op_normalization_backward,
                              .scratch = op_normalization_scratch,
                              .in_place = true },
    [LAYER_BATCH_NORMALIZATION] = { .forward = op_batch_normalization_forward,
                                    .backward = op_batch_normalization_backward,
                                    .scratch = op_batch_normalization_scratch,
                                    .in_place = true,
                                    .sums = op_batch_normalization_sums,
                                    .sum_forward = op_batch_normalization_sum_forward,
                                    .sum_backward = op_batch_normalization_sum_backward },
    [LAYER_ADD] = MERGE,
    [LAYER_CONCATENATE] = { .forward = op_concatenate_forward, .backward = op_concatenate_backward },
    [LAYER_SUBTRACT] = MERGE,
    [LAYER_MULTIPLY] = MERGE,
    [LAYER_AVERAGE] = MERGE,
    [LAYER_MAXIMUM] = MERGE,
    [LAYER_MINIMUM] = MERGE,
    [LAYER_DOT] = { .forward = op_dot_forward, .backward = op_dot_backward, .scratch = op_dot_scratch },
    [LAYER_CONV_1D] = CONV,
    [LAYER_CONV_2D] = CONV,
    [LAYER_MAX_POOLING_1D] = POOL,
    [LAYER_MAX_POOLING_2D] = POOL,
    [LAYER_AVERAGE_POOLING_1D] = POOL,
    [LAYER_AVERAGE_POOLING_2D] = POOL,
    [LAYER_GLOBAL_MAX_POOLING_1D] = POOL,
    [LAYER_GLOBAL_MAX_POOLING_2D] = POOL,
    [LAYER_GLOBAL_AVERAGE_POOLING_1D] = { .forward = op_global_average_1d_forward,
                                          .backward = op_global_average_1d_backward },
    [LAYER_GLOBAL_AVERAGE_POOLING_2D] = POOL,
    [LAYER_ZERO_PADDING_1D] = ZERO_PADDING,
    [LAYER_ZERO_PADDING_2D] = ZERO_PADDING,
    [LAYER_CROPPING_1D] = CROPPING,
    [LAYER_CROPPING_2D] = CROPPING,
    [LAYER_UP_SAMPLING_1D] = UP_SAMPLING,
    [LAYER_UP_SAMPLING_2D] = UP_SAMPLING,
    [LAYER_CONV_1D_TRANSPOSE] = CONV_TRANSPOSE,
    [LAYER_CONV_2D_TRANSPOSE] = CONV_TRANSPOSE,
    [LAYER_DEPTHWISE_CONV_1D] = DEPTHWISE_CONV,
    [LAYER_DEPTHWISE_CONV_2D] = DEPTHWISE_CONV,
    [LAYER_SEPARABLE_CONV_1D] = SEPARABLE_CONV,
    [LAYER_SEPARABLE_CONV_2D] = SEPARABLE_CONV,
    [LAYER_LAYER_NORMALIZATION] = LAYER_NORMALIZATION_OP,
    [LAYER_GROUP_NORMALIZATION] = GROUP_NORMALIZATION_OP,
    [LAYER_PRELU] = { .forward = op_prelu_forward, .backward = op_prelu_backward, .scratch = op_prelu_scratch },
    [LAYER_PERMUTE] = { .forward = op_permute_forward, .backward = op_permute_backward },
    [LAYER_REPEAT_VECTOR] = { .forward = op_repeat_vector_forward, .backward = op_repeat_vector_backward },
    [LAYER_SPATIAL_DROPOUT_1D] = DROPOUT,
    [LAYER_SPATIAL_DROPOUT_2D] = DROPOUT,
    [LAYER_RANDOM_FLIP] = { .forward = op_random_flip_forward,
                            .backward = op_random_flip_backward,
                            .view = op_augment_view },
    [LAYER_RANDOM_TRANSLATION] = RANDOM_AFFINE,
    [LAYER_RANDOM_ROTATION] = RANDOM_AFFINE,
    [LAYER_RANDOM_ZOOM] = RANDOM_AFFINE,
    [LAYER_RANDOM_CONTRAST] = { .forward = op_random_contrast_forward,
                                .backward = op_random_contrast_backward,
                                .view = op_augment_view },
    [LAYER_RANDOM_BRIGHTNESS] = { .forward = op_random_brightness_forward,
                                  .backward = op_random_brightness_backward,
                                  .view = op_augment_view },
    [LAYER_RANDOM_CROP] = CROP,
    [LAYER_CENTER_CROP] = CROP,
    [LAYER_RESIZING] = { .forward = op_resizing_forward,
                         .backward = op_resizing_backward,
                         .scratch = op_sample_scratch },
    [LAYER_GAUSSIAN_NOISE] = { .forward = op_gaussian_noise_forward,
                               .backward = op_gaussian_noise_backward,
                               .view = op_noise_view,
                               .in_place = true },
    [LAYER_EMBEDDING] = { .forward = op_embedding_forward, .backward = op_embedding_backward },
    [LAYER_IDENTITY] = { .view = op_always_view },
    [LAYER_CATEGORY_ENCODING] = { .forward = op_category_encoding_forward, .backward = op_category_encoding_backward },
    [LAYER_MASKING] = { .forward = op_masking_forward, .backward = op_masking_backward, .in_place = true },
};
