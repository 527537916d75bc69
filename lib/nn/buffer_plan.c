/* Finds when each activation and gradient is needed, then gives out memory in that order. */
#include "nn/buffer_plan.h"

#include "nn/layers/layer_rows.h"
#include "nn/ops/op_conv_pool.h"

/* ---- places ---- */

struct shared_place {
    size_t floats;
    bool gradient; /* made for one, so only gradients may enlarge it */
};

struct place_list {
    struct shared_place *all;
    size_t n;
    size_t *free, nfree; /* indexes of those that nothing alive holds */
    size_t *of;          /* of each buffer */
};

static size_t aligned(size_t floats)
{
    return (floats + VARIABLE_ALIGN - 1) / VARIABLE_ALIGN * VARIABLE_ALIGN;
}

static bool fits_better(const struct shared_place *p, const struct shared_place *than, const struct buffer_life *b)
{
    bool fits = p->floats >= b->floats, other_fits = than->floats >= b->floats;
    if (fits != other_fits)
        return fits;
    return fits ? p->floats < than->floats : p->floats > than->floats;
}

/* The smallest free place that is large enough, else the largest one that may grow, else a new one. */
static size_t take_place(struct place_list *s, const struct buffer_life *b)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->nfree; i++) {
        const struct shared_place *p = &s->all[s->free[i]];
        if ((p->floats >= b->floats || p->gradient == b->gradient) &&
            (best == SIZE_MAX || fits_better(p, &s->all[s->free[best]], b)))
            best = i;
    }
    if (best == SIZE_MAX) {
        s->all[s->n] = (struct shared_place){ .floats = b->floats, .gradient = b->gradient };
        return s->n++;
    }
    size_t taken = s->free[best];
    s->free[best] = s->free[--s->nfree];
    s->all[taken].floats = MAX(s->all[taken].floats, b->floats);
    return taken;
}

/* ending[i]: buffers by the step in which they end, as lists: ending[step] is the first index plus 1, next[] links the
 * others.
 */
static size_t assign_places(struct place_list *s, const struct buffer_life *b, size_t n, size_t steps)
{
    auto_free size_t *ending = xcalloc(steps + 1, sizeof(*ending)), *next = xcalloc(n + 1, sizeof(*next));
    size_t released = 0;
    for (size_t i = 0; i < n; i++) {
        for (; released < b[i].first; released++)
            for (size_t k = ending[released]; k != 0; k = next[k - 1])
                s->free[s->nfree++] = s->of[k - 1];
        s->of[i] = take_place(s, &b[i]);
        next[i] = ending[b[i].last];
        ending[b[i].last] = i + 1;
    }
    return s->n;
}

size_t buffer_lives_place(struct buffer_life *b, size_t n)
{
    auto_free size_t *free_places = xcalloc(n + 1, sizeof(size_t)), *of = xcalloc(n + 1, sizeof(size_t));
    auto_free struct shared_place *all = xcalloc(n + 1, sizeof(*all));
    auto_free size_t *offsets = xcalloc(n + 1, sizeof(size_t));
    struct place_list s = { .all = all, .free = free_places, .of = of };
    size_t steps = 0, total = 0;

    for (size_t i = 0; i < n; i++) {
        steps = MAX(steps, b[i].last + 1);
        if (b[i].floats > SIZE_MAX / 2 / sizeof(float))
            return SIZE_MAX;
    }
    size_t places = assign_places(&s, b, n, steps);
    for (size_t i = 0; i < places; i++) {
        offsets[i] = total;
        if (__builtin_add_overflow(total, aligned(all[i].floats), &total))
            return SIZE_MAX;
    }
    for (size_t i = 0; i < n; i++)
        b[i].offset = offsets[of[i]];
    return total;
}

/* ---- lives ---- */

struct planning {
    struct buffer_plan *p;
    const struct model *m;
    size_t max_n, cap;
    bool training;
    size_t *value, *grad; /* the buffer of each tensor and of its gradient */
    bool *wanted;         /* the gradient of each tensor: something before it is trained */
};

static size_t add_buffer(struct planning *g, size_t floats, size_t step, bool gradient)
{
    struct buffer_plan *p = g->p;
    if (floats == 0)
        return BUFFER_NONE;
    if (p->n == g->cap) {
        g->cap = MAX(2 * g->cap, (size_t)32);
        p->buffers = xrealloc(p->buffers, g->cap * sizeof(*p->buffers));
    }
    p->buffers[p->n] = (struct buffer_life){ .floats = floats, .first = step, .last = step, .gradient = gradient };
    return p->n++;
}

static void extend_life(struct planning *g, size_t buffer, size_t step)
{
    if (buffer != BUFFER_NONE)
        g->p->buffers[buffer].last = MAX(g->p->buffers[buffer].last, step);
}

static size_t tensor_floats(const struct planning *g, size_t tensor)
{
    return g->max_n * shape_elements(model_tensor(g->m, tensor));
}

static bool is_view(const struct layer *l, bool training)
{
    const struct op_row *op = &op_rows[l->id];
    return op->view != NULL && op->view(l, training);
}

/* The first node that is more than a view, when it alone reads the input and is a Rescaling. */
static size_t find_rescale(const struct model *m, const size_t *readers)
{
    size_t i = 0;
    if (m->ninputs > 1)
        return BUFFER_NONE;
    for (; i < m->nnodes && readers[i] == 1 && m->nodes[i].in[0] == i; i++) {
        const struct layer *l = model_called(m, i);
        if (l->id == LAYER_RESCALING && rescaling_is_plain(l))
            return i;
        if (!is_view(l, true) || !is_view(l, false))
            break;
    }
    return BUFFER_NONE;
}

/* A convolution and the pooling behind it are computed together when nothing else has the convolution's output. */
static void find_joined(struct buffer_plan *p, const struct model *m, const size_t *readers)
{
    auto_free bool *is_output = xcalloc(model_tensors(m), sizeof(*is_output));
    for (size_t i = 0; i < m->nheads; i++)
        is_output[m->heads[i].tensor] = true;
    for (size_t i = 0; i < m->nnodes; i++)
        p->joined[i] = BUFFER_NONE;
    for (size_t i = 0; i + 1 < m->nnodes; i++) {
        size_t made = model_made(m, i);
        bool alone = readers[made] == 1 && m->nodes[i + 1].in[0] == made && !is_output[made];
        if (!alone || !m->nodes[i].last || m->nodes[i].again != NULL ||
            !op_conv_pool_fits(model_called(m, i), model_called(m, i + 1)))
            continue;
        p->joined[i] = i + 1;
        p->joined[i + 1] = i;
    }
}

/* Of two joined nodes the first one passes its input on, and in backward the second one its output's gradient. */
static bool passes_forward(const struct planning *g, size_t i)
{
    size_t joined = g->p->joined[i];
    return is_view(model_called(g->m, i), g->training) || (joined != BUFFER_NONE && joined > i);
}

static bool passes_backward(const struct planning *g, size_t i)
{
    size_t joined = g->p->joined[i];
    return is_view(model_called(g->m, i), true) || (joined != BUFFER_NONE && joined < i);
}

static size_t scratch_floats(const struct planning *g, size_t i)
{
    const struct layer *l = model_called(g->m, i);
    size_t joined = g->p->joined[i];
    if (joined != BUFFER_NONE)
        return joined > i ? op_conv_pool_scratch(l, model_called(g->m, joined), g->max_n, g->training) : 0;
    return op_rows[l->id].scratch != NULL ? op_rows[l->id].scratch(l, g->max_n, g->training) : 0;
}

static void find_wanted(struct planning *g)
{
    const struct model *m = g->m;
    for (size_t i = 0; i < m->nnodes; i++) {
        const struct layer *l = model_called(m, i);
        for (int k = 0; k < l->nvars; k++)
            g->wanted[model_made(m, i)] |= l->var[k].kind == VAR_TRAINABLE;
        for (size_t k = 0; k < m->nodes[i].nin; k++)
            g->wanted[model_made(m, i)] |= g->wanted[m->nodes[i].in[k]];
    }
}

static void plan_forward(struct planning *g, size_t i)
{
    const struct model *m = g->m;
    const struct model_node *node = &m->nodes[i];
    struct node_buffers *b = &g->p->nodes[i];
    bool view = is_view(model_called(m, i), g->training), passes = passes_forward(g, i);
    size_t made = model_made(m, i);
    size_t last = g->training && g->wanted[made] ? 2 * m->nnodes - i : i; /* backward may read all of it */

    b->y = passes ? BUFFER_NONE : add_buffer(g, tensor_floats(g, made), i, false);
    b->scratch = view ? BUFFER_NONE : add_buffer(g, scratch_floats(g, i), i, false);
    g->value[made] = passes ? g->value[node->in[0]] : b->y;
    for (size_t k = 0; k < node->nin; k++)
        extend_life(g, g->value[node->in[k]], view ? i : last);
    extend_life(g, b->y, last);
    extend_life(g, b->scratch, passes ? MAX(last, i + 1) : last);
}

/* Where the gradient of input k goes; with takes_dy over the output's, which is not needed any more then. */
static void plan_gradient(struct planning *g, size_t i, size_t k, bool takes_dy)
{
    const struct model_node *node = &g->m->nodes[i];
    struct node_buffers *b = &g->p->nodes[i];
    size_t step = 2 * g->m->nnodes - i, tensor = node->in[k];

    b->dx[k] = takes_dy ? b->dy : add_buffer(g, tensor_floats(g, tensor), step, true);
    if (g->grad[tensor] == BUFFER_NONE)
        g->grad[tensor] = b->dx[k];
    else
        b->sum[k] = g->grad[tensor];
    extend_life(g, g->grad[tensor], step);
    extend_life(g, b->dx[k], step);
}

static void plan_backward(struct planning *g, size_t i)
{
    const struct model_node *node = &g->m->nodes[i];
    struct node_buffers *b = &g->p->nodes[i];
    bool in_place = op_rows[model_called(g->m, i)->id].in_place || passes_backward(g, i);

    b->dy = g->wanted[model_made(g->m, i)] ? g->grad[model_made(g->m, i)] : BUFFER_NONE;
    extend_life(g, b->dy, 2 * g->m->nnodes - i);
    for (size_t k = 0; k < node->nin; k++) {
        b->dx[k] = b->sum[k] = BUFFER_NONE;
        if (b->dy != BUFFER_NONE && g->wanted[node->in[k]])
            plan_gradient(g, i, k, in_place && k == 0);
    }
}

static void plan_gradients(struct planning *g)
{
    const struct model *m = g->m;
    for (size_t t = 0; t < model_tensors(m); t++)
        g->grad[t] = BUFFER_NONE;
    for (size_t i = 0; i < m->nheads; i++) {
        size_t tensor = m->heads[i].tensor;
        g->p->first_grad[i] = g->grad[tensor] = add_buffer(g, tensor_floats(g, tensor), m->nnodes, true);
    }
    for (size_t i = m->nnodes; i-- > 0;)
        plan_backward(g, i);
}

static void plan_pass(struct planning *g)
{
    const struct model *m = g->m;
    size_t n = m->nnodes;

    for (size_t k = 0; k < m->nmasks; k++) /* have memory of their own */
        g->value[model_tensors(m) + k] = BUFFER_NONE;
    for (size_t k = 0; k < m->ninputs; k++)
        g->value[k] = g->p->inputs[k] =
            g->p->rescale != BUFFER_NONE ? BUFFER_NONE : add_buffer(g, tensor_floats(g, k), 0, false);
    for (size_t i = 0; i < n; i++)
        plan_forward(g, i);
    for (size_t i = 0; i < m->nmasks; i++)
        for (size_t k = 0; k < m->masks[i].nin; k++)
            extend_life(g, g->value[m->masks[i].in[k]], MAX(m->masks[i].ready, (size_t)1) - 1);
    for (size_t i = 0; i < m->nheads; i++) { /* a fused loss reads the output of the node, or its input */
        size_t tensor = m->heads[i].tensor, node = tensor - m->ninputs;
        extend_life(g, g->value[tensor], n);
        extend_life(g, g->value[m->nodes[node].in[0]], n);
        if (m->heads[i].mask != TENSOR_NONE)
            extend_life(g, g->value[m->heads[i].mask], n);
    }
    if (g->training)
        plan_gradients(g);
}

void buffer_plan_init(struct buffer_plan *p, const struct model *m, size_t max_n, bool training)
{
    const size_t tensors = model_tensors(m) + m->nmasks;
    auto_free size_t *value = xcalloc(tensors, sizeof(size_t));
    auto_free size_t *grad = xcalloc(tensors, sizeof(size_t));
    auto_free bool *wanted = xcalloc(tensors, sizeof(bool));
    auto_free size_t *readers = model_readers(m);
    struct planning g = {
        .p = p, .m = m, .max_n = max_n, .training = training, .value = value, .grad = grad, .wanted = wanted
    };

    *p = (struct buffer_plan){ .nodes = xcalloc(m->nnodes + 1, sizeof(*p->nodes)),
                               .inputs = xcalloc(m->ninputs, sizeof(*p->inputs)),
                               .first_grad = xcalloc(m->nheads, sizeof(*p->first_grad)),
                               .joined = xcalloc(m->nnodes + 1, sizeof(*p->joined)),
                               .rescale = find_rescale(m, readers) };
    find_joined(p, m, readers);
    for (size_t i = 0; i < m->nheads; i++)
        p->first_grad[i] = BUFFER_NONE;
    find_wanted(&g);
    plan_pass(&g);
    p->floats = buffer_lives_place(p->buffers, p->n);
}

void buffer_plan_fini(struct buffer_plan *p)
{
    free(p->buffers);
    free(p->nodes);
    free(p->inputs);
    free(p->first_grad);
    free(p->joined);
}
