#include "check_main.h"

#include <string.h>

#include "codec/json_prune.h"

static const struct {
    const char *paths, *text, *want;
} CASES[] = {
    { "a", "{\"a\":1,\"b\":2}", "{\"b\":2}" },
    { "b", "{\"a\":1,\"b\":2}", "{\"a\":1}" },
    { "b c", "{ \"a\" : 1 , \"b\" : [ 2 ] , \"c\" : {} }", "{ \"a\" : 1 }" },
    { "a b", "{\"a\":{\"x\":[{}]},\"b\":\"}\"}", "{}" },
    { "a.b", "{\"a\":{\"b\":1,\"c\":2},\"b\":3}", "{\"a\":{\"c\":2},\"b\":3}" },
    { "a.b.c a.d", "{\"a\":{\"b\":{\"c\":[],\"e\":1},\"d\":\"x\"},\"d\":4}", "{\"a\":{\"b\":{\"e\":1}},\"d\":4}" },
    { "a.b", "{\"a\":[{\"b\":1}]}", "{\"a\":[{\"b\":1}]}" },
    { "a.*.b", "{\"a\":[{\"b\":1,\"c\":[1]}, {}, 7, {\"b\":{}}]}", "{\"a\":[{\"c\":[1]}, {}, 7, {}]}" },
    { "*.b", "[{\"b\":-1.5e3,\"c\":true},null]", "[{\"c\":true},null]" },
    { "a", "{\"b\":\"\\\"a\\\":1,\\\\\",\"a\":\"\\\\\\\"}\"}",
      "{\"b\":\"\\\"a\\\":1,\\\\\"}" }, /* quotes and backslashes */
    { "a", "{\"ab\":1,\"A\":2,\"\\u0061\":3}", "{\"ab\":1,\"A\":2,\"\\u0061\":3}" },
    { "a.b", "{\"a\":7}", "{\"a\":7}" },
    { "a", "\"a\"", "\"a\"" },
    { "", "{\"a\":1}", "{\"a\":1}" },
    /* not JSON: unchanged */
    { "a", "", "" },
    { "a", "{\"a\":1", "{\"a\":1" },
    { "a", "{\"a\":1,\"b\"", "{\"a\":1,\"b\"" },
    { "a", "{\"a\":{\"b\":\"", "{\"a\":{\"b\":\"" },
    { "a b.c", "{\"a\":1,\"b\":{\"c\" 1}}", "{\"a\":1,\"b\":{\"c\" 1}}" },
    { "a b.c", "{\"a\":1,\"b\":{\"c\":1]}", "{\"a\":1,\"b\":{\"c\":1]}" },
    { "a", "{\"a\":1,}", "{\"a\":1,}" },
    { "a", "{\"a\\\":1}", "{\"a\\\":1}" },
};

START_TEST(members_are_left_out)
{
    AUTO_FINI(strlist) paths = { 0 };
    AUTO_FINI(buf) out = BUF_INIT;

    strlist_split(&paths, CASES[_i].paths, ' ');
    buf_str(&out, "before ");
    json_prune(CASES[_i].text, strlen(CASES[_i].text), &paths, &out);
    ck_assert_str_eq(out.data + strlen("before "), CASES[_i].want);
}
END_TEST

/* It may be a part of a longer text. */
START_TEST(nothing_behind_the_text_is_read)
{
    AUTO_FINI(strlist) paths = { 0 };
    AUTO_FINI(buf) out = BUF_INIT;
    static const char TEXT[] = "{\"a\":1}\"b\":2}";

    strlist_add(&paths, "a");
    for (size_t n = 0; n <= sizeof(TEXT) - 1; n++) {
        auto_free char *exact = xmemdup(TEXT, MAX(n, 1)); /* AddressSanitizer watches its end */
        buf_clear(&out);
        json_prune(exact, n, &paths, &out);
        if (n == 7)
            ck_assert_str_eq(out.data, "{}");
        else if (n < 7)
            ck_assert_int_eq((int)out.len, (int)n);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("json_prune");
    TCase *c = tcase_create("json_prune");
    tcase_add_loop_test(c, members_are_left_out, 0, (int)COUNT_OF(CASES));
    tcase_add_test(c, nothing_behind_the_text_is_read);
    suite_add_tcase(s, c);
    return s;
}
