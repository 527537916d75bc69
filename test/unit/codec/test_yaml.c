/* Cases are folders of test/data/codec/yaml: valid/<case>/{input.yaml,expected.json} (a list of its documents) and
 * invalid/<case>/{input.yaml,error}. */
#include "check_main.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "codec/yaml.h"

#define CASES "test/data/codec/yaml/"
enum { CASE_MAX = 1 << 20 };

static void read_case(const char *kind, const char *name, const char *file, struct buf *ret)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *path = xasprintf(CASES "%s/%s/%s", kind, name, file);
    ck_ok_e(file_read(path, CASE_MAX, ret, &e));
}

static int collect(void *user, json_t *v, const struct source *s, struct err *e UNUSED)
{
    ck_assert_str_eq(source_name(s), "input.yaml");
    json_array_append(user, v);
    return 0;
}

/* What is written must read back as the same value. */
static void check_round_trip(const json_t *v)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *again = NULL;
    AUTO(source) *src = NULL;

    yaml_emit(v, &text);
    ck_ok_e(yaml_parse(text.data, text.len, "emitted", &again, &src, &e));
    ck_assert_msg(json_equal(again, v), "differs after writing:\n%s", text.data);
}

static void check_valid(const char *name)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) input = BUF_INIT;
    AUTO_FINI(buf) expected = BUF_INIT;
    json_auto_t *got = json_array(), *want = NULL;
    size_t i;
    json_t *document;

    read_case("valid", name, "input.yaml", &input);
    read_case("valid", name, "expected.json", &expected);
    ck_ok_e(json_parse(expected.data, expected.len, "expected.json", &want, &e));
    ck_assert_msg(yaml_parse_all(input.data, input.len, "input.yaml", collect, got, &e) == 0, "%s: %s", name, e.msg);
    if (!json_equal(got, want)) {
        AUTO_FINI(buf) text = BUF_INIT;
        json_emit_pretty(got, &text);
        ck_abort_msg("%s: reads as\n%s", name, text.data);
    }
    json_array_foreach(got, i, document) if (json_is_object(document)) check_round_trip(document);
}

static void check_invalid(const char *name)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) input = BUF_INIT;
    AUTO_FINI(buf) error = BUF_INIT;
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;

    read_case("invalid", name, "input.yaml", &input);
    ck_assert_msg(yaml_parse(input.data, input.len, "input.yaml", &v, &src, &e) == -1, "%s: is accepted", name);
    ck_assert_int_eq(e.code, ERR_INPUT);
    if (getenv("TRAINYARD_SHOW_ERRORS") != NULL)
        printf("%s\t%s\n", name, e.msg);
    read_case("invalid", name, "error", &error);
    error.data[strcspn(error.data, "\n")] = '\0';
    ck_assert_msg(strcmp(e.msg, error.data) == 0, "%s: '%s', expected '%s'", name, e.msg, error.data);
}

static void for_each_case(const char *folder, void (*check)(const char *name))
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(strlist) names = { 0 };
    ck_ok_e(dir_list(folder, &names, &e));
    ck_assert_uint_gt(names.n, 5);
    for (size_t i = 0; i < names.n; i++)
        check(names.items[i]);
}

START_TEST(reads_every_valid_case)
{
    for_each_case(CASES "valid", check_valid);
}
END_TEST

START_TEST(names_what_is_wrong_with_every_invalid_case)
{
    for_each_case(CASES "invalid", check_invalid);
}
END_TEST

static const char MANIFEST[] = "kind: TrainJob\n"
                               "spec:\n"
                               "  layers:\n"
                               "    - Dense: {units: 10,\n"
                               "              bias: no}\n"
                               "  base: &b {x: 1}\n"
                               "  more:\n"
                               "    <<: *b\n";

START_TEST(remembers_where_every_value_stood)
{
    static const struct {
        const char *path;
        int line, column, key_line, key_column;
    } PLACES[] = {
        { "", 1, 1, 1, 1 },
        { "kind", 1, 7, 1, 1 },
        { "spec.layers", 4, 5, 3, 3 },
        { "spec.layers[0]", 4, 7, 4, 7 },
        { "spec.layers[0].Dense.units", 4, 22, 4, 15 },
        { "spec.layers[0].Dense.bias", 5, 21, 5, 15 },
        { "spec.layers[0].Dense.bias.nothing", 5, 21, 5, 21 },
        { "spec.more.x", 8, 9, 8, 9 },
        { "status.none", 1, 1, 1, 1 },
    };
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;
    int line, column;

    ck_ok_e(yaml_parse(MANIFEST, strlen(MANIFEST), "mnist.yaml", &v, &src, &e));
    for (size_t i = 0; i < COUNT_OF(PLACES); i++) {
        ck_assert(source_find(src, PLACES[i].path, &line, &column));
        ck_assert_msg(line == PLACES[i].line && column == PLACES[i].column, "%s at %d:%d", PLACES[i].path, line,
                      column);
        ck_assert(source_find_key(src, PLACES[i].path, &line, &column));
        ck_assert_msg(line == PLACES[i].key_line && column == PLACES[i].key_column, "key of %s at %d:%d",
                      PLACES[i].path, line, column);
    }
}
END_TEST

START_TEST(a_copy_of_an_anchor_can_be_changed_alone)
{
    static const char TEXT[] = "a: &a {x: 1}\nb: *a\n";
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;

    ck_ok_e(yaml_parse(TEXT, strlen(TEXT), "t", &v, &src, &e));
    json_object_set_new(json_at(v, "b"), "x", json_integer(2));
    ck_assert_int_eq(json_integer_value(json_at(v, "a.x")), 1);
}
END_TEST

START_TEST(takes_the_first_map_of_several_documents)
{
    static const char TEXT[] = "--- 5\n---\nkind: A\n---\nkind: B\n";
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    AUTO(source) *src = NULL;

    ck_ok_e(yaml_parse(TEXT, strlen(TEXT), "t", &v, &src, &e));
    ck_assert_str_eq(json_string_value(json_at(v, "kind")), "A");
}
END_TEST

static int refuse(void *user UNUSED, json_t *v UNUSED, const struct source *s, struct err *e)
{
    return err_set(e, ERR_REFUSED, "%s: not wanted", source_name(s));
}

START_TEST(a_callback_can_end_the_reading)
{
    struct err e = { .code = ERR_NONE };
    ck_assert_int_eq(yaml_parse_all("{a: 1}", 6, "t", refuse, NULL, &e), -1);
    ck_assert_str_eq(e.msg, "t: not wanted");
}
END_TEST

START_TEST(writes_text_that_looks_like_something_else_in_quotes)
{
    static const char WANT[] = "a: \"true\"\n"
                               "b: \"12\"\n"
                               "c: \"yes\"\n"
                               "d: \"\"\n"
                               "e: plain words\n"
                               "f: |\n"
                               "  one\n"
                               "  two\n"
                               "g: 0.1\n"
                               "h: []\n"
                               "\"<<\": {}\n"
                               "i:\n"
                               "- x: null\n";
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    AUTO_FINI(buf) text = BUF_INIT;
    static const char JSON[] = "{\"a\":\"true\",\"b\":\"12\",\"c\":\"yes\",\"d\":\"\",\"e\":\"plain words\","
                               "\"f\":\"one\\ntwo\\n\",\"g\":0.1,\"h\":[],\"<<\":{},\"i\":[{\"x\":null}]}";

    ck_ok_e(json_parse(JSON, strlen(JSON), "t", &v, &e));
    yaml_emit(v, &text);
    ck_assert_str_eq(text.data, WANT);
    check_round_trip(v);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("yaml");
    TCase *c = tcase_create("yaml");
    tcase_add_test(c, reads_every_valid_case);
    tcase_add_test(c, names_what_is_wrong_with_every_invalid_case);
    tcase_add_test(c, remembers_where_every_value_stood);
    tcase_add_test(c, a_copy_of_an_anchor_can_be_changed_alone);
    tcase_add_test(c, takes_the_first_map_of_several_documents);
    tcase_add_test(c, a_callback_can_end_the_reading);
    tcase_add_test(c, writes_text_that_looks_like_something_else_in_quotes);
    suite_add_tcase(s, c);
    return s;
}
