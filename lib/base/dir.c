/* The folder part of base/file.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_fault.h"

static int make_one(const char *path, struct err *e)
{
    if (mkdir(path, 0777) == 0)
        return 0;
    int error = errno;
    if (file_is_dir(path)) /* also EROFS, EACCES on a part that already exists */
        return 0;
    errno = error == EEXIST ? ENOTDIR : error;
    return file_error(path, e);
}

int dir_make(const char *path, struct err *e)
{
    auto_free char *part = xstrdup(path);
    if (path[0] == '\0')
        return err_set(e, ERR_INPUT, "the name of a folder is empty");
    for (char *p = part + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (make_one(part, e) < 0)
            return -1;
        *p = '/';
    }
    return make_one(part, e);
}

int dir_sync(const char *path, struct err *e)
{
    auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return file_error(path, e);
    /* EINVAL, ENOTSUP: this file system cannot sync a folder, and so orders renames itself */
    if ((file_fault_hit("fsync") || fsync(fd) < 0) && errno != EINVAL && errno != ENOTSUP)
        return file_error(path, e);
    return 0;
}

int dir_list(const char *path, struct strlist *ret, struct err *e)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return file_error(path, e);

    AUTO_FINI(strlist) names = { 0 };
    const struct dirent *entry;
    errno = 0; /* strlist_add either succeeds or aborts: only readdir sets it */
    while ((entry = readdir(dir)) != NULL)
        if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
            strlist_add(&names, entry->d_name);
    int error = errno;
    closedir(dir);
    errno = error;
    if (error != 0)
        return file_error(path, e);

    strlist_sort(&names);
    strlist_fini(ret);
    *ret = names;
    names = (struct strlist){ 0 };
    return 0;
}
