/* Reads spec.compile, or what a compiled model of Keras says in its place: an optimizer, and for each output of the
 * model a loss, its weight, and metrics. */
#include <string.h>

#include "base/str.h"
#include "nn/model_impl.h"

/* Of the manifest; where that is silent, of Keras's file. */
static struct node compile_argument(const struct node *n, const char *key, const struct node *file,
                                    const char *keras_key)
{
    struct node own = node_get(n, key), theirs = node_get(file, keras_key);
    return node_present(&own) || !node_present(&theirs) ? own : theirs;
}

/* ---- what belongs to which output ---- */

static size_t find_head(const struct model *m, const char *name)
{
    size_t i = 0;
    while (i < m->nheads && strcmp(m->heads[i].name, name) != 0)
        i++;
    return i;
}

/* "'price' and 'kind'" */
static const char *head_names(const struct model *m, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < m->nheads && at < size; i++) {
        const char *before = i == 0 ? "" : i + 1 < m->nheads ? ", " : " and ";
        str_fmt(out + at, size - at, "%s'%.40s'", before, m->heads[i].name);
        at += strlen(out + at);
    }
    return out;
}

static bool names_an_output(const struct model *m, const struct node *n)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)n->v, key, value)
    {
        if (find_head(m, key) < m->nheads)
            return true;
    }
    return false;
}

static int check_names(const struct model *m, const struct node *n, struct err *e)
{
    const char *key;
    json_t *value;
    char names[256];
    json_object_foreach((json_t *)(uintptr_t)n->v, key, value)
    {
        struct node item = node_get(n, key);
        if (find_head(m, key) == m->nheads)
            return node_error(&item, e, "'%.60s' is not an output of the model, whose outputs are %s", key,
                              head_names(m, names, sizeof(names)));
    }
    return 0;
}

/* ret[i]: what a list or a map says for output i, v NULL where it says nothing. needed: what each must have, "loss";
 * NULL: nothing. */
static int share_out(const struct model *m, const struct node *n, const char *what, const char *needed,
                     struct node *ret, struct err *e)
{
    char names[256];
    if (json_is_array(n->v) && node_size(n) != m->nheads)
        return node_error(n, e, "the model has %zu outputs, and the list is for %zu: write %s", m->nheads, node_size(n),
                          what);
    if (!json_is_array(n->v) && !json_is_object(n->v))
        return node_error(n, e, "the model has the outputs %s: write %s", head_names(m, names, sizeof(names)), what);
    if (json_is_object(n->v) && check_names(m, n, e) < 0)
        return -1;
    for (size_t i = 0; i < m->nheads; i++) {
        ret[i] = json_is_array(n->v) ? node_item(n, i) : node_get(n, m->heads[i].name);
        if (needed != NULL && !node_present(&ret[i]))
            return node_error(n, e, "output '%s' has no %s: each of %s needs one", m->heads[i].name, needed,
                              head_names(m, names, sizeof(names)));
    }
    return 0;
}

/* ---- losses ---- */

/* A name, {Huber: {delta: 2}} or {class_name: Huber, ...}. */
static bool is_one_loss(const json_t *v)
{
    const char *only = json_object_size(v) == 1 ? json_object_iter_key(json_object_iter((json_t *)(uintptr_t)v)) : NULL;
    return json_is_string(v) || json_object_get(v, "class_name") != NULL ||
           (only != NULL && catalog_knows(&LOSSES, only));
}

/* A list, or a map by the names of outputs, whichever these are. */
static bool is_one_for_each(const json_t *v)
{
    if (!json_is_object(v) || is_one_loss(v))
        return json_is_array(v);
    return json_object_size(v) > 1 ||
           (json_object_size(v) == 1 && is_one_loss(json_object_iter_value(json_object_iter((json_t *)(uintptr_t)v))));
}

static int read_loss(struct model_head *h, const struct node *n, struct err *e)
{
    struct err why = { 0 };
    if (loss_parse(n, &h->loss, e) < 0)
        return -1;
    return loss_check(h->loss, &h->out.shape, &why) < 0 ? node_error(n, e, "%s", why.msg) : 0;
}

/* One for all outputs, or one for each. */
static int read_losses(struct model *m, const struct node *n, struct err *e)
{
    auto_free struct node *own = xcalloc(m->nheads, sizeof(*own));
    bool one = !names_an_output(m, n) && !is_one_for_each(n->v);
    if (!one && share_out(m, n, "a loss for each, as a map or a list", "loss", own, e) < 0)
        return -1;
    for (size_t i = 0; i < m->nheads; i++)
        if (read_loss(&m->heads[i], one ? n : &own[i], e) < 0)
            return -1;
    return 0;
}

static int read_loss_weights(struct model *m, const struct node *n, struct err *e)
{
    auto_free struct node *own = xcalloc(m->nheads, sizeof(*own));
    if (!node_present(n))
        return 0;
    if (m->nheads == 1 && json_is_number(n->v))
        own[0] = *n;
    else if (share_out(m, n, "a weight for each, as a map or a list", "weight", own, e) < 0)
        return -1;
    for (size_t i = 0; i < m->nheads; i++)
        if (node_f64(&own[i], &m->heads[i].loss_weight, e) < 0)
            return -1;
    return 0;
}

/* ---- metrics ---- */

static int read_metrics(struct model *m, const struct node *n, bool weighted, struct err *e)
{
    auto_free struct node *own = xcalloc(m->nheads, sizeof(*own));
    if (m->nheads == 1 && !names_an_output(m, n))
        own[0] = *n;
    else if (node_present(n) && share_out(m, n, "the metrics of each, as a map or a list", NULL, own, e) < 0)
        return -1;
    for (size_t i = 0; i < m->nheads; i++) {
        struct model_head *h = &m->heads[i];
        if ((weighted ? metric_list_add_weighted(h->metrics, &own[i], h->loss, &h->out.shape, e)
                      : metric_list_parse(&own[i], h->loss, &h->out.shape, &h->metrics, e)) < 0)
            return -1;
    }
    return 0;
}

static void add_measure(struct model *m, size_t head, int metric, char *name)
{
    m->measures[m->nmeasures++] = (struct model_measure){ .name = name, .head = head, .metric = metric };
}

/* In the order in which they are printed. */
static void list_measures(struct model *m)
{
    bool several = m->nheads > 1;
    size_t n = 1 + m->nheads;
    for (size_t i = 0; i < m->nheads; i++)
        n += metric_list_size(m->heads[i].metrics);
    m->measures = xcalloc(n, sizeof(m->measures[0]));
    add_measure(m, 0, -1, xstrdup("loss"));
    for (size_t i = 0; several && i < m->nheads; i++)
        add_measure(m, i, -1, xasprintf("%s_loss", m->heads[i].name));
    for (size_t i = 0; i < m->nheads; i++) {
        const struct model_head *h = &m->heads[i];
        for (size_t k = 0; k < metric_list_size(h->metrics); k++) {
            const char *name = metric_list_name(h->metrics, k);
            add_measure(m, i, (int)k, several ? xasprintf("%s_%s", h->name, name) : xstrdup(name));
        }
    }
}

/* ---- compile ---- */

static int check_one_loss(const struct node *n, struct err *e)
{
    AUTO(loss) *ignored = NULL;
    return loss_parse(n, &ignored, e);
}

/* Without the outputs: which losses there are, and their arguments. */
static int check_losses_alone(const struct node *n, struct err *e)
{
    const char *key;
    json_t *value;
    if (!is_one_for_each(n->v))
        return check_one_loss(n, e);
    for (size_t i = 0; i < json_array_size(n->v); i++) {
        struct node item = node_item(n, i);
        if (check_one_loss(&item, e) < 0)
            return -1;
    }
    json_object_foreach((json_t *)(uintptr_t)n->v, key, value)
    {
        struct node item = node_get(n, key);
        if (check_one_loss(&item, e) < 0)
            return -1;
    }
    return 0;
}

/* Which metrics there are, and their arguments. A map is not looked at: it may name outputs. */
static int check_metrics_alone(const struct node *n, struct err *e)
{
    bool failed = false;
    if (json_is_object(n->v))
        return 0;
    if (!json_is_array(n->v))
        return metric_list_check(n, e);
    for (size_t i = 0; i < node_size(n) && (!failed || node_collects(n)); i++) {
        struct node item = node_item(n, i); /* a metric, or a list of those of an output */
        failed |= node_present(&item) && metric_list_check(&item, e) < 0;
    }
    return failed ? -1 : 0;
}

int model_check_compile(const struct node *compile, struct err *e)
{
    static const char *const LISTS[] = { "metrics", "weightedMetrics" };
    AUTO(optimizer) *optimizer = NULL;
    struct node about_optimizer = node_get(compile, "optimizer"), loss = node_get(compile, "loss");
    bool failed = node_present(&about_optimizer) && optimizer_parse(&about_optimizer, &optimizer, e) < 0;
    if (!failed || node_collects(compile))
        failed |= node_present(&loss) && check_losses_alone(&loss, e) < 0;
    for (size_t i = 0; i < COUNT_OF(LISTS) && (!failed || node_collects(compile)); i++) {
        struct node metrics = node_get(compile, LISTS[i]);
        failed |= check_metrics_alone(&metrics, e) < 0;
    }
    return failed ? -1 : 0;
}

static int compile_losses(struct model *m, const struct node *n, const struct node *loss, bool with_output,
                          struct err *e)
{
    if (node_present(loss))
        return with_output ? read_losses(m, loss, e) : check_losses_alone(loss, e);
    return node_present(n) ? node_error(n, e, "loss is missing")
                           : node_error(n, e, "is missing, and the model of Keras has no compile_config with a loss");
}

int model_compile(struct model *m, const struct node *n, const struct node *file, bool with_output, struct err *e)
{
    static const char *const KEYS[] = { "optimizer", "loss", "lossWeights", "metrics", "weightedMetrics" };
    struct node optimizer = compile_argument(n, "optimizer", file, "optimizer"),
                loss = compile_argument(n, "loss", file, "loss"), weights = node_get(n, "lossWeights"),
                metrics = compile_argument(n, "metrics", file, "metrics"),
                weighted = compile_argument(n, "weightedMetrics", file, "weighted_metrics");

    if (node_present(&loss) && loss.v == node_get(file, "loss").v) /* Keras's weights are for its own losses */
        weights = compile_argument(n, "lossWeights", file, "loss_weights");
    json_auto_t *rmsprop = json_string("rmsprop"); /* Keras's default */
    if (!node_present(&optimizer))
        optimizer.v = rmsprop;
    bool failed = node_present(n) && node_only(n, KEYS, COUNT_OF(KEYS), e) < 0;
    if (!failed || node_collects(n))
        failed |= optimizer_parse(&optimizer, &m->optimizer, e) < 0;
    if (!failed || node_collects(n))
        failed |= compile_losses(m, n, &loss, with_output, e) < 0;
    if (failed && !node_collects(n))
        return -1;
    if (failed || !with_output)
        return check_metrics_alone(&metrics, e) < 0 || check_metrics_alone(&weighted, e) < 0 || failed ? -1 : 0;
    failed = read_loss_weights(m, &weights, e) < 0;
    if (!failed || node_collects(n))
        failed |= read_metrics(m, &metrics, false, e) < 0;
    if (failed || read_metrics(m, &weighted, true, e) < 0)
        return -1;
    list_measures(m);
    return 0;
}

/* ---- as Keras's arguments ---- */

/* One alone; of several the map by names. */
static json_t *by_name(const struct model *m, json_t *(*value)(const struct model_head *h))
{
    if (m->nheads == 1)
        return value(&m->heads[0]);
    json_t *map = json_object();
    for (size_t i = 0; i < m->nheads; i++)
        json_object_set_new(map, m->heads[i].name, value(&m->heads[i]));
    return map;
}

static json_t *head_loss(const struct model_head *h)
{
    return loss_json(h->loss);
}

static json_t *head_weight(const struct model_head *h)
{
    return json_real(h->loss_weight);
}

static json_t *head_metrics(const struct model_head *h)
{
    return metric_list_json(h->metrics, false);
}

static json_t *head_weighted_metrics(const struct model_head *h)
{
    return metric_list_json(h->metrics, true);
}

static bool has_loss_weights(const struct model *m)
{
    for (size_t i = 0; i < m->nheads; i++)
        if (m->heads[i].loss_weight != 1)
            return true;
    return false;
}

json_t *model_compile_json(const struct model *m)
{
    json_t *optimizer =
        kind_serialized("keras.optimizers", optimizer_name(m->optimizer), optimizer_config(m->optimizer));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:i, s:b}", "optimizer", optimizer, "loss", by_name(m, head_loss),
                     "loss_weights", has_loss_weights(m) ? by_name(m, head_weight) : json_null(), "metrics",
                     by_name(m, head_metrics), "weighted_metrics", by_name(m, head_weighted_metrics), "run_eagerly", 0,
                     "steps_per_execution", 1, "jit_compile", 0);
}
