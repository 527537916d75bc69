/* Follows the masks of Keras through a model: an Embedding with mask_zero marks the numbers that are 0 as padding, and
 * a Masking the steps, layers that compute each position by itself keep the mask, and GlobalAveragePooling1D,
 * BatchNormalization and others leave padding out, and so does the loss of an output that it reaches. A mask is known
 * by the tensor of the numbers, which the node that needs it gets as its last input.
 */
#include <string.h>

#include "nn/layers/layer_rows.h"
#include "nn/model_reading.h"

static const size_t NO_MASK = TENSOR_NONE;

enum mask_rule {
    MASK_DROPPED, /* as in Keras, whose layers without masks drop them */
    MASK_MADE,
    MASK_KEPT,
    MASK_TAKEN,
    MASK_TAKEN_AND_KEPT,
    MASK_REFUSED /* Keras computes something else with a mask, which is not supported */
};
static const enum mask_rule RULES[LAYER_COUNT] = {
    [LAYER_EMBEDDING] = MASK_MADE,
    [LAYER_MASKING] = MASK_MADE,
    [LAYER_GLOBAL_AVERAGE_POOLING_1D] = MASK_TAKEN,
    [LAYER_IDENTITY] = MASK_KEPT,
    [LAYER_DENSE] = MASK_KEPT,
    [LAYER_ACTIVATION] = MASK_KEPT,
    [LAYER_RELU] = MASK_KEPT,
    [LAYER_LEAKY_RELU] = MASK_KEPT,
    [LAYER_ELU] = MASK_KEPT,
    [LAYER_PRELU] = MASK_KEPT,
    [LAYER_DROPOUT] = MASK_KEPT,
    [LAYER_SPATIAL_DROPOUT_1D] = MASK_KEPT,
    [LAYER_SPATIAL_DROPOUT_2D] = MASK_KEPT,
    [LAYER_GAUSSIAN_NOISE] = MASK_KEPT,
    [LAYER_RESCALING] = MASK_KEPT,
    [LAYER_NORMALIZATION] = MASK_KEPT,
    [LAYER_LAYER_NORMALIZATION] = MASK_KEPT,
    [LAYER_GROUP_NORMALIZATION] = MASK_KEPT,
    [LAYER_ADD] = MASK_KEPT,
    [LAYER_SUBTRACT] = MASK_KEPT,
    [LAYER_AVERAGE] = MASK_KEPT,
    [LAYER_CONCATENATE] = MASK_KEPT,
    [LAYER_MULTIPLY] = MASK_TAKEN_AND_KEPT,
    [LAYER_MAXIMUM] = MASK_TAKEN_AND_KEPT,
    [LAYER_MINIMUM] = MASK_TAKEN_AND_KEPT,
    [LAYER_SOFTMAX] = MASK_REFUSED,
    [LAYER_BATCH_NORMALIZATION] = MASK_TAKEN_AND_KEPT,
};

static int mask_error(const struct layer *l, const char *what, const struct node *layers, struct err *e)
{
    return node_error(layers, e,
                      "%s '%s' gets %s, which is not supported: set mask_zero of the Embedding to false, or remove the "
                      "Masking",
                      l->row->k.names[0], l->name, what);
}

/* ---- computed masks ---- */

struct masking {
    struct model *m;
    const struct node *layers;
    size_t *of; /* the mask of each tensor, or NO_MASK */
    size_t cap;
};

static const struct model_mask *mask_computed(const struct model *m, size_t mask)
{
    return mask >= model_tensors(m) ? &m->masks[mask - model_tensors(m)] : NULL;
}

static bool mask_same(const struct model_mask *a, const struct model_mask *b)
{
    return a->kind == b->kind && a->axis == b->axis && a->nin == b->nin && shape_eq(&a->shape, &b->shape) &&
           memcmp(&a->padding, &b->padding, sizeof(a->padding)) == 0 &&
           memcmp(a->in, b->in, a->nin * sizeof(a->in[0])) == 0;
}

/* The mask that is made so, which the model may have already. */
static size_t mask_add(struct masking *k, struct model_mask *mask)
{
    struct model *m = k->m;
    for (size_t i = 0; i < m->nmasks; i++)
        if (mask_same(&m->masks[i], mask))
            return model_tensors(m) + i;
    for (size_t i = 0; i < mask->nin; i++) {
        const struct model_mask *from = mask_computed(m, mask->in[i]);
        size_t ready = from != NULL ? from->ready : mask->in[i] < m->ninputs ? 0 : mask->in[i] - m->ninputs + 1;
        mask->ready = MAX(mask->ready, ready);
    }
    if (m->nmasks == k->cap) {
        k->cap = MAX(2 * k->cap, (size_t)8);
        m->masks = xrealloc(m->masks, k->cap * sizeof(m->masks[0]));
    }
    m->masks[m->nmasks] = *mask;
    return model_tensors(m) + m->nmasks++;
}

static struct shape mask_shape_of(const struct shape *tensor)
{
    struct shape s = *tensor;
    s.rank = MAX(s.rank - 1, 0);
    return s;
}

static size_t mask_ones(struct masking *k, const struct shape *shape)
{
    return mask_add(k, &(struct model_mask){ .kind = MASK_ONES, .shape = *shape });
}

/* In order, each once. */
static void mask_insert(struct model_mask *into, size_t mask)
{
    size_t at = into->nin;
    for (size_t i = 0; i < into->nin; i++)
        if (into->in[i] == mask)
            return;
    for (; at > 0 && into->in[at - 1] > mask; at--)
        into->in[at] = into->in[at - 1];
    into->in[at] = mask;
    into->nin++;
}

/* What is a step in one of the masks is one in this mask of that shape. */
static size_t mask_either(struct masking *k, const size_t *masks, size_t n, const struct shape *shape)
{
    struct model_mask either = { .kind = MASK_EITHER, .shape = *shape };
    for (size_t i = 0; i < n; i++)
        mask_insert(&either, masks[i]);
    bool alone = either.nin == 1 && shape_eq(model_tensor(k->m, either.in[0]), shape);
    return alone ? either.in[0] : mask_add(k, &either);
}

/* ---- what a call does with masks ---- */

/* The masks of the inputs; where one has none, but another has, it is one of ones. Returns how many inputs have one. */
static size_t masks_of(struct masking *k, const struct layer *l, const struct model_node *n, size_t *ret)
{
    size_t some = 0;
    for (size_t i = 0; i < n->nin; i++)
        some += (ret[i] = k->of[n->in[i]]) != NO_MASK;
    for (size_t i = 0; i < n->nin && some > 0; i++) {
        struct shape own = mask_shape_of(&l->in[i]);
        if (ret[i] == NO_MASK)
            ret[i] = mask_ones(k, &own);
    }
    return some;
}

static int mask_check_ranks(const struct masking *k, const struct layer *l, struct err *e)
{
    for (size_t i = 1; i < l->nin; i++)
        if (l->in[i].rank != l->in[0].rank)
            return mask_error(l, "tensors with different ranks and masks", k->layers, e);
    return 0;
}

/* Along the last axis a step is in the result where it is in one of the tensors; other axes are those of the steps. */
static size_t mask_concatenated(struct masking *k, const struct layer *l, const size_t *masks)
{
    struct model_mask joined = { .kind = MASK_JOINED, .shape = mask_shape_of(&l->out), .axis = concatenate_axis(l) };
    if (joined.axis == l->out.rank - 1)
        return mask_either(k, masks, l->nin, &joined.shape);
    memcpy(joined.in, masks, l->nin * sizeof(*masks));
    joined.nin = l->nin;
    return mask_add(k, &joined);
}

/* What a layer keeps of the masks of its inputs. Other layers than Concatenate drop a mask that not all have. */
static int mask_kept(struct masking *k, const struct layer *l, const struct model_node *n, size_t *ret, struct err *e)
{
    size_t masks[LAYER_INPUTS_MAX], some = masks_of(k, l, n, masks);
    struct shape shape = mask_shape_of(&l->out);
    *ret = NO_MASK;
    if (some == 0 || (some < n->nin && l->id != LAYER_CONCATENATE))
        return 0;
    if (mask_check_ranks(k, l, e) < 0)
        return -1;
    *ret = l->id == LAYER_CONCATENATE ? mask_concatenated(k, l, masks) : mask_either(k, masks, n->nin, &shape);
    return 0;
}

/* All inputs have this mask, or none has one. */
static bool mask_is_one(const size_t *masks, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (masks[i] != masks[0])
            return false;
    return true;
}

/* A node takes the one mask of all its inputs, or a mask for each. */
static int mask_taken(struct masking *k, const struct layer *l, struct model_node *n, size_t *ret, struct err *e)
{
    size_t masks[LAYER_INPUTS_MAX], some = masks_of(k, l, n, masks), nin = n->nin;
    struct shape shape = mask_shape_of(&l->out);
    *ret = NO_MASK;
    if (some == 0)
        return 0;
    bool one = mask_is_one(masks, nin);
    if (nin + (one ? 1 : nin) > LAYER_INPUTS_MAX)
        return mask_error(l, "so many tensors with a mask", k->layers, e);
    if (!one && mask_check_ranks(k, l, e) < 0)
        return -1;
    for (size_t i = 0; i < (one ? 1 : nin); i++)
        n->in[n->nin++] = one ? masks[0] : mask_either(k, &masks[i], 1, &shape);
    if (some == nin)
        *ret = one ? masks[0] : mask_either(k, masks, nin, &shape);
    return 0;
}

static void mask_add_source(struct mask_source *sources, size_t *n, size_t tensor, float padding)
{
    for (size_t i = 0; i < *n; i++)
        if (sources[i].tensor == tensor && sources[i].padding >= padding && sources[i].padding <= padding)
            return;
    sources[(*n)++] = (struct mask_source){ tensor, padding };
}

/* The tensors that a mask is made of, each once; returns how many. */
static size_t mask_sources(const struct model *m, size_t mask, struct mask_source *ret)
{
    auto_free size_t *stack = xcalloc(m->nmasks * LAYER_INPUTS_MAX + 1, sizeof(*stack));
    auto_free bool *seen = xcalloc(model_tensors(m) + m->nmasks, sizeof(*seen));
    size_t depth = 0, n = 0;
    stack[depth++] = mask;
    while (depth > 0) {
        size_t next = stack[--depth];
        const struct model_mask *from = mask_computed(m, next);
        if (seen[next])
            continue;
        seen[next] = true;
        if (from == NULL)
            mask_add_source(ret, &n, next, 0);
        else if (from->kind == MASK_UNLIKE)
            mask_add_source(ret, &n, from->in[0], from->padding);
        else
            for (size_t i = 0; i < from->nin; i++)
                stack[depth++] = from->in[i];
    }
    return n;
}

/* The document's mask must be made of the same as that of the node's input. Keras 2 writes none. */
static int mask_check(const struct masking *k, const struct layer *l, const struct model_node *n, struct err *e)
{
    const size_t mask = k->of[n->in[0]];
    bool taken = RULES[l->id] == MASK_TAKEN || RULES[l->id] == MASK_TAKEN_AND_KEPT, same = taken && mask != NO_MASK;
    if (n->nmasks == 0)
        return 0;
    auto_free struct mask_source *own = xcalloc(model_tensors(k->m) + k->m->nmasks + n->nmasks, sizeof(*own));
    size_t made = same ? mask_sources(k->m, mask, own) : 0, all = made;
    for (size_t i = 0; i < n->nmasks; i++)
        mask_add_source(own, &all, n->masks[i].tensor, n->masks[i].padding);
    return made == n->nmasks && all == made
               ? 0
               : node_error(k->layers, e,
                            "%s '%s' is called with a mask that is not that of its input, which is not supported",
                            l->row->k.names[0], l->name);
}

/* What a layer marks as padding. */
static size_t mask_made(struct masking *k, const struct layer *l, const struct model_node *n)
{
    if (l->id == LAYER_EMBEDDING)
        return l->arg[EMBEDDING_MASK_ZERO] != 0 ? n->in[0] : NO_MASK;
    return mask_add(k, &(struct model_mask){ .kind = MASK_UNLIKE,
                                             .shape = mask_shape_of(&l->in[0]),
                                             .in = { n->in[0] },
                                             .nin = 1,
                                             .padding = (float)l->arg[MASKING_VALUE] });
}

static int mask_node(struct masking *k, size_t node, struct err *e)
{
    struct model_node *n = &k->m->nodes[node];
    const struct layer *l = model_called(k->m, node);
    size_t *made = &k->of[model_made(k->m, node)], taken;
    *made = NO_MASK;
    if (mask_check(k, l, n, e) < 0)
        return -1;
    switch (RULES[l->id]) {
    case MASK_MADE:
        *made = mask_made(k, l, n);
        return 0;
    case MASK_KEPT:
        return mask_kept(k, l, n, made, e);
    case MASK_TAKEN:
        return mask_taken(k, l, n, &taken, e);
    case MASK_TAKEN_AND_KEPT:
        return mask_taken(k, l, n, made, e);
    case MASK_REFUSED:
        return k->of[n->in[0]] != NO_MASK ? mask_error(l, "a tensor with a mask", k->layers, e) : 0;
    case MASK_DROPPED:
    default:
        return 0;
    }
}

int reading_masks(struct model *m, const struct node *layers, struct err *e)
{
    auto_free size_t *of = xcalloc(model_tensors(m), sizeof(*of));
    struct masking k = { .m = m, .layers = layers, .of = of };
    for (size_t i = 0; i < m->ninputs; i++)
        of[i] = NO_MASK;
    for (size_t i = 0; i < m->nnodes; i++)
        if (mask_node(&k, i, e) < 0)
            return -1;
    for (size_t i = 0; i < m->nheads; i++)
        m->heads[i].mask = of[m->heads[i].tensor];
    return 0;
}
