/* The cache of parsed rows: batches are the same with it, whatever happened to its file. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file_fault.h"
#include "data/row_cache.h"
#include "data_help.h"

enum { ROWS = 400, BATCH = 16 };

static const char SPEC[] = "format: csv\nfiles: t.csv\nlabel: kind\nsampleWeight: weight\n"
                           "columns: [{name: kind, type: int}]\n";
static const char SEVERAL[] = "format: csv\nfiles: t.csv\nlabel: [kind, weight]\n";
static const char PLAIN[] = "format: csv\nfiles: t.csv\nlabel: kind\n";
static const char *const SPECS[] = { SPEC, SEVERAL, PLAIN };

static const uint64_t PLENTY = UINT64_MAX;

struct place {
    struct folder folder;
    char cache[96];
};

static void place_fini(struct place *p)
{
    folder_fini(&p->folder);
}
DEFINE_AUTO_FINI(place, place_fini);

static void put_rows(const struct place *p, int add)
{
    AUTO_FINI(buf) b = BUF_INIT;
    buf_str(&b, "a,kind,b,weight\n");
    for (int i = 0; i < ROWS; i++)
        buf_printf(&b, "%03d.25,%d,%d,0.5\n", i + add, i % 7, -i);
    put_file(&p->folder, "t.csv", b.data, b.len);
}

static struct place place_new(void)
{
    struct place p = { .folder = folder_new() };
    snprintf(p.cache, sizeof(p.cache), "%s/cache", p.folder.path);
    put_rows(&p, 0);
    return p;
}

static void keep_rows(const struct place *p, struct dataset *d)
{
    dataset_keep_rows(d, &(struct row_space){ .dir = p->cache, .bytes = PLENTY });
}

static struct dataset *open_ok(const struct place *p, const char *yaml, bool keeps)
{
    struct dataset *d = NULL;
    struct err e;
    ck_ok_e(open_yaml(yaml, p->folder.path, p->cache, &d, &e));
    if (keeps)
        keep_rows(p, d);
    return d;
}

static void add_tensor(const struct tensor *t, struct buf *ret)
{
    buf_add(ret, t->data, shape_elements(&t->shape) * dtype_size(t->dtype));
}

/* Appends features, labels and weights of an epoch. */
static void add_epoch(struct loader *l, int64_t epoch, struct buf *ret)
{
    const int64_t batches = (ROWS + BATCH - 1) / BATCH;
    for (int64_t k = 0; k < batches; k++) {
        struct batch b;
        struct err e;
        ck_ok_e(loader_get(l, epoch * batches + k, &b, &e));
        add_tensor(&b.x[0], ret);
        add_tensor(&b.y[0], ret);
        if (b.weight != NULL)
            buf_add(ret, b.weight, b.n * sizeof(float));
    }
}

static void add_epochs(const struct dataset *d, int64_t first, int64_t n, struct buf *ret)
{
    AUTO(loader) *l = NULL;
    struct ordinal_space space = { .examples = dataset_size(d), .batch_size = BATCH, .shuffle = true, .seed = 3 };
    struct err e;
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    for (int64_t epoch = first; epoch < first + n; epoch++)
        add_epoch(l, epoch, ret);
}

/* Three epochs, with the rows kept and without. */
static void assert_equal_epochs(const struct place *p, const char *yaml)
{
    AUTO_FINI(buf) kept = BUF_INIT;
    AUTO_FINI(buf) parsed = BUF_INIT;
    AUTO(dataset) *with = open_ok(p, yaml, true);
    AUTO(dataset) *without = open_ok(p, yaml, false);
    add_epochs(with, 0, 3, &kept);
    add_epochs(without, 0, 3, &parsed);
    ck_assert_uint_eq(kept.len, parsed.len);
    ck_assert_int_eq(memcmp(kept.data, parsed.data, kept.len), 0);
}

/* xmalloc'ed; NULL: there is none. */
static char *rows_file(const struct place *p)
{
    AUTO_FINI(strlist) names = { .items = NULL };
    char *ret = NULL;
    if (dir_list(p->cache, &names, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < names.n; i++)
        if (str_ends(names.items[i], ".rows")) {
            ck_assert_ptr_null(ret);
            ret = path_join(p->cache, names.items[i]);
        }
    return ret;
}

START_TEST(batches_are_the_same)
{
    AUTO_FINI(place) p = place_new();
    assert_equal_epochs(&p, SPECS[_i]);
    auto_free char *path = rows_file(&p);
    ck_assert_ptr_nonnull(path);
    assert_equal_epochs(&p, SPECS[_i]); /* with the file from before */
}
END_TEST

/* The bytes of the file change while it is open, which nothing is to do: so it shows where numbers come from. */
START_TEST(a_record_is_parsed_once)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) before = BUF_INIT;
    AUTO_FINI(buf) after = BUF_INIT;
    AUTO(dataset) *d = open_ok(&p, PLAIN, true);
    AUTO(dataset) *again = open_ok(&p, PLAIN, true);
    add_epochs(d, 0, 1, &before);
    auto_free char *path = path_join(p.folder.path, "t.csv");
    FILE *f = fopen(path, "r+b");
    ck_assert(f != NULL && fseek(f, 20, SEEK_SET) == 0 && fputs("777", f) >= 0 && fclose(f) == 0);
    add_epochs(again, 0, 1, &after);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_int_eq(memcmp(before.data, after.data, before.len), 0);
}
END_TEST

START_TEST(a_file_that_was_written_again_is_parsed_again)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) ignored = BUF_INIT;
    AUTO(dataset) *d = open_ok(&p, PLAIN, true);
    add_epochs(d, 0, 1, &ignored);
    auto_free char *old = rows_file(&p);
    put_rows(&p, 1);
    assert_equal_epochs(&p, PLAIN);
    auto_free char *changed = rows_file(&p);
    ck_assert_str_ne(changed, old);

    /* the same content, as far as one can know */
    auto_free char *path = path_join(p.folder.path, "t.csv");
    const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_equal_epochs(&p, PLAIN);
    auto_free char *touched = rows_file(&p);
    ck_assert_str_ne(touched, changed);

    /* nor does the time show it, which the user can set */
    struct stat before, now;
    ck_assert_int_eq(stat(path, &before), 0);
    do { /* until the clock of the file system has moved on */
        ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
        ck_assert_int_eq(stat(path, &now), 0);
    } while (memcmp(&before.st_ctim, &now.st_ctim, sizeof(now.st_ctim)) == 0);
    assert_equal_epochs(&p, PLAIN);
    auto_free char *hidden = rows_file(&p);
    ck_assert_str_ne(hidden, touched);
}
END_TEST

/* Appends the rows of two epochs. */
static void add_rows(const struct dataset *d, struct buf *ret)
{
    AUTO(loader) *l = NULL;
    struct ordinal_space space = { .examples = dataset_size(d), .batch_size = dataset_size(d) };
    struct batch b;
    struct err e;
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        ck_ok_e(loader_get(l, epoch, &b, &e));
        add_tensor(&b.x[0], ret);
    }
}

START_TEST(the_parts_of_a_split_have_files_of_their_own)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) kept = BUF_INIT;
    AUTO_FINI(buf) parsed = BUF_INIT;
    struct err e;
    for (int keeps = 0; keeps < 2; keeps++) {
        AUTO(dataset) *d = open_ok(&p, PLAIN, false);
        AUTO(dataset) *rest = NULL;
        ck_ok_e(dataset_split(d, 0.25, &rest, &e));
        if (keeps) {
            keep_rows(&p, rest);
            auto_free char *path = rows_file(&p);
            uint64_t size;
            ck_ok_e(file_size(path, &size, &e));
            ck_assert_uint_eq(size, 64 + 448 + 100 * 4 * sizeof(float)); /* a header, 100 stamps, 100 rows */
            keep_rows(&p, d);
        }
        add_rows(d, keeps ? &kept : &parsed);
        add_rows(rest, keeps ? &kept : &parsed);
    }
    ck_assert_uint_eq(kept.len, parsed.len);
    ck_assert_int_eq(memcmp(kept.data, parsed.data, kept.len), 0);
}
END_TEST

/* Each byte in turn. */
START_TEST(a_damaged_file_never_changes_a_batch)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) want = BUF_INIT;
    AUTO_FINI(buf) content = BUF_INIT;
    struct err e;
    AUTO(dataset) *first = open_ok(&p, SPEC, true);
    add_epochs(first, 0, 1, &want);
    auto_free char *path = rows_file(&p);
    ck_ok_e(file_read(path, 1 << 20, &content, &e));
    for (size_t i = 0; i < content.len; i++) {
        AUTO_FINI(buf) got = BUF_INIT;
        content.data[i] = (char)(content.data[i] ^ 0x10);
        ck_ok_e(file_write(path, content.data, content.len, &e));
        content.data[i] = (char)(content.data[i] ^ 0x10);
        AUTO(dataset) *d = open_ok(&p, SPEC, true);
        add_epochs(d, 0, 1, &got);
        if (got.len != want.len || memcmp(got.data, want.data, want.len) != 0)
            ck_abort_msg("byte %zu", i);
    }
}
END_TEST

/* It is removed, so that the next process makes another one. */
static void assert_not_used(const struct place *p)
{
    AUTO(dataset) *d = open_ok(p, SPEC, true);
    ck_assert_ptr_null(dataset_rows(d));
    ck_assert_ptr_null(rows_file(p));
}

START_TEST(a_file_that_is_cut_is_made_anew)
{
    AUTO_FINI(place) p = place_new();
    const off_t SIZES[] = { 5000, 500, 64, 63, 8, 0 };
    for (size_t i = 0; i < COUNT_OF(SIZES); i++) {
        dataset_free(open_ok(&p, SPEC, true));
        auto_free char *path = rows_file(&p);
        ck_assert_int_eq(truncate(path, SIZES[i]), 0);
        assert_not_used(&p);
    }
    assert_equal_epochs(&p, SPEC);
}
END_TEST

START_TEST(a_file_of_another_layout_is_made_anew)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) content = BUF_INIT;
    struct err e;
    dataset_free(open_ok(&p, SPEC, true));
    auto_free char *path = rows_file(&p);
    ck_ok_e(file_read(path, 1 << 20, &content, &e));
    content.data[7]++;
    ck_ok_e(file_write(path, content.data, content.len, &e));
    assert_not_used(&p);
    assert_equal_epochs(&p, SPEC);
}
END_TEST

static const char *const FAULTS[] = { "write", "fsync", "link", "fallocate" };

START_TEST(where_the_file_cannot_be_made_records_are_parsed_each_time)
{
    AUTO_FINI(place) p = place_new();
    AUTO(dataset) *d = open_ok(&p, PLAIN, false);
    file_fault(FAULTS[_i], 1, ENOSPC);
    keep_rows(&p, d);
    file_fault(NULL, 0, 0);
    ck_assert_ptr_null(dataset_rows(d));
    ck_assert_ptr_null(rows_file(&p)); /* with the blocks that a full disk still had */
    assert_equal_epochs(&p, PLAIN);
}
END_TEST

/* The limit of a pod, of which a quarter is used. */
START_TEST(the_space_of_the_folder_is_kept)
{
    AUTO_FINI(place) p = place_new();
    AUTO(dataset) *none = open_ok(&p, PLAIN, false);
    dataset_keep_rows(none, &(struct row_space){ .dir = p.cache, .bytes = 0 });
    ck_assert_ptr_null(dataset_rows(none));
    ck_assert_ptr_null(rows_file(&p));
    AUTO(dataset) *some = open_ok(&p, PLAIN, false);
    dataset_keep_rows(some, &(struct row_space){ .dir = p.cache, .bytes = 4 * 20 * 100 });
    auto_free char *path = rows_file(&p);
    uint64_t size;
    struct err e;
    ck_ok_e(file_size(path, &size, &e));
    ck_assert_uint_eq(size, 64 + 448 + 100 * 16); /* a header, 100 stamps, 100 rows */
    assert_equal_epochs(&p, PLAIN);
    dataset_keep_rows(none, &(struct row_space){ .dir = p.cache, .bytes = 0 }); /* nor is the file of others used */
    ck_assert_ptr_null(dataset_rows(none));
}
END_TEST

START_TEST(without_a_folder_records_are_parsed_each_time)
{
    AUTO_FINI(place) p = place_new();
    put_file(&p.folder, "file", "", 0);
    snprintf(p.cache, sizeof(p.cache), "%s/file/cache", p.folder.path);
    assert_equal_epochs(&p, PLAIN);
    AUTO(dataset) *d = open_ok(&p, PLAIN, false);
    dataset_keep_rows(d, &(struct row_space){ .dir = NULL, .bytes = PLENTY });
    ck_assert_ptr_null(dataset_rows(d));
}
END_TEST

struct reading {
    const struct dataset *d;
    struct buf got;
};

static void run_reader(void *user)
{
    struct reading *r = user;
    add_epochs(r->d, 0, 3, &r->got);
}

/* Of two openings, as those of two processes, and of one. */
START_TEST(threads_that_read_the_same_records_agree)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) want = BUF_INIT;
    AUTO(dataset) *parsed = open_ok(&p, SPEC, false);
    AUTO(dataset) *one = open_ok(&p, SPEC, true);
    AUTO(dataset) *two = open_ok(&p, SPEC, true);
    struct reading reader[] = { { one, BUF_INIT }, { one, BUF_INIT }, { two, BUF_INIT } };
    struct thread thread[COUNT_OF(reader)];
    add_epochs(parsed, 0, 3, &want);
    for (size_t i = 0; i < COUNT_OF(reader); i++)
        ck_assert_int_eq(thread_start(&thread[i], "reader", run_reader, &reader[i], NULL), 0);
    for (size_t i = 0; i < COUNT_OF(reader); i++) {
        thread_join(&thread[i]);
        ck_assert_uint_eq(reader[i].got.len, want.len);
        ck_assert_int_eq(memcmp(reader[i].got.data, want.data, want.len), 0);
        buf_fini(&reader[i].got);
    }
}
END_TEST

/* Rows of 10 floats and a class number, with their stamp 48 bytes. */
static struct records records_of(int64_t n, uint64_t bytes)
{
    return (struct records){ .n = n,
                             .cost = READ_PARSES_TEXT,
                             .x_type = DT_FLOAT,
                             .x = shape_of(1, (int64_t[]){ 10 }),
                             .has_labels = true,
                             .integer_labels = true,
                             .bytes = bytes };
}

START_TEST(the_space_of_kept_rows_is_bounded)
{
    const struct records r = records_of(1000, 20000);
    ck_assert_uint_eq(row_cache_rows(&r, 1000, PLENTY, false), 1000);
    ck_assert_uint_eq(row_cache_rows(&r, 250, PLENTY, false), 250); /* a part of a split */
    ck_assert_uint_eq(row_cache_rows(&r, 1000, 48 * 4 * 10, false), 10);
    ck_assert_uint_eq(row_cache_rows(&r, 1000, 0, false), 0);

    const struct records dense = records_of(1000, 12000), denser = records_of(1000, 11000);
    ck_assert_uint_eq(row_cache_rows(&dense, 1000, PLENTY, false), 1000); /* four times the file */
    ck_assert_uint_eq(row_cache_rows(&denser, 1000, PLENTY, false), 0);

    const struct records large = records_of(100000000, UINT64_C(5000000000));
    ck_assert_uint_eq(row_cache_rows(&large, 100000000, PLENTY, false), (1 << 30) / 48);
    ck_assert_uint_eq(row_cache_rows(&large, 100000000, PLENTY, true), (64 << 20) / 48);

    struct records bytes = records_of(1000, 20000);
    bytes.cost = READ_PARSES;
    ck_assert_uint_eq(row_cache_rows(&bytes, 1000, PLENTY, false), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("row_cache");
    TCase *t = tcase_create("row_cache");
    tcase_add_loop_test(t, batches_are_the_same, 0, COUNT_OF(SPECS));
    tcase_add_test(t, a_record_is_parsed_once);
    tcase_add_test(t, a_file_that_was_written_again_is_parsed_again);
    tcase_add_test(t, the_parts_of_a_split_have_files_of_their_own);
    tcase_add_test(t, a_damaged_file_never_changes_a_batch);
    tcase_add_test(t, a_file_that_is_cut_is_made_anew);
    tcase_add_test(t, a_file_of_another_layout_is_made_anew);
    tcase_add_loop_test(t, where_the_file_cannot_be_made_records_are_parsed_each_time, 0, COUNT_OF(FAULTS));
    tcase_add_test(t, the_space_of_the_folder_is_kept);
    tcase_add_test(t, without_a_folder_records_are_parsed_each_time);
    tcase_add_test(t, threads_that_read_the_same_records_agree);
    tcase_add_test(t, the_space_of_kept_rows_is_bounded);
    suite_add_tcase(s, t);
    return s;
}
