/* A training step in parts: the batches of a group, each with its own exec, compute what one exec does with the joined
 * batch when a layer is synchronized. */
#include <math.h>

#include "exec_values.h"
#include "nn/exec_impl.h"
#include "yaml_model.h"

enum { GROUP = 3, OUT = 3 };
static const size_t SIZES[GROUP] = { 5, 2, 9 };
enum { JOINED = 16 };

/* Values of all variables; no variance is below 0.5. */
static float *drawn_params(const struct model *m)
{
    float *params = zeros(model_size(m));
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        draw(params + v->offset, v->count, 10 + (uint32_t)i);
        for (size_t k = 0; k < v->count && strstr(v->name, "variance") != NULL; k++)
            params[v->offset + k] = 0.5F + fabsf(params[v->offset + k]);
    }
    return params;
}

/* ---- a group, whose batches are parts of one batch ---- */

struct member {
    struct exec *x;
    struct batch batch;
    float *grads;
    double loss;
};

struct group {
    const struct model *m;
    float *params, *in, *labels;
    struct batch joined;
    struct member member[GROUP];
    size_t stops;
};

static struct batch part_of(const struct group *g, size_t from, size_t n)
{
    struct shape in = { .rank = 1, .dim = { (int64_t)n } }, out = shape_of(2, (int64_t[]){ (int64_t)n, OUT });
    size_t width = shape_elements(&g->m->inputs[0].shape);
    for (int i = 0; i < g->m->inputs[0].shape.rank; i++)
        in.dim[in.rank++] = g->m->inputs[0].shape.dim[i];
    return (struct batch){ .n = n,
                           .x[0] = { .dtype = DT_FLOAT, .shape = in, .data = g->in + from * width },
                           .y[0] = { .dtype = DT_FLOAT, .shape = out, .data = g->labels + from * OUT } };
}

static void group_init(struct group *g, const struct model *m)
{
    size_t n = JOINED * shape_elements(&m->inputs[0].shape), from = 0;
    *g = (struct group){ .m = m, .params = drawn_params(m), .in = zeros(n), .labels = zeros(JOINED * OUT) };
    draw(g->in, n, 1);
    for (size_t i = 0; i < n; i++) /* the batches differ much */
        g->in[i] = g->in[i] * (1 + 2 * (float)i / (float)n) + 3 * (float)i / (float)n;
    draw(g->labels, JOINED * OUT, 2);
    g->joined = part_of(g, 0, JOINED);
    for (size_t i = 0; i < GROUP; from += SIZES[i++]) {
        g->member[i].x = make_exec(m, JOINED, 1);
        g->member[i].batch = part_of(g, from, SIZES[i]);
        g->member[i].grads = zeros(model_size(m));
    }
}

static void group_fini(struct group *g)
{
    for (size_t i = 0; i < GROUP; i++) {
        exec_free(g->member[i].x);
        free(g->member[i].grads);
    }
    free(g->params);
    free(g->in);
    free(g->labels);
}

/* In order, and the totals back to all. */
static void add_sums(const struct exec_sums *sums, size_t n)
{
    for (size_t k = 0; k < sums[0].n; k++) {
        double total = 0;
        for (size_t i = 0; i < n; i++)
            total += sums[i].sum[k];
        for (size_t i = 0; i < n; i++)
            sums[i].sum[k] = total;
    }
}

static bool advance(struct group *g, struct exec_sums *sums)
{
    bool done = false;
    for (size_t i = 0; i < GROUP; i++) {
        bool now = exec_advance(g->member[i].x, &sums[i], &g->member[i].loss);
        ck_assert_msg(i == 0 || (now == done && (now || sums[i].n == sums[0].n)), "they stop at different places");
        done = now;
    }
    return done;
}

static void train(struct group *g)
{
    struct exec_sums sums[GROUP];
    for (size_t i = 0; i < GROUP; i++)
        exec_begin(g->member[i].x, &(struct exec_step){ .params = g->params,
                                                        .batch = &g->member[i].batch,
                                                        .grads = g->member[i].grads,
                                                        .first = i == 0 });
    for (g->stops = 0; !advance(g, sums); g->stops++)
        add_sums(sums, GROUP);
}

/* The mean over the group of a gradient; of a moving average the value after all batches, one after the other. */
static double of_group(const struct group *g, const struct variable *v, size_t k)
{
    double mean = 0;
    float average = g->params[v->offset + k];
    for (size_t i = 0; i < GROUP; i++) {
        float one = g->member[i].grads[v->offset + k];
        mean += (double)one * (double)SIZES[i] / JOINED;
        average = average * v->momentum + one * (1 - v->momentum);
    }
    return v->kind == VAR_MOVING ? (double)average : mean;
}

static double largest(const float *v, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, (double)fabsf(v[i]));
    return most;
}

static void check_joined(const struct group *g, const char *name)
{
    AUTO(exec) *x = make_exec(g->m, JOINED, 1);
    auto_free float *grads = zeros(model_size(g->m));
    double loss, mean = 0;

    exec_train(x, g->params, &g->joined, grads, NULL, NULL, NULL, &loss);
    for (size_t i = 0; i < GROUP; i++)
        mean += g->member[i].loss * (double)SIZES[i] / JOINED;
    ck_assert_msg(fabs(mean - loss) < 1e-5 * loss, "%s: loss %.9g, not %.9g", name, mean, loss);
    double scale = largest(grads, g->m->trainable_size);
    for (size_t i = 0; i < model_variables(g->m); i++) {
        const struct variable *v = model_variable(g->m, i);
        for (size_t k = 0; k < v->count; k++) {
            float now = g->params[v->offset + k], s = grads[v->offset + k];
            double want = (double)(v->kind == VAR_MOVING ? now * v->momentum + s * (1 - v->momentum) : s);
            double got = of_group(g, v, k), near = 1e-5 * (v->kind == VAR_TRAINABLE ? scale : fmax(1, fabs(want)));
            ck_assert_msg(fabs(got - want) <= near, "%s: %s %zu: %.9g, not %.9g", name, v->name, k, got, want);
        }
    }
}

/* ---- models ---- */

#define COMPILE              "compile: {optimizer: sgd, loss: mse}\n"
#define CHAIN(shape, layers) COMPILE "model:\n  inputShape: " shape "\n  layers:\n" layers
#define DENSE(more)          "  - Dense: {units: " more "}\n"
#define NORM                 "  - BatchNormalization: {synchronized: true, momentum: 0.7, name: "
#define CONV                 "  - Conv2D: {filters: 4, kernel_size: 3, padding: same}\n"
#define SHARED               ", synchronized: true, momentum: 0.7"
#define CALL(from)           "[[" from ", 0, 0, {}]]"
#define LAYER(class, name, config, calls)                                                                              \
    "{class_name: " class ", name: " name ", config: {name: " name config "}, inbound_nodes: [" calls "]},\n"

static const char PLAIN[] = CHAIN("[5]", DENSE("4") NORM "n}\n" DENSE("3"));

static const struct {
    const char *name, *text;
    size_t stops;
} MODELS[] = {
    { "dense", PLAIN, 2 },
    { "images",
      CHAIN("[6, 6, 2]", CONV NORM "a}\n"
                                   "  - ReLU\n" CONV NORM "b}\n"
                                   "  - ReLU\n  - MaxPooling2D\n  - Flatten\n" DENSE("3")),
      4 },
    { "first", CHAIN("[5]", NORM "n}\n" DENSE("3")), 1 },
    { "behind what is not trained", CHAIN("[5]", DENSE("4, trainable: false") NORM "n}\n" DENSE("3")), 1 },
    { "last", CHAIN("[5]", DENSE("3") NORM "n, scale: false}\n"), 2 },
    { "two in a row", CHAIN("[5]", DENSE("4") NORM "a}\n" NORM "b, center: false}\n" DENSE("3")), 4 },
    { "frozen", CHAIN("[5]", DENSE("4") NORM "n, trainable: false}\n" DENSE("3")), 0 },
    { "regularised", CHAIN("[5]", DENSE("4, kernel_regularizer: l2") NORM "n, gamma_regularizer: l2}\n" DENSE("3")),
      2 },
    { "padding", /* the numbers that are not above 0: many of the first batch, few of the last */
      CHAIN("[5]",
            "  - ReLU: {max_value: 6}\n  - Embedding: {input_dim: 8, output_dim: 4, mask_zero: true}\n" DENSE("4") NORM
            "a}\n" DENSE("3, activation: tanh") NORM "b}\n  - GlobalAveragePooling1D\n" DENSE("3")),
      4 },
    { "called twice",
      COMPILE "model: {keras: {class_name: Functional, config: {layers: [\n" LAYER(
          "InputLayer", "in", ", batch_shape: [null, 5]", "") LAYER("Dense", "d", ", units: 4", CALL("in"))
          LAYER("BatchNormalization", "n", SHARED, CALL("d") ", " CALL("e")) LAYER(
              "Dense", "e", ", units: 4", CALL("n")) "{class_name: Dense, name: f, config: {name: f, units: 3}, "
                                                     "inbound_nodes: [[[n, 1, 0, {}]]]}],\n"
                                                     "input_layers: [[in, 0, 0]], output_layers: [[f, 0, 0]]}}}\n",
      4 },
};

START_TEST(a_group_is_like_one_batch)
{
    for (size_t i = 0; i < COUNT_OF(MODELS); i++) {
        AUTO(model) *m = yaml_model(MODELS[i].text);
        struct group g;
        group_init(&g, m);
        for (int step = 0; step < 2; step++) { /* nothing is left of a step */
            train(&g);
            ck_assert_msg(g.stops == MODELS[i].stops, "%s stops %zu times", MODELS[i].name, g.stops);
            check_joined(&g, MODELS[i].name);
        }
        group_fini(&g);
    }
}
END_TEST

/* The statistics that each batch gives of a layer that is not synchronized are its own. */
START_TEST(other_layers_are_left_alone)
{
    AUTO(model) *m =
        yaml_model(CHAIN("[5]", "  - BatchNormalization: {name: own}\n" DENSE("4") NORM "n}\n" DENSE("3")));
    struct group g;
    group_init(&g, m);
    train(&g);
    for (size_t i = 0; i < GROUP; i++) {
        auto_free float *alone = zeros(model_size(m));
        double loss;
        AUTO(exec) *x = make_exec(m, JOINED, 1);
        exec_train(x, g.params, &g.member[i].batch, alone, NULL, NULL, NULL, &loss);
        for (size_t k = 0; k < model_variables(m); k++) {
            const struct variable *v = model_variable(m, k);
            if (strncmp(v->name, "own/moving", 10) == 0)
                ck_assert_mem_eq(g.member[i].grads + v->offset, alone + v->offset, v->count * sizeof(float));
        }
    }
    group_fini(&g);
}
END_TEST

/* A batch that is a group of its own is computed as without synchronized. */
START_TEST(a_group_of_one)
{
    AUTO(model) *m = yaml_model(PLAIN);
    AUTO(model) *own = yaml_model(CHAIN("[5]", DENSE("4") "  - BatchNormalization: {momentum: 0.7}\n" DENSE("3")));
    AUTO(exec) *x = make_exec(m, JOINED, 1), *y = make_exec(own, JOINED, 1);
    auto_free float *a = zeros(model_size(m)), *b = zeros(model_size(m));
    double loss, loss_own;
    struct group g;
    group_init(&g, m);
    exec_train(x, g.params, &g.joined, a, NULL, NULL, NULL, &loss);
    exec_train(y, g.params, &g.joined, b, NULL, NULL, NULL, &loss_own);
    ck_assert_double_eq_tol(loss, loss_own, 1e-6 * loss);
    for (size_t i = 0; i < model_size(m); i++)
        ck_assert_double_eq_tol((double)a[i], (double)b[i], 1e-5 * largest(b, model_size(m)));
    group_fini(&g);
}
END_TEST

/* Leaves a step at its stop of that number, after which the sums are as the batch has them. */
static void leave_at(struct exec *x, const struct exec_step *step, size_t stop)
{
    struct exec_sums sums;
    double loss;
    exec_begin(x, step);
    for (size_t i = 0; i <= stop; i++) {
        ck_assert(!exec_advance(x, &sums, &loss));
        for (size_t k = 0; k < sums.n; k++)
            sums.sum[k] *= 3;
    }
}

START_TEST(a_step_is_given_up)
{
    for (size_t i = 0; i < COUNT_OF(MODELS); i++) {
        AUTO(model) *m = yaml_model(MODELS[i].text);
        auto_free float *grads = zeros(model_size(m));
        double want, loss;
        struct group g;
        group_init(&g, m);
        struct member *one = &g.member[0], *other = &g.member[1];
        exec_train(one->x, g.params, &g.joined, grads, NULL, NULL, NULL, &want);
        for (size_t stop = 0; stop < MODELS[i].stops; stop++) {
            leave_at(one->x, &(struct exec_step){ .params = g.params, .batch = &other->batch, .grads = one->grads },
                     stop);
            memset(one->grads, 0, model_size(m) * sizeof(float));
            exec_train(one->x, g.params, &g.joined, one->grads, NULL, NULL, NULL, &loss);
            ck_assert_double_eq(loss, want);
            ck_assert_mem_eq(one->grads, grads, model_size(m) * sizeof(float));
        }
        group_fini(&g);
    }
}
END_TEST

/* The variance of features that are far from zero. */
START_TEST(a_large_mean)
{
    AUTO(model) *m = yaml_model(CHAIN("[5]", NORM "n}\n" DENSE("3")));
    const struct variable *v = model_variable(m, model_variables(m) - 1);
    struct group g;
    group_init(&g, m);
    draw(g.in, JOINED * 5, 7);
    for (size_t i = 0; i < JOINED * 5; i++)
        g.in[i] += 1000;
    train(&g);
    ck_assert_str_eq(v->name, "n/moving_variance");
    for (size_t k = 0; k < v->count; k++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < JOINED; i++)
            sum += (double)g.in[i * 5 + k];
        for (size_t i = 0; i < JOINED; i++)
            squares += pow((double)g.in[i * 5 + k] - sum / JOINED, 2);
        ck_assert_double_eq_tol((double)g.member[0].grads[v->offset + k], squares / JOINED, 1e-4 * squares / JOINED);
    }
    group_fini(&g);
}
END_TEST

struct told {
    size_t pending;
    double loss;
};

static void take_told(void *user, size_t variable, double loss)
{
    struct told *t = user;
    ck_assert_uint_eq(variable, t->pending - 1); /* each one, from the last to the first */
    t->pending = variable;
    t->loss = loss;
}

/* Each once, and only those that the layers behind the stop have. */
START_TEST(variables_are_told_between_stops)
{
    AUTO(model) *m = yaml_model(PLAIN);
    AUTO(exec) *x = make_exec(m, JOINED, 1);
    struct exec_sums sums;
    double loss;
    struct group g;
    group_init(&g, m);
    struct told t = { .pending = model_variables(m) };
    exec_begin(x, &(struct exec_step){ .params = g.params,
                                       .batch = &g.joined,
                                       .grads = g.member[0].grads,
                                       .ready = take_told,
                                       .user = &t,
                                       .first = true });
    ck_assert(!exec_advance(x, &sums, &loss)); /* forward */
    ck_assert_uint_eq(t.pending, model_variables(m));
    ck_assert(!exec_advance(x, &sums, &loss)); /* backward */
    ck_assert_uint_eq(t.pending, 4);           /* the first Dense, gamma and beta are not complete */
    ck_assert(exec_advance(x, &sums, &loss));
    ck_assert_uint_eq(t.pending, 0);
    ck_assert_double_eq(t.loss, loss);
    group_fini(&g);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/exec_train");
    TCase *t = tcase_create("exec_train");
    tcase_add_test(t, a_group_is_like_one_batch);
    tcase_add_test(t, other_layers_are_left_alone);
    tcase_add_test(t, a_group_of_one);
    tcase_add_test(t, a_step_is_given_up);
    tcase_add_test(t, a_large_mean);
    tcase_add_test(t, variables_are_told_between_stops);
    suite_add_tcase(s, t);
    return s;
}
