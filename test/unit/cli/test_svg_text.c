/* Whatever the bytes of a name are, its text is well-formed XML; a cut text has the length that was asked for. */
#include "check_main.h"
#include "cli/svg_text.h"

#include <string.h>

#include "svg_checks.h"

static const struct {
    const char *text, *wanted;
} ESCAPED[] = {
    { "dense_1", "dense_1" },
    { "", "" },
    { "<a href=\"b\">&amp;", "&#60;a href=&#34;b&#34;&#62;&#38;amp;" },
    { "a\tb\nc\x01\x7f", "a?b?c??" },
    { "caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x9A\x82", "caf\xC3\xA9 \xE2\x86\x92 \xF0\x9F\x9A\x82" },
    { "caf\xE9 ok \xC3\xA9", "caf? ok \xC3\xA9" }, /* Latin-1 among UTF-8 */
    { "\xC0\xAF\xED\xA0\x80", "?????" },           /* an overlong slash, a surrogate */
    { "\xEF\xBF\xBE\xEF\xBF\xBF\xEF\xBF\xBD", "??\xEF\xBF\xBD" },
    { "\xE2\x86", "??" }, /* cut within a character */
};

START_TEST(text_is_escaped)
{
    AUTO_FINI(buf) out = BUF_INIT;
    svg_text(&out, ESCAPED[_i].text);
    ck_assert_str_eq(out.data, ESCAPED[_i].wanted);
    svg_check(out.data);
}
END_TEST

static const struct {
    const char *text;
    size_t most;
    const char *wanted;
} CUT[] = {
    { "abcdefg", 7, "abcdefg" },
    { "abcdefgh", 7,
      "abc\xE2\x80\xA6"
      "fgh" },
    { "abcdefgh", 4, "ab\xE2\x80\xA6h" },
    { "abcd", 3,
      "a\xE2\x80\xA6"
      "d" },
    { "\xC3\xA4\xC3\xB6\xC3\xBC", 3, "\xC3\xA4\xC3\xB6\xC3\xBC" },
    { "\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F", 3, "\xC3\xA4\xE2\x80\xA6\xC3\x9F" },
    { "", 5, "" },
};

START_TEST(a_long_text_is_cut_in_its_middle)
{
    AUTO_FINI(buf) out = BUF_INIT;
    svg_text_cut(&out, CUT[_i].text, CUT[_i].most);
    ck_assert_str_eq(out.data, CUT[_i].wanted);
}
END_TEST

START_TEST(width_follows_the_letters)
{
    ck_assert_int_eq(svg_text_width(""), 0);
    ck_assert_int_lt(svg_text_width("illi"), svg_text_width("abcd"));
    ck_assert_int_lt(svg_text_width("abcd"), svg_text_width("WWWW"));
    ck_assert_int_lt(svg_text_width("abcd"), svg_text_width("\xE5\xB1\xA4\xE5\xB1\xA4\xE5\xB1\xA4\xE5\xB1\xA4"));
    ck_assert_int_gt(svg_text_width("\xFF\xFF"), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/svg_text");
    TCase *tc = tcase_create("svg_text");
    tcase_add_loop_test(tc, text_is_escaped, 0, COUNT_OF(ESCAPED));
    tcase_add_loop_test(tc, a_long_text_is_cut_in_its_middle, 0, COUNT_OF(CUT));
    tcase_add_test(tc, width_follows_the_letters);
    suite_add_tcase(s, tc);
    return s;
}
