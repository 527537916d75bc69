/* bench_step - one training step of the MNIST MLP (784-128 relu-10 softmax, batch 64, Adam) in one thread: exec_train +
 * optimizer_apply compared with a bare loop of the same arithmetic on OpenBLAS, alternately, in one run.
 *
 *     env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE build/release/bench/bench_step [seconds a turn]
 *
 * Then the same model behind a Rescaling: 64 rows of bytes copied and given to exec as they are, compared with the same
 * rows converted to floats first. Prints the medians of 9 turns each and their ratio; fails when two did not learn the
 * same.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "codec/json.h"
#include "data/dtype_convert.h"
#include "nn/exec.h"
#include "nn/model_impl.h"
#include "tensor/gemm.h"
#include "tensor/gemm_core.h"
#include "tensor/kernel.h"

#ifndef __NO_MATH_ERRNO__
#error "the bare loop is only fair with the kernels' flags: -O3 -fno-math-errno -fno-trapping-math"
#endif

enum { BATCH = 64, IN = 784, HIDDEN = 128, OUT = 10, BATCHES = 50, TURNS = 9 };

struct data {
    float *x;       /* [BATCHES * BATCH, IN] */
    uint8_t *bytes; /* the same, x 255 */
    int32_t *y;     /* [BATCHES * BATCH] */
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

#define MLP                                                                                                            \
    "{\"Dense\": {\"units\": 128, \"activation\": \"relu\"}}, {\"Dense\": {\"units\": 10, \"activation\": "            \
    "\"softmax\"}}]}"
#define PLAIN_MODEL "{\"inputShape\": [784], \"layers\": [" MLP
#define PIXEL_MODEL "{\"inputShape\": [784], \"layers\": [{\"Rescaling\": {\"scale\": 0.00392156862745098}}, " MLP

static int ours_new(struct ours *o, const char *text, struct err *e)
{
    static const char COMPILE[] =
        "{\"optimizer\": \"Adam\", \"loss\": \"sparse_categorical_crossentropy\", \"metrics\": [\"accuracy\"]}";
    json_auto_t *model = NULL, *compile = NULL;
    if (json_parse(text, strlen(text), "model", &model, e) < 0 ||
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

static void ours_step(struct ours *o, enum dtype type, void *x, int32_t *y)
{
    struct batch b = { .n = BATCH,
                       .x[0] = { type, { 2, { BATCH, IN } }, x },
                       .y[0] = { DT_INT32, { 1, { BATCH } }, y } };
    struct opt_step step;
    exec_train(o->x, o->p, &b, o->g, o->acc, NULL, NULL, &o->loss);
    optimizer_begin(model_optimizer(o->m), &o->state, &step);
    optimizer_apply(model_optimizer(o->m), &step, o->p, o->slot, o->g, o->m->trainable_size);
    optimizer_end(model_optimizer(o->m), &o->state);
}

/* ---- the comparisons ---- */

struct side { /* runs a step with the batch that begins at example `at` of its data */
    void (*step)(struct side *s, const struct data *d, size_t at);
    double *loss;
    struct bare *bare;
    struct ours ours;
    void *batch; /* a copy of the rows */
    double rate[TURNS], first_loss;
    size_t next;
};

static void step_bare(struct side *s, const struct data *d, size_t at)
{
    bare_step(s->bare, d->x + at * IN, d->y + at);
}

static void step_ours(struct side *s, const struct data *d, size_t at)
{
    ours_step(&s->ours, DT_FLOAT, d->x + at * IN, d->y + at);
}

static void step_floats(struct side *s, const struct data *d, size_t at)
{
    dtype_to_floats *convert = dtype_float_converter(DT_UINT8, false);
    for (size_t i = 0; i < BATCH; i++)
        convert(d->bytes + (at + i) * IN, (float *)s->batch + i * IN, IN);
    ours_step(&s->ours, DT_FLOAT, s->batch, d->y + at);
}

static void step_bytes(struct side *s, const struct data *d, size_t at)
{
    for (size_t i = 0; i < BATCH; i++)
        memcpy((uint8_t *)s->batch + i * IN, d->bytes + (at + i) * IN, IN);
    ours_step(&s->ours, DT_UINT8, s->batch, d->y + at);
}

/* Ten blobs in 784 dimensions. */
static struct data make_data(void)
{
    size_t n = (size_t)BATCHES * BATCH;
    struct data d = { .x = xcalloc(n * IN, sizeof(float)), .y = xcalloc(n, sizeof(int32_t)), .bytes = xcalloc(n, IN) };
    for (size_t i = 0; i < n; i++) {
        struct rng r = rng_at(1, RNG_TEST, i, 0);
        d.y[i] = (int32_t)rng_below(&r, OUT);
        for (size_t k = i * IN; k < (i + 1) * IN; k++) {
            d.x[k] = 0.5F * rng_uniform(&r) + 0.1F * (float)(k % IN % OUT == (size_t)d.y[i]);
            d.bytes[k] = (uint8_t)(d.x[k] * 255);
        }
    }
    return d;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void take_turn(struct side *s, const struct data *d, double seconds, double *ret_rate)
{
    long steps = 0;
    double begin = now(), t;
    for (t = begin; t < begin + seconds; t = now())
        for (int k = 0; k < 10; k++, steps++) {
            s->step(s, d, s->next++ % BATCHES * BATCH);
            if (s->next == 100)
                s->first_loss = *s->loss;
        }
    *ret_rate = (double)steps / (t - begin);
}

/* Alternately; true when both learned the same. */
static bool contest(struct side side[2], const char *const name[2], const struct data *d, double seconds)
{
    for (int turn = 0; turn < 2 * TURNS; turn++)
        take_turn(&side[turn % 2], d, seconds, &side[turn % 2].rate[turn / 2]);
    for (int i = 0; i < 2; i++) {
        qsort(side[i].rate, TURNS, sizeof(double), by_value);
        printf("%-11s %8.0f steps/s of CPU time (%.0f-%.0f)\n", name[i], side[i].rate[TURNS / 2], side[i].rate[0],
               side[i].rate[TURNS - 1]);
    }
    printf("ratio       %8.2f\n", side[1].rate[TURNS / 2] / side[0].rate[TURNS / 2]);
    printf("loss after 100 steps: %.6f and %.6f\n", side[0].first_loss, side[1].first_loss);
    bool same = fabs(side[0].first_loss - side[1].first_loss) <= 1e-3 * fabs(side[0].first_loss) + 1e-5;
    if (!same)
        fprintf(stderr, "error: the two did not learn the same\n");
    return same;
}

static int against_bare(const struct data *d, double seconds, bool *ret_same, struct err *e)
{
    struct side side[2] = { { .step = step_bare }, { .step = step_ours } };
    struct bare *bare = aligned_alloc(64, (sizeof(*bare) + 63) / 64 * 64);
    if (bare == NULL || ours_new(&side[1].ours, PLAIN_MODEL, e) < 0)
        return -1;
    memset(bare, 0, sizeof(*bare));
    memcpy(bare->p, side[1].ours.p,
           model_size(side[1].ours.m) * sizeof(float)); /* same start: offsets are the same too */
    side[0].bare = bare;
    side[0].loss = &bare->loss;
    side[1].loss = &side[1].ours.loss;
    *ret_same = contest(side, (const char *const[]){ "bare loop", "trainyard" }, d, seconds);
    ours_free(&side[1].ours);
    free(bare);
    return 0;
}

static int bytes_against_floats(const struct data *d, double seconds, bool *ret_same, struct err *e)
{
    struct side side[2] = { { .step = step_floats }, { .step = step_bytes } };
    for (int i = 0; i < 2; i++) {
        if (ours_new(&side[i].ours, PIXEL_MODEL, e) < 0 ||
            mem_alloc((size_t)BATCH * IN * sizeof(float), "a batch", &side[i].batch, e) < 0)
            return -1;
        side[i].loss = &side[i].ours.loss;
    }
    *ret_same = contest(side, (const char *const[]){ "floats", "bytes" }, d, seconds);
    for (int i = 0; i < 2; i++) {
        ours_free(&side[i].ours);
        free(side[i].batch);
    }
    return 0;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 0.3;
    bool bare_same = false, bytes_same = false;
    struct err e = { .code = ERR_NONE };

    gemm_core_choose(argv);
    mem_keep_pages();
    gemm_setup();
    struct data d = make_data();
    printf("core %s, 1 thread, batch %d\n", gemm_core(), BATCH);
    int rc = against_bare(&d, seconds, &bare_same, &e);
    if (rc == 0)
        rc = bytes_against_floats(&d, seconds, &bytes_same, &e);
    if (rc < 0)
        fprintf(stderr, "error: %s\n", e.msg);
    free(d.x);
    free(d.bytes);
    free(d.y);
    return rc == 0 && bare_same && bytes_same ? 0 : 1;
}
