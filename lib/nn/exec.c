/* Runs the nodes of a model forward, and computes losses and metrics. Buffers are bound to nodes once, for each mode,
 * as buffer_plan.h places them; a step allocates nothing. */
#include <limits.h>
#include <string.h>

#include "nn/exec_impl.h"
#include "nn/layers/layer_rows.h"
#include "tensor/gemm.h"
#include "tensor/kernel.h"

/* ---- making the buffers ---- */

static size_t batch_floats(const struct exec *x, const struct shape *s)
{
    return x->max_batch * shape_elements(s);
}

static size_t output_cols(const struct model_head *h)
{
    return h->out.shape.rank > 0 ? (size_t)h->out.shape.dim[h->out.shape.rank - 1] : 1;
}

static float *buffer_at(const struct pass *p, float *base, size_t buffer)
{
    return buffer == BUFFER_NONE ? NULL : base + p->plan.buffers[buffer].offset;
}

static void bind_buffers(struct exec *x, struct pass *p, float *base, bool training)
{
    const struct model *m = x->m;
    p->nodes = xcalloc(m->nnodes, sizeof(*p->nodes));
    p->inputs = xcalloc(m->ninputs, sizeof(*p->inputs));
    for (size_t k = 0; k < m->ninputs; k++)
        p->inputs[k] = buffer_at(p, base, p->plan.inputs[k]);
    p->first_grad = xcalloc(m->nheads, sizeof(*p->first_grad));
    for (size_t i = 0; i < m->nheads; i++)
        p->first_grad[i] = buffer_at(p, base, p->plan.first_grad[i]);
    for (size_t i = 0; i < m->nnodes; i++) {
        const struct node_buffers *b = &p->plan.nodes[i];
        struct node_run *r = &p->nodes[i];
        r->ctx.l = model_called(m, i);
        r->ctx.node = (uint32_t)i;
        r->ctx.seed = x->seed;
        r->ctx.training = training;
        r->op = &op_rows[r->ctx.l->id];
        size_t joined = p->plan.joined[i];
        r->ctx.joined = joined != BUFFER_NONE ? &p->nodes[joined].ctx : NULL;
        r->passes_forward = b->y == BUFFER_NONE;
        r->passes_backward = joined != BUFFER_NONE ? joined < i : r->passes_forward;
        r->ctx.y = buffer_at(p, base, b->y);
        r->ctx.scratch = buffer_at(p, base, b->scratch);
        if (!training)
            continue;
        r->ctx.dy = buffer_at(p, base, b->dy);
        for (size_t k = 0; k < m->nodes[i].nin; k++) {
            r->ctx.dx[k] = buffer_at(p, base, b->dx[k]);
            r->sum[k] = buffer_at(p, base, b->sum[k]);
        }
    }
}

/* Floats of the variables of the largest layer that is called several times. */
static size_t largest_shared(const struct model *m)
{
    size_t most = 0;
    for (size_t i = 0; i < m->nnodes; i++) {
        const struct layer *l = model_called(m, i);
        size_t floats = 0;
        for (int k = 0; k < l->nvars && !m->nodes[i].last; k++)
            floats += m->vars[l->var_index[k]].v.count;
        most = MAX(most, floats);
    }
    return most;
}

/* Memory for the sums of a node over a group, for one node at a time. */
static void make_sums(struct exec *x)
{
    size_t most = 0;
    for (size_t i = 0; i < x->m->nnodes; i++)
        most = MAX(most, op_sums_of(model_called(x->m, i)));
    x->sums = most > 0 ? xcalloc(most, sizeof(*x->sums)) : NULL;
    for (size_t i = 0; i < x->m->nnodes; i++)
        x->pass[true].nodes[i].ctx.sums = op_sums_of(model_called(x->m, i)) > 0 ? x->sums : NULL;
}

/* The two passes take turns in the same memory. */
static int make_buffers(struct exec *x, struct err *e)
{
    const struct model *m = x->m;
    size_t labels = 0, weights = 0, pass = 0, floats, bytes;
    struct err big;
    for (size_t i = 0; i < m->nheads; i++) { /* the outputs take turns, too */
        size_t own = batch_floats(x, &m->heads[i].out.shape);
        labels = MAX(labels, own);
        weights = MAX(weights, own / output_cols(&m->heads[i]));
    }
    for (int training = 0; training < 2; training++) {
        buffer_plan_init(&x->pass[training].plan, m, x->max_batch, training != 0);
        pass = MAX(pass, x->pass[training].plan.floats);
    }
    labels = (labels + VARIABLE_ALIGN - 1) / VARIABLE_ALIGN * VARIABLE_ALIGN;
    weights = (weights + VARIABLE_ALIGN - 1) / VARIABLE_ALIGN * VARIABLE_ALIGN;
    size_t again = largest_shared(m);
    if (size_add(pass, labels + weights + again, &floats, &big) < 0 ||
        size_mul(floats, sizeof(float), &bytes, &big) < 0)
        return err_set(e, ERR_INPUT, "a batch of %zu examples is too large for this model", x->max_batch);
    if (mem_alloc(bytes, "the buffers of a batch", (void **)&x->memory, e) < 0)
        return -1;
    x->labels = x->memory + pass;
    x->weights = x->labels + labels;
    x->again = x->weights + weights;
    for (int training = 0; training < 2; training++)
        bind_buffers(x, &x->pass[training], x->memory, training != 0);
    return 0;
}

/* The activation of an output is computed by its loss for the supported pairs (softmax and crossentropy, ...), unless
 * other nodes read it. */
static void find_fused(struct exec *x)
{
    const struct model *m = x->m;
    auto_free size_t *readers = model_readers(m);
    for (size_t i = 0; i < m->nheads; i++) {
        const struct model_head *h = &m->heads[i];
        size_t node = h->tensor - m->ninputs;
        const struct layer *l = model_called(m, node);
        bool fuses = h->loss != NULL && readers[h->tensor] == 0 && op_rows[l->id].tail != TAIL_NONE &&
                     loss_fuses(h->loss, &l->activation);
        x->pass[false].nodes[node].fused = x->pass[true].nodes[node].fused = fuses;
    }
}

static int check_batch(const struct model *m, size_t max_batch, struct err *e)
{
    size_t widest = 0;
    for (size_t i = 0; i < model_tensors(m); i++)
        widest = MAX(widest, shape_elements(model_tensor(m, i)));
    if (max_batch < 1 || max_batch > (size_t)INT_MAX / MAX(widest, (size_t)1))
        return err_set(e, ERR_INPUT, "a batch of %zu examples is too large for this model", max_batch);
    return 0;
}

int exec_new(const struct model *m, size_t max_batch, uint64_t seed, struct exec **ret, struct err *e)
{
    AUTO(exec) *x = xcalloc(1, sizeof(*x));

    gemm_setup();
    if (check_batch(m, max_batch, e) < 0)
        return -1;
    x->m = m;
    x->max_batch = max_batch;
    x->seed = seed;
    x->value = xcalloc(model_tensors(m) + m->nmasks, sizeof(*x->value));
    if ((m->nmasks > 0 && exec_make_masks(x, e) < 0) || make_buffers(x, e) < 0)
        return -1;
    make_sums(x);
    find_fused(x);
    *ret = TAKE(x);
    return 0;
}

void exec_free(struct exec *x)
{
    if (x == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        buffer_plan_fini(&x->pass[i].plan);
        free(x->pass[i].nodes);
        free(x->pass[i].inputs);
        free(x->pass[i].first_grad);
    }
    free(x->value);
    free(x->memory);
    free(x->masks);
    free(x->sums);
    free(x);
}

/* ---- forward ---- */

/* Floats as they are; bytes become floats here. */
static void set_inputs(struct exec *x, struct pass *p, const struct batch *b)
{
    for (size_t k = 0; k < x->m->ninputs; k++) {
        size_t n = b->n * shape_elements(&x->m->inputs[k].shape);
        x->value[k] = b->x[k].data;
        if (b->x[k].dtype != DT_UINT8)
            continue;
        kernel_from_u8(b->x[k].data, 1.0F, 0.0F, p->inputs[k], n);
        x->value[k] = p->inputs[k];
    }
}

/* Bytes and a Rescaling are one pass. */
size_t exec_begin_forward(struct exec *x, bool training, const struct batch *b)
{
    struct pass *p = &x->pass[training];
    size_t n = b->n * shape_elements(&x->m->inputs[0].shape), rescale = p->plan.rescale;

    if (rescale == BUFFER_NONE || b->x[0].dtype != DT_UINT8) {
        set_inputs(x, p, b);
        exec_masks(x, 0, 0, b->n);
        return 0;
    }
    const struct op_ctx *c = &p->nodes[rescale].ctx;
    const struct rescaling *own = rescaling_of(c->l);
    kernel_from_u8(b->x[0].data, values_at(&own->scale, 0), values_at(&own->offset, 0), c->y, n);
    x->value[model_made(x->m, rescale)] = c->y;
    exec_masks(x, 0, rescale + 1, b->n);
    return rescale + 1;
}

/* Whether the layer has other calls, whose gradients or statistics are in the same place. */
static bool has_others(const struct exec *x, size_t node, enum variable_kind kind)
{
    const struct model_node *n = &x->m->nodes[node];
    return kind == VAR_MOVING ? n->again != NULL : !n->last; /* forward goes up, backward down */
}

static void bind_variables(const struct exec *x, size_t node, struct op_ctx *c, const float *params, float *grads)
{
    float *again = x->again;
    for (int k = 0; k < c->l->nvars; k++) {
        const struct variable *v = &x->m->vars[c->l->var_index[k]].v;
        c->w[k] = params + v->offset;
        c->g[k] = NULL;
        if (grads == NULL || v->kind == VAR_CONST)
            continue;
        c->g[k] = has_others(x, node, v->kind) ? again : grads + v->offset;
        again += v->count;
    }
}

/* grads NULL: inference. Only gradients that are needed have a place. */
void exec_bind_node(struct exec *x, size_t node, const float *params, float *grads, const struct batch *b)
{
    const struct model_node *n = &x->m->nodes[node];
    struct op_ctx *c = &x->pass[grads != NULL].nodes[node].ctx;

    c->n = b->n;
    c->epoch = b->epoch;
    c->position = b->position;
    for (size_t k = 0; k < n->nin; k++)
        c->x[k] = x->value[n->in[k]];
    bind_variables(x, node, c, params, grads);
}

void exec_forward_node(struct exec *x, size_t node, bool training, bool logits)
{
    struct node_run *r = &x->pass[training].nodes[node];
    r->ctx.logits = logits && r->fused;
    x->value[model_made(x->m, node)] = r->passes_forward ? r->ctx.x[0] : r->ctx.y;
    if (!r->passes_forward)
        r->op->forward(&r->ctx);
    exec_masks(x, node + 1, node + 1, r->ctx.n);
}

/* In inference mode, up to that tensor. logits: the activations of outputs are left to their losses, where these
 * compute them. */
static const float *forward(struct exec *x, const float *params, const struct batch *b, size_t tensor, bool logits)
{
    for (size_t i = exec_begin_forward(x, false, b); model_made(x->m, i) <= tensor; i++) {
        exec_bind_node(x, i, params, NULL, b);
        exec_forward_node(x, i, false, logits);
    }
    return x->value[tensor];
}

const float *exec_forward(struct exec *x, const float *params, const struct batch *b, size_t tensor)
{
    return forward(x, params, b, tensor, false);
}

const float *exec_predict(struct exec *x, const float *params, const struct batch *b)
{
    forward(x, params, b, model_tensors(x->m) - 1, false);
    return exec_output(x, 0);
}

const float *exec_output(const struct exec *x, size_t output)
{
    return x->value[x->m->heads[output].tensor];
}

/* ---- loss ---- */

/* Labels in the form that the loss requires: class numbers are int32, all others float. */
static struct tensor labels_of(struct exec *x, const struct model_head *h, struct tensor y)
{
    if (y.dtype != DT_INT32 || loss_sparse(h->loss))
        return y;
    const int32_t *whole = y.data;
    size_t n = shape_elements(&y.shape);
    for (size_t i = 0; i < n && i < batch_floats(x, &h->out.shape); i++)
        x->labels[i] = (float)whole[i];
    y.dtype = DT_FLOAT;
    y.data = x->labels;
    return y;
}

/* An example's weight goes for all rows of its output. */
static const float *row_weights(struct exec *x, const float *weight, size_t n, size_t rows)
{
    if (weight == NULL || rows == n)
        return weight;
    for (size_t i = 0; i < rows; i++)
        x->weights[i] = weight[i / (rows / n)];
    return x->weights;
}

/* Adds the metrics of an output to acc (NULL: skip) and returns its loss, the mean over the batch; in training also
 * computes the gradient of loss_weight times it (fused: at the logits). The gradient of the mean over rows: scale =
 * loss_weight / rows. */
static double output_loss(struct exec *x, bool training, size_t output, const struct batch *b, double *acc)
{
    const struct model_head *h = &x->m->heads[output];
    const struct pass *p = &x->pass[training];
    const struct node_run *last = &p->nodes[h->tensor - x->m->ninputs];
    size_t cols = output_cols(h), rows = b->n * shape_elements(&h->out.shape) / cols;
    float scale = (float)h->loss_weight / (float)rows, *gradient = p->first_grad[output];
    const float *pred = x->value[h->tensor];
    struct tensor y = labels_of(x, h, b->y[output]);
    const struct loss_batch own = { .y_true = y.data,
                                    .weight = row_weights(x, b->weight, b->n, rows),
                                    .mask = h->mask != TENSOR_NONE ? x->value[h->mask] : NULL,
                                    .rows = rows,
                                    .cols = cols };
    double loss;

    if (last->fused) {
        const float *logits = last->op->tail == TAIL_INPUT ? last->ctx.x[0] : last->ctx.y;
        pred = last->ctx.y;
        loss = loss_eval_fused(h->loss, &last->ctx.l->activation, &own, logits, last->ctx.y, scale, gradient);
    } else {
        loss = loss_eval(h->loss, &own, pred, scale, gradient);
    }
    loss /= (double)rows;
    if (acc != NULL) /* before backward, which takes the memory of the output */
        metrics_add_output(x->m, acc, output,
                           &(struct output_values){ .y_true = &y,
                                                    .y_pred = pred,
                                                    .weight = own.weight,
                                                    .mask = own.mask,
                                                    .loss_sum = loss * (double)b->n,
                                                    .n = b->n });
    return loss;
}

static double regularization(const struct exec *x, const float *params)
{
    double total = 0;
    for (size_t i = 0; i < x->m->nvars; i++) {
        const struct regularizer *r = x->m->vars[i].spec->regularizer;
        const struct variable *v = &x->m->vars[i].v;
        if (r != NULL)
            total += regularizer_loss(r, params + v->offset, v->count);
    }
    return total;
}

double exec_loss(struct exec *x, bool training, const float *params, const struct batch *b, double *acc)
{
    double loss = 0;
    for (size_t i = 0; i < x->m->nheads; i++)
        loss += x->m->heads[i].loss_weight * output_loss(x, training, i, b, acc);
    loss += regularization(x, params);
    if (acc != NULL)
        metrics_add_loss(acc, loss * (double)b->n, b->n);
    return loss;
}

void exec_evaluate(struct exec *x, const float *params, const struct batch *b, double *acc)
{
    forward(x, params, b, model_tensors(x->m) - 1, true);
    exec_loss(x, false, params, b, acc);
}

bool all_finite(const float *v, size_t n)
{
    return kernel_all_finite(v, n);
}

bool update_finite(enum variable_kind kind, const void *v, size_t n)
{
    return kind == VAR_TRAINABLE ? kernel_all_squares_finite(v, n) : kernel_all_finite(v, n);
}
