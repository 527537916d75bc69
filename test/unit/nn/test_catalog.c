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

/* A value is read to its place in the table, or its default stands there. */
START_TEST(arguments_have_their_places)
{
    struct err e = { 0 };
    const struct kind *kind = NULL;
    json_auto_t *doc = json_pack("{s:f, s:s}", "momentum", 0.5, "name", "mine"), *bad = json_pack("{s:i}", "momentun", 1);
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

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/catalog");
    TCase *t = tcase_create("catalog");
    tcase_add_test(t, values_of_every_row_fit);
    tcase_add_test(t, arguments_have_their_places);
    suite_add_tcase(s, t);
    return s;
}
