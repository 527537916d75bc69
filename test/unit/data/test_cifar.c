/* CIFAR-10 and CIFAR-100: the pixels and labels of a record, which kind a file is, and what is refused. */
#include "data_help.h"

enum { PLANE = 32 * 32, IMAGE = 3 * PLANE };

/* Of channel k of pixel i of example n. */
static uint8_t pixel(int64_t n, size_t i, size_t k)
{
    return (uint8_t)((size_t)n * 7 + i * 3 + k * 101 + i / 32);
}

/* Records first .. first + n with `labels` label bytes, the j-th of them label(record, j). */
static void put_records(struct buf *out, int64_t first, int64_t n, int labels, int (*label)(int64_t record, int j))
{
    for (int64_t r = first; r < first + n; r++) {
        for (int j = 0; j < labels; j++)
            buf_char(out, (char)label(r, j));
        for (size_t k = 0; k < 3; k++)
            for (size_t i = 0; i < PLANE; i++)
                buf_char(out, (char)pixel(r, i, k));
    }
}

static int label_of_10(int64_t record, int j UNUSED)
{
    return (int)(record * 7 % 10);
}

static int label_of_100(int64_t record, int j)
{
    return (int)(j == 0 ? record % 20 : record * 7 % 100);
}

static int label_too_large(int64_t record, int j UNUSED)
{
    return record == 4 ? 12 : 1;
}

static void put_cifar(const struct folder *f, const char *name, int64_t first, int64_t n, int labels, bool gzip)
{
    AUTO_FINI(buf) b = BUF_INIT;
    put_records(&b, first, n, labels, labels == 1 ? label_of_10 : label_of_100);
    (gzip ? put_gzip : put_file)(f, name, b.data, b.len);
}

/* The first n examples, read in batches of 7. */
static void check_examples(const struct dataset *d, int64_t n, int labels, int which)
{
    AUTO(loader) *l = NULL;
    struct ordinal_space space = space_of(d, 7, false);
    struct err e;
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    ck_assert_int_eq(dataset_size(d), n);
    ck_assert(shape_eq(dataset_example(d), &(struct shape){ 3, { 32, 32, 3 } }));
    for (int64_t r = 0; r < n;) {
        struct batch b;
        ck_ok_e(loader_get(l, r / 7, &b, &e));
        ck_assert_int_eq(b.x[0].dtype, DT_UINT8);
        for (size_t row = 0; row < b.n; row++, r++) {
            const uint8_t *x = (uint8_t *)b.x[0].data + row * IMAGE;
            for (size_t i = 0; i < IMAGE; i++)
                if (x[i] != pixel(r, i / 3, i % 3))
                    ck_abort_msg("example %lld, number %zu", (long long)r, i);
            if (labels > 0)
                ck_assert_int_eq(((int32_t *)b.y[0].data)[row],
                                 labels == 1 ? label_of_10(r, 0) : label_of_100(r, which));
        }
    }
}

static void open_and_check(const struct folder *f, const char *yaml, int64_t n, int labels, int which)
{
    AUTO(dataset) *d = NULL;
    auto_free char *cache = path_join(f->path, "cache");
    struct err e;
    ck_ok_e(open_yaml(yaml, f->path, cache, &d, &e));
    check_examples(d, n, labels, which);
}

START_TEST(reads_several_files_of_cifar_10)
{
    AUTO_FINI(folder) f = folder_new();
    put_cifar(&f, "data_batch_1.bin", 0, 5, 1, false);
    put_cifar(&f, "data_batch_2.bin", 5, 1, 1, false);
    put_cifar(&f, "data_batch_3.bin.gz", 6, 11, 1, true);
    open_and_check(&f, "{format: cifar, files: [data_batch_*]}", 17, 1, 0);
    open_and_check(&f, "{format: cifar, files: data_batch_*, label: \"\"}", 17, 0, 0);
}
END_TEST

START_TEST(reads_fine_and_coarse_labels_of_cifar_100)
{
    AUTO_FINI(folder) f = folder_new();
    put_cifar(&f, "train.bin", 0, 30, 2, false);
    open_and_check(&f, "{format: cifar, files: train.bin}", 30, 2, 1);
    open_and_check(&f, "{format: cifar, files: train.bin, label: fine}", 30, 2, 1);
    open_and_check(&f, "{format: cifar, files: train.bin, label: coarse}", 30, 2, 0);
}
END_TEST

/* 3074 records of CIFAR-10 have the size of 3073 of CIFAR-100. */
START_TEST(labels_decide_where_both_sizes_fit)
{
    AUTO_FINI(folder) f = folder_new();
    put_cifar(&f, "ten", 0, 3074, 1, false);
    put_cifar(&f, "hundred", 0, 3073, 2, false);
    open_and_check(&f, "{format: cifar, files: ten}", 3074, 1, 0);
    open_and_check(&f, "{format: cifar, files: hundred}", 3073, 2, 1);
}
END_TEST

START_TEST(notes_the_labels_and_knows_the_choice)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(dataset) *fine = NULL, *coarse = NULL;
    struct err e;
    put_cifar(&f, "train.bin", 0, 30, 2, false);
    ck_ok_e(open_yaml("{format: cifar, files: train.bin}", f.path, NULL, &fine, &e));
    ck_ok_e(open_yaml("{format: cifar, files: train.bin, label: coarse}", f.path, NULL, &coarse, &e));
    ck_assert(dataset_records(fine)->labels.n == 30 && dataset_records(fine)->labels.max == 98);
    ck_assert(dataset_records(coarse)->labels.max == 19);
    ck_assert_uint_ne(dataset_fingerprint(fine), dataset_fingerprint(coarse));
}
END_TEST

/* "%s" in an error is the folder. */
static const struct {
    const char *yaml, *error;
} REFUSED[] = {
    { "{format: cifar, files: cut}", "%s/cut: has 3072 bytes, but a file of CIFAR-10 has records of 3073 bytes, and "
                                     "one of CIFAR-100 of 3074: the file "
                                     "is truncated, or of another format" },
    { "{format: cifar, files: empty}", "%s/empty: has 0 bytes, but a file of CIFAR-10 has records of 3073 bytes, and "
                                       "one of CIFAR-100 of 3074: the file is "
                                       "truncated, or of another format" },
    { "{format: cifar, files: [ten, cut]}",
      "%s/cut: has 3072 bytes, but %s/ten is CIFAR-10 with records of 3073 bytes; all files must be whole and of one "
      "kind" },
    { "{format: cifar, files: [hundred, ten]}",
      "%s/ten: has 9219 bytes, but %s/hundred is CIFAR-100 with records of 3074 bytes; all files must be whole and of "
      "one kind" },
    { "{format: cifar, files: archive}", "%s/archive: is a tar archive, not cifar; unpack it with tar" },
    { "{format: cifar, files: ten, label: coarse}",
      "job.yaml:1:36: label: only CIFAR-100 has coarse labels, and %s/ten is CIFAR-10" },
    { "{format: cifar, files: ten, label: classes}",
      "job.yaml:1:36: label: 'classes' is not known; did you mean 'coarse'?" },
    { "{format: cifar, files: ten, label: [fine]}", "job.yaml:1:36: label: must be a string, not a list" },
    { "{format: cifar, files: ten, sampleWeight: w}", "job.yaml:1:29: 'sampleWeight' does not go with format cifar" },
    { "{format: cifar, files: ten, columns: [{name: a}]}", "job.yaml:1:29: 'columns' does not go with format cifar" },
};

START_TEST(refuses_what_is_not_cifar)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO_FINI(buf) wanted = BUF_INIT;
    AUTO(dataset) *d = NULL;
    struct err e;
    char zeros[3072] = { 0 };
    put_file(&f, "cut", zeros, sizeof(zeros));
    put_file(&f, "empty", "", 0);
    memcpy(zeros + 257, "ustar", 5);
    put_file(&f, "archive", zeros, sizeof(zeros));
    put_cifar(&f, "ten", 0, 3, 1, false);
    put_cifar(&f, "hundred", 0, 3, 2, false);
    for (const char *p = REFUSED[_i].error; *p != '\0'; p++)
        if (p[0] == '%' && p[1] == 's') {
            buf_str(&wanted, f.path);
            p++;
        } else {
            buf_char(&wanted, *p);
        }
    ck_assert_int_eq(open_yaml(REFUSED[_i].yaml, f.path, NULL, &d, &e), -1);
    ck_assert_str_eq(e.msg, wanted.data);
    ck_assert_int_eq(e.code, ERR_INPUT);
}
END_TEST

/* Of a model with ten classes. */
START_TEST(a_label_that_the_model_lacks_has_its_file_and_record)
{
    static const char MODEL[] = "{inputShape: [32, 32, 3], layers: [Flatten: {}, Dense: {units: 10}]}";
    static const char COMPILE[] = "{optimizer: SGD, loss: sparse_categorical_crossentropy}";
    AUTO_FINI(folder) f = folder_new();
    AUTO_FINI(buf) b = BUF_INIT;
    AUTO_FINI(parsed_spec) p = { .doc = NULL };
    AUTO(dataset) *d = NULL;
    AUTO(model) *m = NULL;
    AUTO(source) *model_source = NULL, *compile_source = NULL;
    json_auto_t *model_doc = NULL, *compile_doc = NULL;
    struct err e;
    put_cifar(&f, "1.bin", 0, 2, 1, false);
    put_records(&b, 0, 6, 1, label_too_large);
    put_file(&f, "2.bin", b.data, b.len);
    ck_ok_e(yaml_parse(MODEL, strlen(MODEL), "model", &model_doc, &model_source, &e));
    ck_ok_e(yaml_parse(COMPILE, strlen(COMPILE), "compile", &compile_doc, &compile_source, &e));
    struct node model = node_root(model_doc, model_source), compile = node_root(compile_doc, compile_source);
    ck_ok_e(model_build(&model, &compile, f.path, &m, &e));
    ck_ok_e(parse_spec("{format: cifar, files: '*.bin'}", &p, &e));
    ck_ok_e(dataset_open(&p.spec, f.path, NULL, NULL, &d, &e));
    ck_assert_int_eq(dataset_bind(d, &p.spec, m, &e), -1);
    auto_free char *wanted =
        xasprintf("%s/2.bin: record 4: label 12, but the model's output has 10 classes (0 to 9)", f.path);
    ck_assert_str_eq(e.msg, wanted);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/cifar");
    TCase *t = tcase_create("cifar");
    suite_add_tcase(s, t);
    tcase_add_test(t, reads_several_files_of_cifar_10);
    tcase_add_test(t, reads_fine_and_coarse_labels_of_cifar_100);
    tcase_add_test(t, labels_decide_where_both_sizes_fit);
    tcase_add_test(t, notes_the_labels_and_knows_the_choice);
    tcase_add_loop_test(t, refuses_what_is_not_cifar, 0, COUNT_OF(REFUSED));
    tcase_add_test(t, a_label_that_the_model_lacks_has_its_file_and_record);
    return s;
}
