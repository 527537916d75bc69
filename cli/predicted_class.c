/* Names the class of an output. Probabilities are computed in doubles; logits go through sigmoid or softmax first. */
#include "predicted_class.h"

#include <math.h>

#include "data/job_learn.h"
#include "data/vocabulary.h"

void classifier_fini(struct classifier *c)
{
    strlist_fini(&c->words);
}

int classifier_open(const struct job *job, const struct model *m, const struct strlist *names, struct classifier *ret,
                    struct err *e)
{
    struct classifier c = { .width = shape_elements(&model_output(m, 0)->shape) };
    if (model_outputs(m) > 1)
        return err_set(e, ERR_INPUT, "--classes: the model has %zu outputs, and only the classes of one can be written",
                       model_outputs(m));
    c.output = model_class_output(m, &c.logits);
    if (c.output == CLASS_NONE)
        return err_set(e, ERR_INPUT,
                       "--classes: the outputs of this model are not probabilities of classes; that is the output of a "
                       "model with a crossentropy as its loss, and one label for each example");
    AUTO_FINI(map) columns = { 0 };
    AUTO_FINI(buf) word = BUF_INIT;
    job_words(job->doc, &columns);
    const json_t *words = job->train.label.n == 1 ? map_get(&columns, job->train.label.items[0]) : NULL;
    for (size_t i = 0; i < names->n; i++)
        strlist_add(&c.words, names->items[i]);
    for (size_t i = 0; names->n == 0 && i < json_array_size(words); i++) {
        vocabulary_word(json_array_get(words, i), false, &word);
        strlist_add(&c.words, word.data);
    }
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
