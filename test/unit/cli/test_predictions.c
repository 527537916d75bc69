#include "check_main.h"
#include "cli/predictions.h"

#include <math.h>
#include <string.h>

#include "cli/new_data.h"

static int collect(void *user, const void *data, size_t n, struct err *e UNUSED)
{
    buf_add(user, data, n);
    return 0;
}

static const float VALUES[] = { 0.1f, 1.0f, -2.5e-8f, 16777216.0f, 0.0f, 3.0f };

static void write(enum prediction_format format, const struct shape *shape, int64_t n, const float *values,
                  struct buf *out)
{
    struct err e = { 0 };
    struct tensor_sink sink = { .write = collect, .user = out };
    const struct named_shape output = { .name = "out", .shape = *shape };
    struct predictions p = { .format = format, .outputs = &output, .noutputs = 1, .examples = n, .sink = &sink };
    ck_ok_e(predictions_begin(&p, &e));
    ck_ok_e(predictions_write(&p, &values, NULL, (size_t)n, &e));
}

START_TEST(numbers_are_the_shortest)
{
    const struct shape three = { .rank = 1, .dim = { 3 } }, one = { .rank = 1, .dim = { 1 } },
                       matrix = { .rank = 2, .dim = { 3, 1 } };
    const float odd[] = { 1.0f / 3, (float)NAN, (float)-INFINITY };
    AUTO_FINI(buf) csv = BUF_INIT, lines = BUF_INIT, nested = BUF_INIT, single = BUF_INIT, strange = BUF_INIT;
    write(PREDICTION_CSV, &three, 2, VALUES, &csv);
    ck_assert_str_eq(csv.data, "prediction_0,prediction_1,prediction_2\n0.1,1,-2.5e-08\n16777216,0,3\n");
    write(PREDICTION_JSONL, &three, 2, VALUES, &lines);
    ck_assert_str_eq(lines.data, "{\"prediction\":[0.1,1,-2.5e-08]}\n{\"prediction\":[16777216,0,3]}\n");
    write(PREDICTION_JSONL, &matrix, 1, VALUES, &nested);
    ck_assert_str_eq(nested.data, "{\"prediction\":[[0.1],[1],[-2.5e-08]]}\n");
    write(PREDICTION_CSV, &one, 2, VALUES, &single);
    ck_assert_str_eq(single.data, "prediction\n0.1\n1\n");
    write(PREDICTION_JSONL, &one, 3, odd, &strange);
    ck_assert_str_eq(strange.data,
                     "{\"prediction\":0.33333334}\n{\"prediction\":\"NaN\"}\n{\"prediction\":\"-Infinity\"}\n");
}
END_TEST

START_TEST(several_outputs_have_their_names)
{
    static const struct named_shape OUTPUTS[] = { { "price", { .rank = 1, .dim = { 1 } } },
                                                  { "kind", { .rank = 1, .dim = { 2 } } } };
    static const float PRICE[] = { 0.5f, 7 };
    const float *const values[] = { PRICE, VALUES };
    AUTO_FINI(buf) csv = BUF_INIT, lines = BUF_INIT;
    struct tensor_sink sink = { .write = collect, .user = &csv };
    struct predictions p = {
        .format = PREDICTION_CSV, .outputs = OUTPUTS, .noutputs = 2, .examples = 2, .sink = &sink
    };
    struct err e = { 0 };
    ck_ok_e(predictions_begin(&p, &e));
    ck_ok_e(predictions_write(&p, values, NULL, 2, &e));
    ck_assert_str_eq(csv.data, "price,kind_0,kind_1\n0.5,0.1,1\n7,-2.5e-08,16777216\n");
    sink.user = &lines;
    p.format = PREDICTION_JSONL;
    ck_ok_e(predictions_write(&p, values, NULL, 2, &e));
    ck_assert_str_eq(lines.data, "{\"price\":0.5,\"kind\":[0.1,1]}\n{\"price\":7,\"kind\":[-2.5e-08,16777216]}\n");
    p.format = PREDICTION_NPY;
    ck_assert_int_eq(predictions_begin(&p, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
}
END_TEST

/* Names are quoted where RFC 4180 wants it; a byte that is not UTF-8 does not damage JSON. */
START_TEST(an_id_goes_before_the_outputs)
{
    AUTO_FINI(strlist) ids = { 0 };
    strlist_add(&ids, "892");
    strlist_add(&ids, "Wilkes, \"Ellen\"");
    strlist_add(&ids, "");
    strlist_add(&ids, " a\xff");
    const struct named_shape one = { .name = "out", .shape = { .rank = 1, .dim = { 1 } } };
    const float *const values = VALUES;
    AUTO_FINI(buf) csv = BUF_INIT, lines = BUF_INIT;
    struct tensor_sink sink = { .write = collect, .user = &csv };
    struct predictions p = {
        .format = PREDICTION_CSV, .outputs = &one, .noutputs = 1, .examples = 4, .id = "Passenger,Id", .sink = &sink
    };
    struct err e = { 0 };
    ck_ok_e(predictions_begin(&p, &e));
    ck_ok_e(predictions_write(&p, &values, &ids, 4, &e));
    ck_assert_str_eq(csv.data, "\"Passenger,Id\",prediction\n892,0.1\n\"Wilkes, \"\"Ellen\"\"\",1\n,-2.5e-08\n"
                               "\" a\xff\",16777216\n");
    sink.user = &lines;
    p.format = PREDICTION_JSONL;
    ck_ok_e(predictions_write(&p, &values, &ids, 4, &e));
    ck_assert_str_eq(lines.data, "{\"Passenger,Id\":\"892\",\"prediction\":0.1}\n"
                                 "{\"Passenger,Id\":\"Wilkes, \\\"Ellen\\\"\",\"prediction\":1}\n"
                                 "{\"Passenger,Id\":\"\",\"prediction\":-2.5e-08}\n"
                                 "{\"Passenger,Id\":\" a\xEF\xBF\xBD\",\"prediction\":16777216}\n");
}
END_TEST

START_TEST(npy_is_the_values)
{
    const struct shape three = { .rank = 1, .dim = { 3 } };
    AUTO_FINI(buf) npy = BUF_INIT;
    write(PREDICTION_NPY, &three, 2, VALUES, &npy);
    ck_assert_uint_eq(npy.len, 128 + sizeof(VALUES));
    ck_assert_ptr_nonnull(strstr(npy.data + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
    ck_assert_int_eq(memcmp(npy.data + 128, VALUES, sizeof(VALUES)), 0);
}
END_TEST

START_TEST(the_format_is_the_extension)
{
    struct err e = { 0 };
    enum prediction_format f;
    ck_ok_e(prediction_format(NULL, "a.b/x.jsonl", &f, &e));
    ck_assert_int_eq((int)f, PREDICTION_JSONL);
    ck_ok_e(prediction_format(NULL, "a.b/x", &f, &e));
    ck_assert_int_eq((int)f, PREDICTION_CSV);
    ck_ok_e(prediction_format("npy", "x.bin", &f, &e));
    ck_assert_int_eq((int)f, PREDICTION_NPY);
    ck_assert_int_eq(prediction_format(NULL, "x.xls", &f, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, ".xls"));
    ck_assert_int_eq(prediction_format("xls", "x", &f, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "'xls'"));
}
END_TEST

#define NPZ_RUN "{\"train\":{\"format\":\"npz\",\"files\":\"a.npz\",\"features\":\"x\",\"labels\":\"y\"}}"

/* run's spec.data, files, labels, --data, drop the label -> spec.data.validation; NULL: refused */
static const struct {
    const char *run, *file, *labels, *data;
    bool drop;
    const char *want;
} CASES[] = {
    { "{\"train\":{\"format\":\"idx\",\"features\":\"a\",\"labels\":\"b\"}}", "x", "y", NULL, false,
      "{\"format\":\"idx\",\"features\":\"x\",\"labels\":\"y\"}" },
    { "{\"train\":{\"format\":\"idx\",\"features\":\"a\",\"labels\":\"b\"}}", "x", NULL, NULL, false,
      "{\"format\":\"idx\",\"features\":\"x\"}" },
    { "{\"train\":{\"format\":\"idx\",\"features\":\"a\"}}", NULL, NULL, NULL, false, NULL },
    { "{\"train\":{},\"validation\":{\"format\":\"npy\",\"features\":\"c\",\"labels\":\"d\"}}", NULL, NULL, NULL, true,
      "{\"format\":\"npy\",\"features\":\"c\"}" },
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\",\"label\":\"y\",\"columns\":[{\"name\":\"x\"},{\"name\":\"y\"}]}"
      "}",
      "n", NULL, NULL, true, "{\"format\":\"csv\",\"files\":[\"n\"],\"label\":\"\",\"columns\":[{\"name\":\"x\"}]}" },
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\",\"columns\":[{\"name\":\"label\"}]}}", "n", NULL, NULL, true,
      "{\"format\":\"csv\",\"files\":[\"n\"],\"label\":\"\"}" },
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\",\"label\":\"y\"}}", "n", NULL, NULL, false,
      "{\"format\":\"csv\",\"files\":[\"n\"],\"label\":\"y\"}" },
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\"}}", "n", "l", NULL, false, NULL },
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\"}}", NULL, NULL, "{format: npy, features: f}", false,
      "{\"format\":\"npy\",\"features\":\"f\"}" },
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\"}}", NULL, NULL, "text", false, NULL },
    /* what --data leaves out is that of data.train */
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\",\"label\":\"y\",\"columns\":[{\"name\":\"x\"}]}}", NULL, NULL,
      "{format: csv, files: n}", false,
      "{\"format\":\"csv\",\"files\":\"n\",\"label\":\"y\",\"columns\":[{\"name\":\"x\"}]}" },
    /* the files of a run of jsonl can be csv, and the other way round */
    { "{\"train\":{\"format\":\"jsonl\",\"files\":\"a\",\"label\":\"y\",\"sampleWeight\":\"w\",\"columns\":[{\"name\":"
      "\"x\"}]}}",
      "n.csv", NULL, NULL, false,
      "{\"format\":\"csv\",\"files\":[\"n.csv\"],\"label\":\"y\",\"sampleWeight\":\"w\",\"columns\":[{\"name\":\"x\"}]"
      "}" },
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\",\"label\":\"y\",\"delimiter\":\";\"}}", "n.jsonl.gz", NULL, NULL,
      true, "{\"format\":\"jsonl\",\"files\":[\"n.jsonl.gz\"],\"label\":\"\"}" },
    { "{\"train\":{\"format\":\"csv\",\"files\":\"a\",\"label\":[\"y\",\"z\"],\"columns\":[{\"name\":\"z\"},{\"name\":"
      "\"x\"},{\"name\":\"y\"}]}}",
      "n", NULL, NULL, true, "{\"format\":\"csv\",\"files\":[\"n\"],\"label\":\"\",\"columns\":[{\"name\":\"x\"}]}" },
    { NPZ_RUN, "n.npz", NULL, NULL, false,
      "{\"format\":\"npz\",\"files\":\"n.npz\",\"features\":\"x\",\"labels\":\"y\"}" },
    { NPZ_RUN, "n\xff.npz", NULL, NULL, false, NULL },
    { NPZ_RUN, "n.npz", "\xff", NULL, false, NULL },
    { NPZ_RUN, "n.npz", "other", NULL, false,
      "{\"format\":\"npz\",\"files\":\"n.npz\",\"features\":\"x\",\"labels\":\"other\"}" },
    { NPZ_RUN, "n.npz", NULL, NULL, true, "{\"format\":\"npz\",\"files\":\"n.npz\",\"features\":\"x\"}" },
};
START_TEST(the_data_are_said_by_the_run_and_the_files)
{
    struct err e = { 0 };
    AUTO_FINI(strlist) files = { 0 };
    AUTO_FINI(buf) spec = BUF_INIT;
    json_auto_t *data = NULL, *got = NULL, *want = NULL;
    ck_ok_e(json_parse(CASES[_i].run, strlen(CASES[_i].run), "data", &data, &e));
    json_auto_t *doc = json_pack("{s:{s:O}}", "spec", "data", data);
    if (CASES[_i].file != NULL)
        strlist_add(&files, CASES[_i].file);
    struct new_data ask = { .files = &files, .labels = CASES[_i].labels, .data = CASES[_i].data };
    int rc = new_data_job(doc, &ask, CASES[_i].drop, &got, &e);
    if (CASES[_i].want == NULL) {
        ck_assert_int_eq(rc, -1);
        return;
    }
    ck_ok_e(rc);
    ck_ok_e(json_parse(CASES[_i].want, strlen(CASES[_i].want), "want", &want, &e));
    json_emit(json_at(got, "spec.data.validation"), &spec);
    ck_assert_msg(json_equal(json_at(got, "spec.data.validation"), want), "%s", spec.data);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("predictions");
    TCase *t = tcase_create("predictions");
    tcase_add_test(t, numbers_are_the_shortest);
    tcase_add_test(t, several_outputs_have_their_names);
    tcase_add_test(t, an_id_goes_before_the_outputs);
    tcase_add_test(t, npy_is_the_values);
    tcase_add_test(t, the_format_is_the_extension);
    tcase_add_loop_test(t, the_data_are_said_by_the_run_and_the_files, 0, COUNT_OF(CASES));
    suite_add_tcase(s, t);
    return s;
}
