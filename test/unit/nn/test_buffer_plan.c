#include "nn/buffer_plan.h"

#include "../check_main.h"
#include "base/rng.h"

static void check_apart(const struct buffer_life *b, size_t n, size_t total)
{
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(b[i].offset % VARIABLE_ALIGN, 0);
        ck_assert_uint_le(b[i].offset + b[i].floats, total);
        for (size_t k = 0; k < i; k++) {
            bool together = b[i].first <= b[k].last && b[k].first <= b[i].last;
            bool apart = b[i].offset + b[i].floats <= b[k].offset || b[k].offset + b[k].floats <= b[i].offset;
            ck_assert_msg(!together || apart, "buffers %zu and %zu overlap", k, i);
        }
    }
}

START_TEST(what_lives_together_lies_apart)
{
    enum { BUFFERS = 60, ROUNDS = 200 };
    struct buffer_life b[BUFFERS];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct rng r = rng_at(5, RNG_TEST, 0, round);
        size_t first = 0;
        for (size_t i = 0; i < BUFFERS; i++) {
            first += rng_u32(&r) % 2;
            b[i] = (struct buffer_life){ .floats = 1 + rng_u32(&r) % 100,
                                         .first = first,
                                         .last = first + rng_u32(&r) % (round % 12 + 1),
                                         .gradient = i > BUFFERS / 2 };
        }
        check_apart(b, BUFFERS, buffer_lives_place(b, BUFFERS));
    }
}
END_TEST

START_TEST(a_free_place_is_used_again)
{
    struct buffer_life b[] = { { .floats = 32, .first = 0, .last = 1 },
                               { .floats = 64, .first = 1, .last = 1 },
                               { .floats = 16, .first = 2, .last = 3 }, /* the smaller of both is enough */
                               { .floats = 80, .first = 2, .last = 3 }, /* the other one grows */
                               { .floats = 100, .first = 4, .last = 4, .gradient = true } }; /* and does not grow */
    ck_assert_uint_eq(buffer_lives_place(b, COUNT_OF(b)), 32 + 80 + 112);
    ck_assert_uint_eq(b[2].offset, b[0].offset);
    ck_assert_uint_eq(b[3].offset, b[1].offset);
}
END_TEST

START_TEST(too_many_floats_are_seen)
{
    struct buffer_life b[] = { { .floats = SIZE_MAX }, { .floats = 1 } };
    ck_assert_uint_eq(buffer_lives_place(b, 2), SIZE_MAX);
    ck_assert_uint_eq(buffer_lives_place(b, 0), 0);
}
END_TEST

static struct model *build(const char *text)
{
    struct model *m = NULL;
    struct err e = { 0 };
    json_auto_t *doc = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(doc);
    struct node n = node_root(doc, NULL);
    ck_ok_e(model_build(&n, NULL, "test/data/nn", &m, &e));
    return m;
}

static size_t aligned(size_t floats)
{
    return (floats + VARIABLE_ALIGN - 1) / VARIABLE_ALIGN * VARIABLE_ALIGN;
}

/* A buffer for each layer that computes, and two that alternate for gradients. */
static size_t plain_memory(const struct model *m, size_t n)
{
    size_t total = 0, widest = 0;
    for (size_t i = 0; i < m->nlayers; i++) {
        const struct layer *l = &m->layers[i];
        const struct op_row *op = &op_rows[l->id];
        size_t out = n * shape_elements(&l->out);
        bool view = op->view != NULL && op->view(l, true) && op->view(l, false);
        total += (view ? 0 : aligned(out)) + (op->scratch != NULL ? aligned(op->scratch(l, n, true)) : 0);
        widest = MAX(widest, aligned(out));
    }
    return total + aligned(n * shape_elements(&m->inputs[0].shape)) + 2 * widest;
}

static const char *const CHAINS[] = {
    "{\"inputShape\":[28,28],\"layers\":[{\"Rescaling\":{\"scale\":2}},\"Flatten\",{\"Dense\":{\"units\":128}},"
    "{\"Dense\":{\"units\":10,\"activation\":\"softmax\"}}]}",
    "{\"inputShape\":[4],\"layers\":[{\"Dense\":{\"units\":40}},{\"Dense\":{\"units\":5}},{\"Dense\":{\"units\":60}},"
    "{\"Dense\":{\"units\":20}},{\"Dense\":{\"units\":61}},{\"Dense\":{\"units\":1}}]}",
    "{\"inputShape\":[9],\"layers\":[{\"Dense\":{\"units\":40,\"activation\":\"gelu\"}},\"BatchNormalization\","
    "{\"Dropout\":{\"rate\":0.5}},{\"Activation\":{\"activation\":\"mish\"}},{\"Dense\":{\"units\":5}},"
    "{\"Reshape\":{\"target_shape\":[5,1]}},{\"Dense\":{\"units\":70}},\"Flatten\",\"Softmax\"]}",
    "{\"inputShape\":[9],\"layers\":[{\"Dense\":{\"units\":90,\"trainable\":false}},\"BatchNormalization\","
    "{\"Dense\":{\"units\":80,\"trainable\":false}},{\"Dense\":{\"units\":3}}]}",
    "{\"inputShape\":[9],\"layers\":[\"Flatten\"]}",
};

START_TEST(a_chain_needs_no_more_than_a_buffer_a_layer_and_two)
{
    for (size_t i = 0; i < COUNT_OF(CHAINS); i++) {
        AUTO(model) *m = build(CHAINS[i]);
        for (int training = 0; training < 2; training++) {
            struct buffer_plan p;
            buffer_plan_init(&p, m, 7, training != 0);
            check_apart(p.buffers, p.n, p.floats);
            ck_assert_msg(p.floats <= plain_memory(m, 7), "chain %zu, training %d: %zu floats, not %zu", i, training,
                          p.floats, plain_memory(m, 7));
            buffer_plan_fini(&p);
        }
    }
}
END_TEST

START_TEST(buffers_of_a_graph_lie_apart)
{
    AUTO(model) *m = build("{\"kerasFile\": \"graph/keras3.json\"}");
    for (int training = 0; training < 2; training++) {
        struct buffer_plan p;
        buffer_plan_init(&p, m, 7, training != 0);
        check_apart(p.buffers, p.n, p.floats);
        ck_assert_uint_le(p.floats, plain_memory(m, 7));
        buffer_plan_fini(&p);
    }
}
END_TEST

START_TEST(inference_of_a_chain_takes_two_buffers)
{
    AUTO(model) *m = build(CHAINS[1]);
    struct buffer_plan p;
    buffer_plan_init(&p, m, 16, false);
    ck_assert_uint_eq(p.floats, 16 * (61 + 20)); /* the largest of every second one */
    buffer_plan_fini(&p);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/buffer_plan");
    TCase *t = tcase_create("buffer_plan");
    tcase_add_test(t, what_lives_together_lies_apart);
    tcase_add_test(t, a_free_place_is_used_again);
    tcase_add_test(t, too_many_floats_are_seen);
    tcase_add_test(t, a_chain_needs_no_more_than_a_buffer_a_layer_and_two);
    tcase_add_test(t, buffers_of_a_graph_lie_apart);
    tcase_add_test(t, inference_of_a_chain_takes_two_buffers);
    suite_add_tcase(s, t);
    return s;
}
