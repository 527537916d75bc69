/* Normalization.adapt. model_build ensures that there is at most one such layer, before all weights. */
#include "nn/exec_impl.h"
#include "nn/layers/layer_rows.h"

struct adapt {
    const struct model *m;
    size_t layer, tensor, channels; /* tensor: its input */
    double rows;
    double *origin, *sum, *squares; /* of differences from the first row: no cancellation */
};

struct adapt *adapt_new(const struct model *m)
{
    struct adapt *a = xcalloc(1, sizeof(*a));
    a->m = m;
    a->layer = m->nlayers;
    for (size_t i = 0; i < m->nnodes; i++) {
        if (layer_wants_adapt(&m->layers[m->nodes[i].layer])) {
            a->layer = m->nodes[i].layer;
            a->tensor = m->nodes[i].in[0];
        }
    }
    if (a->layer < m->nlayers)
        a->channels = normalization_channels(&m->layers[a->layer]);
    a->origin = xcalloc(3 * a->channels, sizeof(double));
    a->sum = a->origin + a->channels;
    a->squares = a->sum + a->channels;
    return a;
}

void adapt_free(struct adapt *a)
{
    if (a == NULL)
        return;
    free(a->origin);
    free(a);
}

void adapt_add(struct adapt *a, struct exec *x, const float *params, const struct batch *b)
{
    if (a->layer == a->m->nlayers || b->n == 0)
        return;
    const float *v = exec_forward(x, params, b, a->tensor);
    size_t rows = b->n * shape_elements(&a->m->layers[a->layer].in[0]) / a->channels;

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

void adapt_finish(struct adapt *a, float *values)
{
    if (a->layer == a->m->nlayers || a->rows == 0)
        return;
    const struct layer *l = &a->m->layers[a->layer];
    float *mean = values + model_variable(a->m, l->var_index[0])->offset;
    float *variance = values + model_variable(a->m, l->var_index[1])->offset;

    for (size_t i = 0; i < a->channels; i++) {
        double m = a->sum[i] / a->rows;
        mean[i] = (float)(a->origin[i] + m);
        variance[i] = (float)MAX(a->squares[i] / a->rows - m * m, 0.0);
    }
}
