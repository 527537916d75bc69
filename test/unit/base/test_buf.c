#include "base/buf.h"
#include "check_main.h"

#include <string.h>

START_TEST(an_empty_buf_is_an_empty_string)
{
    AUTO_FINI(buf) b = BUF_INIT;
    ck_assert_str_eq(b.data, "");
    buf_clear(&b);
    buf_add(&b, NULL, 0);
    ck_assert_uint_eq(b.len, 0);
    auto_free char *s = buf_detach(&b);
    ck_assert_str_eq(s, "");
    ck_assert_int_eq(buf_empty[0], 0);
}
END_TEST

START_TEST(appends_grow_and_stay_a_string)
{
    AUTO_FINI(buf) b = BUF_INIT;
    for (int i = 0; i < 1000; i++) {
        buf_printf(&b, "%d,", i);
        ck_assert_uint_eq(strlen(b.data), b.len);
    }
    ck_assert(strncmp(b.data, "0,1,2,3,", 8) == 0);
    ck_assert_str_eq(b.data + b.len - 8, "998,999,");
    buf_clear(&b);
    ck_assert_str_eq(b.data, "");
    buf_str(&b, "ab");
    buf_char(&b, 'c');
    ck_assert_str_eq(b.data, "abc");
    auto_free char *s = buf_detach(&b);
    ck_assert_str_eq(s, "abc");
    ck_assert_uint_eq(b.len, 0);
    ck_assert_str_eq(b.data, "");
}
END_TEST

START_TEST(a_long_print_is_whole)
{
    AUTO_FINI(buf) b = BUF_INIT;
    buf_printf(&b, "%0500d|%s", 7, "end");
    ck_assert_uint_eq(b.len, 504);
    ck_assert_str_eq(b.data + 499, "7|end");
}
END_TEST

START_TEST(little_endian_round_trip)
{
    AUTO_FINI(buf) b = BUF_INIT;
    buf_u16le(&b, 0x1234);
    buf_u32le(&b, 0xdeadbeef);
    buf_u64le(&b, 0x0123456789abcdef);
    ck_assert_mem_eq(b.data, "\x34\x12\xef\xbe\xad\xde\xef\xcd\xab\x89\x67\x45\x23\x01", 14);

    struct reader r = reader_of(b.data, b.len);
    const void *two;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    ck_assert_int_eq(reader_bytes(&r, 2, &two), 0);
    ck_assert_ptr_eq(two, b.data);
    ck_assert_int_eq(reader_u32le(&r, &u32), 0);
    ck_assert_int_eq(reader_u64le(&r, &u64), 0);
    ck_assert_uint_eq(u32, 0xdeadbeef);
    ck_assert_uint_eq(u64, 0x0123456789abcdef);
    ck_assert_uint_eq(reader_left(&r), 0);
}
END_TEST

START_TEST(a_reader_never_passes_the_end)
{
    unsigned char bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    for (size_t n = 0; n < 8; n++) {
        struct reader r = reader_of(bytes, n);
        const void *p = NULL;
        uint64_t u64;
        uint32_t u32;
        ck_assert_int_eq(reader_u64le(&r, &u64), -1);
        ck_assert_int_eq(reader_bytes(&r, n + 1, &p), -1);
        ck_assert_int_eq(reader_bytes(&r, SIZE_MAX, &p), -1);
        ck_assert_uint_eq(reader_left(&r), n); /* a failed call leaves the position */
        ck_assert_int_eq(reader_u32le(&r, &u32), n >= 4 ? 0 : -1);
        r = reader_of(bytes, n);
        ck_assert_int_eq(reader_u32be(&r, &u32), n >= 4 ? 0 : -1);
        if (n >= 4)
            ck_assert_uint_eq(u32, 0x01020304);
    }
    uint8_t u8;
    struct reader none = reader_of(NULL, 0);
    ck_assert_int_eq(reader_u8(&none, &u8), -1);
}
END_TEST

/* bytes, how many, value, good */
static const struct {
    const char *bytes;
    size_t n;
    uint64_t value;
    bool good;
} VARINTS[] = {
    { "\x00", 1, 0, true },
    { "\x7f", 1, 127, true },
    { "\x80\x01", 2, 128, true },
    { "\xac\x02", 2, 300, true },
    { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX, true },
    { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 0, false }, /* 65 bits */
    { "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, 0, false },
    { "\x80", 1, 0, false },
    { "", 0, 0, false },
};
START_TEST(varints)
{
    uint64_t v = 42;
    struct reader r = reader_of(VARINTS[_i].bytes, VARINTS[_i].n);
    ck_assert_int_eq(reader_varint(&r, &v), VARINTS[_i].good ? 0 : -1);
    ck_assert_uint_eq(v, VARINTS[_i].good ? VARINTS[_i].value : 42);
    ck_assert_uint_eq(reader_left(&r), VARINTS[_i].good ? 0 : VARINTS[_i].n);
}
END_TEST

static const struct {
    const char *text, *shown;
} TEXTS[] = {
    { "", "" },
    { "caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x9A\x82\tx", "caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x9A\x82\tx" },
    { "one\nerror: two\x1b[31m\x7f", "one error: two [31m " },
    { "a\xC2\x9B"
      "31mb\xC2\x80\xC2\x9F\xC2\xA0",
      "a 31mb  \xC2\xA0" },                                                              /* CSI of one character */
    { "\xE2\x80\xA8|\xE2\x80\xAA|\xE2\x80\xAE|\xE2\x81\xA6|\xE2\x81\xA9", " | | | | " }, /* other lines, directions */
    { "\xE2\x80\xA7|\xE2\x80\xAF|\xE2\x81\xA5|\xE2\x81\xAA", "\xE2\x80\xA7|\xE2\x80\xAF|\xE2\x81\xA5|\xE2\x81\xAA" },
    { "\xFF\xC3|\xED\xA0\x80\xE2\x86", "??|?????" },
};

START_TEST(a_text_is_shown_and_not_obeyed)
{
    AUTO_FINI(buf) b = BUF_INIT;
    buf_shown(&b, TEXTS[_i].text, strlen(TEXTS[_i].text));
    ck_assert_str_eq(b.data, TEXTS[_i].shown);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("buf");
    TCase *t = tcase_create("buf");
    tcase_add_test(t, an_empty_buf_is_an_empty_string);
    tcase_add_test(t, appends_grow_and_stay_a_string);
    tcase_add_test(t, a_long_print_is_whole);
    tcase_add_test(t, little_endian_round_trip);
    tcase_add_test(t, a_reader_never_passes_the_end);
    tcase_add_loop_test(t, varints, 0, COUNT_OF(VARINTS));
    tcase_add_loop_test(t, a_text_is_shown_and_not_obeyed, 0, COUNT_OF(TEXTS));
    suite_add_tcase(s, t);
    return s;
}
