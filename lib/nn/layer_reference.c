/* Writes docs/layers.md from the catalogs, so that the page cannot differ from what is accepted. */
#include "nn/layer_reference.h"

#include <string.h>

#include "base/str.h"
#include "nn/layers/layer.h"
#include "nn/optimizers/optimizer.h"

static const char INTRO[] =
    "# Layers, losses, optimizers and the rest\n"
    "\n"
    "<!-- Written from the tables in lib/nn (make docs). Change those, not this page. -->\n"
    "\n"
    "What `spec.model` and `spec.compile` can name. Names, arguments, defaults and formulas are Keras's. Each thing "
    "is\n"
    "written in whichever of these forms is handy:\n"
    "\n"
    "```yaml\n"
    "optimizer: adam                                             # a name: all defaults\n"
    "optimizer: {Adam: {learning_rate: 0.01}}                    # a name and arguments\n"
    "optimizer: {name: Adam, learning_rate: 0.01}                # the same\n"
    "optimizer: {class_name: Adam, config: {learning_rate: 0.01}} # as Keras serializes it\n"
    "```\n"
    "\n"
    "An unknown name or argument is an error that says where it stands and what may have been meant. Arguments that\n"
    "Keras has and Trainyard does not are accepted with Keras's default and refused with any other value; they stand\n"
    "behind \"only the default\". Every object also takes `name` and `dtype`.\n"
    "\n"
    "In the formulas x is an input, t a label, p a prediction, w a weight and g its gradient, lr the learning rate.\n";

struct section {
    const struct catalog *catalog;
    const char *preface;
};

static const struct section SECTIONS[] = {
    { &LAYER_KINDS,
      "Shapes are those of one example, without the batch. `device` places the variables of a layer: `ps:1`, or "
      "TensorFlow's `/job:ps/task:1`, is the second parameter server of the job, which must have it. Without it, "
      "`spec.strategy.placement` decides." },
    { &ACTIVATION_KINDS, "For `activation` of a layer, and for the layer Activation." },
    { &INITIALIZERS, "Fans: (in, out) of a matrix, times the receptive field of a convolution. Drawn from Philox by "
                     "the job's seed and the variable's place, so that any process draws the same." },
    { &REGULARIZERS, "Added to the loss." },
    { &LOSSES, "The loss of a batch is the mean over its examples (`sum_over_batch_size`; weighted examples divide by "
               "their number). Means and sums below are over the last axis. p is clipped to 1e-7 and 1 - 1e-7 where "
               "a logarithm is taken; after a softmax or sigmoid layer the loss is computed from its input, as in "
               "Keras." },
    { &METRICS, "`accuracy` (`acc`) is sparse_categorical_accuracy for a sparse loss, binary_accuracy for an output of "
                "size 1, categorical_accuracy otherwise; `crossentropy` (`ce`) in the same way. As in Keras, a "
                "metric written as a string is named by that string (`mae`, `val_mae`), and one written as a map "
                "without `name` has "
                "the second name of its row. In `compile.metrics` all examples count the same, as in Keras; in "
                "`compile.weightedMetrics` they count by their weight." },
    { &OPTIMIZERS, "Names are taken in any case. `learning_rate` is a number or a schedule. `weight_decay` takes "
                   "w lr weight_decay off every weight before the step; gradients are clipped by the worker that "
                   "computed them." },
    { &SCHEDULES, "For `learning_rate`; t is the number of updates applied before." },
    { &CALLBACKS,
      "For `spec.fit.callbacks`, a list. The chief decides at the end of each epoch, before the next one begins. "
      "`monitor` is `loss` or a metric's name, with `val_` that of the evaluation; epochs count from 0, as in Keras. "
      "`verbose` is taken and ignored, for decisions are always logged, and so is `save_weights_only`. "
      "[docs/manifest.md](manifest.md#specfit) has what waiting for a decision costs. After a kill -9 of the chief "
      "`loss` and the other training metrics of that epoch come from the batches whose reports survive "
      "([formats.md](formats.md#historyjson)), and a callback that reads one which is not known does not decide; "
      "`val_...` does not depend on that." },
};

/* Whether all rows, or all but one, take this argument, and the first with this default: then it is described once. */
static bool is_common(const struct catalog *c, const struct arg *a)
{
    char want[32], text[32];
    size_t have = 0, first = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct kind *k = catalog_row(c, i);
        for (size_t j = 0; j < k->nargs; j++) {
            const bool same = str_eq(k->args[j].name, a->name);
            have += same;
            first += i == 0 && same && str_eq(arg_default_text(&k->args[j], text), arg_default_text(a, want));
        }
    }
    return c->count > 6 && first > 0 && have + 1 >= c->count;
}

static void add_range(const struct arg *a, struct buf *out)
{
    static const char *const TEXT[] = {
#define X(name, condition, text) [name] = text,
        ARG_RANGES(X)
#undef X
    };
    if (a->kind == ARG_CHOICE && a->choices[1] != NULL) {
        buf_str(out, " (");
        for (size_t i = 0; a->choices[i] != NULL; i++)
            buf_printf(out, "%s%s", i > 0 ? ", " : "", a->choices[i]);
        buf_str(out, ")");
    } else if ((a->kind == ARG_NUMBER || a->kind == ARG_INTEGER) && a->range != ARG_ANY) {
        buf_printf(out, " (%s)", TEXT[a->range]);
    }
}

static bool is_told(const struct arg *a)
{
    return a->kind != ARG_IGNORED && !str_eq(a->name, "name") && !str_eq(a->name, "dtype");
}

/* Arguments with defaults and ranges, then those of which only the default is accepted. common: the common ones
 * alone, or the others alone. */
static void add_args(const struct catalog *c, const struct kind *k, bool common, struct buf *out)
{
    char text[32];
    const char *between = "";
    for (int refused = 0; refused < 2; refused++) {
        for (size_t i = 0; i < k->nargs; i++) {
            const struct arg *a = &k->args[i];
            if (!is_told(a) || is_common(c, a) != common || (a->kind == ARG_UNSUPPORTED) != (refused != 0))
                continue;
            if (refused != 0)
                buf_printf(out, "%s`%s`", between, a->name);
            else
                buf_printf(out, "%s`%s` %s", between, a->name, arg_default_text(a, text));
            if (refused == 0)
                add_range(a, out);
            between = ", ";
        }
        if (refused == 0)
            between = str_eq(between, "") ? "only the default: " : "; only the default: ";
    }
}

static void add_common(const struct catalog *c, struct buf *out)
{
    AUTO_FINI(buf) args = BUF_INIT;
    add_args(c, catalog_row(c, 0), true, &args);
    if (args.len > 0)
        buf_printf(out, "\nUnless the table says otherwise: %s.\n", args.data);
}

static void add_row(const struct catalog *c, const struct kind *k, struct buf *out)
{
    buf_str(out, "|");
    for (size_t i = 0; i < KIND_NAMES_MAX && k->names[i] != NULL; i++)
        buf_printf(out, "%s `%s`", i > 0 ? "," : "", k->names[i]);
    buf_str(out, " | ");
    add_args(c, k, false, out);
    buf_printf(out, " | %s |\n", k->about != NULL ? k->about : "");
}

static void add_later(const struct catalog *c, struct buf *out)
{
    if (c->later == NULL)
        return;
    buf_str(out, "\nIn Keras, not here yet: ");
    for (size_t i = 0; c->later[i] != NULL; i++)
        buf_printf(out, "%s%s", i > 0 ? ", " : "", c->later[i]);
    buf_str(out, ".\n");
}

static void add_elsewhere(const struct catalog *c, struct buf *out)
{
    if (c->elsewhere == NULL)
        return;
    buf_str(out, "\nIn Keras a layer, here in the data:\n\n");
    for (size_t i = 0; c->elsewhere[i].name != NULL; i++)
        buf_printf(out, "* %s: %s.\n", c->elsewhere[i].name, c->elsewhere[i].where);
}

/* The names of slots in checkpoints: which ones an optimizer has depends on its arguments. */
static void add_slots(struct buf *out)
{
    static const char *const FORMS[] = {
        "{\"SGD\": {}}",
        "{\"SGD\": {\"momentum\": 0.9}}",
        "{\"Adam\": {}}",
        "{\"Adam\": {\"amsgrad\": true}}",
        "{\"AdamW\": {}}",
        "{\"RMSprop\": {}}",
        "{\"RMSprop\": {\"momentum\": 0.9}}",
        "{\"RMSprop\": {\"centered\": true, \"momentum\": 0.9}}",
        "{\"Adagrad\": {}}",
        "{\"Adadelta\": {}}",
        "{\"Adamax\": {}}",
        "{\"Nadam\": {}}",
        "{\"Ftrl\": {}}",
        "{\"Lion\": {}}",
    };
    AUTO(source) *source = source_new("manual");
    buf_str(out,
            "\nSlots in checkpoints have TensorFlow 1's names: those of `dense/kernel` are `dense/kernel/Adam`, ...\n"
            "\n| optimizer | slots, in the order of the formula | beside them |\n|---|---|---|\n");
    for (size_t i = 0; i < COUNT_OF(FORMS); i++) {
        AUTO(optimizer) *o = NULL;
        json_auto_t *v = NULL;
        const char *name[2];
        float value[2];
        if (json_parse(FORMS[i], strlen(FORMS[i]), "manual", &v, NULL) < 0)
            continue;
        struct node n = node_root(v, source);
        if (optimizer_parse(&n, &o, NULL) < 0)
            continue;
        buf_printf(out, "| `%s` |", FORMS[i]);
        for (int s = 0; s < optimizer_slots(o); s++)
            buf_printf(out, "%s %s", s > 0 ? "," : "", optimizer_slot_name(o, s));
        buf_str(out, " |");
        for (int s = 0; s < optimizer_scalars(o, 0, name, value); s++)
            buf_printf(out, "%s %s", s > 0 ? "," : "", name[s]);
        buf_str(out, " |\n");
    }
}

void layer_reference_write(struct buf *out)
{
    buf_str(out, INTRO);
    for (size_t i = 0; i < COUNT_OF(SECTIONS); i++) {
        const struct catalog *c = SECTIONS[i].catalog;
        buf_printf(out, "\n## %s\n\n%s\n", c->plural, SECTIONS[i].preface);
        add_common(c, out);
        buf_str(out, "\n| name | arguments and defaults | |\n|---|---|---|\n");
        for (size_t k = 0; k < c->count; k++)
            add_row(c, catalog_row(c, k), out);
        add_later(c, out);
        add_elsewhere(c, out);
        if (c == &OPTIMIZERS)
            add_slots(out);
    }
}
