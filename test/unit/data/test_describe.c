/* What data/describe.h says of small data sets whose statistics are known. Those of the csv are pandas' describe(). */
#include "case_folder.h"
#include "data/describe.h"
#include "data_help.h"
#include "put_png.h"

#include <math.h>

#define CASES "test/data/data/valid"

static struct err e;

struct described {
    struct parsed_spec p;
    struct dataset *d;
    struct data_description what;
};

static void described_fini(struct described *s)
{
    data_description_fini(&s->what);
    dataset_free(s->d);
    parsed_spec_fini(&s->p);
}
DEFINE_AUTO_FINI(described, described_fini);

static int look(const char *yaml, const char *base, int64_t limit, struct described *s)
{
    ck_ok_e(parse_spec(yaml, &s->p, &e));
    ck_ok_e(dataset_open(&s->p.spec, base, NULL, NULL, &s->d, &e));
    const struct describe_options o = { .spec = &s->p.spec, .base_dir = base, .limit = limit, .first = 2 };
    return describe_dataset(s->d, &o, &s->what, &e);
}

static void put_text(const struct folder *f, const char *name, const char *text)
{
    put_file(f, name, text, strlen(text));
}

static void assert_column(const struct described_column *c, const char *name, const char *role, const char *type)
{
    ck_assert_str_eq(c->name, name);
    ck_assert_str_eq(c->role, role);
    ck_assert_str_eq(c->type, type);
}

static void assert_numbers(const struct described_column *c, int64_t missing, double mean, double std)
{
    ck_assert(c->has_numbers && !c->has_words);
    ck_assert_int_eq(c->missing, missing);
    ck_assert_double_eq_tol(c->numbers.mean, mean, 1e-12);
    ck_assert_double_eq_tol(moments_std(&c->numbers), std, 1e-12);
}

/* Far from 0 a sum of squares would lose all digits of the deviation. */
START_TEST(a_deviation_is_exact_far_from_zero)
{
    struct moments m = { .n = 0 };
    for (int i = 0; i < 4; i++)
        moments_add(&m, 1e9 + (double[]){ 4, 7, 13, 16 }[i]);
    ck_assert_double_eq(m.mean, 1e9 + 10);
    ck_assert_double_eq(moments_std(&m), sqrt(30));
    ck_assert_double_eq(m.min, 1e9 + 4);
    ck_assert_double_eq(m.max, 1e9 + 16);
}
END_TEST

static const char CSV[] = "id,age,sex,born,note,y\n"
                          "1,20,m,2000-01-31,b,no\n"
                          "2,,f,1999-12-31,a,yes\n"
                          "3,30,f,,NA,yes\n"
                          "4,40,m,2001-05-01,b,no\n"
                          "5,50,?,2001-05-02,7,yes\n";
static const char CSV_SPEC[] = "{format: csv, files: t.csv, label: y, columns: ["
                               "{name: age, type: float, default: 1}, "
                               "{name: sex, type: category, vocabulary: [m, f], encoding: one_hot, default: m}, "
                               "{name: born, type: date, default: 2000-01-01}, "
                               "{name: y, type: category, vocabulary: [yes, no]}]}";

START_TEST(columns_of_a_csv)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    put_text(&dir, "t.csv", CSV);
    ck_ok_e(look(CSV_SPEC, dir.path, 0, &s));
    const struct described_column *c = s.what.columns;
    ck_assert_uint_eq(s.what.n, 6);
    ck_assert_int_eq(s.what.rows, 5);
    assert_column(&c[0], "id", "unused", "number");
    assert_numbers(&c[0], 0, 3, sqrt(2.5));
    assert_column(&c[1], "age", "feature", "float");
    assert_numbers(&c[1], 1, 35, sqrt(500.0 / 3));
    ck_assert_double_eq(c[1].numbers.min, 20);
    ck_assert_double_eq(c[1].numbers.max, 50);
    assert_column(&c[2], "sex", "feature", "category");
    ck_assert(c[2].has_words && !c[2].has_numbers && c[2].missing == 1 && c[2].count == 4 && c[2].words == 2);
    ck_assert_str_eq(c[2].top[0].text, "f"); /* as often as m: in the order of the bytes */
    ck_assert_int_eq(c[2].top[0].n, 2);
    assert_column(&c[3], "born", "feature", "date");
    ck_assert(c[3].is_date && c[3].missing == 1);
    assert_column(&c[4], "note", "unused", "text");
    ck_assert(c[4].words == 3 && c[4].missing == 1 && c[4].ntop == 3);
    ck_assert_str_eq(c[4].top[0].text, "b");
    ck_assert_str_eq(c[4].top[1].text, "7");
    assert_column(&c[5], "y", "label", "category");
}
END_TEST

/* Any text is a word, but for those that stand for a missing one. */
START_TEST(hashed_words_are_words)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    put_text(&dir, "t.csv", CSV);
    ck_ok_e(look("{format: csv, files: t.csv, label: y, columns: ["
                 "{name: note, type: category, numBins: 9, encoding: int, missing: drop}, "
                 "{name: y, type: category, vocabulary: [yes, no]}]}",
                 dir.path, 0, &s));
    const struct described_column *c = &s.what.columns[4];
    assert_column(c, "note", "feature", "category");
    ck_assert(c->has_words && c->words == 3 && c->missing == 1 && c->count == 4);
}
END_TEST

START_TEST(classes_have_the_words_of_the_label)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    put_text(&dir, "t.csv", CSV);
    ck_ok_e(look(CSV_SPEC, dir.path, 0, &s));
    ck_assert(s.what.integer_labels && s.what.nclasses == 2 && s.what.class_names.n == 2);
    ck_assert_str_eq(s.what.class_names.items[0], "yes");
    ck_assert_int_eq(s.what.classes[0].n, 3);
    ck_assert_int_eq(s.what.classes[1].n, 2);
    ck_assert_uint_eq(s.what.nfirst, 2);
    ck_assert_double_eq((double)s.what.x[0], 20);
    ck_assert_double_eq((double)s.what.y[0], 1);
}
END_TEST

/* A row that the job leaves out is a row of the file, and not an example. */
START_TEST(rows_that_are_left_out_are_described)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    put_text(&dir, "t.csv", "a,b,y\n1,,0\n2,5,1\n3,6,1\n");
    ck_ok_e(look("{format: csv, files: t.csv, missing: drop}", dir.path, 0, &s));
    ck_assert_int_eq(s.what.rows, 3);
    ck_assert_int_eq(s.what.examples, 2);
    ck_assert_int_eq(s.what.columns[0].count, 3);
    ck_assert_int_eq(s.what.columns[1].missing, 1);
    ck_assert_uint_eq(s.what.nclasses, 1);
    ck_assert_int_eq(s.what.classes[0].value, 1);
}
END_TEST

START_TEST(a_limit_of_rows)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    put_text(&dir, "t.csv", "a,y\n1,0\n2,1\n9,7\n");
    ck_ok_e(look("{format: csv, files: t.csv}", dir.path, 2, &s));
    ck_assert(s.what.examples == 3 && s.what.seen == 2 && s.what.rows == 2 && !s.what.spread);
    ck_assert_double_eq(s.what.columns[0].numbers.max, 2);
    ck_assert_uint_eq(s.what.nclasses, 2);
}
END_TEST

/* The memory for the texts of a column is bounded. */
START_TEST(a_column_counts_so_many_texts)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    AUTO_FINI(buf) text = BUF_INIT;
    buf_str(&text, "id,a,y\n");
    for (int i = 0; i < DESCRIBE_WORDS_MAX + 5; i++)
        buf_printf(&text, "w%d,1,%d\n", i, i % 2);
    buf_str(&text, "w0,1,0\n");
    put_file(&dir, "t.csv", text.data, text.len);
    ck_ok_e(look("{format: csv, files: t.csv, dropColumns: [id]}", dir.path, 0, &s));
    const struct described_column *c = &s.what.columns[0];
    ck_assert(c->more_words && c->words == DESCRIBE_WORDS_MAX && c->count == DESCRIBE_WORDS_MAX + 6);
    ck_assert_str_eq(c->top[0].text, "w0");
    ck_assert_int_eq(c->top[0].n, 2);
}
END_TEST

/* idx of n examples of two uint8 each, i and 100 + i, and the labels i % 4. */
static void put_idx(const struct folder *f, uint8_t n)
{
    unsigned char x[12 + 512] = { 0, 0, 8, 2, 0, 0, 0, n, 0, 0, 0, 2 }, y[8 + 256] = { 0, 0, 8, 1, 0, 0, 0, n };
    for (uint8_t i = 0; i < n; i++) {
        x[12 + 2 * i] = i;
        x[13 + 2 * i] = (unsigned char)(100 + i);
        y[8 + i] = i % 4;
    }
    put_file(f, "x", x, 12 + 2u * n);
    put_file(f, "y", y, 8u + n);
}

START_TEST(an_idx_set)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    put_idx(&dir, 100);
    ck_ok_e(look("{format: idx, features: x, labels: y}", dir.path, 0, &s));
    ck_assert(s.what.rows == 0 && s.what.n == 2 && s.what.seen == 100 && s.what.is_uint8);
    assert_column(&s.what.columns[0], "features", "feature", "uint8");
    assert_numbers(&s.what.columns[0], -1, 99.5, sqrt((200.0 * (200.0 * 200 - 1) / 12) / 199));
    ck_assert_double_eq(s.what.columns[0].numbers.max, 199);
    ck_assert_uint_eq(s.what.nclasses, 4);
    ck_assert_int_eq(s.what.classes[3].n, 25);
    ck_assert_double_eq((double)s.what.x[3], 101);
}
END_TEST

/* A file that is sorted by class shows all of them. */
START_TEST(a_limit_is_spread)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    put_idx(&dir, 99);
    ck_ok_e(look("{format: idx, features: x, labels: y}", dir.path, 33, &s));
    ck_assert(s.what.spread && s.what.seen == 33);
    ck_assert_double_eq(s.what.columns[0].numbers.min, 0);
    ck_assert_double_eq(s.what.columns[0].numbers.max, 196);
}
END_TEST

START_TEST(images_have_names_of_classes)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    for (int i = 0; i < 3; i++) {
        AUTO_FINI(buf) png = BUF_INIT;
        auto_free char *class_dir = xasprintf("%s/%s", dir.path, i == 0 ? "cat" : "dog");
        auto_free char *name = xasprintf("%s/%d.png", i == 0 ? "cat" : "dog", i);
        ck_ok_e(dir_make(class_dir, &e));
        make_png(&png, 8, 8, (uint8_t)(100 * i));
        put_file(&dir, name, png.data, png.len);
    }
    ck_ok_e(look("{format: images, directory: ., imageSize: [8, 8]}", dir.path, 0, &s));
    ck_assert(s.what.examples == 3 && s.what.nclasses == 2 && s.what.class_names.n == 2);
    ck_assert_str_eq(s.what.class_names.items[1], "dog");
    ck_assert_int_eq(s.what.classes[1].n, 2);
    ck_assert_double_eq_tol(s.what.columns[0].numbers.mean, 100, 1e-9);
}
END_TEST

static void put_number(struct buf *features, const char *name, float v)
{
    AUTO_FINI(buf) list = BUF_INIT;
    pb_put_bytes(&list, 1, &v, sizeof(v)); /* packed */
    put_feature(features, name, 2, &list);
}

/* Each feature has a line; a default counts as a value. */
START_TEST(features_of_a_tfrecord)
{
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    AUTO_FINI(buf) file = BUF_INIT;
    for (int i = 0; i < 4; i++) {
        AUTO_FINI(buf) features = BUF_INIT;
        put_number(&features, "a", (float)i);
        if (i > 0)
            put_number(&features, "b", 10);
        put_number(&features, "y", (float)-i);
        put_number(&features, "w", 2);
        put_example(&file, &features);
    }
    put_file(&dir, "t", file.data, file.len);
    ck_ok_e(look("{format: tfrecord, files: t, label: y, sampleWeight: w, columns: [{name: a, type: float}, "
                 "{name: b, type: float, default: 2}, {name: w, type: float}, {name: y, type: float}]}",
                 dir.path, 0, &s));
    const struct described_column *c = s.what.columns;
    ck_assert(s.what.n == 4 && s.what.rows == 0 && s.what.nclasses == 0 && s.what.y_count == 1);
    assert_column(&c[0], "a", "feature", "float32");
    assert_numbers(&c[0], -1, 1.5, sqrt(5.0 / 3));
    assert_column(&c[1], "b", "feature", "float32");
    assert_numbers(&c[1], -1, 8, 4);
    assert_column(&c[2], "y", "label", "float32");
    ck_assert_double_eq(c[2].numbers.min, -3);
    assert_column(&c[3], "weights", "weight", "float32");
    assert_numbers(&c[3], -1, 2, 0);
}
END_TEST

START_TEST(a_number_that_is_not_finite_has_its_place)
{
    static const unsigned char BAD[] = { 0, 0, 0xD, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0x7F, 0xC0, 0, 0 };
    AUTO_FINI(folder) dir = folder_new();
    AUTO_FINI(described) s = { .d = NULL };
    put_idx(&dir, 2);
    put_file(&dir, "x", BAD, sizeof(BAD));
    ck_assert_int_eq(look("{format: idx, features: x, labels: y}", dir.path, 0, &s), -1);
    ck_assert_int_eq(err_exit_code(&e), 2);
    ck_assert_msg(strstr(e.msg, "/x") != NULL && strstr(e.msg, "nan is not a finite number") != NULL, "%s", e.msg);
}
END_TEST

/* Each data set that can be trained on can be described, and each value of a csv is there or missing. */
START_TEST(valid_cases_are_described)
{
    AUTO_FINI(folder) cache = folder_new();
    AUTO_FINI(buf) yaml = BUF_INIT;
    AUTO_FINI(parsed_spec) p = { .doc = NULL };
    AUTO_FINI(data_description) what = { .n = 0 };
    AUTO_FINI(buf) like_yaml = BUF_INIT;
    AUTO(dataset) *d = NULL, *run = NULL;
    auto_free char *dir = case_path(CASES, _i), *path = path_join(dir, "job.yaml"), *like = path_join(dir, "like.yaml");
    if (file_exists(like)) { /* the data set whose names count */
        ck_ok_e(file_read(like, 1 << 20, &like_yaml, &e));
        ck_ok_e(open_yaml(like_yaml.data, dir, cache.path, &run, &e));
    }
    const struct column_names *names = run != NULL ? dataset_columns(run) : NULL;
    ck_ok_e(file_read(path, 1 << 20, &yaml, &e));
    ck_ok_e(parse_spec(yaml.data, &p, &e));
    ck_ok_e(dataset_open(&p.spec, dir, cache.path, names, &d, &e));
    const struct describe_options o = {
        .spec = &p.spec, .base_dir = dir, .cache_dir = cache.path, .like = names, .first = 3
    };
    ck_assert_msg(describe_dataset(d, &o, &what, &e) == 0, "%s: %s", dir, e.msg);
    ck_assert_int_eq(what.seen, dataset_size(d));
    ck_assert_msg((what.rows > 0) == data_has_fields(p.spec.format), "%s: %lld rows", dir, (long long)what.rows);
    for (size_t i = 0; what.rows > 0 && i < what.n; i++)
        ck_assert_msg(what.columns[i].count + what.columns[i].missing == what.rows, "%s: column %zu", dir, i);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/describe");
    TCase *t = tcase_create("describe");
    suite_add_tcase(s, t);
    tcase_add_test(t, a_deviation_is_exact_far_from_zero);
    tcase_add_test(t, columns_of_a_csv);
    tcase_add_test(t, hashed_words_are_words);
    tcase_add_test(t, classes_have_the_words_of_the_label);
    tcase_add_test(t, rows_that_are_left_out_are_described);
    tcase_add_test(t, a_limit_of_rows);
    tcase_add_test(t, a_column_counts_so_many_texts);
    tcase_add_test(t, an_idx_set);
    tcase_add_test(t, a_limit_is_spread);
    tcase_add_test(t, images_have_names_of_classes);
    tcase_add_test(t, features_of_a_tfrecord);
    tcase_add_test(t, a_number_that_is_not_finite_has_its_place);
    tcase_add_loop_test(t, valid_cases_are_described, 0, case_count(CASES));
    return s;
}
