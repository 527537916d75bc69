/* Folders that tests make. */
#ifndef TRAINYARD_TEST_TEMP_FOLDER_H
#define TRAINYARD_TEST_TEMP_FOLDER_H

#include <unistd.h>

#include "base/file.h"
#include "check_main.h"

/* Removes the folder with all that it holds. */
static inline void remove_tree(const char *dir)
{
    AUTO_FINI(strlist) names = { 0 };
    struct err e = { .code = ERR_NONE };

    ck_ok_e(dir_list(dir, &names, &e));
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *path = path_join(dir, names.items[i]);
        if (file_is_dir(path))
            remove_tree(path);
        else
            unlink(path);
    }
    rmdir(dir);
}

#endif
