/* Names the class of an output. Probabilities are computed in doubles; logits go through sigmoid or softmax first. */
#include "predicted_class.h"

#include <math.h>

void classifier_fini(struct classifier *c)
{
    strlist_fini(&c->words);
}

static void read_words(const struct data_spec *d, struct strlist *ret)
{
    if (d->label.n != 1)
        return;
    for (size_t i = 0; i < node_size(&d->columns); i++) {
        struct node column = node_item(&d->columns, i), words = node_get(&column, "vocabulary");
        if (!str_eq(json_string_value(json_object_get(column.v, "name")), d->label.items[0]))
            continue;
        for (size_t j = 0; j < node_size(&words); j++)
            strlist_add(ret, json_string_value(json_array_get(words.v, j)));
    }
}

int classifier_open(const struct job *job, const struct model *m, struct classifier *ret, struct err *e)
{
    struct classifier c = { .width = shape_elements(model_output(m)) };
    c.output = model_class_output(m, &c.logits);
    if (c.output == CLASS_NONE)
        return err_set(e, ERR_INPUT,
                       "--classes: the outputs of this model are not probabilities of classes; that is the output of a "
                       "model with a crossentropy as its loss, and one label for each example");
    read_words(&job->train, &c.words);
    *ret = c;
    return 0;
}

static struct predicted_class of_binary(const struct classifier *c, double v)
{
    double p = c->logits ? 1 / (1 + exp(-v)) : v;
    return (struct predicted_class){ .number = p > 0.5 ? 1 : 0, .probability = p > 0.5 ? p : 1 - p };
}

struct predicted_class predicted_class(const struct classifier *c, const float *output)
{
    if (c->output == CLASS_BINARY)
        return of_binary(c, (double)output[0]);
    size_t best = 0;
    double sum = 0;
    for (size_t i = 1; i < c->width; i++)
        if (output[i] > output[best])
            best = i;
    for (size_t i = 0; c->logits && i < c->width; i++)
        sum += exp((double)output[i] - (double)output[best]);
    return (struct predicted_class){ .number = best, .probability = c->logits ? 1 / sum : (double)output[best] };
}

const char *predicted_class_name(const struct classifier *c, size_t number, char out[32])
{
    if (number < c->words.n)
        return c->words.items[number];
    str_fmt(out, 32, "%zu", number);
    return out;
}
