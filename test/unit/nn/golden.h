/* golden - reads the vectors of test/data/nn/<name>.json (made with Keras; tolerance: the larger of 4 times
 * the case's f64_diff and 1e-5, relative above 1 and absolute below). */
#ifndef TRAINYARD_TEST_GOLDEN_H
#define TRAINYARD_TEST_GOLDEN_H

#include <math.h>

#include "../check_main.h"
#include "base/file.h"
#include "codec/json.h"
#include "tensor/tensor.h"

/* check's own macros for floats promote to double, which our warnings forbid without a cast. */
#define ck_float_near(a, b, tolerance) ck_assert_double_eq_tol((double)(a), (double)(b), (tolerance))
#define ck_float_eq(a, b)              ck_assert_double_eq((double)(a), (double)(b))
#define ck_float_ne(a, b)              ck_assert_double_ne((double)(a), (double)(b))

static inline json_t *golden_read(const char *path)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    json_t *v = NULL;
    ck_ok_e(file_read(path, 16 << 20, &text, &e));
    ck_ok_e(json_parse(text.data, text.len, path, &v, &e));
    return v;
}

static inline double golden_tolerance(const json_t *c)
{
    double f64_diff = json_number_value(json_object_get(c, "f64_diff"));
    return MAX(4 * f64_diff, 1e-5);
}

static inline size_t golden_count(const json_t *tensor)
{
    return json_array_size(json_object_get(tensor, "data"));
}

static inline float golden_at(const json_t *tensor, size_t i)
{
    return (float)json_number_value(json_array_get(json_object_get(tensor, "data"), i));
}

/* All elements as floats; free(). */
static inline float *golden_floats(const json_t *tensor)
{
    float *v = xcalloc(golden_count(tensor) + 1, sizeof(*v));
    for (size_t i = 0; i < golden_count(tensor); i++)
        v[i] = golden_at(tensor, i);
    return v;
}

/* The shape without its first `skip` axes. */
static inline struct shape golden_shape(const json_t *tensor, size_t skip)
{
    struct shape s = { 0 };
    const json_t *dims = json_object_get(tensor, "shape");
    for (size_t i = skip; i < json_array_size(dims); i++)
        s.dim[s.rank++] = json_integer_value(json_array_get(dims, i));
    return s;
}

static inline void golden_near(const json_t *c, const char *what, double want, double got)
{
    double allowed = golden_tolerance(c) * fmax(1, fabs(want));
    ck_assert_msg(fabs(want - got) <= allowed, "%s: %s: want %.9g, got %.9g, allowed %.2g",
                  json_string_value(json_object_get(c, "name")), what, want, got, allowed);
}

static inline void golden_check(const json_t *c, const char *what, const json_t *want, const float *got)
{
    ck_assert_msg(golden_count(want) > 0, "%s: no golden values", what);
    for (size_t i = 0; i < golden_count(want); i++) {
        auto_free char *place = xasprintf("%s[%zu]", what, i);
        golden_near(c, place, (double)golden_at(want, i), (double)got[i]);
    }
}

#endif
