#include "check_main.h"

#include <string.h>

#include "codec/yaml.h"
#include "nn/weights_hash.h"

/* In creation order gamma and beta come between the kernels, and the moving averages last. */
static const char MODEL[] = "inputShape: [3]\n"
                            "layers:\n"
                            "  - Dense: {units: 2}\n"
                            "  - BatchNormalization\n"
                            "  - Dense: {units: 1, trainable: false}\n";

static struct model *build(void)
{
    json_auto_t *doc = NULL;
    AUTO(source) *source = NULL;
    struct model *m = NULL;
    struct err e = { 0 };
    ck_ok_e(yaml_parse(MODEL, strlen(MODEL), "test", &doc, &source, &e));
    struct node root = node_root(doc, source);
    ck_ok_e(model_build(&root, NULL, ".", &m, &e));
    return m;
}

/* The values 0, 1, 2, ... in the order of the hash; gaps are `gap`. */
static float *vector_of(const struct model *m, float gap)
{
    float *v = xcalloc(model_size(m), sizeof(*v)), next = 0;
    for (size_t i = 0; i < model_size(m); i++)
        v[i] = gap;
    for (size_t i = 0; i < model_variables(m); i++)
        for (size_t k = 0; k < model_variable(m, i)->count; k++)
            v[model_variable(m, i)->offset + k] = next++;
    return v;
}

/* import hashlib, numpy; hashlib.sha256(numpy.arange(19, dtype="<f4").tobytes()).hexdigest() */
START_TEST(as_any_other_program_computes_it)
{
    AUTO(model) *m = build();
    auto_free float *v = vector_of(m, 0), *other = vector_of(m, 9);
    char got[SHA256_TEXT];
    struct err e = { 0 };
    ck_assert_uint_eq(model_params(m), 19);
    ck_ok_e(weights_hash(m, v, got, &e));
    ck_assert_str_eq(got, "6ab4adaf37c4fbe429a7c3603f8ff989b085313cadfac10182c2dead4b358c5a");
    ck_ok_e(weights_hash(m, other, got, &e)); /* gaps do not count */
    ck_assert_str_eq(got, "6ab4adaf37c4fbe429a7c3603f8ff989b085313cadfac10182c2dead4b358c5a");
    ck_assert_str_eq(model_variable(m, 3)->name, "batch_normalization/beta");
    ck_assert_int_ne(model_variable(m, 4)->kind, VAR_TRAINABLE); /* the others follow, a frozen kernel among them */
}
END_TEST

START_TEST(every_bit_counts)
{
    AUTO(model) *m = build();
    auto_free float *v = vector_of(m, 0);
    char was[SHA256_TEXT], got[SHA256_TEXT];
    struct err e = { 0 };
    ck_ok_e(weights_hash(m, v, was, &e));
    for (size_t i = 0; i < model_variables(m); i++) {
        float *last = v + model_variable(m, i)->offset + model_variable(m, i)->count - 1, kept = *last;
        uint32_t bits;
        memcpy(&bits, last, sizeof(bits));
        bits ^= 1;
        memcpy(last, &bits, sizeof(bits));
        ck_ok_e(weights_hash(m, v, got, &e));
        ck_assert_str_ne(got, was);
        *last = kept;
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("weights_hash");
    TCase *c = tcase_create("all");
    tcase_add_test(c, as_any_other_program_computes_it);
    tcase_add_test(c, every_bit_counts);
    suite_add_tcase(s, c);
    return s;
}
