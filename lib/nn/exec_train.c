/* One training step: forward, loss, backward. It stops where a layer needs the sums of all batches of its group, and
 * goes on with the node where it stopped. */
#include <string.h>

#include "nn/exec_impl.h"
#include "tensor/kernel.h"

/* Whether the step stops before this node: the sums of this batch are in *ret. */
static bool stops(const struct node_run *r, op_sum_fn *sum, struct exec_sums *ret)
{
    if (r->ctx.sums == NULL)
        return false;
    *ret = (struct exec_sums){ .sum = r->ctx.sums, .n = sum(&r->ctx) };
    return ret->n > 0;
}

/* ---- forward ---- */

/* A moving average is updated once in a step, as v m + s (1 - m). After calls with statistics a and then b it is to be
 * (v m + a (1 - m)) m + b (1 - m), so that s = b + m (a - v). */
static void add_statistics(const struct exec *x, const struct op_ctx *c, const float *params, float *grads)
{
    for (int k = 0; k < c->l->nvars; k++) {
        const struct variable *v = &x->m->vars[c->l->var_index[k]].v;
        float *s = grads + v->offset;
        for (size_t i = 0; v->kind == VAR_MOVING && i < v->count; i++)
            s[i] = c->g[k][i] + v->momentum * (s[i] - params[v->offset + i]);
    }
}

/* A moving average v takes the batches of a group one after the other, and is to move once. The first batch moves it to
 * v m + s (1 - m); as statistics of the others that value moves it no more. */
static void keep_averages(const struct exec *x, const struct training *t)
{
    for (size_t i = 0; i < x->m->nnodes; i++) {
        const struct op_ctx *c = &x->pass[true].nodes[i].ctx;
        for (int k = 0; k < c->l->nvars && c->sums != NULL && x->m->nodes[i].last; k++) {
            const struct variable *v = &x->m->vars[c->l->var_index[k]].v;
            const float *from = t->step.params + v->offset;
            float *s = t->step.grads + v->offset;
            for (size_t j = 0; v->kind == VAR_MOVING && j < v->count; j++)
                s[j] = from[j] * v->momentum + s[j] * (1.0F - v->momentum);
        }
    }
}

static bool advance_forward(struct exec *x, struct training *t, struct exec_sums *ret)
{
    for (; t->next < x->m->nnodes; t->next++) {
        const struct node_run *r = &x->pass[true].nodes[t->next];
        if (!t->summed) {
            exec_bind_node(x, t->next, t->step.params, t->step.grads, t->step.batch);
            t->summed = stops(r, r->op->sum_forward, ret);
            if (t->summed)
                return false;
        }
        t->summed = false;
        exec_forward_node(x, t->next, true, true);
        if (x->m->nodes[t->next].again != NULL)
            add_statistics(x, &r->ctx, t->step.params, t->step.grads);
    }
    return true;
}

/* ---- backward ---- */

/* Reports all variables from `first` on. Trainable ones are in the order of their layers, followed by all others, so
 * that backward completes them from the last to the first. */
static void report_ready(struct training *t, size_t first)
{
    while (t->pending > first) {
        t->pending--;
        if (t->step.ready != NULL)
            t->step.ready(t->step.user, t->pending, t->loss);
    }
}

/* Regularisation of the layer's variables; then they are complete, and so are those of all later layers. */
static void finish_layer(const struct exec *x, size_t layer, struct training *t)
{
    const struct layer *l = &x->m->layers[layer];
    size_t first = t->pending;
    for (int k = 0; k < l->nvars; k++) {
        const struct regularizer *r = x->m->vars[l->var_index[k]].spec->regularizer;
        const struct variable *v = &x->m->vars[l->var_index[k]].v;
        if (v->kind != VAR_TRAINABLE)
            continue;
        if (r != NULL)
            regularizer_gradient(r, t->step.params + v->offset, t->step.grads + v->offset, v->count);
        first = MIN(first, l->var_index[k]);
    }
    report_ready(t, first);
}

/* Of the layer's variables, to those of its later calls. */
static void add_shared(const struct exec *x, const struct op_ctx *c, size_t node, float *grads)
{
    for (int k = 0; k < c->l->nvars && !x->m->nodes[node].last; k++) {
        const struct variable *v = &x->m->vars[c->l->var_index[k]].v;
        if (v->kind == VAR_TRAINABLE)
            kernel_add(c->g[k], grads + v->offset, v->count);
    }
}

static void add_gradients(const struct exec *x, struct node_run *r, size_t node)
{
    const struct model_node *n = &x->m->nodes[node];
    for (size_t k = 0; k < n->nin; k++) {
        if (r->sum[k] != NULL)
            kernel_add(r->ctx.dx[k], r->sum[k], r->ctx.n * shape_elements(model_tensor(x->m, n->in[k])));
    }
}

static void backward_node(struct exec *x, struct training *t, struct node_run *r, size_t node)
{
    if (!r->passes_backward)
        r->op->backward(&r->ctx);
    add_shared(x, &r->ctx, node, t->step.grads);
    add_gradients(x, r, node);
    if (x->m->nodes[node].again == NULL)
        finish_layer(x, x->m->nodes[node].layer, t);
}

static bool advance_backward(struct exec *x, struct training *t, struct exec_sums *ret)
{
    for (; t->next > 0; t->next--) {
        struct node_run *r = &x->pass[true].nodes[t->next - 1];
        if (r->ctx.dy == NULL)
            continue; /* nothing before it is trained */
        if (!t->summed) {
            t->summed = stops(r, r->op->sum_backward, ret);
            if (t->summed)
                return false;
        }
        t->summed = false;
        backward_node(x, t, r, t->next - 1);
    }
    report_ready(t, 0);
    return true;
}

static void zero_constants(const struct exec *x, float *grads)
{
    for (size_t i = 0; i < x->m->nvars; i++) {
        const struct variable *v = &x->m->vars[i].v;
        if (v->kind == VAR_CONST)
            memset(grads + v->offset, 0, v->count * sizeof(*grads));
    }
}

static void begin_backward(struct exec *x, struct training *t)
{
    if (!t->step.first)
        keep_averages(x, t);
    t->loss = exec_loss(x, true, t->step.params, t->step.batch, t->step.acc);
    zero_constants(x, t->step.grads);
    t->backward = true;
    t->pending = x->m->nvars;
}

/* ---- the calls ---- */

void exec_begin(struct exec *x, const struct exec_step *step)
{
    x->training = (struct training){ .step = *step, .next = exec_begin_forward(x, true, step->batch) };
}

bool exec_advance(struct exec *x, struct exec_sums *ret_sums, double *ret_loss)
{
    struct training *t = &x->training;
    if (!t->backward) {
        if (!advance_forward(x, t, ret_sums))
            return false;
        begin_backward(x, t);
    }
    if (!advance_backward(x, t, ret_sums))
        return false;
    *ret_loss = t->loss;
    return true;
}

/* A group of one batch. */
void exec_train(struct exec *x, const float *params, const struct batch *b, float *grads, double *acc,
                exec_ready_fn *ready, void *user, double *ret_loss)
{
    struct exec_sums own;
    exec_begin(
        x, &(struct exec_step){
               .params = params, .batch = b, .grads = grads, .acc = acc, .ready = ready, .user = user, .first = true });
    while (!exec_advance(x, &own, ret_loss))
        ;
}
