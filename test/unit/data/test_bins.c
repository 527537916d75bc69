/* The vectors of test/data/data/bins.json are by Keras 3.15: boundaries by adapt() for one batch, ranges by the layer.
 */
#include "data/bins.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/rng.h"
#include "check_main.h"
#include "codec/json.h"

#define VECTORS "test/data/data/bins.json"

static json_t *read_vectors(const char *key)
{
    AUTO_FINI(buf) file = BUF_INIT;
    struct err e = { 0 };
    json_auto_t *all = NULL;
    ck_ok_e(file_read(VECTORS, 1 << 20, &file, &e));
    ck_ok_e(json_parse(file.data, file.len, VECTORS, &all, &e));
    json_t *ret = json_incref(json_object_get(all, key));
    ck_assert_uint_gt(json_array_size(ret), 0);
    return ret;
}

static double number_at(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

START_TEST(ranges_are_those_of_keras)
{
    json_auto_t *cases = read_vectors("placed");
    for (size_t k = 0; k < json_array_size(cases); k++) {
        const json_t *one = json_array_get(cases, k), *bounds = json_object_get(one, "boundaries"),
                     *values = json_object_get(one, "values"), *places = json_object_get(one, "places");
        double b[8];
        size_t n = json_array_size(bounds);
        ck_assert_uint_le(n, COUNT_OF(b));
        for (size_t i = 0; i < n; i++)
            b[i] = number_at(bounds, i);
        for (size_t i = 0; i < json_array_size(values); i++)
            ck_assert_msg((double)bins_place(b, n, number_at(values, i)) == number_at(places, i),
                          "case %zu: %.17g is in %zu", k, number_at(values, i), bins_place(b, n, number_at(values, i)));
    }
    ck_assert_uint_eq(bins_place(NULL, 0, 3), 0);
}
END_TEST

/* Each boundary to the last bit of a float32. */
START_TEST(boundaries_are_those_of_keras)
{
    json_auto_t *cases = read_vectors("learned");
    for (size_t k = 0; k < json_array_size(cases); k++) {
        json_t *one = json_array_get(cases, k), *values = json_object_get(one, "values");
        const char *name = json_string_value(json_object_get(one, "name")), *bins;
        json_t *want;
        json_object_foreach(json_object_get(one, "boundaries"), bins, want)
        {
            AUTO_FINI(bins_learner) l = { .n = 0 };
            auto_free double *got = NULL;
            for (size_t i = 0; i < json_array_size(values); i++)
                bins_add(&l, number_at(values, i));
            size_t n = bins_finish(&l, (size_t)atoi(bins), &got);
            ck_assert_msg(n == json_array_size(want), "%s, %s bins: %zu boundaries", name, bins, n);
            for (size_t i = 0; i < n; i++)
                ck_assert_msg((float)got[i] == (float)number_at(want, i), "%s, %s bins: %zu: %.9g, not %.9g", name,
                              bins, i, got[i], number_at(want, i));
        }
    }
}
END_TEST

/* With more values than a chunk the boundaries are near the quantiles. */
START_TEST(chunks_are_merged)
{
    enum { BINS = 8, VALUES = 3 * BINS_CHUNK + 117 };
    AUTO_FINI(bins_learner) l = { .n = 0 };
    auto_free double *got = NULL;
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    for (size_t i = 0; i < VALUES; i++)
        bins_add(&l, (double)rng_below(&r, 1000000) / 1e6);
    ck_assert_uint_le(l.room, BINS_CHUNK);
    ck_assert_uint_eq(bins_finish(&l, BINS, &got), BINS - 1);
    for (size_t i = 0; i < BINS - 1; i++)
        ck_assert_double_eq_tol(got[i], (double)(i + 1) / BINS, 0.02);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("bins");
    TCase *c = tcase_create("all");
    tcase_add_test(c, ranges_are_those_of_keras);
    tcase_add_test(c, boundaries_are_those_of_keras);
    tcase_add_test(c, chunks_are_merged);
    suite_add_tcase(s, c);
    return s;
}
