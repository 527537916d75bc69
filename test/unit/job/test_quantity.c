/* Quantities of Kubernetes: what its parser accepts, and the value in thousandths. */
#include "check_main.h"

#include <math.h>

#include "codec/json.h"
#include "job/quantity.h"

static const struct {
    const char *json;
    double milli; /* -1: not a quantity */
    bool binary;
} ROWS[] = {
    { "2", 2000, false },
    { "0.5", 500, false },
    { "\"2\"", 2000, false },
    { "\"500m\"", 500, false },
    { "\"0.1\"", 100, false },
    { "\"100u\"", 1, false },
    { "\"1n\"", 1, false },
    { "\"1k\"", 1e6, false },
    { "\"1M\"", 1e9, false },
    { "\"2G\"", 2e12, false },
    { "\"1T\"", 1e15, false },
    { "\"1P\"", 1e18, false },
    { "\"1E\"", 1e21, false },
    { "\"1e3\"", 1e6, false },
    { "\"1E3\"", 1e6, false },
    { "\"2E+2\"", 2e5, false },
    { "\"5e-1\"", 500, false },
    { "\"1Ki\"", 1024e3, true },
    { "\"1.5Gi\"", 1536.0 * 1024 * 1024 * 1e3, true },
    { "\"1Ei\"", 0x1p60 * 1e3, true },
    { "\"\"", -1, false },
    { "\"Mi\"", -1, false },
    { "\"1mi\"", -1, false },
    { "\"1GB\"", -1, false },
    { "\"1 Gi\"", -1, false },
    { "\"0x10\"", -1, false },
    { "\"nan\"", -1, false },
    { "\"1.2.3\"", -1, false },
    { "true", -1, false },
    { "null", -1, false },
    { "[]", -1, false },
    { "\"four\"", -1, false },
    { "\"4gb\"", -1, false },
};

START_TEST(quantities_are_read_as_kubernetes_reads_them)
{
    struct err e = { .code = ERR_NONE };
    auto_free char *text = xasprintf("[%s]", ROWS[_i].json);
    json_auto_t *list = NULL;
    double milli = -1;
    bool binary;
    ck_ok_e(json_parse(text, strlen(text), "list", &list, &e));
    int rc = quantity_parse(json_array_get(list, 0), &milli, &binary);
    ck_assert_msg((rc == 0) == (ROWS[_i].milli >= 0), "%s: %d", ROWS[_i].json, rc);
    if (rc == 0)
        ck_assert_msg(fabs(milli - ROWS[_i].milli) <= 0 && binary == ROWS[_i].binary, "%s: %.17g", ROWS[_i].json,
                      milli);
}
END_TEST

START_TEST(the_first_value_that_is_no_quantity_is_named)
{
    static const char GOOD[] = "{\"cpu\": 2, \"memory\": \"4Gi\"}", BAD[] = "{\"cpu\": 2, \"memory\": \"4gb\"}",
                      NEGATIVE[] = "{\"cpu\": -1}";
    struct err e = { .code = ERR_NONE };
    json_auto_t *good = NULL, *bad = NULL, *negative = NULL;
    ck_ok_e(json_parse(GOOD, strlen(GOOD), "good", &good, &e));
    ck_ok_e(json_parse(BAD, strlen(BAD), "bad", &bad, &e));
    ck_ok_e(json_parse(NEGATIVE, strlen(NEGATIVE), "negative", &negative, &e));
    const struct node none = node_root(NULL, NULL), g = node_root(good, NULL), b = node_root(bad, NULL),
                      n = node_root(negative, NULL);
    ck_ok_e(quantity_check_map(&none, &e));
    ck_ok_e(quantity_check_map(&g, &e));
    ck_fails(quantity_check_map(&b, &e), ERR_INPUT, "must be a quantity, such as 2, 500m or 4Gi, not '4gb'");
    ck_fails(quantity_check_map(&n, &e), ERR_INPUT, "must be a quantity");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("quantity");
    TCase *t = tcase_create("quantity");
    tcase_add_loop_test(t, quantities_are_read_as_kubernetes_reads_them, 0, COUNT_OF(ROWS));
    tcase_add_test(t, the_first_value_that_is_no_quantity_is_named);
    suite_add_tcase(s, t);
    return s;
}
