/* Walks every row of the op table and compares its gradients with differences of its forward. A row without a case
 * fails. */
#include <math.h>

#include "base/rng.h"
#include "op_run.h"

struct gradient_case {
    enum layer_id id;
    const char *args;
    struct shape in;
    bool training;
    struct shape more[2]; /* of layers that join: the other inputs */
};
#define ALONE                                                                                                          \
    {                                                                                                                  \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

#define VECTOR                                                                                                         \
    {                                                                                                                  \
        .rank = 1, .dim = { 5 }                                                                                        \
    }
#define IMAGE                                                                                                          \
    {                                                                                                                  \
        .rank = 3, .dim = { 3, 2, 4 }                                                                                  \
    }
#define STEPS                                                                                                          \
    {                                                                                                                  \
        .rank = 2, .dim = { 7, 2 }                                                                                     \
    }
#define PICTURE                                                                                                        \
    {                                                                                                                  \
        .rank = 3, .dim = { 4, 5, 2 }                                                                                  \
    }
/* As many channels as Winograd's algorithm is for. */
#define DEEP                                                                                                           \
    {                                                                                                                  \
        .rank = 3, .dim = { 4, 5, 16 }                                                                                 \
    }
/* They fit IMAGE: its last axis, its last two with and without a size of 1. */
#define ROW                                                                                                            \
    {                                                                                                                  \
        .rank = 1, .dim = { 4 }                                                                                        \
    }
#define COLUMN                                                                                                         \
    {                                                                                                                  \
        .rank = 2, .dim = { 2, 1 }                                                                                     \
    }
#define MIDDLE                                                                                                         \
    {                                                                                                                  \
        .rank = 3, .dim = { 3, 1, 4 }                                                                                  \
    }

static const struct gradient_case CASES[] = {
    { LAYER_DENSE, "{\"units\": 3, \"activation\": \"tanh\"}", VECTOR, true, ALONE },
    { LAYER_DENSE, "{\"units\": 3, \"activation\": \"gelu\", \"use_bias\": false}", VECTOR, true, ALONE },
    { LAYER_DENSE, "{\"units\": 3, \"activation\": \"softmax\"}", IMAGE, true, ALONE },
    { LAYER_DENSE, "{\"units\": 2}", IMAGE, false, ALONE },
    { LAYER_FLATTEN, "{}", IMAGE, true, ALONE },
    { LAYER_RESHAPE, "{\"target_shape\": [4, -1]}", IMAGE, true, ALONE },
    { LAYER_ACTIVATION, "{\"activation\": \"sigmoid\"}", IMAGE, true, ALONE },
    { LAYER_ACTIVATION, "{\"activation\": \"mish\"}", VECTOR, true, ALONE },
    { LAYER_RELU, "{\"max_value\": 0.9, \"negative_slope\": 0.1}", VECTOR, true, ALONE },
    { LAYER_LEAKY_RELU, "{}", VECTOR, true, ALONE },
    { LAYER_ELU, "{\"alpha\": 0.7}", VECTOR, true, ALONE },
    { LAYER_SOFTMAX, "{}", IMAGE, true, ALONE },
    { LAYER_DROPOUT, "{\"rate\": 0.4}", IMAGE, true, ALONE },
    { LAYER_DROPOUT, "{\"rate\": 0.4}", IMAGE, false, ALONE },
    { LAYER_RESCALING, "{\"scale\": 0.25, \"offset\": -1}", IMAGE, true, ALONE },
    { LAYER_RESCALING, "{\"scale\": [0.25, 1, -2, 3], \"offset\": [1, 2, 3, 4]}", IMAGE, true, ALONE },
    { LAYER_RESCALING, "{\"scale\": [0.25, 1, -2, 3]}", IMAGE, false, ALONE },
    { LAYER_NORMALIZATION, "{\"axis\": null}", IMAGE, true, ALONE },
    { LAYER_NORMALIZATION, "{\"mean\": [1, 2, 3, 4], \"variance\": [1, 4, 0.5, 2]}", IMAGE, true, ALONE },
    { LAYER_NORMALIZATION, "{\"mean\": 0.5, \"variance\": 2, \"invert\": true}", IMAGE, true, ALONE },
    { LAYER_NORMALIZATION, "{}", VECTOR, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{}", IMAGE, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{\"center\": false}", VECTOR, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{\"scale\": false}", VECTOR, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{\"trainable\": false}", VECTOR, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{\"synchronized\": true}", IMAGE, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{\"synchronized\": true, \"trainable\": false}", VECTOR, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{}", IMAGE, false, ALONE },
    { LAYER_ADD, "{}", IMAGE, true, { IMAGE, IMAGE } },
    { LAYER_ADD, "{}", ROW, true, { IMAGE, COLUMN } },
    { LAYER_SUBTRACT, "{}", IMAGE, true, { IMAGE } },
    { LAYER_SUBTRACT, "{}", COLUMN, true, { ROW } },
    { LAYER_MULTIPLY, "{}", IMAGE, true, { IMAGE, IMAGE } },
    { LAYER_MULTIPLY, "{}", IMAGE, true, { ROW, MIDDLE } },
    { LAYER_AVERAGE, "{}", IMAGE, true, { IMAGE, IMAGE } },
    { LAYER_AVERAGE, "{}", COLUMN, true, { MIDDLE, IMAGE } },
    { LAYER_CONV_1D, "{\"filters\": 3, \"kernel_size\": 2, \"strides\": 2, \"activation\": \"tanh\"}", STEPS, true,
      ALONE },
    { LAYER_CONV_1D, "{\"filters\": 2, \"kernel_size\": 3, \"dilation_rate\": 2, \"padding\": \"causal\"}", STEPS, true,
      ALONE },
    { LAYER_CONV_2D, "{\"filters\": 3, \"kernel_size\": 2, \"activation\": \"gelu\"}", PICTURE, true, ALONE },
    { LAYER_CONV_2D, "{\"filters\": 2, \"kernel_size\": [3, 2], \"strides\": [2, 1], \"padding\": \"same\"}", PICTURE,
      true, ALONE },
    { LAYER_CONV_2D, "{\"filters\": 2, \"kernel_size\": 1, \"use_bias\": false}", PICTURE, true, ALONE },
    { LAYER_CONV_2D, "{\"filters\": 2, \"kernel_size\": 3, \"padding\": \"same\", \"trainable\": false}", PICTURE, true,
      ALONE },
    { LAYER_CONV_2D, "{\"filters\": 16, \"kernel_size\": 3, \"padding\": \"same\", \"activation\": \"gelu\"}", DEEP,
      true, ALONE },
    { LAYER_MAX_POOLING_1D, "{}", STEPS, true, ALONE },
    { LAYER_MAX_POOLING_2D, "{\"pool_size\": 3, \"strides\": 2, \"padding\": \"same\"}", PICTURE, true, ALONE },
    { LAYER_AVERAGE_POOLING_1D, "{\"padding\": \"same\"}", STEPS, true, ALONE },
    { LAYER_AVERAGE_POOLING_2D, "{\"pool_size\": [3, 2], \"strides\": 1}", PICTURE, true, ALONE },
    { LAYER_GLOBAL_MAX_POOLING_1D, "{}", STEPS, true, ALONE },
    { LAYER_GLOBAL_MAX_POOLING_2D, "{\"keepdims\": true}", PICTURE, true, ALONE },
    { LAYER_GLOBAL_AVERAGE_POOLING_1D, "{\"keepdims\": true}", STEPS, true, ALONE },
    { LAYER_GLOBAL_AVERAGE_POOLING_2D, "{}", PICTURE, true, ALONE },
    { LAYER_ZERO_PADDING_1D, "{\"padding\": [2, 1]}", STEPS, true, ALONE },
    { LAYER_ZERO_PADDING_2D, "{\"padding\": [[1, 2], [0, 1]]}", PICTURE, true, ALONE },
    { LAYER_CROPPING_1D, "{\"cropping\": [2, 1]}", STEPS, true, ALONE },
    { LAYER_CROPPING_2D, "{\"cropping\": [[1, 0], [0, 2]]}", PICTURE, true, ALONE },
    { LAYER_UP_SAMPLING_1D, "{\"size\": 3}", STEPS, true, ALONE },
    { LAYER_UP_SAMPLING_2D, "{\"size\": [2, 3]}", PICTURE, true, ALONE },
    { LAYER_CONV_1D_TRANSPOSE, "{\"filters\": 3, \"kernel_size\": 3, \"strides\": 2}", STEPS, true, ALONE },
    { LAYER_CONV_2D_TRANSPOSE,
      "{\"filters\": 3, \"kernel_size\": [3, 2], \"strides\": 2, \"padding\": \"same\", \"activation\": \"tanh\"}",
      PICTURE, true, ALONE },
    { LAYER_CONV_2D_TRANSPOSE, "{\"filters\": 16, \"kernel_size\": 3, \"padding\": \"same\", \"activation\": \"gelu\"}",
      DEEP, true, ALONE },
    { LAYER_DEPTHWISE_CONV_1D, "{\"kernel_size\": 3, \"strides\": 2, \"padding\": \"same\"}", STEPS, true, ALONE },
    { LAYER_DEPTHWISE_CONV_2D, "{\"kernel_size\": [2, 3], \"depth_multiplier\": 2, \"activation\": \"gelu\"}", PICTURE,
      true, ALONE },
    { LAYER_DEPTHWISE_CONV_2D, "{\"kernel_size\": 2, \"dilation_rate\": 2, \"use_bias\": false, \"trainable\": false}",
      PICTURE, true, ALONE },
    { LAYER_DEPTHWISE_CONV_2D, "{\"kernel_size\": 3, \"padding\": \"same\"}", DEEP, true, ALONE },
    { LAYER_DEPTHWISE_CONV_2D, "{\"kernel_size\": 3, \"strides\": 2, \"padding\": \"same\"}", DEEP, true, ALONE },
    { LAYER_DEPTHWISE_CONV_2D, "{\"kernel_size\": [2, 3], \"dilation_rate\": [1, 2]}", DEEP, true, ALONE },
    { LAYER_SEPARABLE_CONV_1D, "{\"filters\": 3, \"kernel_size\": 2, \"padding\": \"same\", \"dilation_rate\": 2}",
      STEPS, true, ALONE },
    { LAYER_SEPARABLE_CONV_2D,
      "{\"filters\": 3, \"kernel_size\": 3, \"strides\": 2, \"padding\": \"same\", \"depth_multiplier\": 2, "
      "\"activation\": \"gelu\"}",
      PICTURE, true, ALONE },
    { LAYER_SEPARABLE_CONV_2D, "{\"filters\": 2, \"kernel_size\": 2, \"trainable\": false}", PICTURE, true, ALONE },
    { LAYER_LAYER_NORMALIZATION, "{}", IMAGE, true, ALONE },
    { LAYER_LAYER_NORMALIZATION, "{\"scale\": false, \"epsilon\": 0.5}", VECTOR, true, ALONE },
    { LAYER_GROUP_NORMALIZATION, "{\"groups\": 2}", IMAGE, true, ALONE },
    { LAYER_GROUP_NORMALIZATION, "{\"groups\": -1, \"center\": false}", IMAGE, true, ALONE },
    { LAYER_GROUP_NORMALIZATION, "{\"groups\": 1, \"trainable\": false}", PICTURE, true, ALONE },
    { LAYER_PRELU, "{\"alpha_initializer\": \"ones\"}", VECTOR, true, ALONE },
    { LAYER_PRELU, "{\"shared_axes\": [1, 2]}", IMAGE, true, ALONE },
    { LAYER_PRELU, "{\"shared_axes\": [2]}", IMAGE, true, ALONE },
    { LAYER_PERMUTE, "{\"dims\": [3, 1, 2]}", IMAGE, true, ALONE },
    { LAYER_PERMUTE, "{\"dims\": [2, 1]}", STEPS, true, ALONE },
    { LAYER_REPEAT_VECTOR, "{\"n\": 3}", VECTOR, true, ALONE },
    { LAYER_SPATIAL_DROPOUT_1D, "{\"rate\": 0.5}", STEPS, true, ALONE },
    { LAYER_SPATIAL_DROPOUT_2D, "{\"rate\": 0.25, \"seed\": 3}", IMAGE, true, ALONE },
    { LAYER_SPATIAL_DROPOUT_2D, "{\"rate\": 0.25}", IMAGE, true, ALONE },
    { LAYER_RANDOM_FLIP, "{}", PICTURE, true, ALONE },
    { LAYER_RANDOM_TRANSLATION, "{\"height_factor\": 0.5, \"width_factor\": 0.5}", PICTURE, true, ALONE },
    { LAYER_RANDOM_TRANSLATION, "{\"height_factor\": 0.5, \"width_factor\": 0.5, \"fill_mode\": \"constant\"}", PICTURE,
      true, ALONE },
    { LAYER_RANDOM_ROTATION, "{\"factor\": 0.5, \"fill_mode\": \"wrap\"}", PICTURE, true, ALONE },
    { LAYER_RANDOM_ZOOM, "{\"height_factor\": 0.5, \"interpolation\": \"nearest\"}", PICTURE, true, ALONE },
    { LAYER_RANDOM_CONTRAST, "{\"factor\": 0.5, \"value_range\": [-9, 9]}", PICTURE, true, ALONE },
    { LAYER_RANDOM_BRIGHTNESS, "{\"factor\": 0.5, \"value_range\": [-9, 9]}", PICTURE, true, ALONE },
    { LAYER_RANDOM_CROP, "{\"height\": 3, \"width\": 2}", PICTURE, true, ALONE },
    { LAYER_RANDOM_CROP, "{\"height\": 3, \"width\": 2}", PICTURE, false, ALONE },
    { LAYER_CENTER_CROP, "{\"height\": 2, \"width\": 2}", PICTURE, true, ALONE },
    { LAYER_RESIZING, "{\"height\": 7, \"width\": 3}", PICTURE, true, ALONE },
    { LAYER_RESIZING, "{\"height\": 3, \"width\": 7, \"interpolation\": \"nearest\"}", PICTURE, false, ALONE },
    { LAYER_GAUSSIAN_NOISE, "{\"stddev\": 0.5}", IMAGE, true, ALONE },
    { LAYER_EMBEDDING, "{\"input_dim\": 6, \"output_dim\": 3}", VECTOR, true, ALONE },
    { LAYER_EMBEDDING, "{\"input_dim\": 4, \"output_dim\": 2, \"trainable\": false}", COLUMN, true, ALONE },
    { LAYER_IDENTITY, "{}", IMAGE, true, ALONE },
    { LAYER_MASKING, "{}", STEPS, true, ALONE },
    { LAYER_CATEGORY_ENCODING, "{\"num_tokens\": 4}", VECTOR, true, ALONE },
    { LAYER_CATEGORY_ENCODING, "{\"num_tokens\": 5, \"output_mode\": \"count\"}", VECTOR, true, ALONE },
    { LAYER_CATEGORY_ENCODING, "{\"num_tokens\": 6, \"output_mode\": \"one_hot\"}", COLUMN, true, ALONE },
    { LAYER_MAXIMUM, "{}", IMAGE, true, { IMAGE, IMAGE } },
    { LAYER_MAXIMUM, "{}", ROW, true, { IMAGE } },
    { LAYER_MINIMUM, "{}", IMAGE, true, { IMAGE, IMAGE } },
    { LAYER_MINIMUM, "{}", COLUMN, true, { ROW, MIDDLE } },
    { LAYER_DOT, "{\"axes\": 1}", VECTOR, true, { VECTOR } },
    { LAYER_DOT, "{\"axes\": -1, \"normalize\": true}", VECTOR, true, { VECTOR } },
    { LAYER_DOT, "{\"axes\": -1}", IMAGE, true, { ROW } },
    { LAYER_DOT, "{\"axes\": [3, 1]}", IMAGE, true, { ROW } },
    { LAYER_DOT, "{\"axes\": [2, 1], \"normalize\": true}", IMAGE, true, { COLUMN } },
    { LAYER_CONCATENATE, "{}", IMAGE, true, { IMAGE, IMAGE } },
    { LAYER_CONCATENATE, "{\"axis\": 1}", IMAGE, true, { IMAGE, IMAGE } },
    { LAYER_CONCATENATE, "{\"axis\": -2}", IMAGE, false, { IMAGE, IMAGE } },
};

/* Layers that leave padding out, with a mask of STEPS after their inputs. */
#define STEPS_OF_ONE                                                                                                   \
    {                                                                                                                  \
        .rank = 2, .dim = { 7, 1 }                                                                                     \
    }
static const struct gradient_case MASKED[] = {
    { LAYER_GLOBAL_AVERAGE_POOLING_1D, "{}", STEPS, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{}", STEPS, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{\"scale\": false, \"center\": false}", STEPS, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{\"synchronized\": true}", STEPS, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{\"trainable\": false}", STEPS, true, ALONE },
    { LAYER_BATCH_NORMALIZATION, "{}", STEPS, false, ALONE },
    { LAYER_MULTIPLY, "{}", STEPS, true, { STEPS, STEPS } },
    { LAYER_MULTIPLY, "{}", STEPS_OF_ONE, true, { STEPS } },
    { LAYER_MAXIMUM, "{}", STEPS, true, { STEPS, STEPS } },
    { LAYER_MAXIMUM, "{}", STEPS_OF_ONE, true, { STEPS } },
    { LAYER_MINIMUM, "{}", STEPS, true, { STEPS } },
};

/* With a mask of STEPS for each input, also at the end. */
static const struct gradient_case MASKED_EACH[] = {
    { LAYER_MULTIPLY, "{}", STEPS, true, { STEPS, STEPS } }, { LAYER_MULTIPLY, "{}", STEPS_OF_ONE, true, { STEPS } },
    { LAYER_MAXIMUM, "{}", STEPS, true, { STEPS, STEPS } },  { LAYER_MAXIMUM, "{}", STEPS, true, { STEPS_OF_ONE } },
    { LAYER_MINIMUM, "{}", STEPS, true, { STEPS, STEPS } },
};

enum { EXAMPLES = 4, MASK_STEPS = 7, MASK_SIZE = EXAMPLES * MASK_STEPS };
static const float STEP = 1.0F / 128;

static void draw(float *v, size_t n, uint32_t name)
{
    struct rng r = rng_at(11, RNG_TEST, 0, name);
    for (size_t i = 0; i < n; i++) { /* away from 0 and 0.9, where relus have corners */
        float far = 0.1F + 0.7F * rng_uniform(&r);
        v[i] = rng_u32(&r) & 1 ? far : -far;
    }
}

static bool takes_largest(enum layer_id id)
{
    return id == LAYER_MAX_POOLING_1D || id == LAYER_MAX_POOLING_2D || id == LAYER_GLOBAL_MAX_POOLING_1D ||
           id == LAYER_GLOBAL_MAX_POOLING_2D;
}

/* Values of which no two are as near as a STEP, so that the largest one stays the largest. */
static void spread(float *v, size_t n)
{
    ck_assert_msg(n % 37 != 0 && 2.0F / (float)n > STEP, "%zu values are not spread", n);
    for (size_t i = 0; i < n; i++)
        v[i] = 2 * ((float)(i * 37 % n) + 0.5F) / (float)n - 1;
}

static double objective(struct op_run *r, const float *upstream)
{
    double total = 0;
    op_run_forward(r);
    for (size_t i = 0; i < r->out; i++)
        total += (double)r->y[i] * (double)upstream[i];
    return total;
}

static void check_difference(struct op_run *r, const float *upstream, float *at, double analytic, const char *what,
                             size_t i)
{
    float saved = *at;
    *at = saved + STEP;
    double above = objective(r, upstream);
    *at = saved - STEP;
    double below = objective(r, upstream);
    *at = saved;
    double numeric = (above - below) / (2 * (double)STEP);
    ck_assert_msg(fabs(numeric - analytic) <= 3e-3 * fmax(1, fabs(numeric)),
                  "%s %s[%zu]: difference %.6g, backward %.6g", r->c.l->row->k.names[0], what, i, numeric, analytic);
}

/* Returns the number of inputs. */
static size_t start(struct op_run *r, const struct gradient_case *c)
{
    json_auto_t *args = json_loads(c->args, 0, NULL);
    struct shape in[] = { c->in, c->more[0], c->more[1] };
    size_t nin = c->more[0].rank == 0 ? 1 : c->more[1].rank == 0 ? 2 : 3;
    op_run_init(r, layer_rows[c->id].k.names[0], args, in, nin, EXAMPLES, c->training);
    return nin;
}

/* Padding of a different length in each example, the first of which is padding alone. */
static void add_masks(struct op_run *r, size_t nin, size_t n, float *mask, float *gradient)
{
    for (size_t k = 0; k < n; k++, mask += MASK_SIZE, gradient += MASK_SIZE) {
        for (size_t i = 0; i < MASK_SIZE; i++) {
            size_t step = (i % MASK_STEPS + 3 * k) % MASK_STEPS;
            mask[i] = step < i / MASK_STEPS * 2 ? (float)(1 + i % 3) : 0;
            gradient[i] = NAN;
        }
        r->c.x[nin + k] = mask;
        r->c.dx[nin + k] = gradient;
    }
}

enum masks { UNMASKED, ONE_MASK, MASK_EACH };

static void check_case(const struct gradient_case *c, enum masks masks)
{
    struct op_run r;
    size_t nin = start(&r, c);
    float mask[3 * MASK_SIZE], gradient[3 * MASK_SIZE] = { 0 };
    if (masks != UNMASKED)
        add_masks(&r, nin, masks == ONE_MASK ? 1 : nin, mask, gradient);
    auto_free float *upstream = xcalloc(r.out, sizeof(float));
    draw(upstream, r.out, 1);
    draw(r.x, r.in, 2);
    float *x = r.x;
    for (size_t k = 0; k < nin && (c->id == LAYER_MAXIMUM || c->id == LAYER_MINIMUM); x += r.each[k++])
        for (size_t i = 0; i < r.each[k]; i++) /* a STEP makes no ties */
            x[i] = floorf(x[i] * 16) / 16 + (float)k / 48;
    if (takes_largest(c->id))
        spread(r.x, r.in);
    for (size_t i = 0; i < r.in && (c->id == LAYER_EMBEDDING || c->id == LAYER_CATEGORY_ENCODING);
         i++) /* the row stays the same within a STEP */
        r.x[i] = (float)(i * 7 % 4) + 0.5F;
    for (size_t i = 0; i < model_variables(r.m); i++) {
        const struct variable *v = model_variable(r.m, i);
        draw(r.params + v->offset, v->count, 3 + (uint32_t)i);
        for (size_t k = 0; k < v->count && strstr(v->name, "variance") != NULL; k++)
            r.params[v->offset + k] = 0.5F + fabsf(r.params[v->offset + k]);
    }

    memcpy(r.dy, upstream, r.out * sizeof(float));
    op_run_forward(&r);
    op_run_backward(&r);
    for (size_t i = 0; i < COUNT_OF(gradient); i++)
        ck_assert(gradient[i] == 0);
    auto_free float *grads = xmemdup(r.grads, (r.m->size + 1) * sizeof(float));
    for (size_t i = 0; i < r.in; i++)
        check_difference(&r, upstream, &r.x[i], (double)r.dx[i], "dx", i);
    for (size_t i = 0; i < model_variables(r.m); i++) {
        const struct variable *v = model_variable(r.m, i);
        for (size_t k = 0; k < v->count && v->kind == VAR_TRAINABLE; k++)
            check_difference(&r, upstream, &r.params[v->offset + k], (double)grads[v->offset + k], v->name, k);
    }
    op_run_fini(&r);
}

START_TEST(every_row)
{
    for (int id = 0; id < LAYER_COUNT; id++) {
        int cases = 0;
        for (size_t i = 0; i < COUNT_OF(CASES); i++) {
            if (CASES[i].id != (enum layer_id)id)
                continue;
            check_case(&CASES[i], UNMASKED);
            cases++;
        }
        ck_assert_msg(cases > 0, "%s has no gradient case", layer_rows[id].k.names[0]);
    }
}
END_TEST

START_TEST(rows_with_a_mask)
{
    check_case(&MASKED[_i], ONE_MASK);
}
END_TEST

START_TEST(rows_with_a_mask_for_each_input)
{
    check_case(&MASKED_EACH[_i], MASK_EACH);
}
END_TEST

/* A step of which one number is mask_value stays. */
START_TEST(a_masked_step_is_zero_and_has_no_gradient)
{
    json_auto_t *args = json_loads("{\"mask_value\": 0.5}", 0, NULL);
    struct shape in = { .rank = 2, .dim = { 3, 2 } };
    const float x[6] = { 0.5F, 0.5F, 0.5F, 2, 1, 3 }, y[6] = { 0, 0, 0.5F, 2, 1, 3 };
    struct op_run r;
    op_run_init(&r, "Masking", args, &in, 1, 1, true);
    memcpy(r.x, x, sizeof(x));
    for (size_t i = 0; i < 6; i++)
        r.dy[i] = (float)(i + 1);
    op_run_forward(&r);
    op_run_backward(&r);
    ck_assert_mem_eq(r.y, y, sizeof(y));
    for (size_t i = 0; i < 6; i++)
        ck_assert(r.dx[i] == (i < 2 ? 0 : (float)(i + 1)));
    op_run_fini(&r);
}
END_TEST

/* Both tables have every row, under the same class name as the list of layers. */
START_TEST(tables_agree)
{
    static const char *const NAMES[] = {
#define X(id, name) name,
        LAYERS(X)
#undef X
    };
    for (int id = 0; id < LAYER_COUNT; id++) {
        const struct op_row *op = &op_rows[id];
        ck_assert_str_eq(layer_rows[id].k.names[0], NAMES[id]);
        ck_assert(layer_rows[id].shape != NULL && layer_rows[id].auto_name != NULL);
        ck_assert_msg(op->view != NULL || op->forward != NULL, "%s does not compute", NAMES[id]);
        ck_assert_msg((op->forward == NULL) == (op->backward == NULL), "%s computes one way only", NAMES[id]);
    }
}
END_TEST

/* Keras's own default of data_format is a setting of the user's. ZeroPadding1D of older Kerases has none. */
START_TEST(data_format_is_written)
{
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        const struct kind *k = &layer_rows[CASES[i].id].k;
        struct op_run r;
        start(&r, &CASES[i]);
        json_auto_t *layer = layer_json(r.c.l);
        const json_t *format = json_object_get(json_object_get(layer, "config"), "data_format");
        for (size_t a = 0; a < k->nargs && CASES[i].id != LAYER_ZERO_PADDING_1D; a++)
            ck_assert_msg(strcmp(k->args[a].name, "data_format") != 0 || json_is_string(format), "%s has none",
                          k->names[0]);
        ck_assert(format == NULL || strcmp(json_string_value(format), "channels_last") == 0);
        op_run_fini(&r);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/gradients");
    TCase *t = tcase_create("gradients");
    tcase_add_test(t, every_row);
    tcase_add_test(t, a_masked_step_is_zero_and_has_no_gradient);
    tcase_add_loop_test(t, rows_with_a_mask, 0, COUNT_OF(MASKED));
    tcase_add_loop_test(t, rows_with_a_mask_for_each_input, 0, COUNT_OF(MASKED_EACH));
    tcase_add_test(t, tables_agree);
    tcase_add_test(t, data_format_is_written);
    suite_add_tcase(s, t);
    return s;
}
