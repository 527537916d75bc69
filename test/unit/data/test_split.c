/* fit.validationSplit: which examples are trained on and which are kept for evaluation. */
#include "data_help.h"

/* What train_validation_split of Keras 3.15.1 keeps for training; 0: it refuses. */
static const struct {
    int64_t n;
    double fraction;
    int64_t kept;
} CASES[] = {
    { 1, 0.5, 0 },   { 2, 0.5, 1 },  { 3, 0.2, 2 },   { 4, 0.2, 3 },         { 5, 0.2, 4 },       { 10, 0.1, 9 },
    { 10, 0.3, 7 },  { 10, 0.7, 3 }, { 10, 0.9, 0 },  { 100, 0.07, 93 },     { 1000, 0.29, 710 }, { 1797, 0.2, 1437 },
    { 2, 0.999, 0 }, { 2, 1e-9, 1 }, { 2, 1e-17, 0 }, { 17000, 0.2, 13600 }, /* more than one window */
};

struct parts {
    struct folder folder;
    struct dataset *train, *validation;
};

static void parts_fini(struct parts *p)
{
    dataset_free(p->train);
    dataset_free(p->validation);
    folder_fini(&p->folder);
}
DEFINE_AUTO_FINI(parts, parts_fini);

static void open_arrays(struct parts *p, int64_t n)
{
    AUTO_FINI(buf) x = BUF_INIT;
    AUTO_FINI(buf) y = BUF_INIT;
    struct err e;
    make_npy(n, &x, &y);
    put_file(&p->folder, "x", x.data, x.len);
    put_file(&p->folder, "y", y.data, y.len);
    ck_ok_e(open_yaml("format: npy\nfeatures: x\nlabels: y\n", p->folder.path, NULL, &p->train, &e));
}

/* Two files, so that the cut may be in either. */
static void open_text(struct parts *p, int64_t n)
{
    AUTO_FINI(buf) a = BUF_INIT;
    AUTO_FINI(buf) b = BUF_INIT;
    struct err e;
    make_csv(0, n / 2, &a);
    make_csv(n / 2, n - n / 2, &b);
    put_file(&p->folder, "part-0", a.data, a.len);
    put_file(&p->folder, "part-1", b.data, b.len);
    ck_ok_e(open_yaml("format: csv\nfiles: part-*\nlabel: the class\n", p->folder.path, NULL, &p->train, &e));
}

/* The numbers of the examples of one epoch, counted into seen. */
static void count_epoch(const struct dataset *d, bool shuffle, int64_t epoch, int *seen, int64_t n)
{
    AUTO(loader) *l = NULL;
    struct err e;
    struct ordinal_space space = space_of(d, 7, shuffle);
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    int64_t batches = ordinal_space_batches(&space);
    for (int64_t i = 0; i < batches; i++) {
        struct batch b;
        ck_ok_e(loader_get(l, epoch * batches + i, &b, &e));
        for (size_t k = 0; k < b.n; k++) {
            int64_t example = (int64_t)(((((const float *)b.x[0].data)[k * WIDTH] + 100) * 4 + 0.5F) / WIDTH);
            ck_assert_msg(example >= 0 && example < n, "example %lld", (long long)example);
            ck_assert_int_eq(((const int32_t *)b.y[0].data)[k], example_y(example));
            seen[example]++;
        }
    }
}

static void check_parts(const struct parts *p, int64_t n, int64_t kept)
{
    ck_assert_int_eq(dataset_size(p->train), kept);
    ck_assert_int_eq(dataset_size(p->validation), n - kept);
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        auto_free int *trained = xcalloc((size_t)n, sizeof(int)), *evaluated = xcalloc((size_t)n, sizeof(int));
        count_epoch(p->train, true, epoch, trained, n);
        count_epoch(p->validation, false, 0, evaluated, n);
        for (int64_t i = 0; i < n; i++)
            if (trained[i] != (i < kept) || evaluated[i] != (i >= kept))
                ck_abort_msg("epoch %lld: example %lld of %lld is trained %d times and evaluated %d times",
                             (long long)epoch, (long long)i, (long long)n, trained[i], evaluated[i]);
    }
}

static void check_case(void (*open)(struct parts *p, int64_t n), int i)
{
    AUTO_FINI(parts) p = { .folder = folder_new() };
    struct err e = { .code = ERR_NONE };
    open(&p, CASES[i].n);
    uint64_t whole = dataset_fingerprint(p.train);
    int rc = dataset_split(p.train, CASES[i].fraction, &p.validation, &e);
    if (CASES[i].kept == 0) {
        ck_assert_int_eq(rc, -1);
        ck_assert_ptr_nonnull(strstr(e.msg, "use more data, or another fraction"));
        ck_assert_int_eq(dataset_size(p.train), CASES[i].n);
        return;
    }
    ck_ok_e(rc);
    ck_assert_uint_eq(dataset_fingerprint(p.train), whole); /* with its size it names the batches */
    ck_assert_uint_ne(dataset_fingerprint(p.validation), whole);
    check_parts(&p, CASES[i].n, CASES[i].kept);
}

START_TEST(arrays_are_cut_as_keras_cuts_them)
{
    check_case(open_arrays, _i);
}
END_TEST

START_TEST(files_of_records_are_cut_as_keras_cuts_them)
{
    check_case(open_text, _i);
}
END_TEST

START_TEST(either_part_outlives_the_other)
{
    AUTO_FINI(parts) p = { .folder = folder_new() };
    struct err e;
    int seen[10] = { 0 };
    open_text(&p, 10);
    ck_ok_e(dataset_split(p.train, 0.3, &p.validation, &e));
    dataset_free(_i == 0 ? p.train : p.validation);
    *(_i == 0 ? &p.train : &p.validation) = NULL;
    count_epoch(_i == 0 ? p.validation : p.train, false, 0, seen, 10);
    ck_assert_int_eq(seen[_i == 0 ? 9 : 0], 1);
}
END_TEST

/* The label of example i is classes[i]. */
static void open_classes(struct parts *p, const char *classes, double fraction)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e;
    buf_str(&text, "x,kind\n");
    for (size_t i = 0; classes[i] != '\0'; i++)
        buf_printf(&text, "%zu,%c\n", i, classes[i]);
    put_file(&p->folder, "t.csv", text.data, text.len);
    ck_ok_e(open_yaml("format: csv\nfiles: t.csv\n", p->folder.path, NULL, &p->train, &e));
    ck_ok_e(dataset_split(p->train, fraction, &p->validation, &e));
}

static const struct {
    const char *classes;
    double fraction;
    const char *train, *validation; /* NULL: no warning */
} LABELS[] = {
    { "0000011111", 0.3, NULL,
      "t.csv:9:3: column 'kind': the label of the last 3 examples is 1, so its metrics tell nothing about other "
      "labels; "
      "put the examples into a random order" },
    { "0000011111", 0.7,
      "t.csv:2:3: column 'kind': the label of the first 3 examples is 0, so there is nothing to learn; put the "
      "examples "
      "into a random order",
      NULL },
    { "0101010101", 0.5, NULL, NULL },
    { "0000000001", 0.1, "first 9 examples is 0", NULL }, /* one alone is not judged */
};
START_TEST(a_part_with_one_label_is_told)
{
    AUTO_FINI(parts) p = { .folder = folder_new() };
    AUTO_FINI(strlist) train = { 0 }, validation = { 0 };
    open_classes(&p, LABELS[_i].classes, LABELS[_i].fraction);
    dataset_warnings(p.train, &train);
    dataset_one_label(p.validation, &validation);
    ck_assert_uint_eq(train.n, LABELS[_i].train != NULL);
    ck_assert_uint_eq(validation.n, LABELS[_i].validation != NULL);
    if (train.n > 0)
        ck_assert_ptr_nonnull(strstr(train.items[0], LABELS[_i].train));
    if (validation.n > 0)
        ck_assert_ptr_nonnull(strstr(validation.items[0], LABELS[_i].validation));
}
END_TEST

/* Of a large part 1,000 examples are looked at, from its begin to its end. */
START_TEST(a_large_part_is_looked_at_in_places)
{
    static char classes[8001];
    AUTO_FINI(parts) p = { .folder = folder_new() };
    AUTO_FINI(strlist) train = { 0 }, validation = { 0 };
    for (size_t i = 0; i < 8000; i++)
        classes[i] = (char)('0' + (i >= 4000 && (_i == 0 || i < 7900)));
    open_classes(&p, classes, 0.5);
    dataset_warnings(p.train, &train);
    dataset_one_label(p.validation, &validation);
    ck_assert_uint_eq(train.n, 1);
    ck_assert_uint_eq(validation.n, _i == 0 ? 1 : 0); /* else its last 100 differ */
    ck_assert_ptr_nonnull(strstr(train.items[0], ": the label of 1000 examples that are spread evenly over the first "
                                                 "4000 examples is 0, so there is nothing to learn"));
}
END_TEST

/* An example's number is its feature and its weight. */
static void put_weighted(const struct folder *f, bool text, int64_t n)
{
    AUTO_FINI(buf) x = BUF_INIT;
    char shape[32];
    snprintf(shape, sizeof(shape), "(%lld, 1)", (long long)n);
    if (text)
        buf_str(&x, "x,w\n");
    else
        npy_header(&x, "<f8", shape);
    for (int64_t i = 0; i < n; i++) {
        double v = (double)i;
        if (text)
            buf_printf(&x, "%lld,%lld\n", (long long)i, (long long)i);
        else
            buf_add(&x, &v, sizeof(v));
    }
    put_file(f, "x", x.data, x.len);
}

START_TEST(a_weight_stays_with_its_example)
{
    static const char *const SPECS[] = { "format: csv\nfiles: x\nlabel: ''\nsampleWeight: w\n",
                                         "format: npy\nfeatures: x\nsampleWeight: x\n" };
    enum { N = 20000 };
    AUTO_FINI(parts) p = { .folder = folder_new() };
    struct err e;
    put_weighted(&p.folder, _i == 0, N);
    ck_ok_e(open_yaml(SPECS[_i], p.folder.path, NULL, &p.train, &e));
    ck_ok_e(dataset_split(p.train, 0.25, &p.validation, &e));
    for (int part = 0; part < 2; part++) {
        const struct dataset *d = part == 0 ? p.train : p.validation;
        struct ordinal_space space = space_of(d, 64, part == 0);
        AUTO(loader) *one = NULL;
        struct batch b, kept = { .n = 0 };
        ck_ok_e(loader_new(d, &space, NULL, &one, &e));
        for (int64_t i = 0; i < ordinal_space_batches(&space); i++) {
            ck_ok_e(loader_get(one, i, &b, &e));
            loader_hint(one, i + 1);
            for (size_t k = 0; k < kept.n; k++) /* also while the next batch is there */
                ck_assert_int_eq((int)((const float *)kept.x[0].data)[k], (int)kept.weight[k]);
            kept = b;
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("split");
    TCase *t = tcase_create("split");
    tcase_add_loop_test(t, arrays_are_cut_as_keras_cuts_them, 0, COUNT_OF(CASES));
    tcase_add_loop_test(t, files_of_records_are_cut_as_keras_cuts_them, 0, COUNT_OF(CASES));
    tcase_add_loop_test(t, either_part_outlives_the_other, 0, 2);
    tcase_add_loop_test(t, a_part_with_one_label_is_told, 0, COUNT_OF(LABELS));
    tcase_add_loop_test(t, a_large_part_is_looked_at_in_places, 0, 2);
    tcase_add_loop_test(t, a_weight_stays_with_its_example, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
