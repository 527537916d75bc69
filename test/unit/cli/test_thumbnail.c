/* Small pictures: their pixels, the PNG file of them, which the decoder of lib/data reads, and the text for a terminal.
 */
#include "check_main.h"
#include "cli/thumbnail.h"

#include <string.h>

#include "data/image.h"

START_TEST(an_example_can_be_seen)
{
    static const struct {
        int rank;
        int64_t dim[4];
        bool fits;
    } CASES[] = {
        { 2, { 28, 28 }, true },      { 3, { 32, 32, 3 }, true }, { 3, { 8, 8, 1 }, true }, { 3, { 180, 90, 4 }, true },
        { 1, { 784 }, false },        { 2, { 4, 4 }, false },     { 2, { 100, 8 }, false }, { 3, { 28, 28, 2 }, false },
        { 4, { 8, 8, 8, 3 }, false }, { 0, { 0 }, false },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct shape s = shape_of(CASES[i].rank, CASES[i].dim);
        ck_assert_msg(thumbnail_fits(&s) == CASES[i].fits, "case %zu", i);
    }
}
END_TEST

START_TEST(numbers_become_gray)
{
    const struct shape s = shape_of(2, (int64_t[]){ 2, 2 });
    struct thumbnail p = thumbnail_of((float[]){ -1, 0, 1, 5 }, &s, -1, 1, 32);
    ck_assert(p.width == 2 && p.height == 2);
    static const unsigned char WANT[] = { 0, 0, 0, 128, 128, 128, 255, 255, 255, 255, 255, 255 };
    ck_assert_mem_eq(p.rgb, WANT, sizeof(WANT));
    thumbnail_fini(&p);
    p = thumbnail_of((float[]){ 3, 3, 3, 3 }, &s, 3, 3, 32); /* nothing to divide by */
    ck_assert_uint_eq(p.rgb[0], 0);
    thumbnail_fini(&p);
}
END_TEST

START_TEST(a_large_image_becomes_smaller)
{
    const struct shape s = shape_of(3, (int64_t[]){ 2, 4, 4 });
    float x[32];
    for (size_t i = 0; i < 32; i++)
        x[i] = i % 4 == 3 ? 9 : i % 4 == 0 ? (float)(i / 4 % 2) * 100 : 50; /* red 0 and 100 in turn; alpha 9 */
    struct thumbnail p = thumbnail_of(x, &s, 0, 100, 2);
    ck_assert(p.width == 2 && p.height == 1);
    static const unsigned char WANT[] = { 128, 128, 128, 128, 128, 128 };
    ck_assert_mem_eq(p.rgb, WANT, sizeof(WANT));
    thumbnail_fini(&p);
}
END_TEST

/* 200 rows of 400 pixels need more than one block. */
START_TEST(a_png_has_the_same_pixels)
{
    enum { HEIGHT = 200, WIDTH = 400 };
    struct err e;
    AUTO_FINI(buf) png = BUF_INIT;
    struct thumbnail p = { .width = WIDTH, .height = HEIGHT, .rgb = xmalloc(WIDTH * HEIGHT * 3) };
    auto_free float *got = xcalloc(WIDTH * HEIGHT * 3, sizeof(*got));
    const struct image_form form = { .height = HEIGHT, .width = WIDTH, .channels = 3, .cure = "" };
    for (size_t i = 0; i < WIDTH * HEIGHT * 3; i++)
        p.rgb[i] = (unsigned char)(i * 7919 >> 3);
    thumbnail_png(&p, &png);
    ck_ok_e(image_read(png.data, png.len, &form, got, &e));
    for (size_t i = 0; i < WIDTH * HEIGHT * 3; i++)
        ck_assert_msg(got[i] == (float)p.rgb[i], "number %zu", i);
    thumbnail_fini(&p);
}
END_TEST

START_TEST(two_pixels_are_a_character)
{
    AUTO_FINI(buf) out = BUF_INIT;
    unsigned char rgb[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    const struct thumbnail p[] = { { .width = 1, .height = 3, .rgb = rgb }, { .width = 1, .height = 3, .rgb = rgb } };
    thumbnail_ansi(p, 2, 80, &out);
#define TOP    "  \033[38;2;1;2;3m\033[48;2;4;5;6m\xE2\x96\x80\033[0m"
#define BOTTOM "  \033[38;2;7;8;9m\033[49m\xE2\x96\x80\033[0m"
    ck_assert_str_eq(out.data, TOP TOP "\n" BOTTOM BOTTOM "\n");
    buf_clear(&out);
    thumbnail_ansi(p, 2, 1, &out); /* a narrow terminal has one beside another one */
    ck_assert_str_eq(out.data, TOP "\n" BOTTOM "\n" TOP "\n" BOTTOM "\n");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/thumbnail");
    TCase *t = tcase_create("thumbnail");
    suite_add_tcase(s, t);
    tcase_add_test(t, an_example_can_be_seen);
    tcase_add_test(t, numbers_become_gray);
    tcase_add_test(t, a_large_image_becomes_smaller);
    tcase_add_test(t, a_png_has_the_same_pixels);
    tcase_add_test(t, two_pixels_are_a_character);
    return s;
}
