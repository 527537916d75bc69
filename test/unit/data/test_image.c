/* Images: the floats that TensorFlow has (test/data/image/expected.txt), what differs from TensorFlow, and that damaged
 * and too large images are errors. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "check_main.h"
#include "data/gzip.h"
#include "data/image.h"

#define FOLDER "test/data/image"

static struct file_map *open_image(const char *name)
{
    auto_free char *path = path_join(FOLDER, name);
    struct file_map *map = NULL;
    struct err e;
    ck_ok_e(file_map_open(path, &map, &e));
    return map;
}

static struct image_form form_of(int64_t height, int64_t width, int channels)
{
    return (struct image_form){ .height = height, .width = width, .channels = channels, .cure = "copy the file again" };
}

static float *room_for(const struct image_form *f)
{
    return xcalloc((size_t)(f->height * f->width * f->channels), sizeof(float));
}

/* It must be readable. */
static float *read_image(const char *name, const struct image_form *f)
{
    AUTO(file_map) *map = open_image(name);
    float *got = room_for(f);
    struct err e;
    ck_assert_msg(image_read(map->data, map->size, f, got, &e) == 0, "%s: %s", name, e.msg);
    return got;
}

/* ---- the table ---- */

static void check_row(const char *line)
{
    char name[100], interpolation[20];
    struct image_form f = { .height = 0 };
    int crop;
    unsigned crc;
    double mean, sum = 0;
    ck_assert_int_eq(sscanf(line, "%99s %d %" SCNd64 " %" SCNd64 " %19s %d %x %lf", name, &f.channels, &f.height,
                            &f.width, interpolation, &crop, &crc, &mean),
                     8);
    f.crop = crop == 1;
    f.interpolation = strcmp(interpolation, "nearest") == 0 ? IMAGE_NEAREST : IMAGE_BILINEAR;
    auto_free float *got = read_image(name, &f);
    size_t n = (size_t)(f.height * f.width * f.channels);
    for (size_t i = 0; i < n; i++)
        sum += (double)got[i];
    ck_assert_msg(crc32_update(0, got, n * sizeof(float)) == crc, "%s\nhas the mean %.3f", line, sum / (double)n);
}

START_TEST(images_are_those_of_tensorflow)
{
    FILE *table = fopen(FOLDER "/expected.txt", "r");
    char line[200];
    int rows = 0;
    ck_assert_ptr_nonnull(table);
    while (fgets(line, sizeof(line), table) != NULL)
        if (line[0] != '#') {
            check_row(line);
            rows++;
        }
    fclose(table);
    ck_assert_int_gt(rows, 400);
}
END_TEST

/* ---- alpha, where TensorFlow has none or a small one ---- */

static const struct {
    const char *name;
    int64_t height, width;
} OPAQUE[] = {
    { "rgb420.jpg", 45, 61 },   { "gray.jpg", 45, 61 },       { "progressive.jpg", 45, 61 },
    { "ycck.jpg", 29, 37 },     { "cmyk_plain.jpg", 29, 37 }, { "rgb_kept.jpg", 45, 61 },
    { "gray1.png", 19, 23 },    { "gray4.png", 19, 23 },      { "gray1_interlaced.png", 19, 23 },
    { "palette1.png", 19, 23 }, { "palette4.png", 19, 23 },
};

START_TEST(opaque_images_get_an_alpha_of_255)
{
    struct image_form three = form_of(OPAQUE[_i].height, OPAQUE[_i].width, 3), four = three;
    four.channels = 4;
    auto_free float *rgb = read_image(OPAQUE[_i].name, &three), *rgba = read_image(OPAQUE[_i].name, &four);
    for (int64_t i = 0; i < three.height * three.width; i++) {
        ck_assert(memcmp(rgb + 3 * i, rgba + 4 * i, 3 * sizeof(float)) == 0);
        ck_assert(rgba[4 * i + 3] == 255.0F);
    }
}
END_TEST

/* ---- other kinds ---- */

#define BYTES(text) text, sizeof(text) - 1
static const struct {
    const char *data;
    size_t n;
    const char *error;
} OTHERS[] = {
    { BYTES(""), "is empty" },
    { BYTES("hello"), "is neither a PNG nor a JPEG image" },
    { BYTES("\xff\xd8"), "is neither a PNG nor a JPEG image" },
    { BYTES("\x89PNG\r\n\x1a"), "is neither a PNG nor a JPEG image" },
    { BYTES("GIF89a"), "is a GIF image; only PNG and JPEG are read: convert it" },
    { BYTES("GIF87a"), "is a GIF image; only PNG and JPEG are read: convert it" },
    { BYTES("BM\x10"), "is a BMP image; only PNG and JPEG are read: convert it" },
    { BYTES("RIFF\x10\0\0\0WEBPVP8 "), "is a WebP image; only PNG and JPEG are read: convert it" },
    { BYTES("II*\0\x08"), "is a TIFF image; only PNG and JPEG are read: convert it" },
    { BYTES("MM\0*\0"), "is a TIFF image; only PNG and JPEG are read: convert it" },
    { BYTES("\0\0\0\x20"
            "ftypavif"),
      "is an AVIF image; only PNG and JPEG are read: convert it" },
    { BYTES("\0\0\0\x20"
            "ftypheic"),
      "is a HEIC image; only PNG and JPEG are read: convert it" },
    { BYTES("\xff\x0a"), "is a JPEG XL image; only PNG and JPEG are read: convert it" },
    { BYTES("\0\0\0\x0cJXL \r\n\x87\n"), "is a JPEG XL image; only PNG and JPEG are read: convert it" },
    { BYTES("\0\0\0\x0cjP  \r\n\x87\n"), "is a JPEG 2000 image; only PNG and JPEG are read: convert it" },
};

START_TEST(other_kinds_are_named)
{
    struct image_form f = form_of(1, 1, 3);
    float to[3];
    struct err e = { .code = ERR_NONE };
    auto_free char *data = xmemdup(OTHERS[_i].data, OTHERS[_i].n);
    ck_fails(image_read(data, OTHERS[_i].n, &f, to, &e), ERR_INPUT, OTHERS[_i].error);
    ck_assert_str_eq(e.msg, OTHERS[_i].error);
}
END_TEST

START_TEST(cmyk_is_not_read_as_gray)
{
    AUTO(file_map) *map = open_image(_i == 0 ? "ycck.jpg" : "cmyk_plain.jpg");
    struct image_form f = form_of(1, 1, 1);
    float to[1];
    struct err e;
    ck_fails(image_read(map->data, map->size, &f, to, &e), ERR_INPUT, "is a CMYK image");
}
END_TEST

/* ---- limits ---- */

static void put_u32(struct buf *b, uint32_t v)
{
    buf_u32le(b, __builtin_bswap32(v));
}

static void put_chunk(struct buf *b, const char *type, const void *data, size_t n)
{
    put_u32(b, (uint32_t)n);
    size_t at = b->len;
    buf_str(b, type);
    buf_add(b, data, n);
    put_u32(b, crc32_update(0, b->data + at, b->len - at));
}

/* An image of one bit for each pixel, without pixels. */
static void put_png_header(struct buf *b, uint32_t width, uint32_t height)
{
    AUTO_FINI(buf) header = BUF_INIT;
    buf_add(b, "\x89PNG\r\n\x1a\n", 8);
    put_u32(&header, width);
    put_u32(&header, height);
    buf_add(&header, "\1\0\0\0\0", 5);
    put_chunk(b, "IHDR", header.data, header.len);
    put_chunk(b, "IDAT", "\x78\x9c", 2);
}

static const struct {
    uint32_t width, height;
    const char *error;
} LARGE[] = {
    { 65536, 1, "is 65536 pixels wide and 1 high; at most 65535 are allowed for each" },
    { 1, 65536, "is 1 pixels wide and 65536 high; at most 65535 are allowed for each" },
    { 0x7fffffff, 0x7fffffff, "is 2147483647 pixels wide and 2147483647 high; at most 65535 are allowed for each" },
    { 8192, 8193, "has 8192 x 8193 pixels, which is more than the 67108864 that are allowed: make it smaller" },
    { 65535, 1025, "has 65535 x 1025 pixels, which is more than the 67108864 that are allowed: make it smaller" },
    { 8192, 8192, "cannot be decoded as PNG: it ends too early: copy the file again" },
    { 65535, 1, "cannot be decoded as PNG: it ends too early: copy the file again" },
    { 1, 65535, "cannot be decoded as PNG: it ends too early: copy the file again" },
    { 0, 1, "cannot be decoded as PNG: Invalid IHDR data" },
};

START_TEST(large_images_are_refused_by_their_header)
{
    AUTO_FINI(buf) b = BUF_INIT;
    struct image_form f = form_of(1, 1, 1);
    float to[1];
    struct err e;
    put_png_header(&b, LARGE[_i].width, LARGE[_i].height);
    ck_fails(image_read(b.data, b.len, &f, to, &e), ERR_INPUT, "");
    ck_assert_str_eq(e.msg, LARGE[_i].error);
}
END_TEST

START_TEST(large_jpeg_images_are_refused_by_their_header)
{
    AUTO(file_map) *map = open_image("gray.jpg");
    auto_free unsigned char *data = xmemdup(map->data, map->size);
    struct image_form f = form_of(1, 1, 1);
    float to[1];
    struct err e;
    unsigned char *size = memmem(data, map->size, "\xff\xc0", 2);
    ck_assert_ptr_nonnull(size);
    memcpy(size + 5, "\xff\xdc\xff\xdc", 4);
    ck_fails(image_read(data, map->size, &f, to, &e), ERR_INPUT, "has 65500 x 65500 pixels, which is more");
}
END_TEST

START_TEST(scans_are_limited)
{
    AUTO(file_map) *map = open_image("scans101.jpg");
    struct image_form f = form_of(16, 16, 1);
    float to[256];
    struct err e;
    ck_fails(image_read(map->data, map->size, &f, to, &e), ERR_INPUT, "is a JPEG image with more than 100 scans");
}
END_TEST

/* ---- damage ---- */

static const char *const DAMAGED[] = {
    "rgb8.png",     "palette8_trns.png", "rgba16_interlaced.png", "text.png", "gray1.png",
    "rgb420.jpg",   "progressive.jpg",   "optimized_restart.jpg", "ycck.jpg", "gray.jpg",
    "scans100.jpg", "exif_rotated.jpg",  "extraneous.jpg",
};

/* The bytes are where reading past them is seen. */
static int read_copy(const unsigned char *data, size_t n, struct err *e)
{
    struct image_form f = form_of(4, 5, 3);
    float to[4 * 5 * 3];
    auto_free unsigned char *copy = xmemdup(data, n);
    *e = (struct err){ .code = ERR_NONE };
    return image_read(copy, n, &f, to, e);
}

START_TEST(truncated_images_are_errors)
{
    AUTO(file_map) *map = open_image(DAMAGED[_i]);
    struct err e;
    ck_ok_e(read_copy(map->data, map->size, &e));
    for (size_t n = 0; n < map->size; n += n < 100 || n + 40 > map->size ? 1 : 13)
        ck_fails(read_copy(map->data, n, &e), ERR_INPUT, n == 0 ? "is empty" : n < 8 ? "" : "cannot be decoded as ");
}
END_TEST

/* Each chunk of a PNG image has a checksum. */
START_TEST(changed_images_are_read_or_errors)
{
    AUTO(file_map) *map = open_image(DAMAGED[_i]);
    auto_free unsigned char *data = xmemdup(map->data, map->size);
    bool png = strstr(DAMAGED[_i], ".png") != NULL;
    int errors = 0;
    struct err e;
    for (size_t i = 8; i < map->size; i += 3) {
        data[i] ^= (unsigned char)(1 << i % 8);
        if (read_copy(data, map->size, &e) < 0) {
            ck_assert_msg(e.code == ERR_INPUT && e.msg[0] != '\0', "byte %zu: %d %s", i, (int)e.code, e.msg);
            errors++;
        } else {
            ck_assert_msg(!png, "byte %zu is not checked", i);
        }
        data[i] = map->data[i];
    }
    ck_assert_int_gt(errors, 20);
}
END_TEST

/* Where TensorFlow makes up pixels: a code that does not exist, and data that ends at a marker. */
START_TEST(made_up_pixels_are_errors)
{
    AUTO(file_map) *map = open_image("progressive.jpg");
    auto_free unsigned char *data = xmemdup(map->data, map->size);
    struct err e;
    unsigned char *scan = memmem(data, map->size, "\xff\xda", 2);
    ck_assert_ptr_nonnull(scan);
    memcpy(scan + 20, "\xff\xd9", 2);
    ck_fails(read_copy(data, map->size, &e), ERR_INPUT,
             "cannot be decoded as JPEG: Corrupt JPEG data: premature end of data segment");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/image");
    TCase *t = tcase_create("image");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, images_are_those_of_tensorflow);
    tcase_add_loop_test(t, opaque_images_get_an_alpha_of_255, 0, COUNT_OF(OPAQUE));
    tcase_add_loop_test(t, other_kinds_are_named, 0, COUNT_OF(OTHERS));
    tcase_add_loop_test(t, cmyk_is_not_read_as_gray, 0, 2);
    tcase_add_loop_test(t, large_images_are_refused_by_their_header, 0, COUNT_OF(LARGE));
    tcase_add_test(t, large_jpeg_images_are_refused_by_their_header);
    tcase_add_test(t, scans_are_limited);
    tcase_add_loop_test(t, truncated_images_are_errors, 0, COUNT_OF(DAMAGED));
    tcase_add_loop_test(t, changed_images_are_read_or_errors, 0, COUNT_OF(DAMAGED));
    tcase_add_test(t, made_up_pixels_are_errors);
    return s;
}
