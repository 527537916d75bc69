/* Keras's learning rate schedules: pure functions of the number of updates. */
#include "nn/optimizers/schedule.h"

enum { STEPS_MAX = 1000 }; /* of a PiecewiseConstantDecay: a list from a user */

struct schedule {
    const struct schedule_kind *kind; /* NULL: constant */
    double arg[KIND_ARGS_MAX];        /* constant: the rate is arg[0] */
    double *boundaries, *values;      /* PiecewiseConstantDecay: n and n + 1 */
    size_t n;
};

struct schedule_kind {
    struct kind k;
    double (*at)(const struct schedule *s, double t);
};

/* ExponentialDecay and InverseTimeDecay: initial_learning_rate, decay_steps, decay_rate, staircase */
static double progress(const struct schedule *s, double t)
{
    double p = t / s->arg[1];
    return s->arg[3] != 0 ? floor(p) : p;
}

static double exponential_at(const struct schedule *s, double t)
{
    return s->arg[0] * pow(s->arg[2], progress(s, t));
}

static double inverse_time_at(const struct schedule *s, double t)
{
    return s->arg[0] / (1 + s->arg[2] * progress(s, t));
}

static double piecewise_at(const struct schedule *s, double t)
{
    size_t i = 0;
    while (i < s->n && t > s->boundaries[i])
        i++;
    return s->values[i];
}

/* initial_learning_rate, decay_steps, end_learning_rate, power, cycle */
static double polynomial_at(const struct schedule *s, double t)
{
    double steps = s->arg[1];
    if (s->arg[4] != 0)
        steps *= t == 0 ? 1 : ceil(t / steps);
    else
        t = MIN(t, steps);
    return (s->arg[0] - s->arg[2]) * pow(1 - t / steps, s->arg[3]) + s->arg[2];
}

static double cosine(double fraction, double scale, double alpha)
{
    return (1 - alpha) * 0.5 * scale * (1 + cos(M_PI * fraction)) + alpha;
}

/* initial_learning_rate, decay_steps, alpha, warmup_target, warmup_steps */
static double cosine_at(const struct schedule *s, double t)
{
    double initial = s->arg[0], steps = s->arg[1], target = s->arg[3], warmup = s->arg[4];
    if (isnan(target))
        return initial * cosine(MIN(t, steps) / steps, 1, s->arg[2]);
    if (t < warmup)
        return initial + (target - initial) * t / warmup;
    return target * cosine(MIN(t - warmup, steps) / steps, 1, s->arg[2]);
}

/* initial_learning_rate, first_decay_steps, t_mul, m_mul, alpha: each period is t_mul times the one before */
static double restarts_at(const struct schedule *s, double t)
{
    double fraction = t / s->arg[1], t_mul = s->arg[2], period = floor(fraction);
    if (t_mul == 1) {
        fraction -= period;
    } else {
        period = floor(log(1 - fraction * (1 - t_mul)) / log(t_mul));
        double before = (1 - pow(t_mul, period)) / (1 - t_mul);
        fraction = (fraction - before) / pow(t_mul, period);
    }
    return s->arg[0] * cosine(fraction, pow(s->arg[3], period), s->arg[4]);
}

#define INITIAL ARG_NEEDED("initial_learning_rate", ARG_NUMBER, ARG_NOT_NEGATIVE)

static const struct arg DECAY_ARGS[] = {
    INITIAL,
    ARG_NEEDED("decay_steps", ARG_INTEGER, ARG_POSITIVE),
    ARG_NEEDED("decay_rate", ARG_NUMBER, ARG_NOT_NEGATIVE),
    ARG_OF("staircase", ARG_FLAG, 0, ARG_ANY),
};
static const struct arg PIECEWISE_ARGS[] = {
    ARG_OWN("boundaries", "required"),
    ARG_OWN("values", "required"),
};
static const struct arg POLYNOMIAL_ARGS[] = {
    INITIAL,
    ARG_NEEDED("decay_steps", ARG_INTEGER, ARG_POSITIVE),
    ARG_OF("end_learning_rate", ARG_NUMBER, 0.0001, ARG_NOT_NEGATIVE),
    ARG_OF("power", ARG_NUMBER, 1, ARG_POSITIVE),
    ARG_OF("cycle", ARG_FLAG, 0, ARG_ANY),
};
static const struct arg COSINE_ARGS[] = {
    INITIAL,
    ARG_NEEDED("decay_steps", ARG_INTEGER, ARG_POSITIVE),
    ARG_OF("alpha", ARG_NUMBER, 0, ARG_NOT_NEGATIVE),
    ARG_OF("warmup_target", ARG_NUMBER, ARG_NONE, ARG_NOT_NEGATIVE),
    ARG_OF("warmup_steps", ARG_INTEGER, 0, ARG_NOT_NEGATIVE),
};
static const struct arg RESTARTS_ARGS[] = {
    INITIAL,
    ARG_NEEDED("first_decay_steps", ARG_INTEGER, ARG_POSITIVE),
    ARG_OF("t_mul", ARG_NUMBER, 2, ARG_AT_LEAST_ONE),
    ARG_OF("m_mul", ARG_NUMBER, 1, ARG_NOT_NEGATIVE),
    ARG_OF("alpha", ARG_NUMBER, 0, ARG_NOT_NEGATIVE),
};

#define KIND(name, table, about)                                                                                       \
    {                                                                                                                  \
        { name }, table, COUNT_OF(table), about                                                                        \
    }
static const struct schedule_kind ROWS[] = {
    { KIND("ExponentialDecay", DECAY_ARGS, "initial * rate^(t / decay_steps); staircase rounds the exponent down"),
      exponential_at },
    { KIND("InverseTimeDecay", DECAY_ARGS,
           "initial / (1 + rate * t / decay_steps); staircase rounds t / decay_steps down"),
      inverse_time_at },
    { KIND("PiecewiseConstantDecay", PIECEWISE_ARGS,
           "values[i] from the update after boundaries[i-1] to boundaries[i]"),
      piecewise_at },
    { KIND("PolynomialDecay", POLYNOMIAL_ARGS,
           "(initial - end) * (1 - t / decay_steps)^power + end; cycle stretches decay_steps over and over"),
      polynomial_at },
    { KIND("CosineDecay", COSINE_ARGS,
           "half a cosine from initial to alpha * initial; with warmup_target first a line from initial to it"),
      cosine_at },
    { KIND("CosineDecayRestarts", RESTARTS_ARGS,
           "cosines, each t_mul times longer and m_mul times lower than the one before"),
      restarts_at },
};
const struct catalog SCHEDULES = { .what = "schedule", .plural = "Learning-rate schedules", CATALOG_ROWS(ROWS) };

void schedule_free(struct schedule *s)
{
    if (s == NULL)
        return;
    free(s->boundaries);
    free(s->values);
    free(s);
}

struct schedule *schedule_constant(double rate)
{
    struct schedule *s = xcalloc(1, sizeof(*s));
    s->arg[0] = rate;
    return s;
}

static bool is_rate(double v)
{
    return v >= 0 && v <= (double)FLT_MAX;
}

static int parse_list(const struct node *config, const char *key, double **ret, size_t *ret_n, struct err *e)
{
    struct node list = node_get(config, key);
    if (!node_present(&list))
        return node_error(config, e, "PiecewiseConstantDecay needs '%s'", key);
    if (node_array(&list, e) < 0)
        return -1;
    size_t n = node_size(&list);
    if (n > STEPS_MAX)
        return node_error(&list, e, "has %zu entries, at most %d", n, STEPS_MAX);
    auto_free double *values = xcalloc(n + 1, sizeof(*values));
    for (size_t i = 0; i < n; i++) {
        struct node item = node_item(&list, i);
        if (node_f64(&item, &values[i], e) < 0)
            return -1;
    }
    *ret = TAKE(values);
    *ret_n = n;
    return 0;
}

static int parse_piecewise(struct schedule *s, const struct node *config, struct err *e)
{
    size_t values = 0;
    if (parse_list(config, "boundaries", &s->boundaries, &s->n, e) < 0 ||
        parse_list(config, "values", &s->values, &values, e) < 0)
        return -1;
    if (values != s->n + 1)
        return node_error(config, e, "%zu boundaries need %zu values, not %zu", s->n, s->n + 1, values);
    for (size_t i = 1; i < s->n; i++)
        if (s->boundaries[i] <= s->boundaries[i - 1])
            return node_key_error(config, "boundaries", e, "must increase");
    for (size_t i = 0; i < values; i++)
        if (!is_rate(s->values[i]))
            return node_key_error(config, "values", e, "must be 0 or greater and a 32-bit float, not %.9g",
                                  s->values[i]);
    return 0;
}

int schedule_parse(const struct node *n, struct schedule **ret, struct err *e)
{
    AUTO(schedule) *s = schedule_constant(0);
    if (json_is_object(n->v)) {
        const struct kind *k = NULL;
        struct node config;
        if (catalog_parse(&SCHEDULES, n, &k, s->arg, &config, e) < 0)
            return -1;
        s->kind = (const struct schedule_kind *)(const void *)k;
        if (s->kind->at == piecewise_at && parse_piecewise(s, &config, e) < 0)
            return -1;
    } else {
        if (node_f64(n, &s->arg[0], e) < 0)
            return -1;
        if (!is_rate(s->arg[0]))
            return node_error(n, e, "must be 0 or greater and a 32-bit float, not %.9g", s->arg[0]);
    }
    *ret = TAKE(s);
    return 0;
}

bool schedule_is_constant(const struct schedule *s)
{
    return s->kind == NULL;
}

double schedule_at(const struct schedule *s, int64_t t)
{
    return s->kind == NULL ? s->arg[0] : s->kind->at(s, (double)t);
}

static json_t *list_config(const double *v, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(v[i]));
    return list;
}

json_t *schedule_config(const struct schedule *s)
{
    if (s->kind == NULL)
        return json_real(s->arg[0]);
    json_t *config = args_config(&s->kind->k, s->arg);
    if (s->kind->at == piecewise_at) {
        json_object_set_new(config, "boundaries", list_config(s->boundaries, s->n));
        json_object_set_new(config, "values", list_config(s->values, s->n + 1));
    }
    return kind_serialized("keras.optimizers.schedules", s->kind->k.names[0], config);
}
