/* The cache folder: what is unpacked, converted and indexed once, when it is used again and when not. Also the
 * fingerprint. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "data/files.h"
#include "data_help.h"

static const char CSV_SPEC[] = "format: csv\nfiles: t.csv\n";

struct place {
    struct folder folder;
    char cache[96];
};

static void place_fini(struct place *p)
{
    folder_fini(&p->folder);
}
DEFINE_AUTO_FINI(place, place_fini);

static struct place place_new(void)
{
    struct place p = { .folder = folder_new() };
    snprintf(p.cache, sizeof(p.cache), "%s/made/when/needed", p.folder.path);
    return p;
}

static void put_text(const struct place *p, const char *name, const char *text)
{
    put_file(&p->folder, name, text, strlen(text));
}

static struct dataset *open_ok(const struct place *p, const char *yaml)
{
    struct dataset *d = NULL;
    struct err e;
    ck_ok_e(open_yaml(yaml, p->folder.path, p->cache, &d, &e));
    return d;
}

static uint64_t fingerprint_of(const struct place *p, const char *yaml)
{
    AUTO(dataset) *d = open_ok(p, yaml);
    return dataset_fingerprint(d);
}

static size_t count_cached(const struct place *p, const char *suffix)
{
    AUTO_FINI(strlist) names = { .items = NULL };
    size_t n = 0;
    if (dir_list(p->cache, &names, NULL) < 0)
        return 0;
    for (size_t i = 0; i < names.n; i++)
        n += str_ends(names.items[i], suffix);
    return n;
}

static float first_number(const struct dataset *d)
{
    AUTO(loader) *l = NULL;
    struct ordinal_space space = space_of(d, 1, false);
    struct batch b;
    struct err e;
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    ck_ok_e(loader_get(l, 0, &b, &e));
    return *(float *)b.x[0].data;
}

START_TEST(an_index_is_made_once_and_used_again)
{
    AUTO_FINI(place) p = place_new();
    put_text(&p, "t.csv", "a,b\n1,2\n");
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".index"), 1);
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".index"), 1);
    dataset_free(open_ok(&p, "format: csv\nfiles: t.csv\nlabel: 0\n")); /* the index pass reads the label too */
    ck_assert_uint_eq(count_cached(&p, ".index"), 2);
}
END_TEST

/* Same size, even the same sampled bytes, but written again: the old index may be wrong. */
START_TEST(a_changed_file_gets_a_new_index)
{
    AUTO_FINI(place) p = place_new();
    put_text(&p, "t.csv", "a,b\n1,2\n3,4\n");
    dataset_free(open_ok(&p, CSV_SPEC));
    put_text(&p, "t.csv", "a,b\n1,2\n34,5\n");
    AUTO(dataset) *d = open_ok(&p, CSV_SPEC);
    ck_assert_int_eq(dataset_size(d), 2);
    ck_assert_uint_eq(count_cached(&p, ".index"), 2);

    auto_free char *path = path_join(p.folder.path, "t.csv");
    struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".index"), 3);
}
END_TEST

/* Every byte of the cached index damaged in turn, and every length: never wrong data, never an error. */
START_TEST(a_damaged_index_is_made_anew)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(strlist) names = { .items = NULL };
    AUTO_FINI(buf) index = BUF_INIT;
    struct err e;
    put_text(&p, "t.csv", "a,b\n1,2\n3,4\n");
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_ok_e(dir_list(p.cache, &names, &e));
    auto_free char *path = path_join(p.cache, names.items[0]);
    ck_ok_e(file_read(path, 1 << 20, &index, &e));
    for (size_t i = 0; i < 2 * index.len; i++) {
        size_t n = i < index.len ? index.len : i - index.len;
        if (i < index.len)
            index.data[i] = (char)(index.data[i] ^ 0x04);
        FILE *f = fopen(path, "wb");
        ck_assert(f != NULL && fwrite(index.data, 1, n, f) == n && fclose(f) == 0);
        if (i < index.len)
            index.data[i] = (char)(index.data[i] ^ 0x04);
        AUTO(dataset) *d = open_ok(&p, CSV_SPEC);
        if (dataset_size(d) != 2 || first_number(d) != 1 || dataset_records(d)->labels.max != 4)
            ck_abort_msg("byte %zu", i);
    }
}
END_TEST

START_TEST(without_a_writable_cache_the_index_stays_in_memory)
{
    AUTO_FINI(place) p = place_new();
    AUTO(dataset) *d = NULL;
    AUTO(dataset) *none = NULL;
    struct err e;
    put_text(&p, "t.csv", "a,b\n1,2\n3,4\n");
    put_text(&p, "file", "");
    auto_free char *cache = path_join(p.folder.path, "file/cache");
    ck_ok_e(open_yaml(CSV_SPEC, p.folder.path, cache, &d, &e));
    ck_assert(first_number(d) == 1);
    ck_ok_e(open_yaml(CSV_SPEC, p.folder.path, NULL, &none, &e));
    ck_assert(first_number(none) == 1);
}
END_TEST

START_TEST(gzip_needs_a_cache_and_says_so)
{
    AUTO_FINI(place) p = place_new();
    struct dataset *d = NULL;
    struct err e;
    put_gzip(&p.folder, "t.csv.gz", "a,b\n1,2\n", 8);
    put_text(&p, "file", "");
    auto_free char *cache = path_join(p.folder.path, "file/cache");
    ck_assert_int_eq(open_yaml(CSV_SPEC, p.folder.path, cache, &d, &e), -1);
    ck_assert_msg(strstr(e.msg, "cache folder") != NULL, "%s", e.msg);
    ck_assert_int_eq(open_yaml(CSV_SPEC, p.folder.path, NULL, &d, &e), -1);
    ck_assert_msg(strstr(e.msg, "t.csv.gz: is gzip, but there is no cache folder") != NULL, "%s", e.msg);
}
END_TEST

START_TEST(a_full_disk_leaves_nothing_half_unpacked)
{
    AUTO_FINI(place) p = place_new();
    struct dataset *d = NULL;
    struct err e;
    put_gzip(&p.folder, "t.csv.gz", "a,b\n1,2\n", 8);
    file_fault("write", 1, ENOSPC);
    ck_assert_int_eq(open_yaml(CSV_SPEC, p.folder.path, p.cache, &d, &e), -1);
    file_fault(NULL, 0, 0);
    ck_assert_int_eq(e.code, ERR_NO_SPACE); /* only the user can make room */
    ck_assert_uint_eq(count_cached(&p, ".raw"), 0);
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".raw"), 1);
    ck_assert_uint_eq(count_cached(&p, ".lock"), 0);
}
END_TEST

/* ASCII as UTF-16, little endian, with a mark. */
static void put_utf16(const struct place *p, const char *name, const char *text)
{
    AUTO_FINI(buf) b = BUF_INIT;
    buf_str(&b, "\xFF\xFE");
    for (; *text != '\0'; text++) {
        buf_char(&b, *text);
        buf_char(&b, '\0');
    }
    put_file(&p->folder, name, b.data, b.len);
}

static int open_in_child(const struct place *p)
{
    struct dataset *d = NULL;
    struct err e;
    if (open_yaml(CSV_SPEC, p->folder.path, p->cache, &d, &e) < 0)
        return 1;
    bool ok = dataset_size(d) == 50000;
    dataset_free(d);
    return ok ? 0 : 2;
}

static void fifty_thousand_rows(struct buf *out)
{
    buf_str(out, "a,b\n");
    for (int i = 0; i < 50000; i++)
        buf_printf(out, "%d,%d\n", i, i % 10);
}

static void many_processes_open(const struct place *p)
{
    enum { CHILDREN = 8 };
    pid_t child[CHILDREN];
    for (int i = 0; i < CHILDREN; i++)
        if ((child[i] = fork()) == 0)
            _exit(open_in_child(p));
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(count_cached(p, ".raw"), 1);
    ck_assert_uint_eq(count_cached(p, ".index"), 1);
}

START_TEST(many_processes_open_the_same_gzip_file)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) text = BUF_INIT;
    fifty_thousand_rows(&text);
    put_gzip(&p.folder, "t.csv.gz", text.data, text.len);
    many_processes_open(&p);
}
END_TEST

START_TEST(many_processes_open_the_same_utf16_file)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) text = BUF_INIT;
    fifty_thousand_rows(&text);
    put_utf16(&p, "t.csv", text.data);
    many_processes_open(&p);
}
END_TEST

/* ---- csv files that are not UTF-8 ---- */

START_TEST(a_conversion_needs_a_cache_and_says_so)
{
    AUTO_FINI(place) p = place_new();
    struct dataset *d = NULL;
    struct err e;
    put_utf16(&p, "t.csv", "a,b\n1,2\n");
    ck_assert_int_eq(open_yaml(CSV_SPEC, p.folder.path, NULL, &d, &e), -1);
    ck_assert_msg(strstr(e.msg, "t.csv: is UTF-16, but there is no cache folder to convert it into") != NULL, "%s",
                  e.msg);
    put_text(&p, "t.csv", "\xE4,b\n1,2\n");
    ck_assert_int_eq(open_yaml(CSV_SPEC, p.folder.path, NULL, &d, &e), -1);
    ck_assert_msg(strstr(e.msg, "t.csv: is not UTF-8, but there is no cache folder to convert it into") != NULL, "%s",
                  e.msg);
}
END_TEST

START_TEST(a_conversion_is_made_once_and_used_again)
{
    AUTO_FINI(place) p = place_new();
    put_text(&p, "t.csv", "\xE4,b\n1,2\n");
    dataset_free(open_ok(&p, CSV_SPEC));
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".raw"), 1);
    ck_assert_uint_eq(count_cached(&p, ".lock"), 0);
    put_text(&p, "t.csv", "\xF6,b\n1,2\n");
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".raw"), 2);
    put_text(&p, "t.csv", "\xC3\xB6,b\n1,2\n"); /* UTF-8 needs none */
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".raw"), 2);
}
END_TEST

/* A row appears between two samples of a large file: only the modification time tells. */
START_TEST(a_changed_large_file_is_converted_again)
{
    enum { LARGE = 1 << 20, BETWEEN = LARGE / 65 * 32 + 8000 };
    AUTO_FINI(place) p = place_new();
    auto_free char *text = xmalloc(LARGE);
    memset(text, '\n', LARGE);
    memcpy(text, "\xE4,b\n1,2\n", 8);
    uint64_t first = data_fingerprint(text, LARGE);
    put_file(&p.folder, "t.csv", text, LARGE);
    dataset_free(open_ok(&p, CSV_SPEC));
    memcpy(text + BETWEEN, "3,4", 3);
    ck_assert_uint_eq(data_fingerprint(text, LARGE), first);
    put_file(&p.folder, "t.csv", text, LARGE);
    AUTO(dataset) *d = open_ok(&p, CSV_SPEC);
    ck_assert_int_eq(dataset_size(d), 2);
}
END_TEST

START_TEST(a_full_disk_leaves_nothing_half_converted)
{
    AUTO_FINI(place) p = place_new();
    struct dataset *d = NULL;
    struct err e;
    put_utf16(&p, "t.csv", "a,b\n1,2\n");
    file_fault("write", 1, ENOSPC);
    ck_assert_int_eq(open_yaml(CSV_SPEC, p.folder.path, p.cache, &d, &e), -1);
    file_fault(NULL, 0, 0);
    ck_assert_int_eq(e.code, ERR_NO_SPACE);
    ck_assert_uint_eq(count_cached(&p, ".raw"), 0);
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".raw"), 1);
}
END_TEST

/* A copy that one encoding made must not be taken for that of another: the copy of latin-1 exists before auto. */
START_TEST(another_encoding_is_another_copy)
{
    static const char WORD[] = "columns: [{name: a, type: category, vocabulary: [%s], encoding: int}, {name: b}]\n";
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) latin1 = BUF_INIT;
    AUTO_FINI(buf) any = BUF_INIT;
    put_text(&p, "t.csv", "a,b\n\xC3\xB6,2\n");
    buf_str(&latin1, "format: csv\nfiles: t.csv\nencoding: latin-1\n");
    buf_printf(&latin1, WORD, "\xC3\x83\xC2\xB6");
    buf_str(&any, "format: csv\nfiles: t.csv\n");
    buf_printf(&any, WORD, "\xC3\xB6");
    ck_assert(fingerprint_of(&p, latin1.data) != fingerprint_of(&p, any.data));
    dataset_free(open_ok(&p, latin1.data));
}
END_TEST

/* The middle of a large file changes behind the back of the samples and of the modification time: a pass over it would
 * find that it is not UTF-8 any more. */
START_TEST(a_large_file_is_checked_once)
{
    enum { LARGE = 16 << 20 };
    static const struct timespec TIMES[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    AUTO_FINI(place) p = place_new();
    auto_free char *text = xmalloc(LARGE), *path = path_join(p.folder.path, "t.csv");
    memset(text, '\n', LARGE);
    memcpy(text, "\xC3\xB6,b\n1,2\n", 9);
    size_t middle = LARGE / 2 + LARGE / 160; /* between two samples */
    memcpy(text + middle, "1,2", 3);
    put_file(&p.folder, "t.csv", text, LARGE);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, TIMES, 0), 0);
    dataset_free(open_ok(&p, CSV_SPEC));
    ck_assert_uint_eq(count_cached(&p, ".utf8"), 1);

    text[middle - 2] = '\xE4';
    put_file(&p.folder, "t.csv", text, LARGE);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, TIMES, 0), 0);
    dataset_free(open_ok(&p, CSV_SPEC)); /* with the index of the first pass */
    ck_assert_uint_eq(count_cached(&p, ".raw"), 0);
    ck_assert_uint_eq(count_cached(&p, ".utf8"), 1);
}
END_TEST

/* ---- the fingerprint ---- */

#define CSV_OF_A   "format: csv\nfiles: t.csv\ncolumns: [{name: a, "
#define JSONL_OF_A "format: jsonl\nfiles: l.jsonl\ncolumns: [{name: a, "

START_TEST(fingerprint_changes_with_content_name_and_options)
{
    AUTO_FINI(place) p = place_new();
    put_text(&p, "t.csv", "a,b\n1,2\n3,4\n");
    put_text(&p, "u.csv", "a,b\n1,2\n3,4\n");
    put_text(&p, "v.csv", "0,1\n1,2\n3,4\n");
    put_text(&p, "d.csv", "a,b\n,1\n");
    put_text(&p, "l.jsonl", "{\"a\": [1, 2], \"label\": 1}\n{\"a\": [3, 4], \"label\": 0}\n");
    uint64_t seen[] = {
        fingerprint_of(&p, JSONL_OF_A "shape: [2]}]\n"),
        fingerprint_of(&p, JSONL_OF_A "outputSequenceLength: 2}]\n"),
        fingerprint_of(&p, JSONL_OF_A "outputSequenceLength: 3}]\n"),
        fingerprint_of(&p, JSONL_OF_A "outputSequenceLength: 3, default: 1}]\n"),
        fingerprint_of(&p, CSV_SPEC),
        fingerprint_of(&p, "format: csv\nfiles: u.csv\n"),
        fingerprint_of(&p, "format: csv\nfiles: [t.csv, u.csv]\n"),
        fingerprint_of(&p, "format: csv\nfiles: [u.csv, t.csv]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\nlabel: 0\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\nlabel: ''\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: int}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, default: 1}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, default: 2}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, missing: drop}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [x, y], "
                           "outputSequenceLength: 2}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [y, x], "
                           "outputSequenceLength: 2}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [x, y], "
                           "outputSequenceLength: 3}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [x, y], "
                           "outputSequenceLength: 2, standardize: lower}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [x, y], "
                           "outputSequenceLength: 2, split: character}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [x, y], "
                           "outputSequenceLength: 2, default: x}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [x, y], "
                           "outputSequenceLength: 2, default: y}]\n"),
        fingerprint_of(
            &p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [x, y], encoding: count}]\n"),
        fingerprint_of(
            &p,
            "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: text, vocabulary: [x, y], encoding: multi_hot}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\nnaValues: [-1]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\nnaValues: [-2]\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\ndecimal: ','\n"),
        fingerprint_of(&p, "format: csv\nfiles: t.csv\nthousands: ','\n"),
        fingerprint_of(&p, "format: csv\nfiles: v.csv\nheader: false\n"),
        fingerprint_of(&p, "format: csv\nfiles: v.csv\nheader: false\nskipRows: 1\n"),
        fingerprint_of(&p, "format: csv\nfiles: v.csv\nheader: false\nskipRows: 2\n"),
        fingerprint_of(
            &p, "format: csv\nfiles: d.csv\ncolumns: [{name: a, type: date, parts: [day], default: 2020-01-02}]\n"),
        fingerprint_of(
            &p, "format: csv\nfiles: d.csv\ncolumns: [{name: a, type: date, parts: [month], default: 2020-01-02}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: d.csv\ncolumns: [{name: a, type: date, parts: [month], format: "
                           "'%m/%d', default: 01/02}]\n"),
        fingerprint_of(&p, "format: csv\nfiles: d.csv\ncolumns: [{name: a, type: date, parts: [month], format: "
                           "'%d/%m', default: 02/01}]\n"),
        fingerprint_of(
            &p, "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: category, vocabulary: [1, 3], encoding: int}]\n"),
        fingerprint_of(&p,
                       "format: csv\nfiles: t.csv\ncolumns: [{name: a, type: category, vocabulary: [1, 3], encoding: "
                       "int, numOovIndices: 1}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: category, numBins: 10, encoding: int}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: category, numBins: 11, encoding: int}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: category, numBins: 11, encoding: one_hot}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: category, numBins: 10, encoding: int, salt: 0}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: category, numBins: 10, encoding: int, salt: [0, 1]}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: category, numBins: 10, encoding: int, salt: [1, 0]}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: text, vocabulary: [x, y], outputSequenceLength: 2, ngrams: 2}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: text, vocabulary: [x, y], outputSequenceLength: 2, ngrams: [2]}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: text, vocabulary: [x, y], outputSequenceLength: 2, ngrams: [2, 1]}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: text, vocabulary: [x, y], encoding: tf_idf, idfWeights: [1, 2]}]\n"),
        fingerprint_of(&p, CSV_OF_A "type: text, vocabulary: [x, y], encoding: tf_idf, idfWeights: [1, 3]}]\n"),
        fingerprint_of(&p, CSV_OF_A "binBoundaries: [2], encoding: int}]\n"),
        fingerprint_of(&p, CSV_OF_A "binBoundaries: [2.5], encoding: int}]\n"),
        fingerprint_of(&p, CSV_OF_A "binBoundaries: [2, 3], encoding: int}]\n"),
        fingerprint_of(&p, CSV_OF_A "binBoundaries: [2, 3], encoding: one_hot}]\n"),
        0,
    };
    put_text(&p, "t.csv", "a,b\n1,2\n3,5\n");
    seen[COUNT_OF(seen) - 1] = fingerprint_of(&p, CSV_SPEC);
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(seen[i] != seen[j], "%zu and %zu", i, j);
}
END_TEST

/* Options that say the same. */
START_TEST(fingerprint_knows_what_options_mean)
{
    static const char *const SAME[][2] = {
        { CSV_OF_A "type: text, vocabulary: [x], outputSequenceLength: 2}]\n",
          CSV_OF_A "type: text, vocabulary: [x], outputSequenceLength: 2, ngrams: 1}]\n" },
        { CSV_OF_A "type: text, vocabulary: [x], outputSequenceLength: 2, ngrams: 3}]\n",
          CSV_OF_A "type: text, vocabulary: [x], outputSequenceLength: 2, ngrams: [1, 2, 3]}]\n" },
        { CSV_OF_A "type: category, numBins: 10, encoding: int, salt: 7}]\n",
          CSV_OF_A "type: category, numBins: 10, encoding: int, salt: [7, 7]}]\n" },
        { CSV_OF_A "type: text, vocabulary: [x, y], encoding: tf_idf, idfWeights: [1, 2]}]\n",
          CSV_OF_A "type: text, vocabulary: ['[UNK]', x, y], encoding: tf_idf, idfWeights: [1.5, 1, 2]}]\n" },
    };
    AUTO_FINI(place) p = place_new();
    put_text(&p, "t.csv", "a,b\n1,2\n3,4\n");
    for (size_t i = 0; i < COUNT_OF(SAME); i++)
        ck_assert_uint_eq(fingerprint_of(&p, SAME[i][0]), fingerprint_of(&p, SAME[i][1]));
}
END_TEST

START_TEST(fingerprint_knows_no_folder_time_or_compression)
{
    AUTO_FINI(place) a = place_new();
    AUTO_FINI(place) b = place_new();
    put_text(&a, "t.csv", "a,b\n1,2\n");
    put_gzip(&b.folder, "t.csv.gz", "a,b\n1,2\n", 8);
    uint64_t first = fingerprint_of(&a, CSV_SPEC);
    ck_assert_uint_eq(first, fingerprint_of(&b, CSV_SPEC));

    auto_free char *path = path_join(a.folder.path, "t.csv");
    struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_uint_eq(first, fingerprint_of(&a, CSV_SPEC));
}
END_TEST

/* A file that is converted by hand is the same file. */
START_TEST(fingerprint_knows_no_encoding)
{
    AUTO_FINI(place) p = place_new();
    put_text(&p, "t.csv", "a,b\n1,2\n3,4\n");
    uint64_t utf8 = fingerprint_of(&p, CSV_SPEC);
    put_utf16(&p, "t.csv", "a,b\n1,2\n3,4\n");
    ck_assert_uint_eq(fingerprint_of(&p, CSV_SPEC), utf8);
    put_text(&p, "t.csv", "\xC3\xB6,b\n1,2\n");
    uint64_t umlaut = fingerprint_of(&p, CSV_SPEC);
    put_text(&p, "t.csv", "\xF6,b\n1,2\n");
    ck_assert_uint_eq(fingerprint_of(&p, CSV_SPEC), umlaut);
    ck_assert_uint_ne(umlaut, utf8);
}
END_TEST

/* A large file is sampled: its header, its ends, its size and the bytes at the samples count. */
START_TEST(fingerprint_of_a_large_file_samples_it)
{
    size_t n = 3 << 20;
    auto_free unsigned char *data = xcalloc(n, 1);
    uint64_t first = data_fingerprint(data, n);
    ck_assert_uint_ne(first, data_fingerprint(data, n - 1));
    static const size_t AT[] = { 0, 5000, (64 << 10) - 1, (3 << 20) - 1, (3 << 20) - (64 << 10) };
    for (size_t i = 0; i < COUNT_OF(AT); i++) {
        data[AT[i]] = 1;
        ck_assert_uint_ne(first, data_fingerprint(data, n));
        data[AT[i]] = 0;
    }
    memset(data + n / 2, 1, n / 32);
    ck_assert_uint_ne(first, data_fingerprint(data, n));
}
END_TEST

/* Fingerprints are in checkpoints: they must be the same in every release and on every machine. */
START_TEST(fingerprint_is_what_it_was_in_earlier_releases)
{
    AUTO_FINI(place) p = place_new();
    put_text(&p, "t.csv", "a,b\n1,2\n3,4\n");
    ck_assert_uint_eq(fingerprint_of(&p, CSV_SPEC), 14506282021753815352U);
}
END_TEST

/* ---- loader ---- */

START_TEST(a_loader_refuses_a_space_of_other_data)
{
    AUTO_FINI(place) p = place_new();
    struct loader *l = NULL;
    struct err e;
    put_text(&p, "t.csv", "a,b\n1,2\n3,4\n");
    AUTO(dataset) *d = open_ok(&p, CSV_SPEC);
    struct ordinal_space space = space_of(d, 4, true);
    space.examples = 3;
    ck_assert_int_eq(loader_new(d, &space, NULL, &l, &e), -1);
    ck_assert_str_eq(e.msg, "batches of 4 out of 3 examples, the data has 2");
    space.examples = 2;
    space.batch_size = 0;
    ck_assert_int_eq(loader_new(d, &space, NULL, &l, &e), -1);
    space.batch_size = INT64_MAX; /* buffers are no larger than the data */
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    loader_free(l);
}
END_TEST

/* A record that is damaged after the loader has opened it: the error is the same with and without a hint, and the next
 * batch is read. */
START_TEST(a_damaged_record_is_told_with_and_without_a_hint)
{
    AUTO_FINI(place) p = place_new();
    AUTO_FINI(buf) b = BUF_INIT;
    AUTO(loader) *l = NULL;
    struct err e;
    struct batch batch;
    make_tfrecord(0, 6, &b);
    b.data[b.len - 10] ^= 1; /* in the last record */
    put_file(&p.folder, "t", b.data, b.len);
    AUTO(dataset) *d = open_ok(&p, "format: tfrecord\nfiles: t\n"
                                   "columns: [{name: x, type: float, shape: [3]}, {name: label, type: int64}]\n");
    struct ordinal_space space = space_of(d, 2, false);
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    for (int round = 0; round < 2; round++) {
        ck_ok_e(loader_get(l, 1, &batch, &e));
        if (round == 1)
            loader_hint(l, 2);
        ck_assert_int_eq(loader_get(l, 2, &batch, &e), -1);
        ck_assert_int_eq(e.code, ERR_INPUT);
        ck_assert_msg(strstr(e.msg, "/t: record 5 at byte ") != NULL, "%s", e.msg);
        ck_assert_msg(strstr(e.msg, "CRC-32C") != NULL, "%s", e.msg);
        memset(&e, 0, sizeof(e));
    }
    ck_ok_e(loader_get(l, 0, &batch, &e));
    ck_assert_uint_eq(batch.n, 2);
}
END_TEST

static void put_npz(const struct place *p, int64_t n, bool deflated, bool more)
{
    AUTO_FINI(buf) x = BUF_INIT;
    AUTO_FINI(buf) y = BUF_INIT;
    AUTO_FINI(buf) archive = BUF_INIT;
    struct zip_out z = { .out = &archive };
    make_npy(n, &x, &y);
    if (more)
        put_zip_member(&z, "other.npy", y.data, y.len, deflated);
    put_zip_member(&z, "x.npy", x.data, x.len, deflated);
    put_zip_end(&z);
    put_file(&p->folder, "t.npz", archive.data, archive.len);
}

/* The fingerprint does not depend on how they are packed, nor on what else the file holds. */
START_TEST(the_identity_of_an_npz_file_is_that_of_the_array)
{
    static const char SPEC[] = "format: npz\nfiles: t.npz\nfeatures: x\n";
    AUTO_FINI(place) p = place_new();
    put_npz(&p, 50, false, false);
    uint64_t stored = fingerprint_of(&p, SPEC);
    put_npz(&p, 50, true, true);
    ck_assert_uint_eq(fingerprint_of(&p, SPEC), stored);
    put_npz(&p, 51, true, true);
    ck_assert_uint_ne(fingerprint_of(&p, SPEC), stored);
}
END_TEST

START_TEST(the_identity_holds_the_order_of_the_labels)
{
    AUTO_FINI(place) p = place_new();
    put_text(&p, "t.csv", "a,b,c\n1,2,3\n4,5,6\n");
    uint64_t two = fingerprint_of(&p, "format: csv\nfiles: t.csv\nlabel: [a, b]\n");
    ck_assert_uint_ne(fingerprint_of(&p, "format: csv\nfiles: t.csv\nlabel: [b, a]\n"), two);
    ck_assert_uint_ne(fingerprint_of(&p, "format: csv\nfiles: t.csv\nlabel: [a, c]\n"), two);
    ck_assert_uint_ne(fingerprint_of(&p, "format: csv\nfiles: t.csv\nlabel: a\n"), two);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/cache");
    TCase *t = tcase_create("cache");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, an_index_is_made_once_and_used_again);
    tcase_add_test(t, a_changed_file_gets_a_new_index);
    tcase_add_test(t, a_damaged_index_is_made_anew);
    tcase_add_test(t, without_a_writable_cache_the_index_stays_in_memory);
    tcase_add_test(t, gzip_needs_a_cache_and_says_so);
    tcase_add_test(t, the_identity_of_an_npz_file_is_that_of_the_array);
    tcase_add_test(t, the_identity_holds_the_order_of_the_labels);
    tcase_add_test(t, a_full_disk_leaves_nothing_half_unpacked);
    tcase_add_test(t, many_processes_open_the_same_gzip_file);
    tcase_add_test(t, many_processes_open_the_same_utf16_file);
    tcase_add_test(t, a_conversion_needs_a_cache_and_says_so);
    tcase_add_test(t, a_conversion_is_made_once_and_used_again);
    tcase_add_test(t, a_changed_large_file_is_converted_again);
    tcase_add_test(t, a_full_disk_leaves_nothing_half_converted);
    tcase_add_test(t, another_encoding_is_another_copy);
    tcase_add_test(t, a_large_file_is_checked_once);
    tcase_add_test(t, fingerprint_changes_with_content_name_and_options);
    tcase_add_test(t, fingerprint_knows_what_options_mean);
    tcase_add_test(t, fingerprint_knows_no_folder_time_or_compression);
    tcase_add_test(t, fingerprint_knows_no_encoding);
    tcase_add_test(t, fingerprint_of_a_large_file_samples_it);
    tcase_add_test(t, fingerprint_is_what_it_was_in_earlier_releases);
    tcase_add_test(t, a_loader_refuses_a_space_of_other_data);
    tcase_add_test(t, a_damaged_record_is_told_with_and_without_a_hint);
    return s;
}
