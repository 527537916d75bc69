/* Keras's initializers: their arguments, and values drawn from a named random stream, so that any process draws the
 * same. */
#include "nn/initializer.h"

#include <math.h>
#include <string.h>

#include "nn/catalog.h"

/* How a named form reads its arguments: which fields of struct initializer they are, or which they fix. */
struct initializer_row {
    struct kind k;
    struct initializer form; /* what the name alone fixes */
    const char *a, *b;       /* arguments that become a and b; NULL: set by the form */
};

static const char *const MODES[] = { "fan_in", "fan_out", "fan_avg", NULL };
/* The last one is Keras 2.0's and TensorFlow.js's name of the first. */
static const char *const DISTRIBUTIONS[] = { "truncated_normal", "untruncated_normal", "uniform", "normal", NULL };
enum { DIST_OLD_NORMAL = DIST_UNIFORM + 1 };

#define SEED ARG_OF("seed", ARG_INTEGER, ARG_NONE, ARG_ANY)
#define AXES ARG_REFUSE("input_axes"), ARG_REFUSE("output_axes") /* since Keras 3.14 */
#define GAIN ARG_OF("gain", ARG_NUMBER, 1, ARG_ANY)
static const struct arg CONSTANT_ARGS[] = { ARG_OF("value", ARG_NUMBER, 0, ARG_ANY) };
static const struct arg UNIFORM_ARGS[] = { ARG_OF("minval", ARG_NUMBER, -0.05, ARG_ANY),
                                           ARG_OF("maxval", ARG_NUMBER, 0.05, ARG_ANY), SEED };
static const struct arg NORMAL_ARGS[] = { ARG_OF("mean", ARG_NUMBER, 0, ARG_ANY),
                                          ARG_OF("stddev", ARG_NUMBER, 0.05, ARG_NOT_NEGATIVE), SEED };
static const struct arg SCALING_ARGS[] = { ARG_OF("scale", ARG_NUMBER, 1, ARG_POSITIVE), ARG_ONE_OF("mode", MODES),
                                           ARG_ONE_OF("distribution", DISTRIBUTIONS), SEED, AXES };
static const struct arg SEED_ARGS[] = { SEED, AXES };
static const struct arg ORTHOGONAL_ARGS[] = { GAIN, SEED };
static const struct arg IDENTITY_ARGS[] = { GAIN };

#define NO_ARGS(about, ...)                                                                                            \
    {                                                                                                                  \
        { __VA_ARGS__ }, NULL, 0, about                                                                                \
    }
#define KIND(table, about, ...)                                                                                        \
    {                                                                                                                  \
        { __VA_ARGS__ }, table, COUNT_OF(table), about                                                                 \
    }
#define FAN(s, m, d)                                                                                                   \
    {                                                                                                                  \
        .kind = INIT_VARIANCE_SCALING, .scale = (s), .mode = (m), .distribution = (d)                                  \
    }
static const struct initializer_row ROWS[] = {
    { NO_ARGS("0", "Zeros", "zeros", "zero"), { .kind = INIT_ZEROS }, NULL, NULL },
    { NO_ARGS("1", "Ones", "ones", "one"), { .kind = INIT_CONSTANT, .a = 1 }, NULL, NULL },
    { KIND(CONSTANT_ARGS, "value", "Constant", "constant"), { .kind = INIT_CONSTANT }, "value", NULL },
    { KIND(UNIFORM_ARGS, "uniform in [minval, maxval)", "RandomUniform", "random_uniform", "uniform"),
      { .kind = INIT_UNIFORM },
      "minval",
      "maxval" },
    { KIND(NORMAL_ARGS, "normal", "RandomNormal", "random_normal", "normal"),
      { .kind = INIT_NORMAL },
      "mean",
      "stddev" },
    { KIND(NORMAL_ARGS, "normal, redrawn beyond two deviations", "TruncatedNormal", "truncated_normal"),
      { .kind = INIT_TRUNCATED_NORMAL },
      "mean",
      "stddev" },
    { KIND(SCALING_ARGS, "variance scale / fan", "VarianceScaling", "variance_scaling"),
      { .kind = INIT_VARIANCE_SCALING },
      NULL,
      NULL },
    { KIND(SEED_ARGS, "uniform within sqrt(6 / (fan_in + fan_out))", "GlorotUniform", "glorot_uniform"),
      FAN(1, FAN_AVG, DIST_UNIFORM), NULL, NULL },
    { KIND(SEED_ARGS, "truncated normal, variance 2 / (fan_in + fan_out)", "GlorotNormal", "glorot_normal"),
      FAN(1, FAN_AVG, DIST_TRUNCATED_NORMAL), NULL, NULL },
    { KIND(SEED_ARGS, "uniform within sqrt(6 / fan_in)", "HeUniform", "he_uniform"), FAN(2, FAN_IN, DIST_UNIFORM), NULL,
      NULL },
    { KIND(SEED_ARGS, "truncated normal, variance 2 / fan_in", "HeNormal", "he_normal"),
      FAN(2, FAN_IN, DIST_TRUNCATED_NORMAL), NULL, NULL },
    { KIND(SEED_ARGS, "uniform within sqrt(3 / fan_in)", "LecunUniform", "lecun_uniform"), FAN(1, FAN_IN, DIST_UNIFORM),
      NULL, NULL },
    { KIND(SEED_ARGS, "truncated normal, variance 1 / fan_in", "LecunNormal", "lecun_normal"),
      FAN(1, FAN_IN, DIST_TRUNCATED_NORMAL), NULL, NULL },
    { KIND(ORTHOGONAL_ARGS, "gain times a matrix with orthonormal rows or columns", "Orthogonal", "orthogonal",
           "OrthogonalInitializer"),
      { .kind = INIT_ORTHOGONAL },
      "gain",
      NULL },
    { KIND(IDENTITY_ARGS, "gain on the diagonal of a matrix", "Identity", "identity", "IdentityInitializer"),
      { .kind = INIT_IDENTITY },
      "gain",
      NULL },
};
static const char *const LATER[] = { "STFT", "stft", NULL };
const struct catalog INITIALIZERS = {
    .what = "initializer", .plural = "Initializers", CATALOG_ROWS(ROWS), .later = LATER
};

static double value(const struct kind *k, const double *values, const char *name, double fallback)
{
    for (size_t i = 0; name != NULL && i < k->nargs; i++)
        if (strcmp(k->args[i].name, name) == 0)
            return values[i];
    return fallback;
}

static struct initializer from_values(const struct initializer_row *row, const double *values)
{
    struct initializer r = row->form;
    r.class_name = row->k.names[0];
    r.a = value(&row->k, values, row->a, r.a);
    r.b = value(&row->k, values, row->b, r.b);
    r.scale = value(&row->k, values, "scale", r.scale);
    r.mode = (unsigned)value(&row->k, values, "mode", r.mode);
    unsigned distribution = (unsigned)value(&row->k, values, "distribution", r.distribution);
    r.distribution = distribution == DIST_OLD_NORMAL ? DIST_TRUNCATED_NORMAL : distribution;
    double seed = value(&row->k, values, "seed", ARG_NONE);
    r.has_seed = !isnan(seed);
    r.seed = r.has_seed ? (int64_t)seed : 0;
    return r;
}

int initializer_parse(const struct node *n, const char *fallback, struct initializer *ret, struct err *e)
{
    const struct kind *k = NULL;
    double values[KIND_ARGS_MAX];
    if (node_present(n)) {
        if (catalog_parse(&INITIALIZERS, n, &k, values, NULL, e) < 0)
            return -1;
    } else {
        if (catalog_find(&INITIALIZERS, n, fallback, &k, e) < 0)
            return -1;
        args_defaults(k, values);
    }
    struct initializer i = from_values((const struct initializer_row *)(const void *)k, values);
    if (i.kind == INIT_UNIFORM && i.a > i.b)
        return node_error(n, e, "minval %.9g is greater than maxval %.9g", i.a, i.b);
    *ret = i;
    return 0;
}

int initializer_check(const struct initializer *i, const struct shape *s, struct err *e)
{
    char text[128];
    if (i->kind == INIT_IDENTITY && s->rank != 2)
        return err_set(e, ERR_INPUT, "Identity fills a matrix only, not shape %s", shape_text(s, text));
    if (i->kind == INIT_ORTHOGONAL && s->rank < 2)
        return err_set(e, ERR_INPUT, "Orthogonal needs at least 2 axes, not shape %s", shape_text(s, text));
    return 0;
}

/* keras/src/initializers/random_initializers.py compute_fans */
static void compute_fans(const struct shape *s, double *ret_in, double *ret_out)
{
    double field = 1;
    if (s->rank < 2) {
        *ret_in = *ret_out = s->rank == 0 ? 1 : (double)s->dim[0];
        return;
    }
    for (int i = 0; i < s->rank - 2; i++)
        field *= (double)s->dim[i];
    *ret_in = (double)s->dim[s->rank - 2] * field;
    *ret_out = (double)s->dim[s->rank - 1] * field;
}

static void draw_uniform(struct rng *r, double low, double high, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = to_float(low + (high - low) * (double)rng_uniform(r));
}

static void draw_normal(struct rng *r, double mean, double deviation, bool truncated, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = rng_normal(r);
        while (truncated && fabs(x) > 2)
            x = rng_normal(r);
        out[i] = to_float(mean + deviation * x);
    }
}

static void draw_scaled(const struct initializer *i, const struct shape *s, struct rng *r, float *out, size_t n)
{
    double in = 1, outs = 1;
    compute_fans(s, &in, &outs);
    const double fan[] = { [FAN_IN] = in, [FAN_OUT] = outs, [FAN_AVG] = (in + outs) / 2 };
    double variance = i->scale / MAX(1, fan[i->mode]);
    double limit = sqrt(3 * variance), deviation = sqrt(variance);
    if (i->distribution == DIST_UNIFORM)
        draw_uniform(r, -limit, limit, out, n);
    else if (i->distribution == DIST_UNTRUNCATED_NORMAL)
        draw_normal(r, 0, deviation, false, out, n);
    else /* .8796: the deviation of a standard normal cut at two deviations */
        draw_normal(r, 0, deviation / 0.87962566103423978, true, out, n);
}

/* Modified Gram-Schmidt, twice, over the `vectors` rows of m (vectors <= length): rows become orthonormal. */
static void orthonormalise(double *m, size_t vectors, size_t length)
{
    for (size_t i = 0; i < vectors; i++) {
        double *v = m + i * length, norm = 0;
        for (size_t k = 0; k < 2 * i; k++) {
            const double *u = m + (k % i) * length;
            double dot = 0;
            for (size_t j = 0; j < length; j++)
                dot += u[j] * v[j];
            for (size_t j = 0; j < length; j++)
                v[j] -= dot * u[j];
        }
        for (size_t j = 0; j < length; j++)
            norm += v[j] * v[j];
        norm = sqrt(norm);
        for (size_t j = 0; j < length; j++)
            v[j] /= norm > 0 ? norm : 1;
    }
}

/* Keras flattens all axes but the last: (rows, cols); whichever is smaller becomes orthonormal. */
static void draw_orthogonal(const struct initializer *i, const struct shape *s, struct rng *r, float *out, size_t n)
{
    if (n == 0)
        return;
    size_t cols = (size_t)s->dim[s->rank - 1], rows = n / cols;
    size_t vectors = MIN(rows, cols), length = MAX(rows, cols);
    auto_free double *m = xcalloc(n, sizeof(*m));
    for (size_t j = 0; j < n; j++)
        m[j] = rng_normal(r);
    orthonormalise(m, vectors, length);
    for (size_t v = 0; v < vectors; v++)
        for (size_t j = 0; j < length; j++)
            out[rows < cols ? v * cols + j : j * cols + v] = to_float(i->a * m[v * length + j]);
}

static void fill_identity(const struct shape *s, double gain, float *out)
{
    size_t rows = (size_t)s->dim[0], cols = (size_t)s->dim[1];
    memset(out, 0, rows * cols * sizeof(*out));
    for (size_t i = 0; i < MIN(rows, cols); i++)
        out[i * cols + i] = (float)gain;
}

void initializer_draw(const struct initializer *i, const struct shape *s, struct rng *r, float *out)
{
    struct rng own;
    if (i->has_seed) {
        own = rng_at((uint64_t)i->seed, RNG_INIT, 0, 0);
        r = &own;
    }
    const size_t n = shape_elements(s);
    switch (i->kind) {
    case INIT_ZEROS:
        memset(out, 0, n * sizeof(*out));
        break;
    case INIT_CONSTANT:
        for (size_t j = 0; j < n; j++)
            out[j] = (float)i->a;
        break;
    case INIT_UNIFORM:
        draw_uniform(r, i->a, i->b, out, n);
        break;
    case INIT_NORMAL:
    case INIT_TRUNCATED_NORMAL:
        draw_normal(r, i->a, i->b, i->kind == INIT_TRUNCATED_NORMAL, out, n);
        break;
    case INIT_VARIANCE_SCALING:
        draw_scaled(i, s, r, out, n);
        break;
    case INIT_ORTHOGONAL:
        draw_orthogonal(i, s, r, out, n);
        break;
    case INIT_IDENTITY:
        fill_identity(s, i->a, out);
        break;
    }
}

static const struct initializer_row *row_of(const char *class_name)
{
    for (size_t i = 0; i < COUNT_OF(ROWS); i++)
        if (class_name != NULL && strcmp(ROWS[i].k.names[0], class_name) == 0)
            return &ROWS[i];
    return &ROWS[0];
}

json_t *initializer_json(const struct initializer *i)
{
    const struct initializer_row *row = row_of(i->class_name);
    double values[KIND_ARGS_MAX];
    args_defaults(&row->k, values);
    for (size_t j = 0; j < row->k.nargs; j++) {
        const char *name = row->k.args[j].name;
        if (row->a != NULL && strcmp(name, row->a) == 0)
            values[j] = i->a;
        else if (row->b != NULL && strcmp(name, row->b) == 0)
            values[j] = i->b;
        else if (strcmp(name, "scale") == 0)
            values[j] = i->scale;
        else if (strcmp(name, "mode") == 0)
            values[j] = i->mode;
        else if (strcmp(name, "distribution") == 0)
            values[j] = i->distribution;
        else if (strcmp(name, "seed") == 0)
            values[j] = i->has_seed ? (double)i->seed : ARG_NONE;
    }
    json_t *config = args_config(&row->k, values);
    json_object_del(config, "input_axes"); /* not written, so that an older Keras 3 reads it too */
    json_object_del(config, "output_axes");
    return kind_serialized("keras.initializers", row->k.names[0], config);
}
