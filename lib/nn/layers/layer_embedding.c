/* Embedding: a table of vectors, one for each whole number from 0 to input_dim - 1. */
#include "base/str.h"
#include "nn/layers/layer_rows.h"

static const struct part PARTS[] = { { "embeddings", NULL, "uniform", false } };

int embedding_read(struct layer *l, const struct node *config, struct err *e)
{
    l->own = xcalloc(1, sizeof(struct parts));
    return parts_read(config, PARTS, COUNT_OF(PARTS), l->own, e);
}

int embedding_shape(struct layer *l, const struct node *at, struct err *e)
{
    char text[128];
    if (l->arg[EMBEDDING_ROWS] > INDEX_EXACT_MAX)
        return node_error(at, e,
                          "Embedding '%s' has %.0f rows, at most %d are supported: its input is read as 32-bit floats, "
                          "which have all whole numbers up to this one",
                          l->name, l->arg[EMBEDDING_ROWS], INDEX_EXACT_MAX);
    if (l->in[0].rank == SHAPE_MAX_RANK)
        return node_error(at, e, "Embedding '%s' adds an axis to its input %s, which has the most axes already",
                          l->name, shape_text(&l->in[0], text));
    l->out = l->in[0];
    l->out.dim[l->out.rank++] = (int64_t)l->arg[EMBEDDING_COLUMNS];
    return 0;
}

void embedding_variables(struct layer *l)
{
    parts_add(l, l->own, 0,
              shape_of(2, (int64_t[]){ (int64_t)l->arg[EMBEDDING_ROWS], (int64_t)l->arg[EMBEDDING_COLUMNS] }));
}

void embedding_config(const struct layer *l, json_t *config)
{
    parts_config(l->own, config);
    json_object_del(config, "quantization_config"); /* optional, and not known to every Keras 3 */
    json_object_del(config, "lora_rank");
    json_object_del(config, "lora_alpha");
}
