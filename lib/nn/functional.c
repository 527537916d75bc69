/* keras/src/models/functional.py (Keras 3) and keras/engine/functional.py (Keras 2): config.layers with inbound_nodes.
 */
#include "nn/functional.h"

#include <string.h>

#include "base/map.h"
#include "base/str.h"

#define ONLY_CHAINS "only a chain of layers, without branches, is supported yet"

struct link {
    const char *name; /* of the layer; borrowed */
    size_t next;      /* index of the layer that is called with its output, plus 1; 0: none */
    bool is_input;
};

struct chain { /* one model being read */
    struct node layers;
    struct map places; /* name -> &links[i] */
    struct link *links;
    size_t n;
};

static void chain_fini(struct chain *c)
{
    map_fini(&c->places);
    free(c->links);
}
DEFINE_AUTO_FINI(chain, chain_fini);

/* ["dense", 0, 0]: the first output of the first call of a layer. */
static int read_tensor(struct chain *c, const struct node *n, struct link **ret, struct err *e)
{
    struct node name = node_item(n, 0);
    const char *word = NULL;
    int64_t number = 0;

    if (node_array(n, e) < 0 || node_str(&name, &word, e) < 0)
        return -1;
    for (size_t i = 1; i <= 2; i++) {
        struct node item = node_item(n, i);
        if (node_i64(&item, 0, INT32_MAX, &number, e) < 0)
            return -1;
        if (number != 0)
            return node_error(n, e, "layer '%.60s' is called more than once; " ONLY_CHAINS, word);
    }
    *ret = map_get(&c->places, word);
    return *ret != NULL ? 0 : node_error(&name, e, "layer '%.60s' does not exist", word);
}

/* ["dense", 0, 0], or a list of one such. */
static int read_end(struct chain *c, const struct node *config, const char *key, struct link **ret, struct err *e)
{
    struct node n = node_get(config, key), first = node_item(&n, 0);

    if (node_array(&n, e) < 0)
        return -1;
    if (json_is_string(first.v))
        return read_tensor(c, &n, ret, e);
    if (node_size(&n) != 1)
        return node_error(&n, e, "the model has %zu of them; " ONLY_CHAINS, node_size(&n));
    return read_tensor(c, &first, ret, e);
}

/* training=True in the middle of a model would keep Dropout on in evaluation. */
static int check_kwargs(const struct node *kwargs, struct err *e)
{
    const char *key;
    json_t *value;

    if (!node_present(kwargs))
        return 0;
    if (node_object(kwargs, e) < 0)
        return -1;
    json_object_foreach(
        (json_t *)(uintptr_t)kwargs->v, key,
        value) if (!json_is_null(value) &&
                   !json_is_false(value)) return node_key_error(kwargs, key, e,
                                                                "a layer called with '%.60s' is not supported", key);
    return 0;
}

/* Keras 3: {"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": [...]}}], "kwargs": {}} */
static int read_call(const struct node *call, struct node *ret_tensor, struct err *e)
{
    struct node args = node_get(call, "args"), kwargs = node_get(call, "kwargs");

    if (check_kwargs(&kwargs, e) < 0 || node_array(&args, e) < 0)
        return -1;
    struct node tensor = node_item(&args, 0), config = node_get(&tensor, "config");
    if (json_is_array(tensor.v) || node_size(&args) != 1)
        return node_error(&args, e, "a layer with several inputs; " ONLY_CHAINS);
    *ret_tensor = node_get(&config, "keras_history");
    return 0;
}

/* Keras 2: [["dense", 0, 0, {}]], or its only item alone. */
static int read_old_call(const struct node *call, struct node *ret_tensor, struct err *e)
{
    struct node tensor = *call, first = node_item(call, 0);

    if (json_is_array(first.v)) {
        if (node_size(call) != 1)
            return node_error(call, e, "a layer with several inputs; " ONLY_CHAINS);
        tensor = first;
    }
    struct node kwargs = node_item(&tensor, 3);
    *ret_tensor = tensor;
    return check_kwargs(&kwargs, e);
}

/* Ties layer i to the one it is called with. */
static int read_calls(struct chain *c, size_t i, struct err *e)
{
    struct node layer = node_item(&c->layers, i), calls = node_get(&layer, "inbound_nodes"), tensor;
    struct link *from;

    if (node_array(&calls, e) < 0)
        return -1;
    if (c->links[i].is_input && node_size(&calls) == 0)
        return 0;
    if (node_size(&calls) != 1 || c->links[i].is_input)
        return node_error(&calls, e, "layer '%.60s' is called %zu times; " ONLY_CHAINS, c->links[i].name,
                          node_size(&calls));
    struct node call = node_item(&calls, 0);
    if ((json_is_object(call.v) ? read_call(&call, &tensor, e) : read_old_call(&call, &tensor, e)) < 0 ||
        read_tensor(c, &tensor, &from, e) < 0)
        return -1;
    if (from->next != 0)
        return node_error(&call, e, "the output of layer '%.60s' goes to '%.60s' and '%.60s'; " ONLY_CHAINS, from->name,
                          c->links[from->next - 1].name, c->links[i].name);
    from->next = i + 1;
    return 0;
}

static int read_links(struct chain *c, struct err *e)
{
    for (size_t i = 0; i < c->n; i++) {
        struct node layer = node_item(&c->layers, i), name = node_get(&layer, "name"),
                    class_name = node_get(&layer, "class_name");
        struct link *l = &c->links[i];
        if (node_str(&name, &l->name, e) < 0)
            return -1;
        l->is_input = str_eq(json_string_value(class_name.v), "InputLayer");
        if (map_put(&c->places, l->name, l) != NULL)
            return node_error(&name, e, "two layers are named '%.60s'", l->name);
    }
    for (size_t i = 0; i < c->n; i++)
        if (read_calls(c, i, e) < 0)
            return -1;
    return 0;
}

int functional_chain(const struct node *config, size_t **ret_order, size_t *ret_n, struct err *e)
{
    AUTO_FINI(chain) c = { .layers = node_get(config, "layers") };
    struct link *first = NULL, *last = NULL, *at = NULL;
    size_t n = 0;

    if (node_array(&c.layers, e) < 0)
        return -1;
    c.n = node_size(&c.layers);
    c.links = xcalloc(c.n + 1, sizeof(c.links[0]));
    if (read_links(&c, e) < 0 || read_end(&c, config, "input_layers", &first, e) < 0 ||
        read_end(&c, config, "output_layers", &last, e) < 0)
        return -1;
    auto_free size_t *order = xcalloc(c.n + 1, sizeof(order[0]));
    /* Each layer is called once and calls one: this walk cannot come back to where it was, unless to its start. */
    for (at = first; n < c.n; at = &c.links[at->next - 1]) {
        order[n++] = (size_t)(at - c.links);
        if (at->next == 0)
            break;
    }
    if (n != c.n || at != last || !first->is_input)
        return node_error(&c.layers, e, "%zu of %zu layers lie between the input and the output '%.60s'; " ONLY_CHAINS,
                          n, c.n, last->name);
    *ret_order = TAKE(order);
    *ret_n = n;
    return 0;
}
