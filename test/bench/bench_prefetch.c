/* bench_prefetch - csv and tfrecord files (gzip) in one process: what one thread reads against what a model of that
 * width computes; and training with the next batch prepared in the background and without. Alternately, in one run.
 *
 *     env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE build/release/bench/bench_prefetch [steps a turn]
 *
 * Prints batches/s and steps/s of wall clock (medians of 5 turns), their ratio and the CPU time of a step; fails when
 * the two did not learn the same. On a machine whose cores are all busy the ratio is 1: the parsing then only moves to
 * another thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "codec/json.h"
#include "data/dataset.h"
#include "job/fields.h"
#include "nn/exec.h"
#include "nn/model_impl.h"
#include "tensor/gemm.h"
#include "tensor/gemm_core.h"
#include "test/unit/data/put_example.h"

enum { ROWS = 8192, COLUMNS = 60, PIXELS = 784, CLASSES = 10, BATCH = 64, TURNS = 5 };

static const char COMPILE[] = "{\"optimizer\": \"Adam\", \"loss\": \"sparse_categorical_crossentropy\"}";

static int put_gzip(const char *path, const struct buf *b, struct err *e)
{
    gzFile z = gzopen(path, "wb1");
    bool ok = z != NULL && gzwrite(z, b->data, (unsigned)b->len) == (int)b->len;
    return z != NULL && gzclose(z) == Z_OK && ok ? 0 : err_set(e, ERR_IO, "%s cannot be written", path);
}

static void put_names(struct buf *b, int columns)
{
    for (int j = 0; j < columns; j++)
        buf_printf(b, "c%d,", j);
    buf_str(b, "label\n");
}

static int make_csv(const char *path, struct err *e)
{
    AUTO_FINI(buf) b = BUF_INIT;
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    put_names(&b, COLUMNS);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++)
            buf_printf(&b, "%.4f,", (double)rng_uniform(&r) * 2 - 1);
        buf_printf(&b, "%d\n", i % CLASSES);
    }
    return put_gzip(path, &b, e);
}

/* As MNIST is distributed as csv: a fifth of the pixels are not 0. */
static int make_pixels_csv(const char *path, struct err *e)
{
    AUTO_FINI(buf) b = BUF_INIT;
    struct rng r = rng_at(3, RNG_TEST, 0, 0);
    put_names(&b, PIXELS);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < PIXELS; j++)
            buf_printf(&b, "%u,", rng_u32(&r) % 5 == 0 ? rng_u32(&r) % 256 : 0);
        buf_printf(&b, "%d\n", i % CLASSES);
    }
    return put_gzip(path, &b, e);
}

static void put_image(struct buf *b, const unsigned char *pixels, int label)
{
    AUTO_FINI(buf) image = BUF_INIT;
    AUTO_FINI(buf) number = BUF_INIT;
    AUTO_FINI(buf) features = BUF_INIT;
    pb_put_bytes(&image, 1, pixels, PIXELS);
    pb_put_varint(&number, 1, (uint64_t)label);
    put_feature(&features, "image", 1, &image);
    put_feature(&features, "label", 3, &number);
    put_example(b, &features);
}

static int make_tfrecord(const char *path, struct err *e)
{
    AUTO_FINI(buf) b = BUF_INIT;
    struct rng r = rng_at(2, RNG_TEST, 0, 0);
    for (int i = 0; i < ROWS; i++) {
        unsigned char pixels[PIXELS];
        for (int j = 0; j < PIXELS; j++)
            pixels[j] = (unsigned char)(rng_u32(&r) % 256);
        put_image(&b, pixels, i % CLASSES);
    }
    return put_gzip(path, &b, e);
}

/* ---- training ---- */

struct trainer {
    struct model *model;
    struct exec *exec;
    struct loader *loader;
    float *params, *grads, *slot[2];
    struct opt_state state;
    int64_t next;
    double loss, rate[TURNS], cpu_us[TURNS]; /* of a turn: steps/s, and time of all threads a step */
    bool hints;
};

static int trainer_init(struct trainer *t, const struct dataset *d, const char *text, struct err *e)
{
    json_auto_t *model = NULL, *compile = NULL;
    struct ordinal_space space = { .seed = 1, .examples = dataset_size(d), .batch_size = BATCH, .shuffle = true };
    if (json_parse(text, strlen(text), "model", &model, e) < 0 ||
        json_parse(COMPILE, strlen(COMPILE), "compile", &compile, e) < 0)
        return -1;
    struct node mn = node_root(model, NULL), cn = node_root(compile, NULL);
    if (model_build(&mn, &cn, ".", &t->model, e) < 0 || exec_new(t->model, BATCH, 1, &t->exec, e) < 0 ||
        loader_new(d, &space, NULL, &t->loader, e) < 0)
        return -1;
    size_t bytes = model_size(t->model) * sizeof(float);
    float **all[] = { &t->params, &t->grads, &t->slot[0], &t->slot[1] };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (mem_alloc(bytes, "parameters", (void **)all[i], e) < 0)
            return -1;
    model_init(t->model, 1, t->params);
    return 0;
}

static void trainer_fini(struct trainer *t)
{
    loader_free(t->loader);
    exec_free(t->exec);
    model_free(t->model);
    free(t->params);
    free(t->grads);
    free(t->slot[0]);
    free(t->slot[1]);
}

static void step_on(struct trainer *t, const struct batch *b)
{
    const struct optimizer *o = model_optimizer(t->model);
    struct opt_step step;
    exec_train(t->exec, t->params, b, t->grads, NULL, NULL, NULL, &t->loss);
    optimizer_begin(o, &t->state, &step);
    optimizer_apply(o, &step, t->params, t->slot, t->grads, t->model->trainable_size);
    optimizer_end(o, &t->state);
}

static int train(struct trainer *t, int64_t steps, int turn, struct err *e)
{
    int64_t begin = clock_ns(), cpu = clock_cpu_ns();
    for (int64_t end = t->next + steps; t->next < end; t->next++) {
        struct batch b;
        if (loader_get(t->loader, t->next, &b, e) < 0)
            return -1;
        if (t->hints)
            loader_hint(t->loader, t->next + 1);
        step_on(t, &b);
    }
    t->rate[turn] = (double)steps * 1e9 / (double)(clock_ns() - begin);
    t->cpu_us[turn] = (double)(clock_cpu_ns() - cpu) / 1e3 / (double)steps;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Batches/s. */
static int read_turn(struct trainer *t, int64_t n, double *ret, struct batch *b, struct err *e)
{
    int64_t begin = clock_ns();
    for (int64_t end = t->next + n; t->next < end; t->next++)
        if (loader_get(t->loader, t->next, b, e) < 0)
            return -1;
    *ret = (double)n * 1e9 / (double)(clock_ns() - begin);
    return 0;
}

/* Steps/s on one batch. */
static double compute_turn(struct trainer *t, int64_t n, const struct batch *b)
{
    int64_t begin = clock_ns();
    for (int64_t i = 0; i < n; i++)
        step_on(t, b);
    return (double)n * 1e9 / (double)(clock_ns() - begin);
}

/* One thread each. The rows are kept in the first epoch, which is not measured. */
static int feed(const char *name, struct trainer *parsing, struct trainer *kept, int64_t steps, struct err *e)
{
    double parse[TURNS], copy[TURNS], compute[TURNS];
    struct batch b;
    if (read_turn(kept, ROWS / BATCH, &copy[0], &b, e) < 0)
        return -1;
    for (int i = 0; i < TURNS; i++) {
        if (read_turn(parsing, steps, &parse[i], &b, e) < 0 || read_turn(kept, steps, &copy[i], &b, e) < 0)
            return -1;
        compute[i] = compute_turn(kept, steps, &b);
    }
    double *all[] = { parse, copy, compute };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        qsort(all[i], TURNS, sizeof(double), by_value);
    double speed = compute[TURNS / 2];
    printf("%-23s reads %6.0f batches/s in the first epoch, %6.0f later; the model computes %5.0f steps/s  ratio %.2f, "
           "%.2f\n",
           name, parse[TURNS / 2], copy[TURNS / 2], speed, parse[TURNS / 2] / speed, copy[TURNS / 2] / speed);
    return 0;
}

static int contest(const char *name, struct trainer side[2], int64_t steps, struct err *e)
{
    for (int turn = 0; turn < 2 * TURNS; turn++)
        if (train(&side[turn % 2], steps, turn / 2, e) < 0)
            return -1;
    for (int i = 0; i < 2; i++) {
        qsort(side[i].rate, TURNS, sizeof(double), by_value);
        qsort(side[i].cpu_us, TURNS, sizeof(double), by_value);
    }
    double without = side[0].rate[TURNS / 2], with = side[1].rate[TURNS / 2];
    printf(
        "%-23s %5.0f steps/s (%.0f-%.0f), with prefetch %5.0f (%.0f-%.0f)  ratio %.2f  CPU a step %.0f and %.0f us\n",
        name, without, side[0].rate[0], side[0].rate[TURNS - 1], with, side[1].rate[0], side[1].rate[TURNS - 1],
        with / without, side[0].cpu_us[TURNS / 2], side[1].cpu_us[TURNS / 2]);
    if (memcmp(side[0].params, side[1].params, model_size(side[0].model) * sizeof(float)) != 0)
        return err_set(e, ERR_INTERNAL, "prefetch changed what was learned");
    return 0;
}

static int open_spec(const char *text, const char *dir, struct dataset **ret, struct err *e)
{
    json_auto_t *doc = NULL;
    struct data_spec spec = { .present = false };
    if (json_parse(text, strlen(text), "data", &doc, e) < 0)
        return -1;
    struct node root = node_root(doc, NULL);
    int rc = fields_read(&DATA_FIELDS, &root, &spec, e) < 0 ? -1 : dataset_open(&spec, dir, dir, NULL, ret, e);
    data_spec_fini(&spec);
    return rc;
}

static int measure(const char *name, const char *spec, const char *dir, const char *model, int64_t steps, struct err *e)
{
    AUTO(dataset) *d = NULL;
    struct trainer side[2] = { { .hints = false }, { .hints = true } }, kept = { .hints = false };
    if (open_spec(spec, dir, &d, e) < 0)
        return -1;
    int rc = trainer_init(&side[0], d, model, e) < 0 || trainer_init(&side[1], d, model, e) < 0 ? -1 : 0;
    dataset_keep_rows(d, &(struct row_space){ .dir = dir, .bytes = UINT64_MAX });
    rc = rc < 0 || trainer_init(&kept, d, model, e) < 0 || contest(name, side, steps, e) < 0 ||
                 feed(name, &side[0], &kept, steps, e) < 0
             ? -1
             : 0;
    trainer_fini(&side[0]);
    trainer_fini(&side[1]);
    trainer_fini(&kept);
    return rc;
}

#define DENSE(units, activation) "{\"Dense\": {\"units\": " units ", \"activation\": \"" activation "\"}}"

#define MNIST_MODEL                                                                                                    \
    "{\"inputShape\": [784], \"layers\": [{\"Rescaling\": {\"scale\": 0.00392156862745098}}," DENSE(                   \
        "128", "relu") "," DENSE("10", "softmax") "]}"

static int run(const char *dir, int64_t steps, struct err *e)
{
    auto_free char *csv = path_join(dir, "t.csv.gz"), *tfrecord = path_join(dir, "t.tfrecord.gz");
    auto_free char *pixels = path_join(dir, "p.csv.gz");
    if (make_csv(csv, e) < 0 || make_tfrecord(tfrecord, e) < 0 || make_pixels_csv(pixels, e) < 0)
        return -1;
    printf("training with Adam, batch %d, %ld processors\n", BATCH, sysconf(_SC_NPROCESSORS_ONLN));
    if (measure("csv.gz, 60 columns", "{\"format\": \"csv\", \"files\": \"t.csv.gz\"}", dir,
                "{\"inputShape\": [60], \"layers\": [" DENSE("128", "relu") "," DENSE("64", "relu") "," DENSE(
                    "10", "softmax") "]}",
                steps, e) < 0 ||
        measure("csv.gz, 784 columns", "{\"format\": \"csv\", \"files\": \"p.csv.gz\"}", dir, MNIST_MODEL, steps, e) <
            0)
        return -1;
    return measure(
        "tfrecord.gz, 784 bytes",
        "{\"format\": \"tfrecord\", \"files\": \"t.tfrecord.gz\", \"columns\": ["
        "{\"name\": \"image\", \"type\": \"bytes\", \"shape\": [784]}, {\"name\": \"label\", \"type\": \"int64\"}]}",
        dir, MNIST_MODEL, steps, e);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/bench-prefetch-XXXXXX";
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) names = { .items = NULL };
    gemm_core_choose(argv);
    mem_keep_pages();
    gemm_setup();
    if (mkdtemp(dir) == NULL)
        return 1;
    int rc = run(dir, argc > 1 ? atol(argv[1]) : 1000, &e);
    if (rc < 0)
        fprintf(stderr, "error: %s\n", e.msg);
    if (dir_list(dir, &names, NULL) == 0)
        for (size_t i = 0; i < names.n; i++) {
            auto_free char *path = path_join(dir, names.items[i]);
            remove(path);
        }
    rmdir(dir);
    return rc < 0 ? err_exit_code(&e) : 0;
}
