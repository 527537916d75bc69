#include "check_main.h"

#include <string.h>

#include "base/file.h"
#include "job/manifest_reference.h"

START_TEST(the_manual_is_current)
{
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) page = BUF_INIT;
    AUTO_FINI(buf) want = BUF_INIT;

    job_manifest_reference(&want);
    ck_ok_e(file_read("docs/manifest.md", 1 << 20, &page, &e));
    ck_assert_msg(strcmp(page.data, want.data) == 0, "docs/manifest.md is not what lib/job says; run 'make docs'");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("manual");
    TCase *t = tcase_create("manual");
    tcase_add_test(t, the_manual_is_current);
    suite_add_tcase(s, t);
    return s;
}
