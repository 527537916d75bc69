/* Computes the masks of a model that no tensor of numbers is by itself (struct model_mask), each as soon as what it is
 * made of is there. They keep their values until the next batch. */
#include <string.h>

#include "nn/exec_impl.h"

static size_t mask_tensor(const struct exec *x, size_t mask)
{
    return model_tensors(x->m) + mask;
}

int exec_make_masks(struct exec *x, struct err *e)
{
    const struct model *m = x->m;
    size_t bytes = sizeof(float), at = 0;
    for (size_t i = 0; i < m->nmasks; i++)
        if (size_add(bytes, x->max_batch * shape_elements(&m->masks[i].shape) * sizeof(float), &bytes, e) < 0)
            return -1;
    if (mem_alloc(bytes, "the masks of a batch", (void **)&x->masks, e) < 0)
        return -1;
    for (size_t i = 0; i < m->nmasks; at += x->max_batch * shape_elements(&m->masks[i++].shape))
        x->value[mask_tensor(x, i)] = x->masks + at;
    return 0;
}

static void mask_ones(float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = 1;
}

/* The place in a mask of that shape of a place in one of shape `out`, as NumPy aligns them. */
static size_t mask_aligned(const struct shape *in, const struct shape *out, size_t place)
{
    size_t ret = 0, stride = 1;
    for (int i = out->rank; i-- > 0; place /= (size_t)out->dim[i]) {
        int axis = i - (out->rank - in->rank);
        if (axis < 0)
            continue;
        if (in->dim[axis] != 1)
            ret += place % (size_t)out->dim[i] * stride;
        stride *= (size_t)in->dim[axis];
    }
    return ret;
}

static void mask_either(const struct exec *x, const struct model_mask *k, size_t n, float *y)
{
    size_t each = shape_elements(&k->shape);
    memset(y, 0, n * each * sizeof(*y));
    for (size_t j = 0; j < k->nin; j++) {
        const struct shape *in = model_tensor(x->m, k->in[j]);
        const float *from = x->value[k->in[j]];
        for (size_t i = 0; i < n * each; i++)
            if (from[i / each * shape_elements(in) + mask_aligned(in, &k->shape, i % each)] != 0)
                y[i] = 1;
    }
}

static void mask_joined(const struct exec *x, const struct model_mask *k, size_t n, float *y)
{
    size_t outer = n, inner = 1;
    for (int i = 0; i < k->shape.rank; i++)
        *(i < k->axis ? &outer : &inner) *= i == k->axis ? 1 : (size_t)k->shape.dim[i];
    size_t width = (size_t)k->shape.dim[k->axis] * inner, at = 0;
    for (size_t j = 0; j < k->nin; j++) {
        size_t own = (size_t)model_tensor(x->m, k->in[j])->dim[k->axis] * inner;
        for (size_t i = 0; i < outer; i++)
            for (size_t c = 0; c < own; c++)
                y[i * width + at + c] = x->value[k->in[j]][i * own + c] != 0;
        at += own;
    }
}

static void mask_unlike(const struct exec *x, const struct model_mask *k, size_t n, float *y)
{
    size_t rows = n * shape_elements(&k->shape);
    size_t channels = shape_elements(model_tensor(x->m, k->in[0])) / shape_elements(&k->shape);
    const float *from = x->value[k->in[0]];
    for (size_t r = 0; r < rows; r++, from += channels) {
        y[r] = 0;
        for (size_t i = 0; i < channels; i++)
            if (from[i] != k->padding)
                y[r] = 1;
    }
}

static void compute_mask(struct exec *x, size_t mask, size_t n)
{
    const struct model_mask *k = &x->m->masks[mask];
    float *y = x->masks + (x->value[mask_tensor(x, mask)] - x->masks); /* not const */
    switch (k->kind) {
    case MASK_ONES:
        mask_ones(y, n * shape_elements(&k->shape));
        break;
    case MASK_EITHER:
        mask_either(x, k, n, y);
        break;
    case MASK_UNLIKE:
        mask_unlike(x, k, n, y);
        break;
    case MASK_JOINED:
    default:
        mask_joined(x, k, n, y);
        break;
    }
}

void exec_masks(struct exec *x, size_t first, size_t last, size_t n)
{
    for (size_t i = 0; i < x->m->nmasks; i++)
        if (x->m->masks[i].ready >= first && x->m->masks[i].ready <= last)
            compute_mask(x, i, n);
}
