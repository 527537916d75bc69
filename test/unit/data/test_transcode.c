#include <iconv.h>
#include <string.h>

#include "base/buf.h"
#include "check_main.h"
#include "data/transcode.h"

#define BYTES(s) (const unsigned char *)(s), sizeof(s) - 1

/* ---- detection ---- */

static const struct {
    enum text_encoding is;
    const unsigned char *p;
    size_t n;
} GUESSES[] = {
    { TEXT_UTF8, BYTES("") },
    { TEXT_UTF8, BYTES("a") },
    { TEXT_UTF8, BYTES("a,b\n1,2\n") },
    { TEXT_UTF8, BYTES("\xEF\xBB\xBF"
                       "a,b\n") },
    { TEXT_UTF8, BYTES("\xFF") },
    { TEXT_UTF8, BYTES("\xFE\xFEx") },
    { TEXT_UTF16LE, BYTES("\xFF\xFE") },
    { TEXT_UTF16LE, BYTES("\xFF\xFE\x04\x10\x04") },
    { TEXT_UTF16BE, BYTES("\xFE\xFF\x10\x04") },
    { TEXT_UTF16LE, BYTES("a\0,\0b\0\n\0") },
    { TEXT_UTF16LE, BYTES("a\0,\0b\0\n\0x") }, /* cut */
    { TEXT_UTF16BE, BYTES("\0a\0,\0b\0\n") },
    { TEXT_UTF16LE, BYTES("1\0002\0003\0004\0005\0006\0007\0008\0009\0\x30\x04") }, /* 9 of 10 */
    { TEXT_UTF8, BYTES("1\0002\0003\0004\0005\0006\0007\0008\0\x31\x04\x30\x04") }, /* 8 of 10 */
    { TEXT_UTF16LE, BYTES("1\0002\0003\0004\0005\0006\0007\0008\0009\0\0\0") },     /* one of the others is 0 */
    { TEXT_UTF8, BYTES("1\0002\0003\0004\0005\0006\0007\0008\0\0\0\0\0") },         /* two are */
    { TEXT_UTF16BE, BYTES("\0001\0002\0003\0004\0005\0006\0007\0008\0009\x04\x30") },
    { TEXT_UTF8, BYTES("\0\0\0\0\0\0\0\0") },
};

START_TEST(utf16_is_recognised_by_its_first_bytes)
{
    ck_assert_msg(transcode_guess(GUESSES[_i].p, GUESSES[_i].n) == GUESSES[_i].is, "%d", _i);
}
END_TEST

START_TEST(only_the_first_4096_bytes_are_looked_at)
{
    unsigned char text[8192];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i < 4096 && i % 2 == 1 ? 0 : 'a';
    ck_assert_int_eq(transcode_guess(text, sizeof(text)), TEXT_UTF16LE);
    memset(text, 'a', 4096 / 10 + 2);
    ck_assert_int_eq(transcode_guess(text, sizeof(text)), TEXT_UTF8);
}
END_TEST

/* ---- validity ---- */

static const struct {
    size_t good;
    const unsigned char *p;
    size_t n;
} TEXTS[] = {
    { 0, BYTES("") },
    { 3, BYTES("a\0b") },
    { 1, BYTES("a\x80") }, /* a continuation alone */
    { 1, BYTES("a\xC3") }, /* truncated at the end: of 2, 3 and 4 bytes */
    { 1, BYTES("a\xE2\x82") },
    { 1, BYTES("a\xF0\x9F\x98") },
    { 0, BYTES("\xC3(") }, /* truncated within */
    { 0, BYTES("\xE2\x82(") },
    { 0, BYTES("\xF0\x9F\x98(") },
    { 0, BYTES("\xC0\x80") }, /* overlong: 2, 3 and 4 bytes */
    { 0, BYTES("\xC1\xBF") },
    { 2, BYTES("\xC2\x80") },
    { 0, BYTES("\xE0\x9F\xBF") },
    { 3, BYTES("\xE0\xA0\x80") },
    { 0, BYTES("\xF0\x8F\xBF\xBF") },
    { 4, BYTES("\xF0\x90\x80\x80") },
    { 3, BYTES("\xED\x9F\xBF") }, /* around the surrogates */
    { 0, BYTES("\xED\xA0\x80") },
    { 0, BYTES("\xED\xBF\xBF") },
    { 3, BYTES("\xEE\x80\x80") },
    { 4, BYTES("\xF4\x8F\xBF\xBF") }, /* around U+10FFFF */
    { 0, BYTES("\xF4\x90\x80\x80") },
    { 0, BYTES("\xF5\x80\x80\x80") },
    { 0, BYTES("\xFF") },
    { 6, BYTES("\xC3\xB6\xE2\x82\xAC"
               "a\xFE"
               "b") },
};

START_TEST(utf8_ends_at_the_first_bad_byte)
{
    ck_assert_msg(transcode_utf8(TEXTS[_i].p, TEXTS[_i].n) == TEXTS[_i].good, "%d: %zu", _i,
                  transcode_utf8(TEXTS[_i].p, TEXTS[_i].n));
}
END_TEST

/* Each place in and behind the words that are tested at once. The copy has no byte behind it, so that a sanitizer
 * sees a read past the end. */
START_TEST(a_bad_byte_is_found_at_every_place)
{
    enum { LONGEST = 150 };
    for (size_t n = 1; n <= LONGEST; n++) {
        auto_free unsigned char *text = xmalloc(n);
        memset(text, 'a', n);
        ck_assert_uint_eq(transcode_ascii(text, n), n);
        ck_assert_uint_eq(transcode_utf8(text, n), n);
        for (size_t at = 0; at < n; at++) {
            text[at] = 0xC3;
            ck_assert_uint_eq(transcode_ascii(text, n), at);
            ck_assert_uint_eq(transcode_utf8(text, n), at);
            text[at] = 'a';
        }
    }
}
END_TEST

/* ---- conversion ---- */

struct collected {
    struct buf text;
    size_t pieces, left; /* left: bytes before the sink fails */
    bool failed;
};

static int collect(void *user, const void *data, size_t n, struct err *e)
{
    struct collected *c = user;
    ck_assert(n > 0 && n <= 64 << 10 && !c->failed);
    ck_assert_uint_eq(transcode_utf8(data, n), n); /* whole characters */
    c->failed = n > c->left;
    if (c->failed)
        return err_set(e, ERR_IO, "the sink is full");
    c->left -= n;
    c->pieces++;
    buf_add(&c->text, data, n);
    return 0;
}

static int convert(enum text_encoding from, const unsigned char *p, size_t n, struct collected *ret, struct err *e)
{
    struct encoded_text t = { .encoding = from, .p = p, .n = n, .path = "t.csv" };
    *ret = (struct collected){ .text = BUF_INIT, .left = SIZE_MAX };
    return transcode_pieces(&t, collect, ret, e);
}

static void converts_to(enum text_encoding from, const unsigned char *p, size_t n, const char *want, size_t want_n)
{
    struct collected got;
    struct err e = { 0 };
    ck_ok_e(convert(from, p, n, &got, &e));
    ck_assert_uint_eq(got.text.len, want_n);
    ck_assert(want_n == 0 || memcmp(got.text.data, want, want_n) == 0);
    buf_fini(&got.text);
}

/* The upper half as the WHATWG's index-windows-1252.txt lists it. */
START_TEST(every_byte_of_windows_1252_is_a_character)
{
    static const char HIGH[] = "€\xC2\x81‚ƒ„…†‡ˆ‰Š‹Œ\xC2\x8DŽ\xC2\x8F"
                               "\xC2\x90‘’“”•–—˜™š›œ\xC2\x9DžŸ"
                               "\xC2\xA0¡¢£¤¥¦§¨©ª«¬\xC2\xAD®¯"
                               "°±²³´µ¶·¸¹º»¼½¾¿"
                               "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ"
                               "ÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß"
                               "àáâãäåæçèéêëìíîï"
                               "ðñòóôõö÷øùúûüýþÿ";
    unsigned char all[256];
    char want[128 + sizeof(HIGH)];
    for (int i = 0; i < 256; i++) {
        all[i] = (unsigned char)i;
        if (i < 128)
            want[i] = (char)i;
    }
    memcpy(want + 128, HIGH, sizeof(HIGH));
    converts_to(TEXT_WINDOWS_1252, all, sizeof(all), want, 128 + sizeof(HIGH) - 1);
}
END_TEST

START_TEST(a_byte_order_mark_is_not_text)
{
    converts_to(TEXT_UTF16LE, BYTES("\xFF\xFE"), "", 0);
    converts_to(TEXT_UTF16LE, BYTES(""), "", 0);
    converts_to(TEXT_UTF16LE,
                BYTES("\xFF\xFE"
                      "a\0"),
                "a", 1);
    converts_to(TEXT_UTF16BE, BYTES("\xFE\xFF\0a"), "a", 1);
    converts_to(TEXT_UTF16LE, BYTES("a\0\xFF\xFE"), "a\xEF\xBB\xBF", 4); /* only the first is a mark */
}
END_TEST

/* All characters there are, against libc. */
START_TEST(every_character_of_utf16_is_that_of_iconv)
{
    enum { ALL = 0x110000 - 0x800 };
    static const char *const NAMES[] = { [TEXT_UTF16LE] = "UTF-16LE", [TEXT_UTF16BE] = "UTF-16BE" };
    enum text_encoding from = _i == 0 ? TEXT_UTF16LE : TEXT_UTF16BE;
    AUTO_FINI(buf) text = BUF_INIT;
    for (uint32_t c = 0; c < 0x110000; c++)
        if (c < 0xD800 || c > 0xDFFF)
            buf_u32le(&text, c);
    ck_assert_uint_eq(text.len, 4 * (size_t)ALL);
    size_t size = 4 * (size_t)ALL;
    auto_free char *utf16 = xmalloc(size), *utf8 = xmalloc(size);
    char *in = text.data, *out16 = utf16, *out8 = utf8;
    size_t in_left = text.len, left16 = size, left8 = size;
    iconv_t to16 = iconv_open(NAMES[from], "UTF-32LE"), to8 = iconv_open("UTF-8", "UTF-32LE");
    ck_assert_uint_eq(iconv(to16, &in, &in_left, &out16, &left16), 0);
    in = text.data;
    in_left = text.len;
    ck_assert_uint_eq(iconv(to8, &in, &in_left, &out8, &left8), 0);
    iconv_close(to16);
    iconv_close(to8);
    ck_assert_uint_eq(transcode_utf8((unsigned char *)utf8, size - left8), size - left8);
    converts_to(from, (unsigned char *)utf16, size - left16, utf8, size - left8);
}
END_TEST

static const struct {
    const unsigned char *p;
    size_t n;
    const char *says;
} INVALID[] = {
    { BYTES("a\0b"), "t.csv: is UTF-16, but ends within a character, at byte 3: the file is truncated, copy it again" },
    { BYTES("a\0\x3D\xD8"), "t.csv: byte 2: half of a surrogate pair, which is not valid UTF-16" }, /* at the end */
    { BYTES("a\0\x3D\xD8z\0"),
      "t.csv: byte 2: half of a surrogate pair, which is not valid UTF-16" }, /* high, letter */
    { BYTES("\x3D\xD8\x3D\xD8\0\xDE"),
      "t.csv: byte 0: half of a surrogate pair, which is not valid UTF-16" }, /* high twice */
    { BYTES("\xFF\xFE\0\xDE\x3D\xD8"),
      "t.csv: byte 2: half of a surrogate pair, which is not valid UTF-16" }, /* low first */
};

START_TEST(invalid_utf16_is_named_with_its_place)
{
    struct collected got;
    struct err e = { 0 };
    ck_assert_int_eq(convert(TEXT_UTF16LE, INVALID[_i].p, INVALID[_i].n, &got, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_str_eq(e.msg, INVALID[_i].says);
    buf_fini(&got.text);
}
END_TEST

/* Characters of three and four bytes lie across the end of a piece in every way. */
START_TEST(pieces_hold_whole_characters)
{
    enum { CHARACTERS = 50000 };
    AUTO_FINI(buf) utf16 = BUF_INIT;
    AUTO_FINI(buf) want = BUF_INIT;
    struct collected got;
    struct err e = { 0 };
    for (int i = 0; i < _i; i++) {
        buf_add(&utf16, "a", 2);
        buf_char(&want, 'a');
    }
    for (int i = 0; i < CHARACTERS; i++) {
        buf_add(&utf16, "\xAC\x20\x3D\xD8\0\xDE", i % 2 == 0 ? 2 : 6);
        buf_str(&want, i % 2 == 0 ? "€" : "€😀");
    }
    ck_ok_e(convert(TEXT_UTF16LE, (unsigned char *)utf16.data, utf16.len, &got, &e));
    ck_assert_uint_eq(got.text.len, want.len);
    ck_assert_mem_eq(got.text.data, want.data, want.len);
    ck_assert_uint_ge(got.pieces, want.len / (64 << 10));
    buf_fini(&got.text);
}
END_TEST

START_TEST(an_error_of_the_sink_ends_it)
{
    size_t n = 1 << 20;
    auto_free unsigned char *text = xcalloc(n, 1);
    struct encoded_text t = { .encoding = TEXT_WINDOWS_1252, .p = text, .n = n, .path = "t.csv" };
    struct collected got = { .text = BUF_INIT, .left = n / 2 };
    struct err e = { 0 };
    ck_assert_int_eq(transcode_pieces(&t, collect, &got, &e), -1);
    ck_assert_str_eq(e.msg, "the sink is full");
    ck_assert_uint_gt(got.pieces, 1);
    buf_fini(&got.text);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/transcode");
    TCase *t = tcase_create("transcode");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, utf16_is_recognised_by_its_first_bytes, 0, COUNT_OF(GUESSES));
    tcase_add_test(t, only_the_first_4096_bytes_are_looked_at);
    tcase_add_loop_test(t, utf8_ends_at_the_first_bad_byte, 0, COUNT_OF(TEXTS));
    tcase_add_test(t, a_bad_byte_is_found_at_every_place);
    tcase_add_test(t, every_byte_of_windows_1252_is_a_character);
    tcase_add_test(t, a_byte_order_mark_is_not_text);
    tcase_add_loop_test(t, every_character_of_utf16_is_that_of_iconv, 0, 2);
    tcase_add_loop_test(t, invalid_utf16_is_named_with_its_place, 0, COUNT_OF(INVALID));
    tcase_add_loop_test(t, pieces_hold_whole_characters, 0, 7);
    tcase_add_test(t, an_error_of_the_sink_ends_it);
    return s;
}
