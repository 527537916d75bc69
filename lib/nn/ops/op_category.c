/* CategoryEncoding: numbers become ones, or are counted, at their places. Nothing is learnt through it. */
#include <string.h>

#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"

/* The place of a number, cut to a whole one. false: it has none. The data set refuses such numbers, so only layers can
 * have made it. */
static bool token_place(float number, size_t tokens, size_t *ret)
{
    bool inside = number > -1.0F && number < (float)tokens;
    *ret = inside && number > 0 ? (size_t)number : 0;
    return inside;
}

/* A number without a place gives NaN, so that the loss shows it. */
void op_category_encoding_forward(const struct op_ctx *c)
{
    enum encoding_mode mode = (enum encoding_mode)c->l->arg[ENCODING_MODE];
    size_t tokens = (size_t)c->l->arg[ENCODING_TOKENS], n = op_elements(c), at;
    size_t each = mode == ENCODING_ONE_HOT ? 1 : op_channels(c); /* numbers of one vector */
    memset(c->y, 0, n / each * tokens * sizeof(*c->y));
    for (size_t i = 0; i < n; i++) {
        float *y = c->y + i / each * tokens;
        if (!token_place(c->x[0][i], tokens, &at))
            for (size_t k = 0; k < tokens; k++)
                y[k] = NAN;
        else if (mode == ENCODING_COUNT || isnan(y[at]))
            y[at] += 1;
        else
            y[at] = 1;
    }
}

void op_category_encoding_backward(const struct op_ctx *c)
{
    if (c->dx[0] != NULL)
        memset(c->dx[0], 0, op_elements(c) * sizeof(float));
}
