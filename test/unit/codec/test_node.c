#include "check_main.h"

#include <string.h>

#include "codec/node.h"

static const char TEXT[] = "kind: TrainJob\n"
                           "spec:\n"
                           "  optimizer: Adamm\n"
                           "  fit: {epochs: 5, rate: 1e-3, big: 3.0, half: 2.5, bad: text, off: null}\n"
                           "  shuffle: no\n"
                           "  sure: true\n"
                           "  layers:\n"
                           "    - Dense: {units: 10}\n"
                           "    - Flatten:\n"
                           "    - relu\n"
                           "    - {class_name: ReLU, config: {a: 1}, module: keras}\n"
                           "    - {name: Adam, learning_rate: 0.1}\n"
                           "    - {class_name: GELU, config: null}\n"
                           "    - Dense: [10]\n"
                           "    - {a: 1, b: 2}\n"
                           "    - 7\n";

static json_t *doc;
static struct source *src;

static void setup(void)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(yaml_parse(TEXT, strlen(TEXT), "mnist.yaml", &doc, &src, &e));
}

static void teardown(void)
{
    json_decref(TAKE(doc));
    source_free(TAKE(src));
}

static struct node at(const char *first, const char *second)
{
    struct node n = node_root(doc, src), one = node_get(&n, first);
    return second != NULL ? node_get(&one, second) : one;
}

static struct node layer(size_t i)
{
    struct node layers = at("spec", "layers");
    return node_item(&layers, i);
}

START_TEST(values_come_with_their_types)
{
    struct err e = { .code = ERR_NONE };
    struct node fit = at("spec", "fit"), kind = at("kind", NULL), sure = at("spec", "sure");
    struct node rate = node_get(&fit, "rate");
    int64_t i;
    double d;
    bool b;
    const char *s;

    ck_ok_e(node_str(&kind, &s, &e));
    ck_assert_str_eq(s, "TrainJob");
    ck_ok_e(node_i64_or(&fit, "epochs", 1, 1, 10, &i, &e));
    ck_assert_int_eq(i, 5);
    ck_ok_e(node_i64_or(&fit, "big", 1, 1, 10, &i, &e)); /* 3.0 */
    ck_assert_int_eq(i, 3);
    ck_ok_e(node_i64_or(&fit, "off", 8, 1, 10, &i, &e)); /* null counts as absent */
    ck_assert_int_eq(i, 8);
    ck_ok_e(node_f64(&rate, &d, &e)); /* 1e-3 has no dot */
    ck_assert_double_eq(d, 0.001);
    ck_ok_e(node_bool(&sure, &b, &e));
    ck_assert(b);
    ck_ok_e(node_str_or(&fit, "none", "fallback", &s, &e));
    ck_assert_str_eq(s, "fallback");
    ck_ok_e(node_bool_or(&fit, "none", true, &b, &e));
    ck_assert(b);
}
END_TEST

#define ck_error(call, text)                                                                                           \
    do {                                                                                                               \
        struct err e = { .code = ERR_NONE };                                                                           \
        ck_assert_int_eq((call), -1);                                                                                  \
        ck_assert_int_eq(e.code, ERR_INPUT);                                                                           \
        ck_assert_str_eq(e.msg, text);                                                                                 \
    } while (0)

START_TEST(errors_say_where_and_what_would_be_right)
{
    static const char *const OPTIMIZERS[] = { "SGD", "Adam" };
    static const char *const KEYS[] = { "kind", "specs" };
    struct node root = node_root(doc, src), fit = at("spec", "fit"), optimizer = at("spec", "optimizer");
    struct node shuffle = at("spec", "shuffle"), absent = at("spec", "absent"), kind = at("kind", NULL),
                list = at("spec", "layers");
    struct node bad = node_get(&fit, "bad");
    size_t index;
    int64_t i;
    double d;
    bool b;
    const char *s;

    ck_error(node_enum(&optimizer, OPTIMIZERS, 2, &index, &e),
             "mnist.yaml:3:14: spec.optimizer: 'Adamm' is not known; did you mean 'Adam'?");
    ck_error(node_enum(&kind, OPTIMIZERS, 2, &index, &e),
             "mnist.yaml:1:7: kind: 'TrainJob' is not known; it must be SGD or Adam");
    ck_error(node_only(&root, KEYS, 2, &e), "mnist.yaml:2:1: key 'spec' is not known; did you mean 'specs'?");
    ck_error(node_i64_or(&fit, "epochs", 1, 10, 20, &i, &e), "mnist.yaml:4:17: spec.fit.epochs: must be 10 to 20");
    ck_error(node_i64_or(&fit, "epochs", 1, 10, INT64_MAX, &i, &e),
             "mnist.yaml:4:17: spec.fit.epochs: must be at least 10");
    ck_error(node_i64_or(&fit, "half", 1, 1, 9, &i, &e),
             "mnist.yaml:4:48: spec.fit.half: must be a whole number, not 2.5");
    ck_error(node_f64(&bad, &d, &e), "mnist.yaml:4:58: spec.fit.bad: must be a number, not the string 'text'");
    ck_error(node_bool(&shuffle, &b, &e), "mnist.yaml:5:12: spec.shuffle: must be true or false, not the string 'no'");
    ck_error(node_str(&absent, &s, &e), "mnist.yaml:3:3: spec.absent: is missing; it must be a string");
    ck_error(node_str(&list, &s, &e), "mnist.yaml:8:5: spec.layers: must be a string, not a list");
    ck_error(node_object(&list, &e), "mnist.yaml:8:5: spec.layers: must be a map, not a list");
    ck_error(node_array(&fit, &e), "mnist.yaml:4:8: spec.fit: must be a list, not a map");
}
END_TEST

START_TEST(without_a_source_errors_name_the_path_alone)
{
    struct node root = node_root(doc, NULL), kind = node_get(&root, "kind");
    int64_t i;
    ck_error(node_i64(&kind, 0, 1, &i, &e), "kind: must be a whole number, not the string 'TrainJob'");
}
END_TEST

START_TEST(a_name_or_a_map_is_read_in_every_spelling)
{
    static const struct {
        size_t layer;
        const char *name, *path, *key; /* of the arguments; a valid key of theirs, or NULL: there are no arguments */
    } FORMS[] = {
        { 0, "Dense", "spec.layers[0].Dense", "units" },
        { 1, "Flatten", "spec.layers[1].Flatten", NULL },
        { 2, "relu", "spec.layers[2]", NULL },
        { 3, "ReLU", "spec.layers[3].config", "a" },
        { 4, "Adam", "spec.layers[4]", "learning_rate" },
        { 5, "GELU", "spec.layers[5].config", NULL },
    };

    for (size_t i = 0; i < COUNT_OF(FORMS); i++) {
        struct err e = { .code = ERR_NONE };
        struct node n = layer(FORMS[i].layer), config;
        const char *name;
        ck_ok_e(node_named(&n, &name, &config, &e));
        ck_assert_str_eq(name, FORMS[i].name);
        ck_assert_str_eq(config.path, FORMS[i].path);
        ck_assert_int_eq(node_present(&config), FORMS[i].key != NULL);
        if (FORMS[i].key != NULL)
            ck_assert_ptr_nonnull(json_object_get(config.v, FORMS[i].key));
    }
}
END_TEST

START_TEST(a_name_or_a_map_must_be_one)
{
    struct node list = layer(6), two = layer(7), number = layer(8), config;
    const char *name;

    ck_error(node_named(&list, &name, &config, &e),
             "mnist.yaml:14:14: spec.layers[6].Dense: the arguments of 'Dense' must be a map, not a list");
    ck_error(node_named(&two, &name, &config, &e),
             "mnist.yaml:15:7: spec.layers[7]: must be a name, or a map of one name to its arguments");
    ck_error(node_named(&number, &name, &config, &e),
             "mnist.yaml:16:7: spec.layers[8]: must be a name, or a map, not 7");
}
END_TEST

START_TEST(keys_come_in_the_order_of_the_document)
{
    struct node root = node_root(doc, src), spec = at("spec", NULL);

    ck_assert_uint_eq(node_size(&root), 2);
    ck_assert_str_eq(node_key(&root, 0), "kind");
    ck_assert_str_eq(node_key(&spec, 3), "sure");
    ck_assert_ptr_null(node_key(&root, 2));
}
END_TEST

START_TEST(a_very_long_path_is_cut_and_still_finds_a_place)
{
    enum { DEEP = 40 };
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    AUTO(source) *places = NULL;
    int64_t i;

    for (int k = 0; k < DEEP; k++)
        buf_str(&text, "{a-long-key-of-a-map: ");
    buf_str(&text, "x");
    for (int k = 0; k < DEEP; k++)
        buf_char(&text, '}');
    ck_ok_e(yaml_parse(text.data, text.len, "deep.yaml", &v, &places, &e));
    struct node n = node_root(v, places);
    for (int k = 0; k < DEEP; k++)
        n = node_get(&n, "a-long-key-of-a-map");
    ck_assert_int_eq(node_i64(&n, 0, 1, &i, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "deep.yaml:1:"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("node");
    TCase *c = tcase_create("node");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, values_come_with_their_types);
    tcase_add_test(c, errors_say_where_and_what_would_be_right);
    tcase_add_test(c, without_a_source_errors_name_the_path_alone);
    tcase_add_test(c, a_name_or_a_map_is_read_in_every_spelling);
    tcase_add_test(c, a_name_or_a_map_must_be_one);
    tcase_add_test(c, keys_come_in_the_order_of_the_document);
    tcase_add_test(c, a_very_long_path_is_cut_and_still_finds_a_place);
    suite_add_tcase(s, c);
    return s;
}
