/* Reads fit.classWeight against the model's labels, and weighs the examples of a batch. */
#include "nn/class_weight.h"

#include <float.h>
#include <math.h>

#include "nn/model_impl.h"
#include "tensor/kernel.h"

struct class_weights {
    size_t n;      /* classes that may be named */
    size_t labels; /* numbers of an example's label; one: the class itself */
    float weight[];
};

/* The number of classes that the model distinguishes; 0: its labels are not classes. */
static size_t class_count(const struct model *m)
{
    const size_t all = shape_elements(&m->heads[0].out.shape);
    if (loss_has_classes(m->heads[0].loss))
        return m->heads[0].out.shape.rank <= 1 ? all : 0;
    return all == 1 ? 2 : 0;
}

static int check_model(const struct node *n, const struct model *m, struct err *e)
{
    char text[128];
    if (m != NULL && m->nheads > 1)
        return node_error(n, e,
                          "is for models with one output, as in Keras; weigh the examples instead "
                          "(data.train.sampleWeight)");
    if (m == NULL || class_count(m) > 0)
        return 0;
    if (loss_has_classes(m->heads[0].loss))
        return node_error(n, e,
                          "an output of shape %s has several classes for each example; weigh the examples instead "
                          "(data.train.sampleWeight)",
                          shape_text(&m->heads[0].out.shape, text));
    return node_error(n, e,
                      "with loss %s an example has %zu labels and no class; take categorical_crossentropy for one-hot "
                      "labels, or weigh the examples instead (data.train.sampleWeight)",
                      loss_name(m->heads[0].loss), shape_elements(&m->heads[0].out.shape));
}

/* Numbers as YAML and JSON write them: 0, 1, 10. */
static int read_class(const struct node *n, const char *key, size_t classes, int64_t *ret, struct err *e)
{
    struct node item = node_get(n, key);
    bool plain = key[0] >= '0' && key[0] <= '9' && (key[0] != '0' || key[1] == '\0');
    if (!plain || str_i64(key, 0, INT32_MAX, ret, NULL) < 0)
        return node_error(&item, e, "'%.40s' is not a valid class number; the first class is 0", key);
    if (classes > 0 && *ret >= (int64_t)classes)
        return node_error(&item, e, "class %lld does not exist: the model has %zu, 0 to %zu", (long long)*ret, classes,
                          classes - 1);
    return 0;
}

static int read_weight(const struct node *n, float *ret, struct err *e)
{
    double v;
    if (node_f64(n, &v, e) < 0)
        return -1;
    if (!(v >= 0 && v <= (double)FLT_MAX))
        return node_error(n, e, "must be a weight of 0 or more that float32 can hold");
    *ret = (float)v;
    return 0;
}

static int read_all(const struct node *n, size_t classes, struct class_weights *c, struct err *e)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)n->v, key, value)
    {
        struct node item = node_get(n, key);
        int64_t number;
        float weight;
        if (read_class(n, key, classes, &number, e) < 0 || read_weight(&item, &weight, e) < 0)
            return -1;
        if (c != NULL)
            c->weight[number] = weight;
    }
    return 0;
}

int class_weights_check(const struct node *n, const struct model *m, struct err *e)
{
    if (!node_present(n))
        return 0;
    if (node_object(n, e) < 0 || check_model(n, m, e) < 0)
        return -1;
    if (node_size(n) == 0)
        return node_error(n, e, "names no class; write '{0: 1.0, 1: 5.0}', or leave it out");
    return read_all(n, m != NULL ? class_count(m) : 0, NULL, e);
}

int class_weights_parse(const struct node *n, const struct model *m, struct class_weights **ret, struct err *e)
{
    AUTO(class_weights) *c = NULL;
    void *memory;
    if (!node_present(n))
        return 0;
    if (class_weights_check(n, m, e) < 0)
        return -1;
    const size_t classes = class_count(m);
    if (mem_alloc(sizeof(*c) + classes * sizeof(c->weight[0]), "the weights of classes", &memory, e) < 0)
        return -1;
    c = memory;
    c->n = classes;
    c->labels = loss_sparse(m->heads[0].loss) ? 1 : shape_elements(&m->heads[0].out.shape);
    for (size_t i = 0; i < classes; i++)
        c->weight[i] = 1;
    if (read_all(n, classes, c, e) < 0)
        return -1;
    *ret = TAKE(c);
    return 0;
}

void class_weights_free(struct class_weights *c)
{
    free(c);
}

/* ---- of a batch ---- */

/* The class of example i; a class that the model does not have has no separate weight. */
static float weight_of(const struct class_weights *c, const struct batch *b, size_t i)
{
    double number;
    if (b->y[0].dtype == DT_INT32)
        number = ((const int32_t *)b->y[0].data)[i];
    else if (c->labels > 1)
        number = (double)kernel_argmax((const float *)b->y[0].data + i * c->labels, c->labels);
    else
        number = nearbyint((double)((const float *)b->y[0].data)[i]); /* half to even, as numpy.round */
    return number >= 0 && number < (double)c->n ? c->weight[(size_t)number] : 1.0F;
}

void class_weights_of(const struct class_weights *c, const struct batch *b, float *ret)
{
    for (size_t i = 0; i < b->n; i++)
        ret[i] = weight_of(c, b, i) * (b->weight != NULL ? b->weight[i] : 1.0F);
}
