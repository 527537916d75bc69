/* case_folder - a loop test for each entry of a folder: tcase_add_loop_test(t, f, 0, case_count(FOLDER)), and in f
 * case_path(FOLDER, _i). The entries are in the order of their names; a folder without any fails in case_path. */
#ifndef TRAINYARD_TEST_CASE_FOLDER_H
#define TRAINYARD_TEST_CASE_FOLDER_H

#include "base/file.h"
#include "check_main.h"

static inline int case_count(const char *folder)
{
    AUTO_FINI(strlist) names = { 0 };
    return dir_list(folder, &names, NULL) == 0 ? MAX((int)names.n, 1) : 1;
}

/* xmalloc'ed */
static inline char *case_path(const char *folder, int i)
{
    AUTO_FINI(strlist) names = { 0 };
    struct err e = { 0 };
    ck_ok_e(dir_list(folder, &names, &e));
    ck_assert_msg((size_t)i < names.n, "%s has no case %d", folder, i);
    return path_join(folder, names.items[i]);
}

#endif
