/* L1 and L2 penalties: their arguments, value and gradient. */
#include "nn/regularizer.h"

#include "base/str.h"
#include "nn/catalog.h"
#include "tensor/kernel.h"

static const struct arg L1_ARGS[] = { ARG_OF("l1", ARG_NUMBER, 0.01, ARG_NOT_NEGATIVE) };
static const struct arg L2_ARGS[] = { ARG_OF("l2", ARG_NUMBER, 0.01, ARG_NOT_NEGATIVE) };
static const struct arg L1L2_ARGS[] = { ARG_OF("l1", ARG_NUMBER, 0, ARG_NOT_NEGATIVE),
                                        ARG_OF("l2", ARG_NUMBER, 0, ARG_NOT_NEGATIVE) };
static const struct kind ROWS[] = {
    { { "L1", "l1" }, L1_ARGS, COUNT_OF(L1_ARGS), "l1 sum abs(w)" },
    { { "L2", "l2" }, L2_ARGS, COUNT_OF(L2_ARGS), "l2 sum w^2" },
    { { "L1L2", "l1_l2", "l1l2" }, L1L2_ARGS, COUNT_OF(L1L2_ARGS), "l1 sum abs(w) + l2 sum w^2" },
};
static const char *const LATER[] = { "OrthogonalRegularizer", "orthogonal_regularizer", NULL };
const struct catalog REGULARIZERS = {
    .what = "regularizer", .plural = "Regularizers", CATALOG_ROWS(ROWS), .later = LATER
};

int regularizer_parse(const struct node *n, struct regularizer *ret, struct err *e)
{
    struct regularizer r = { 0 };
    if (node_present(n)) {
        const struct kind *k = NULL;
        double values[KIND_ARGS_MAX];
        if (catalog_parse(&REGULARIZERS, n, &k, values, NULL, e) < 0)
            return -1;
        r.class_name = k->names[0];
        for (size_t i = 0; i < k->nargs; i++)
            *(strcmp(k->args[i].name, "l1") == 0 ? &r.l1 : &r.l2) = (float)values[i];
    }
    *ret = r;
    return 0;
}

double regularizer_loss(const struct regularizer *r, const float *w, size_t n)
{
    double loss = 0;
    if (r->l1 > 0)
        loss += (double)r->l1 * kernel_sum_abs(w, n);
    if (r->l2 > 0)
        loss += (double)r->l2 * kernel_sum_squares(w, n);
    return loss;
}

static void add_sign(const float *w, float l1, float *restrict g, size_t n)
{
    for (size_t i = 0; i < n; i++)
        g[i] += w[i] > 0 ? l1 : w[i] < 0 ? -l1 : 0.0F;
}

void regularizer_gradient(const struct regularizer *r, const float *w, float *g, size_t n)
{
    if (r->l1 > 0)
        add_sign(w, r->l1, g, n);
    if (r->l2 > 0)
        kernel_axpy(2 * r->l2, w, g, n);
}

json_t *regularizer_json(const struct regularizer *r)
{
    if (r->class_name == NULL)
        return json_null();
    json_t *config = json_object();
    if (r->class_name[1] == '1')
        json_object_set_new(config, "l1", json_real(str_float_decimal(r->l1)));
    if (strcmp(r->class_name, "L1") != 0)
        json_object_set_new(config, "l2", json_real(str_float_decimal(r->l2)));
    return kind_serialized("keras.regularizers", r->class_name, config);
}
