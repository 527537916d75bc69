/* Reads fit.callbacks and decides at the end of an epoch. Decisions are pure: they depend on the monitored values and
 * the state given, so that a restarted chief decides the same. */
#include "nn/callback.h"

#include <string.h>

#include "base/str.h"
#include "nn/catalog.h"

struct callback;
struct callback_kind {
    struct kind k;
    struct callback_verdict (*decide)(const struct callback *c, const struct callback_epoch *epoch,
                                      struct callback_state *s);
};

struct callback {
    const struct callback_kind *kind;
    double arg[KIND_ARGS_MAX];
    char *monitor; /* NULL: it reads nothing */
    bool up;       /* more is better */
    double delta;  /* min_delta with the sign that Keras gives it */
};

struct callbacks {
    size_t n;
    struct callback list[CALLBACKS_MAX];
};

static double value(const struct callback *c, const char *name)
{
    for (size_t i = 0; i < c->kind->k.nargs; i++)
        if (strcmp(c->kind->k.args[i].name, name) == 0)
            return c->arg[i];
    return ARG_NONE;
}

static bool flag(const struct callback *c, const char *name)
{
    return value(c, name) > 0; /* None is NaN */
}

/* ---- decisions: keras/src/callbacks ---- */

/* monitor_op(value - min_delta, reference) on float32 tensors. */
static bool improves(const struct callback *c, double v, double reference)
{
    const float a = to_float(v - c->delta), b = to_float(reference);
    return c->up ? a > b : a < b;
}

/* Takes the value as the best one when it is. */
static bool take_best(const struct callback *c, const struct callback_epoch *epoch, struct callback_state *s)
{
    if (s->has_best && !improves(c, epoch->value, s->best))
        return false;
    s->has_best = true;
    s->best = epoch->value;
    s->best_epoch = epoch->epoch;
    return true;
}

static struct callback_verdict stop_early(const struct callback *c, const struct callback_epoch *epoch,
                                          struct callback_state *s)
{
    struct callback_verdict v = { 0 };
    const double baseline = value(c, "baseline");
    if (!epoch->known || (double)epoch->epoch < value(c, "start_from_epoch"))
        return v;
    s->wait++;
    if (take_best(c, epoch, s)) {
        v.keep = flag(c, "restore_best_weights");
        if (isnan(baseline) || improves(c, epoch->value, baseline))
            s->wait = 0;
        return v;
    }
    v.stop = (double)s->wait >= value(c, "patience") && epoch->epoch > 0;
    return v;
}

static struct callback_verdict lower_rate(const struct callback *c, const struct callback_epoch *epoch,
                                          struct callback_state *s)
{
    struct callback_verdict v = { 0 };
    const double rate = (double)to_float(epoch->rate), least = value(c, "min_lr");
    if (!epoch->known)
        return v;
    if (s->cooldown > 0) {
        s->cooldown--;
        s->wait = 0;
    }
    if (take_best(c, epoch, s)) {
        s->wait = 0;
        return v;
    }
    if (s->cooldown > 0)
        return v;
    s->wait++;
    if ((double)s->wait < value(c, "patience") || rate <= (double)to_float(least))
        return v;
    v.set_rate = true;
    v.rate = (double)to_float(MAX(rate * value(c, "factor"), least));
    s->cooldown = (int64_t)value(c, "cooldown");
    s->wait = 0;
    return v;
}

/* Without save_best_only nothing is kept for ever: a checkpoint of each epoch is there, as of all decisions. */
static struct callback_verdict keep_best(const struct callback *c, const struct callback_epoch *epoch,
                                         struct callback_state *s)
{
    struct callback_verdict v = { 0 };
    if (flag(c, "save_best_only") && epoch->known)
        v.keep = take_best(c, epoch, s);
    return v;
}

struct callback_verdict callback_decide(const struct callbacks *c, size_t i, const struct callback_epoch *epoch,
                                        struct callback_state *s)
{
    const struct callback *one = &c->list[i];
    const double threshold = value(one, "initial_value_threshold");
    if (!s->has_best && !isnan(threshold)) {
        s->has_best = true;
        s->best = threshold;
    }
    return one->kind->decide(one, epoch, s);
}

/* ---- the table ---- */

static const char *const MODES[] = { "auto", "min", "max", NULL };
#define MONITOR                 ARG_OWN("monitor", "'val_loss'")
#define MODE                    ARG_ONE_OF("mode", MODES)
#define COUNTER(name, fallback) ARG_OF(name, ARG_INTEGER, fallback, ARG_NOT_NEGATIVE)

static const struct arg EARLY_ARGS[] = {
    MONITOR,
    ARG_OF("min_delta", ARG_NUMBER, 0, ARG_ANY),
    COUNTER("patience", 0),
    ARG_SKIP("verbose"),
    MODE,
    ARG_OF("baseline", ARG_NUMBER, ARG_NONE, ARG_ANY),
    ARG_OF("restore_best_weights", ARG_FLAG, 0, ARG_ANY),
    COUNTER("start_from_epoch", 0),
};
static const struct arg PLATEAU_ARGS[] = {
    MONITOR,
    ARG_OF("factor", ARG_NUMBER, 0.1, ARG_DECAY),
    COUNTER("patience", 10),
    ARG_SKIP("verbose"),
    MODE,
    ARG_OF("min_delta", ARG_NUMBER, 1e-4, ARG_ANY),
    COUNTER("cooldown", 0),
    ARG_OF("min_lr", ARG_NUMBER, 0, ARG_NOT_NEGATIVE),
};
static const struct arg CHECKPOINT_ARGS[] = {
    MONITOR,
    ARG_SKIP("verbose"),
    ARG_OF("save_best_only", ARG_FLAG, 0, ARG_ANY),
    ARG_SKIP("save_weights_only"),
    MODE,
    ARG_OF("initial_value_threshold", ARG_NUMBER, ARG_NONE, ARG_ANY),
    ARG_REFUSE("filepath"),
    ARG_REFUSE("save_freq"),
};

#define KIND(name, table, about)                                                                                       \
    {                                                                                                                  \
        { name }, table, COUNT_OF(table), about                                                                        \
    }
static const struct callback_kind ROWS[] = {
    { KIND("EarlyStopping", EARLY_ARGS,
           "ends training when `monitor` has not improved by more than min_delta for `patience` epochs; with "
           "restore_best_weights the job's result is the checkpoint of the best epoch"),
      stop_early },
    { KIND("ReduceLROnPlateau", PLATEAU_ARGS,
           "multiplies the learning rate by `factor`, down to min_lr, when `monitor` has not improved for `patience` "
           "epochs; then waits for `cooldown` epochs"),
      lower_rate },
    { KIND("ModelCheckpoint", CHECKPOINT_ARGS,
           "with save_best_only the checkpoint of the best epoch is kept beside the last ones; without, there is one "
           "of each epoch, and `checkpoint.keep` says how many stay"),
      keep_best },
};
static const char *const LATER[] = {
    "BackupAndRestore", "CSVLogger",      "LambdaCallback", "LearningRateScheduler", "ProgbarLogger",
    "RemoteMonitor",    "SwapEMAWeights", "TensorBoard",    "TerminateOnNaN",        NULL
};
const struct catalog CALLBACKS = { .what = "callback", .plural = "Callbacks", CATALOG_ROWS(ROWS), .later = LATER };

/* ---- parsing ---- */

/* Only ModelCheckpoint without save_best_only reads nothing. */
static bool reads(const struct callback *c)
{
    return isnan(value(c, "save_best_only")) || flag(c, "save_best_only");
}

static const char *without_val(const char *monitor)
{
    return str_starts(monitor, "val_") ? monitor + strlen("val_") : monitor;
}

/* Keras only warns of a metric that is never there, and the callback does nothing. */
static int unknown_metric(const struct callback *c, const struct node *at, const struct model *m, bool evaluates,
                          struct err *e)
{
    enum { NAMES_MAX = 256, NAME_LEN = 80, HINT = 160 };
    const size_t n = MIN(model_metrics(m), (size_t)NAMES_MAX / 2);
    auto_free char(*text)[NAME_LEN] = xcalloc(NAMES_MAX, NAME_LEN);
    const char *names[NAMES_MAX] = { NULL };
    size_t count = 0;
    char hint[HINT];
    for (size_t i = 0; i < n; i++)
        str_fmt(text[count++], NAME_LEN, "%s", model_metric_name(m, i));
    for (size_t i = 0; evaluates && i < n; i++)
        str_fmt(text[count++], NAME_LEN, "val_%s", model_metric_name(m, i));
    AUTO_FINI(buf) list = BUF_INIT;
    for (size_t i = 0; i < count; i++) {
        names[i] = text[i];
        buf_printf(&list, "%s%s", i > 0 ? ", " : "", text[i]);
    }
    const char *meant = str_did_you_mean(c->monitor, names, count, hint, sizeof(hint));
    return node_error(at, e, "monitor '%.80s' is not measured%s (measured are %s)", c->monitor, meant, list.data);
}

static int check_direction(struct callback *c, const struct node *at, enum better better, struct err *e)
{
    const size_t mode = (size_t)value(c, "mode");
    if (mode == 0 && better == BETTER_UNKNOWN)
        return node_error(at, e,
                          "it is not known whether more or less of '%s' is better; add 'mode: min' or 'mode: max'",
                          c->monitor);
    c->up = mode == 0 ? better == BETTER_UP : str_eq(MODES[mode], "max");
    return 0;
}

/* Afterwards the monitor is the name that the history has: "val_mean_absolute_error" for val_mae. */
static int check_monitor(struct callback *c, const struct node *at, const struct model *m, bool evaluates,
                         struct err *e)
{
    const char *name = without_val(c->monitor);
    const bool val = name != c->monitor;
    const int i = model_metric_find(m, name);
    if (i < 0)
        return unknown_metric(c, at, m, evaluates, e);
    if (val && !evaluates)
        return node_error(
            at, e, "monitor '%s' needs validation data; add data.validation or fit.validationSplit, or 'monitor: %s'",
            c->monitor, name);
    if (check_direction(c, at, model_metric_better(m, (size_t)i), e) < 0)
        return -1;
    char *monitor = xasprintf("%s%s", val ? "val_" : "", model_metric_name(m, (size_t)i));
    free(c->monitor);
    c->monitor = monitor;
    return 0;
}

static int check_rate(const struct callback *c, const struct node *at, const struct model *m, struct err *e)
{
    const struct optimizer *o = m != NULL ? model_optimizer(m) : NULL;
    if (c->kind->decide != lower_rate || o == NULL || !optimizer_has_schedule(o))
        return 0;
    return node_error(at, e,
                      "the optimizer has a schedule, so its learning_rate cannot be set; give a number as "
                      "learning_rate, or remove ReduceLROnPlateau");
}

static int callback_parse(struct callback *c, const struct node *n, const struct model *m, bool evaluates,
                          struct err *e)
{
    const struct kind *k = NULL;
    const char *monitor = NULL;
    struct node config;
    if (catalog_parse(&CALLBACKS, n, &k, c->arg, &config, e) < 0 ||
        node_str_or(&config, "monitor", "val_loss", &monitor, e) < 0)
        return -1;
    c->kind = (const struct callback_kind *)(const void *)k;
    const double delta = value(c, "min_delta");
    if (reads(c)) {
        struct node given = node_get(&config, "monitor");
        c->monitor = xstrdup(monitor);
        if (m != NULL && check_monitor(c, node_present(&given) ? &given : n, m, evaluates, e) < 0)
            return -1;
    }
    c->delta = isnan(delta) ? 0 : c->up ? fabs(delta) : -fabs(delta);
    return check_rate(c, n, m, e);
}

int callbacks_parse(const struct node *n, const struct model *m, bool evaluates, struct callbacks **ret, struct err *e)
{
    AUTO(callbacks) *c = xcalloc(1, sizeof(*c));
    if (!node_present(n)) {
        *ret = NULL;
        return 0;
    }
    if (node_array(n, e) < 0)
        return -1;
    if (node_size(n) > CALLBACKS_MAX)
        return node_error(n, e, "has %zu entries, at most %d", node_size(n), CALLBACKS_MAX);
    for (; c->n < node_size(n); c->n++) {
        struct node item = node_item(n, c->n);
        if (callback_parse(&c->list[c->n], &item, m, evaluates, e) < 0) {
            c->n++;
            return -1;
        }
    }
    *ret = c->n > 0 ? TAKE(c) : NULL;
    return 0;
}

int callbacks_check(const struct node *n, const struct model *m, bool evaluates, struct err *e)
{
    AUTO(callbacks) *c = NULL;
    return callbacks_parse(n, m, evaluates, &c, e);
}

void callbacks_free(struct callbacks *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n; i++)
        free(c->list[i].monitor);
    free(c);
}

/* ---- questions ---- */

size_t callbacks_count(const struct callbacks *c)
{
    return c != NULL ? c->n : 0;
}

const char *callback_name(const struct callbacks *c, size_t i)
{
    return c->list[i].kind->k.names[0];
}

const char *callback_monitor(const struct callbacks *c, size_t i)
{
    return c->list[i].monitor;
}

json_t *callback_json(const struct callbacks *c, size_t i)
{
    const struct callback *one = &c->list[i];
    json_t *config = args_config(&one->kind->k, one->arg);
    json_object_set_new(config, "monitor", one->monitor != NULL ? json_string(one->monitor) : json_null());
    return kind_serialized("keras.callbacks", callback_name(c, i), config);
}

bool callbacks_read_evaluation(const struct callbacks *c)
{
    for (size_t i = 0; i < callbacks_count(c); i++)
        if (c->list[i].monitor != NULL && str_starts(c->list[i].monitor, "val_"))
            return true;
    return false;
}

bool callbacks_set_rate(const struct callbacks *c)
{
    for (size_t i = 0; i < callbacks_count(c); i++)
        if (c->list[i].kind->decide == lower_rate)
            return true;
    return false;
}

int callbacks_restoring(const struct callbacks *c)
{
    for (size_t i = callbacks_count(c); i > 0; i--)
        if (flag(&c->list[i - 1], "restore_best_weights"))
            return (int)i - 1;
    return -1;
}
