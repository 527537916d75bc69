/* What all rows of the table of layers share: variables, axes, Keras's JSON. */
#include <inttypes.h>
#include <string.h>

#include "nn/layers/layer_rows.h"

static void push_variable(struct layer *l, struct var_spec v)
{
    l->var[l->nvars++] = v;
}

void layer_add_variable(struct layer *l, const char *name, struct shape shape, const struct initializer *init,
                        const struct regularizer *r)
{
    push_variable(l, (struct var_spec){ .name = name,
                                        .shape = shape,
                                        .kind = l->trainable ? VAR_TRAINABLE : VAR_CONST,
                                        .init = init,
                                        .regularizer = r != NULL && r->class_name != NULL ? r : NULL });
}

void layer_add_state(struct layer *l, const char *name, struct shape shape, const struct initializer *init,
                     enum variable_kind kind, float momentum)
{
    push_variable(l, (struct var_spec){ .name = name,
                                        .shape = shape,
                                        .kind = l->trainable ? kind : VAR_CONST,
                                        .momentum = momentum,
                                        .init = init });
}

/* ^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$ in tensorflow/python/framework/ops.py; the slash separates scopes. */
char *layer_scope(const char *name)
{
    static const char GOOD[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    char *scope = xcalloc(strlen(name) + 1, 1), *out = scope;
    for (const char *p = name; *p != '\0'; p++) {
        bool continues = ((unsigned char)*p & 0xc0) == 0x80; /* a character of UTF-8 */
        if (!continues)
            *out++ = (char)(strchr(GOOD, *p) != NULL ? *p : '_');
    }
    return scope;
}

int64_t layer_channels(const struct layer *l)
{
    return l->in[0].rank > 0 ? l->in[0].dim[l->in[0].rank - 1] : 1;
}

int layer_check_axis(const struct layer *l, const struct node *config, struct err *e)
{
    struct node axis = node_get(config, "axis");
    struct arg_list given;
    if (arg_list_read(&l->row->k, "axis", config, &given, e) < 0)
        return -1;
    if (given.n > 0 && given.v[0] != -1 && given.v[0] != l->in[0].rank) /* Keras counts the batch axis */
        return node_error(&axis, e, "only the last axis (-1) is supported yet");
    return 0;
}

int layer_same_shape(struct layer *l, const struct node *at UNUSED, struct err *e UNUSED)
{
    l->out = l->in[0];
    return 0;
}

bool layer_passes_numbers(const struct layer *l)
{
    static const bool PASSES[LAYER_COUNT] = {
        [LAYER_FLATTEN] = true,       [LAYER_RESHAPE] = true,     [LAYER_PERMUTE] = true,
        [LAYER_REPEAT_VECTOR] = true, [LAYER_CONCATENATE] = true, [LAYER_IDENTITY] = true,
    };
    return PASSES[l->id];
}

int64_t layer_index_range(const struct layer *l, const char **ret_argument)
{
    static const struct {
        const char *argument;
        size_t at;
    } TAKES[LAYER_COUNT] = { [LAYER_EMBEDDING] = { "input_dim", EMBEDDING_ROWS },
                             [LAYER_CATEGORY_ENCODING] = { "num_tokens", ENCODING_TOKENS } };
    *ret_argument = TAKES[l->id].argument;
    return *ret_argument != NULL ? (int64_t)l->arg[TAKES[l->id].at] : 0;
}

bool layer_wants_adapt(const struct layer *l)
{
    return l->id == LAYER_NORMALIZATION && l->nvars > 0;
}

json_t *shape_json(const struct shape *s, bool batch)
{
    json_t *list = json_array();
    if (batch)
        json_array_append_new(list, json_null());
    for (int i = 0; i < s->rank; i++)
        json_array_append_new(list, batch && s->dim[i] < 0 ? json_null() : json_integer(s->dim[i]));
    return list;
}

/* The shape, or a list of the shapes of a layer that joins. */
static json_t *input_shape_json(const struct layer *l)
{
    if (!l->row->joins)
        return shape_json(&l->in[0], true);
    json_t *list = json_array();
    for (size_t k = 0; k < l->nin; k++)
        json_array_append_new(list, shape_json(&l->in[k], true));
    return list;
}

json_t *layer_json(const struct layer *l)
{
    json_t *config = json_pack("{s:s, s:b, s:o}", "name", l->name, "trainable", (int)l->trainable, "dtype",
                               kind_serialized("keras", "DTypePolicy", json_pack("{s:s}", "name", "float32")));
    json_t *own = args_config(&l->row->k, l->arg);
    json_object_update_missing(config, own);
    json_decref(own);
    if (l->row->config != NULL)
        l->row->config(l, config);
    json_t *layer = kind_serialized("keras.layers", l->row->k.names[0], config);
    json_object_set_new(layer, "build_config", json_pack("{s:o}", "input_shape", input_shape_json(l)));
    return layer;
}

void layer_fini(struct layer *l)
{
    free(l->name);
    free(l->scope);
    free(l->arg);
    if (l->own != NULL && l->row->fini != NULL)
        l->row->fini(l);
    free(l->own);
}
