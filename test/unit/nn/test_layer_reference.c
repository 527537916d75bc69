#include "check_main.h"

#include <string.h>

#include "base/file.h"
#include "nn/layer_reference.h"

START_TEST(the_page_is_current)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) page = BUF_INIT;
    AUTO_FINI(buf) want = BUF_INIT;

    layer_reference_write(&want);
    ck_ok_e(file_read("docs/layers.md", 1 << 20, &page, &e));
    ck_assert_msg(strcmp(page.data, want.data) == 0, "docs/layers.md is not what lib/nn says; run 'make docs'");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("nn/layer_reference");
    TCase *t = tcase_create("layer reference");
    tcase_add_test(t, the_page_is_current);
    suite_add_tcase(s, t);
    return s;
}
