#include "check_main.h"
#include "cli/tensors.h"

#include <string.h>

#include "base/file.h"
#include "codec/json.h"

static const float KERNEL[6] = { 1, 2, 3, 4, 5, 6 };
static const float BIAS[3] = { -1, 0, 0.5F };
static const int64_t STEP[1] = { 42 };
static const void *const DATA[] = { KERNEL, BIAS, STEP };
static const struct tensor_entry ENTRIES[] = {
    { .name = "dense/kernel", .type = TENSOR_F32, .rank = 2, .dims = { 2, 3 }, .bytes = sizeof(KERNEL) },
    { .name = "dense/bias", .type = TENSOR_F32, .rank = 1, .dims = { 3 }, .bytes = sizeof(BIAS) },
    { .name = "global_step", .type = TENSOR_I64, .rank = 0, .bytes = sizeof(STEP) },
};

static int read_entry(void *user, size_t i, void *ret, struct err *e)
{
    (void)user;
    (void)e;
    memcpy(ret, DATA[i], ENTRIES[i].bytes);
    return 0;
}
static const struct tensor_source SOURCE = {
    .entries = ENTRIES, .n = COUNT_OF(ENTRIES), .read = read_entry, .step = "42"
};

static int into_buf(void *user, const void *data, size_t n, struct err *e)
{
    (void)e;
    buf_add(user, data, n);
    return 0;
}

START_TEST(safetensors_is_what_its_readme_says)
{
    struct err e = { 0 };
    AUTO_FINI(buf) out = BUF_INIT;
    struct tensor_sink sink = { into_buf, &out };
    ck_ok_e(safetensors_write(&SOURCE, &sink, &e));

    struct reader r = reader_of(out.data, out.len);
    uint64_t n = 0;
    const void *text = NULL;
    ck_assert_int_eq(reader_u64le(&r, &n), 0);
    ck_assert_uint_eq(n % 8, 0);
    ck_assert_int_eq(reader_bytes(&r, n, &text), 0);
    json_auto_t *header = NULL;
    ck_ok_e(json_parse(text, n, "header", &header, &e));
    ck_assert_int_eq(json_integer_value(json_at(header, "global_step.data_offsets.0")), 0); /* largest elements first */
    ck_assert_int_eq(json_integer_value(json_at(json_object_get(header, "dense/bias"), "data_offsets.0")), 8);
    ck_assert_int_eq(json_integer_value(json_at(json_object_get(header, "dense/kernel"), "data_offsets.0")), 20);
    ck_assert_int_eq(json_integer_value(json_at(json_object_get(header, "dense/kernel"), "data_offsets.1")), 44);
    ck_assert_int_eq(json_integer_value(json_at(json_object_get(header, "dense/kernel"), "shape.1")), 3);
    ck_assert_str_eq(json_string_value(json_at(header, "__metadata__.step")), "42");
    ck_assert_uint_eq(reader_left(&r), 44);
    ck_assert_mem_eq(r.p, STEP, 8);
    ck_assert_mem_eq(r.p + 8, BIAS, 12);
    ck_assert_mem_eq(r.p + 20, KERNEL, 24);
}
END_TEST

START_TEST(npz_is_what_numpy_writes)
{
    struct err e = { 0 };
    AUTO_FINI(buf) out = BUF_INIT;
    AUTO_FINI(buf) want = BUF_INIT;
    struct tensor_sink sink = { into_buf, &out };
    ck_ok_e(npz_write(&SOURCE, &sink, &e));
    /* golden: read with numpy.load when it was made */
    ck_ok_e(file_read("test/data/cli/tensors.npz", 1 << 20, &want, &e));
    ck_assert_uint_eq(out.len, want.len);
    ck_assert_mem_eq(out.data, want.data, want.len);
}
END_TEST

START_TEST(what_npz_cannot_hold_is_said)
{
    struct err e = { 0 };
    AUTO_FINI(buf) out = BUF_INIT;
    struct tensor_sink sink = { into_buf, &out };
    struct tensor_entry half = { .name = "x", .type = TENSOR_BF16, .rank = 1, .dims = { 1 }, .bytes = 2 };
    struct tensor_entry large = {
        .name = "x", .type = TENSOR_F32, .rank = 1, .dims = { 1LL << 30 }, .bytes = 1ULL << 32
    };
    struct tensor_source source = { .entries = &half, .n = 1, .read = read_entry };
    ck_assert_int_eq(npz_write(&source, &sink, &e), -1);
    ck_assert_str_eq(e.msg, "x: numpy has no BF16; export as safetensors");
    source.entries = &large;
    ck_assert_int_eq(npz_write(&source, &sink, &e), -1);
    ck_assert(err_is(&e, ERR_INPUT));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tensors");
    TCase *t = tcase_create("tensors");
    tcase_add_test(t, safetensors_is_what_its_readme_says);
    tcase_add_test(t, npz_is_what_numpy_writes);
    tcase_add_test(t, what_npz_cannot_hold_is_said);
    suite_add_tcase(s, t);
    return s;
}
