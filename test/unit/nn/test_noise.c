/* Layers that draw random numbers while they train: what they draw, and that nothing else decides it. */
#include "base/mem.h"
#include "golden.h"
#include "op_run.h"

static const char *const LAYERS_OF_NOISE[][2] = { { "Dropout", "{\"rate\": 0.5}" },
                                                  { "SpatialDropout1D", "{\"rate\": 0.5}" },
                                                  { "GaussianNoise", "{\"stddev\": 0.5}" } };
enum { POSITIONS = 6, CHANNELS = 40, EACH = POSITIONS * CHANNELS };

/* What the layer makes of examples that are all ones, from `position` on. New. */
static float *noise(const char *class_name, const char *args, size_t n, int64_t position, int64_t epoch, uint64_t seed)
{
    const struct shape in = shape_of(2, (int64_t[]){ POSITIONS, CHANNELS });
    json_auto_t *arguments = json_loads(args, 0, NULL);
    float *ret = xcalloc(n * EACH, sizeof(*ret));
    struct op_run r;
    op_run_init(&r, class_name, arguments, &in, 1, n, true);
    for (size_t i = 0; i < r.in; i++)
        r.x[i] = 1;
    r.c.position = position;
    r.c.epoch = epoch;
    r.c.seed = seed;
    op_run_forward(&r);
    memcpy(ret, r.y, n * EACH * sizeof(*ret));
    op_run_fini(&r);
    return ret;
}

START_TEST(noise_is_named_by_the_example)
{
    const char *layer = LAYERS_OF_NOISE[_i][0], *args = LAYERS_OF_NOISE[_i][1];
    auto_free float *pair = noise(layer, args, 2, 100, 2, 7), *second = noise(layer, args, 1, 101, 2, 7);
    auto_free float *epoch = noise(layer, args, 1, 100, 3, 7), *seed = noise(layer, args, 1, 100, 2, 8);
    ck_assert_mem_eq(pair + EACH, second, EACH * sizeof(float));
    ck_assert_mem_ne(pair, second, EACH * sizeof(float));
    ck_assert_mem_ne(pair, epoch, EACH * sizeof(float));
    ck_assert_mem_ne(pair, seed, EACH * sizeof(float));
}
END_TEST

START_TEST(seed_of_a_layer_replaces_that_of_the_run)
{
    auto_free float *a = noise("Dropout", "{\"rate\": 0.5, \"seed\": 3}", 1, 100, 2, 7);
    auto_free float *b = noise("Dropout", "{\"rate\": 0.5, \"seed\": 3}", 1, 100, 2, 8);
    auto_free float *c = noise("Dropout", "{\"rate\": 0.5, \"seed\": 4}", 1, 100, 2, 7);
    ck_assert_mem_eq(a, b, EACH * sizeof(float));
    ck_assert_mem_ne(a, c, EACH * sizeof(float));
}
END_TEST

START_TEST(spatial_dropout_drops_whole_channels)
{
    enum { EXAMPLES = 400 };
    auto_free float *y = noise("SpatialDropout1D", "{\"rate\": 0.25}", EXAMPLES, 0, 0, 1);
    double kept = 0;
    for (size_t e = 0; e < EXAMPLES; e++)
        for (size_t k = 0; k < CHANNELS; k++) {
            float first = y[e * EACH + k];
            ck_assert_msg(first == 0 || fabsf(first - 1 / 0.75F) < 1e-5F, "%g", (double)first);
            kept += first != 0;
            for (size_t p = 1; p < POSITIONS; p++)
                ck_float_eq(y[e * EACH + p * CHANNELS + k], first);
        }
    ck_assert_double_eq_tol(kept / (EXAMPLES * CHANNELS), 0.75, 0.014); /* four deviations */
}
END_TEST

START_TEST(gaussian_noise_has_its_deviation)
{
    enum { EXAMPLES = 100, N = EXAMPLES * EACH };
    auto_free float *y = noise("GaussianNoise", "{\"stddev\": 0.5}", EXAMPLES, 0, 0, 1);
    double sum = 0, squares = 0, beyond = 0;
    for (size_t i = 0; i < N; i++) {
        double z = ((double)y[i] - 1) / 0.5;
        sum += z;
        squares += z * z;
        beyond += z > 1;
    }
    ck_assert_double_eq_tol(sum / N, 0, 0.026); /* four deviations, here and below */
    ck_assert_double_eq_tol(squares / N, 1, 0.037);
    ck_assert_double_eq_tol(beyond / N, 0.15866, 0.0095);
}
END_TEST

START_TEST(noise_is_absent_from_inference)
{
    static const char *const QUIET[][2] = { { "Dropout", "{\"rate\": 0}" },
                                            { "SpatialDropout1D", "{\"rate\": 0}" },
                                            { "GaussianNoise", "{\"stddev\": 0}" } };
    const struct shape in = shape_of(2, (int64_t[]){ POSITIONS, CHANNELS });
    json_auto_t *args = json_loads(LAYERS_OF_NOISE[_i][1], 0, NULL), *none = json_loads(QUIET[_i][1], 0, NULL);
    struct op_run r;
    op_run_init(&r, LAYERS_OF_NOISE[_i][0], args, &in, 1, 1, false);
    ck_assert(op_run_is_view(&r));
    op_run_fini(&r);
    op_run_init(&r, QUIET[_i][0], none, &in, 1, 1, true);
    ck_assert(op_run_is_view(&r));
    op_run_fini(&r);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/noise");
    TCase *t = tcase_create("noise");
    tcase_add_loop_test(t, noise_is_named_by_the_example, 0, COUNT_OF(LAYERS_OF_NOISE));
    tcase_add_test(t, seed_of_a_layer_replaces_that_of_the_run);
    tcase_add_test(t, spatial_dropout_drops_whole_channels);
    tcase_add_test(t, gaussian_noise_has_its_deviation);
    tcase_add_loop_test(t, noise_is_absent_from_inference, 0, COUNT_OF(LAYERS_OF_NOISE));
    suite_add_tcase(s, t);
    return s;
}
