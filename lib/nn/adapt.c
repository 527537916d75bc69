/* Normalization.adapt. model_build ensures that no layer with variables leads to such a layer. */
#include "nn/exec_impl.h"
#include "nn/layers/layer_rows.h"

struct adapt_layer {
    const struct layer *l;
    size_t tensor, channels; /* tensor: its input */
    double rows;
    double *origin, *sum, *squares; /* of differences from the first row: no cancellation */
};

struct adapt {
    const struct model *m;
    struct adapt_layer *layers;
    size_t n;
};

static void adapt_begin(struct adapt_layer *a, const struct layer *l, size_t tensor)
{
    size_t channels = normalization_channels(l);
    double *sums = xcalloc(3 * channels, sizeof(*sums));
    *a = (struct adapt_layer){ .l = l,
                               .tensor = tensor,
                               .channels = channels,
                               .origin = sums,
                               .sum = sums + channels,
                               .squares = sums + 2 * channels };
}

struct adapt *adapt_new(const struct model *m)
{
    struct adapt *a = xcalloc(1, sizeof(*a));
    a->m = m;
    a->layers = xcalloc(m->nnodes, sizeof(*a->layers));
    for (size_t i = 0; i < m->nnodes; i++)
        if (layer_wants_adapt(model_called(m, i)))
            adapt_begin(&a->layers[a->n++], model_called(m, i), m->nodes[i].in[0]);
    return a;
}

void adapt_free(struct adapt *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->n; i++)
        free(a->layers[i].origin);
    free(a->layers);
    free(a);
}

static void adapt_add_rows(struct adapt_layer *a, const float *v, size_t rows)
{
    for (size_t i = 0; i < a->channels && a->rows == 0; i++)
        a->origin[i] = (double)v[i];
    for (size_t r = 0; r < rows; r++, v += a->channels) {
        for (size_t i = 0; i < a->channels; i++) {
            double d = (double)v[i] - a->origin[i];
            a->sum[i] += d;
            a->squares[i] += d * d;
        }
    }
    a->rows += (double)rows;
}

void adapt_add(struct adapt *a, struct exec *x, const float *params, const struct batch *b)
{
    for (size_t i = 0; i < a->n && b->n > 0; i++) {
        struct adapt_layer *one = &a->layers[i];
        adapt_add_rows(one, exec_forward(x, params, b, one->tensor),
                       b->n * shape_elements(&one->l->in[0]) / one->channels);
    }
}

static void adapt_write(const struct adapt_layer *a, float *mean, float *variance)
{
    for (size_t i = 0; i < a->channels; i++) {
        double m = a->sum[i] / a->rows;
        mean[i] = (float)(a->origin[i] + m);
        variance[i] = (float)MAX(a->squares[i] / a->rows - m * m, 0.0);
    }
}

void adapt_finish(struct adapt *a, float *values)
{
    for (size_t i = 0; i < a->n; i++) {
        const struct adapt_layer *one = &a->layers[i];
        if (one->rows > 0)
            adapt_write(one, values + model_variable(a->m, one->l->var_index[0])->offset,
                        values + model_variable(a->m, one->l->var_index[1])->offset);
    }
}
