/* Whether the data fit the model. */
#include "nn/model_impl.h"

/* Equal, but for axes of one element at the end: a (28, 28) image is a (28, 28, 1) image, a number is a (1,). */
static bool shape_fits(const struct shape *a, const struct shape *b)
{
    const struct shape *longer = a->rank >= b->rank ? a : b, *shorter = longer == a ? b : a;
    for (int i = 0; i < longer->rank; i++) {
        if (longer->dim[i] != (i < shorter->rank ? shorter->dim[i] : 1))
            return false;
    }
    return true;
}

static int check_features(const struct model *m, const struct shape *features, struct err *e)
{
    char have[128], want[128];
    if (shape_fits(features, &m->input))
        return 0;
    const char *cure = shape_elements(features) == shape_elements(&m->input)
                           ? "; they hold as many numbers: set inputShape to the data's, and add a Flatten or Reshape"
                           : "";
    return err_set(e, ERR_INPUT, "the model's input is %s, an example of the data is %s%s", shape_text(&m->input, want),
                   shape_text(features, have), cure);
}

static int check_classes(const struct model *m, const struct shape *labels, bool integer, struct err *e)
{
    char have[128], want[128];
    struct shape rows = m->output; /* one label for each row of the output */
    rows.rank = MAX(rows.rank - 1, 0);

    if (!integer)
        return err_set(e, ERR_INPUT,
                       "loss %s wants class numbers, but the labels are not integers; for one-hot labels use "
                       "categorical_crossentropy",
                       loss_name(m->loss));
    if (!shape_fits(labels, &rows))
        return err_set(e, ERR_INPUT, "loss %s wants labels of shape %s, a label of the data is %s", loss_name(m->loss),
                       shape_text(&rows, want), shape_text(labels, have));
    return 0;
}

static int check_values(const struct model *m, const struct shape *labels, bool integer, struct err *e)
{
    char have[128], want[128];
    if (shape_fits(labels, &m->output))
        return 0;
    const char *cure = integer && labels->rank == 0 ? "; for class numbers use sparse_categorical_crossentropy" : "";
    return err_set(e, ERR_INPUT, "the model's output is %s, a label of the data is %s%s", shape_text(&m->output, want),
                   shape_text(labels, have), cure);
}

int model_check_data(const struct model *m, const struct shape *features, const struct shape *labels, bool has_labels,
                     bool integer_labels, struct err *e)
{
    if (check_features(m, features, e) < 0)
        return -1;
    if (m->loss == NULL)
        return 0;
    if (!has_labels)
        return err_set(e, ERR_INPUT, "loss %s needs labels, the data have none", loss_name(m->loss));
    if (loss_sparse(m->loss))
        return check_classes(m, labels, integer_labels, e);
    return check_values(m, labels, integer_labels, e);
}

struct label_range model_label_range(const struct model *m)
{
    const struct shape *out = &m->output;
    if (m->loss == NULL)
        return label_range_any();
    return loss_label_range(m->loss, out->rank > 0 ? out->dim[out->rank - 1] : 1);
}
