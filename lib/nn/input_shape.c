/* Reads the shape of an input from Keras's several spellings; axes of unknown size are refused. */
#include "base/str.h"
#include "nn/model_impl.h"

int input_shape_read(const struct node *n, bool batch, struct shape *ret, struct err *e)
{
    struct shape s = { 0 };
    size_t skip = batch ? 1 : 0;

    if (node_array(n, e) < 0)
        return -1;
    if (node_size(n) < skip || node_size(n) - skip > SHAPE_MAX_RANK)
        return node_error(n, e, "%zu axes; it must have %zu to %zu", node_size(n), skip, SHAPE_MAX_RANK + skip);
    if (batch) {
        struct node first = node_item(n, 0);
        if (node_present(&first))
            return node_error(&first, e, "a fixed batch size is not supported here: write null, and set fit.batchSize");
    }
    for (size_t i = skip; i < node_size(n); i++) {
        struct node item = node_item(n, i);
        if (!node_present(&item))
            return node_error(&item, e, "axes of variable size are not supported yet");
        if (node_i64(&item, 1, INT32_MAX, &s.dim[s.rank++], e) < 0)
            return -1;
    }
    *ret = s;
    return 0;
}

int input_shape_of_layer(const struct node *config, bool *ret_found, struct shape *ret, struct err *e)
{
    static const struct {
        const char *key;
        bool batch;
    } SPELLINGS[] = {
        { "batch_shape", true }, { "batch_input_shape", true }, { "input_shape", false }, { "shape", false }
    };

    for (size_t i = 0; i < COUNT_OF(SPELLINGS); i++) {
        struct node n = node_get(config, SPELLINGS[i].key);
        if (!node_present(&n))
            continue;
        if (input_shape_read(&n, SPELLINGS[i].batch, ret, e) < 0)
            return -1;
        *ret_found = true;
        return 0;
    }
    struct node dim = node_get(config, "input_dim");
    if (node_present(&dim)) {
        struct shape s = { .rank = 1 };
        if (node_i64(&dim, 1, INT32_MAX, &s.dim[0], e) < 0)
            return -1;
        *ret = s;
    }
    *ret_found = node_present(&dim);
    return 0;
}
