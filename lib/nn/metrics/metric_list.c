/* compile.metrics: which metrics, under which names, where in the accumulator. */
#include "nn/metrics/metric_list.h"

#include <string.h>
#include <strings.h>

#include "nn/metrics/metric_impl.h"

#define WEIGHTED "weighted_"

enum { METRICS_MAX = 100, THRESHOLDS_MAX = 10000 }; /* lists and sizes that a user chooses */

/* What one entry of the list is checked against. */
struct context {
    const struct loss *loss;
    size_t cols;
};

static bool is_binary(const struct context *c)
{
    return c->cols == 1;
}

/* The meaning of "accuracy" and "crossentropy" depends on the loss and the output (keras compile_utils.get_metric). */
static const char *resolve(const struct context *c, const char *word)
{
    static const struct {
        const char *names[3], *sparse, *binary, *categorical;
    } RULES[] = {
        { { "accuracy", "acc" }, "sparse_categorical_accuracy", "binary_accuracy", "categorical_accuracy" },
        { { "crossentropy", "ce" },
          "sparse_categorical_crossentropy",
          "binary_crossentropy",
          "categorical_crossentropy" },
    };
    for (size_t i = 0; i < COUNT_OF(RULES); i++)
        for (size_t j = 0; j < 3 && RULES[i].names[j] != NULL; j++)
            if (strcasecmp(word, RULES[i].names[j]) == 0)
                return is_binary(c) ? RULES[i].binary : loss_sparse(c->loss) ? RULES[i].sparse : RULES[i].categorical;
    return word;
}

static int check_fits(const struct metric_row *row, const struct context *c, const struct node *n, struct err *e)
{
    if (row->classes && c->cols < 2)
        return node_error(n, e, "%s needs an output of at least 2 classes; this one has 1", row->k.names[1]);
    if ((row->labels == LABELS_SPARSE) == loss_sparse(c->loss))
        return 0;
    if (row->labels == LABELS_SPARSE)
        return node_error(n, e, "%s needs class numbers for labels, but %s takes labels of the output's shape",
                          row->k.names[1], loss_name(c->loss));
    return node_error(n, e, "%s needs labels of the output's shape, but %s takes class numbers", row->k.names[1],
                      loss_name(c->loss));
}

/* The default name of a metric written as `word`: as keras compile_utils.get_metric, a plain string is its own name,
 * and an object has its class's; the objects accuracy and crossentropy stand for keep their word. */
static const char *default_name(const struct context *c, const char *word, bool bare, const struct kind *k)
{
    return bare || resolve(c, word) != word ? word : k->names[1];
}

static int parse_name(struct model_metric *m, const struct context *c, const struct node *n, const struct node *config,
                      const char *word, struct err *e)
{
    const char *name = default_name(c, word, m->bare, &m->row->k);
    if (node_present(config) && config->v != n->v && node_str_or(config, "name", name, &name, e) < 0)
        return -1;
    if (name[0] == '\0')
        return node_key_error(config, "name", e, "must not be empty");
    m->name = xstrdup(name);
    return 0;
}

/* What does not depend on the output and the loss. */
static int parse_class(struct model_metric *m, const struct context *c, const struct node *n, const char **ret_word,
                       struct node *ret_config, struct err *e)
{
    const struct kind *k = NULL;
    if (node_named(n, ret_word, ret_config, e) < 0 || catalog_find(&METRICS, n, resolve(c, *ret_word), &k, e) < 0 ||
        args_parse(k, ret_config, m->arg, e) < 0)
        return -1;
    m->row = (const struct metric_row *)(const void *)k;
    m->bare = json_is_string(n->v);
    m->cols = c->cols;
    if (metric_arg(m, "axis", -1) != -1)
        return node_error(n, e, "only axis -1, the last one, is supported");
    if (metric_arg(m, "num_thresholds", 2) > THRESHOLDS_MAX)
        return node_error(n, e, "num_thresholds is at most %d", THRESHOLDS_MAX);
    return 0;
}

static int metric_parse(struct model_metric *m, const struct context *c, const struct node *n, struct err *e)
{
    const char *word = NULL;
    struct node config;
    if (parse_class(m, c, n, &word, &config, e) < 0 || check_fits(m->row, c, n, e) < 0 ||
        parse_name(m, c, n, &config, word, e) < 0)
        return -1;
    if (m->row->loss != NULL && loss_of(m->row->loss, &config, &m->loss, e) < 0)
        return -1;
    m->width = m->row->width(m);
    return 0;
}

static void metric_fini(struct model_metric *m)
{
    free(m->name);
    loss_free(m->loss);
}

void metric_list_free(struct metric_list *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n; i++)
        metric_fini(&l->items[i]);
    free(l->items);
    free(l);
}

static bool is_taken(const struct metric_list *l, const char *name)
{
    bool taken = strcmp(name, "loss") == 0;
    for (size_t i = 0; i + 1 < l->n; i++)
        taken = taken || strcmp(l->items[i].name, name) == 0;
    return taken;
}

static int name_last(struct metric_list *l, const struct node *n, struct err *e)
{
    struct model_metric *m = &l->items[l->n - 1];
    if (m->weighted && is_taken(l, m->name)) {
        char *longer = xasprintf(WEIGHTED "%s", m->name);
        free(m->name);
        m->name = longer;
        m->renamed = true;
    }
    return is_taken(l, m->name)
               ? node_error(n, e, "there is a metric named '%s' already; give this one a 'name'", m->name)
               : 0;
}

static int add_item(struct metric_list *l, const struct node *n, const struct context *c, bool weighted, struct err *e)
{
    struct model_metric *m = &l->items[l->n++];
    *m = (struct model_metric){ .weighted = weighted };
    if (metric_parse(m, c, n, e) < 0 || name_last(l, n, e) < 0) {
        metric_fini(&l->items[--l->n]);
        return -1;
    }
    m->at = l->width;
    l->width += m->width;
    return 0;
}

/* Appends them. */
static int parse_items(struct metric_list *l, const struct node *n, const struct loss *loss, const struct shape *output,
                       bool weighted, struct err *e)
{
    const bool many = json_is_array(n->v);
    const size_t count = many ? node_size(n) : node_present(n) ? 1 : 0;
    const struct context c = { loss, output->rank > 0 ? (size_t)output->dim[output->rank - 1] : 1 };
    if (count > METRICS_MAX)
        return node_error(n, e, "has %zu entries, at most %d", count, METRICS_MAX);
    if (count > 0 && loss == NULL)
        return node_error(n, e, "metrics need a loss");
    l->items = xrealloc(l->items, (l->n + count + 1) * sizeof(*l->items));
    bool failed = false;
    for (size_t i = 0; i < count && (!failed || node_collects(n)); i++) {
        struct node item = many ? node_item(n, i) : *n;
        failed |= add_item(l, &item, &c, weighted, e) < 0;
    }
    return failed ? -1 : 0;
}

int metric_list_parse(const struct node *n, const struct loss *loss, const struct shape *output,
                      struct metric_list **ret, struct err *e)
{
    AUTO(metric_list) *l = xcalloc(1, sizeof(*l));
    if (parse_items(l, n, loss, output, false, e) < 0)
        return -1;
    *ret = TAKE(l);
    return 0;
}

int metric_list_check(const struct node *n, struct err *e)
{
    static const struct context ANY = { .loss = NULL, .cols = 1 };
    const bool many = json_is_array(n->v);
    const size_t count = many ? MIN(node_size(n), (size_t)METRICS_MAX) : node_present(n) ? 1 : 0;
    bool failed = false;
    for (size_t i = 0; i < count && (!failed || node_collects(n)); i++) {
        struct node item = many ? node_item(n, i) : *n, config;
        struct model_metric ignored = { .name = NULL };
        const char *word;
        failed |= parse_class(&ignored, &ANY, &item, &word, &config, e) < 0;
    }
    return failed ? -1 : 0;
}

int metric_list_add_weighted(struct metric_list *l, const struct node *n, const struct loss *loss,
                             const struct shape *output, struct err *e)
{
    return parse_items(l, n, loss, output, true, e);
}

size_t metric_list_size(const struct metric_list *l)
{
    return l->n;
}

const char *metric_list_name(const struct metric_list *l, size_t i)
{
    return l->items[i].name;
}

static bool class_is_called(const struct model_metric *m, const char *name)
{
    for (size_t i = 0; i < KIND_NAMES_MAX && m->row->k.names[i] != NULL; i++)
        if (strcmp(m->row->k.names[i], name) == 0)
            return true;
    return false;
}

int metric_list_find(const struct metric_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->items[i].name, name) == 0)
            return (int)i;
    for (size_t i = 0; i < l->n; i++)
        if (class_is_called(&l->items[i], name))
            return (int)i;
    return -1;
}

enum better metric_list_better(const struct metric_list *l, size_t i)
{
    return l->items[i].row->better;
}

static json_t *metric_json(const struct model_metric *m)
{
    const char *name = m->name + (m->renamed ? strlen(WEIGHTED) : 0);
    if (m->bare)
        return json_string(name);
    json_t *config = args_config(&m->row->k, m->arg);
    json_object_set_new(config, "name", json_string(name));
    return kind_serialized("keras.metrics", m->row->k.names[0], config);
}

json_t *metric_list_json(const struct metric_list *l, bool weighted)
{
    json_auto_t *list = json_array();
    for (size_t i = 0; i < l->n; i++)
        if (l->items[i].weighted == weighted)
            json_array_append_new(list, metric_json(&l->items[i]));
    return weighted && json_array_size(list) == 0 ? json_null() : json_incref(list);
}

void metric_list_add(const struct metric_list *l, double *acc, const struct metric_batch *b)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct model_metric *m = &l->items[i];
        struct metric_batch own = *b;
        own.w = m->weighted ? b->w : NULL;
        own.mask = m->row->masked ? b->mask : NULL;
        m->row->add(m, acc + m->at, &own);
    }
}

void metric_list_result(const struct metric_list *l, const double *acc, double *ret)
{
    for (size_t i = 0; i < l->n; i++)
        ret[i] = l->items[i].row->result(&l->items[i], acc + l->items[i].at);
}
