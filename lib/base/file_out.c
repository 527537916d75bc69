/* Files that are replaced as a whole (file_out), and files mapped into memory (file_map). A temporary file is locked
 * by its writer, so that leftovers of killed processes can be distinguished from files being written. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_fault.h"

struct file_out {
    char *path, *temporary; /* temporary NULL: nothing to remove */
    int fd;
};

#define TEMPORARY ".tmp."
enum { TRIES = 1000, LEFTOVER_AGE_S = 3600 };

/* The lock shows that the writer is running (file_remove_leftovers). False: the file was just removed as a leftover. */
static bool lock_temporary(int fd)
{
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno != EWOULDBLOCK; /* this file system has no locks */
    return fstat(fd, &st) < 0 || st.st_nlink > 0;
}

/* O_EXCL and a counter: two writers never share a temporary, nor does one collide with the leftover of a
 * killed process (process ids repeat, and in containers they are all 1). */
static int open_temporary(struct file_out *f)
{
    for (int n = 0; n < TRIES; n++) {
        auto_free char *name = xasprintf("%s" TEMPORARY "%d.%d", f->path, (int)getpid(), n);
        f->fd = file_fault_hit("open") ? -1 : open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0 && lock_temporary(f->fd)) {
            f->temporary = TAKE(name);
            return 0;
        }
        if (f->fd < 0 && errno != EEXIST)
            return -1;
        fd_close(TAKE_FD(f->fd));
    }
    errno = EEXIST;
    return -1;
}

/* "NAME.tmp.PID.N": xmalloc'ed NAME, or NULL. */
static char *name_of_temporary(const char *name)
{
    const char *at = NULL, *next = name;
    while ((next = strstr(next, TEMPORARY)) != NULL)
        at = next++;
    if (at == NULL || at == name)
        return NULL;
    const char *pid = at + strlen(TEMPORARY), *dot = pid + strspn(pid, "0123456789");
    const char *n = *dot == '.' ? dot + 1 : dot, *end = n + strspn(n, "0123456789");
    return dot > pid && end > n && *end == '\0' ? xstrndup(name, (size_t)(at - name)) : NULL;
}

static bool remove_leftover(const char *path)
{
    struct stat st;
    auto_close int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && (errno == EWOULDBLOCK || time(NULL) - st.st_mtime < LEFTOVER_AGE_S))
        return false;
    return unlink(path) == 0;
}

size_t file_remove_leftovers(const char *dir, bool (*ours)(const char *name))
{
    AUTO_FINI(strlist) names = { 0 };
    size_t removed = 0;
    if (dir_list(dir, &names, NULL) < 0)
        return 0; /* they wait for the next time */
    for (size_t i = 0; i < names.n; i++) {
        auto_free char *name = name_of_temporary(names.items[i]), *path = path_join(dir, names.items[i]);
        removed += name != NULL && ours(name) && remove_leftover(path);
    }
    return removed;
}

/* What will be replaced: the file that a link points to, never the link; never a device, a pipe or a folder. */
static int choose_target(struct file_out *f, const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        errno = EISDIR;
        return S_ISDIR(st.st_mode) ? file_error(path, e) : err_set(e, ERR_INPUT, "%s: not a regular file", path);
    }
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        f->path = realpath(path, NULL); /* NULL: it points nowhere, and is replaced itself */
    if (f->path == NULL)
        f->path = xstrdup(path);
    return 0;
}

int file_out_open(const char *path, struct file_out **ret, struct err *e)
{
    AUTO(file_out) *f = xcalloc(1, sizeof(*f));
    f->fd = -1;
    if (choose_target(f, path, e) < 0)
        return -1;
    if (open_temporary(f) < 0)
        return file_error(path, e);
    *ret = TAKE(f);
    return 0;
}

int file_out_write(struct file_out *f, const void *data, size_t n, struct err *e)
{
    if (fd_write(f->fd, data, n, e) < 0)
        return err_wrap(e, "%s", f->path);
    return 0;
}

int file_out_pwrite(struct file_out *f, const void *data, size_t n, uint64_t offset, struct err *e)
{
    if (fd_pwrite(f->fd, data, n, offset, e) < 0)
        return err_wrap(e, "%s", f->path);
    return 0;
}

void file_out_name(struct file_out *f, const char *path)
{
    free(f->path);
    f->path = xstrdup(path);
}

static int sync_temporary(struct file_out *f, struct err *e)
{
    return file_fault_hit("fsync") || fsync(f->fd) < 0 ? file_error(f->path, e) : 0;
}

/* The file has its name; the temporary name is gone. */
static int named(struct file_out *f, struct err *e)
{
    free(TAKE(f->temporary));
    fd_close(TAKE_FD(f->fd));

    auto_free char *dir = path_dir(f->path);
    return dir_sync(dir, e);
}

int file_out_commit(struct file_out *f, struct err *e)
{
    if (sync_temporary(f, e) < 0 || file_rename(f->temporary, f->path, e) < 0)
        return -1;
    return named(f, e);
}

static int exists_already(const struct file_out *f, struct err *e)
{
    return err_set(e, ERR_REFUSED, "%s: exists already", f->path);
}

/* 1: done; 0: this file system has no hard links. NFS may report EEXIST for a link that it made, when its answer was
 * lost: the link count shows which. */
static int commit_by_link(const struct file_out *f, struct err *e)
{
    struct stat st;
    if (!file_fault_hit("link") && link(f->temporary, f->path) == 0)
        return 1;
    int error = errno;
    if (error == EEXIST)
        return fstat(f->fd, &st) == 0 && st.st_nlink == 2 ? 1 : exists_already(f, e);
    if (error == EPERM || error == ENOSYS || error == EOPNOTSUPP || error == EMLINK)
        return 0;
    errno = error;
    return file_error(f->path, e);
}

/* The process that creates the empty file may replace it. */
static int commit_by_create(struct file_out *f, struct err *e)
{
    auto_close int fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno == EEXIST ? exists_already(f, e) : file_error(f->path, e);
    return file_rename(f->temporary, f->path, e);
}

int file_out_commit_new(struct file_out *f, struct err *e)
{
    if (sync_temporary(f, e) < 0)
        return -1;
    int linked = commit_by_link(f, e);
    if (linked < 0 || (linked == 0 && commit_by_create(f, e) < 0))
        return -1;
    if (linked == 1)
        unlink(f->temporary); /* its second name */
    return named(f, e);
}

void file_out_free(struct file_out *f)
{
    if (f == NULL)
        return;
    int saved = errno;
    fd_close(f->fd);
    if (f->temporary != NULL)
        unlink(f->temporary);
    free(f->temporary);
    free(f->path);
    free(f);
    errno = saved;
}

static const unsigned char nothing[1];

int file_map_open(const char *path, struct file_map **ret, struct err *e)
{
    auto_close int fd = -1;
    struct stat st;
    if (file_is_dir(path))
        return err_set(e, ERR_INPUT, "%s: not a regular file", path);
    if (file_open(path, &fd, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return file_error(path, e);

    AUTO(file_map) *m = xcalloc(1, sizeof(*m));
    m->path = xstrdup(path);
    m->data = nothing;
    if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
            return file_error(path, e);
        m->data = p;
        m->size = (size_t)st.st_size;
    }
    *ret = TAKE(m);
    return 0;
}

int file_map_open_shared(const char *path, struct file_map **ret, struct err *e)
{
    auto_close int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return file_error(path, e);
    if (!S_ISREG(st.st_mode) || st.st_size <= 0)
        return err_set(e, ERR_INPUT, "%s: not a regular file with content", path);
    if (file_fault_hit("fallocate") || fallocate(fd, 0, 0, st.st_size) < 0)
        return file_error(path, e);
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return file_error(path, e);
    struct file_map *m = xcalloc(1, sizeof(*m));
    *m = (struct file_map){ .data = p, .size = (size_t)st.st_size, .path = xstrdup(path), .shared = p };
    *ret = m;
    return 0;
}

/* munmap and madvise need void *; the holder has a const pointer. */
static void *pages_of(const struct file_map *m)
{
    return (void *)(uintptr_t)m->data;
}

void file_map_free(struct file_map *m)
{
    if (m == NULL)
        return;
    if (m->size > 0)
        munmap(pages_of(m), m->size);
    free(m->path);
    free(m);
}

void file_map_random(struct file_map *m)
{
    if (m->size > 0)
        (void)madvise(pages_of(m), m->size, MADV_RANDOM);
}
