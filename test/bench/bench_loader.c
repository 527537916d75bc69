/* bench_loader - the cost of reading a batch of 64 random examples of 784 uint8 as floats, and of parsing CSV.
 *
 *     bench_loader [FEATURES LABELS]      IDX files, e.g. MNIST's; default: the same of noise
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "data/dataset.h"

enum { EXAMPLES = 60000, WIDTH = 784, BATCH = 64, CSV_ROWS = 20000 };

static void put_u32be(struct buf *b, uint32_t v)
{
    buf_u32le(b, __builtin_bswap32(v));
}

static int make_idx(const char *features, const char *labels, struct err *e)
{
    AUTO_FINI(buf) x = BUF_INIT;
    AUTO_FINI(buf) y = BUF_INIT;
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    put_u32be(&x, 0x00000803);
    put_u32be(&x, EXAMPLES);
    put_u32be(&x, 28);
    put_u32be(&x, 28);
    put_u32be(&y, 0x00000801);
    put_u32be(&y, EXAMPLES);
    buf_reserve(&x, (size_t)EXAMPLES * WIDTH);
    for (size_t i = 0; i < (size_t)EXAMPLES * WIDTH / 4; i++)
        buf_u32le(&x, rng_u32(&r));
    for (int i = 0; i < EXAMPLES; i++)
        buf_char(&y, (char)(i % 10));
    return file_write(features, x.data, x.len, e) < 0 ? -1 : file_write(labels, y.data, y.len, e);
}

static int make_csv(const char *path, struct err *e)
{
    AUTO_FINI(buf) b = BUF_INIT;
    struct rng r = rng_at(2, RNG_TEST, 0, 0);
    buf_str(&b, "a,b,c,d,e,f,g,h,i,j,label\n");
    for (int i = 0; i < CSV_ROWS; i++) {
        for (int j = 0; j < 10; j++)
            buf_printf(&b, "%.4f,", (double)rng_uniform(&r) * 20 - 10);
        buf_printf(&b, "%d\n", i % 3);
    }
    return file_write(path, b.data, b.len, e);
}

/* Microseconds a batch: the best of five epochs, since other programs may use the processor too. */
static int measure(const char *name, const struct data_spec *spec, const char *dir, struct err *e)
{
    AUTO(dataset) *d = NULL;
    AUTO(loader) *l = NULL;
    int64_t start = clock_ns();
    if (dataset_open(spec, dir, dir, NULL, &d, e) < 0)
        return -1;
    double open_ms = (double)(clock_ns() - start) / 1e6, best = 1e30;
    struct ordinal_space space = { .seed = 1, .examples = dataset_size(d), .batch_size = BATCH, .shuffle = true };
    if (loader_new(d, &space, NULL, &l, e) < 0)
        return -1;
    int64_t batches = ordinal_space_batches(&space);
    for (int64_t epoch = 0; epoch < 5; epoch++) {
        struct batch b;
        start = clock_ns();
        for (int64_t i = 0; i < batches; i++)
            if (loader_get(l, epoch * batches + i, &b, e) < 0)
                return -1;
        best = MIN(best, (double)(clock_ns() - start) / 1e3 / (double)batches);
    }
    printf("%-28s open %7.2f ms, batch of %d: %7.2f us\n", name, open_ms, BATCH, best);
    return 0;
}

static int run(int argc, char **argv, const char *dir, struct err *e)
{
    auto_free char *features = path_join(dir, "x"), *labels = path_join(dir, "y"), *csv = path_join(dir, "t.csv");
    if (make_idx(features, labels, e) < 0 || make_csv(csv, e) < 0)
        return -1;

    struct data_spec idx = { .format = DATA_IDX, .features = "x", .labels = "y" };
    if (argc == 3) {
        idx.features = argv[1];
        idx.labels = argv[2];
    }
    char last_column[] = "-1", *files[] = { csv }, *last[] = { last_column };
    struct data_spec table = {
        .format = DATA_CSV, .files = { .items = files, .n = 1 }, .header = true, .label = { .items = last, .n = 1 }
    };
    if (measure("idx, uint8", &idx, dir, e) < 0 || measure("csv, 10 columns, index pass", &table, dir, e) < 0)
        return -1;
    return measure("csv, 10 columns, cached", &table, dir, e);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/bench-loader-XXXXXX";
    struct err e;
    AUTO_FINI(strlist) names = { .items = NULL };
    if (mkdtemp(dir) == NULL)
        return 1;
    int rc = run(argc, argv, dir, &e);
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
