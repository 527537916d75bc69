/* Keras's optimizers: arguments, slots, clipping, and the coefficients of a step. The arithmetic on vectors is in
 * optimizer_kernel.c. */
#include "nn/optimizers/optimizer.h"

#include <string.h>

#include "nn/catalog.h"
#include "nn/optimizers/optimizer_kernel.h"
#include "nn/optimizers/schedule.h"
#include "tensor/kernel.h"

enum { CHUNK = 2048 }; /* elements that weight decay and the step share while they are in the first cache */

struct variant { /* what an optimizer's arguments make of it */
    int slots;
    opt_kernel *apply;
};

struct optimizer_kind {
    struct kind k;
    const char *slots[OPTIMIZER_MAX_SLOTS]; /* TensorFlow 1's names: the optimizer's, then _1, _2 */
    int scalars;                            /* beta1_power, beta2_power */
    struct variant (*variant)(const struct optimizer *o);
    /* NULL: only lr */
    void (*begin)(const struct optimizer *o, const struct opt_state *s, double rate, struct opt_step *step);
};

struct optimizer {
    const struct optimizer_kind *kind;
    double arg[KIND_ARGS_MAX];
    struct schedule *rate;
    struct opt_coef coef;
    struct variant use;
};

enum { LEARNING_RATE, WEIGHT_DECAY, CLIPNORM, CLIPVALUE, GLOBAL_CLIPNORM };
#define RATE(rate)                                                                                                     \
    {                                                                                                                  \
        .name = "learning_rate", .kind = ARG_OTHER, .fallback = (rate), .text = #rate                                  \
    }
#define COMMON_ARGS(rate, decay)                                                                                       \
    RATE(rate), ARG_OF("weight_decay", ARG_NUMBER, decay, ARG_NOT_NEGATIVE),                                           \
        ARG_OF("clipnorm", ARG_NUMBER, ARG_NONE, ARG_POSITIVE),                                                        \
        ARG_OF("clipvalue", ARG_NUMBER, ARG_NONE, ARG_POSITIVE),                                                       \
        ARG_OF("global_clipnorm", ARG_NUMBER, ARG_NONE, ARG_POSITIVE), ARG_REFUSE_BUT("use_ema", "False"),             \
        ARG_SKIP("ema_momentum"), ARG_SKIP("ema_overwrite_frequency"), ARG_REFUSE("loss_scale_factor"),                \
        ARG_REFUSE("gradient_accumulation_steps"), ARG_SKIP("jit_compile"), ARG_SKIP("is_legacy_optimizer"),           \
        ARG_REFUSE("decay")
#define BETAS(b1, b2)      ARG_OF("beta_1", ARG_NUMBER, b1, ARG_DECAY), ARG_OF("beta_2", ARG_NUMBER, b2, ARG_DECAY)
#define EPSILON            ARG_OF("epsilon", ARG_NUMBER, 1e-7, ARG_NOT_NEGATIVE)
#define RHO(rho)           ARG_OF("rho", ARG_NUMBER, rho, ARG_DECAY)
#define MOMENTUM           ARG_OF("momentum", ARG_NUMBER, 0, ARG_UNIT)
#define AMSGRAD            ARG_OF("amsgrad", ARG_FLAG, 0, ARG_ANY)
#define FIRST_SUM          ARG_OF("initial_accumulator_value", ARG_NUMBER, 0.1, ARG_NOT_NEGATIVE)
#define NOT_NEGATIVE(name) ARG_OF(name, ARG_NUMBER, 0, ARG_NOT_NEGATIVE)

static const struct arg SGD_ARGS[] = { COMMON_ARGS(0.01, ARG_NONE), MOMENTUM,
                                       ARG_OF("nesterov", ARG_FLAG, 0, ARG_ANY) };
static const struct arg ADAM_ARGS[] = { COMMON_ARGS(0.001, ARG_NONE), BETAS(0.9, 0.999), EPSILON, AMSGRAD };
static const struct arg ADAMW_ARGS[] = { COMMON_ARGS(0.001, 0.004), BETAS(0.9, 0.999), EPSILON, AMSGRAD };
static const struct arg NADAM_ARGS[] = { COMMON_ARGS(0.001, ARG_NONE), BETAS(0.9, 0.999), EPSILON };
static const struct arg LION_ARGS[] = { COMMON_ARGS(0.001, ARG_NONE), BETAS(0.9, 0.99) };
static const struct arg RMSPROP_ARGS[] = { COMMON_ARGS(0.001, ARG_NONE), RHO(0.9), MOMENTUM, EPSILON,
                                           ARG_OF("centered", ARG_FLAG, 0, ARG_ANY) };
static const struct arg ADAGRAD_ARGS[] = { COMMON_ARGS(0.001, ARG_NONE), FIRST_SUM, EPSILON };
static const struct arg ADADELTA_ARGS[] = { COMMON_ARGS(0.001, ARG_NONE), RHO(0.95), EPSILON };
static const struct arg FTRL_ARGS[] = {
    COMMON_ARGS(0.001, ARG_NONE),
    ARG_OF("learning_rate_power", ARG_NUMBER, -0.5, ARG_NOT_POSITIVE),
    FIRST_SUM,
    NOT_NEGATIVE("l1_regularization_strength"),
    NOT_NEGATIVE("l2_regularization_strength"),
    NOT_NEGATIVE("l2_shrinkage_regularization_strength"),
    NOT_NEGATIVE("beta"),
};
static const struct arg COUNTING_ARGS[] = { RATE(1.0) };

/* The argument called `name`; 0 for an optimizer that has none, and for None. */
static double value(const struct optimizer *o, const char *name)
{
    for (size_t i = 0; i < o->kind->k.nargs; i++)
        if (strcmp(o->kind->k.args[i].name, name) == 0)
            return isnan(o->arg[i]) ? 0 : o->arg[i];
    return 0;
}

static struct variant counting_variant(UNUSED const struct optimizer *o)
{
    return (struct variant){ 0, opt_count };
}

static struct variant sgd_variant(const struct optimizer *o)
{
    if (value(o, "momentum") == 0)
        return (struct variant){ 0, opt_sgd };
    return (struct variant){ 1, value(o, "nesterov") != 0 ? opt_nesterov : opt_momentum };
}

static struct variant adam_variant(const struct optimizer *o)
{
    return value(o, "amsgrad") != 0 ? (struct variant){ 3, opt_amsgrad } : (struct variant){ 2, opt_adam };
}

static struct variant nadam_variant(UNUSED const struct optimizer *o)
{
    return (struct variant){ 2, opt_nadam };
}

static struct variant adamax_variant(UNUSED const struct optimizer *o)
{
    return (struct variant){ 2, opt_adamax };
}

static struct variant lion_variant(UNUSED const struct optimizer *o)
{
    return (struct variant){ 1, opt_lion };
}

/* Slots in TensorFlow 1's order: rms, mg when centered, momentum. */
static struct variant rmsprop_variant(const struct optimizer *o)
{
    static const struct variant BY_ARGS[2][2] = {
        { { 1, opt_rmsprop }, { 2, opt_rmsprop_momentum } },
        { { 2, opt_rmsprop_centered }, { 3, opt_rmsprop_centered_momentum } },
    };
    return BY_ARGS[value(o, "centered") != 0][value(o, "momentum") > 0];
}

static struct variant adagrad_variant(UNUSED const struct optimizer *o)
{
    return (struct variant){ 1, opt_adagrad };
}

static struct variant adadelta_variant(UNUSED const struct optimizer *o)
{
    return (struct variant){ 2, opt_adadelta };
}

static struct variant ftrl_variant(const struct optimizer *o)
{
    return (struct variant){ 2, value(o, "learning_rate_power") == -0.5 ? opt_ftrl : opt_ftrl_power };
}

static void adam_begin(const struct optimizer *o, const struct opt_state *s, double rate, struct opt_step *step)
{
    double t = (double)s->t + 1;
    double b1 = value(o, "beta_1"), b2 = value(o, "beta_2");
    step->a = to_float(rate * sqrt(1 - pow(b2, t)) / (1 - pow(b1, t)));
}

static void adamax_begin(const struct optimizer *o, const struct opt_state *s, double rate, struct opt_step *step)
{
    step->a = to_float(rate / (1 - pow(value(o, "beta_1"), (double)s->t + 1)));
}

/* u_t of update number t (from 1): the momentum schedule of Dozat'16. */
static double nadam_u(const struct optimizer *o, double t)
{
    return value(o, "beta_1") * (1 - 0.5 * pow(0.96, t));
}

/* The running product of u_t. It goes to 0, but 0 means "nothing applied", so it stops just above. */
static double nadam_product(const struct optimizer *o, const struct opt_state *s)
{
    double product = (s->aux == 0 ? 1 : s->aux) * nadam_u(o, (double)s->t + 1);
    return MAX(product, 1e-300);
}

static void nadam_begin(const struct optimizer *o, const struct opt_state *s, UNUSED double rate, struct opt_step *step)
{
    double t = (double)s->t + 1, u = nadam_u(o, t), next = nadam_u(o, t + 1), product = nadam_product(o, s);
    step->a = to_float(next / (1 - product * next));
    step->b = to_float((1 - u) / (1 - product));
    step->c = to_float(1 - pow(value(o, "beta_2"), t));
}

/* A schedule may end at 0, and FTRL divides by the rate: the lower bound makes the weights stop instead. */
static void ftrl_begin(const struct optimizer *o, UNUSED const struct opt_state *s, double rate, struct opt_step *step)
{
    double divisor = MAX(rate, 1e-12);
    step->a = to_float(1 / divisor);
    step->b = to_float(2 * value(o, "l2_regularization_strength") + value(o, "beta") / divisor);
}

#define KIND(name, table, about)                                                                                       \
    {                                                                                                                  \
        { name }, table, COUNT_OF(table), about                                                                        \
    }
#define SLOTS(name)                                                                                                    \
    {                                                                                                                  \
        name, name "_1", name "_2"                                                                                     \
    }
static const struct optimizer_kind ROWS[] = {
    { KIND("SGD", SGD_ARGS, "w -= lr g; with momentum m = momentum m - lr g, w += m; nesterov w += momentum m - lr g"),
      SLOTS("Momentum"), 0, sgd_variant, NULL },
    { KIND("Adam", ADAM_ARGS,
           "m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2); w -= lr sqrt(1 - beta_2^t) / (1 - beta_1^t) "
           "m / (sqrt(v) + epsilon); amsgrad divides by the largest v so far"),
      SLOTS("Adam"), 2, adam_variant, adam_begin },
    { KIND("AdamW", ADAMW_ARGS, "Adam with weight_decay"), SLOTS("AdamW"), 2, adam_variant, adam_begin },
    { KIND("RMSprop", RMSPROP_ARGS,
           "v = rho v + (1 - rho) g^2; w -= lr g / sqrt(v + epsilon); "
           "centered subtracts the squared mean of g from v; momentum adds up the steps"),
      SLOTS("RMSProp"), 0, rmsprop_variant, NULL },
    { KIND("Adagrad", ADAGRAD_ARGS, "a += g^2; w -= lr g / sqrt(a + epsilon)"), SLOTS("Adagrad"), 0, adagrad_variant,
      NULL },
    { KIND("Adadelta", ADADELTA_ARGS, "steps scaled by the ratio of the running sizes of steps and gradients"),
      SLOTS("Adadelta"), 0, adadelta_variant, NULL },
    { KIND("Adamax", NADAM_ARGS, "Adam with the largest decayed abs(g) in place of sqrt(v)"), SLOTS("Adamax"), 1,
      adamax_variant, adamax_begin },
    { KIND("Nadam", NADAM_ARGS, "Adam with Nesterov momentum and its momentum schedule"), SLOTS("Nadam"), 2,
      nadam_variant, nadam_begin },
    { KIND("Ftrl", FTRL_ARGS, "FTRL-proximal, with l1 and l2 penalties that leave exact zeros"), SLOTS("Ftrl"), 0,
      ftrl_variant, ftrl_begin },
    { KIND("Lion", LION_ARGS, "w -= lr sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g"), SLOTS("Lion"),
      0, lion_variant, NULL },
    { KIND("Counting", COUNTING_ARGS,
           "adds 1 to every weight for every batch of an update, whatever the gradient, and takes no other argument: "
           "the proof "
           "that each batch counts once"),
      SLOTS("Counting"), 0, counting_variant, NULL },
};
static const char *const LATER[] = { "Adafactor", "Lamb", "Muon", "LossScaleOptimizer", NULL };
const struct catalog OPTIMIZERS = {
    .what = "optimizer", .plural = "Optimizers", CATALOG_ROWS(ROWS), .later = LATER, .any_case = true
};

void optimizer_free(struct optimizer *o)
{
    if (o == NULL)
        return;
    schedule_free(o->rate);
    free(o);
}

static void set_coefficients(struct optimizer *o)
{
    struct opt_coef *c = &o->coef;
    c->beta_1 = (float)value(o, "beta_1");
    c->beta_2 = (float)value(o, "beta_2");
    c->keep_1 = (float)(1 - value(o, "beta_1"));
    c->keep_2 = (float)(1 - value(o, "beta_2"));
    c->rho = (float)value(o, "rho");
    c->keep_rho = (float)(1 - value(o, "rho"));
    c->momentum = (float)value(o, "momentum");
    c->epsilon = (float)value(o, "epsilon");
    c->l1 = (float)value(o, "l1_regularization_strength");
    c->shrinkage = (float)value(o, "l2_shrinkage_regularization_strength");
    c->power = (float)value(o, "learning_rate_power");
    o->use = o->kind->variant(o);
}

/* Keras: "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set". */
static int check_clipping(const struct optimizer *o, const struct node *n, struct err *e)
{
    int given = (value(o, "clipnorm") > 0) + (value(o, "clipvalue") > 0) + (value(o, "global_clipnorm") > 0);
    if (given > 1)
        return node_error(n, e, "only one of 'clipnorm', 'clipvalue' and 'global_clipnorm' can be set");
    return 0;
}

int optimizer_parse(const struct node *n, struct optimizer **ret, struct err *e)
{
    AUTO(optimizer) *o = xcalloc(1, sizeof(*o));
    const struct kind *k = NULL;
    struct node config;
    if (catalog_parse(&OPTIMIZERS, n, &k, o->arg, &config, e) < 0)
        return -1;
    o->kind = (const struct optimizer_kind *)(const void *)k;
    struct node rate = node_get(&config, "learning_rate");
    if (!node_present(&rate))
        o->rate = schedule_constant(o->arg[LEARNING_RATE]);
    else if (schedule_parse(&rate, &o->rate, e) < 0)
        return -1;
    if (check_clipping(o, n, e) < 0)
        return -1;
    set_coefficients(o);
    *ret = TAKE(o);
    return 0;
}

const char *optimizer_name(const struct optimizer *o)
{
    return o->kind->k.names[0];
}

json_t *optimizer_config(const struct optimizer *o)
{
    json_t *config = args_config(&o->kind->k, o->arg);
    json_object_set_new(config, "learning_rate", schedule_config(o->rate));
    json_object_del(config, "decay"); /* of Keras 2's legacy optimizers only */
    return config;
}

int optimizer_slots(const struct optimizer *o)
{
    return o->use.slots;
}

const char *optimizer_slot_name(const struct optimizer *o, int slot)
{
    return o->kind->slots[slot];
}

float optimizer_slot_init(const struct optimizer *o, int slot)
{
    return slot == 0 ? (float)value(o, "initial_accumulator_value") : 0;
}

int optimizer_scalars(const struct optimizer *o, int64_t t, const char *ret_name[2], float ret_value[2])
{
    static const char *const NAME[2] = { "beta1_power", "beta2_power" };
    static const char *const ARG[2] = { "beta_1", "beta_2" };
    for (int i = 0; i < o->kind->scalars; i++) {
        ret_name[i] = NAME[i];
        ret_value[i] = (float)pow(value(o, ARG[i]), (double)t + 1); /* TF1 starts at beta and multiplies after */
    }
    return o->kind->scalars;
}

double optimizer_learning_rate(const struct optimizer *o, int64_t t)
{
    return schedule_at(o->rate, t);
}

bool optimizer_has_schedule(const struct optimizer *o)
{
    return !schedule_is_constant(o->rate);
}

void optimizer_seek(const struct optimizer *o, int64_t t, struct opt_state *ret)
{
    struct opt_state s = { 0 };
    enum { VANISHED = 100000 }; /* any product of u_t < 1 that differs measurably from its limit is shorter */
    if (o->use.apply == opt_nadam)
        while (s.t < MIN(t, VANISHED))
            optimizer_end(o, &s);
    s.t = t;
    *ret = s;
}

void optimizer_begin_at(const struct optimizer *o, const struct opt_state *s, double rate, struct opt_step *ret)
{
    struct opt_step step = { .t = s->t, .lr = to_float(rate), .ordinals = 1 };
    step.d = step.lr * (float)value(o, "weight_decay");
    if (o->kind->begin != NULL)
        o->kind->begin(o, s, rate, &step);
    *ret = step;
}

void optimizer_begin(const struct optimizer *o, const struct opt_state *s, struct opt_step *ret)
{
    optimizer_begin_at(o, s, optimizer_learning_rate(o, s->t), ret);
}

void optimizer_apply(const struct optimizer *o, const struct opt_step *step, float *w, float *const slots[],
                     const void *g, size_t n)
{
    const wire_float *gradient = g;
    for (size_t at = 0, len; at < n; at += len) {
        len = step->d != 0 ? MIN(n - at, CHUNK) : n;
        float *s[OPTIMIZER_MAX_SLOTS] = { NULL };
        for (int i = 0; i < o->use.slots; i++)
            s[i] = slots[i] + at;
        if (step->d != 0)
            opt_decay(w + at, step->d, len);
        o->use.apply(&o->coef, step, w + at, s[0], s[1], s[2], gradient + at, len);
    }
}

void optimizer_end(const struct optimizer *o, struct opt_state *s)
{
    if (o->use.apply == opt_nadam)
        s->aux = nadam_product(o, s);
    s->t++;
}

bool optimizer_clips_norm(const struct optimizer *o)
{
    return value(o, "clipnorm") > 0 || value(o, "global_clipnorm") > 0;
}

bool optimizer_clips(const struct optimizer *o)
{
    return optimizer_clips_norm(o) || value(o, "clipvalue") > 0;
}

void optimizer_clip_values(const struct optimizer *o, float *g, size_t n)
{
    const double limit = value(o, "clipvalue");
    if (limit > 0)
        opt_clip_value(g, (float)limit, n);
}

/* g *= limit / max(norm, limit); a NaN norm makes all of them NaN, as in Keras. */
static void clip_to_norm(float *g, size_t n, double norm, double limit)
{
    double scale = isnan(norm) ? norm : limit / MAX(norm, limit);
    if (scale != 1)
        kernel_affine(g, (float)scale, 0, g, n);
}

void optimizer_clip(const struct optimizer *o, float *grads, const size_t offsets[], const size_t counts[],
                    size_t nvars)
{
    const double each = value(o, "clipnorm"), all = value(o, "global_clipnorm"), limit = value(o, "clipvalue");
    double sum = 0;
    for (size_t i = 0; i < nvars; i++) {
        float *g = grads + offsets[i];
        if (limit > 0)
            opt_clip_value(g, (float)limit, counts[i]);
        else if (each > 0)
            clip_to_norm(g, counts[i], sqrt(kernel_sum_squares(g, counts[i])), each);
        else if (all > 0)
            sum += kernel_sum_squares(g, counts[i]);
    }
    if (all > 0)
        for (size_t i = 0; i < nvars; i++)
            clip_to_norm(grads + offsets[i], counts[i], sqrt(sum), all);
}
