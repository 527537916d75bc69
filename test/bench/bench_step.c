/* bench_step - one training step of the MNIST MLP (784-128 relu-10 softmax, batch 64, Adam) in one thread:
 * exec_train + optimizer_apply against a bare loop of the same arithmetic on OpenBLAS, in turns, in one run.
 *
 *     env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE build/release/bench/bench_step [seconds a turn]
 *
 * Prints the medians of 9 turns each and their ratio; fails when the two did not learn the same.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "codec/json.h"
#include "nn/exec.h"
#include "nn/model_impl.h"
#include "tensor/gemm.h"
#include "tensor/kernel.h"

#ifndef __NO_MATH_ERRNO__
#error "the bare loop is only fair with the kernels' flags: -O3 -fno-math-errno -fno-trapping-math"
#endif

enum { BATCH = 64, IN = 784, HIDDEN = 128, OUT = 10, BATCHES = 50, TURNS = 9 };

struct data {
    float *x;   /* [BATCHES * BATCH, IN] */
    int32_t *y; /* [BATCHES * BATCH] */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* of this thread: other work on the machine disturbs less */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the bare loop ---- */

enum { W1 = 0, B1 = W1 + IN * HIDDEN, W2 = B1 + HIDDEN, B2 = W2 + HIDDEN * OUT, PARAMS = B2 + 16 };

struct bare {
    float p[PARAMS], g[PARAMS], m[PARAMS], v[PARAMS], h[BATCH * HIDDEN], dh[BATCH * HIDDEN], o[BATCH * OUT];
    long t;
    double loss;
};

static KERNEL void bare_hidden(float *restrict h, const float *restrict b)
{
    for (int r = 0; r < BATCH; r++)
        for (int c = 0; c < HIDDEN; c++)
            h[r * HIDDEN + c] = h[r * HIDDEN + c] + b[c] > 0 ? h[r * HIDDEN + c] + b[c] : 0;
}

/* softmax, loss, and d loss / d logits in place */
static double bare_loss(float *restrict o, const float *restrict b, const int32_t *restrict y)
{
    double loss = 0;
    for (int r = 0; r < BATCH; r++, o += OUT) {
        float top = -HUGE_VALF, sum = 0;
        for (int c = 0; c < OUT; c++) {
            o[c] += b[c];
            top = fmaxf(top, o[c]);
        }
        for (int c = 0; c < OUT; c++)
            sum += o[c] = expf(o[c] - top);
        for (int c = 0; c < OUT; c++)
            o[c] = o[c] / sum;
        loss -= (double)logf(o[y[r]]);
        o[y[r]] -= 1;
        for (int c = 0; c < OUT; c++)
            o[c] *= 1.0F / BATCH;
    }
    return loss / BATCH;
}

static KERNEL void bare_sum(const float *restrict x, float *restrict y, int cols)
{
    memset(y, 0, (size_t)cols * sizeof(*y));
    for (int r = 0; r < BATCH; r++)
        for (int c = 0; c < cols; c++)
            y[c] += x[r * cols + c];
}

static KERNEL void bare_relu_gradient(float *restrict dh, const float *restrict h)
{
    for (int i = 0; i < BATCH * HIDDEN; i++)
        dh[i] = h[i] > 0 ? dh[i] : 0;
}

static KERNEL void bare_adam(float *restrict p, const float *restrict g, float *restrict m, float *restrict v,
                             float rate)
{
    for (int i = 0; i < PARAMS; i++) {
        m[i] += (g[i] - m[i]) * 0.1F;
        v[i] += (g[i] * g[i] - v[i]) * 0.001F;
        p[i] -= rate * m[i] / (sqrtf(v[i]) + 1e-7F);
    }
}

static void bare_step(struct bare *s, const float *x, const int32_t *y)
{
    gemm_nn(x, s->p + W1, 0, s->h, BATCH, HIDDEN, IN);
    bare_hidden(s->h, s->p + B1);
    gemm_nn(s->h, s->p + W2, 0, s->o, BATCH, OUT, HIDDEN);
    s->loss = bare_loss(s->o, s->p + B2, y);
    gemm_tn(s->h, s->o, 0, s->g + W2, HIDDEN, OUT, BATCH);
    bare_sum(s->o, s->g + B2, OUT);
    gemm_nt(s->o, s->p + W2, 0, s->dh, BATCH, HIDDEN, OUT);
    bare_relu_gradient(s->dh, s->h);
    gemm_tn(x, s->dh, 0, s->g + W1, IN, HIDDEN, BATCH);
    bare_sum(s->dh, s->g + B1, HIDDEN);
    s->t++;
    double correction = sqrt(1 - pow(0.999, (double)s->t)) / (1 - pow(0.9, (double)s->t));
    bare_adam(s->p, s->g, s->m, s->v, (float)(0.001 * correction));
}

/* ---- ours ---- */

struct ours {
    struct model *m;
    struct exec *x;
    float *p, *g, *slot[2];
    double *acc, loss;
    struct opt_state state;
};

static int ours_new(struct ours *o, struct err *e)
{
    static const char MODEL[] =
        "{\"inputShape\": [784], \"layers\": [{\"Dense\": {\"units\": 128, \"activation\": \"relu\"}},"
        "{\"Dense\": {\"units\": 10, \"activation\": \"softmax\"}}]}";
    static const char COMPILE[] =
        "{\"optimizer\": \"Adam\", \"loss\": \"sparse_categorical_crossentropy\", \"metrics\": [\"accuracy\"]}";
    json_auto_t *model = NULL, *compile = NULL;
    if (json_parse(MODEL, strlen(MODEL), "model", &model, e) < 0 ||
        json_parse(COMPILE, strlen(COMPILE), "compile", &compile, e) < 0)
        return -1;
    struct node mn = node_root(model, NULL), cn = node_root(compile, NULL);
    if (model_build(&mn, &cn, ".", &o->m, e) < 0 || exec_new(o->m, BATCH, 1, &o->x, e) < 0)
        return -1;
    size_t size = model_size(o->m) * sizeof(float);
    if (mem_alloc(size, "p", (void **)&o->p, e) < 0 || mem_alloc(size, "g", (void **)&o->g, e) < 0 ||
        mem_alloc(size, "m", (void **)&o->slot[0], e) < 0 || mem_alloc(size, "v", (void **)&o->slot[1], e) < 0)
        return -1;
    o->acc = xcalloc(metrics_width(o->m), sizeof(double));
    model_init(o->m, 1, o->p);
    return 0;
}

static void ours_free(struct ours *o)
{
    exec_free(o->x);
    model_free(o->m);
    free(o->p);
    free(o->g);
    free(o->slot[0]);
    free(o->slot[1]);
    free(o->acc);
}

static void ours_step(struct ours *o, float *x, int32_t *y)
{
    struct batch b = { .n = BATCH,
                       .x = { DT_FLOAT, { 2, { BATCH, IN } }, x },
                       .y = { DT_INT32, { 1, { BATCH } }, y } };
    struct opt_step step;
    exec_train(o->x, o->p, &b, o->g, o->acc, &o->loss);
    optimizer_begin(model_optimizer(o->m), &o->state, &step);
    optimizer_apply(model_optimizer(o->m), &step, o->p, o->slot, o->g, o->m->trainable_size);
    optimizer_end(model_optimizer(o->m), &o->state);
}

/* ---- the contest ---- */

/* Ten blobs in 784 dimensions. */
static struct data make_data(void)
{
    size_t n = (size_t)BATCHES * BATCH;
    struct data d = { .x = xcalloc(n * IN, sizeof(float)), .y = xcalloc(n, sizeof(int32_t)) };
    for (size_t i = 0; i < n; i++) {
        struct rng r = rng_at(1, RNG_TEST, i, 0);
        d.y[i] = (int32_t)rng_below(&r, OUT);
        for (size_t k = 0; k < IN; k++)
            d.x[i * IN + k] = 0.5F * rng_uniform(&r) + 0.1F * (float)(k % OUT == (size_t)d.y[i]);
    }
    return d;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 0.3, rate[2][TURNS];
    struct bare *bare = aligned_alloc(64, (sizeof(*bare) + 63) / 64 * 64);
    struct ours ours = { 0 };
    struct err e = { 0 };

    mem_keep_pages();
    gemm_setup();
    if (bare == NULL || ours_new(&ours, &e) < 0) {
        fprintf(stderr, "error: %s\n", e.msg);
        return 1;
    }
    struct data d = make_data();
    memset(bare, 0, sizeof(*bare));
    memcpy(bare->p, ours.p, model_size(ours.m) * sizeof(float)); /* same start: offsets are the same too */
    size_t next[2] = { 0, 0 };
    double loss[2] = { 0, 0 };
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        long steps = 0;
        double begin = now(), end = begin + seconds, t;
        for (t = begin; t < end; t = now()) {
            for (int k = 0; k < 10; k++, steps++) {
                size_t at = next[turn % 2]++ % BATCHES * BATCH;
                if (turn % 2 == 0)
                    bare_step(bare, d.x + at * IN, d.y + at);
                else
                    ours_step(&ours, d.x + at * IN, d.y + at);
                if (next[turn % 2] == 100)
                    loss[turn % 2] = turn % 2 == 0 ? bare->loss : ours.loss;
            }
        }
        rate[turn % 2][turn / 2] = (double)steps / (t - begin);
    }
    for (int i = 0; i < 2; i++)
        qsort(rate[i], TURNS, sizeof(double), by_value);
    double b = rate[0][TURNS / 2], o = rate[1][TURNS / 2];
    printf("core %s, 1 thread, batch %d\n", gemm_core(), BATCH);
    printf("bare loop   %8.0f steps/s of CPU time (%.0f-%.0f)\n", b, rate[0][0], rate[0][TURNS - 1]);
    printf("trainyard   %8.0f steps/s of CPU time (%.0f-%.0f)\n", o, rate[1][0], rate[1][TURNS - 1]);
    printf("ratio       %8.2f\n", o / b);
    printf("loss after 100 steps: %.6f and %.6f\n", loss[0], loss[1]);
    bool same = fabs(loss[0] - loss[1]) <= 1e-3 * fabs(loss[0]) + 1e-5;
    if (!same)
        fprintf(stderr, "error: the two did not learn the same\n");
    ours_free(&ours);
    free(bare);
    free(d.x);
    free(d.y);
    return same ? 0 : 1;
}
