/* Images in records: columns of type image. The pixels are those of test_image.c. */
#include "put_png.h"

enum { RECORDS = 20, BYTES_LIST = 1, INT64_LIST = 3 };

#define SPEC(shape, more)                                                                                              \
    "{format: tfrecord, files: t, columns: [{name: image, type: image, shape: " shape                                  \
    "}, {name: label, type: int64}]" more "}"

/* A record with these strings as its images. */
static void put_strings(struct buf *file, const struct buf *strings, size_t n, uint64_t label)
{
    AUTO_FINI(buf) features = BUF_INIT;
    AUTO_FINI(buf) images = BUF_INIT;
    AUTO_FINI(buf) labels = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        pb_put_bytes(&images, 1, strings[i].data, strings[i].len);
    put_feature(&features, "image", BYTES_LIST, &images);
    pb_put_varint(&labels, 1, label);
    put_feature(&features, "label", INT64_LIST, &labels);
    put_example(file, &features);
}

/* Images of 1 + i % 3 rows, with the pixel i. */
static void put_images(const struct folder *f)
{
    AUTO_FINI(buf) file = BUF_INIT;
    for (int i = 0; i < RECORDS; i++) {
        AUTO_FINI(buf) png = BUF_INIT;
        make_png(&png, 1, (uint32_t)(1 + i % 3), (uint8_t)i);
        put_strings(&file, &png, 1, (uint64_t)(i % 7));
    }
    put_file(f, "t", file.data, file.len);
}

static const struct {
    const char *yaml;
    struct shape shape;
} SHAPES[] = {
    { SPEC("[1, 1, 1]", ""), { 3, { 1, 1, 1 } } },
    { SPEC("[2, 3, 3]", ", interpolation: nearest"), { 3, { 2, 3, 3 } } },
    { SPEC("[2, 3, 1]", ", cropToAspectRatio: true"), { 3, { 2, 3, 1 } } },
    { SPEC("[300, 300, 1]", ""), { 3, { 300, 300, 1 } } }, /* more numbers than the file has bytes */
};

START_TEST(images_of_records_are_decoded)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(dataset) *d = NULL;
    AUTO(loader) *l = NULL;
    struct err e;
    put_images(&f);
    ck_ok_e(open_yaml(SHAPES[_i].yaml, f.path, NULL, &d, &e));
    ck_assert_ptr_nonnull(dataset_team(d));
    ck_assert(shape_eq(dataset_example(d), &SHAPES[_i].shape));
    size_t numbers = shape_elements(&SHAPES[_i].shape);
    struct ordinal_space space = space_of(d, 6, false);
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    for (int r = 0; r < RECORDS;) {
        struct batch b;
        ck_ok_e(loader_get(l, r / 6, &b, &e));
        for (size_t row = 0; row < b.n; row++, r++) {
            for (size_t i = 0; i < numbers; i++)
                ck_assert_int_eq((int)((float *)b.x[0].data)[row * numbers + i], r);
            ck_assert_int_eq(((int32_t *)b.y[0].data)[row], r % 7);
        }
    }
}
END_TEST

START_TEST(the_identity_has_how_they_are_resized)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(dataset) *plain = NULL, *same = NULL, *nearest = NULL, *cropped = NULL;
    struct err e;
    put_images(&f);
    ck_ok_e(open_yaml(SPEC("[2, 3, 1]", ""), f.path, NULL, &plain, &e));
    ck_ok_e(open_yaml(SPEC("[2, 3, 1]", ", interpolation: bilinear"), f.path, NULL, &same, &e));
    ck_ok_e(open_yaml(SPEC("[2, 3, 1]", ", interpolation: nearest"), f.path, NULL, &nearest, &e));
    ck_ok_e(open_yaml(SPEC("[2, 3, 1]", ", cropToAspectRatio: true"), f.path, NULL, &cropped, &e));
    ck_assert(dataset_fingerprint(plain) == dataset_fingerprint(same));
    ck_assert(dataset_fingerprint(plain) != dataset_fingerprint(nearest));
    ck_assert(dataset_fingerprint(plain) != dataset_fingerprint(cropped));
    ck_assert(dataset_fingerprint(nearest) != dataset_fingerprint(cropped));
}
END_TEST

/* An image may be the label, as for an autoencoder. */
START_TEST(an_image_may_be_the_label)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(dataset) *d = NULL;
    AUTO(loader) *l = NULL;
    struct err e;
    struct batch b;
    put_images(&f);
    ck_ok_e(open_yaml(
        "{format: tfrecord, files: t, label: image, columns: [{name: label, type: int64}, {name: image, type: "
        "image, shape: [1, 1, 1]}]}",
        f.path, NULL, &d, &e));
    struct ordinal_space space = space_of(d, RECORDS, false);
    ck_ok_e(loader_new(d, &space, NULL, &l, &e));
    ck_ok_e(loader_get(l, 0, &b, &e));
    ck_assert_int_eq(b.y[0].dtype, DT_FLOAT);
    for (int i = 0; i < RECORDS; i++)
        ck_assert_int_eq((int)((float *)b.y[0].data)[i], i);
}
END_TEST

static const struct {
    const char *yaml, *error;
} MISTAKES[] = {
    { "{format: tfrecord, files: t, label: \"\", columns: [{name: image, type: image}]}",
      "an image needs its shape: [height, width, channels], with 1, 3 or 4 channels" },
    { SPEC("[2, 2]", ""), "an image needs its shape" },
    { SPEC("[2, 2, 2]", ""), "an image needs its shape" },
    { SPEC("[65536, 1, 1]", ""), "more than 65535 in a row or column" },
    { SPEC("[1, 65536, 1]", ""), "more than 65535 in a row or column" },
    { SPEC("[8193, 8192, 1]", ""), "has more than 67108864 pixels" },
    { SPEC("[1, 1, 1], default: 0", ""), "an image has no default" },
    { "{format: tfrecord, files: t, label: label, sampleWeight: image, columns: [{name: image, type: image, shape: [1, "
      "1, "
      "1]}, {name: label, type: int64}]}",
      "feature 'image' must be one number" },
    { SPEC("[1, 1, 1]", ", sampleWeight: '0'"), "feature 'image' must be one number" },
    { "{format: tfrecord, files: t, columns: [{name: image, type: bytes, shape: [1]}, {name: label, type: int64}]}",
      "feature 'image' holds a PNG image; declare it with type: image, and shape: [height, width, channels]" },
    { "{format: tfrecord, files: t, interpolation: nearest, label: \"\", columns: [{name: label, type: int64}]}",
      "says how images are resized, but no column has type: image" },
    { "{format: tfrecord, files: t, cropToAspectRatio: false, label: \"\", columns: [{name: label, type: int64}]}",
      "says how images are resized, but no column has type: image" },
    { "{format: tfrecord, files: t, columns: [{name: image, type: float}, {name: label, type: int64}]}",
      "feature 'image' is bytes, but the job declares float" },
    { "{format: tfrecord, files: t, label: \"\", columns: [{name: label, type: image, shape: [1, 1, 1]}]}",
      "feature 'label' is int64, but the job declares image, a string with the bytes of a file" },
    { "{format: tfrecord, files: t, columns: [{name: i, type: image, shape: [1, 1, 1]}, {name: label, type: int64}]}",
      "has no feature 'i', but 'image'; an image has no default: leave such examples out when you write the file" },
    { "{format: tfrecord, files: t, columns: [{name: i, type: image, shape: [1, 1, 1]}], label: \"\"}",
      "has no feature 'i', but 'image', 'label'; an image" },
};

START_TEST(mistakes_are_named)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO(dataset) *d = NULL;
    struct err e = { .code = ERR_NONE };
    put_images(&f);
    ck_assert_int_eq(open_yaml(MISTAKES[_i].yaml, f.path, NULL, &d, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_msg(strstr(e.msg, MISTAKES[_i].error) != NULL, "%s", e.msg);
}
END_TEST

static void want_error(const struct buf *strings, size_t n, const char *error)
{
    AUTO_FINI(folder) f = folder_new();
    AUTO_FINI(buf) file = BUF_INIT;
    AUTO(dataset) *d = NULL;
    struct err e = { .code = ERR_NONE };
    put_strings(&file, strings, n, 0);
    put_file(&f, "t", file.data, file.len);
    ck_assert_int_eq(open_yaml(SPEC("[1, 1, 1]", ""), f.path, NULL, &d, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_msg(str_ends(e.msg, error), "%s", e.msg);
}

START_TEST(a_record_holds_one_whole_image)
{
    AUTO_FINI(buf) png = BUF_INIT;
    AUTO_FINI(buf) cut = BUF_INIT;
    make_png(&png, 3, 3, 7);
    buf_add(&cut, png.data, png.len - 20);
    struct buf none = BUF_INIT, two[] = { none, png };
    want_error(two, 2, "/t: record 0 at byte 0: feature 'image' holds 2 strings; write one image");
    want_error(&none, 1, "/t: record 0 at byte 0: feature 'image' is empty");
    want_error(&none, 0,
               "/t: record 0 at byte 0: feature 'image' is an empty list; an image has no default: leave such examples "
               "out when you write the file");
    want_error(&cut, 1,
               "/t: record 0 at byte 0: feature 'image' cannot be decoded as PNG: it ends too early: it was damaged "
               "when the record was written: write the file again");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/tfrecord_images");
    TCase *t = tcase_create("tfrecord_images");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, images_of_records_are_decoded, 0, COUNT_OF(SHAPES));
    tcase_add_test(t, the_identity_has_how_they_are_resized);
    tcase_add_test(t, an_image_may_be_the_label);
    tcase_add_loop_test(t, mistakes_are_named, 0, COUNT_OF(MISTAKES));
    tcase_add_test(t, a_record_holds_one_whole_image);
    return s;
}
