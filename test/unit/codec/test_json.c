#include "check_main.h"

#include <math.h>
#include <string.h>

#include "codec/json.h"

static json_t *parsed(const char *text)
{
    struct err e = { .code = ERR_NONE };
    json_t *v = NULL;
    ck_ok_e(json_parse(text, strlen(text), "t.json", &v, &e));
    return v;
}

START_TEST(writes_what_it_read)
{
    static const char *const TEXTS[] = {
        "{\"b\":1,\"a\":[1,2.5,true,null,\"x\\n\\u0001\xc3\xa9\"],\"c\":{}}",
        "[]",
        "\"x\"",
        "-9223372036854775808",
        "{\"q\\\"\\\\\\t\":\"\\\"\"}",
        "[\"\\\\\",\"\\u001F \x7f/\",\"\",false]",
        "0.1",
        "1e-7",
        "1e+300",
        "-0.0",
        "3.0",
        "0.30000000000000004",
        "1.7976931348623157e+308",
    };

    for (size_t i = 0; i < COUNT_OF(TEXTS); i++) {
        AUTO_FINI(buf) out = BUF_INIT;
        json_auto_t *v = parsed(TEXTS[i]);
        json_emit(v, &out);
        json_auto_t *again = parsed(out.data);
        ck_assert(json_equal(v, again));
        if (strstr(TEXTS[i], "e-7") == NULL) /* printf writes 1e-07 */
            ck_assert_str_eq(out.data, TEXTS[i]);
    }
}
END_TEST

START_TEST(pretty_text_is_indented_by_two)
{
    json_auto_t *v = parsed("{\"a\":[1,{\"b\":[]}],\"c\":{}}");
    AUTO_FINI(buf) out = BUF_INIT;

    json_emit_pretty(v, &out);
    ck_assert_str_eq(out.data, "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}\n");
}
END_TEST

START_TEST(errors_name_the_place)
{
    static const struct {
        const char *text, *message;
    } BAD[] = {
        { "{\n  \"a\": 1,\n  \"a\": 2}", "t.json:3:5: duplicate object key near '\"a\"'" },
        { "[1, 2", "t.json:1:5: ']' expected near end of file" },
        { "", "t.json:1:0: unexpected token near end of file" },
        { "{} x", "t.json:1:4: end of file expected near 'x'" },
        { "[1e999]", "t.json:1:6: real number overflow near '1e999'" },
        { "\"\\u0000\"", "t.json:1:8: \\u0000 is not allowed without JSON_ALLOW_NUL near '\"\\u0000\"'" },
    };

    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        struct err e = { .code = ERR_NONE };
        json_t *v = NULL;
        ck_assert_int_eq(json_parse(BAD[i].text, strlen(BAD[i].text), "t.json", &v, &e), -1);
        ck_assert_int_eq(e.code, ERR_INPUT);
        ck_assert_str_eq(e.msg, BAD[i].message);
    }
}
END_TEST

START_TEST(nesting_is_limited)
{
    char text[2 * JSON_DEPTH_MAX + 3] = "";
    struct err e = { .code = ERR_NONE };
    json_t *v = NULL;

    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    json_auto_t *fits = parsed(text);
    ck_assert_int_eq(json_depth(fits), JSON_DEPTH_MAX);
    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    ck_assert_int_eq(json_parse(text, strlen(text), "t.json", &v, &e), -1);
    ck_assert_str_eq(e.msg, "t.json: nested deeper than 64");
}
END_TEST

START_TEST(what_a_server_keeps_is_taken_as_it_is)
{
    struct err e = { 0 };
    AUTO_FINI(buf) deep = BUF_INIT;
    json_auto_t *v = NULL, *d = NULL;
    static const char ODD[] = "{\"a\": \"x\\u0000y\", \"b\": 1, \"b\": 2}";
    ck_ok_e(json_parse_any(ODD, sizeof(ODD) - 1, "answer", &v, &e));
    ck_assert_int_eq(json_integer_value(json_object_get(v, "b")), 2);
    for (int i = 0; i < 1000; i++)
        buf_str(&deep, "{\"a\":");
    buf_str(&deep, "1");
    for (int i = 0; i < 1000; i++)
        buf_char(&deep, '}');
    ck_ok_e(json_parse_any(deep.data, deep.len, "answer", &d, &e));
    ck_assert_int_eq(json_parse_any("{", 1, "answer", &d, NULL), -1);
}
END_TEST

START_TEST(finds_values_by_path)
{
    json_auto_t *v = parsed("{\"a\":{\"b\":[1,{\"c\":7}]}}");

    ck_assert_int_eq(json_integer_value(json_at(v, "a.b.1.c")), 7);
    ck_assert_ptr_eq(json_at(v, ""), v);
    ck_assert_ptr_null(json_at(v, "a.b.2"));
    ck_assert_ptr_null(json_at(v, "a.b.x"));
    ck_assert_ptr_null(json_at(v, "a.b.1.c.d"));
}
END_TEST

START_TEST(numbers_that_json_lacks_are_strings)
{
    static const struct {
        double v;
        const char *text;
    } CASES[] = { { 0.5, "0.5" },
                  { (double)NAN, "\"NaN\"" },
                  { (double)INFINITY, "\"Infinity\"" },
                  { -(double)INFINITY, "\"-Infinity\"" } };

    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        json_auto_t *v = json_number(CASES[i].v);
        AUTO_FINI(buf) out = BUF_INIT;
        json_emit(v, &out);
        ck_assert_str_eq(out.data, CASES[i].text);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("json");
    TCase *c = tcase_create("json");
    tcase_add_test(c, writes_what_it_read);
    tcase_add_test(c, pretty_text_is_indented_by_two);
    tcase_add_test(c, errors_name_the_place);
    tcase_add_test(c, nesting_is_limited);
    tcase_add_test(c, what_a_server_keeps_is_taken_as_it_is);
    tcase_add_test(c, finds_values_by_path);
    tcase_add_test(c, numbers_that_json_lacks_are_strings);
    suite_add_tcase(s, c);
    return s;
}
