#include "check_main.h"
#include "nn/initializer.h"

#include "nn/catalog.h"
#include "nn/named.h"
#include "nn/regularizer.h"

static struct initializer parse(const char *text)
{
    struct err e = { 0 };
    struct initializer i = { 0 };
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    ck_ok_e(initializer_parse(&n, "zeros", &i, &e));
    return i;
}

static void refused(const char *text, const char *message)
{
    struct err e = { 0 };
    struct initializer i;
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    ck_assert_msg(initializer_parse(&n, "zeros", &i, &e) < 0, "%s was taken", text);
    ck_message_has(e, message);
}

static float *draw(const struct initializer *i, const struct shape *s, uint64_t seed)
{
    struct rng r = rng_at(seed, RNG_INIT, 0, 0);
    float *v = xcalloc(shape_elements(s), sizeof(*v));
    initializer_draw(i, s, &r, v);
    return v;
}

/* What the values of each named form must be: half-width or cut of the range, and deviation. */
START_TEST(ranges_and_deviations_are_keras)
{
    const struct shape dense = shape_of(2, (int64_t[]){ 300, 100 });
    const double cut = 2 / 0.87962566103423978; /* truncated: two corrected deviations */
    static const double FAN_IN_ = 300, FAN_OUT_ = 100, FAN_AVG_ = 200;
    const struct {
        const char *text;
        double limit, deviation;
    } CASES[] = {
        { "\"glorot_uniform\"", sqrt(6 / (FAN_IN_ + FAN_OUT_)), sqrt(1 / FAN_AVG_) },
        { "\"GlorotNormal\"", cut * sqrt(1 / FAN_AVG_), sqrt(1 / FAN_AVG_) },
        { "\"he_uniform\"", sqrt(6 / FAN_IN_), sqrt(2 / FAN_IN_) },
        { "\"he_normal\"", cut * sqrt(2 / FAN_IN_), sqrt(2 / FAN_IN_) },
        { "\"lecun_uniform\"", sqrt(3 / FAN_IN_), sqrt(1 / FAN_IN_) },
        { "\"lecun_normal\"", cut * sqrt(1 / FAN_IN_), sqrt(1 / FAN_IN_) },
        { "{\"VarianceScaling\": {\"scale\": 3, \"mode\": \"fan_out\", \"distribution\": \"uniform\"}}",
          sqrt(9 / FAN_OUT_), sqrt(3 / FAN_OUT_) },
        { "{\"VarianceScaling\": {\"distribution\": \"untruncated_normal\"}}", HUGE_VAL, sqrt(1 / FAN_IN_) },
        { "\"random_uniform\"", 0.05, 0.05 / sqrt(3) },
        { "\"random_normal\"", HUGE_VAL, 0.05 },
        { "\"truncated_normal\"", 0.1, 0.05 * 0.87962566103423978 },
    };
    for (size_t k = 0; k < COUNT_OF(CASES); k++) {
        const struct initializer i = parse(CASES[k].text);
        auto_free float *v = draw(&i, &dense, 11);
        double sum = 0, squares = 0, most = 0;
        const size_t n = shape_elements(&dense);
        for (size_t j = 0; j < n; j++) {
            sum += (double)v[j];
            squares += (double)v[j] * (double)v[j];
            most = fmax(most, fabs((double)v[j]));
        }
        ck_assert_msg(most <= CASES[k].limit * (1 + 1e-6), "%s: %g is beyond %g", CASES[k].text, most, CASES[k].limit);
        ck_assert_msg(isinf(CASES[k].limit) || most > CASES[k].limit * 0.98, "%s: only to %g", CASES[k].text, most);
        ck_near(sum / (double)n, 0, CASES[k].deviation * 0.03);
        ck_near(sqrt(squares / (double)n), CASES[k].deviation, CASES[k].deviation * 0.02);
    }
}
END_TEST

START_TEST(fans_of_kernels_count_the_receptive_field)
{
    const struct initializer i = parse("\"he_uniform\"");
    const struct shape conv = shape_of(4, (int64_t[]){ 3, 3, 32, 64 }), bias = shape_of(1, (int64_t[]){ 600 });
    auto_free float *v = draw(&i, &conv, 1), *b = draw(&i, &bias, 1);
    double most = 0, most_bias = 0;
    for (size_t j = 0; j < shape_elements(&conv); j++)
        most = fmax(most, fabs((double)v[j]));
    for (size_t j = 0; j < 600; j++)
        most_bias = fmax(most_bias, fabs((double)b[j]));
    ck_near(most, sqrt(6.0 / (9 * 32)), 0.002);
    ck_near(most_bias, sqrt(6.0 / 600), 0.002);
}
END_TEST

START_TEST(the_seed_decides_everything)
{
    const struct shape s = shape_of(2, (int64_t[]){ 8, 8 });
    for (size_t k = 0; k < INITIALIZERS.count; k++) {
        auto_free char *text = xasprintf("\"%s\"", catalog_row(&INITIALIZERS, k)->names[0]);
        const struct initializer i = parse(text);
        auto_free float *a = draw(&i, &s, 5), *b = draw(&i, &s, 5), *c = draw(&i, &s, 6);
        const bool fixed = i.kind == INIT_ZEROS || i.kind == INIT_CONSTANT || i.kind == INIT_IDENTITY;
        ck_assert_mem_eq(a, b, 64 * sizeof(*a));
        ck_assert_msg((memcmp(a, c, 64 * sizeof(*a)) == 0) == fixed, "%s", text);
    }
    const struct initializer own = parse("{\"GlorotUniform\": {\"seed\": 3}}");
    auto_free float *a = draw(&own, &s, 5), *b = draw(&own, &s, 6);
    ck_assert_mem_eq(a, b, 64 * sizeof(*a));
}
END_TEST

START_TEST(plain_values)
{
    const struct shape s = shape_of(2, (int64_t[]){ 2, 3 });
    const struct initializer ones = parse("\"ones\""), constant = parse("{\"Constant\": {\"value\": -2.5}}");
    const struct initializer identity = parse("{\"Identity\": {\"gain\": 3}}");
    auto_free float *a = draw(&ones, &s, 1), *b = draw(&constant, &s, 1), *c = draw(&identity, &s, 1);
    const float eye[6] = { 3, 0, 0, 0, 3, 0 };
    for (size_t j = 0; j < 6; j++) {
        ck_near(a[j], 1, 0);
        ck_near(b[j], -2.5, 0);
        ck_near(c[j], eye[j], 0);
    }
}
END_TEST

static void check_orthogonal(int64_t rows, int64_t cols)
{
    const struct initializer i = parse("{\"Orthogonal\": {\"gain\": 2}}");
    const struct shape s = shape_of(2, (int64_t[]){ rows, cols });
    auto_free float *v = draw(&i, &s, 9);
    const bool tall = rows >= cols; /* then the columns are orthonormal, else the rows */
    const int64_t vectors = tall ? cols : rows, length = tall ? rows : cols;
    for (int64_t p = 0; p < vectors; p++) {
        for (int64_t q = 0; q <= p; q++) {
            double dot = 0;
            for (int64_t k = 0; k < length; k++)
                dot += (double)(tall ? v[k * cols + p] : v[p * cols + k]) *
                       (double)(tall ? v[k * cols + q] : v[q * cols + k]);
            ck_near(dot, p == q ? 4 : 0, 1e-5);
        }
    }
}

START_TEST(orthogonal_is)
{
    check_orthogonal(20, 7);
    check_orthogonal(7, 20);
    check_orthogonal(16, 16);
}
END_TEST

START_TEST(every_name_reads_back)
{
    for (size_t k = 0; k < INITIALIZERS.count; k++) {
        const struct kind *row = catalog_row(&INITIALIZERS, k);
        for (size_t j = 0; j < KIND_NAMES_MAX && row->names[j] != NULL; j++) {
            auto_free char *text = xasprintf("\"%s\"", row->names[j]);
            const struct initializer i = parse(text);
            ck_assert_str_eq(i.class_name, row->names[0]);
            json_auto_t *config = initializer_json(&i);
            auto_free char *again_text = json_dumps(config, 0);
            const struct initializer again = parse(again_text);
            ck_assert_int_eq(again.kind, i.kind);
            ck_assert(again.a == i.a && again.b == i.b && again.scale == i.scale && again.mode == i.mode &&
                      again.distribution == i.distribution && again.has_seed == i.has_seed);
        }
    }
    struct err e = { 0 };
    struct initializer i;
    const struct node absent = { 0 };
    ck_ok_e(initializer_parse(&absent, "glorot_uniform", &i, &e));
    ck_assert_str_eq(i.class_name, "GlorotUniform");
}
END_TEST

START_TEST(bad_input_names_the_fault)
{
    struct err e = { 0 };
    refused("\"glorot_unifrom\"", "initializer 'glorot_unifrom' is not known; did you mean 'glorot_uniform'?");
    refused("{\"RandomUniform\": {\"minval\": 2, \"maxval\": 1}}", "minval 2 is greater than maxval 1");
    refused("{\"VarianceScaling\": {\"mode\": \"fan_inn\"}}", "fan_in");
    refused("{\"RandomNormal\": {\"stddev\": -1}}", "must be 0 or greater, not -1");
    const struct initializer identity = parse("\"identity\""), orthogonal = parse("\"orthogonal\"");
    const struct shape vector = shape_of(1, (int64_t[]){ 3 });
    ck_assert_int_lt(initializer_check(&identity, &vector, &e), 0);
    ck_message_has(e, "not shape (3,)");
    ck_assert_int_lt(initializer_check(&orthogonal, &vector, &e), 0);
}
END_TEST

/* ---- regularizers, too small for a file of their own ---- */

START_TEST(penalties_and_their_slopes)
{
    static const struct {
        const char *text;
        double loss;
        float slope[3];
    } CASES[] = {
        { "\"l1\"", 0.01 * 3.5, { 0.01F, -0.01F, 0 } },
        { "\"L2\"", 0.01 * 6.25, { 0.03F, -0.04F, 0 } },
        { "{\"L1L2\": {\"l1\": 0.1, \"l2\": 0.2}}", 0.1 * 3.5 + 0.2 * 6.25, { 0.7F, -0.9F, 0 } },
        { "\"l1_l2\"", 0, { 0, 0, 0 } },
    };
    const float w[3] = { 1.5F, -2, 0 };
    for (size_t k = 0; k < COUNT_OF(CASES); k++) {
        struct err e = { 0 };
        struct regularizer r;
        json_auto_t *v = named_json(CASES[k].text);
        struct node n = named_node(v);
        float g[3] = { 1, 1, 1 };
        ck_ok_e(regularizer_parse(&n, &r, &e));
        ck_near(regularizer_loss(&r, w, 3), CASES[k].loss, 1e-7);
        regularizer_gradient(&r, w, g, 3);
        for (size_t j = 0; j < 3; j++)
            ck_near(g[j], 1 + CASES[k].slope[j], 1e-6);
        json_auto_t *config = regularizer_json(&r);
        struct node again_node = named_node(config);
        struct regularizer again;
        ck_ok_e(regularizer_parse(&again_node, &again, &e));
        ck_assert(again.l1 == r.l1 && again.l2 == r.l2);
    }
}
END_TEST

START_TEST(regularizers_refuse)
{
    struct err e = { 0 };
    struct regularizer r;
    json_auto_t *misspelt = json_string("l3"), *later = json_string("OrthogonalRegularizer");
    struct node a = named_node(misspelt), b = named_node(later), absent = { 0 };
    ck_assert_int_lt(regularizer_parse(&a, &r, &e), 0);
    ck_message_has(e, "regularizer 'l3' is not known");
    ck_assert_int_lt(regularizer_parse(&b, &r, &e), 0);
    ck_message_has(e, "not supported yet");
    ck_ok_e(regularizer_parse(&absent, &r, &e));
    ck_assert(r.class_name == NULL && r.l1 == 0 && r.l2 == 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/initializer");
    TCase *t = tcase_create("initializer");
    tcase_add_test(t, ranges_and_deviations_are_keras);
    tcase_add_test(t, fans_of_kernels_count_the_receptive_field);
    tcase_add_test(t, the_seed_decides_everything);
    tcase_add_test(t, plain_values);
    tcase_add_test(t, orthogonal_is);
    tcase_add_test(t, every_name_reads_back);
    tcase_add_test(t, bad_input_names_the_fault);
    tcase_add_test(t, penalties_and_their_slopes);
    tcase_add_test(t, regularizers_refuse);
    suite_add_tcase(s, t);
    return s;
}
