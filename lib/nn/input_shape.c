/* Reads the shape of an input from Keras's several spellings. */
#include "base/str.h"
#include "nn/model_impl.h"

/* {"class_name": "TensorShape", "items": [null, 4]}, "__tuple__" likewise: how tf.keras writes what JSON has not. */
static struct node list_of(const struct node *n)
{
    struct node items = node_get(n, "items");
    return json_is_object(n->v) && json_is_array(items.v) ? items : *n;
}

int input_shape_read(const struct node *given, bool batch, struct shape *ret, struct err *e)
{
    const struct node list = list_of(given), *n = &list;
    struct shape s = { 0 };
    size_t skip = batch ? 1 : 0;

    if (node_array(n, e) < 0)
        return -1;
    if (node_size(n) < skip || node_size(n) - skip > SHAPE_MAX_RANK)
        return node_error(n, e, "%zu axes; it must have %zu to %zu", node_size(n), skip, SHAPE_MAX_RANK + skip);
    for (size_t i = 0; i < node_size(n); i++) {
        struct node item = node_item(n, i);
        int64_t size = -1;
        if (node_present(&item) && node_i64(&item, 1, INT32_MAX, &size, e) < 0)
            return -1;
        if (i >= skip)
            s.dim[s.rank++] = size;
    }
    *ret = s;
    return 0;
}

/* input_dim of an Embedding is the number of its rows. */
static bool dim_is_shape(const char *class_name)
{
    return !str_eq(class_name, "Embedding");
}

int input_shape_of_layer(const char *class_name, const struct node *config, bool *ret_found, struct shape *ret,
                         struct err *e)
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
    *ret_found = dim_is_shape(class_name) && node_present(&dim);
    if (*ret_found) {
        struct shape s = { .rank = 1 };
        if (node_i64(&dim, 1, INT32_MAX, &s.dim[0], e) < 0)
            return -1;
        *ret = s;
    }
    return 0;
}

static bool has_shape(const char *class_name, const struct node *config)
{
    static const char *const KEYS[] = { "batch_shape", "batch_input_shape", "input_shape", "shape" };
    struct node dim = node_get(config, "input_dim");
    for (size_t i = 0; i < COUNT_OF(KEYS); i++) {
        struct node n = node_get(config, KEYS[i]);
        if (node_present(&n))
            return true;
    }
    return dim_is_shape(class_name) && node_present(&dim);
}

bool model_input_is_open(const struct node *model)
{
    struct node shape = node_get(model, "inputShape"), layers = node_get(model, "layers"),
                first = node_item(&layers, 0);
    struct node class = node_get(&first, "class_name");
    const char *key = node_present(&class) ? "config" : node_key(&first, 0);
    const char *class_name = node_present(&class) ? json_string_value(class.v) : key;
    struct node config = key != NULL ? node_get(&first, key) : first;
    return !node_present(&shape) && node_size(&layers) > 0 && !has_shape(class_name, &first) &&
           !has_shape(class_name, &config);
}
