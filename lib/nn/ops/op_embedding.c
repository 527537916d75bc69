/* Embedding: rows of a table, and the sums of the gradients that each row got. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/kernel.h"

enum { TABLE_VAR };

/* The row of a number, cut to a whole one as Keras does. false: it has none. The data set refuses such numbers, so only
 * layers can have made it. */
static bool embedding_row(const struct op_ctx *c, float index, size_t *ret)
{
    bool inside = index > -1.0F && index < (float)c->l->arg[EMBEDDING_ROWS];
    *ret = inside && index > 0 ? (size_t)index : 0;
    return inside;
}

/* A number without a row gives NaN, so that the loss shows it. */
void op_embedding_forward(const struct op_ctx *c)
{
    size_t n = op_elements(c), columns = (size_t)c->l->arg[EMBEDDING_COLUMNS], row;
    float *y = c->y;
    for (size_t i = 0; i < n; i++, y += columns) {
        if (embedding_row(c, c->x[0][i], &row))
            memcpy(y, c->w[TABLE_VAR] + row * columns, columns * sizeof(*y));
        else
            for (size_t k = 0; k < columns; k++)
                y[k] = NAN;
    }
}

/* The gradient of the table is dense. Numbers are summed in the order of the batch. That of the input is 0. */
void op_embedding_backward(const struct op_ctx *c)
{
    size_t n = op_elements(c), columns = (size_t)c->l->arg[EMBEDDING_COLUMNS], row;
    float *g = c->g[TABLE_VAR];
    if (c->dx[0] != NULL)
        memset(c->dx[0], 0, n * sizeof(float));
    if (g == NULL)
        return;
    memset(g, 0, (size_t)c->l->arg[EMBEDDING_ROWS] * columns * sizeof(*g));
    for (size_t i = 0; i < n; i++)
        if (embedding_row(c, c->x[0][i], &row))
            kernel_add(c->dy + i * columns, g + row * columns, columns);
}
