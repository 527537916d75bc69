/* Whether the data fit the model. Each message says what the data have, what the model wants, and the probable cure. */
#include "base/str.h"
#include "nn/model_impl.h"

enum { CURE_MAX = 160 };

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

static int check_one_input(const struct named_shape *in, const struct shape *features, struct err *e)
{
    char have[128], want[128];
    const char *cure = shape_elements(features) == shape_elements(&in->shape)
                           ? "; they hold as many numbers: set inputShape to the data's, and add a Flatten or Reshape"
                           : "; choose the features that the model expects, or set inputShape to the data's";
    return err_set(e, ERR_INPUT, "the model's input is %s, an example of the data is %s%s",
                   shape_text(&in->shape, want), shape_text(features, have), cure);
}

int model_check_input(const struct model *m, size_t input, const struct shape *features, struct err *e)
{
    char have[128], want[128];
    const struct named_shape *in = &m->inputs[input];
    if (shape_fits(features, &in->shape))
        return 0;
    if (m->ninputs == 1)
        return check_one_input(in, features, e);
    return err_set(e, ERR_INPUT, "the model's input '%s' is %s, and the data have %s for it", in->name,
                   shape_text(&in->shape, want), shape_text(features, have));
}

/* One for each row of the output. They are numbers of any type, which are checked as they are read. */
static int check_several_classes(const struct model_head *h, const struct shape *labels, const struct shape *rows,
                                 struct err *e)
{
    char have[128], want[128], out[128];
    if (shape_fits(labels, rows))
        return 0;
    return err_set(e, ERR_INPUT,
                   "the labels have shape %s; %s of an output %s wants class numbers of shape %s for each example; %s",
                   shape_text(labels, have), loss_name(h->loss), shape_text(&h->out.shape, out), shape_text(rows, want),
                   shape_fits(labels, &h->out.shape) ? "one-hot labels need categorical_crossentropy"
                                                     : "choose other labels, or an output with as many rows");
}

static int check_classes(const struct model_head *h, const struct shape *labels, bool integer, struct err *e)
{
    char have[128];
    struct shape rows = h->out.shape; /* one label for each row of the output */
    rows.rank = MAX(rows.rank - 1, 0);

    if (rows.rank > 0)
        return check_several_classes(h, labels, &rows, e);
    shape_text(labels, have);
    if (!shape_fits(labels, &rows))
        return err_set(e, ERR_INPUT,
                       "the labels have shape %s, %zu numbers for each example; %s wants one class number for each "
                       "example; %s",
                       have, shape_elements(labels), loss_name(h->loss),
                       shape_fits(labels, &h->out.shape) ? "one-hot labels need categorical_crossentropy"
                                                         : "choose the one that is the class number");
    if (!integer)
        return err_set(e, ERR_INPUT,
                       "the labels have shape %s and are not integers; %s wants one class number for each example; "
                       "store class numbers as integers, or use a loss for numbers, such as mse",
                       have, loss_name(h->loss));
    return 0;
}

static void cure_of_values(const struct model_head *h, const struct shape *labels, bool integer, char *out)
{
    size_t numbers = shape_elements(labels);
    if (integer && labels->rank == 0)
        str_fmt(out, CURE_MAX, "for class numbers use sparse_categorical_crossentropy%s",
                loss_has_classes(h->loss) ? "" : ", for other numbers a last layer of 1 unit");
    else if (numbers == shape_elements(&h->out.shape))
        str_fmt(out, CURE_MAX, "they hold as many numbers: end the model with a Reshape to the labels' shape");
    else if (labels->rank <= 1 && h->out.shape.rank == 1)
        str_fmt(out, CURE_MAX, "choose other labels, or a last layer of %zu unit%s", numbers, numbers == 1 ? "" : "s");
    else
        str_fmt(out, CURE_MAX, "choose other labels, or a last layer whose output has their shape");
}

static int check_values(const struct model_head *h, const struct shape *labels, bool integer, struct err *e)
{
    char have[128], want[128], cure[CURE_MAX];
    if (shape_fits(labels, &h->out.shape))
        return 0;
    cure_of_values(h, labels, integer, cure);
    return err_set(e, ERR_INPUT, "the model's output is %s, a label of the data is %s; %s",
                   shape_text(&h->out.shape, want), shape_text(labels, have), cure);
}

static int check_label(const struct model_head *h, const struct shape *labels, bool integer, struct err *e)
{
    if (h->loss == NULL)
        return 0;
    if (labels == NULL)
        return err_set(e, ERR_INPUT,
                       "loss %s needs labels, the data have none; name them in 'labels' (idx, npy, npz) or 'label' "
                       "(csv, tfrecord), or give a 'directory' (images)",
                       loss_name(h->loss));
    return loss_sparse(h->loss) ? check_classes(h, labels, integer, e) : check_values(h, labels, integer, e);
}

int model_check_label(const struct model *m, size_t output, const struct shape *labels, bool integer, struct err *e)
{
    const struct model_head *h = &m->heads[output];
    if (check_label(h, labels, integer, e) == 0)
        return 0;
    return m->nheads > 1 ? err_wrap(e, "output '%s'", h->name) : -1;
}

enum class_output model_class_output(const struct model *m, bool *ret_logits)
{
    *ret_logits = false;
    return m->heads[0].loss != NULL ? loss_class_output(m->heads[0].loss, &m->heads[0].out.shape, ret_logits)
                                    : CLASS_NONE;
}

struct label_range model_label_range(const struct model *m, size_t output)
{
    const struct model_head *h = &m->heads[output];
    const struct shape *out = &h->out.shape;
    if (h->loss == NULL)
        return label_range_any();
    return loss_label_range(h->loss, out->rank > 0 ? out->dim[out->rank - 1] : 1);
}

struct index_range model_index_range(const struct model *m, size_t input)
{
    auto_free bool *of_input = xcalloc(model_tensors(m), sizeof(*of_input));
    struct index_range range = { .rows = 0 };
    of_input[input] = true;
    for (size_t i = 0; i < m->nnodes; i++) {
        const struct layer *l = model_called(m, i);
        bool reads = false;
        for (size_t k = 0; k < l->nin; k++)
            reads |= of_input[m->nodes[i].in[k]];
        of_input[model_made(m, i)] = reads && layer_passes_numbers(l);
        const char *argument = NULL;
        int64_t rows = reads ? layer_index_range(l, &argument) : 0;
        if (rows > 0 && (range.rows == 0 || rows < range.rows))
            range = (struct index_range){
                .rows = rows, .class_name = l->row->k.names[0], .layer = l->name, .argument = argument
            };
    }
    return range;
}
