/* The folder part of base/file.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
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

int dir_space(const char *path, uint64_t *ret, bool *ret_memory, struct err *e)
{
    struct statfs s;
    if (statfs(path, &s) < 0)
        return file_error(path, e);
    *ret = (uint64_t)s.f_bavail * (uint64_t)(s.f_frsize > 0 ? s.f_frsize : s.f_bsize);
    *ret_memory = s.f_type == TMPFS_MAGIC;
    return 0;
}

/* errno stays as it is. */
static bool is_folder(DIR *dir, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    int error = errno;
    bool found = fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    errno = error;
    return found && S_ISDIR(st.st_mode);
}

static void add_entry(DIR *dir, const struct dirent *entry, bool mark, struct strlist *ret)
{
    if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, ".."))
        return;
    auto_free char *marked = mark && is_folder(dir, entry) ? xasprintf("%s/", entry->d_name) : NULL;
    strlist_add(ret, marked != NULL ? marked : entry->d_name);
}

static int list_names(const char *path, bool mark, struct strlist *ret, struct err *e)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return file_error(path, e);

    AUTO_FINI(strlist) names = { 0 };
    const struct dirent *entry;
    errno = 0; /* set by readdir only */
    while ((entry = readdir(dir)) != NULL)
        add_entry(dir, entry, mark, &names);
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

int dir_list(const char *path, struct strlist *ret, struct err *e)
{
    return list_names(path, false, ret, e);
}

int dir_list_marked(const char *path, struct strlist *ret, struct err *e)
{
    return list_names(path, true, ret, e);
}
