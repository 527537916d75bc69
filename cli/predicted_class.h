/* predicted_class - the class that a classifier's output names, and its probability. Pure. */
#ifndef TRAINYARD_CLI_PREDICTED_CLASS_H
#define TRAINYARD_CLI_PREDICTED_CLASS_H

#include "job/job.h"
#include "nn/model.h"

struct classifier {
    enum class_output output;
    bool logits;
    size_t width;         /* numbers of an output */
    struct strlist words; /* of the classes from 0 on; others are called by their number */
};
void classifier_fini(struct classifier *c);
DEFINE_AUTO_FINI(classifier, classifier_fini);

/* m is built with the job's compile. names: of the classes that the run was trained with; without any the words are the
 * vocabulary of the label column. ERR_INPUT with the cause when the outputs of the model are not probabilities of
 * classes. `ret` must be empty. */
MUST_USE int classifier_open(const struct job *job, const struct model *m, const struct strlist *names,
                             struct classifier *ret, struct err *e);

struct predicted_class {
    size_t number;
    double probability;
};
/* Of several equal ones the first; one number: class 1 from above 0.5 on, as Keras's binary_accuracy. */
struct predicted_class predicted_class(const struct classifier *c, const float *output);
const char *predicted_class_name(const struct classifier *c, size_t number, char out[32]);

#endif
