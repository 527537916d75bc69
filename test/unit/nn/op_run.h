/* op_run - one layer by itself: forward, and backward of L = sum(output * upstream). */
#ifndef TRAINYARD_TEST_OP_RUN_H
#define TRAINYARD_TEST_OP_RUN_H

#include <math.h>
#include <string.h>

#include "../check_main.h"
#include "nn/model_impl.h"
#include "nn/ops/op.h"

enum { OP_RUN_INPUTS = 4 };

struct op_run {
    struct model *m;
    struct op_ctx c;
    const struct op_row *op;
    size_t in, out;             /* elements of all examples; in: of all inputs */
    size_t each[OP_RUN_INPUTS]; /* of one input; inputs follow each other in x and dx */
    float *params, *grads;
    float *x, *y, *dy, *dx, *scratch;
    double *sums;
};

static inline json_t *op_run_call(const char *from)
{
    return json_pack("[[[s, i, i, {}]]]", from, 0, 0);
}

static inline void op_run_layer(json_t *layers, const char *class_name, const char *name, json_t *config, json_t *calls)
{
    json_array_append_new(layers, json_pack("{s:s, s:s, s:o, s:o}", "class_name", class_name, "name", name, "config",
                                            config, "inbound_nodes", calls));
}

/* A functional model whose last layer joins tensors of these shapes, made by other layers. */
static inline json_t *op_run_joined(const char *class_name, json_t *args, const struct shape *in, size_t nin)
{
    json_t *layers = json_array(), *tensors = json_array(), *join = json_deep_copy(args);
    op_run_layer(layers, "InputLayer", "in", json_pack("{s:s, s:[n, i]}", "name", "in", "batch_shape", 1),
                 json_array());
    for (size_t k = 0; k < nin; k++) {
        auto_free char *dense = xasprintf("dense%zu", k), *shaped = xasprintf("x%zu", k);
        op_run_layer(layers, "Dense", dense,
                     json_pack("{s:s, s:I, s:b, s:b}", "name", dense, "units", (json_int_t)shape_elements(&in[k]),
                               "use_bias", 0, "trainable", 0),
                     op_run_call("in"));
        op_run_layer(layers, "Reshape", shaped,
                     json_pack("{s:s, s:o}", "name", shaped, "target_shape", shape_json(&in[k], false)),
                     op_run_call(dense));
        json_array_append_new(tensors, json_pack("[s, i, i, {}]", shaped, 0, 0));
    }
    json_object_set_new(join, "name", json_string("join"));
    op_run_layer(layers, class_name, "join", join, json_pack("[o]", tensors));
    return json_pack("{s:{s:s, s:{s:o, s:[[s, i, i]], s:[[s, i, i]]}}}", "keras", "class_name", "Functional", "config",
                     "layers", layers, "input_layers", "in", 0, 0, "output_layers", "join", 0, 0);
}

/* n floats that an op has to write before it reads them. */
static inline float *op_run_undefined(size_t n)
{
    float *v = xcalloc(n + 1, sizeof(*v));
    for (size_t i = 0; i < n; i++)
        v[i] = NAN;
    return v;
}

/* A layer: class with arguments on inputs of shapes `in`, for n examples. Parameters have their initial values; x is
 * zero. */
static inline void op_run_init(struct op_run *r, const char *class_name, json_t *args, const struct shape *in,
                               size_t nin, size_t n, bool training)
{
    struct err e = { 0 };
    const struct kind *kind = NULL;
    ck_ok_e(catalog_find(&LAYER_KINDS, NULL, class_name, &kind, &e));
    bool joins = ((const struct layer_row *)(const void *)kind)->joins;
    json_auto_t *doc =
        joins ? op_run_joined(class_name, args, in, nin)
              : json_pack("{s:o, s:[{s:O}]}", "inputShape", shape_json(in, false), "layers", class_name, args);
    struct node node = node_root(doc, NULL);

    memset(r, 0, sizeof(*r));
    ck_ok_e(model_build(&node, NULL, ".", &r->m, &e));
    const struct layer *l = &r->m->layers[r->m->nlayers - 1];
    ck_assert_uint_eq(l->nin, nin);
    ck_assert_uint_le(nin, OP_RUN_INPUTS);
    r->op = &op_rows[l->id];
    for (size_t k = 0; k < nin; k++)
        r->in += r->each[k] = n * shape_elements(&l->in[k]);
    r->out = n * shape_elements(&l->out);
    r->params = xcalloc(r->m->size + 1, sizeof(float));
    r->grads = op_run_undefined(r->m->size);
    r->x = xcalloc(r->in, sizeof(float));
    r->y = op_run_undefined(r->out);
    r->dy = xcalloc(r->out, sizeof(float));
    r->dx = op_run_undefined(r->in);
    r->scratch = op_run_undefined(r->op->scratch != NULL ? r->op->scratch(l, n, true) : 0);
    model_init(r->m, 1, r->params);
    r->c = (struct op_ctx){ .l = l, .n = n, .training = training, .dy = r->dy, .scratch = r->scratch, .seed = 5 };
    r->sums = xcalloc(op_sums_of(l) + 1, sizeof(*r->sums));
    r->c.sums = training && op_sums_of(l) > 0 ? r->sums : NULL; /* a group of one batch */
    size_t at = 0;
    for (size_t k = 0; k < nin; at += r->each[k++]) {
        r->c.x[k] = r->x + at;
        r->c.dx[k] = r->dx + at;
    }
    for (int k = 0; k < l->nvars; k++) {
        const struct variable *v = model_variable(r->m, l->var_index[k]);
        r->c.w[k] = r->params + v->offset;
        r->c.g[k] = v->kind == VAR_CONST ? NULL : r->grads + v->offset;
    }
}

static inline void op_run_fini(struct op_run *r)
{
    model_free(r->m);
    free(r->params);
    free(r->grads);
    free(r->x);
    free(r->y);
    free(r->dy);
    free(r->dx);
    free(r->scratch);
    free(r->sums);
}

static inline bool op_run_is_view(const struct op_run *r)
{
    return r->op->view != NULL && r->op->view(r->c.l, r->c.training);
}

static inline void op_run_forward(struct op_run *r)
{
    r->c.y = r->y;
    if (r->c.sums != NULL)
        ck_assert_uint_le(r->op->sum_forward(&r->c), op_sums_of(r->c.l));
    if (op_run_is_view(r))
        memcpy(r->y, r->x, r->out * sizeof(float));
    else
        r->op->forward(&r->c);
}

/* dy holds the upstream gradient and is destroyed, as in training. */
static inline void op_run_backward(struct op_run *r)
{
    if (op_run_is_view(r)) {
        memcpy(r->dx, r->dy, r->each[0] * sizeof(float));
        return;
    }
    r->c.dx[0] = r->op->in_place ? r->dy : r->dx;
    if (r->c.sums != NULL)
        ck_assert_uint_le(r->op->sum_backward(&r->c), op_sums_of(r->c.l));
    r->op->backward(&r->c);
    if (r->op->in_place)
        memcpy(r->dx, r->dy, r->each[0] * sizeof(float));
}

#endif
