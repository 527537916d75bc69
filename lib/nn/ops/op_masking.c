/* Masking: a step whose numbers all are mask_value becomes 0, and the others stay as they are. */
#include <string.h>

#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"

static bool masking_keeps(const struct op_ctx *c, size_t row)
{
    const size_t channels = op_channels(c);
    const float *x = c->x[0] + row * channels, value = (float)c->l->arg[MASKING_VALUE];
    for (size_t i = 0; i < channels; i++)
        if (x[i] != value)
            return true;
    return false;
}

static void masking_rows(const struct op_ctx *c, const float *from, float *to)
{
    const size_t channels = op_channels(c), bytes = channels * sizeof(float);
    for (size_t r = 0, rows = op_rows_of(c); r < rows; r++, from += channels, to += channels) {
        if (!masking_keeps(c, r))
            memset(to, 0, bytes);
        else if (to != from)
            memcpy(to, from, bytes);
    }
}

void op_masking_forward(const struct op_ctx *c)
{
    masking_rows(c, c->x[0], c->y);
}

void op_masking_backward(const struct op_ctx *c)
{
    if (c->dx[0] != NULL)
        masking_rows(c, c->dy, c->dx[0]);
}
