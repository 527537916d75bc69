/* compile.metrics: which metrics, under which names, where in the accumulator. */
#include "nn/metric_list.h"

#include <string.h>
#include <strings.h>

#include "nn/metric_impl.h"

enum { METRICS_MAX = 100, THRESHOLDS_MAX = 10000 }; /* lists and sizes that a user chooses */

/* What one entry of the list is judged by. */
struct context {
    const struct loss *loss;
    size_t cols;
};

static bool is_binary(const struct context *c)
{
    return c->cols == 1;
}

/* "accuracy" and "crossentropy" mean what the loss and the output say (keras compile_utils.get_metric). */
static const char *resolve(const struct context *c, const char *word)
{
    static const struct {
        const char *names[3], *sparse, *binary, *categorical;
    } RULES[] = {
        { { "accuracy", "acc" }, "sparse_categorical_accuracy", "binary_accuracy", "categorical_accuracy" },
        { { "crossentropy", "ce" }, "sparse_categorical_crossentropy", "binary_crossentropy",
          "categorical_crossentropy" },
    };
    for (size_t i = 0; i < COUNT_OF(RULES); i++)
        for (size_t j = 0; j < 3 && RULES[i].names[j] != NULL; j++)
            if (strcasecmp(word, RULES[i].names[j]) == 0)
                return is_binary(c)           ? RULES[i].binary
                       : loss_sparse(c->loss) ? RULES[i].sparse
                                              : RULES[i].categorical;
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

/* The default name of a metric written as `word`: as Keras, the class's, but accuracy and acc stay. */
static const char *default_name(const struct context *c, const char *word, const struct kind *k)
{
    return resolve(c, word) == word ? k->names[1] : word;
}

static int parse_name(struct metric *m, const struct context *c, const struct node *n, const struct node *config,
                      const char *word, struct err *e)
{
    const char *name = default_name(c, word, &m->row->k);
    if (node_present(config) && config->v != n->v && node_str_or(config, "name", name, &name, e) < 0)
        return -1;
    if (name[0] == '\0')
        return node_key_error(config, "name", e, "must not be empty");
    m->name = xstrdup(name);
    return 0;
}

static int metric_parse(struct metric *m, const struct context *c, const struct node *n, struct err *e)
{
    const char *word = NULL;
    const struct kind *k = NULL;
    struct node config;
    if (node_named(n, &word, &config, e) < 0 || catalog_find(&METRICS, n, resolve(c, word), &k, e) < 0 ||
        args_parse(k, &config, m->arg, e) < 0)
        return -1;
    m->row = (const struct metric_row *)(const void *)k;
    m->bare = json_is_string(n->v);
    m->cols = c->cols;
    if (check_fits(m->row, c, n, e) < 0 || parse_name(m, c, n, &config, word, e) < 0)
        return -1;
    if (metric_arg(m, "axis", -1) != -1)
        return node_error(n, e, "only axis -1, the last one, is supported");
    if (metric_arg(m, "num_thresholds", 2) > THRESHOLDS_MAX)
        return node_error(n, e, "num_thresholds is at most %d", THRESHOLDS_MAX);
    if (m->row->loss != NULL && loss_of(m->row->loss, &config, &m->loss, e) < 0)
        return -1;
    m->width = m->row->width(m);
    return 0;
}

void metric_list_free(struct metric_list *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].name);
        loss_free(l->items[i].loss);
    }
    free(l->items);
    free(l);
}

static int check_new_name(const struct metric_list *l, const struct node *n, struct err *e)
{
    const char *name = l->items[l->n - 1].name;
    bool twice = strcmp(name, "loss") == 0;
    for (size_t i = 0; i + 1 < l->n; i++)
        twice = twice || strcmp(l->items[i].name, name) == 0;
    return twice ? node_error(n, e, "there is a metric named '%s' already; give this one a 'name'", name) : 0;
}

int metric_list_parse(const struct node *n, const struct loss *loss, const struct shape *output,
                      struct metric_list **ret, struct err *e)
{
    AUTO(metric_list) *l = xcalloc(1, sizeof *l);
    const bool many = json_is_array(n->v);
    const size_t count = many ? node_size(n) : node_present(n) ? 1 : 0;
    const struct context c = { loss, output->rank > 0 ? (size_t)output->dim[output->rank - 1] : 1 };
    if (count > METRICS_MAX)
        return node_error(n, e, "has %zu entries, at most %d", count, METRICS_MAX);
    if (count > 0 && loss == NULL)
        return node_error(n, e, "metrics need a loss");
    l->items = xcalloc(count + 1, sizeof *l->items);
    for (size_t i = 0; i < count; i++) {
        struct node item = many ? node_item(n, i) : *n;
        struct metric *m = &l->items[l->n++];
        if (metric_parse(m, &c, &item, e) < 0 || check_new_name(l, &item, e) < 0)
            return -1;
        m->at = l->width;
        l->width += m->width;
    }
    *ret = TAKE(l);
    return 0;
}

size_t metric_list_size(const struct metric_list *l)
{
    return l->n;
}

const char *metric_list_name(const struct metric_list *l, size_t i)
{
    return l->items[i].name;
}

json_t *metric_list_json(const struct metric_list *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->n; i++) {
        const struct metric *m = &l->items[i];
        if (m->bare) {
            json_array_append_new(list, json_string(m->name));
            continue;
        }
        json_t *config = args_config(&m->row->k, m->arg);
        json_object_set_new(config, "name", json_string(m->name));
        json_array_append_new(list, kind_serialized("keras.metrics", m->row->k.names[0], config));
    }
    return list;
}

void metric_list_add(const struct metric_list *l, double *acc, const struct metric_batch *b)
{
    for (size_t i = 0; i < l->n; i++)
        l->items[i].row->add(&l->items[i], acc + l->items[i].at, b);
}

void metric_list_result(const struct metric_list *l, const double *acc, double *ret)
{
    for (size_t i = 0; i < l->n; i++)
        ret[i] = l->items[i].row->result(&l->items[i], acc + l->items[i].at);
}
