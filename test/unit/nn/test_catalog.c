#include "nn/catalog.h"

#include "../check_main.h"
#include "nn/layers/layer.h"

static const struct catalog *const CATALOGS[] = { &OPTIMIZERS,       &SCHEDULES,    &LOSSES,       &METRICS,
                                                  &ACTIVATION_KINDS, &INITIALIZERS, &REGULARIZERS, &CALLBACKS };

START_TEST(values_of_every_row_fit)
{
    for (size_t i = 0; i < COUNT_OF(CATALOGS); i++)
        for (size_t k = 0; k < CATALOGS[i]->count; k++) {
            const struct kind *row = catalog_row(CATALOGS[i], k);
            ck_assert_msg(row->nargs <= KIND_ARGS_MAX, "%s has %zu arguments", row->names[0], row->nargs);
        }
}
END_TEST

/* A value is read into the field that the table names; without one the field gets its default. */
START_TEST(arguments_have_their_places)
{
    struct err e = { 0 };
    const struct kind *kind = NULL;
    json_auto_t *doc = json_pack("{s:f, s:s}", "momentum", 0.5, "name", "mine"),
                *bad = json_pack("{s:i}", "momentun", 1);
    struct node n = node_root(doc, NULL), misspelt = node_root(bad, NULL);
    double values[KIND_ARGS_MAX], before[KIND_ARGS_MAX];
    ck_ok_e(catalog_find(&OPTIMIZERS, &n, "sgd", &kind, &e));
    ck_ok_e(args_parse(kind, &n, values, &e));
    args_defaults(kind, before);
    for (size_t i = 0; i < kind->nargs; i++) {
        bool given = strcmp(kind->args[i].name, "momentum") == 0;
        double want = given ? 0.5 : before[i];
        ck_assert_msg(memcmp(&values[i], &want, sizeof(want)) == 0, "%s", kind->args[i].name);
    }
    ck_assert_int_eq(args_parse(kind, &misspelt, values, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "did you mean 'momentum'"));
}
END_TEST

static const struct arg TUPLES[] = { ARG_TUPLE("size", ARG_AT_LEAST_ONE, 2, 2, "1"),
                                     ARG_TUPLE("shape", ARG_SIZE_OR_REST, 0, 3, NULL) };
static const struct kind TUPLE_KIND = { .names = { "Tuples" }, .args = TUPLES, .nargs = COUNT_OF(TUPLES) };

START_TEST(a_tuple_has_its_length)
{
    struct err e = { 0 };
    double values[COUNT_OF(TUPLES)];
    struct arg_list list;
    json_auto_t *doc = json_pack("{s:i, s:[i, i]}", "size", 3, "shape", 4, -1);
    struct node n = node_root(doc, NULL);
    ck_ok_e(args_parse(&TUPLE_KIND, &n, values, &e));
    ck_ok_e(arg_list_read(&TUPLE_KIND, "size", &n, &list, &e));
    ck_assert(list.n == 2 && list.v[0] == 3 && list.v[1] == 3); /* one number is used for both */
    ck_ok_e(arg_list_read(&TUPLE_KIND, "shape", &n, &list, &e));
    ck_assert(list.n == 2 && list.v[0] == 4 && list.v[1] == -1);
    json_object_del(doc, "shape");
    ck_ok_e(arg_list_read(&TUPLE_KIND, "shape", &n, &list, &e));
    ck_assert_int_eq(list.n, 0);
}
END_TEST

START_TEST(a_bad_tuple_is_refused)
{
    static const char *const BAD[][2] = { { "{\"size\": [1]}", "has 1 entries; it must have 2" },
                                          { "{\"size\": 0}", "must be 1 or greater, not 0" },
                                          { "{\"size\": [1, 2.5]}", "must be" },
                                          { "{\"size\": 3000000000}", "3000000000 is too large" },
                                          { "{\"shape\": 4}", "must be a list" },
                                          { "{\"shape\": [1, 1, 1, 1]}", "it must have 0 to 3" },
                                          { "{\"shape\": [-2]}", "or -1 for what is left, not -2" } };
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        struct err e = { 0 };
        double values[COUNT_OF(TUPLES)];
        json_auto_t *doc = json_loads(BAD[i][0], 0, NULL);
        struct node n = node_root(doc, NULL);
        ck_assert_int_eq(args_parse(&TUPLE_KIND, &n, values, &e), -1);
        ck_assert_msg(strstr(e.msg, BAD[i][1]) != NULL, "%s: %s", BAD[i][0], e.msg);
    }
}
END_TEST

static const struct arg DEFAULTS[] = { ARG_REFUSE("constraint"), ARG_REFUSE_BUT("groups", "1"),
                                       ARG_REFUSE_BUT("use_ema", "False"), ARG_REFUSE_BUT("mode", "'nearest'"),
                                       ARG_REFUSE_OLD("dilation", "1") };
static const struct kind DEFAULT_KIND = { .names = { "Defaults" }, .args = DEFAULTS, .nargs = COUNT_OF(DEFAULTS) };

/* Of what is not supported only the default passes, as Keras writes it. */
START_TEST(only_the_default_passes)
{
    static const char *const CASES[][2] = { { "{}", NULL },
                                            { "{\"constraint\": null, \"groups\": 1, \"use_ema\": false}", NULL },
                                            { "{\"constraint\": 0, \"mode\": \"nearest\"}", NULL },
                                            { "{\"constraint\": \"max_norm\"}", "not supported yet; leave it out" },
                                            { "{\"groups\": 0}", "groups: only 1 is supported yet" },
                                            { "{\"groups\": \"1\"}", "groups: only 1 is supported yet" },
                                            { "{\"use_ema\": true}", "not supported yet; leave it out" },
                                            { "{\"mode\": \"near\"}", "mode: only 'nearest' is supported yet" },
                                            { "{\"dilation\": 1}", NULL },
                                            { "{\"dilation\": 2}", "dilation: only 1 is supported yet" },
                                            { "{\"mode\": 0}", "mode: only 'nearest' is supported yet" } };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct err e = { 0 };
        double values[COUNT_OF(DEFAULTS)];
        json_auto_t *doc = json_loads(CASES[i][0], 0, NULL);
        struct node n = node_root(doc, NULL);
        int rc = args_parse(&DEFAULT_KIND, &n, values, &e);
        ck_assert_msg(rc == (CASES[i][1] == NULL ? 0 : -1), "%s: %s", CASES[i][0], e.msg);
        ck_assert_msg(rc == 0 || strstr(e.msg, CASES[i][1]) != NULL, "%s: %s", CASES[i][0], e.msg);
    }
}
END_TEST

/* As Keras's from_config() needs them; none that one of both Kerases does not know. */
START_TEST(defaults_are_written)
{
    const double values[COUNT_OF(DEFAULTS)] = { 0 };
    json_auto_t *got = args_config(&DEFAULT_KIND, values);
    json_auto_t *want =
        json_loads("{\"constraint\": null, \"groups\": 1, \"use_ema\": false, \"mode\": \"nearest\"}", 0, NULL);
    ck_assert(json_equal(got, want));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/catalog");
    TCase *t = tcase_create("catalog");
    tcase_add_test(t, values_of_every_row_fit);
    tcase_add_test(t, arguments_have_their_places);
    tcase_add_test(t, a_tuple_has_its_length);
    tcase_add_test(t, a_bad_tuple_is_refused);
    tcase_add_test(t, only_the_default_passes);
    tcase_add_test(t, defaults_are_written);
    suite_add_tcase(s, t);
    return s;
}
