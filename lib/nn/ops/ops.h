/* ops - the functions in op_table.c's rows. */
#ifndef TRAINYARD_NN_OPS_OPS_H
#define TRAINYARD_NN_OPS_OPS_H

#include "nn/ops/op.h"

typedef void op_fn(const struct op_ctx *c);
typedef size_t op_scratch_fn(const struct layer *l, size_t max_n, bool training);
typedef bool op_view_fn(const struct layer *l, bool training);

op_fn op_dense_forward, op_dense_backward, op_activation_forward, op_activation_backward, op_dropout_forward,
    op_dropout_backward, op_rescaling_forward, op_rescaling_backward, op_normalization_forward,
    op_normalization_backward, op_batch_normalization_forward, op_batch_normalization_backward, op_merge_forward,
    op_merge_backward, op_concatenate_forward, op_concatenate_backward, op_dot_forward, op_dot_backward,
    op_conv_forward, op_conv_backward, op_pool_forward, op_pool_backward, op_zero_padding_forward,
    op_zero_padding_backward, op_cropping_forward, op_cropping_backward, op_up_sampling_forward,
    op_up_sampling_backward, op_conv_transpose_forward, op_conv_transpose_backward, op_depthwise_conv_forward,
    op_depthwise_conv_backward, op_separable_conv_forward, op_separable_conv_backward, op_layer_normalization_forward,
    op_layer_normalization_backward, op_group_normalization_forward, op_group_normalization_backward, op_prelu_forward,
    op_prelu_backward, op_permute_forward, op_permute_backward, op_repeat_vector_forward, op_repeat_vector_backward,
    op_random_flip_forward, op_random_flip_backward, op_random_affine_forward, op_random_affine_backward,
    op_random_contrast_forward, op_random_contrast_backward, op_random_brightness_forward,
    op_random_brightness_backward, op_crop_forward, op_crop_backward, op_resizing_forward, op_resizing_backward,
    op_gaussian_noise_forward, op_gaussian_noise_backward, op_embedding_forward, op_embedding_backward,
    op_global_average_1d_forward, op_global_average_1d_backward, op_category_encoding_forward,
    op_category_encoding_backward, op_masking_forward, op_masking_backward;
op_scratch_fn op_dense_scratch, op_dropout_scratch, op_rescaling_scratch, op_normalization_scratch,
    op_batch_normalization_scratch, op_merge_scratch, op_dot_scratch, op_conv_scratch, op_pool_scratch,
    op_conv_transpose_scratch, op_depthwise_conv_scratch, op_separable_conv_scratch, op_layer_normalization_scratch,
    op_group_normalization_scratch, op_prelu_scratch, op_sample_scratch;
size_t op_batch_normalization_sums(const struct layer *l);
op_sum_fn op_batch_normalization_sum_forward, op_batch_normalization_sum_backward;
op_view_fn op_always_view, op_noise_view, op_augment_view, op_activation_view;

#endif
