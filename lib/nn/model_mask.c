/* Follows the masks of Keras through a model: an Embedding with mask_zero marks the numbers that are 0 as padding,
 * layers that compute each position by itself keep the mask, and GlobalAveragePooling1D, BatchNormalization and others
 * leave padding out, and so does the loss of an output that it reaches. A mask is known by the tensor of the numbers,
 * which the node that needs it gets as its last input.
 */
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
    return node_error(layers, e, "%s '%s' gets %s, which is not supported: set mask_zero of the Embedding to false",
                      l->row->k.names[0], l->name, what);
}

/* What a layer keeps of the masks of its inputs: one that they all have, and none when one of them has none. */
static int mask_kept(const struct layer *l, const struct model_node *n, const size_t *masks, const struct node *layers,
                     size_t *ret, struct err *e)
{
    bool some = false, all = true, same = true;
    for (size_t k = 0; k < n->nin; k++) {
        some |= masks[n->in[k]] != NO_MASK;
        all &= masks[n->in[k]] != NO_MASK;
        same &= masks[n->in[k]] == masks[n->in[0]];
    }
    *ret = same ? masks[n->in[0]] : NO_MASK;
    if (some && l->id == LAYER_CONCATENATE && concatenate_axis(l) != l->in[0].rank - 1)
        return mask_error(l, "tensors with a mask, whose steps it joins", layers, e);
    bool differ = (all || l->id == LAYER_CONCATENATE) && !same; /* others drop a mask that not all have */
    return differ ? mask_error(l, "tensors with different masks", layers, e) : 0;
}

/* The document's mask must be the one that the Embeddings before the node give. Keras 2 writes none. */
static int mask_check(const struct layer *l, const struct model_node *n, const size_t *masks, const struct node *layers,
                      struct err *e)
{
    bool taken = RULES[l->id] == MASK_TAKEN || RULES[l->id] == MASK_TAKEN_AND_KEPT;
    if (n->mask == NO_MASK || (taken && n->mask == masks[n->in[0]]))
        return 0;
    return node_error(layers, e, "%s '%s' is called with a mask that is not that of its input, which is not supported",
                      l->row->k.names[0], l->name);
}

/* A layer that joins takes the one mask of all its inputs. Keras computes with other combinations too. */
static int mask_taken(const struct layer *l, struct model_node *n, const size_t *masks, const struct node *layers,
                      size_t *ret, struct err *e)
{
    size_t mask = masks[n->in[0]];
    for (size_t k = 1; k < n->nin; k++)
        if (masks[n->in[k]] != mask)
            return mask_error(l, "tensors with different masks, or with and without one", layers, e);
    if (mask != NO_MASK && n->nin == LAYER_INPUTS_MAX)
        return mask_error(l, "so many tensors with a mask", layers, e);
    if (mask != NO_MASK)
        n->in[n->nin++] = mask;
    *ret = mask;
    return 0;
}

static int mask_node(struct model *m, size_t node, size_t *masks, const struct node *layers, struct err *e)
{
    struct model_node *n = &m->nodes[node];
    const struct layer *l = model_called(m, node);
    size_t *made = &masks[model_made(m, node)], taken;
    *made = NO_MASK;
    if (mask_check(l, n, masks, layers, e) < 0)
        return -1;
    switch (RULES[l->id]) {
    case MASK_MADE:
        *made = l->arg[EMBEDDING_MASK_ZERO] != 0 ? n->in[0] : NO_MASK;
        return 0;
    case MASK_KEPT:
        return mask_kept(l, n, masks, layers, made, e);
    case MASK_TAKEN:
        return mask_taken(l, n, masks, layers, &taken, e);
    case MASK_TAKEN_AND_KEPT:
        return mask_taken(l, n, masks, layers, made, e);
    case MASK_REFUSED:
        for (size_t k = 0; k < n->nin; k++)
            if (masks[n->in[k]] != NO_MASK)
                return mask_error(l, "a tensor with a mask", layers, e);
        return 0;
    case MASK_DROPPED:
    default:
        return 0;
    }
}

int reading_masks(struct model *m, const struct node *layers, struct err *e)
{
    auto_free size_t *masks = xcalloc(model_tensors(m), sizeof(*masks));
    for (size_t k = 0; k < m->ninputs; k++)
        masks[k] = NO_MASK;
    for (size_t i = 0; i < m->nnodes; i++)
        if (mask_node(m, i, masks, layers, e) < 0)
            return -1;
    for (size_t i = 0; i < m->nheads; i++)
        m->heads[i].mask = masks[m->heads[i].tensor];
    return 0;
}
