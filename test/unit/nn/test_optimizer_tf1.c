/* TensorFlow 1's optimizers, which ps-and-worker tutorials use. Where TensorFlow's formula is Keras's with other
 * arguments, our optimizer gives its numbers, for dense and for sparse gradients. A ps applies sparse gradients so:
 * repeated rows are added first, then only the rows of the gradient move (Adam alone moves every row).
 * Not comparable: RMSProp (its first rms is 1, Keras's 0) and the Proximal family (Keras has none). */
#include "check_main.h"
#include "nn/optimizers/optimizer.h"

#include "nn/named.h"

enum { SPACE = 64 };

static const struct {
    const char *tf, *ours, *extra; /* class, class, arguments that differ */
    bool every_row;
} SAME[] = {
    { "GradientDescentOptimizer", "SGD", "{}", false },
    { "MomentumOptimizer", "SGD", "{}", false },
    { "AdagradOptimizer", "Adagrad", "{\"epsilon\": 0}", false },
    { "AdamOptimizer", "Adam", "{\"epsilon\": 1e-8}", true },
    { "AdadeltaOptimizer", "Adadelta", "{\"epsilon\": 1e-8}", false },
    { "FtrlOptimizer", "Ftrl", "{}", false },
};

static size_t find(const json_t *c)
{
    const char *class_name = json_string_value(json_at(c, "config.class"));
    for (size_t i = 0; i < COUNT_OF(SAME); i++)
        if (strcmp(strrchr(class_name, '.') + 1, SAME[i].tf) == 0)
            return i;
    return SIZE_MAX;
}

static struct optimizer *of_case(const json_t *c, size_t i)
{
    struct err e = { 0 };
    struct optimizer *o = NULL;
    json_auto_t *object = named_object(json_object_get(c, "config")), *extra = named_json(SAME[i].extra);
    json_t *config = json_object_get(object, "config"), *nesterov = json_object_get(config, "use_nesterov");
    json_object_set_new(object, "class_name", json_string(SAME[i].ours));
    json_object_update(config, extra);
    if (nesterov != NULL) {
        json_object_set(config, "nesterov", nesterov);
        json_object_del(config, "use_nesterov");
    }
    if (strcmp(SAME[i].ours, "Adadelta") == 0)
        json_object_set_new(config, "rho", json_real(0.95));
    struct node n = named_node(object);
    ck_ok_e(optimizer_parse(&n, &o, &e));
    return o;
}

struct var {
    float w[SPACE], slot[OPTIMIZER_MAX_SLOTS][SPACE];
    size_t n;
};

static void apply(const struct optimizer *o, const struct opt_step *s, struct var *v, size_t at, const float *g,
                  size_t n)
{
    float *slots[] = { v->slot[0] + at, v->slot[1] + at, v->slot[2] + at };
    optimizer_apply(o, s, v->w + at, slots, g, n);
}

/* IndexedSlices: sums repeated rows, then moves rows as a ps does. */
static void apply_sparse(const struct optimizer *o, const struct opt_step *s, struct var *v, const json_t *g,
                         size_t cols, bool every_row)
{
    float sum[SPACE] = { 0 };
    bool touched[SPACE] = { false };
    const json_t *indices = json_object_get(g, "indices"), *values = json_object_get(g, "values");
    for (size_t i = 0; i < golden_count(indices); i++) {
        size_t row = (size_t)golden_at(indices, i);
        touched[row] = true;
        for (size_t j = 0; j < cols; j++)
            sum[row * cols + j] += golden_at(values, i * cols + j);
    }
    for (size_t row = 0; row < v->n / cols; row++)
        if (touched[row] || every_row)
            apply(o, s, v, row * cols, sum + row * cols, cols);
}

static void run_variable(const json_t *c, size_t same, size_t index)
{
    AUTO(optimizer) *o = of_case(c, same);
    const json_t *first = json_array_get(json_object_get(c, "vars"), index), *steps = json_object_get(c, "grads");
    struct var v = { .n = golden_count(first) };
    struct opt_state state = { 0 };
    for (size_t i = 0; i < v.n; i++) {
        v.w[i] = golden_at(first, i);
        for (int s = 0; s < optimizer_slots(o); s++)
            v.slot[s][i] = optimizer_slot_init(o, s);
    }
    for (size_t k = 0; k < json_array_size(steps); k++) {
        const json_t *g = json_array_get(json_array_get(steps, k), index);
        struct opt_step s;
        optimizer_begin(o, &state, &s);
        if (json_object_get(g, "indices") != NULL) {
            size_t cols = (size_t)json_integer_value(json_array_get(json_object_get(first, "shape"), 1));
            apply_sparse(o, &s, &v, g, cols, SAME[same].every_row);
        } else {
            auto_free float *dense = golden_floats(g);
            apply(o, &s, &v, 0, dense, v.n);
        }
        optimizer_end(o, &state);
        golden_check(c, "variable", json_array_get(json_array_get(json_object_get(c, "after"), k), index), v.w);
    }
}

START_TEST(tensorflow_1_moves_the_same_way)
{
    json_auto_t *file = golden_read("test/data/nn/optimizers_tf1.json");
    size_t i, ran = 0;
    const json_t *c;
    json_array_foreach(json_object_get(file, "cases"), i, c)
    {
        size_t same = find(c);
        if (same == SIZE_MAX)
            continue;
        for (size_t v = 0; v < json_array_size(json_object_get(c, "vars")); v++)
            run_variable(c, same, v);
        ran++;
    }
    ck_assert_uint_eq(ran, 16);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/optimizer_tf1");
    TCase *t = tcase_create("tf1");
    tcase_add_test(t, tensorflow_1_moves_the_same_way);
    suite_add_tcase(s, t);
    return s;
}
