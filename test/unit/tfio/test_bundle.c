/* TensorFlow's files are read as TensorFlow reads them; ours are byte for byte like TensorFlow's; damage is
 * detected. */
#include "check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "tfio/bundle.h"
#include "tfio/bundle_index.h"

#define DATA "test/data/train/"
enum { FILE_MAX = 1 << 20 };

/* ---- a temporary folder ---- */

static char folder[64];

static void setup(void)
{
    str_fmt(folder, sizeof(folder), "/tmp/trainyard-bundle-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    AUTO_FINI(strlist) names = { 0 };
    struct err e = { .code = ERR_NONE };
    file_fault(NULL, 0, 0);
    ck_ok_e(dir_list(folder, &names, &e));
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *path = path_join(folder, names.items[i]);
        unlink(path);
    }
    rmdir(folder);
}

static char *in_folder(const char *name)
{
    return path_join(folder, name);
}

static void load(const char *path, struct buf *ret)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(file_read(path, FILE_MAX, ret, &e));
}

static void store(const char *path, const void *data, size_t n)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(file_write(path, data, n, &e));
}

static void copy(const char *from, const char *to)
{
    AUTO_FINI(buf) content = BUF_INIT;
    load(from, &content);
    store(to, content.data, content.len);
}

/* ---- reading what TensorFlow wrote ---- */

/* CRC-32 as in zlib, which the expected files use. */
static uint32_t crc32_of(const struct buf *b)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < b->len; i++) {
        crc ^= (unsigned char)b->data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xedb88320 & (0U - (crc & 1)));
    }
    return ~crc;
}

static int read_tensor(struct bundle *b, const struct bundle_entry *entry, struct buf *ret, struct err *e)
{
    if (entry->dtype == DT_STRING) {
        for (size_t i = 0; i < shape_elements(&entry->shape); i++) {
            if (i > 0)
                buf_char(ret, 0);
            if (bundle_read_string(b, entry, i, ret, e) < 0)
                return -1;
        }
        return 0;
    }
    buf_reserve(ret, (size_t)entry->size);
    ret->len = (size_t)entry->size;
    return bundle_read(b, entry, 0, (size_t)entry->size, ret->data, e);
}

static void describe(struct bundle *b, const struct bundle_entry *entry, struct buf *out)
{
    AUTO_FINI(buf) bytes = BUF_INIT;
    struct err e = { .code = ERR_NONE };

    ck_ok_e(read_tensor(b, entry, &bytes, &e));
    buf_printf(out, "%s\t%s\t[", entry->name, dtype_name(entry->dtype));
    for (int i = 0; i < entry->shape.rank; i++)
        buf_printf(out, "%s%lld", i > 0 ? ", " : "", (long long)entry->shape.dim[i]);
    buf_printf(out, "]\tcrc %08x\n", crc32_of(&bytes));
}

/* The expected lines without the sum, which the crc makes unnecessary. */
static void without_sums(struct buf *lines, struct buf *out)
{
    char *rest = NULL;
    for (char *line = strtok_r(lines->data, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *sum = strstr(line, "\tsum "), *crc = strstr(line, "\tcrc ");
        ck_assert(sum != NULL && crc != NULL);
        *sum = '\0';
        buf_printf(out, "%s%s\n", line, crc);
    }
}

START_TEST(reads_what_tensorflow_wrote)
{
    static const struct {
        const char *prefix, *expected;
    } FILES[] = {
        { "ckpt_tf1/model.ckpt-3", "ckpt_tf1" },
        { "ckpt_2ps/model.ckpt-42", "ckpt_2ps" },
        { "ckpt_types/t", "ckpt_types" },
        { "ckpt_tf2_keras2/ckpt-1", "ckpt_tf2_keras2" },
        { "ckpt_tf2_keras3/ckpt-1", "ckpt_tf2_keras3" },
    };

    for (size_t i = 0; i < COUNT_OF(FILES); i++) {
        auto_free char *prefix = xasprintf(DATA "tf_files/%s", FILES[i].prefix);
        auto_free char *expected = xasprintf(DATA "tf_files/expected/%s.txt", FILES[i].expected);
        struct err e = { .code = ERR_NONE };
        AUTO_FINI(buf) lines = BUF_INIT;
        AUTO_FINI(buf) want = BUF_INIT;
        AUTO_FINI(buf) got = BUF_INIT;
        AUTO(bundle) *b = NULL;

        ck_ok_e(bundle_open(prefix, &b, &e));
        for (size_t t = 0; t < bundle_count(b); t++) {
            const struct bundle_entry *entry = bundle_entry(b, t);
            ck_assert_ptr_eq(bundle_find(b, entry->name), entry);
            describe(b, entry, &got);
        }
        load(expected, &lines);
        without_sums(&lines, &want);
        ck_assert_str_eq(got.data, want.data);
        ck_assert_ptr_null(bundle_find(b, "no such tensor"));
    }
}
END_TEST

START_TEST(a_part_of_a_partitioned_tensor_is_the_same_as_of_the_whole)
{
    struct err e = { .code = ERR_NONE };
    AUTO(bundle) *b = NULL;
    unsigned char whole[84], part[84];

    ck_ok_e(bundle_open(DATA "tf_files/ckpt_2ps/model.ckpt-42", &b, &e));
    const struct bundle_entry *emb = bundle_find(b, "emb");
    ck_assert_uint_eq(emb->size, sizeof(whole)); /* [7, 3], rows 0..3 in one shard, 4..6 in the other */
    ck_ok_e(bundle_read(b, emb, 0, sizeof(whole), whole, &e));
    for (size_t begin = 0; begin <= sizeof(whole); begin++) {
        for (size_t n = 0; n <= sizeof(whole) - begin; n++) {
            ck_ok_e(bundle_read(b, emb, begin, n, part, &e));
            ck_assert_mem_eq(part, whole + begin, n);
        }
    }
    ck_assert_int_eq(bundle_read(b, emb, 80, 5, part, &e), -1);
}
END_TEST

/* ---- writing ---- */

START_TEST(writes_the_bytes_that_tensorflow_writes)
{
    auto_free char *prefix = in_folder("global_step");
    auto_free char *index = in_folder("global_step.index"), *data = in_folder("global_step.data-00000-of-00001");
    const struct shape scalar = { .rank = 0 };
    const int64_t step = 100;
    struct err e = { .code = ERR_NONE };
    AUTO(bundle_writer) *w = NULL;
    AUTO_FINI(buf) got = BUF_INIT;
    AUTO_FINI(buf) want = BUF_INIT;

    ck_ok_e(bundle_writer_open(prefix, &w, &e));
    ck_ok_e(bundle_writer_add_all(w, "global_step", DT_INT64, &scalar, &step, &e));
    ck_ok_e(bundle_writer_finish(w, &e));
    load(index, &got);
    load(DATA "tf_bundle/global_step.index", &want);
    ck_assert_uint_eq(got.len, want.len);
    ck_assert_mem_eq(got.data, want.data, want.len);
    load(data, &got);
    ck_assert_uint_eq(got.len, sizeof(step));
    ck_assert_mem_eq(got.data, &step, sizeof(step));
}
END_TEST

/* A file of TensorFlow with strings, every type and long common prefixes, read and written again. Index and data are
 * the same, since TensorFlow orders tensors by name too. */
static void check_rewritten(const char *from)
{
    auto_free char *prefix = in_folder("copy"), *index = in_folder("copy.index");
    auto_free char *data = in_folder("copy.data-00000-of-00001");
    auto_free char *from_index = xasprintf("%s.index", from), *from_data = xasprintf("%s.data-00000-of-00001", from);
    struct err e = { .code = ERR_NONE };
    AUTO(bundle) *b = NULL;
    AUTO(bundle_writer) *w = NULL;

    ck_ok_e(bundle_open(from, &b, &e));
    ck_ok_e(bundle_writer_open(prefix, &w, &e));
    for (size_t i = 0; i < bundle_count(b); i++) {
        const struct bundle_entry *entry = bundle_entry(b, i);
        AUTO_FINI(buf) bytes = BUF_INIT;
        if (entry->dtype == DT_STRING) {
            enum { STRINGS_MAX = 8 };
            struct buf strings[STRINGS_MAX];
            const char *texts[STRINGS_MAX];
            size_t lengths[STRINGS_MAX], n = shape_elements(&entry->shape);
            ck_assert_uint_le(n, STRINGS_MAX);
            for (size_t k = 0; k < n; k++) {
                strings[k] = (struct buf)BUF_INIT;
                ck_ok_e(bundle_read_string(b, entry, k, &strings[k], &e));
                texts[k] = strings[k].data;
                lengths[k] = strings[k].len;
            }
            ck_ok_e(bundle_writer_add_strings(w, entry->name, &entry->shape, texts, lengths, n, &e));
            for (size_t k = 0; k < n; k++)
                buf_fini(&strings[k]);
            continue;
        }
        ck_ok_e(read_tensor(b, entry, &bytes, &e));
        ck_ok_e(bundle_writer_add_all(w, entry->name, entry->dtype, &entry->shape, bytes.data, &e));
    }
    ck_ok_e(bundle_writer_finish(w, &e));

    AUTO_FINI(buf) got = BUF_INIT;
    AUTO_FINI(buf) want = BUF_INIT;
    load(index, &got);
    load(from_index, &want);
    ck_assert_msg(got.len == want.len && memcmp(got.data, want.data, want.len) == 0, "%s: index differs", from);
    load(data, &got);
    load(from_data, &want);
    ck_assert_msg(got.len == want.len && memcmp(got.data, want.data, want.len) == 0, "%s: data differ", from);
    unlink(index);
    unlink(data);
}

START_TEST(a_copy_of_tensorflows_file_has_the_same_bytes)
{
    check_rewritten(DATA "tf_files/ckpt_types/t");
}
END_TEST

START_TEST(ranges_of_several_tensors_may_alternate)
{
    enum { N = 1000 };
    auto_free char *prefix = in_folder("m");
    const struct shape vector = shape_of(1, (int64_t[]){ N }), odd = shape_of(3, (int64_t[]){ 3, 0, 2 });
    struct err e = { .code = ERR_NONE };
    AUTO(bundle_writer) *w = NULL;
    AUTO(bundle) *b = NULL;
    size_t first, second, empty;
    float a[N], c[N], got[N];

    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        c[i] = -(float)i;
    }
    ck_ok_e(bundle_writer_open(prefix, &w, &e));
    ck_ok_e(bundle_writer_add(w, "z", DT_FLOAT, &vector, &first, &e));
    ck_ok_e(bundle_writer_add(w, "a", DT_FLOAT, &vector, &second, &e));
    ck_ok_e(bundle_writer_add(w, "empty", DT_FLOAT, &odd, &empty, &e));
    for (size_t i = 0; i < N; i += 100) {
        ck_ok_e(bundle_writer_put(w, first, i * 4, a + i, 400, &e));
        ck_ok_e(bundle_writer_put(w, second, i * 4, c + i, 400, &e));
    }
    ck_ok_e(bundle_writer_finish(w, &e));

    ck_ok_e(bundle_open(prefix, &b, &e));
    ck_assert_uint_eq(bundle_count(b), 3);
    ck_assert_str_eq(bundle_entry(b, 0)->name, "a");
    ck_ok_e(bundle_read(b, bundle_find(b, "z"), 0, sizeof(got), got, &e));
    ck_assert_mem_eq(got, a, sizeof(got));
    ck_ok_e(bundle_read(b, bundle_find(b, "a"), 400, 400, got, &e));
    ck_assert_mem_eq(got, c + 100, 400);
    ck_assert_uint_eq(bundle_find(b, "empty")->size, 0);
    ck_ok_e(bundle_check(b, bundle_find(b, "empty"), &e));
}
END_TEST

/* Tens of thousands of names make several data blocks, whose separators must make every name findable. */
START_TEST(an_index_of_many_blocks_is_read_back)
{
    enum { N = 20000 };
    auto_free char *prefix = in_folder("big"), *index = in_folder("big.index");
    const struct shape scalar = { .rank = 0 };
    struct err e = { .code = ERR_NONE };
    AUTO(bundle_writer) *w = NULL;
    AUTO(bundle) *b = NULL;
    uint64_t size;

    ck_ok_e(bundle_writer_open(prefix, &w, &e));
    for (int i = 0; i < N; i++) {
        auto_free char *name = xasprintf("scope_%d/layer_%d/kernel", i % 7, i);
        ck_ok_e(bundle_writer_add_all(w, name, DT_INT32, &scalar, &i, &e));
    }
    ck_ok_e(bundle_writer_finish(w, &e));
    ck_ok_e(file_size(index, &size, &e));
    ck_assert_uint_gt(size, 2 * 262144);
    ck_ok_e(bundle_open(prefix, &b, &e));
    ck_assert_uint_eq(bundle_count(b), N);
    for (int i = 0; i < N; i += 97) {
        auto_free char *name = xasprintf("scope_%d/layer_%d/kernel", i % 7, i);
        int got;
        ck_assert_ptr_nonnull(bundle_find(b, name));
        ck_ok_e(bundle_read(b, bundle_find(b, name), 0, sizeof(got), &got, &e));
        ck_assert_int_eq(got, i);
    }
}
END_TEST

START_TEST(wrong_use_of_the_writer_is_an_error)
{
    auto_free char *prefix = in_folder("m");
    const struct shape two = shape_of(1, (int64_t[]){ 2 });
    const char *const strings[] = { "x" };
    struct err e = { .code = ERR_NONE };
    AUTO(bundle_writer) *w = NULL;
    float values[2] = { 1, 2 };
    size_t id;

    ck_ok_e(bundle_writer_open(prefix, &w, &e));
    ck_ok_e(bundle_writer_add(w, "v", DT_FLOAT, &two, &id, &e));
    ck_assert_int_eq(bundle_writer_add(w, "v", DT_FLOAT, &two, &id, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "tensor 'v' is given twice"));
    ck_assert_int_eq(bundle_writer_put(w, id, 4, values, 4, &e), -1); /* a gap */
    ck_assert_int_eq(bundle_writer_put(w, id, 0, values, 12, &e), -1);
    ck_assert_int_eq(bundle_writer_put(w, 9, 0, values, 4, &e), -1);
    ck_assert_int_eq(bundle_writer_add(w, "s", DT_STRING, &two, &id, &e), -1);
    ck_assert_int_eq(bundle_writer_add_strings(w, "s", &two, strings, (size_t[]){ 1 }, 1, &e), -1);
    ck_ok_e(bundle_writer_put(w, id, 0, values, 4, &e));
    ck_assert_int_eq(bundle_writer_finish(w, &e), -1);
    ck_assert_int_eq(e.code, ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(e.msg, "tensor 'v' has only 4 of 8 bytes"));
}
END_TEST

static int write_small(const char *prefix, float value, struct err *e)
{
    const struct shape scalar = { .rank = 0 };
    AUTO(bundle_writer) *w = NULL;
    if (bundle_writer_open(prefix, &w, e) < 0 || bundle_writer_add_all(w, "v", DT_FLOAT, &scalar, &value, e) < 0)
        return -1;
    return bundle_writer_finish(w, e);
}

static size_t files_in_folder(void)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) names = { 0 };
    ck_ok_e(dir_list(folder, &names, &e));
    return names.n;
}

START_TEST(what_exists_is_never_replaced_and_what_failed_leaves_nothing)
{
    auto_free char *prefix = in_folder("m");
    struct err e = { .code = ERR_NONE };
    AUTO(bundle) *b = NULL;
    float got;

    ck_ok_e(write_small(prefix, 1, &e));
    ck_assert_int_eq(write_small(prefix, 2, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_ok_e(bundle_open(prefix, &b, &e));
    ck_ok_e(bundle_read(b, bundle_find(b, "v"), 0, 4, &got, &e));
    ck_assert(got == 1);
    ck_assert_uint_eq(files_in_folder(), 2);
}
END_TEST

/* A data file alone may belong to another process, which is about to write the index: it is not replaced either. */
START_TEST(an_existing_data_file_is_not_replaced)
{
    auto_free char *prefix = in_folder("m"), *data = in_folder("m.data-00000-of-00001");
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    ck_ok_e(file_write(data, "theirs", 6, &e));
    ck_assert_int_eq(write_small(prefix, 1, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_ok_e(file_read(data, 100, &text, &e));
    ck_assert_str_eq(text.data, "theirs");
    ck_assert_uint_eq(files_in_folder(), 1);
}
END_TEST

/* When a system call fails: an error, no index, no data, and the same prefix can be written afterwards. */
START_TEST(a_full_disk_at_any_moment_leaves_no_checkpoint)
{
    static const char *const CALLS[] = { "open", "write", "fsync", "rename", "link" };
    auto_free char *prefix = in_folder("m"), *index = in_folder("m.index"), *data = in_folder("m.data-00000-of-00001");
    int failures = 0;

    for (size_t c = 0; c < COUNT_OF(CALLS); c++) {
        for (int n = 1;; n++) {
            struct err e = { .code = ERR_NONE };
            file_fault(CALLS[c], n, ENOSPC);
            int result = write_small(prefix, 1, &e);
            file_fault(NULL, 0, 0);
            if (result == 0)
                break;
            ck_assert_int_eq(e.code, ERR_NO_SPACE); /* only the user can make room */
            ck_assert_uint_eq(files_in_folder(), 0);
            failures++;
        }
        ck_assert_int_eq(unlink(index), 0);
        ck_assert_int_eq(unlink(data), 0);
        ck_assert_uint_eq(files_in_folder(), 0);
    }
    ck_assert_int_ge(failures, 8);
}
END_TEST

/* ---- damage ---- */

/* Reads everything; -1 on any error. */
static int read_all(const char *prefix, struct err *e)
{
    AUTO(bundle) *b = NULL;
    if (bundle_open(prefix, &b, e) < 0)
        return -1;
    for (size_t i = 0; i < bundle_count(b); i++) {
        AUTO_FINI(buf) bytes = BUF_INIT;
        if (bundle_entry(b, i)->dtype != DT_STRING && bundle_check(b, bundle_entry(b, i), e) < 0)
            return -1;
        if (read_tensor(b, bundle_entry(b, i), &bytes, e) < 0)
            return -1;
    }
    return 0;
}

static const struct {
    const char *prefix;
    const char *files[3];
} DAMAGED[] = {
    { "tf_bundle/global_step", { ".index", ".data-00000-of-00001" } },
    { "tf_files/ckpt_types/t", { ".index", ".data-00000-of-00001" } },
    { "tf_files/ckpt_2ps/model.ckpt-42", { ".index", ".data-00000-of-00002", ".data-00001-of-00002" } },
    { "tf_files/ckpt_tf1/model.ckpt-3", { ".index", ".data-00000-of-00001" } },
};

START_TEST(a_flipped_bit_anywhere_is_noticed_and_its_file_named)
{
    auto_free char *prefix = in_folder("x");

    for (size_t d = 0; d < COUNT_OF(DAMAGED); d++) {
        for (int f = 0; f < 3 && DAMAGED[d].files[f] != NULL; f++) {
            auto_free char *from = xasprintf(DATA "%s%s", DAMAGED[d].prefix, DAMAGED[d].files[f]);
            auto_free char *to = xasprintf("%s%s", prefix, DAMAGED[d].files[f]);
            copy(from, to);
        }
        struct err e = { .code = ERR_NONE };
        ck_ok_e(read_all(prefix, &e));
        for (int f = 0; f < 3 && DAMAGED[d].files[f] != NULL; f++) {
            auto_free char *path = xasprintf("%s%s", prefix, DAMAGED[d].files[f]);
            AUTO_FINI(buf) good = BUF_INIT;
            load(path, &good);
            for (size_t i = 0; i < good.len * 8; i += 3) {
                AUTO_FINI(buf) bad = BUF_INIT;
                buf_add(&bad, good.data, good.len);
                bad.data[i / 8] = (char)(bad.data[i / 8] ^ (1 << i % 8));
                FILE *file = fopen(path, "r+be");
                ck_assert(file != NULL && fwrite(bad.data, 1, bad.len, file) == bad.len && fclose(file) == 0);
                struct err why = { .code = ERR_NONE };
                ck_assert_msg(read_all(prefix, &why) == -1, "bit %zu of %s is not noticed", i, path);
                ck_assert_int_eq(why.code, ERR_INPUT);
                ck_assert_msg(strstr(why.msg, DAMAGED[d].files[f]) != NULL, "'%s' does not name %s", why.msg, path);
            }
            store(path, good.data, good.len);
        }
    }
}
END_TEST

START_TEST(every_cut_is_noticed)
{
    auto_free char *prefix = in_folder("x");

    for (size_t d = 0; d < COUNT_OF(DAMAGED); d++) {
        for (int f = 0; f < 3 && DAMAGED[d].files[f] != NULL; f++) {
            auto_free char *from = xasprintf(DATA "%s%s", DAMAGED[d].prefix, DAMAGED[d].files[f]);
            auto_free char *to = xasprintf("%s%s", prefix, DAMAGED[d].files[f]);
            copy(from, to);
        }
        for (int f = 0; f < 3 && DAMAGED[d].files[f] != NULL; f++) {
            auto_free char *path = xasprintf("%s%s", prefix, DAMAGED[d].files[f]);
            AUTO_FINI(buf) good = BUF_INIT;
            load(path, &good);
            for (size_t n = good.len; n-- > 0;) {
                ck_assert_int_eq(truncate(path, (off_t)n), 0);
                struct err why = { .code = ERR_NONE };
                ck_assert_msg(read_all(prefix, &why) == -1, "%s cut at %zu is not noticed", path, n);
                ck_assert_int_eq(why.code, ERR_INPUT);
            }
            store(path, good.data, good.len);
        }
    }
}
END_TEST

/* Damage with right checksums, as an attacker or a bug of another writer could produce. The test asserts only that each
 * read ends; sanitizers watch. */
START_TEST(any_changed_byte_of_an_index_with_right_checksums_is_survived)
{
    struct rng r = rng_at(5, RNG_TEST, 0, 0);

    for (size_t d = 0; d < COUNT_OF(DAMAGED); d++) {
        auto_free char *path = xasprintf(DATA "%s.index", DAMAGED[d].prefix);
        AUTO_FINI(buf) good = BUF_INIT;
        load(path, &good);
        for (size_t i = 0; i < good.len * 16; i++) {
            AUTO_FINI(buf) bad = BUF_INIT;
            AUTO_FINI(bundle_index) x = { .n = 0 };
            struct err why = { .code = ERR_NONE };
            buf_add(&bad, good.data, good.len);
            bad.data[i / 16] = (char)rng_u32(&r);
            if (bundle_index_read(bad.data, bad.len, false, &x, &why) < 0)
                ck_assert_str_ne(why.msg, "");
        }
    }
}
END_TEST

START_TEST(errors_say_what_is_wrong)
{
    auto_free char *prefix = in_folder("m"), *data = in_folder("m.data-00000-of-00001"), *index = in_folder("m.index");
    struct err e = { .code = ERR_NONE };
    AUTO(bundle) *b = NULL;

    ck_assert_int_eq(bundle_open(prefix, &b, &e), -1);
    ck_assert_int_eq(e.code, ERR_NOT_FOUND);
    ck_ok_e(write_small(prefix, 1, &e));
    ck_assert_int_eq(truncate(data, 3), 0);
    ck_assert_int_eq(bundle_open(prefix, &b, &e), -1);
    auto_free char *cut = xasprintf("%s: tensor 'v' ends beyond the end of the file: the file is truncated", data);
    ck_assert_str_eq(e.msg, cut);
    store(data, "\0\0\0\0", 4);
    ck_ok_e(bundle_open(prefix, &b, &e));
    float got;
    ck_assert_int_eq(bundle_read(b, bundle_find(b, "v"), 0, 4, &got, &e), -1);
    auto_free char *damaged = xasprintf("%s: checksum of tensor 'v' is wrong: the file is damaged", data);
    ck_assert_str_eq(e.msg, damaged);
    bundle_free(TAKE(b));
    store(index, "hello", 5);
    ck_assert_int_eq(bundle_open(prefix, &b, &e), -1);
    auto_free char *no_table = xasprintf("%s: too short for a checkpoint index", index);
    ck_assert_str_eq(e.msg, no_table);
}
END_TEST

/* ---- keys of parts: values from ordered_code_test.cc's rules, and from the file ckpt_2ps ---- */

START_TEST(signed_numbers_are_coded_in_order)
{
    static const struct {
        int64_t v;
        const char *bytes;
        size_t n;
    } CASES[] = {
        { 0, "\x80", 1 },
        { 4, "\x84", 1 },
        { -1, "\x7f", 1 },
        { 63, "\xbf", 1 },
        { -64, "\x40", 1 },
        { 64, "\xc0\x40", 2 },
        { -65, "\x3f\xbf", 2 },
        { 8191, "\xdf\xff", 2 },
        { 8192, "\xe0\x20\x00", 3 },
        { INT64_MAX, "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff", 10 },
        { INT64_MIN, "\x00\x3f\x80\x00\x00\x00\x00\x00\x00\x00", 10 },
    };
    AUTO_FINI(buf) previous = BUF_INIT;

    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        AUTO_FINI(buf) b = BUF_INIT;
        bundle_put_signed(&b, CASES[i].v);
        ck_assert_msg(b.len == CASES[i].n && memcmp(b.data, CASES[i].bytes, b.len) == 0, "%lld", (long long)CASES[i].v);
    }
    for (int64_t v = -100000; v < 100000; v += 7) { /* bytes sort as the numbers do */
        AUTO_FINI(buf) b = BUF_INIT;
        bundle_put_signed(&b, v);
        ck_assert(memcmp(previous.data, b.data, MIN(previous.len, b.len)) < 0 || previous.len == 0);
        buf_clear(&previous);
        buf_add(&previous, b.data, b.len);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("bundle");
    TCase *c = tcase_create("bundle");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, reads_what_tensorflow_wrote);
    tcase_add_test(c, a_part_of_a_partitioned_tensor_is_the_same_as_of_the_whole);
    tcase_add_test(c, writes_the_bytes_that_tensorflow_writes);
    tcase_add_test(c, a_copy_of_tensorflows_file_has_the_same_bytes);
    tcase_add_test(c, ranges_of_several_tensors_may_alternate);
    tcase_add_test(c, an_index_of_many_blocks_is_read_back);
    tcase_add_test(c, wrong_use_of_the_writer_is_an_error);
    tcase_add_test(c, what_exists_is_never_replaced_and_what_failed_leaves_nothing);
    tcase_add_test(c, an_existing_data_file_is_not_replaced);
    tcase_add_test(c, a_full_disk_at_any_moment_leaves_no_checkpoint);
    tcase_add_test(c, a_flipped_bit_anywhere_is_noticed_and_its_file_named);
    tcase_add_test(c, every_cut_is_noticed);
    tcase_add_test(c, any_changed_byte_of_an_index_with_right_checksums_is_survived);
    tcase_add_test(c, errors_say_what_is_wrong);
    tcase_add_test(c, signed_numbers_are_coded_in_order);
    suite_add_tcase(s, c);
    return s;
}
