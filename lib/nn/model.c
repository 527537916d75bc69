/* Builds a model: checks compile against the output, and lays the variables out in one vector. */
#include "nn/model.h"

#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "nn/model_impl.h"

void model_free(struct model *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->nlayers; i++)
        layer_fini(&m->layers[i]);
    for (size_t i = 0; i < m->nvars; i++)
        free(m->vars[i].name);
    for (size_t i = 0; i < m->nnodes; i++)
        free(m->nodes[i].again);
    for (size_t i = 0; i < m->ngraphs; i++) {
        model_graph_fini(m->graphs[i]);
        free(m->graphs[i]);
    }
    free(m->graphs);
    free(m->layers);
    free(m->nodes);
    free(m->vars);
    optimizer_free(m->optimizer);
    loss_free(m->loss);
    metric_list_free(m->metrics);
    free(m);
}

/* ---- the parameter vector ---- */

static int add_variable(struct model *m, size_t layer, int index, struct err *e)
{
    struct layer *l = &m->layers[layer];
    const struct var_spec *spec = &l->var[index];
    size_t count, end;

    if (initializer_check(spec->init, &spec->shape, e) < 0)
        return err_wrap(e, "%s/%s", l->name, spec->name);
    if (shape_count(&spec->shape, &count, e) < 0 || size_add(m->size, count, &end, e) < 0 ||
        end > SIZE_MAX / sizeof(float) / 64)
        return err_set(e, ERR_INPUT, "%s/%s: the model is too large", l->name, spec->name);
    struct model_var *mv = &m->vars[m->nvars];
    mv->spec = spec;
    mv->name = xasprintf("%s/%s", l->scope, spec->name);
    mv->v = (struct variable){ .name = mv->name,
                               .shape = spec->shape,
                               .offset = m->size,
                               .count = count,
                               .kind = spec->kind,
                               .momentum = spec->momentum,
                               .layer = (int)layer,
                               .pin = l->pin };
    l->var_index[index] = m->nvars++;
    m->size = (end + VARIABLE_ALIGN - 1) / VARIABLE_ALIGN * VARIABLE_ALIGN;
    m->params += count;
    return 0;
}

/* Creation order, trainable ones first. */
static int lay_out(struct model *m, struct err *e)
{
    size_t total = 0;
    for (size_t i = 0; i < m->nlayers; i++)
        total += (size_t)m->layers[i].nvars;
    m->vars = xcalloc(total, sizeof(*m->vars));
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < m->nlayers; i++) {
            for (int k = 0; k < m->layers[i].nvars; k++) {
                bool trainable = m->layers[i].var[k].kind == VAR_TRAINABLE;
                if (trainable == (pass == 0) && add_variable(m, i, k, e) < 0)
                    return -1;
            }
        }
        if (pass == 0) {
            m->trainable_size = m->size;
            m->trainable_params = m->params;
        }
    }
    for (size_t i = 0; i < m->nnodes; i++)
        if (m->nodes[i].again != NULL)
            memcpy(m->nodes[i].again->var_index, m->layers[m->nodes[i].layer].var_index,
                   sizeof(m->nodes[i].again->var_index));
    return 0;
}

/* Adapting reads the data once, so every layer before this one must be fixed. */
static int check_adapted(const struct model *m, const struct node *at, struct err *e)
{
    const char *before = NULL;
    for (size_t i = 0; i < m->nlayers; i++) {
        const struct layer *l = &m->layers[i];
        if (layer_wants_adapt(l) && before != NULL)
            return node_error(at, e,
                              "Normalization '%s' learns from the data, so it must stand before '%s'; or give "
                              "it mean and variance",
                              l->name, before);
        if (l->nvars > 0)
            before = l->name;
    }
    return 0;
}

/* ---- compile ---- */

/* Of the manifest; where that is silent, of Keras's file. */
static struct node compile_argument(const struct node *n, const char *key, const struct node *file,
                                    const char *keras_key)
{
    struct node own = node_get(n, key), theirs = node_get(file, keras_key);
    return node_present(&own) || !node_present(&theirs) ? own : theirs;
}

/* file: of the model, v NULL: it says nothing. with_output false: the model's output is not known, and only what does
 * not need it is checked. */
static int read_compile(struct model *m, const struct node *n, const struct node *file, bool with_output, struct err *e)
{
    static const char *const KEYS[] = { "optimizer", "loss", "metrics", "weightedMetrics" };
    struct node optimizer = compile_argument(n, "optimizer", file, "optimizer"),
                loss = compile_argument(n, "loss", file, "loss"),
                metrics = compile_argument(n, "metrics", file, "metrics"),
                weighted = compile_argument(n, "weightedMetrics", file, "weighted_metrics");
    struct err why = { 0 };

    bool failed = node_present(n) && node_only(n, KEYS, COUNT_OF(KEYS), e) < 0;
    if (failed && !node_collects(n))
        return -1;
    struct node own_loss = node_get(n, "loss"), loss_weights = node_get(file, "loss_weights");
    if (!node_present(&own_loss) && node_present(&loss_weights))
        return node_error(&loss_weights, e,
                          "weights of losses are not supported yet: set compile.loss in the manifest");
    json_auto_t *rmsprop = json_string("rmsprop"); /* Keras's default */
    if (!node_present(&loss))
        return node_present(n)
                   ? node_error(n, e, "loss is missing")
                   : node_error(n, e, "is missing, and the model of Keras has no compile_config with a loss");
    if (!node_present(&optimizer))
        optimizer.v = rmsprop;
    failed |= optimizer_parse(&optimizer, &m->optimizer, e) < 0;
    if (failed && !node_collects(n))
        return -1;
    failed |= loss_parse(&loss, &m->loss, e) < 0;
    if (failed || !with_output)
        return failed ? -1 : 0;
    if (loss_check(m->loss, &m->output, &why) < 0)
        return node_error(&loss, e, "%s", why.msg);
    return metric_list_parse(&metrics, m->loss, &m->output, &m->metrics, e) < 0
               ? -1
               : metric_list_add_weighted(m->metrics, &weighted, m->loss, &m->output, e);
}

int model_build(const struct node *model, const struct node *compile, const char *base_dir, struct model **ret,
                struct err *e)
{
    AUTO(model) *m = xcalloc(1, sizeof(*m));
    AUTO_FINI(keras_compile) file = { .doc = NULL };
    if (model_read(m, model, base_dir, &file, e) < 0) {
        struct err more;
        if (node_collects(model) && compile != NULL && node_present(compile))
            (void)!read_compile(m, compile, &file.config, false, &more);
        return -1;
    }
    if (lay_out(m, e) < 0)
        return err_wrap(e, "%s", model->path);
    if (check_adapted(m, model, e) < 0)
        return -1;
    if (compile != NULL && read_compile(m, compile, &file.config, true, e) < 0)
        return -1;
    *ret = TAKE(m);
    return 0;
}

int model_check(const struct node *model, const struct node *compile, struct err *e)
{
    static const struct node NOTHING = { .v = NULL };
    AUTO(model) *m = xcalloc(1, sizeof(*m));
    bool failed = model_check_layers(m, model, e) < 0;
    if (failed && !node_collects(model))
        return -1;
    return read_compile(m, compile, &NOTHING, false, e) < 0 || failed ? -1 : 0;
}

/* ---- what is in it ---- */

size_t model_size(const struct model *m)
{
    return m->size;
}

size_t model_params(const struct model *m)
{
    return m->params;
}

size_t model_variables(const struct model *m)
{
    return m->nvars;
}

const struct variable *model_variable(const struct model *m, size_t i)
{
    return &m->vars[i].v;
}

const struct optimizer *model_optimizer(const struct model *m)
{
    return m->optimizer;
}

const struct shape *model_output(const struct model *m)
{
    return &m->output;
}

bool model_is_chain(const struct model *m)
{
    const struct model_graph *g = m->graphs[0];
    for (size_t i = 0; i < g->nitems; i++)
        if (g->items[i].kind == ITEM_LAYER && m->layers[g->items[i].index].row->joins)
            return false;
    return graph_is_chain(g);
}

const char *model_item_name(const struct model *m, const struct model_graph *g, size_t item)
{
    const struct graph_item *it = &g->items[item];
    return it->kind == ITEM_INPUT   ? g->inputs[it->index].name
           : it->kind == ITEM_LAYER ? m->layers[it->index].name
                                    : m->graphs[it->index]->name;
}

const char *model_name(const struct model *m)
{
    return m->graphs[0]->name;
}

bool model_wants_adapt(const struct model *m)
{
    for (size_t i = 0; i < m->nlayers; i++) {
        if (layer_wants_adapt(&m->layers[i]))
            return true;
    }
    return false;
}

size_t model_metrics(const struct model *m)
{
    return m->loss != NULL ? 1 + metric_list_size(m->metrics) : 0;
}

const char *model_metric_name(const struct model *m, size_t i)
{
    return i == 0 ? "loss" : metric_list_name(m->metrics, i - 1);
}

int model_metric_find(const struct model *m, const char *name)
{
    if (strcmp(name, "loss") == 0)
        return 0;
    int i = m->metrics != NULL ? metric_list_find(m->metrics, name) : -1;
    return i < 0 ? -1 : i + 1;
}

enum better model_metric_better(const struct model *m, size_t i)
{
    return i == 0 ? BETTER_DOWN : metric_list_better(m->metrics, i - 1);
}

void model_init(const struct model *m, uint64_t seed, float *ret_values)
{
    memset(ret_values, 0, m->size * sizeof(*ret_values));
    for (size_t i = 0; i < m->nvars; i++) {
        const struct variable *v = &m->vars[i].v;
        struct rng r = rng_at(seed, RNG_INIT, i, 0);
        initializer_draw(m->vars[i].spec->init, &v->shape, &r, ret_values + v->offset);
    }
}
