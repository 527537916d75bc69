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
    free(m->masks);
    for (size_t i = 0; i < m->ngraphs; i++) {
        model_graph_fini(m->graphs[i]);
        free(m->graphs[i]);
    }
    free(m->graphs);
    free(m->inputs);
    free(m->layers);
    free(m->nodes);
    free(m->vars);
    optimizer_free(m->optimizer);
    for (size_t i = 0; i < m->nheads; i++) {
        free(m->heads[i].name);
        loss_free(m->heads[i].loss);
        metric_list_free(m->heads[i].metrics);
    }
    for (size_t i = 0; i < m->nmeasures; i++)
        free(m->measures[i].name);
    free(m->heads);
    free(m->measures);
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

size_t *model_readers(const struct model *m)
{
    size_t *readers = xcalloc(model_tensors(m) + m->nmasks, sizeof(*readers));
    for (size_t i = 0; i < m->nnodes; i++)
        for (size_t k = 0; k < m->nodes[i].nin; k++)
            readers[m->nodes[i].in[k]]++;
    for (size_t i = 0; i < m->nmasks; i++)
        for (size_t k = 0; k < m->masks[i].nin; k++)
            readers[m->masks[i].in[k]]++;
    return readers;
}

/* Adapting reads the data once, so every layer that leads to this one must be fixed. */
static int check_adapted(const struct model *m, const struct node *at, struct err *e)
{
    /* of each tensor and mask: a layer with variables, or NULL */
    auto_free const char **before = xcalloc(model_tensors(m) + m->nmasks, sizeof(*before));
    for (size_t i = 0; i < m->nnodes; i++) {
        const struct layer *l = model_called(m, i);
        const char *leads = NULL;
        for (size_t k = 0; k < m->nodes[i].nin && leads == NULL; k++)
            leads = before[m->nodes[i].in[k]];
        if (layer_wants_adapt(l) && leads != NULL)
            return node_error(at, e,
                              "Normalization '%s' learns from the data, so it must stand before '%s'; or give "
                              "it mean and variance",
                              l->name, leads);
        before[model_made(m, i)] = l->nvars > 0 ? l->name : leads;
    }
    return 0;
}

/* ---- the whole model ---- */

int model_build(const struct node *model, const struct node *compile, const char *base_dir, struct model **ret,
                struct err *e)
{
    AUTO(model) *m = xcalloc(1, sizeof(*m));
    AUTO_FINI(keras_compile) file = { .doc = NULL };
    if (model_read(m, model, base_dir, &file, e) < 0) {
        struct err more;
        if (node_collects(model) && compile != NULL && node_present(compile))
            (void)!model_compile(m, compile, &file.config, false, &more);
        return -1;
    }
    if (lay_out(m, e) < 0)
        return err_wrap(e, "%s", model->path);
    if (check_adapted(m, model, e) < 0)
        return -1;
    if (compile != NULL && model_compile(m, compile, &file.config, true, e) < 0)
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
    return model_compile(m, compile, &NOTHING, false, e) < 0 || failed ? -1 : 0;
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

size_t model_outputs(const struct model *m)
{
    return m->nheads;
}

const struct named_shape *model_output(const struct model *m, size_t i)
{
    return &m->heads[i].out;
}

size_t model_inputs(const struct model *m)
{
    return m->ninputs;
}

const struct named_shape *model_input(const struct model *m, size_t i)
{
    return &m->inputs[i];
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

const char *model_synchronized(const struct model *m)
{
    for (size_t i = 0; i < m->nlayers; i++)
        if (layer_synchronized(&m->layers[i]))
            return m->layers[i].name;
    return NULL;
}

size_t model_metrics(const struct model *m)
{
    return m->nmeasures;
}

const char *model_metric_name(const struct model *m, size_t i)
{
    return m->measures[i].name;
}

/* A metric of one output by what it measures: "mae", of several "price_mae". */
static bool measure_is_called(const struct model *m, const struct model_measure *one, const char *name)
{
    const struct model_head *h = &m->heads[one->head];
    size_t n = strlen(h->name);
    if (one->metric < 0)
        return false;
    if (m->nheads > 1 && (strncmp(name, h->name, n) != 0 || name[n] != '_'))
        return false;
    return metric_list_find(h->metrics, m->nheads > 1 ? name + n + 1 : name) == one->metric;
}

int model_metric_find(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->nmeasures; i++)
        if (strcmp(m->measures[i].name, name) == 0)
            return (int)i;
    for (size_t i = 0; i < m->nmeasures; i++)
        if (measure_is_called(m, &m->measures[i], name))
            return (int)i;
    return -1;
}

enum better model_metric_better(const struct model *m, size_t i)
{
    const struct model_measure *one = &m->measures[i];
    return one->metric < 0 ? BETTER_DOWN : metric_list_better(m->heads[one->head].metrics, (size_t)one->metric);
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
