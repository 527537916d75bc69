/* One suite for every reader: the same examples are written in each format and must come back the same. */
#include "data_help.h"

enum { N = 17000 }; /* more than one window of the shuffle */

typedef void put_fn(const struct folder *f, const char *name, const void *data, size_t n);

static void put_arrays(const struct folder *f, void (*make)(int64_t, struct buf *, struct buf *), bool gzip)
{
    AUTO_FINI(buf) x = BUF_INIT;
    AUTO_FINI(buf) y = BUF_INIT;
    make(N, &x, &y);
    (gzip ? put_gzip : put_file)(f, gzip ? "x.gz" : "x", x.data, x.len);
    (gzip ? put_gzip : put_file)(f, gzip ? "y.gz" : "y", y.data, y.len);
}

static void put_npz_as(const struct folder *f, bool deflated)
{
    AUTO_FINI(buf) x = BUF_INIT;
    AUTO_FINI(buf) y = BUF_INIT;
    AUTO_FINI(buf) archive = BUF_INIT;
    struct zip_out z = { .out = &archive };
    make_npy(N, &x, &y);
    put_zip_member(&z, "y_train.npy", y.data, y.len, deflated);
    put_zip_member(&z, "x_test.npy", "", 0, deflated);
    put_zip_member(&z, "x_train.npy", x.data, x.len, deflated);
    put_zip_end(&z);
    put_file(f, "t.npz", archive.data, archive.len);
}

/* One small, one empty but for its header, one large. */
static void put_three(const struct folder *f, void (*make)(int64_t, int64_t, struct buf *), put_fn *put,
                      const char *suffix)
{
    static const int64_t CUTS[] = { 0, 7, 7, N };
    for (int i = 0; i < 3; i++) {
        AUTO_FINI(buf) b = BUF_INIT;
        char name[32];
        make(CUTS[i], CUTS[i + 1] - CUTS[i], &b);
        snprintf(name, sizeof(name), "part-%d%s", i, suffix);
        put(f, name, b.data, b.len);
    }
}

static void put_idx(const struct folder *f)
{
    put_arrays(f, make_idx, false);
}
static void put_idx_gzip(const struct folder *f)
{
    put_arrays(f, make_idx, true);
}
static void put_npy(const struct folder *f)
{
    put_arrays(f, make_npy, false);
}
static void put_npy_fortran(const struct folder *f)
{
    put_arrays(f, make_npy_fortran, false);
}
static void put_csv(const struct folder *f)
{
    put_three(f, make_csv, put_file, "");
}
static void put_csv_gzip(const struct folder *f)
{
    put_three(f, make_csv, put_gzip, ".gz");
}
static void put_jsonl(const struct folder *f)
{
    put_three(f, make_jsonl, put_file, "");
}
static void put_jsonl_gzip(const struct folder *f)
{
    put_three(f, make_jsonl, put_gzip, ".gz");
}
static void put_tfrecord(const struct folder *f)
{
    put_three(f, make_tfrecord, put_file, "");
}
static void put_tfrecord_gzip(const struct folder *f)
{
    put_three(f, make_tfrecord, put_gzip, ".gz");
}
static void put_tfrecord_zlib(const struct folder *f)
{
    put_three(f, make_tfrecord, put_zlib, "");
}
static void put_npz(const struct folder *f)
{
    put_npz_as(f, false);
}
static void put_npz_compressed(const struct folder *f)
{
    put_npz_as(f, true);
}

#define NPZ_SPEC "format: npz\nfiles: t.npz\nfeatures: x_train\nlabels: y_train\n"
#define JSONL_SPEC                                                                                                     \
    "format: jsonl\nfiles: part-*\nlabel: the class\ncolumns: [{name: a}, {name: b.c}, {name: d, type: float}]\n"
#define TFRECORD_SPEC                                                                                                  \
    "format: tfrecord\nfiles: part-*\n"                                                                                \
    "columns: [{name: x, type: float, shape: [3]}, {name: label, type: int64}]\n"
static const struct {
    const char *name;
    void (*put)(const struct folder *f);
    const char *spec;
} FORMATS[] = {
    { "idx", put_idx, "format: idx\nfeatures: x\nlabels: y\n" },
    { "idx.gz", put_idx_gzip, "format: idx\nfeatures: x\nlabels: y\n" },
    { "npy", put_npy, "format: npy\nfeatures: x\nlabels: y\n" },
    { "npy in Fortran order", put_npy_fortran, "format: npy\nfeatures: x\nlabels: y\n" },
    { "csv", put_csv, "format: csv\nfiles: part-*\nlabel: the class\n" },
    { "csv.gz", put_csv_gzip, "format: csv\nfiles: [part-0, part-1.gz, part-2*]\nlabel: 2\n" },
    { "jsonl", put_jsonl, JSONL_SPEC },
    { "jsonl.gz", put_jsonl_gzip, JSONL_SPEC },
    { "tfrecord", put_tfrecord, TFRECORD_SPEC },
    { "tfrecord.gz", put_tfrecord_gzip, TFRECORD_SPEC },
    { "tfrecord zlib", put_tfrecord_zlib, TFRECORD_SPEC },
    { "npz", put_npz, NPZ_SPEC },
    { "npz compressed", put_npz_compressed, NPZ_SPEC },
};

struct opened {
    struct folder folder;
    char cache[80];
    struct dataset *d;
};

static void opened_fini(struct opened *o)
{
    dataset_free(o->d);
    folder_fini(&o->folder);
}
DEFINE_AUTO_FINI(opened, opened_fini);

static struct opened open_format(int i)
{
    struct opened o = { .folder = folder_new() };
    struct err e;
    snprintf(o.cache, sizeof(o.cache), "%s/cache", o.folder.path);
    FORMATS[i].put(&o.folder);
    ck_ok_e(open_yaml(FORMATS[i].spec, o.folder.path, o.cache, &o.d, &e));
    return o;
}

static void new_loader(const struct dataset *d, int64_t batch_size, bool shuffle, struct loader **ret)
{
    struct err e;
    struct ordinal_space space = space_of(d, batch_size, shuffle);
    ck_ok_e(loader_new(d, &space, NULL, ret, &e));
}

static void get(struct loader *l, int64_t ordinal, struct batch *ret)
{
    struct err e;
    ck_ok_e(loader_get(l, ordinal, ret, &e));
}

START_TEST(says_what_it_holds)
{
    AUTO_FINI(opened) o = open_format(_i);
    ck_assert_int_eq(dataset_size(o.d), N);
    const struct records *r = dataset_records(o.d);
    ck_assert(shape_eq(&r->x, &(struct shape){ 1, { WIDTH } }));
    ck_assert(r->has_labels);
    ck_assert(r->integer_labels);
    ck_assert_int_eq(r->y.rank, 0);
    const struct label_span *s = &r->labels;
    ck_assert_msg(s->n == 0 || (s->n == N && s->min == 0 && s->max == CLASSES - 1 && s->whole), "%g to %g", s->min,
                  s->max);
}
END_TEST

START_TEST(gives_the_examples_in_the_order_of_the_files)
{
    AUTO_FINI(opened) o = open_format(_i);
    AUTO(loader) *l = NULL;
    new_loader(o.d, 333, false, &l);
    int64_t seen = 0;
    for (int64_t ordinal = 0; seen < N; ordinal++) {
        struct batch b;
        get(l, ordinal, &b);
        ck_assert_int_eq(b.position, seen);
        ck_assert_int_eq(b.x[0].shape.rank, 2);
        ck_assert_int_eq(b.x[0].shape.dim[0], (int64_t)b.n);
        for (size_t i = 0; i < b.n; i++, seen++) {
            for (int j = 0; j < WIDTH; j++)
                if (((float *)b.x[0].data)[i * WIDTH + (size_t)j] != example_x(seen, j))
                    ck_abort_msg("example %lld", (long long)seen);
            if (((int32_t *)b.y[0].data)[i] != example_y(seen))
                ck_abort_msg("label %lld", (long long)seen);
        }
    }
    ck_assert_int_eq(seen, N);
}
END_TEST

/* The number of the example that a row is. */
static int64_t number_of(const float *row)
{
    return (int64_t)((row[0] + 100) * 4) / WIDTH;
}

/* The examples of an epoch, in the order in which batches of this size have them. */
static void read_epoch(const struct dataset *d, int64_t batch_size, int64_t epoch, int64_t *ret)
{
    AUTO(loader) *l = NULL;
    new_loader(d, batch_size, true, &l);
    int64_t batches = (N + batch_size - 1) / batch_size, at = 0;
    for (int64_t i = 0; i < batches; i++) {
        struct batch b;
        get(l, epoch * batches + i, &b);
        ck_assert_int_eq(b.epoch, epoch);
        for (size_t j = 0; j < b.n; j++) {
            ret[at] = number_of((float *)b.x[0].data + j * WIDTH);
            if (((int32_t *)b.y[0].data)[j] != example_y(ret[at++]))
                ck_abort_msg("a label is not that of its example");
        }
    }
    ck_assert_int_eq(at, N);
}

START_TEST(an_epoch_holds_each_example_once_however_it_is_cut)
{
    AUTO_FINI(opened) o = open_format(_i);
    static int64_t whole[N], other[N];
    bool seen[N] = { false };
    read_epoch(o.d, 64, 1, whole);
    for (int i = 0; i < N; i++) {
        ck_assert(whole[i] >= 0 && whole[i] < N && !seen[whole[i]]);
        seen[whole[i]] = true;
    }
    read_epoch(o.d, 1000, 1, other);
    ck_assert_mem_eq(whole, other, sizeof(whole));
    read_epoch(o.d, N, 1, other);
    ck_assert_mem_eq(whole, other, sizeof(whole));
    read_epoch(o.d, 64, 2, other);
    ck_assert_mem_ne(whole, other, sizeof(whole));
}
END_TEST

static bool same_batch(const struct batch *a, const struct batch *b)
{
    return a->n == b->n && a->position == b->position && a->epoch == b->epoch &&
           memcmp(a->x[0].data, b->x[0].data, a->n * WIDTH * sizeof(float)) == 0 &&
           memcmp(a->y[0].data, b->y[0].data, a->n * sizeof(int32_t)) == 0;
}

/* Another loader, another order of requests, true and false hints: a batch depends only on its name. */
START_TEST(a_batch_is_a_name)
{
    AUTO_FINI(opened) o = open_format(_i);
    AUTO(loader) *plain = NULL;
    AUTO(loader) *hinted = NULL;
    new_loader(o.d, 100, true, &plain);
    new_loader(o.d, 100, true, &hinted);
    for (int64_t ordinal = 999; ordinal > 0; ordinal -= ordinal % 7 + 1) {
        struct batch a, b;
        get(plain, ordinal, &a);
        get(hinted, ordinal, &b);
        ck_assert_msg(same_batch(&a, &b), "batch %lld", (long long)ordinal);
        loader_hint(hinted, ordinal % 3 == 0 ? ordinal : ordinal - ordinal % 7 - 1);
        if (ordinal % 5 == 0)
            loader_hint(hinted, ordinal - 1);
    }
}
END_TEST

START_TEST(a_batch_stays_whole_during_the_next_one)
{
    AUTO_FINI(opened) o = open_format(_i);
    AUTO(loader) *l = NULL;
    AUTO(loader) *fresh = NULL;
    struct batch a, b, again;
    new_loader(o.d, 100, true, &l);
    new_loader(o.d, 100, true, &fresh);
    for (int64_t i = 0; i < 20; i++) {
        get(l, i, &a);
        loader_hint(l, i + 1);
        get(l, i + 1, &b);
        loader_hint(l, i + 2); /* the thread writes while a and b are read */
        get(fresh, i, &again);
        ck_assert(same_batch(&a, &again));
        get(fresh, i + 1, &again);
        ck_assert(same_batch(&b, &again));
    }
}
END_TEST

static bool has_loader_thread(void)
{
    AUTO_FINI(strlist) names = { .items = NULL };
    bool found = false;
    struct err e;
    ck_ok_e(dir_list("/proc/self/task", &names, &e));
    for (size_t i = 0; i < names.n && !found; i++) {
        AUTO_FINI(buf) name = BUF_INIT;
        auto_free char *path = xasprintf("/proc/self/task/%s/comm", names.items[i]);
        found = file_read(path, 64, &name, NULL) == 0 && str_starts(name.data, "loader");
    }
    return found;
}

/* Arrays are mapped: a hint costs neither a thread nor memory. */
START_TEST(only_what_must_be_parsed_is_prefetched)
{
    AUTO_FINI(opened) o = open_format(_i);
    AUTO(loader) *l = NULL;
    struct batch b;
    bool parsed = strstr(FORMATS[_i].spec, "csv") != NULL || strstr(FORMATS[_i].spec, "jsonl") != NULL ||
                  strstr(FORMATS[_i].spec, "tfrecord") != NULL;
    new_loader(o.d, 100, true, &l);
    ck_assert(loader_prefetches(l) == parsed);
    bool seen = false; /* a thread needs a moment to take its name */
    for (int64_t i = 0; i < 50 || (parsed && !seen && i < 5000); i++) {
        get(l, i, &b);
        loader_hint(l, i + 1);
        seen = seen || has_loader_thread();
    }
    ck_assert(seen == parsed);
}
END_TEST

START_TEST(resumes_in_the_middle_of_an_epoch)
{
    AUTO_FINI(opened) o = open_format(_i);
    AUTO(loader) *l = NULL;
    static int64_t epoch[N];
    struct batch b;
    read_epoch(o.d, 64, 3, epoch);
    new_loader(o.d, 64, true, &l);
    get(l, 3 * 266 + 200, &b); /* the first that a new process requests */
    for (size_t i = 0; i < b.n; i++)
        ck_assert_int_eq(number_of((float *)b.x[0].data + i * WIDTH), epoch[200 * 64 + i]);
}
END_TEST

/* Same content elsewhere, with other times, read with the cache and without it. */
START_TEST(fingerprint_is_that_of_the_content)
{
    AUTO_FINI(opened) a = open_format(_i);
    AUTO_FINI(opened) b = open_format(_i);
    AUTO(dataset) *cached = NULL;
    struct err e;
    ck_assert_uint_eq(dataset_fingerprint(a.d), dataset_fingerprint(b.d));
    ck_ok_e(open_yaml(FORMATS[_i].spec, a.folder.path, a.cache, &cached, &e));
    ck_assert_uint_eq(dataset_fingerprint(a.d), dataset_fingerprint(cached));
    ck_assert_int_eq(dataset_size(cached), N);
}
END_TEST

/* Readers of one data set in many threads see what one sees (TSan watches). */
struct reading {
    const struct dataset *d;
    bool ok;
};

static void read_some(void *user)
{
    struct reading *r = user;
    AUTO(loader) *l = NULL;
    struct ordinal_space space = space_of(r->d, 50, true);
    struct batch b;
    if (loader_new(r->d, &space, NULL, &l, NULL) < 0)
        return;
    for (int64_t i = 0; i < 30; i++) {
        loader_hint(l, i);
        if (loader_get(l, i, &b, NULL) < 0)
            return;
        for (size_t j = 0; j < b.n; j++)
            if (((int32_t *)b.y[0].data)[j] != example_y(number_of((float *)b.x[0].data + j * WIDTH)))
                return;
    }
    r->ok = true;
}

START_TEST(many_threads_read_one_data_set)
{
    AUTO_FINI(opened) o = open_format(_i);
    struct thread threads[4] = { { .started = false } };
    struct reading readings[4];
    struct err e;
    for (int i = 0; i < 4; i++) {
        readings[i] = (struct reading){ .d = o.d };
        ck_ok_e(thread_start(&threads[i], "reader", read_some, &readings[i], &e));
    }
    for (int i = 0; i < 4; i++) {
        thread_join(&threads[i]);
        ck_assert(readings[i].ok);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/formats");
    TCase *t = tcase_create("formats");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    int n = COUNT_OF(FORMATS);
    tcase_add_loop_test(t, says_what_it_holds, 0, n);
    tcase_add_loop_test(t, gives_the_examples_in_the_order_of_the_files, 0, n);
    tcase_add_loop_test(t, an_epoch_holds_each_example_once_however_it_is_cut, 0, n);
    tcase_add_loop_test(t, a_batch_is_a_name, 0, n);
    tcase_add_loop_test(t, a_batch_stays_whole_during_the_next_one, 0, n);
    tcase_add_loop_test(t, only_what_must_be_parsed_is_prefetched, 0, n);
    tcase_add_loop_test(t, resumes_in_the_middle_of_an_epoch, 0, n);
    tcase_add_loop_test(t, fingerprint_is_that_of_the_content, 0, n);
    tcase_add_loop_test(t, many_threads_read_one_data_set, 0, n);
    return s;
}
