/* One step: batch, forward, backward. Only finite values are passed on. The loss is checked, and each gradient
 * before its variable is passed on, or the whole gradient after it was clipped. */
#include "train/step_engine.h"

#include <math.h>
#include <string.h>

#include "nn/exec.h"

/* The step that is computed. */
struct handover {
    const struct step_engine *engine;
    struct train_step *step;
    step_gradient_fn *ready; /* NULL: not wanted */
    void *user;
    bool finite; /* so far */
};

struct step_engine {
    const struct model *model;
    const struct class_weights *class_weights;
    struct exec *exec;
    struct loader *loader;
    size_t *offsets, *counts, nvars; /* of trainable variables, for clipping */
    float *weights;                  /* of the examples of a batch, where classes have some */
    struct batch batches[2];
    struct batch *batch; /* loaded now */
    struct batch *ahead; /* read ahead; ordinal -1: none */
    struct handover now;
};

void step_engine_free(struct step_engine *g)
{
    if (g == NULL)
        return;
    exec_free(g->exec);
    loader_free(g->loader);
    free(g->offsets);
    free(g->counts);
    free(g->weights);
    free(g);
}

static void list_trainable(struct step_engine *g)
{
    size_t n = model_variables(g->model);
    g->offsets = xcalloc(n + 1, sizeof(*g->offsets));
    g->counts = xcalloc(n + 1, sizeof(*g->counts));
    for (size_t i = 0; i < n; i++) {
        const struct variable *v = model_variable(g->model, i);
        if (v->kind != VAR_TRAINABLE)
            continue;
        g->offsets[g->nvars] = v->offset;
        g->counts[g->nvars++] = v->count;
    }
}

int step_engine_new(const struct step_engine_config *config, struct step_engine **ret, struct err *e)
{
    size_t rows = ordinal_space_rows(config->space);
    AUTO(step_engine) *g = xcalloc(1, sizeof(*g));
    g->model = config->model;
    g->class_weights = config->class_weights;
    g->batch = &g->batches[0];
    g->ahead = &g->batches[1];
    g->ahead->ordinal = -1;
    if (exec_new(g->model, rows, config->space->seed, &g->exec, e) < 0 ||
        loader_new(config->dataset, config->space, config->model, &g->loader, e) < 0)
        return -1;
    list_trainable(g);
    if (g->class_weights != NULL)
        g->weights = xcalloc(rows, sizeof(*g->weights));
    *ret = TAKE(g);
    return 0;
}

/* ---- the batch ---- */

int step_engine_load(struct step_engine *g, int64_t ordinal, struct err *e)
{
    struct batch *loaded = g->ahead;
    bool is_ahead = loaded->ordinal == ordinal;
    g->ahead = g->batch;
    g->ahead->ordinal = -1;
    g->batch = loaded;
    if (!is_ahead && loader_get(g->loader, ordinal, g->batch, e) < 0)
        return -1;
    if (g->weights != NULL) {
        class_weights_of(g->class_weights, g->batch, g->weights);
        g->batch->weight = g->weights;
    }
    return 0;
}

bool step_engine_prefetches(const struct step_engine *g)
{
    return loader_prefetches(g->loader);
}

void step_engine_expect(struct step_engine *g, int64_t ordinal)
{
    loader_hint(g->loader, ordinal);
}

bool step_engine_read_ahead(struct step_engine *g, int64_t ordinal)
{
    return !loader_prefetches(g->loader) && loader_get(g->loader, ordinal, g->ahead, NULL) == 0;
}

/* ---- forward and backward ---- */

/* A variable that is not finite ends it: gradients that were passed on stay applied, and no more are passed on. */
static void hand_over(void *user, size_t variable, double loss)
{
    struct handover *h = user;
    const struct variable *v = model_variable(h->engine->model, variable);
    h->finite = h->finite && isfinite(loss) && update_finite(v->kind, h->step->grads + v->offset, v->count);
    if (h->finite && h->ready != NULL)
        h->ready(h->user, h->step, variable);
}

static bool updates_finite(const struct model *m, const float *grads)
{
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        if (v->kind != VAR_CONST && !update_finite(v->kind, grads + v->offset, v->count))
            return false;
    }
    return true;
}

static void take_step(struct step_engine *g, struct train_step *step, step_gradient_fn *ready, void *user)
{
    memset(step->sums, 0, metrics_width(g->model) * sizeof(*step->sums));
    step->examples = g->batch->n;
    g->now = (struct handover){ .engine = g, .step = step, .ready = ready, .user = user, .finite = true };
}

/* Once the whole gradient is there. */
static int finish_step(const struct step_engine *g, struct err *e)
{
    const struct optimizer *o = model_optimizer(g->model);
    const struct train_step *step = g->now.step;
    if (!step->by_variable && optimizer_clips(o))
        optimizer_clip(o, step->grads, g->offsets, g->counts, g->nvars);
    if (isfinite(step->loss) && (step->by_variable ? g->now.finite : updates_finite(g->model, step->grads)))
        return 0;
    return err_set(e, ERR_DIVERGED, "%s of batch %lld (epoch %lld) is not finite: training diverged",
                   isfinite(step->loss) ? "a gradient" : "the loss", (long long)step->ordinal,
                   (long long)g->batch->epoch + 1);
}

int step_engine_compute(struct step_engine *g, struct train_step *step, step_gradient_fn *ready, void *user,
                        struct err *e)
{
    take_step(g, step, ready, user);
    exec_train(g->exec, step->values, g->batch, step->grads, step->sums, step->by_variable ? hand_over : NULL, &g->now,
               &step->loss);
    return finish_step(g, e);
}

void step_engine_begin(struct step_engine *g, struct train_step *step)
{
    take_step(g, step, NULL, NULL);
    exec_begin(g->exec, &(struct exec_step){ .params = step->values,
                                             .batch = g->batch,
                                             .grads = step->grads,
                                             .acc = step->sums,
                                             .ready = step->by_variable ? hand_over : NULL,
                                             .user = &g->now,
                                             .first = step->first });
}

int step_engine_advance(struct step_engine *g, struct exec_sums *ret_sums, struct err *e)
{
    if (!exec_advance(g->exec, ret_sums, &g->now.step->loss))
        return 0;
    return finish_step(g, e) < 0 ? -1 : 1;
}
