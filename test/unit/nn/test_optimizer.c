#include "check_main.h"
#include "nn/optimizers/optimizer.h"

#include "base/rng.h"
#include "nn/named.h"

enum { VARS_MAX = 2, SPACE = 64 };

static struct optimizer *parse_json(const json_t *v)
{
    struct err e = { 0 };
    struct optimizer *o = NULL;
    struct node n = named_node(v);
    ck_assert_msg(optimizer_parse(&n, &o, &e) == 0, "%s", e.msg);
    return o;
}

static struct optimizer *parse(const char *text)
{
    json_auto_t *v = named_json(text);
    return parse_json(v);
}

static void refused(const char *text, const char *message)
{
    struct err e = { 0 };
    struct optimizer *o = NULL;
    json_auto_t *v = named_json(text);
    struct node n = named_node(v);
    ck_assert_msg(optimizer_parse(&n, &o, &e) < 0, "%s was taken", text);
    ck_message_has(e, message);
    ck_assert_int_eq(e.code, ERR_INPUT);
}

/* The optimizer of a golden case. */
static struct optimizer *of_case(const json_t *c)
{
    json_auto_t *object = named_object(json_object_get(c, "config"));
    json_t *rate = json_at(object, "config.learning_rate");
    if (json_is_object(rate))
        json_object_set_new(json_object_get(object, "config"), "learning_rate", named_object(rate));
    return parse_json(object);
}

/* All variables of a case in one vector, and a vector for each slot. */
struct params {
    float w[SPACE], g[SPACE], slot[OPTIMIZER_MAX_SLOTS][SPACE];
    size_t offset[VARS_MAX], count[VARS_MAX], nvars, n;
};

static void load(float *to, const struct params *p, const json_t *tensors)
{
    for (size_t i = 0; i < p->nvars; i++) {
        auto_free float *v = golden_floats(json_array_get(tensors, i));
        memcpy(to + p->offset[i], v, p->count[i] * sizeof(*v));
    }
}

static void params_init(struct params *p, const struct optimizer *o, const json_t *c)
{
    const json_t *vars = json_object_get(c, "vars");
    *p = (struct params){ .nvars = json_array_size(vars) };
    for (size_t i = 0; i < p->nvars; i++) {
        p->offset[i] = p->n;
        p->count[i] = golden_count(json_array_get(vars, i));
        p->n += p->count[i];
    }
    ck_assert_uint_le(p->n, SPACE);
    load(p->w, p, vars);
    for (int s = 0; s < optimizer_slots(o); s++)
        for (size_t i = 0; i < p->n; i++)
            p->slot[s][i] = optimizer_slot_init(o, s);
}

static void step(const struct optimizer *o, struct opt_state *state, struct params *p)
{
    struct opt_step s;
    float *slots[] = { p->slot[0], p->slot[1], p->slot[2] };
    optimizer_clip(o, p->g, p->offset, p->count, p->nvars);
    optimizer_begin(o, state, &s);
    optimizer_apply(o, &s, p->w, slots, p->g, p->n);
    optimizer_end(o, state);
}

/* Keras's names of our slots, in our order; a case has those that it uses. */
static const char *const SLOTS[][5] = {
    { "SGD", "momentum" },
    { "Adam", "momentum", "velocity", "velocity_hat" },
    { "AdamW", "momentum", "velocity", "velocity_hat" },
    { "Nadam", "momentum", "velocity" },
    { "Adamax", "momentum", "norm" },
    { "Lion", "momentum" },
    { "RMSprop", "velocity", "average_gradient", "momentum" },
    { "Adagrad", "accumulator" },
    { "Adadelta", "accumulated_grad", "accumulated_delta_var" },
    { "Ftrl", "accumulator", "linear" },
};

static void check_slots(const struct optimizer *o, const struct params *p, const json_t *c)
{
    int slot = 0;
    for (size_t k = 0; k < COUNT_OF(SLOTS); k++) {
        for (int j = 1; strcmp(SLOTS[k][0], optimizer_name(o)) == 0 && j < 5 && SLOTS[k][j] != NULL; j++) {
            bool found = false;
            for (size_t v = 0; v < p->nvars; v++) {
                auto_free char *key = xasprintf("v%zu_%s", v, SLOTS[k][j]);
                const json_t *want = json_object_get(json_object_get(c, "slots"), key);
                if (want != NULL)
                    golden_check(c, key, want, p->slot[slot] + p->offset[v]);
                found = found || want != NULL;
            }
            slot += found;
        }
    }
    ck_assert_int_eq(slot, optimizer_slots(o));
}

static void run_case(const json_t *c)
{
    AUTO(optimizer) *o = of_case(c);
    struct params p;
    struct opt_state state = { 0 };
    params_init(&p, o, c);
    for (size_t k = 0; k < json_array_size(json_object_get(c, "grads")); k++) {
        load(p.g, &p, json_array_get(json_object_get(c, "grads"), k));
        step(o, &state, &p);
        for (size_t v = 0; v < p.nvars; v++)
            golden_check(c, "variable", json_array_get(json_array_get(json_object_get(c, "after"), k), v),
                         p.w + p.offset[v]);
    }
    check_slots(o, &p, c);
    const json_t *product = json_at(c, "slots.variable");
    if (product != NULL)
        golden_near(c, "product of u", (double)golden_at(product, 0), state.aux);
}

/* Keras 3's own sparse cases square repeated rows one by one. A ps does as TensorFlow 1 does (test_optimizer_tf1). */
START_TEST(every_golden_optimizer_moves_as_keras)
{
    json_auto_t *file = golden_read("test/data/nn/optimizers.json");
    size_t i, ran = 0;
    const json_t *c;
    json_array_foreach(json_object_get(file, "cases"), i, c)
    {
        if (strncmp(named_case(c), "sparse_", 7) == 0 || json_is_true(json_at(c, "config.use_ema")))
            continue;
        run_case(c);
        ran++;
    }
    ck_assert_uint_eq(ran, 29);
}
END_TEST

static const char *const VARIANTS[] = {
    "\"SGD\"",
    "{\"SGD\": {\"momentum\": 0.9, \"weight_decay\": 0.01}}",
    "{\"SGD\": {\"momentum\": 0.9, \"nesterov\": true}}",
    "\"Adam\"",
    "{\"Adam\": {\"amsgrad\": true}}",
    "\"AdamW\"",
    "\"Nadam\"",
    "\"Adamax\"",
    "\"Lion\"",
    "\"RMSprop\"",
    "{\"RMSprop\": {\"momentum\": 0.9}}",
    "{\"RMSprop\": {\"centered\": true}}",
    "{\"RMSprop\": {\"centered\": true, \"momentum\": 0.9}}",
    "\"Adagrad\"",
    "\"Adadelta\"",
    "\"Ftrl\"",
    "{\"Ftrl\": {\"l1_regularization_strength\": 0.01, \"learning_rate_power\": -0.4}}",
    "\"Counting\"",
};

enum { N = 4999 };

struct vectors {
    float w[N], slot[OPTIMIZER_MAX_SLOTS][N];
};

static void vectors_init(struct vectors *v, const struct optimizer *o, float *g)
{
    struct rng r = rng_at(7, RNG_TEST, 0, 0);
    for (size_t i = 0; i < N; i++) {
        v->w[i] = 4 * rng_uniform(&r) - 2;
        g[i] = 4 * rng_uniform(&r) - 2;
        for (int s = 0; s < OPTIMIZER_MAX_SLOTS; s++)
            v->slot[s][i] = s < optimizer_slots(o) ? optimizer_slot_init(o, s) : 0;
    }
}

static void apply_range(const struct optimizer *o, const struct opt_step *s, struct vectors *v, size_t at,
                        const void *g, size_t n)
{
    float *slots[] = { v->slot[0] + at, v->slot[1] + at, v->slot[2] + at };
    optimizer_apply(o, s, v->w + at, slots, g, n);
}

START_TEST(the_cut_into_ranges_and_the_address_of_the_gradient_do_not_matter)
{
    static struct vectors whole, cut;
    static float g[N];
    static unsigned char wire[sizeof(g) + 3];
    AUTO(optimizer) *o = parse(VARIANTS[_i]);
    struct opt_state state = { 0 };
    struct rng r = rng_at(8, RNG_TEST, 0, 0);
    vectors_init(&whole, o, g);
    cut = whole;
    memcpy(wire + 3, g, sizeof(g));
    for (int k = 0; k < 3; k++) {
        struct opt_step s;
        optimizer_begin(o, &state, &s);
        apply_range(o, &s, &whole, 0, g, N);
        for (size_t at = 0, n; at < N; at += n) {
            n = 1 + rng_below(&r, 70);
            n = MIN(n, N - at);
            apply_range(o, &s, &cut, at, wire + 3 + at * sizeof(*g), n);
        }
        optimizer_end(o, &state);
    }
    ck_assert_mem_eq(&whole, &cut, sizeof(whole));
}
END_TEST

/* Baseline, AVX2, AVX-512, gcc and clang all give these values: the fingerprint of weights and slots after 3 steps.
 * Ftrl with a power needs powf of the C library, so it has none. */
static const uint64_t BITS[COUNT_OF(VARIANTS)] = {
    0xf36c2de6ca49cf40,
    0x4d4c9805205c1a44,
    0x2417422738d5b305,
    0x81c40d2ff47cacca,
    0x06ae7bdc4154d4fa,
    0xcca0cc3a55cfb8b7,
    0xd7b2810e6b7e58e9,
    0x5baa180709cdc930,
    0xcc2a98d831e54b0a,
    0x9b15305d50ea2ece,
    0x54552950b982c434,
    0xc4010dacab96f11a,
    0xd18c155cf7e59f09,
    0xa7aeb7618d0b0afe,
    0x9e32f18cc7ff8892,
    0x7056af94ebb092a5,
    0,
    0x0fc1882f641694a5,
};

START_TEST(every_cpu_and_compiler_gives_the_same_bits)
{
    static struct vectors v;
    static float g[N];
    AUTO(optimizer) *o = parse(VARIANTS[_i]);
    struct opt_state state = { 0 };
    vectors_init(&v, o, g);
    for (int k = 0; k < 3; k++) {
        struct opt_step s;
        optimizer_begin(o, &state, &s);
        apply_range(o, &s, &v, 0, g, N);
        optimizer_end(o, &state);
    }
    const uint64_t got = hash64(&v, sizeof(v), 0);
    ck_assert_msg(BITS[_i] == 0 || got == BITS[_i], "%s: 0x%016llx", VARIANTS[_i], (unsigned long long)got);
}
END_TEST

START_TEST(a_bad_gradient_spoils_its_own_cell_only)
{
    static struct vectors v;
    static float g[N];
    AUTO(optimizer) *o = parse(VARIANTS[_i]);
    struct opt_state state = { 0 };
    struct opt_step s;
    vectors_init(&v, o, g);
    g[17] = NAN;
    optimizer_begin(o, &state, &s);
    apply_range(o, &s, &v, 0, g, N);
    for (size_t i = 0; i < N; i++) {
        bool spoiled = i == 17 && strcmp(optimizer_name(o), "Counting") != 0;
        ck_assert_msg(isnan(v.w[i]) == spoiled, "%s: w[%zu] is %g", VARIANTS[_i], i, (double)v.w[i]);
    }
}
END_TEST

START_TEST(seek_is_the_same_as_applying)
{
    AUTO(optimizer) *o = parse(VARIANTS[_i]);
    struct opt_state state = { 0 }, there;
    for (int t = 0; t < 1000; t++)
        optimizer_end(o, &state);
    optimizer_seek(o, 1000, &there);
    ck_assert_int_eq(there.t, 1000);
    ck_assert_double_eq(there.aux, state.aux);
    struct opt_step s;
    optimizer_seek(o, 1LL << 50, &there);
    optimizer_begin(o, &there, &s);
    ck_assert(isfinite(s.lr) && isfinite(s.a) && isfinite(s.b) && isfinite(s.c));
}
END_TEST

START_TEST(what_config_says_reads_back_to_the_same_optimizer)
{
    static struct vectors a, b;
    static float g[N];
    AUTO(optimizer) *o = parse(VARIANTS[_i]);
    json_auto_t *config = json_pack("{s:s, s:o}", "class_name", optimizer_name(o), "config", optimizer_config(o));
    AUTO(optimizer) *again = parse_json(config);
    ck_assert_int_eq(optimizer_slots(o), optimizer_slots(again));
    struct opt_state state = { .t = 5, .aux = 0.5 };
    struct opt_step s;
    vectors_init(&a, o, g);
    vectors_init(&b, again, g);
    optimizer_begin(o, &state, &s);
    apply_range(o, &s, &a, 0, g, N);
    optimizer_begin(again, &state, &s);
    apply_range(again, &s, &b, 0, g, N);
    ck_assert_mem_eq(&a, &b, sizeof(a));
}
END_TEST

START_TEST(a_steady_gradient_stays_finite)
{
    static struct vectors v;
    static float g[N];
    AUTO(optimizer) *o = parse(VARIANTS[_i]);
    struct opt_state state = { 0 };
    vectors_init(&v, o, g);
    for (int t = 0; t < 500; t++) {
        struct opt_step s;
        optimizer_begin(o, &state, &s);
        apply_range(o, &s, &v, 0, g, 500);
        optimizer_end(o, &state);
    }
    for (size_t i = 0; i < 500; i++)
        ck_assert_msg(isfinite(v.w[i]), "%s: w[%zu] is %g", VARIANTS[_i], i, (double)v.w[i]);
}
END_TEST

START_TEST(counting_counts)
{
    AUTO(optimizer) *o = parse("\"Counting\"");
    float w[100] = { 0 };
    struct opt_state state = { 0 };
    for (int t = 0; t < 1000; t++) {
        struct opt_step s;
        optimizer_begin(o, &state, &s);
        optimizer_apply(o, &s, w, NULL, w, 100);
        optimizer_end(o, &state);
    }
    for (size_t i = 0; i < 100; i++)
        ck_near(w[i], 1000, 0);
    ck_assert_int_eq(state.t, 1000);
}
END_TEST

START_TEST(slots_have_tensorflow_names_and_first_values)
{
    static const struct {
        const char *text, *names[3];
        float first;
    } CASES[] = {
        { "\"SGD\"", { NULL }, 0 },
        { "{\"SGD\": {\"momentum\": 0.5}}", { "Momentum" }, 0 },
        { "\"Adam\"", { "Adam", "Adam_1" }, 0 },
        { "{\"Adam\": {\"amsgrad\": true}}", { "Adam", "Adam_1", "Adam_2" }, 0 },
        { "{\"RMSprop\": {\"momentum\": 0.5}}", { "RMSProp", "RMSProp_1" }, 0 },
        { "\"Adagrad\"", { "Adagrad" }, 0.1F },
        { "{\"Ftrl\": {\"initial_accumulator_value\": 0.5}}", { "Ftrl", "Ftrl_1" }, 0.5F },
        { "\"Adadelta\"", { "Adadelta", "Adadelta_1" }, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        AUTO(optimizer) *o = parse(CASES[i].text);
        for (int s = 0; s < 3 && CASES[i].names[s] != NULL; s++)
            ck_assert_str_eq(optimizer_slot_name(o, s), CASES[i].names[s]);
        ck_assert(optimizer_slots(o) == 3 || CASES[i].names[optimizer_slots(o)] == NULL);
        if (optimizer_slots(o) > 0)
            ck_near(optimizer_slot_init(o, 0), CASES[i].first, 0);
        if (optimizer_slots(o) > 1)
            ck_near(optimizer_slot_init(o, 1), 0, 0);
    }
}
END_TEST

START_TEST(adam_has_tensorflow_beta_powers)
{
    const char *name[2];
    float value[2];
    AUTO(optimizer) *adam = parse("\"adam\""), *sgd = parse("\"sgd\"");
    ck_assert_int_eq(optimizer_scalars(adam, 2, name, value), 2);
    ck_assert_str_eq(name[0], "beta1_power");
    ck_assert_str_eq(name[1], "beta2_power");
    ck_near(value[0], 0.729F, 1e-7);
    ck_near(value[1], 0.997003F, 1e-6);
    ck_assert_int_eq(optimizer_scalars(sgd, 2, name, value), 0);
}
END_TEST

START_TEST(clipping_of_nothing_and_of_nan)
{
    const size_t offset[] = { 0, 4 }, count[] = { 4, 4 };
    float zeros[8] = { 0 }, bad[8] = { 3, NAN, 0, 4, 0, 0, 6, 8 };
    AUTO(optimizer) *each = parse("{\"SGD\": {\"clipnorm\": 5}}"), *none = parse("\"SGD\"");
    AUTO(optimizer) *all = parse("{\"SGD\": {\"global_clipnorm\": 1}}");
    ck_assert(optimizer_clips(each) && optimizer_clips(all) && !optimizer_clips(none));
    optimizer_clip(each, zeros, offset, count, 2);
    ck_near(zeros[0], 0, 0);
    optimizer_clip(each, bad, offset, count, 2);
    ck_assert(isnan(bad[0]) && isnan(bad[1]));
    ck_near(bad[6], 3, 0);
    ck_near(bad[7], 4, 0);
    optimizer_clip(all, bad, offset, count, 2);
    ck_assert(isnan(bad[7]));
}
END_TEST

START_TEST(bad_input_names_the_fault)
{
    refused("\"Adamm\"", "optimizer 'Adamm' is not known; did you mean 'Adam'?");
    refused("{\"Adam\": {\"learning_rat\": 0.1}}", "did you mean 'learning_rate'?");
    refused("{\"Adam\": {\"learning_rate\": -1}}", "learning_rate: must be 0 or greater and a 32-bit float, not -1");
    refused("{\"Adam\": {\"beta_1\": 1}}", "beta_1: must be at least 0 and less than 1, not 1");
    refused("{\"Adam\": {\"epsilon\": \"small\"}}", "epsilon");
    refused("{\"SGD\": {\"clipnorm\": 1, \"clipvalue\": 1}}",
            "only one of 'clipnorm', 'clipvalue' and 'global_clipnorm'");
    refused("{\"SGD\": {\"use_ema\": true}}", "'use_ema' is not supported yet");
    refused("{\"SGD\": {\"nesterov\": \"maybe\"}}", "nesterov");
    refused("{\"SGD\": {\"learning_rate\": {\"CosineDecai\": {}}}}", "did you mean 'CosineDecay'?");
    refused("\"Lamb\"", "optimizer 'Lamb' is not supported yet");
    refused("{\"Adam\": {\"epsilon\": 1e39}}", "epsilon: 1e+39 is more than a 32-bit float holds");
    refused("{\"Adam\": {\"learning_rate\": 1e39}}", "learning_rate: must be 0 or greater and a 32-bit float");
    refused("3", "");
}
END_TEST

START_TEST(keras_spellings_are_taken)
{
    static const char *const TEXTS[] = {
        "\"ADAM\"",
        "{\"name\": \"adam\", \"learning_rate\": 0.5}",
        "{\"module\": \"keras.optimizers\", \"class_name\": \"Adam\", \"config\": {\"name\": \"adam\","
        " \"learning_rate\": 0.5, \"use_ema\": false, \"ema_momentum\": 0.99, \"weight_decay\": null,"
        " \"loss_scale_factor\": null, \"gradient_accumulation_steps\": null}, \"registered_name\": null}",
    };
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++) {
        AUTO(optimizer) *o = parse(TEXTS[i]);
        ck_assert_str_eq(optimizer_name(o), "Adam");
        ck_assert_double_eq(optimizer_learning_rate(o, 3), i == 0 ? 0.001 : 0.5);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/optimizer");
    TCase *t = tcase_create("optimizer");
    tcase_add_test(t, every_golden_optimizer_moves_as_keras);
    tcase_add_loop_test(t, the_cut_into_ranges_and_the_address_of_the_gradient_do_not_matter, 0, COUNT_OF(VARIANTS));
    tcase_add_loop_test(t, every_cpu_and_compiler_gives_the_same_bits, 0, COUNT_OF(VARIANTS));
    tcase_add_loop_test(t, a_bad_gradient_spoils_its_own_cell_only, 0, COUNT_OF(VARIANTS));
    tcase_add_loop_test(t, seek_is_the_same_as_applying, 0, COUNT_OF(VARIANTS));
    tcase_add_loop_test(t, what_config_says_reads_back_to_the_same_optimizer, 0, COUNT_OF(VARIANTS));
    tcase_add_loop_test(t, a_steady_gradient_stays_finite, 0, COUNT_OF(VARIANTS));
    tcase_add_test(t, counting_counts);
    tcase_add_test(t, slots_have_tensorflow_names_and_first_values);
    tcase_add_test(t, adam_has_tensorflow_beta_powers);
    tcase_add_test(t, clipping_of_nothing_and_of_nan);
    tcase_add_test(t, bad_input_names_the_fault);
    tcase_add_test(t, keras_spellings_are_taken);
    suite_add_tcase(s, t);
    return s;
}
