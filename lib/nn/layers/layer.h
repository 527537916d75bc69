/* layer - one layer of a model as its manifest describes it: arguments, shapes, variables. No kernels here.
 *
 * The table of layers has one row per Keras class. It is split in two so that the operator and `trainyard validate`
 * link no arithmetic:
 *     layer_rows[id] (layer_table.c): names, arguments, shape, variables, config   - checks manifests
 *     op_rows[id]    (op.h, op_table.c): forward, backward                         - computes
 * Adding a layer: an id below, a row in each table, its functions in layer_<x>.c and op_<x>.c, and a case in
 * test/unit/nn/test_gradients.c (which fails for a row without one).
 *
 * Shapes here are of one example, without the batch axis.
 */
#ifndef TRAINYARD_NN_LAYERS_LAYER_H
#define TRAINYARD_NN_LAYERS_LAYER_H

#include "nn/activation.h"
#include "nn/catalog.h"
#include "nn/initializer.h"
#include "nn/model.h"
#include "nn/regularizer.h"

/* X(id, Keras class) */
#define LAYERS(X)                                                                                                      \
    X(LAYER_DENSE, "Dense")                                                                                            \
    X(LAYER_FLATTEN, "Flatten")                                                                                        \
    X(LAYER_RESHAPE, "Reshape")                                                                                        \
    X(LAYER_ACTIVATION, "Activation")                                                                                  \
    X(LAYER_RELU, "ReLU")                                                                                              \
    X(LAYER_LEAKY_RELU, "LeakyReLU")                                                                                   \
    X(LAYER_ELU, "ELU")                                                                                                \
    X(LAYER_SOFTMAX, "Softmax")                                                                                        \
    X(LAYER_DROPOUT, "Dropout")                                                                                        \
    X(LAYER_RESCALING, "Rescaling")                                                                                    \
    X(LAYER_NORMALIZATION, "Normalization")                                                                            \
    X(LAYER_BATCH_NORMALIZATION, "BatchNormalization")                                                                 \
    X(LAYER_ADD, "Add")                                                                                                \
    X(LAYER_CONCATENATE, "Concatenate")                                                                                \
    X(LAYER_SUBTRACT, "Subtract")                                                                                      \
    X(LAYER_MULTIPLY, "Multiply")                                                                                      \
    X(LAYER_AVERAGE, "Average")                                                                                        \
    X(LAYER_MAXIMUM, "Maximum")                                                                                        \
    X(LAYER_MINIMUM, "Minimum")                                                                                        \
    X(LAYER_DOT, "Dot")                                                                                                \
    X(LAYER_CONV_1D, "Conv1D")                                                                                         \
    X(LAYER_CONV_2D, "Conv2D")                                                                                         \
    X(LAYER_MAX_POOLING_1D, "MaxPooling1D")                                                                            \
    X(LAYER_MAX_POOLING_2D, "MaxPooling2D")                                                                            \
    X(LAYER_AVERAGE_POOLING_1D, "AveragePooling1D")                                                                    \
    X(LAYER_AVERAGE_POOLING_2D, "AveragePooling2D")                                                                    \
    X(LAYER_GLOBAL_MAX_POOLING_1D, "GlobalMaxPooling1D")                                                               \
    X(LAYER_GLOBAL_MAX_POOLING_2D, "GlobalMaxPooling2D")                                                               \
    X(LAYER_GLOBAL_AVERAGE_POOLING_1D, "GlobalAveragePooling1D")                                                       \
    X(LAYER_GLOBAL_AVERAGE_POOLING_2D, "GlobalAveragePooling2D")                                                       \
    X(LAYER_ZERO_PADDING_1D, "ZeroPadding1D")                                                                          \
    X(LAYER_ZERO_PADDING_2D, "ZeroPadding2D")                                                                          \
    X(LAYER_CROPPING_1D, "Cropping1D")                                                                                 \
    X(LAYER_CROPPING_2D, "Cropping2D")                                                                                 \
    X(LAYER_UP_SAMPLING_1D, "UpSampling1D")                                                                            \
    X(LAYER_UP_SAMPLING_2D, "UpSampling2D")                                                                            \
    X(LAYER_CONV_1D_TRANSPOSE, "Conv1DTranspose")                                                                      \
    X(LAYER_CONV_2D_TRANSPOSE, "Conv2DTranspose")                                                                      \
    X(LAYER_DEPTHWISE_CONV_1D, "DepthwiseConv1D")                                                                      \
    X(LAYER_DEPTHWISE_CONV_2D, "DepthwiseConv2D")                                                                      \
    X(LAYER_SEPARABLE_CONV_1D, "SeparableConv1D")                                                                      \
    X(LAYER_SEPARABLE_CONV_2D, "SeparableConv2D")                                                                      \
    X(LAYER_LAYER_NORMALIZATION, "LayerNormalization")                                                                 \
    X(LAYER_GROUP_NORMALIZATION, "GroupNormalization")                                                                 \
    X(LAYER_PRELU, "PReLU")                                                                                            \
    X(LAYER_PERMUTE, "Permute")                                                                                        \
    X(LAYER_REPEAT_VECTOR, "RepeatVector")                                                                             \
    X(LAYER_SPATIAL_DROPOUT_1D, "SpatialDropout1D")                                                                    \
    X(LAYER_SPATIAL_DROPOUT_2D, "SpatialDropout2D")                                                                    \
    X(LAYER_GAUSSIAN_NOISE, "GaussianNoise")                                                                           \
    X(LAYER_RANDOM_FLIP, "RandomFlip")                                                                                 \
    X(LAYER_RANDOM_TRANSLATION, "RandomTranslation")                                                                   \
    X(LAYER_RANDOM_ROTATION, "RandomRotation")                                                                         \
    X(LAYER_RANDOM_ZOOM, "RandomZoom")                                                                                 \
    X(LAYER_RANDOM_CONTRAST, "RandomContrast")                                                                         \
    X(LAYER_RANDOM_BRIGHTNESS, "RandomBrightness")                                                                     \
    X(LAYER_RANDOM_CROP, "RandomCrop")                                                                                 \
    X(LAYER_CENTER_CROP, "CenterCrop")                                                                                 \
    X(LAYER_RESIZING, "Resizing")                                                                                      \
    X(LAYER_EMBEDDING, "Embedding")                                                                                    \
    X(LAYER_IDENTITY, "Identity")                                                                                      \
    X(LAYER_CATEGORY_ENCODING, "CategoryEncoding")                                                                     \
    X(LAYER_MASKING, "Masking")
enum layer_id {
#define X(id, name) id,
    LAYERS(X)
#undef X
        LAYER_COUNT
};

/* Arguments that every layer has come first in its table, in this order. */
enum {
    ARG_NAME,
    ARG_TRAINABLE,
    ARG_DTYPE,
    ARG_INPUT_SHAPE,
    ARG_BATCH_INPUT_SHAPE,
    ARG_BATCH_SHAPE,
    ARG_INPUT_DIM,
    ARG_DEVICE,
    ARG_FIRST_OWN
};
#define LAYER_ARGS_WITH(input_dim)                                                                                     \
    [ARG_NAME] = ARG_OWN("name", "the class and a number"),                                                            \
    [ARG_TRAINABLE] = ARG_OF("trainable", ARG_FLAG, 1, ARG_ANY), [ARG_DTYPE] = ARG_OWN("dtype", "float32"),            \
    [ARG_INPUT_SHAPE] = ARG_OWN("input_shape", "None"),                                                                \
    [ARG_BATCH_INPUT_SHAPE] = ARG_OWN("batch_input_shape", "None"),                                                    \
    [ARG_BATCH_SHAPE] = ARG_OWN("batch_shape", "None"), [ARG_INPUT_DIM] = input_dim,                                   \
    [ARG_DEVICE] = ARG_OWN("device", "None")
#define LAYER_ARGS LAYER_ARGS_WITH(ARG_OWN("input_dim", "None"))

enum { LAYER_VARS_MAX = 8, LAYER_INPUTS_MAX = 16 };

struct var_spec {
    const char *name; /* static: "kernel" */
    struct shape shape;
    enum variable_kind kind;
    float momentum;
    const struct initializer *init;        /* static, or into layer.own */
    const struct regularizer *regularizer; /* likewise, or NULL */
};

struct layer_row;

struct layer {
    const struct layer_row *row;
    enum layer_id id;
    char *name;
    char *scope; /* of its variables: the name as layer_scope() has it, after those of the nested models around it */
    bool trainable;
    int pin; /* of its variables: 1 + the index of a ps; 0: none */
    struct shape in[LAYER_INPUTS_MAX], out;
    size_t nin;  /* 1, unless the row joins */
    double *arg; /* by place in the row's table */
    struct activation activation;
    void *own; /* further data of the row, made by its read() */
    /* variables, and their position in the model */
    struct var_spec var[LAYER_VARS_MAX];
    size_t var_index[LAYER_VARS_MAX];
    int nvars;
};

struct layer_row {
    struct kind k;
    const char *auto_name; /* Keras's snake_case: "batch_normalization" */
    /* Reads the arguments that the catalog does not read (ARG_OTHER) into l->own, and checks arguments against each
     * other; may be NULL. */
    int (*read)(struct layer *l, const struct node *config, struct err *e);
    /* Sets l->out from l->in; a fault is placed at `at`. */
    int (*shape)(struct layer *l, const struct node *at, struct err *e);
    /* Adds variables with layer_add_variable; NULL: none. */
    void (*variables)(struct layer *l);
    /* The inverse of read: adds the ARG_OTHER arguments to Keras's config; may be NULL. */
    void (*config)(const struct layer *l, json_t *config);
    void (*fini)(struct layer *l); /* frees what l->own refers to, not l->own; may be NULL */
    bool joins;                    /* takes any number of inputs, in a functional model */
    struct {                       /* a name of the row that sets a flag; NULL: none */
        const char *name;
        size_t arg;
    } flag;
};

extern const struct layer_row layer_rows[LAYER_COUNT];
extern const struct catalog LAYER_KINDS; /* all rows, and layers of later releases */

/* For rows: a variable of the layer. Trainable ones of a frozen layer (trainable: false) become VAR_CONST. */
void layer_add_variable(struct layer *l, const char *name, struct shape shape, const struct initializer *init,
                        const struct regularizer *r);
void layer_add_state(struct layer *l, const char *name, struct shape shape, const struct initializer *init,
                     enum variable_kind kind, float momentum);
/* Its name where TensorFlow has a scope, as in the names of variables: what a scope cannot have becomes '_'.
 * xmalloc'ed. */
char *layer_scope(const char *name);
/* Size of the last axis of the first input; 1 for a scalar. */
int64_t layer_channels(const struct layer *l);
/* Only the last axis can be normalised over: -1, the last axis' number (batch is 0), or a list of it. */
MUST_USE int layer_check_axis(const struct layer *l, const struct node *config, struct err *e);
/* l->out = l->in[0] */
MUST_USE int layer_same_shape(struct layer *l, const struct node *at, struct err *e);
/* True when its outputs are numbers of its inputs, moved or repeated. */
bool layer_passes_numbers(const struct layer *l);
/* Of a layer that takes whole numbers from 0 to n - 1: n, and the argument that says so; 0 of other layers. */
int64_t layer_index_range(const struct layer *l, const char **ret_argument);
/* True when the layer is a Normalization whose mean and variance come from the data. */
bool layer_wants_adapt(const struct layer *l);
/* True when in training its statistics are those of all batches of a step. */
bool layer_synchronized(const struct layer *l);
/* {"module": "keras.layers", "class_name", "config", "registered_name", "build_config"}; new reference. */
json_t *layer_json(const struct layer *l);
json_t *shape_json(const struct shape *s, bool batch); /* [null, 28, 28] with batch */
void layer_fini(struct layer *l);

#endif
