/* CategoryEncoding: whole numbers become vectors of num_tokens numbers. Keras computes its modes for one number, or a
 * list of them, for each example; what it makes of other shapes is refused. */
#include "base/str.h"
#include "nn/layers/layer_rows.h"

const char *const ENCODING_MODES[] = { "multi_hot", "one_hot", "count", NULL };

int category_encoding_shape(struct layer *l, const struct node *at, struct err *e)
{
    char text[128];
    const struct shape *in = &l->in[0];
    bool one_hot = l->arg[ENCODING_MODE] == ENCODING_ONE_HOT, drops = in->rank > 0 && in->dim[in->rank - 1] == 1;
    if (l->arg[ENCODING_TOKENS] > INDEX_EXACT_MAX)
        return node_error(
            at, e,
            "CategoryEncoding '%s' has %.0f tokens, at most %d are supported: its input is read as 32-bit "
            "floats, which have all whole numbers up to this one",
            l->name, l->arg[ENCODING_TOKENS], INDEX_EXACT_MAX);
    if (!one_hot && in->rank != 1)
        return node_error(at, e,
                          "CategoryEncoding '%s' needs an input of shape (numbers,) for output_mode %s, not %s: a "
                          "Flatten before it gives one",
                          l->name, ENCODING_MODES[(size_t)l->arg[ENCODING_MODE]], shape_text(in, text));
    if (one_hot && !drops && in->rank == SHAPE_MAX_RANK)
        return node_error(at, e, "CategoryEncoding '%s' adds an axis to its input %s, which has the most axes already",
                          l->name, shape_text(in, text));
    l->out = *in;
    l->out.rank = one_hot && !drops ? in->rank + 1 : in->rank;
    l->out.dim[l->out.rank - 1] = (int64_t)l->arg[ENCODING_TOKENS];
    return 0;
}
