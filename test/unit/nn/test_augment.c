/* Layers that change images while the model trains: the images against Keras's where the factor leaves no choice, and
 * what is drawn where it does. */
#include "base/mem.h"
#include "golden.h"
#include "op_run.h"

/* ---- golden cases; those of RandomCrop are Keras 2's, because Keras 3 crops nothing in inference ---- */

START_TEST(images_of_keras)
{
    json_auto_t *file = golden_read("test/data/nn/augment.json");
    const json_t *cases = json_object_get(file, "cases"), *c;
    size_t i;
    ck_assert_uint_ge(json_array_size(cases), 49);
    json_array_foreach(cases, i, c)
    {
        json_auto_t *args = json_deep_copy(json_object_get(c, "config"));
        const json_t *input = json_array_get(json_object_get(c, "inputs"), 0);
        const struct shape whole = golden_shape(input, 0), in = golden_shape(input, 1);
        struct op_run r;
        json_object_del(args, "class");
        op_run_init(&r, json_string_value(json_object_get(json_object_get(c, "config"), "class")), args, &in, 1,
                    (size_t)whole.dim[0], json_is_true(json_object_get(c, "training")));
        for (size_t k = 0; k < r.in; k++)
            r.x[k] = (float)json_number_value(json_array_get(json_object_get(input, "data"), k));
        op_run_forward(&r);
        ck_assert_uint_eq(r.out, json_array_size(json_object_get(json_object_get(c, "output"), "data")));
        golden_check(c, "output", json_object_get(c, "output"), r.y);
        op_run_fini(&r);
    }
}
END_TEST

/* ---- what is drawn: images of 3 x 4 pixels 0 .. 11 ---- */

enum { HEIGHT = 3, WIDTH = 4, PIXELS = HEIGHT * WIDTH };

static void start(struct op_run *r, const char *class_name, const char *text, size_t n, bool training)
{
    const struct shape in = shape_of(3, (int64_t[]){ HEIGHT, WIDTH, 1 });
    json_auto_t *args = json_loads(text, 0, NULL);
    op_run_init(r, class_name, args, &in, 1, n, training);
    for (size_t i = 0; i < r->in; i++)
        r->x[i] = (float)(i % PIXELS);
}

/* Which of both directions are reversed, by the corner where 0 is. */
static unsigned flipped(const float *y)
{
    static const size_t CORNERS[] = { 0, (HEIGHT - 1) * WIDTH, WIDTH - 1, PIXELS - 1 };
    for (unsigned f = 0; f < COUNT_OF(CORNERS); f++)
        if (y[CORNERS[f]] == 0)
            return f;
    ck_abort_msg("0 is in no corner");
}

START_TEST(flips_are_independent)
{
    static const struct {
        const char *mode;
        double share[4]; /* none, rows, columns, both */
    } CASES[] = { { "horizontal_and_vertical", { 0.25, 0.25, 0.25, 0.25 } },
                  { "vertical", { 0.5, 0.5, 0, 0 } },
                  { "horizontal", { 0.5, 0, 0.5, 0 } } };
    enum { N = 4000 };
    auto_free char *args = xasprintf("{\"mode\": \"%s\"}", CASES[_i].mode);
    size_t count[4] = { 0 };
    struct op_run r;
    start(&r, "RandomFlip", args, N, true);
    op_run_forward(&r);
    for (size_t i = 0; i < N; i++) {
        const float *y = r.y + i * PIXELS;
        unsigned f = flipped(y);
        count[f]++;
        for (size_t k = 0; k < PIXELS; k++) {
            size_t row = k / WIDTH, column = k % WIDTH;
            size_t at = ((f & 1) != 0 ? HEIGHT - 1 - row : row) * WIDTH + ((f & 2) != 0 ? WIDTH - 1 - column : column);
            ck_float_eq(y[k], at);
        }
    }
    for (size_t f = 0; f < 4; f++)
        ck_assert_double_eq_tol((double)count[f] / N, CASES[_i].share[f], 0.032); /* four deviations */
    op_run_fini(&r);
}
END_TEST

START_TEST(crops_are_everywhere)
{
    enum { N = 4000, CROP = 2 };
    size_t count[HEIGHT - CROP + 1][WIDTH - CROP + 1] = { 0 };
    struct op_run r;
    start(&r, "RandomCrop", "{\"height\": 2, \"width\": 2}", N, true);
    op_run_forward(&r);
    for (size_t i = 0; i < N; i++) {
        const float *y = r.y + i * CROP * CROP;
        size_t first = (size_t)y[0];
        ck_float_eq(y[1], first + 1);
        ck_float_eq(y[2], first + WIDTH);
        ck_float_eq(y[3], first + WIDTH + 1);
        count[first / WIDTH][first % WIDTH]++;
    }
    for (size_t k = 0; k < 2; k++)
        for (size_t m = 0; m < 3; m++)
            ck_assert_double_eq_tol((double)count[k][m] / N, 1.0 / 6, 0.024); /* four deviations */
    op_run_fini(&r);
}
END_TEST

/* An image that is as large as the part in one direction still moves in the other one. */
START_TEST(crops_of_the_whole_height)
{
    bool seen[WIDTH - 1] = { false };
    struct op_run r;
    start(&r, "RandomCrop", "{\"height\": 3, \"width\": 2}", 64, true);
    op_run_forward(&r);
    for (size_t i = 0; i < 64; i++) {
        size_t first = (size_t)r.y[i * 6];
        ck_assert_uint_lt(first, COUNT_OF(seen));
        seen[first] = true;
    }
    for (size_t k = 0; k < COUNT_OF(seen); k++)
        ck_assert(seen[k]);
    op_run_fini(&r);
}
END_TEST

/* Where an image is smaller than the part, training sees what inference sees. */
START_TEST(small_images_are_resized)
{
    struct op_run r;
    start(&r, "RandomCrop", "{\"height\": 1, \"width\": 8}", 1, true);
    op_run_forward(&r);
    for (size_t i = 0; i < 8; i++)
        ck_float_near(r.y[i], ((float[]){ 4, 4.25F, 4.75F, 5.25F, 5.75F, 6.25F, 6.75F, 7 })[i], 1e-6);
    op_run_fini(&r);
}
END_TEST

/* How far a value of a channel of coordinates has moved, which is linear between two pixels. */
static void check_even(const float *moved, size_t n, float least, float most)
{
    double sum = 0, squares = 0, width = (double)most - (double)least;
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(moved[i] >= least - 1e-5F && moved[i] <= most + 1e-5F, "%g", (double)moved[i]);
        double at = ((double)moved[i] - (double)least) / width - 0.5;
        sum += at;
        squares += at * at;
    }
    ck_assert_double_eq_tol(sum / (double)n, 0, 0.02); /* four deviations of 4,000 */
    ck_assert_double_eq_tol(squares / (double)n, 1.0 / 12, 0.005);
}

START_TEST(factors_are_drawn_evenly)
{
    enum { N = 4000, SIDE = 5 };
    static float down[N], right[N];
    const struct shape in = shape_of(3, (int64_t[]){ SIDE, SIDE, 2 });
    json_auto_t *args = json_loads("{\"height_factor\": 0.25, \"width_factor\": [-0.3, 0.1]}", 0, NULL);
    double together = 0;
    struct op_run r;
    op_run_init(&r, "RandomTranslation", args, &in, 1, N, true);
    for (size_t i = 0; i < r.in; i++)
        r.x[i] = (float)(i % 2 == 0 ? i / 2 / SIDE % SIDE : i / 2 % SIDE);
    op_run_forward(&r);
    for (size_t i = 0; i < N; i++) {
        const float *middle = r.y + (i * SIDE * SIDE + SIDE * 2 + 2) * 2;
        down[i] = 2 - middle[0];
        right[i] = 2 - middle[1];
        together += (double)down[i] / 1.25 * ((double)right[i] + 0.5);
    }
    check_even(down, N, -1.25F, 1.25F);
    check_even(right, N, -1.5F, 0.5F);
    ck_assert_double_eq_tol(together / N, 0, 0.022); /* they are independent */
    op_run_fini(&r);
}
END_TEST

/* Each channel moves away from its mean by one factor of the example. */
START_TEST(contrast_of_an_example)
{
    static const struct {
        const char *factor;
        float least, most;
    } CASES[] = { { "0.5", 0.5F, 1.5F }, { "[0.1, 0.7]", 0.9F, 1.7F } };
    enum { N = 4000, CHANNELS = 2, POINTS = 6 };
    static float factor[N];
    static const float X[POINTS * CHANNELS] = { 1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 9, 90 };
    const struct shape in = shape_of(3, (int64_t[]){ 2, 3, CHANNELS });
    auto_free char *text = xasprintf("{\"factor\": %s, \"value_range\": [-1000, 1000]}", CASES[_i].factor);
    json_auto_t *args = json_loads(text, 0, NULL);
    struct op_run r;
    op_run_init(&r, "RandomContrast", args, &in, 1, N, true);
    for (size_t i = 0; i < r.in; i++)
        r.x[i] = X[i % COUNT_OF(X)];
    op_run_forward(&r);
    for (size_t i = 0; i < N; i++) {
        const float *y = r.y + i * COUNT_OF(X);
        factor[i] = (y[0] - 4) / (1 - 4);
        for (size_t k = 0; k < COUNT_OF(X); k++) {
            const float mean = k % CHANNELS == 0 ? 4 : 40;
            ck_float_near(y[k], (X[k] - mean) * factor[i] + mean, 1e-4);
        }
    }
    check_even(factor, N, CASES[_i].least, CASES[_i].most);
    op_run_fini(&r);
}
END_TEST

START_TEST(contrast_is_cut_to_pixels)
{
    struct op_run r;
    start(&r, "RandomContrast", "{\"factor\": [0, 1]}", 20, true);
    for (size_t i = 0; i < r.in; i++)
        r.x[i] = i % 2 == 0 ? 0 : 255;
    op_run_forward(&r);
    for (size_t i = 0; i < r.out; i++)
        ck_float_eq(r.y[i], r.x[i]);
    op_run_fini(&r);
}
END_TEST

/* The gradient of values far inside and far outside of value_range, by differences. */
START_TEST(gradient_of_cut_values)
{
    static const float X[PIXELS] = { -9, -0.5F, 0.25F, 8, 0.5F, 9, -0.25F, 0, -8, 0.75F, 1, -1 };
    enum { N = 3 };
    const double step = 1.0 / 64;
    struct op_run r;
    start(&r, _i == 0 ? "RandomContrast" : "RandomBrightness",
          _i == 0 ? "{\"factor\": 0.5, \"value_range\": [-3, 3]}" : "{\"factor\": 0.1, \"value_range\": [-4, 4]}", N,
          true);
    for (size_t i = 0; i < r.in; i++) {
        r.x[i] = X[i % PIXELS];
        r.dy[i] = (float)(i % 5) - 1.5F;
    }
    op_run_forward(&r);
    op_run_backward(&r);
    for (size_t i = 0; i < r.in; i++) {
        const float saved = r.x[i];
        double difference = 0;
        for (int sign = -1; sign <= 1; sign += 2) {
            r.x[i] = saved + (float)(sign * step);
            op_run_forward(&r);
            for (size_t k = 0; k < r.out; k++)
                difference += sign * (double)r.y[k] * ((double)(k % 5) - 1.5);
        }
        r.x[i] = saved;
        ck_float_near(r.dx[i], difference / (2 * step), 1e-3);
    }
    op_run_fini(&r);
}
END_TEST

static const char *const LAYERS_OF_AUGMENT[][2] = { { "RandomFlip", "{}" },
                                                    { "RandomTranslation",
                                                      "{\"height_factor\": 0.5, \"width_factor\": 0.5}" },
                                                    { "RandomRotation", "{\"factor\": 0.5}" },
                                                    { "RandomZoom", "{\"height_factor\": 0.5}" },
                                                    { "RandomContrast", "{\"factor\": 0.5}" },
                                                    { "RandomBrightness", "{\"factor\": 0.5}" },
                                                    { "RandomCrop", "{\"height\": 2, \"width\": 3}" } };

/* The images of 20 examples from `position` on. */
static void images(size_t layer, int64_t position, int64_t epoch, uint64_t seed, float ret[20 * PIXELS])
{
    struct op_run r;
    start(&r, LAYERS_OF_AUGMENT[layer][0], LAYERS_OF_AUGMENT[layer][1], 20, true);
    r.c.position = position;
    r.c.epoch = epoch;
    r.c.seed = seed;
    op_run_forward(&r);
    memset(ret, 0, 20 * PIXELS * sizeof(*ret));
    memcpy(ret, r.y, r.out * sizeof(*ret));
    op_run_fini(&r);
}

START_TEST(images_are_named_by_the_example)
{
    static float a[20 * PIXELS], b[20 * PIXELS];
    size_t each = strcmp(LAYERS_OF_AUGMENT[_i][0], "RandomCrop") == 0 ? 6 : PIXELS;
    images((size_t)_i, 100, 2, 7, a);
    images((size_t)_i, 105, 2, 7, b);
    ck_assert_mem_eq(a + 5 * each, b, 15 * each * sizeof(float));
    images((size_t)_i, 100, 3, 7, b);
    ck_assert_mem_ne(a, b, sizeof(a));
    images((size_t)_i, 100, 2, 8, b);
    ck_assert_mem_ne(a, b, sizeof(a));
    images((size_t)_i, 100, 2, 7, b);
    ck_assert_mem_eq(a, b, sizeof(a));
}
END_TEST

START_TEST(inference_sees_the_image)
{
    struct op_run r;
    start(&r, LAYERS_OF_AUGMENT[_i][0], LAYERS_OF_AUGMENT[_i][1], 1, false);
    ck_assert_int_eq(op_run_is_view(&r), strcmp(LAYERS_OF_AUGMENT[_i][0], "RandomCrop") != 0);
    op_run_fini(&r);
}
END_TEST

/* What an export has: Keras 2 and 3 read it, and it means the same there. */
START_TEST(factors_are_written)
{
    static const struct {
        const char *layer, *args, *key, *want;
    } CASES[] = {
        { "RandomRotation", "{\"factor\": 0.25}", "factor", "0.25" },
        { "RandomRotation", "{\"factor\": -0.25}", "factor", "0.25" },
        { "RandomRotation", "{\"factor\": [0.5, -0.25]}", "factor", "[-0.25, 0.5]" },
        { "RandomTranslation", "{\"height_factor\": [0.5, 1], \"width_factor\": 0}", "height_factor", "[0.5, 1.0]" },
        { "RandomTranslation", "{\"height_factor\": 0.5, \"width_factor\": 1}", "width_factor", "1.0" },
        { "RandomZoom", "{\"height_factor\": 0.5}", "width_factor", "null" },
        { "RandomZoom", "{\"height_factor\": 0.5, \"width_factor\": 0.5}", "width_factor", "0.5" },
        { "RandomContrast", "{\"factor\": 0.25}", "factor", "[0.25, 0.25]" },
        { "RandomContrast", "{\"factor\": [0.75, 0.25]}", "factor", "[0.75, 0.25]" },
        { "RandomContrast", "{\"factor\": 0.25}", "value_range", "[0.0, 255.0]" },
        { "RandomBrightness", "{\"factor\": [-0.25, 0.5]}", "factor", "[-0.25, 0.5]" },
        { "RandomBrightness", "{\"factor\": 0.5, \"value_range\": [1, -1]}", "value_range", "[-1.0, 1.0]" },
    };
    struct op_run r;
    start(&r, CASES[_i].layer, CASES[_i].args, 1, true);
    json_auto_t *layer = layer_json(r.c.l);
    const json_t *value = json_object_get(json_object_get(layer, "config"), CASES[_i].key);
    auto_free char *text = json_dumps(value, JSON_ENCODE_ANY);
    ck_assert_str_eq(text, CASES[_i].want);
    op_run_fini(&r);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/augment");
    TCase *t = tcase_create("augment");
    tcase_add_test(t, images_of_keras);
    tcase_add_loop_test(t, flips_are_independent, 0, 3);
    tcase_add_test(t, crops_are_everywhere);
    tcase_add_test(t, crops_of_the_whole_height);
    tcase_add_test(t, small_images_are_resized);
    tcase_add_test(t, factors_are_drawn_evenly);
    tcase_add_loop_test(t, contrast_of_an_example, 0, 2);
    tcase_add_test(t, contrast_is_cut_to_pixels);
    tcase_add_loop_test(t, gradient_of_cut_values, 0, 2);
    tcase_add_loop_test(t, images_are_named_by_the_example, 0, COUNT_OF(LAYERS_OF_AUGMENT));
    tcase_add_loop_test(t, factors_are_written, 0, 12);
    tcase_add_loop_test(t, inference_sees_the_image, 0, COUNT_OF(LAYERS_OF_AUGMENT));
    suite_add_tcase(s, t);
    return s;
}
