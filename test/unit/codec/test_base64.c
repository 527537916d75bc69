#include "check_main.h"

#include <string.h>

#include "base/rng.h"
#include "codec/base64.h"

/* RFC 4648, part 10, and line ends anywhere, which Go's decoder accepts as well. */
START_TEST(known_texts)
{
    static const char *const CASES[][2] = {
        { "", "" },
        { "Zg==", "f" },
        { "Zm8=", "fo" },
        { "Zm9v", "foo" },
        { "Zm9vYg==", "foob" },
        { "Zm9vYmE=", "fooba" },
        { "Zm9vYmFy", "foobar" },
        { "Zm9v\r\nYm\nFy\n", "foobar" },
        { "Zm9vYg=\n=\n", "foob" },
    };
    struct err e = { .code = ERR_NONE };

    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        AUTO_FINI(buf) out = BUF_INIT;
        buf_str(&out, ">");
        ck_ok_e(base64_decode(CASES[i][0], strlen(CASES[i][0]), &out, &e));
        ck_assert_str_eq(out.data + 1, CASES[i][1]);
    }
}
END_TEST

START_TEST(bad_texts)
{
    static const char *const CASES[][2] = {
        { "Zg", "the base64 is cut off" },
        { "Zg=", "the base64 is cut off" },
        { "Z", "the base64 is cut off" },
        { "=", "byte 1 is not valid base64" },
        { "Z===", "byte 2 is not valid base64" },
        { "Zg==Zg==", "byte 5 follows the end of the base64" },
        { "Zg=v", "byte 4 is not valid base64" },
        { "Zm9*", "byte 4 is not valid base64" },
        { "Zm 9", "byte 3 is not valid base64" },
        { "Zm-_", "byte 3 is not valid base64" },
        { "Zh==", "byte 4 is not a valid end of base64" },
        { "Zm9=", "byte 4 is not a valid end of base64" },
    };

    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        AUTO_FINI(buf) out = BUF_INIT;
        struct err e = { .code = ERR_NONE };
        buf_str(&out, "kept");
        ck_assert_msg(base64_decode(CASES[i][0], strlen(CASES[i][0]), &out, &e) < 0, "'%s' is taken", CASES[i][0]);
        ck_assert_str_eq(e.msg, CASES[i][1]);
        ck_assert_str_eq(out.data, "kept");
    }
}
END_TEST

START_TEST(what_is_written_reads_back)
{
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    struct err e = { .code = ERR_NONE };

    for (size_t n = 0; n < 300; n++) {
        unsigned char data[300];
        AUTO_FINI(buf) text = BUF_INIT;
        AUTO_FINI(buf) again = BUF_INIT;
        for (size_t i = 0; i < n; i++)
            data[i] = (unsigned char)rng_u32(&r);
        base64_encode(data, n, &text);
        ck_assert_uint_eq(text.len, (n + 2) / 3 * 4);
        ck_ok_e(base64_decode(text.data, text.len, &again, &e));
        ck_assert_uint_eq(again.len, n);
        ck_assert_mem_eq(again.data, data, n);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("base64");
    TCase *c = tcase_create("base64");
    tcase_add_test(c, known_texts);
    tcase_add_test(c, bad_texts);
    tcase_add_test(c, what_is_written_reads_back);
    suite_add_tcase(s, c);
    return s;
}
