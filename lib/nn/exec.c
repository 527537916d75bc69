#include "nn/exec.h"

#include <limits.h>
#include <string.h>

#include "nn/exec_impl.h"
#include "nn/layers/layer_rows.h"
#include "tensor/gemm.h"
#include "tensor/kernel.h"

/* Each layer that computes has its own output buffer (backward needs them all); gradients go through two
 * buffers in turn, or stay in place. In inference mode the same buffers are used. */
struct step { /* one layer */
    struct op_ctx ctx;
    const struct op_row *op;
    float *y, *scratch; /* parts of exec.memory; y NULL: always a view */
};

struct exec {
    const struct model *m;
    size_t max_batch;
    uint64_t seed;
    struct step *steps;
    size_t first_trained; /* layers before it get no gradient; nlayers: nothing is trained */
    size_t rescale;       /* the Rescaling that turns bytes into floats (only views before it), or NONE */
    bool fused;           /* the loss computes the last activation */
    float *memory;        /* all buffers */
    float *input, *labels, *weights, *grad[2];
};

#define NONE SIZE_MAX

/* ---- making the buffers ---- */

struct plan { /* floats asked for so far; sizes are checked once, at the end */
    size_t floats;
    bool overflow;
};

static size_t plan_take(struct plan *p, size_t floats)
{
    size_t at = p->floats;
    if (__builtin_add_overflow(at, (floats + VARIABLE_ALIGN - 1) / VARIABLE_ALIGN * VARIABLE_ALIGN, &p->floats))
        p->overflow = true;
    return at;
}

static size_t batch_floats(const struct exec *x, const struct shape *s)
{
    return x->max_batch * shape_elements(s);
}

static bool always_view(const struct layer *l, const struct op_row *op)
{
    return op->view != NULL && op->view(l, true) && op->view(l, false);
}

static size_t step_scratch(const struct exec *x, const struct layer *l, const struct op_row *op)
{
    return op->scratch != NULL ? op->scratch(l, x->max_batch, true) : 0;
}

static size_t find_rescale(const struct model *m)
{
    size_t i = 0;
    while (i < m->nlayers && always_view(&m->layers[i], &op_rows[m->layers[i].id]))
        i++;
    return i < m->nlayers && m->layers[i].id == LAYER_RESCALING ? i : NONE;
}

static size_t output_cols(const struct model *m)
{
    return m->output.rank > 0 ? (size_t)m->output.dim[m->output.rank - 1] : 1;
}

/* Called twice: first with memory NULL to add up, then to hand out. */
static void plan_buffers(struct exec *x, struct plan *p)
{
    const struct model *m = x->m;
    size_t widest = 0, at;
    float *base = x->memory;
#define PLACE(field, floats)                                                                                           \
    do {                                                                                                               \
        at = plan_take(p, (floats));                                                                                   \
        (field) = base != NULL ? base + at : NULL;                                                                     \
    } while (0)

    PLACE(x->input, x->rescale != NONE ? 0 : batch_floats(x, &m->input));
    PLACE(x->labels, batch_floats(x, &m->output));
    PLACE(x->weights, batch_floats(x, &m->output) / output_cols(m));
    for (size_t i = 0; i < m->nlayers; i++) {
        const struct layer *l = &m->layers[i];
        widest = MAX(widest, batch_floats(x, &l->out));
        PLACE(x->steps[i].scratch, step_scratch(x, l, x->steps[i].op));
        if (!always_view(l, x->steps[i].op))
            PLACE(x->steps[i].y, batch_floats(x, &l->out));
    }
    PLACE(x->grad[0], widest);
    PLACE(x->grad[1], widest);
#undef PLACE
}

static void find_first_trained(struct exec *x)
{
    x->first_trained = x->m->nlayers;
    for (size_t i = x->m->nlayers; i-- > 0;) {
        for (int k = 0; k < x->m->layers[i].nvars; k++) {
            if (x->m->layers[i].var[k].kind == VAR_TRAINABLE)
                x->first_trained = i;
        }
    }
}

/* The last activation belongs to the loss when both know each other (softmax and crossentropy, ...). */
static bool can_fuse(const struct model *m)
{
    const struct layer *last = &m->layers[m->nlayers - 1];
    return m->loss != NULL && op_rows[last->id].tail != TAIL_NONE && loss_fuses(m->loss, &last->activation);
}

static int check_batch(const struct model *m, size_t max_batch, struct err *e)
{
    size_t widest = shape_elements(&m->input);
    for (size_t i = 0; i < m->nlayers; i++)
        widest = MAX(widest, shape_elements(&m->layers[i].out));
    if (max_batch < 1 || max_batch > (size_t)INT_MAX / MAX(widest, (size_t)1))
        return err_set(e, ERR_INPUT, "a batch of %zu examples is too large for this model", max_batch);
    return 0;
}

int exec_new(const struct model *m, size_t max_batch, uint64_t seed, struct exec **ret, struct err *e)
{
    AUTO(exec) *x = xcalloc(1, sizeof(*x));
    struct plan total = { 0 }, handed = { 0 };
    size_t bytes;

    gemm_setup();
    if (check_batch(m, max_batch, e) < 0)
        return -1;
    x->m = m;
    x->max_batch = max_batch;
    x->seed = seed;
    x->steps = xcalloc(m->nlayers, sizeof(*x->steps));
    for (size_t i = 0; i < m->nlayers; i++) {
        x->steps[i].op = &op_rows[m->layers[i].id];
        x->steps[i].ctx.l = &m->layers[i];
        x->steps[i].ctx.layer = (uint32_t)i;
    }
    x->rescale = find_rescale(m);
    plan_buffers(x, &total);
    if (total.overflow || size_mul(total.floats, sizeof(float), &bytes, e) < 0)
        return err_set(e, ERR_INPUT, "a batch of %zu examples is too large for this model", max_batch);
    if (mem_alloc(bytes, "the buffers of a batch", (void **)&x->memory, e) < 0)
        return -1;
    plan_buffers(x, &handed);
    find_first_trained(x);
    x->fused = can_fuse(m);
    *ret = TAKE(x);
    return 0;
}

void exec_free(struct exec *x)
{
    if (x == NULL)
        return;
    free(x->steps);
    free(x->memory);
    free(x);
}

/* ---- forward ---- */

/* Floats as they are; bytes become floats here. *ret_first is the layer to go on with: bytes and a Rescaling
 * are one pass. */
static const float *input_of(struct exec *x, const struct batch *b, size_t *ret_first)
{
    size_t n = b->n * shape_elements(&x->m->input);

    *ret_first = 0;
    if (b->x[0].dtype != DT_UINT8)
        return b->x[0].data;
    if (x->rescale == NONE) {
        kernel_from_u8(b->x[0].data, 1.0F, 0.0F, x->input, n);
        return x->input;
    }
    const struct layer *l = &x->m->layers[x->rescale];
    float *y = x->steps[x->rescale].y;
    kernel_from_u8(b->x[0].data, (float)l->arg[RESCALING_SCALE], (float)l->arg[RESCALING_OFFSET], y, n);
    *ret_first = x->rescale + 1;
    return y;
}

/* grads NULL: inference. A gradient place is given for what is wanted only. */
static void bind_variables(struct exec *x, struct step *s, const float *params, float *grads)
{
    for (int k = 0; k < s->ctx.l->nvars; k++) {
        const struct variable *v = &x->m->vars[s->ctx.l->var_index[k]].v;
        s->ctx.w[k] = params + v->offset;
        s->ctx.g[k] = grads != NULL && v->kind != VAR_CONST ? grads + v->offset : NULL;
    }
}

static const float *forward_step(struct exec *x, struct step *s, const float *in, const struct batch *b)
{
    s->ctx.n = b->n;
    s->ctx.x = in;
    s->ctx.scratch = s->scratch;
    s->ctx.seed = x->seed;
    s->ctx.epoch = b->epoch;
    s->ctx.position = b->position;
    if (s->op->view != NULL && s->op->view(s->ctx.l, s->ctx.training)) {
        s->ctx.y = NULL;
        return in;
    }
    s->ctx.y = s->y;
    s->op->forward(&s->ctx);
    return s->y;
}

/* Through the first `layers` layers. logits: the last activation is left to the loss. */
static const float *forward(struct exec *x, const float *params, float *grads, const struct batch *b, size_t layers,
                            bool logits)
{
    size_t first;
    const float *at = input_of(x, b, &first);
    for (size_t i = first; i < layers; i++) {
        struct step *s = &x->steps[i];
        s->ctx.training = grads != NULL;
        s->ctx.logits = logits && i + 1 == x->m->nlayers;
        bind_variables(x, s, params, grads);
        at = forward_step(x, s, at, b);
    }
    return at;
}

const float *exec_forward(struct exec *x, const float *params, const struct batch *b, size_t layers)
{
    return forward(x, params, NULL, b, layers, false);
}

const float *exec_predict(struct exec *x, const float *params, const struct batch *b)
{
    return forward(x, params, NULL, b, x->m->nlayers, false);
}

/* ---- loss ---- */

/* Labels as the loss wants them: class numbers are int32, all else float. */
static struct tensor labels_of(struct exec *x, const struct batch *b)
{
    struct tensor y = b->y[0];
    if (y.dtype != DT_INT32 || loss_sparse(x->m->loss))
        return y;
    const int32_t *whole = y.data;
    size_t n = shape_elements(&y.shape);
    for (size_t i = 0; i < n && i < batch_floats(x, &x->m->output); i++)
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

struct result {
    const float *pred, *weight; /* weight: of the rows */
    double loss;                /* mean over the batch, without regularisation */
};

/* Loss of the batch and, with d_pred, its gradient at the end of the network (fused: at the logits).
 * The gradient of the mean over rows: scale = 1 / rows. */
static struct result judge(struct exec *x, const float *out, const struct batch *b, const struct tensor *y,
                           float *d_pred)
{
    const struct model *m = x->m;
    struct step *last = &x->steps[m->nlayers - 1];
    size_t cols = output_cols(m), rows = b->n * shape_elements(&m->output) / cols;
    float scale = 1.0F / (float)rows;
    const float *weight = row_weights(x, b->weight, b->n, rows);
    struct result r = { .pred = out, .weight = weight };

    if (x->fused) {
        const float *logits = last->op->tail == TAIL_INPUT ? last->ctx.x : last->y;
        r.pred = last->y;
        r.loss = loss_eval_fused(m->loss, &last->ctx.l->activation, y->data, logits, last->y, weight, rows, cols, scale,
                                 d_pred);
    } else {
        r.loss = loss_eval(m->loss, y->data, out, weight, rows, cols, scale, d_pred);
    }
    r.loss /= (double)rows;
    return r;
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

/* ---- backward ---- */

/* One training step on its way back through the layers. */
struct backward {
    const float *params;
    float *grads;
    double loss;
    exec_ready_fn *ready; /* NULL: not wanted */
    void *user;
    size_t pending; /* gradients of the variables from here on are complete */
};

/* Reports all variables from `first` on. Trainable ones stand in the order of their layers, and all others behind
 * them, so that backward completes them from the last to the first. */
static void report_ready(struct backward *w, size_t first)
{
    while (w->pending > first) {
        w->pending--;
        if (w->ready != NULL)
            w->ready(w->user, w->pending, w->loss);
    }
}

/* Regularisation of the layer's variables; then they are complete, and those of all layers behind it. */
static void finish_layer(const struct exec *x, size_t layer, struct backward *w)
{
    const struct layer *l = &x->m->layers[layer];
    size_t first = w->pending;
    for (int k = 0; k < l->nvars; k++) {
        const struct regularizer *r = x->m->vars[l->var_index[k]].spec->regularizer;
        const struct variable *v = &x->m->vars[l->var_index[k]].v;
        if (v->kind != VAR_TRAINABLE)
            continue;
        if (r != NULL)
            regularizer_gradient(r, w->params + v->offset, w->grads + v->offset, v->count);
        first = MIN(first, l->var_index[k]);
    }
    report_ready(w, first);
}

static void backward(struct exec *x, float *dy, struct backward *w)
{
    float *other = dy == x->grad[0] ? x->grad[1] : x->grad[0];
    for (size_t i = x->m->nlayers; i-- > x->first_trained;) {
        struct step *s = &x->steps[i];
        bool wanted = i > x->first_trained;
        if (s->ctx.y == NULL)
            continue; /* a view */
        s->ctx.dy = dy;
        s->ctx.dx = !wanted ? NULL : s->op->in_place ? dy : other;
        s->op->backward(&s->ctx);
        finish_layer(x, i, w);
        if (wanted && !s->op->in_place) {
            other = dy;
            dy = s->ctx.dx;
        }
    }
    report_ready(w, 0);
}

static void zero_constants(const struct exec *x, float *grads)
{
    for (size_t i = 0; i < x->m->nvars; i++) {
        const struct variable *v = &x->m->vars[i].v;
        if (v->kind == VAR_CONST)
            memset(grads + v->offset, 0, v->count * sizeof(*grads));
    }
}

/* ---- the calls ---- */

void exec_train(struct exec *x, const float *params, const struct batch *b, float *grads, double *acc,
                exec_ready_fn *ready, void *user, double *ret_loss)
{
    struct tensor y = labels_of(x, b);
    const float *out = forward(x, params, grads, b, x->m->nlayers, x->fused);
    struct result r = judge(x, out, b, &y, x->grad[0]);
    double loss = r.loss + regularization(x, params);

    zero_constants(x, grads);
    backward(
        x, x->grad[0],
        &(struct backward){
            .params = params, .grads = grads, .loss = loss, .ready = ready, .user = user, .pending = x->m->nvars });
    if (acc != NULL)
        metrics_add(x->m, acc, loss * (double)b->n, &y, r.pred, r.weight, b->n);
    *ret_loss = loss;
}

void exec_evaluate(struct exec *x, const float *params, const struct batch *b, double *acc)
{
    struct tensor y = labels_of(x, b);
    const float *out = forward(x, params, NULL, b, x->m->nlayers, x->fused);
    struct result r = judge(x, out, b, &y, NULL);
    double loss = r.loss + regularization(x, params);
    metrics_add(x->m, acc, loss * (double)b->n, &y, r.pred, r.weight, b->n);
}

bool all_finite(const float *v, size_t n)
{
    return kernel_all_finite(v, n);
}
